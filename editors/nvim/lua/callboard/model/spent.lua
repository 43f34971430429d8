-- What agents have used: of each, and of all together. What is not known is told as a lower bound. Pure.
local rows = require('callboard.model.rows')
local text = require('callboard.model.text')

local M = {}

---Of several, with what they cost by currency.
---@class callboard.UsageTotal: callboard.Usage
---@field costs table<string, number>?

---@param usage callboard.Usage|callboard.UsageTotal|nil
---@return string? nil where nothing is known
function M.said(usage)
  if not usage then
    return nil
  end
  local parts = {}
  if usage.inputTokens or usage.outputTokens then
    parts[1] = text.count((usage.inputTokens or 0) + (usage.outputTokens or 0)) .. ' tokens'
  end
  local costs = usage.costs or (usage.cost and { [usage.currency or 'USD'] = usage.cost }) or {}
  for currency, amount in vim.spairs(costs) do
    parts[#parts + 1] = rows.cost(amount, currency)
  end
  if #parts == 0 then
    return nil
  end
  return (usage.partial and 'at least ' or '') .. table.concat(parts, ', ')
end

---What the root and all agents used, as far as it is known.
---@param view callboard.AgentsView
---@return callboard.UsageTotal
function M.total(view)
  local total = { costs = {} }
  local function add(usage, ran)
    if not usage or not (usage.inputTokens or usage.outputTokens) then
      total.partial = total.partial or ran
      return
    end
    total.inputTokens = (total.inputTokens or 0) + (usage.inputTokens or 0)
    total.outputTokens = (total.outputTokens or 0) + (usage.outputTokens or 0)
    if usage.cost then
      local currency = usage.currency or 'USD'
      total.costs[currency] = (total.costs[currency] or 0) + usage.cost
    end
    total.partial = total.partial or usage.partial or nil
  end
  add(view.root.usage, view.root.lastOutcome ~= nil)
  for _, agent in ipairs(view.agents) do
    add(agent.usage, agent.status ~= 'starting')
  end
  if not total.inputTokens then
    total.partial = nil
  end
  return total
end

return M

-- What a session and its agents have used, as a table. What is not known is `?`, never 0. Pure.
local Sessions = require('callboard.model.store')
local rows = require('callboard.model.rows')
local text = require('callboard.model.text')

local M = {}

local UNKNOWN = '?'
local HEADINGS = { '', 'runs', 'requests', 'tokens in', 'cached', 'out', 'cost' }

---@param count integer?
---@return string
local function figure(count)
  return count == nil and UNKNOWN or text.count(count)
end

---@param sum callboard.UsageSum
---@return string
local function cost(sum)
  local parts = {}
  for _, each in ipairs(sum.costs or {}) do
    parts[#parts + 1] = rows.cost(each.amount, each.currency)
  end
  if #parts == 0 and sum.usage.cost then
    parts[1] = rows.cost(sum.usage.cost, sum.usage.currency)
  end
  return #parts > 0 and table.concat(parts, ' + ') or UNKNOWN
end

---@param name string
---@param sum callboard.UsageSum
---@return string[]
local function row(name, sum)
  local usage = sum.usage
  return {
    name,
    figure(sum.runs),
    figure(usage.requests),
    figure(usage.inputTokens),
    figure(usage.cacheReadTokens),
    figure(usage.outputTokens),
    cost(sum),
  }
end

---@param what string
---@param count integer
---@return string
local function unknown(what, count)
  return ('%s: unknown or incomplete for %d run%s.'):format(what, count, count == 1 and '' or 's')
end

---@param cells string[][]
---@return string[]
local function align(cells)
  local widths = {}
  for _, line in ipairs(cells) do
    for i, cell in ipairs(line) do
      widths[i] = math.max(widths[i] or 0, vim.fn.strdisplaywidth(cell))
    end
  end
  return vim.tbl_map(function(line)
    local parts = {}
    for i, cell in ipairs(line) do
      local space = (' '):rep(widths[i] - vim.fn.strdisplaywidth(cell))
      parts[i] = i == 1 and cell .. space or space .. cell
    end
    return (table.concat(parts, '  '):gsub('%s+$', ''))
  end, cells)
end

---@param result callboard.SessionUsageResult
---@param session callboard.Session?
---@return string[] lines the first is the headings
function M.lines(result, session)
  local cells = { HEADINGS }
  for _, each in ipairs(result.models) do
    cells[#cells + 1] = row(text.one_line(each.model or '(model not known)', 40), each.total)
  end
  cells[#cells + 1] = row('this session', result.total)
  if #result.sessions > 1 then
    for _, each in ipairs(result.sessions) do
      if each.sessionId ~= result.sessionId then
        cells[#cells + 1] = row('  ' .. text.one_line(Sessions.name(each), 40), each.total)
      end
    end
    cells[#cells + 1] = row('with all agents below it', result.tree)
  end
  local lines = align(cells)
  if (result.moreSessions or 0) > 0 then
    lines[#lines + 1] = ('%d more agents are counted, but not named.'):format(result.moreSessions)
  end
  local tree = result.tree
  if (tree.unknownTokens or 0) > 0 then
    lines[#lines + 1] = unknown('Tokens', tree.unknownTokens)
  end
  if (tree.unknownCost or 0) > 0 then
    lines[#lines + 1] = unknown('Cost', tree.unknownCost)
  end
  local context = session and session.usage and session.usage.contextTokens
  if context then
    lines[#lines + 1] = ('The last request took %s tokens of context.'):format(text.count(context))
  end
  return lines
end

return M

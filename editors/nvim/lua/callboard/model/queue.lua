-- What a person has said and no turn has taken in: on its way to the server, or waiting there. And what was
-- said before, for the input's history. Pure.
local M = {}

---@class callboard.Outgoing
---@field key string its idempotency key
---@field text string
---@field delivery callboard.Delivery

---@class callboard.Outbox
---@field sending callboard.Outgoing[]

---@return callboard.Outbox
function M.new()
  return { sending = {} }
end

---@param box callboard.Outbox
---@param outgoing callboard.Outgoing
function M.add(box, outgoing)
  box.sending[#box.sending + 1] = outgoing
end

---It is durable, or has failed: what it says stands in the log now, or is given back.
---@param box callboard.Outbox
---@param key string
---@return callboard.Outgoing?
function M.settle(box, key)
  for i, outgoing in ipairs(box.sending) do
    if outgoing.key == key then
      return table.remove(box.sending, i)
    end
  end
end

---@class callboard.History
---@field entries string[] the oldest first
---@field private at integer? which one is shown
---@field private draft string? what stood there before

local LIMIT = 100

---@return callboard.History
function M.history()
  return { entries = {} }
end

---@param history callboard.History
---@param text string
function M.remember(history, text)
  history.at, history.draft = nil, nil
  if vim.trim(text) == '' or history.entries[#history.entries] == text then
    return
  end
  history.entries[#history.entries + 1] = text
  if #history.entries > LIMIT then
    table.remove(history.entries, 1)
  end
end

---@param history callboard.History
---@param current string what the input holds
---@return string? text nil at the oldest
function M.back(history, current)
  local at = (history.at or #history.entries + 1) - 1
  if at < 1 then
    return nil
  end
  if not history.at then
    history.draft = current
  end
  history.at = at
  return history.entries[at]
end

---@param history callboard.History
---@return string? text nil where there is nothing newer
function M.forward(history)
  if not history.at then
    return nil
  end
  local at = history.at + 1
  if at > #history.entries then
    local draft = history.draft or ''
    history.at, history.draft = nil, nil
    return draft
  end
  history.at = at
  return history.entries[at]
end

return M

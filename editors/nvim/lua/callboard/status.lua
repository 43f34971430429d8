-- What a statusline shows: computed when something changes, so that asking costs nothing.
local M = {}

---@class callboard.Status
---@field server callboard.rpc.State
---@field running integer sessions that run
---@field approvals integer that wait for an answer
---@field session string? title of the session whose chat was last in view
---@field state callboard.SessionStatus? of that one
---@field message string? why there is no server

---@type callboard.Status
local status = { server = 'stopped', running = 0, approvals = 0 }
local line = ''

---@param value callboard.Status
---@return string not escaped
local function render(value)
  if value.server == 'failed' then
    return 'callboard: no server'
  elseif value.server == 'waiting' or value.server == 'starting' then
    return 'callboard: ' .. (value.server == 'starting' and 'starting' or 'reconnecting')
  elseif value.server == 'stopped' then
    return ''
  end
  local parts = {}
  if value.approvals > 0 then
    parts[#parts + 1] = ('%d to approve'):format(value.approvals)
  end
  if value.running > 0 then
    parts[#parts + 1] = ('%d running'):format(value.running)
  end
  return 'callboard: ' .. (#parts > 0 and table.concat(parts, ', ') or 'ready')
end

---@param app callboard.App
local function update(app)
  local id = package.loaded['callboard.ui.chat'] and require('callboard.ui.chat').current() or nil
  local session = id and app.sessions.by_id[id] or nil
  local new = {
    server = app.server.state,
    running = require('callboard.model.store').counts(app.sessions).running,
    approvals = #app.approvals.pending,
    session = session and require('callboard.model.store').name(session) or nil,
    state = session and session.status or nil,
    message = app.server.failure and app.server.failure.message or nil,
  }
  if vim.deep_equal(new, status) then
    return
  end
  status, line = new, render(new)
  require('callboard.events').emit('CallboardStatus', vim.deepcopy(new))
  vim.schedule(function()
    vim.cmd.redrawstatus({ bang = true })
  end)
end

---Keeps it up to date.
---@param app callboard.App
function M.watch(app)
  for _, topic in ipairs({ 'server', 'sessions', 'approvals' }) do
    app:on(topic, function()
      update(app)
    end)
  end
end

---Looks again, as when another chat came into view.
function M.refresh()
  local app = require('callboard.app').peek()
  if app then
    update(app)
  end
end

---@return string
function M.text()
  return (line:gsub('%%', '%%%%'))
end

---@return callboard.Status
function M.get()
  return vim.deepcopy(status)
end

return M

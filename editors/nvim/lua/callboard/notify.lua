-- What a person is told: one message that names the thing and the way out.
local errors = require('callboard.errors')
local text = require('callboard.model.text')

local M = {}

---@param message string
---@param level integer?
local function say(message, level)
  vim.schedule(function()
    require('callboard.ui.toast').show('Callboard: ' .. text.visible(message), level)
  end)
end

---@param message string
function M.info(message)
  say(message, vim.log.levels.INFO)
end

---@param message string
function M.warn(message)
  say(message, vim.log.levels.WARN)
end

---@param message string
function M.error(message)
  require('callboard.log').error('%s', message)
  say(message, vim.log.levels.ERROR)
end

M.explain = errors.explain

---The last word on there being no server, and when it was said (ms).
---@type string?
local last
local last_at = 0
---Within so long (ms) it is not said again, however many requests one thing makes.
local AGAIN_MS = 1000

---Tells that there is no server.
---@param message string
---@param lines string[]? what it said last
function M.no_server(message, lines)
  local now = vim.uv.now()
  if message ~= last or now - last_at > AGAIN_MS then
    M.error(table.concat({ message, unpack(lines or {}) }, '\n'))
  end
  last, last_at = message, now
end

---Tells of a request that failed.
---@param doing string what was asked for, as in "rename the session"
---@param err table
function M.failed(doing, err)
  local kind = errors.kind(err)
  if kind == 'noServer' then
    -- That a server failed is told by itself, when it does; and again for what is wanted of it after that.
    if not err.data.told then
      M.no_server(err.message)
    end
  elseif kind ~= 'serverGone' then
    M.error(('could not %s: %s'):format(doing, errors.explain(err)))
  end
end

---The last fault of ours, when it was told (ms), and how often it has happened since.
---@type string?
local fault_told
local fault_at, fault_count = 0, 0
---The same fault is told again after so long (ms).
local FAULT_MS = 10000

---What Neovim refuses for reasons of its own, and the way out.
local REFUSED = {
  E36 = 'there is no room for another window: close one, or make the screen larger',
  E11 = 'not while the window of the command line is open: close it first',
  E1513 = "this window keeps its buffer ('winfixbuf'): go to another one",
  E565 = 'not while text is being changed; try again',
}

---@param fault any
local function broken(fault)
  local now, line = vim.uv.now(), tostring(fault):match('[^\n]*')
  local refused = REFUSED[line:match('(E%d+):') or '']
  if refused then
    return M.warn(refused)
  end
  if line == fault_told and now - fault_at < FAULT_MS then
    -- What breaks with each of thousands of messages is told with the first.
    fault_count = fault_count + 1
    return
  end
  local log = require('callboard.log')
  if fault_count > 0 then
    log.error('%s: %d times more', fault_told, fault_count)
  end
  fault_told, fault_at, fault_count = line, now, 0
  log.error('%s', debug.traceback(tostring(fault), 3))
  M.warn(
    ('something went wrong in the plugin; it goes on. :Callboard log has the details (%s)'):format(
      line
    )
  )
end

---Calls a function. A fault of ours goes to the log, is told in a line, and keeps nothing else from happening.
---@param fn function
---@param ... any
---@return boolean ok
---@return any result the first one
function M.guard(fn, ...)
  local args, count = { ... }, select('#', ...)
  return xpcall(function()
    return (fn(unpack(args, 1, count)))
  end, broken)
end

return M

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

---@type string? the last word on there being no server, and when it was said (ms)
local last, last_at = nil, 0

---Tells of a request that failed.
---@param doing string what was asked for, as in "rename the session"
---@param err table
function M.failed(doing, err)
  local kind = errors.kind(err)
  if kind ~= 'noServer' and kind ~= 'serverGone' then
    return M.error(('could not %s: %s'):format(doing, errors.explain(err)))
  end
  -- That a server failed is told by itself, once; and once more for each thing that is wanted of it after that,
  -- however many requests that makes.
  if kind == 'noServer' and not err.data.told then
    local now = vim.uv.now()
    if last ~= err.message or now - last_at > 1000 then
      M.error(err.message)
    end
    last, last_at = err.message, now
  end
end

---The same fault again within so long (ms) goes to the log alone.
local REPEAT_MS = 10000

---@type table<string, integer> faults by what they say, and when they were told (ms)
local faults = {}

---@param fault any
local function told(fault)
  local line = tostring(fault):match('[^\n]*')
  require('callboard.log').error('%s', debug.traceback(tostring(fault), 2))
  vim.schedule(function()
    local now = vim.uv.now()
    if not faults[line] or now - faults[line] > REPEAT_MS then
      faults[line] = now
      M.warn(
        ('something went wrong in the plugin; it goes on. :Callboard log has the details (%s)'):format(
          line
        )
      )
    end
  end)
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
  end, told)
end

return M

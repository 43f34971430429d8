-- What to tell of a server that has ended, and whether another start may help. Pure.
local text = require('callboard.model.text')

local M = {}

---@class callboard.rpc.Ending
---@field cmd string[]
---@field exit callboard.rpc.Exit
---@field refusal { message: string, data: table? }? it answered `initialize` with an error
---@field late integer? it did not answer within so many seconds
---@field starting boolean it had not begun to serve
---@field guess boolean? nobody knew whether it is Callboard

---How it ended.
---@param ending callboard.rpc.Ending
---@return string
function M.why(ending)
  local program, exit = text.one_line(table.concat(ending.cmd, ' '), 200), ending.exit
  if ending.refusal then
    return require('callboard.notify').explain(ending.refusal)
  elseif exit.garbage then
    local shown = text.one_line(exit.garbage, 80)
    return ('%s is no Callboard server: it printed "%s"'):format(program, shown)
  elseif ending.late then
    return ('%s did not answer within %d s'):format(program, ending.late)
  elseif exit.signal ~= 0 then
    return ('the server was ended by signal %d'):format(exit.signal)
  end
  return ('the server (%s) ended with code %d'):format(program, exit.code)
end

---@param ending callboard.rpc.Ending
---@return boolean it is a Python without Callboard
local function missing(ending)
  return ending.guess == true
    and ending.starting
    and not ending.refusal
    and vim.iter(ending.exit.stderr):any(function(line)
      return line:find('No module named', 1, true) ~= nil
    end)
end

local UPDATE = 'The plugin speaks version %s. Update both to the same release: the wheel carries its plugin '
  .. '(callboard editor path nvim).'

---Why no other start is of use, and the way out; nil where one may be.
---@param ending callboard.rpc.Ending
---@param cwd string the folder that the server was looked for in
---@return string?
function M.hopeless(ending, cwd)
  local refusal = ending.refusal
  local data = refusal and refusal.data or {}
  if missing(ending) then
    return require('callboard.rpc.locate').missing(cwd)
  elseif data.kind == 'unsupportedVersion' then
    local version = require('callboard.protocol').PROTOCOL_VERSION
    return M.why(ending) .. '\n' .. UPDATE:format(version)
  elseif refusal and not data.retryable then
    return M.why(ending) .. '\n:Callboard restart tries again.'
  elseif ending.exit.garbage then
    return M.why(ending) .. '\nSet server.cmd, or correct what it names; then :Callboard restart.'
  end
end

---@param ending callboard.rpc.Ending
---@param times integer
---@return string
function M.again_and_again(ending, times)
  return ('%s; so it went %d times in a row. :Callboard restart tries again, :checkhealth callboard says more.'):format(
    M.why(ending),
    times
  )
end

return M

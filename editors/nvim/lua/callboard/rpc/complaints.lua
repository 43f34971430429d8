-- What a server writes to stderr: all of it goes to the log, and the last lines are kept for whoever has to be
-- helped when it ends.
local log = require('callboard.log')

local M = {}

---So many lines are kept, and of one line so many bytes.
local LINES, WIDTH = 20, 2000

---@class callboard.rpc.Complaints
---@field private kept string[]
---@field private rest string the end that is no whole line yet
local Complaints = {}
Complaints.__index = Complaints

---@return callboard.rpc.Complaints
function M.new()
  return setmetatable({ kept = {}, rest = '' }, Complaints)
end

---@private
---@param line string
function Complaints:keep(line)
  line = line:sub(1, WIDTH)
  log.debug('server: %s', line)
  table.insert(self.kept, line)
  if #self.kept > LINES then
    table.remove(self.kept, 1)
  end
end

---@param chunk string
function Complaints:add(chunk)
  local text = self.rest .. chunk
  local whole, rest = text:match('^(.*\n)(.*)$')
  if not whole then
    whole, rest = '', text
  end
  if #rest > WIDTH then
    whole, rest = whole .. rest .. '\n', ''
  end
  self.rest = rest
  for line in whole:gmatch('[^\r\n]+') do
    self:keep(line)
  end
end

---The last lines; nothing more comes.
---@return string[]
function Complaints:lines()
  if self.rest ~= '' then
    self:keep(self.rest)
    self.rest = ''
  end
  return self.kept
end

return M

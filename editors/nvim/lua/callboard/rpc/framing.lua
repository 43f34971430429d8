-- Frames as LSP has them: a Content-Length header, a blank line, and so many bytes. Pure.
local M = {}

---A header block larger than this (bytes) is no header.
M.HEADER_LIMIT = 8192

---Whoever announces more than this (bytes) is no server of ours: they send pages of a megabyte or so, and a frame
---that is read at once keeps the editor for as long as it takes to read it.
M.BODY_LIMIT = 64 * 1024 * 1024

---So much (bytes) of what is no frame is told.
local SHOWN = 200

---@param body string
---@return string
function M.frame(body)
  return ('Content-Length: %d\r\n\r\n%s'):format(#body, body)
end

---Takes bytes as they come and gives whole bodies.
---@class callboard.rpc.Reader
---@field private buffer string what is looked at
---@field private at integer where in it the next frame, or the rest of one, begins
---@field private parts string[] what came after it
---@field private size integer bytes that were not given yet
---@field private wanted integer? bytes of the body that is due; nil while a header is
---@field private fault string?
local Reader = {}
Reader.__index = Reader

---@return callboard.rpc.Reader
function M.reader()
  return setmetatable({ buffer = '', at = 1, parts = {}, size = 0 }, Reader)
end

---@private
---All that is there, as one string.
function Reader:join()
  if #self.parts > 0 then
    self.buffer = self.buffer:sub(self.at) .. table.concat(self.parts)
    self.at, self.parts = 1, {}
  end
end

---@private
---@param to integer the last byte that was taken
function Reader:advance(to)
  self.size = self.size - (to + 1 - self.at)
  self.at = to + 1
end

---@private
---@return boolean found
function Reader:header()
  self:join()
  local first = self.buffer:match('^[^\n]*\n?', self.at)
  -- What cannot become a header any more is told at once, not after the limit.
  if not (first:find('^[%w-]+[ \t]*:') or first:find('^[%w-]*[ \t]*$')) then
    self.fault = first:sub(1, SHOWN)
    return false
  end
  local from, to = self.buffer:find('\r?\n\r?\n', self.at)
  if not from then
    if self.size > M.HEADER_LIMIT then
      self.fault = self.buffer:sub(self.at, self.at + SHOWN - 1)
    end
    return false
  end
  local head = '\n' .. self.buffer:sub(self.at, from - 1):lower()
  local length = tonumber(head:match('\ncontent%-length[ \t]*:[ \t]*(%d+)[ \t\r]*%f[\n%z]'))
  if not length or length > M.BODY_LIMIT then
    self.fault = head:sub(2, SHOWN + 1)
    return false
  end
  self.wanted = length
  self:advance(to)
  return true
end

---@param chunk string
---@return string[] bodies that are whole by now
---@return string? fault the beginning of what is no frame; the stream is of no use after it
function Reader:feed(chunk)
  local bodies = {}
  if self.fault then
    return bodies, self.fault
  end
  if chunk ~= '' then
    self.parts[#self.parts + 1] = chunk
    self.size = self.size + #chunk
  end
  while self.size > 0 do
    if not self.wanted and not self:header() then
      break
    end
    if self.size < self.wanted then
      break
    end
    self:join()
    local last = self.at + self.wanted - 1
    bodies[#bodies + 1] = self.buffer:sub(self.at, last)
    self:advance(last)
    self.wanted = nil
  end
  if self.size == 0 then
    self.buffer, self.at = '', 1
  end
  return bodies, self.fault
end

return M

-- Frames as LSP has them: a Content-Length header, a blank line, and so many bytes. Pure.
local M = {}

---A header block larger than this (bytes) is no header.
M.HEADER_LIMIT = 8192

---@param body string
---@return string
function M.frame(body)
  return ('Content-Length: %d\r\n\r\n%s'):format(#body, body)
end

---Takes bytes as they come and gives whole bodies.
---@class callboard.rpc.Reader
---@field private parts string[] what has come and was not given yet
---@field private size integer bytes in `parts`
---@field private wanted integer? bytes of the body that is due; nil while a header is
local Reader = {}
Reader.__index = Reader

---@return callboard.rpc.Reader
function M.reader()
  return setmetatable({ parts = {}, size = 0, wanted = nil }, Reader)
end

---@private
---@return string
function Reader:joined()
  local all = #self.parts == 1 and self.parts[1] or table.concat(self.parts)
  self.parts = { all }
  return all
end

---@private
---@param rest string
function Reader:keep(rest)
  self.parts = rest == '' and {} or { rest }
  self.size = #rest
end

---@private
---@return boolean found
---@return string? fault
function Reader:header()
  local all = self:joined()
  local from, to = all:find('\r?\n\r?\n')
  if not from then
    if self.size > M.HEADER_LIMIT then
      return false, all:sub(1, 200)
    end
    -- What cannot become a header any more is told at once, not after the limit.
    local first = all:match('^[^\n]*\n')
    if first and not first:match('^[%w-]+%s*:') then
      return false, first
    end
    return false
  end
  local head = '\n' .. all:sub(1, from - 1):lower()
  local length = tonumber(head:match('\ncontent%-length%s*:%s*(%d+)'))
  if not length then
    return false, all:sub(1, math.min(from, 200))
  end
  self.wanted = length
  self:keep(all:sub(to + 1))
  return true
end

---@param chunk string
---@return string[] bodies that are whole by now
---@return string? fault the beginning of what is no frame; the stream is of no use after it
function Reader:feed(chunk)
  self.parts[#self.parts + 1] = chunk
  self.size = self.size + #chunk
  local bodies = {}
  while self.size > 0 or self.wanted == 0 do
    if not self.wanted then
      local found, fault = self:header()
      if not found then
        return bodies, fault
      end
    end
    if self.size < self.wanted then
      break
    end
    local all = self:joined()
    bodies[#bodies + 1] = all:sub(1, self.wanted)
    self:keep(all:sub(self.wanted + 1))
    self.wanted = nil
  end
  return bodies
end

return M

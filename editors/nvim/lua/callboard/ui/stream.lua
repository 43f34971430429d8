-- Text that grows: how much of it stands in the buffer, and what to append. No more than the new part is
-- looked at, however long the text has become. Pure.
local text = require('callboard.model.text')

local M = {}

---@class callboard.StreamState
---@field taken integer bytes of the raw text that are shown
---@field seam string the last of those, to see whether it is the same text that has grown
---@field raw string the raw text as of the last look
---@field width integer bytes in the last line that is shown
---@field prefix string before each line
---@field hl string?
local State = {}
State.__index = State

---Lines longer than this (bytes) are broken: one without an end would take the editor longer and longer.
M.MAX_LINE = 4000
local SEAM = 32

---@param prefix string
---@param hl string?
---@return callboard.StreamState
function M.new(prefix, hl)
  return setmetatable({
    taken = 0,
    seam = '',
    raw = '',
    width = #prefix,
    prefix = prefix,
    hl = hl,
  }, State)
end

---How many bytes of the end are the beginning of a character.
---@param part string
---@return integer
local function unfinished(part)
  for back = 1, math.min(3, #part) do
    local byte = part:byte(-back)
    if byte >= 0xC0 then
      local length = byte >= 0xF0 and 4 or byte >= 0xE0 and 3 or 2
      return back < length and back or 0
    elseif byte < 0x80 then
      return 0
    end
  end
  return 0
end

local SPACE = { [32] = true, [9] = true, [10] = true, [13] = true }

---Where the last byte is that is no white space; that at the end of a text is never shown, and so need not be
---taken back.
---@param raw string
---@param from integer
---@param to integer
---@return integer
local function last_word(raw, from, to)
  while to >= from and SPACE[raw:byte(to)] do
    to = to - 1
  end
  return to
end

---A line in pieces that are not too long, cut between characters.
---@param line string
---@param room integer bytes in the first; it may be empty
---@param full integer bytes in the others
---@return string[]
local function pieces(line, room, full)
  local out, from = {}, 1
  while #line - from + 1 > room do
    local to = from + math.max(room, 0) - 1
    while to >= from and line:byte(to + 1) >= 0x80 and line:byte(to + 1) < 0xC0 do
      to = to - 1
    end
    out[#out + 1] = line:sub(from, to)
    from, room = to + 1, full
  end
  out[#out + 1] = line:sub(from)
  return out
end

---What to append: the first piece belongs to the last line, the others are new lines.
---@param raw string the whole text as it is now
---@param over boolean no more comes
---@return string[]? nil where there is nothing
function State:more(raw, over)
  self.raw = raw
  local from, to = self.taken + 1, #raw
  if not over then
    to = to - unfinished(raw:sub(math.max(from, #raw - 2)))
  end
  to = last_word(raw, from, to)
  if self.taken == 0 then
    -- Blank lines at the beginning say nothing; the indent of the first line does.
    local first = raw:match('^[ \t\r\n]*\n()') or 1
    from = math.min(first, to + 1)
  end
  if to < from then
    return nil
  end
  local split = text.lines(raw:sub(from, to))
  self.taken = to
  self.seam = raw:sub(math.max(1, to - SEAM + 1), to)
  local out = {}
  for i, line in ipairs(split) do
    local full = M.MAX_LINE - #self.prefix
    local room = i == 1 and M.MAX_LINE - self.width or full
    for j, piece in ipairs(pieces(line, room, full)) do
      local fresh = not (i == 1 and j == 1)
      out[#out + 1] = (fresh and self.prefix or '') .. piece
      self.width = (fresh and 0 or self.width) + #out[#out]
    end
  end
  return out
end

---Whether `raw` is what is shown, and perhaps more.
---@param raw string
---@param over boolean a last look, at all of it
---@return boolean
function State:continues(raw, over)
  if #raw < self.taken or raw:sub(self.taken - #self.seam + 1, self.taken) ~= self.seam then
    return false
  end
  return not over or raw:sub(1, self.taken) == self.raw:sub(1, self.taken)
end

---The first lines.
---@param state callboard.StreamState
---@param raw string
---@param over boolean
---@return callboard.Line[]
function M.begin(state, raw, over)
  local shown = state:more(raw, over) or { '' }
  local begun = {}
  for i, line in ipairs(shown) do
    begun[i] = { { i == 1 and state.prefix .. line or line, state.hl } }
  end
  return begun
end

---A text that does not grow.
---@param raw string
---@return callboard.Line[]
function M.whole(raw)
  return M.begin(M.new('', nil), raw, true)
end

return M

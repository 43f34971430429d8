-- Untrusted text, made fit for a buffer, a statusline or the wire. Pure.
local M = {}

local REPLACEMENT = '\239\191\189'

---@param byte integer?
---@param low integer
---@param high integer
---@return boolean
local function within(byte, low, high)
  return byte ~= nil and byte >= low and byte <= high
end

---How long the well-formed UTF-8 sequence at `at` is; nil where there is none.
---@param text string
---@param at integer
---@return integer?
local function sequence(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  if a < 0x80 then
    return 1
  elseif a >= 0xC2 and a <= 0xDF then
    return within(b, 0x80, 0xBF) and 2 or nil
  elseif a >= 0xE0 and a <= 0xEF then
    local second = within(b, a == 0xE0 and 0xA0 or 0x80, a == 0xED and 0x9F or 0xBF)
    return second and within(c, 0x80, 0xBF) and 3 or nil
  elseif a >= 0xF0 and a <= 0xF4 then
    local second = within(b, a == 0xF0 and 0x90 or 0x80, a == 0xF4 and 0x8F or 0xBF)
    return second and within(c, 0x80, 0xBF) and within(d, 0x80, 0xBF) and 4 or nil
  end
  return nil
end

---What is to be a text, as one: a peer may send anything in its place, and nothing here fails for it.
---@param value any
---@return string
local function as_text(value)
  if type(value) == 'string' then
    return value
  elseif value == nil then
    return ''
  end
  return type(value) == 'table' and '…' or tostring(value)
end

---The text as well-formed UTF-8: what is none becomes U+FFFD.
---@param text string
---@return string
function M.utf8(text)
  text = as_text(text)
  local out, from = {}, 1
  local at = text:find('[\128-\255]')
  while at do
    local length = sequence(text, at)
    if not length then
      out[#out + 1] = text:sub(from, at - 1) .. REPLACEMENT
      from = at + 1
    end
    at = text:find('[\128-\255]', at + (length or 1))
  end
  if from == 1 then
    return text
  end
  out[#out + 1] = text:sub(from)
  return table.concat(out)
end

-- What acts on whoever shows it, beside the control characters of ASCII: control characters beyond it (to a
-- terminal, U+009B begins an escape sequence), and marks that turn the direction of the text around them, with
-- which a terminal would show another command than the one that is asked about.
local SPELLED = {}

local function spell(first, last)
  for code = first, last do
    local b, c = 0x80 + code % 0x40, math.floor(code / 0x40)
    local bytes = c < 0x20 and string.char(0xC0 + c, b)
      or string.char(0xE0 + math.floor(c / 0x40), 0x80 + c % 0x40, b)
    SPELLED[bytes] = ('<U+%04X>'):format(code)
  end
end

spell(0x80, 0x9F)
spell(0x061C, 0x061C)
spell(0x200E, 0x200F)
spell(0x2028, 0x202E)
spell(0x2066, 0x2069)

---The text with nothing in it that acts on whoever shows it: control characters other than line ends and
---tabs, and marks that turn the direction of writing, are spelled out.
---@param text string
---@return string
function M.visible(text)
  text = M.utf8(text):gsub('\r\n', '\n')
  text = text:gsub('[%z\1-\8\11-\31\127]', function(char)
    return ('<%02X>'):format(char:byte())
  end)
  if text:find('[\194\216\226]') then
    text = text
      :gsub('\226[\128\129].', SPELLED)
      :gsub('\194[\128-\159]', SPELLED)
      :gsub('\216\156', SPELLED)
  end
  return text
end

---The lines of a text, fit for a buffer.
---@param text string
---@return string[]
function M.lines(text)
  return vim.split(M.visible(text), '\n', { plain = true })
end

---The beginning of a well-formed text.
---@param text string
---@param width integer characters
---@return string
---@return boolean whole
local function beginning(text, width)
  if #text <= width then
    return text, true
  end
  local at = 1
  for _ = 1, width do
    if at > #text then
      return text, true
    end
    local byte = text:byte(at)
    at = at + (byte < 0x80 and 1 or byte < 0xE0 and 2 or byte < 0xF0 and 3 or 4)
  end
  return text:sub(1, at - 1), at > #text
end

---One line of at most `width` characters, whatever the text holds.
---@param text string
---@param width integer?
---@return string
function M.one_line(text, width)
  text = as_text(text):match('^%s*(.*)$')
  -- Of a text of megabytes, no more than what can be shown is looked at.
  local cut = width ~= nil and #text > 64 * width + 4096
  if cut then
    text = text:sub(1, 64 * width + 4096)
  end
  text = vim.trim((M.visible(text):gsub('%s+', ' ')))
  if not width then
    return text
  end
  local shown, whole = beginning(text, width)
  if whole and not cut then
    return text
  end
  return beginning(shown, width - 1) .. '…'
end

---One line, fit for a statusline or a winbar.
---@param text string
---@param width integer?
---@return string
function M.bar(text, width)
  return (M.one_line(text, width):gsub('%%', '%%%%'))
end

---@param ms number
---@return string as 850 ms, 12 s, 3 m 20 s or 2 h 5 m
function M.duration(ms)
  if ms < 1000 then
    return ('%d ms'):format(ms)
  end
  local s = math.floor(ms / 1000 + 0.5)
  if s < 60 then
    return ('%d s'):format(s)
  elseif s < 3600 then
    return ('%d m %d s'):format(math.floor(s / 60), s % 60)
  end
  return ('%d h %d m'):format(math.floor(s / 3600), math.floor(s % 3600 / 60))
end

---@param count number
---@return string as 950, 1.2k or 3.4M
function M.count(count)
  if count < 1000 then
    return ('%d'):format(count)
  elseif count < 999950 then
    return ('%.1fk'):format(count / 1e3)
  end
  return ('%.1fM'):format(count / 1e6)
end

return M

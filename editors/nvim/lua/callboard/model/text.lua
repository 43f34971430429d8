-- Untrusted text, made fit for a buffer, a statusline or the wire. Pure.
local M = {}

local REPLACEMENT = '\239\191\189'

---How long the well-formed UTF-8 sequence at `at` is; nil where there is none.
---@param text string
---@param at integer
---@return integer?
local function sequence(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  if a < 0x80 then
    return 1
  end
  local function tail(byte, low, high)
    return byte and byte >= (low or 0x80) and byte <= (high or 0xBF)
  end
  if a >= 0xC2 and a <= 0xDF then
    return tail(b) and 2 or nil
  elseif a >= 0xE0 and a <= 0xEF then
    local low, high = a == 0xE0 and 0xA0 or nil, a == 0xED and 0x9F or nil
    return tail(b, low, high) and tail(c) and 3 or nil
  elseif a >= 0xF0 and a <= 0xF4 then
    local low, high = a == 0xF0 and 0x90 or nil, a == 0xF4 and 0x8F or nil
    return tail(b, low, high) and tail(c) and tail(d) and 4 or nil
  end
  return nil
end

---The text as well-formed UTF-8: what is none becomes U+FFFD.
---@param text string
---@return string
function M.utf8(text)
  if not text:find('[\128-\255]') then
    return text
  end
  local out, from, at = {}, 1, 1
  while at <= #text do
    local length = sequence(text, at)
    if length then
      at = at + length
    else
      out[#out + 1] = text:sub(from, at - 1) .. REPLACEMENT
      at = at + 1
      from = at
    end
  end
  if from == 1 then
    return text
  end
  out[#out + 1] = text:sub(from)
  return table.concat(out)
end

-- Marks that turn the direction of the text around them: U+202A to U+202E, U+2066 to U+2069, and the
-- marks U+200E, U+200F, U+061C. A terminal would show another command than the one that is asked about.
local TURNING = {
  ['\226\128\170'] = '<U+202A>',
  ['\226\128\171'] = '<U+202B>',
  ['\226\128\172'] = '<U+202C>',
  ['\226\128\173'] = '<U+202D>',
  ['\226\128\174'] = '<U+202E>',
  ['\226\129\166'] = '<U+2066>',
  ['\226\129\167'] = '<U+2067>',
  ['\226\129\168'] = '<U+2068>',
  ['\226\129\169'] = '<U+2069>',
  ['\226\128\142'] = '<U+200E>',
  ['\226\128\143'] = '<U+200F>',
  ['\216\156'] = '<U+061C>',
}

---The text with nothing in it that acts on whoever shows it: control characters other than line ends and
---tabs, and marks that turn the direction of writing, are spelled out.
---@param text string
---@return string
function M.visible(text)
  text = M.utf8(text):gsub('\r\n', '\n')
  text = text:gsub('[%z\1-\8\11-\31\127]', function(char)
    return ('<%02X>'):format(char:byte())
  end)
  if text:find('[\216\226]') then
    text = text:gsub('\226[\128\129].', TURNING):gsub('\216\156', TURNING)
  end
  return text
end

---The lines of a text, fit for a buffer.
---@param text string
---@return string[]
function M.lines(text)
  return vim.split(M.visible(text), '\n', { plain = true })
end

---One line of at most `width` characters, whatever the text holds.
---@param text string
---@param width integer?
---@return string
function M.one_line(text, width)
  text = vim.trim((M.visible(text):gsub('%s+', ' ')))
  if width and vim.fn.strchars(text) > width then
    text = vim.fn.strcharpart(text, 0, width - 1) .. '…'
  end
  return text
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
  elseif count < 1e6 then
    return ('%.1fk'):format(count / 1e3)
  end
  return ('%.1fM'):format(count / 1e6)
end

return M

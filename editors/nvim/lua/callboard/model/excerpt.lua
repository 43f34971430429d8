-- Some lines of a text that may be long: no more than those is looked at closely. Pure.
local text = require('callboard.model.text')

local M = {}

---Of one line so many characters are shown.
M.WIDTH = 400

---@param line string raw
---@return string
local function shown(line)
  if #line <= M.WIDTH then
    return text.visible(line)
  end
  local seen = text.visible(line:sub(1, 4 * M.WIDTH))
  if vim.fn.strchars(seen) > M.WIDTH or #line > 4 * M.WIDTH then
    return vim.fn.strcharpart(seen, 0, M.WIDTH) .. ' …'
  end
  return seen
end

---Where lines begin, and where the text ends without the blank lines at its end.
---@param raw string
---@return integer[]
---@return integer last byte
local function starts(raw)
  local last = #raw
  while last > 0 and (raw:byte(last) == 10 or raw:byte(last) == 13) do
    last = last - 1
  end
  local found = { 1 }
  local at = raw:find('\n', 1, true)
  while at and at < last do
    found[#found + 1] = at + 1
    at = raw:find('\n', at + 1, true)
  end
  return found, last
end

---@class callboard.Excerpt
---@field lines string[] fit for a buffer; none of a text that says nothing
---@field above integer lines before them
---@field below integer lines after them

---@param raw string
---@param room integer lines at the most
---@param from_end boolean the last ones, not the first
---@param skip (fun(line: string, number: integer): boolean)? lines at the beginning that do not count
---@return callboard.Excerpt
function M.of(raw, room, from_end, skip)
  local begins, last = starts(raw)
  if last == 0 then
    return { lines = {}, above = 0, below = 0 }
  end
  local function line(i)
    local ends = begins[i + 1] and begins[i + 1] - 2 or last
    if raw:byte(ends) == 13 then
      ends = ends - 1
    end
    return raw:sub(begins[i], ends)
  end
  local first = 1
  while skip and begins[first] and skip(line(first), first) do
    first = first + 1
  end
  local from = from_end and math.max(first, #begins - room + 1) or first
  local to = math.min(#begins, from + room - 1)
  local lines = {}
  for i = from, to do
    lines[#lines + 1] = shown(line(i))
  end
  return { lines = lines, above = from - first, below = #begins - to }
end

return M

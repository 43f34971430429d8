-- Unified diffs: read, applied and taken back. Pure.
--
-- A text is a list of lines with their ends: only "\n" ends one, as in every diff, and only the last line may
-- have none. So a missing end of line is a difference like any other, and an empty text is an empty list.
local M = {}

---@alias callboard.Text string[] lines, each with its "\n", if it has one

---@class callboard.HunkLine
---@field mark ' '|'-'|'+'
---@field text string with its line end

---@class callboard.Hunk
---@field index integer which of the diff's hunks it is, from 1
---@field old_start integer as in the diff: 1-based; with a count of 0 the line that it comes after
---@field old_count integer
---@field new_start integer
---@field new_count integer
---@field lines callboard.HunkLine[]

---@class callboard.Patch
---@field hunks callboard.Hunk[]

---@alias callboard.HunkFault
---| 'changed' what it is about is not in the text
---| 'ambiguous' it is there more than once, and not at its place

---@class callboard.HunkFailure
---@field hunk callboard.Hunk
---@field fault callboard.HunkFault

---@class callboard.Patched
---@field text callboard.Text with all hunks that were found
---@field failed callboard.HunkFailure[] those that were not, in order

---@param content string
---@return callboard.Text
function M.text(content)
  local text, at = {}, 1
  while at <= #content do
    local stop = content:find('\n', at, true) or #content
    text[#text + 1] = content:sub(at, stop)
    at = stop + 1
  end
  return text
end

---@param text callboard.Text
---@return string
function M.content(text)
  return table.concat(text)
end

---@param line string
---@return boolean
local function ended(line)
  return line:sub(-1) == '\n'
end

---@param span string as 12 or 12,3
---@return integer? start
---@return integer? count
local function span_of(span)
  local start, count = span:match('^(%d+),(%d+)$')
  if not start then
    start, count = span:match('^(%d+)$'), '1'
  end
  return tonumber(start), tonumber(count)
end

---@param header string
---@return callboard.Hunk?
local function hunk_of(header)
  local old, new = header:match('^@@ %-([%d,]+) %+([%d,]+) @@')
  if not old then
    return nil
  end
  local old_start, old_count = span_of(old)
  local new_start, new_count = span_of(new)
  if not (old_start and new_start) then
    return nil
  end
  return {
    index = 0,
    old_start = old_start,
    old_count = old_count,
    new_start = new_start,
    new_count = new_count,
    lines = {},
  }
end

---Reads the lines of a hunk up to its counts.
---@param hunk callboard.Hunk
---@param lines string[] of the diff
---@param at integer the first after its header
---@return integer? next nil when it is damaged
local function body(hunk, lines, at)
  local old, new = 0, 0
  while old < hunk.old_count or new < hunk.new_count do
    local line = lines[at]
    local mark = line and line:sub(1, 1)
    if mark == ' ' then
      old, new = old + 1, new + 1
    elseif mark == '-' then
      old = old + 1
    elseif mark == '+' then
      new = new + 1
    else
      return nil
    end
    if not ended(line) then
      return nil -- a line of a diff always ends; this one was cut
    end
    local text = line:sub(2)
    if (lines[at + 1] or ''):sub(1, 1) == '\\' then
      text, at = text:sub(1, -2), at + 1
    end
    hunk.lines[#hunk.lines + 1] = { mark = mark, text = text }
    at = at + 1
  end
  if old > hunk.old_count or new > hunk.new_count then
    return nil
  end
  return at
end

---Reads the diff of one file. A diff that is damaged or cut is none: nothing may be half applied.
---@param diff string
---@return callboard.Patch?
---@return string? why not
function M.parse(diff)
  local lines, hunks, at = M.text(diff), {}, 1
  while lines[at] and lines[at]:sub(1, 3) ~= '@@ ' do
    at = at + 1
  end
  while lines[at] do
    local hunk = hunk_of(lines[at])
    if not hunk then
      return nil, ('line %d of the diff is no part of one'):format(at)
    end
    hunk.index = #hunks + 1
    local next_at = body(hunk, lines, at + 1)
    if not next_at then
      return nil, ('hunk %d of the diff is damaged'):format(hunk.index)
    end
    hunks[hunk.index], at = hunk, next_at
  end
  return { hunks = hunks }
end

---One side of a hunk.
---@param hunk callboard.Hunk
---@param other '-'|'+' the mark of lines that only the other side has
---@return callboard.Text
local function side(hunk, other)
  local text = {}
  for _, line in ipairs(hunk.lines) do
    if line.mark ~= other then
      text[#text + 1] = line.text
    end
  end
  return text
end

---@param text callboard.Text
---@param at integer
---@param wanted callboard.Text
---@param lenient boolean whether the end of the last line of both may differ
---@return boolean
local function matches(text, at, wanted, lenient)
  if at < 1 or at + #wanted - 1 > #text then
    return false
  end
  for i, line in ipairs(wanted) do
    local there = text[at + i - 1]
    if there ~= line then
      local last = i == #wanted and at + i - 1 == #text
      if not (lenient and last and there:gsub('\n$', '') == line:gsub('\n$', '')) then
        return false
      end
    end
  end
  return true
end

---Where a side of a hunk is: at its place, else wherever it is, if that is one place only.
---@param text callboard.Text
---@param wanted callboard.Text
---@param expected integer
---@param low integer before it are the hunks that come earlier
---@return integer?
---@return callboard.HunkFault?
local function find(text, wanted, expected, low)
  if #wanted == 0 then
    -- Nothing to know the place by: it is the place, in an empty text at least.
    if #text == 0 then
      return 1
    end
    return nil, 'changed'
  end
  for _, lenient in ipairs({ false, true }) do
    if expected >= low and matches(text, expected, wanted, lenient) then
      return expected
    end
    local found
    for at = low, #text - #wanted + 1 do
      if matches(text, at, wanted, lenient) then
        if found then
          return nil, 'ambiguous'
        end
        found = at
      end
    end
    if found then
      return found
    end
  end
  return nil, 'changed'
end

---@param text callboard.Text
---@param patch callboard.Patch
---@param from 'old'|'new' the side that is in the text
---@return callboard.Patched
local function put(text, patch, from)
  local gone, come = from == 'old' and '+' or '-', from == 'old' and '-' or '+'
  local out, failed, low, shift = {}, {}, 1, 0
  for _, hunk in ipairs(patch.hunks) do
    local wanted, instead = side(hunk, gone), side(hunk, come)
    local start = from == 'old' and hunk.old_start or hunk.new_start
    local at, fault = find(text, wanted, start + shift, low)
    if at then
      vim.list_extend(out, text, low, at - 1)
      vim.list_extend(out, instead)
      low, shift = at + #wanted, at - start
    else
      failed[#failed + 1] = { hunk = hunk, fault = fault }
    end
  end
  vim.list_extend(out, text, low)
  for i = 1, #out - 1 do
    if not ended(out[i]) then
      out[i] = out[i] .. '\n'
    end
  end
  return { text = out, failed = failed }
end

---The text with the change in it. What of it is not found is left out, and named.
---@param text callboard.Text
---@param patch callboard.Patch
---@return callboard.Patched
function M.apply(text, patch)
  return put(text, patch, 'old')
end

---The text as it was before the change.
---@param text callboard.Text
---@param patch callboard.Patch
---@return callboard.Patched
function M.reverse(text, patch)
  return put(text, patch, 'new')
end

---Says which hunk it is, and what became of it.
---@param failure callboard.HunkFailure
---@return string as "hunk 2 (lines 10 to 16)"
function M.name(failure)
  local hunk = failure.hunk
  local first = math.max(hunk.new_start, 1)
  local last = math.max(hunk.new_start + hunk.new_count - 1, first)
  local where = first == last and ('line %d'):format(first)
    or ('lines %d to %d'):format(first, last)
  return ('hunk %d (%s)'):format(hunk.index, where)
end

return M

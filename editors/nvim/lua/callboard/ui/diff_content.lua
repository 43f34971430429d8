-- What a diff of a changed file shows: its text before beside the text now, or only the diff and why; and what
-- stands above them.
local reverting = require('callboard.reverting')
local scratch = require('callboard.ui.diff_buffers').scratch
local text = require('callboard.model.text')
local writing = require('callboard.writing')

local M = {}

---The key of an action, as the user has it, with its word.
---@param action string
---@param lhs string
---@param word string
---@return string?
function M.hint(action, lhs, word)
  local set = require('callboard.keys').lhs_of('diff', { action = action, lhs = lhs })[1]
  return set and ('%%#CallboardApprovalKey#%s%%* %s'):format(text.bar(set), word) or nil
end
---@param parts (string?)[]
---@param count integer
---@return string
function M.joined(parts, count)
  local list = {}
  for i = 1, count do
    list[#list + 1] = parts[i]
  end
  return table.concat(list, '  ')
end
---@param tracked callboard.Tracked
---@param file callboard.ChangedFile
---@return string
local function place(tracked, file)
  local pending = tracked:pending()
  for i, other in ipairs(pending) do
    if other.path == file.path then
      return ('%d/%d'):format(i, #pending)
    end
  end
  return file.state
end

---@param tracked callboard.Tracked
---@param file callboard.ChangedFile
---@param what string
---@return string
local function right_bar(tracked, file, what)
  local counts = ('%%#CallboardAdded#+%d%%* %%#CallboardRemoved#−%d%%*'):format(
    file.added,
    file.removed
  )
  local hints = M.joined({
    M.hint('accept', 'ga', 'accept'),
    M.hint('reject', 'gr', 'put back'),
    M.hint('next_file', ']f', 'next'),
    M.hint('hide', 'q', 'close'),
  }, 4)
  return (' %%#CallboardHeading#%s%%* %s  %s  %%=%s %%<'):format(
    what,
    counts,
    place(tracked, file),
    hints
  )
end

---@param tracked callboard.Tracked
---@param file callboard.ChangedFile
---@param comparison callboard.Comparison
---@return string
local function left_bar(tracked, file, comparison)
  local word = 'before'
  if comparison.before.text == nil then
    word = 'before: no such file'
  end
  local missed = reverting.missed(comparison)
  if missed then
    return (' %%#CallboardHeading#%s%%*  %%#CallboardApproval#not taken back: %s%%*%%<'):format(
      word,
      text.bar(missed, 200)
    )
  end
  local name = text.bar(tracked:short(file.old_path or file.path))
  return (' %%#CallboardHeading#%s%%*  %%<%s'):format(word, name)
end

---@param tracked callboard.Tracked
---@param file callboard.ChangedFile
---@param comparison callboard.Comparison
---@return callboard.DiffPane
local function right_pane(tracked, file, comparison)
  local now = comparison.now
  local what = 'now'
  local buf, ours
  if now.text == nil then
    what, ours = 'now: deleted', true
    buf = scratch('callboard://after' .. file.path, {})
  elseif comparison.aside then
    what, ours = 'on disk; your buffer is another, unsaved', true
    buf = scratch('callboard://after' .. file.path, writing.shown(now.text), file.path)
  else
    buf = now.buf or vim.fn.bufadd(file.path)
    vim.bo[buf].buflisted = true
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].modified then
      what = 'now, unsaved'
    end
  end
  return { buf = buf, ours = ours, bar = right_bar(tracked, file, what) }
end

---@param file callboard.ChangedFile
---@return string[]
local function diff_lines(file)
  local lines = {}
  for _, step in ipairs(file.chain) do
    local change = step.change
    if change.diff == '' then
      lines[#lines + 1] = ('# %s: no diff'):format(change.operation)
    end
    vim.list_extend(lines, text.lines((change.diff:gsub('\n$', ''))))
  end
  return lines
end

---Why a file cannot be shown side by side.
---@param file callboard.ChangedFile
---@param comparison callboard.Comparison
---@return string?
local function unshowable(file, comparison)
  if comparison.now.fault then
    return comparison.now.fault
  elseif file.operation == 'nothing' then
    return 'it was made and deleted again'
  elseif comparison.now.text == nil and comparison.before.text == nil then
    return 'the file is not there any more'
  elseif comparison.before.taken == 0 and comparison.before.text ~= nil then
    return file.partial or reverting.missed(comparison)
  end
end

---@param tracked callboard.Tracked
---@param file callboard.ChangedFile
---@return callboard.DiffContent
function M.of(tracked, file)
  local comparison = reverting.compare(file)
  local why = unshowable(file, comparison)
  if why then
    local name = text.bar(tracked:short(file.path))
    local buf = scratch('callboard://diff' .. file.path, diff_lines(file))
    vim.bo[buf].filetype = 'diff'
    local told = (' %%#CallboardApproval#Only the diff: %s%%*  %s'):format(text.bar(why, 100), name)
    return {
      right = { buf = buf, ours = true, bar = told .. right_bar(tracked, file, ''):gsub('%%<', '') },
      keys = {},
    }
  end
  local before = comparison.before.text or {}
  return {
    left = {
      buf = scratch('callboard://before' .. file.path, writing.shown(before), file.path),
      ours = true,
      bar = left_bar(tracked, file, comparison),
    },
    right = right_pane(tracked, file, comparison),
    keys = {},
  }
end

return M

-- What a diff of a change that waits for an answer shows: the file as it is beside what it would be, or only the
-- diff and why; and what stands above them.
local Patch = require('callboard.model.patch')
local content = require('callboard.ui.diff_content')
local files = require('callboard.files')
local scratch = require('callboard.ui.diff_buffers').scratch
local text = require('callboard.model.text')
local writing = require('callboard.writing')

local M = {}

---@param approval callboard.Approval
---@return callboard.FileChange[]
function M.changes(approval)
  return approval.subject and approval.subject.type == 'fileChange' and approval.subject.changes
    or {}
end

---@param path string
---@return string
local function short(path)
  return text.bar(vim.fn.fnamemodify(path, ':~:.'), 80)
end

---What the file would be.
---@param change callboard.FileChange
---@param now callboard.FileNow
---@return callboard.Text? proposed nil: it would be gone
---@return string? why it cannot be told
local function proposed(change, now)
  if now.fault then
    return nil, now.fault
  elseif change.truncated then
    return nil, 'the change is too large, its diff was cut'
  elseif change.operation == 'delete' then
    return nil, nil
  elseif change.operation == 'create' and now.text then
    return nil, 'the file is there already'
  end
  local patch, why = Patch.parse(change.diff)
  if not patch then
    return nil, why
  end
  local result = Patch.apply(now.text or {}, patch)
  if #result.failed > 0 then
    local unsaved = now.buf and vim.bo[now.buf].modified
    local name = Patch.name(result.failed[1])
    return nil,
      ('%s does not fit %s'):format(
        name,
        unsaved and 'your unsaved buffer' or 'the file as it is now'
      )
  end
  return result.text
end

local WORDS = {
  create = { 'now: no such file', 'would be made' },
  delete = { 'now', 'would be deleted' },
  move = { 'now', 'would be moved here' },
}

---@param from callboard.ShownApproval
---@return string
function M.bar(from)
  local list = M.changes(from.approval)
  local change = list[from.index]
  local word = (WORDS[change.operation] or { '', 'would be' })[2]
  local state
  if from.over then
    state = ('%%#CallboardDim#%s%%*  %s'):format(
      text.bar(from.over, 60),
      content.hint('hide', 'q', 'close') or ''
    )
  else
    state = content.joined({
      content.hint('accept', 'ga', 'allow once'),
      content.hint('reject', 'gr', 'deny'),
      content.hint('hide', 'q', 'close'),
    }, 3)
  end
  local counts = ('%%#CallboardAdded#+%d%%* %%#CallboardRemoved#−%d%%*'):format(
    change.added,
    change.removed
  )
  local which = #list > 1 and (' %d/%d'):format(from.index, #list) or ''
  return (' %%#CallboardApproval#%s%%* %s%s  %%=%s %%<'):format(word, counts, which, state)
end

---@param from callboard.ShownApproval
---@return callboard.DiffContent
function M.of(from)
  local change = M.changes(from.approval)[from.index]
  local now = files.now(change.oldPath or change.path)
  if now.buf then
    files.refresh(now.buf)
    now.text = files.of_buffer(now.buf)
  end
  local after, why = proposed(change, now)
  if why then
    local lines = text.lines((change.diff:gsub('\n$', '')))
    local buf = scratch('callboard://diff' .. change.path, lines)
    vim.bo[buf].filetype = 'diff'
    local bar = (' %%#CallboardApproval#Only the diff: %s%%*  %s '):format(
      text.bar(why, 100),
      short(change.path)
    )
    return {
      right = { buf = buf, ours = true, bar = bar .. M.bar(from):gsub('%%<', '') },
      keys = {},
    }
  end
  local word = (WORDS[change.operation] or { 'now' })[1]
  local left = { bar = (' %%#CallboardHeading#%s%%*  %%<%s'):format(word, short(change.path)) }
  if now.text == nil then
    left.buf, left.ours = scratch('callboard://now' .. change.path, {}), true
  else
    left.buf = now.buf or vim.fn.bufadd(change.oldPath or change.path)
    vim.bo[left.buf].buflisted = true
  end
  local right =
    scratch('callboard://proposed' .. change.path, writing.shown(after or {}), change.path)
  return { left = left, right = { buf = right, ours = true, bar = M.bar(from) }, keys = {} }
end

return M

-- A tool call as a card: what it is and what came of it in one line, and its output below, cut.
local excerpt = require('callboard.model.excerpt')
local text = require('callboard.model.text')

local M = {}

M.BAR = '  │ '

---Lines of the output of a tool that still runs, and how much of its end is looked at for them.
local RUNNING_LINES, RUNNING_BYTES = 8, 8192

local ICONS = {
  text = { wait = '?', run = '…', ok = '✓', bad = '✗', stop = '■' },
  nerd = {
    wait = '\243\176\139\151',
    run = '\243\176\166\150',
    ok = '\243\176\132\172',
    bad = '\243\176\133\153',
    stop = '\243\176\147\155',
  },
}

---What a result's status is told as; `ok` is not told in words.
local STATUS = {
  ok = { 'ok', 'CallboardToolOk' },
  error = { 'bad', 'CallboardToolFailed', 'failed' },
  denied = { 'stop', 'CallboardToolFailed', 'denied' },
  timed_out = { 'bad', 'CallboardToolFailed', 'timed out' },
  superseded = { 'stop', 'CallboardDim', 'superseded' },
  cancelled = { 'stop', 'CallboardDim', 'stopped' },
  interrupted = { 'stop', 'CallboardDim', 'interrupted' },
}

---@param item callboard.Item
---@return boolean it waits for an answer
function M.waits(item)
  local approval = item.approval
  return approval ~= nil and (approval.state or 'pending') == 'pending' and not item.result
end

---@param item callboard.Item
---@return string icon
---@return string hl
---@return string? words
local function state(item)
  if item.result then
    local known = STATUS[item.result.status]
    if known then
      return known[1], known[2], known[3]
    end
    return 'bad', 'CallboardToolFailed', text.one_line(item.result.status, 40)
  elseif M.waits(item) then
    return 'wait', 'CallboardApproval', 'waits for you'
  end
  return 'run', 'CallboardToolRunning', 'running'
end

---Lines that were added and removed, over all files.
---@param changes callboard.FileChange[]
---@return integer added
---@return integer removed
local function counted(changes)
  local added, removed = 0, 0
  for _, change in ipairs(changes) do
    added, removed = added + (change.added or 0), removed + (change.removed or 0)
  end
  return added, removed
end

---The line below a text that is not all there.
---@param item callboard.Item
---@param lines integer? how many more
---@param where 'below'|'above'|nil
---@return callboard.Line
function M.more(item, lines, where)
  local words
  if lines then
    words = ('… %d %slines%s, <CR> opens all'):format(
      lines,
      where == 'above' and '' or 'more ',
      where == 'above' and ' above' or ''
    )
  else
    words = '… not all of it is here, <CR> opens all'
  end
  return { { M.BAR .. words, 'CallboardDim' }, target = { kind = 'full', item = item } }
end

---@param line string
---@return string? hl
local function diff_color(line)
  local sign = line:sub(1, 1)
  return sign == '+' and 'CallboardAdded' or sign == '-' and 'CallboardRemoved' or nil
end

---@param line string
---@param number integer
---@return boolean the lines that name the files, which the card does already
local function is_name(line, number)
  return number < 3 and (vim.startswith(line, '--- ') or vim.startswith(line, '+++ '))
end

---@param shown callboard.Line[]
---@param item callboard.Item
---@param change callboard.FileChange
---@param room integer lines
local function diff(shown, item, change, room)
  local some = excerpt.of(change.diff or '', room, false, is_name)
  local target = { kind = 'change', path = change.path }
  for _, line in ipairs(some.lines) do
    shown[#shown + 1] = { { M.BAR, 'CallboardDim' }, { line, diff_color(line) }, target = target }
  end
  if some.below > 0 or change.truncated then
    shown[#shown + 1] = M.more(item, some.below > 0 and some.below or nil)
  end
end

---@param shown callboard.Line[]
---@param item callboard.Item
---@param look callboard.Look
local function changes(shown, item, look)
  local list = item.result.changes
  for _, change in ipairs(list) do
    if #list > 1 then
      local path = require('callboard.ui.render').path(change.path, look)
      local words = ('%s +%d -%d'):format(path, change.added or 0, change.removed or 0)
      shown[#shown + 1] =
        { { M.BAR }, { words, 'CallboardPath' }, target = { kind = 'change', path = change.path } }
    end
    diff(shown, item, change, math.max(3, math.floor(look.fold_lines / #list)))
  end
end

---@param shown callboard.Line[]
---@param item callboard.Item
---@param look callboard.Look
local function output(shown, item, look)
  local running = not item.result
  local room = running and math.min(RUNNING_LINES, look.fold_lines) or look.fold_lines
  -- Of a command the end matters; of what was read, the beginning.
  local from_end = running or (item.call ~= nil and item.call.kind == 'execute')
  local raw = running and item.text:sub(-RUNNING_BYTES) or item.text
  local some = excerpt.of(raw, room, from_end)
  if #some.lines == 0 then
    return
  elseif running and (some.above > 0 or #raw < #item.text) then
    shown[#shown + 1] = { { M.BAR .. '…', 'CallboardDim' } }
  elseif some.above > 0 then
    shown[#shown + 1] = M.more(item, some.above, 'above')
  end
  local target = { kind = 'full', item = item }
  for _, line in ipairs(some.lines) do
    shown[#shown + 1] = { { M.BAR .. line, 'CallboardDim' }, target = target }
  end
  if not running and some.below > 0 then
    shown[#shown + 1] = M.more(item, some.below)
  elseif item.blobs and not running then
    shown[#shown + 1] = M.more(item)
  end
end

---@param item callboard.Item
---@param look callboard.Look
---@param hidden integer lines below it
---@return callboard.Line
local function head(item, look, hidden)
  local icon, hl, words = state(item)
  local call, result = item.call, item.result
  local title = call and call.title or (result and result.name) or 'a tool'
  if call and vim.trim(title) == '' then
    title = call.name
  end
  local line = { { '  ' .. ICONS[look.icons][icon] .. ' ', hl } }
  -- What went wrong stands first: the end of a long title is not in view where the card is folded.
  if result and words then
    local exit = result.exitCode and result.exitCode ~= 0 and (', exit %d'):format(result.exitCode)
    line[#line + 1] = { ('%s%s: '):format(words, exit or ''), hl }
  end
  line[#line + 1] = { text.one_line(title, 160), 'CallboardTool' }
  local about = not result and words
    or result
      and result.durationMs
      and result.durationMs >= 1000
      and text.duration(result.durationMs)
  if about then
    line[#line + 1] = { '  ' .. about, result and 'CallboardDim' or hl }
  end
  if result and result.changes and #result.changes > 0 then
    local added, removed = counted(result.changes)
    line[#line + 1] = { ('  +%d'):format(added), 'CallboardAdded' }
    line[#line + 1] = { (' -%d'):format(removed), 'CallboardRemoved' }
  end
  if hidden > 1 then
    line[#line + 1] = { ('  %d lines'):format(hidden), 'CallboardDim' }
  end
  line.target = { kind = 'full', item = item }
  return line
end

---@param item callboard.Item
---@return boolean its title says all of it
local function is_plan(item)
  return item.call ~= nil
    and item.call.name == 'update_plan'
    and not (item.result and item.result.status ~= 'ok')
end

---What is asked, in lines of which each leads to it.
---@param approval callboard.Approval
---@return callboard.Line[]
function M.question(approval)
  local shown = require('callboard.ui.approval').block(approval)
  for _, line in ipairs(shown) do
    line.target = line.target or { kind = 'approval', approval = approval }
  end
  return shown
end

---@param item callboard.Item
---@param look callboard.Look
---@return callboard.Block
function M.block(item, look)
  local below = {}
  if M.waits(item) then
    return { lines = M.question(item.approval) } -- its first line names the call
  end
  local result = item.result
  if is_plan(item) then
    return { lines = { head(item, look, 0) } }
  elseif result and result.changes and #result.changes > 0 then
    changes(below, item, look)
  else
    output(below, item, look)
  end
  local block = { lines = { head(item, look, result and #below or 0) } }
  vim.list_extend(block.lines, below)
  if #below > 0 and result then
    block.fold = { first = 0, last = #below }
  end
  return block
end

return M

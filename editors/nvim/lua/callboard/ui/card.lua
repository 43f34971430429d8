-- A tool call as a card: what it is and what came of it in one line, and its output below, cut.
local text = require('callboard.model.text')

local M = {}

M.BAR = '  │ '

---Of one line of an output, so many characters are shown.
local LINE = 400
---Lines of the output of a tool that still runs.
local RUNNING_LINES = 8

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

---@param line string
---@return string
local function cut(line)
  if #line > LINE and vim.fn.strchars(line) > LINE then
    return vim.fn.strcharpart(line, 0, LINE) .. ' …'
  end
  return line
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

---@param shown callboard.Line[]
---@param item callboard.Item
---@param change callboard.FileChange
---@param room integer lines
local function diff(shown, item, change, room)
  local all = text.lines((change.diff or ''):gsub('\n$', ''))
  local from = 1
  while
    all[from]
    and (vim.startswith(all[from], '--- ') or vim.startswith(all[from], '+++ '))
    and from < 3
  do
    from = from + 1
  end
  local target = { kind = 'change', path = change.path }
  for i = from, math.min(#all, from + room - 1) do
    shown[#shown + 1] =
      { { M.BAR, 'CallboardDim' }, { cut(all[i]), diff_color(all[i]) }, target = target }
  end
  if #all > from + room - 1 or change.truncated then
    shown[#shown + 1] = M.more(item, #all > from + room - 1 and #all - from - room + 1 or nil)
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
  local raw = item.text
  local running = not item.result
  if running and #raw > 8192 then
    raw = raw:sub(-8192):gsub('^[^\n]*\n', '', 1)
  end
  local all = text.lines((raw:gsub('[\r\n]+$', '')))
  if #all == 1 and all[1] == '' then
    return
  end
  local room = running and math.min(RUNNING_LINES, look.fold_lines) or look.fold_lines
  -- Of a command the end matters; of what was read, the beginning.
  local from_end = running or (item.call and item.call.kind == 'execute')
  local from = from_end and math.max(1, #all - room + 1) or 1
  if from > 1 then
    shown[#shown + 1] = running and { { M.BAR .. '…', 'CallboardDim' } }
      or M.more(item, from - 1, 'above')
  end
  local target = { kind = 'full', item = item }
  for i = from, math.min(#all, from + room - 1) do
    shown[#shown + 1] = { { M.BAR .. cut(all[i]), 'CallboardDim' }, target = target }
  end
  if not running and from + room - 1 < #all then
    shown[#shown + 1] = M.more(item, #all - from - room + 1)
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

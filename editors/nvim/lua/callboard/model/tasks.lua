-- The task board of a group as lines: tasks by how they stand, who has them, and what is in the way. Pure.
local text = require('callboard.model.text')

local M = {}

---@alias callboard.TaskSection 'ready'|'active'|'blocked'|'waiting'|'done'|'cancelled'

---@class callboard.BoardView
---@field title string of the root session
---@field root string
---@field group callboard.Group?
---@field tasks callboard.GroupTask[] in the order in which they were created
---@field more boolean there are tasks that are not among them
---@field messages callboard.GroupMessage[] to the root, the newest first

---@class callboard.BoardTarget
---@field id string
---@field task callboard.GroupTask

---@type { name: callboard.TaskSection, title: string, hl: string, icon: string }[]
M.SECTIONS = {
  { name = 'ready', title = 'Ready', hl = 'CallboardToolOk', icon = '○' },
  { name = 'active', title = 'Active', hl = 'CallboardToolRunning', icon = '●' },
  { name = 'blocked', title = 'Blocked', hl = 'CallboardToolFailed', icon = '✗' },
  { name = 'waiting', title = 'Waiting', hl = 'CallboardDim', icon = '·' },
  { name = 'done', title = 'Done', hl = 'CallboardToolOk', icon = '✓' },
  { name = 'cancelled', title = 'Cancelled', hl = 'CallboardDim', icon = '-' },
}

---So many tasks that are over are shown; the latest tell the most.
M.OVER = 20
local MESSAGES, NAMED = 5, 3

---@param task callboard.GroupTask
---@return callboard.TaskSection
function M.section(task)
  if task.status == 'completed' then
    return 'done'
  elseif task.status == 'cancelled' then
    return 'cancelled'
  elseif task.status == 'blocked' then
    return 'blocked'
  elseif task.status == 'claimed' or task.status == 'in_progress' then
    return 'active'
  end
  return task.ready and 'ready' or 'waiting'
end

---@param view callboard.BoardView
---@param id string?
---@return string
function M.member(view, id)
  for _, member in ipairs(view.group and view.group.members or {}) do
    if member.agentId == id then
      return text.one_line(member.name, 40)
    end
  end
  return id and '…' .. id:sub(-6) or 'nobody'
end

---@param view callboard.BoardView
---@param id string
---@return callboard.GroupTask?
function M.task(view, id)
  for _, task in ipairs(view.tasks) do
    if task.taskId == id then
      return task
    end
  end
end

---@class callboard.BoardIndex
---@field titles table<string, string>
---@field failures table<string, callboard.DependencyFailure[]>
---@field conflicts table<string, callboard.GroupConflict[]>
---@field members table<string, callboard.GroupMember>

---@param view callboard.BoardView
---@return callboard.BoardIndex
local function index(view)
  local found = { titles = {}, failures = {}, conflicts = {}, members = {} }
  for _, task in ipairs(view.tasks) do
    found.titles[task.taskId] = text.one_line(task.title, 40)
  end
  local group = view.group or {}
  for _, member in ipairs(group.members or {}) do
    found.members[member.agentId] = member
  end
  for _, failure in ipairs(group.dependencyFailures or {}) do
    found.failures[failure.taskId] = found.failures[failure.taskId] or {}
    table.insert(found.failures[failure.taskId], failure)
  end
  for _, conflict in ipairs(group.conflicts or {}) do
    for _, id in ipairs(conflict.taskIds) do
      found.conflicts[id] = found.conflicts[id] or {}
      table.insert(found.conflicts[id], conflict)
    end
  end
  return found
end

---@param found callboard.BoardIndex
---@param ids string[]
---@return string
local function named(found, ids)
  local names = {}
  for i, id in ipairs(ids) do
    if i > NAMED then
      names[#names + 1] = ('%d more'):format(#ids - NAMED)
      break
    end
    names[#names + 1] = ('"%s"'):format(found.titles[id] or '…' .. id:sub(-6))
  end
  return table.concat(names, ', ')
end

---What is in a task's way, or came of it; a line each.
---@param view callboard.BoardView
---@param task callboard.GroupTask
---@param found callboard.BoardIndex?
---@return { [1]: string, [2]: string }[]
function M.details(view, task, found)
  found = found or index(view)
  local section = M.section(task)
  local told = {}
  local function add(said, hl)
    told[#told + 1] = { said, hl }
  end
  if section == 'waiting' then
    local failed = {}
    for _, failure in ipairs(found.failures[task.taskId] or {}) do
      failed[failure.dependencyId] = failure.status
      add(
        ('cannot become ready: %s is %s'):format(
          named(found, { failure.dependencyId }),
          failure.status
        ),
        'CallboardRisk'
      )
    end
    local blockers = vim.tbl_filter(function(id)
      return not failed[id]
    end, task.blockers or {})
    if #blockers > 0 then
      add('waits for ' .. named(found, blockers), 'CallboardDim')
    end
  elseif section == 'blocked' then
    add(text.one_line(task.reason or '', 200), 'CallboardError')
  elseif section == 'cancelled' then
    add(text.one_line(task.reason or '', 120), 'CallboardDim')
  elseif section == 'done' then
    add(text.one_line(task.summary or '', 160), 'CallboardDim')
  elseif section == 'active' then
    local owner = found.members[task.assignee]
    if owner and not owner.isRoot and owner.status ~= 'running' and owner.status ~= 'starting' then
      local how = text.one_line(owner.status or '?')
      add(
        ('nobody is at it: %s is %s'):format(M.member(view, task.assignee), how),
        'CallboardApproval'
      )
    end
  end
  for _, conflict in ipairs(found.conflicts[task.taskId] or {}) do
    local others = vim.tbl_filter(function(id)
      return id ~= task.taskId
    end, conflict.taskIds)
    add(
      ('%s changes %s, too'):format(named(found, others), text.one_line(conflict.path, 80)),
      'CallboardApproval'
    )
  end
  return vim.tbl_filter(function(line)
    return line[1] ~= ''
  end, told)
end

---@param view callboard.BoardView
---@param found callboard.BoardIndex
---@param task callboard.GroupTask
---@param section { name: callboard.TaskSection, hl: string, icon: string }
---@return callboard.Line[]
local function task_lines(view, found, task, section)
  local target = { id = task.taskId, task = task }
  local over = section.name == 'done' or section.name == 'cancelled'
  local head = {
    { '  ' .. section.icon .. ' ', section.hl },
    { text.one_line(task.title, 200), over and 'CallboardDim' or nil },
  }
  if task.assignee then
    head[#head + 1] = { '  ' .. M.member(view, task.assignee), 'CallboardAgent' }
  end
  if task.status == 'in_progress' then
    head[#head + 1] = { '  in progress', 'CallboardToolRunning' }
  end
  if task.required == false then
    head[#head + 1] = { '  optional', 'CallboardDim' }
  elseif not over then
    head[#head + 1] = { '  required', 'CallboardState' }
  end
  head.target = target
  local shown = { head }
  for _, detail in ipairs(M.details(view, task, found)) do
    local line = { { '    ' .. detail[1], detail[2] } }
    line.target = target
    shown[#shown + 1] = line
  end
  return shown
end

---@param view callboard.BoardView
---@return callboard.Line[]
local function head(view)
  local group = assert(view.group)
  local counts = group.counts or {}
  local parts = {
    { counts.ready, 'ready' },
    { (counts.claimed or 0) + (counts.inProgress or 0), 'active' },
    { counts.blocked, 'blocked' },
    { math.max(0, (counts.pending or 0) - (counts.ready or 0)), 'waiting' },
    { counts.completed, 'done' },
    { counts.cancelled, 'cancelled' },
  }
  local told = {}
  for _, part in ipairs(parts) do
    if (part[1] or 0) > 0 then
      told[#told + 1] = ('%d %s'):format(part[1], part[2])
    end
  end
  local total = counts.total or 0
  local line = {
    { text.one_line(view.title, 60), 'CallboardHeading' },
    { ('  %d task%s'):format(total, total == 1 and '' or 's'), 'CallboardDim' },
    { #told > 0 and ': ' .. table.concat(told, ', ') or '', 'CallboardDim' },
  }
  local unfinished = #(group.requiredUnfinished or {})
  if unfinished > 0 then
    line[#line + 1] = { ('  %d required not done'):format(unfinished), 'CallboardApproval' }
  elseif total > 0 then
    line[#line + 1] = { '  all that is required is done', 'CallboardToolOk' }
  end
  local members = { { 'Members  ', 'CallboardDim' } }
  for i, member in ipairs(group.members or {}) do
    members[#members + 1] =
      { (i > 1 and ', ' or '') .. text.one_line(member.name, 40), 'CallboardAgent' }
    if member.status then
      members[#members + 1] = { (' (%s)'):format(text.one_line(member.status)), 'CallboardDim' }
    end
  end
  return { line, members }
end

---@param view callboard.BoardView
---@param message callboard.GroupMessage
---@return callboard.Line
local function message_line(view, message)
  local to = message.to == 'group' and 'all' or M.member(view, view.root)
  return {
    { '  ' .. text.one_line(message.senderName, 40), 'CallboardAgent' },
    { (' → %s: '):format(to), 'CallboardDim' },
    { text.one_line(message.text, 200) },
    { message.seen and '' or '  not read yet', 'CallboardDim' },
  }
end

---@param view callboard.BoardView
---@return callboard.Line[]
function M.lines(view)
  if not view.group then
    return {
      { { text.one_line(view.title, 60), 'CallboardHeading' } },
      { { 'No group yet: n makes the first task', 'CallboardDim' } },
    }
  end
  local found, by_section = index(view), {}
  for _, task in ipairs(view.tasks) do
    local name = M.section(task)
    by_section[name] = by_section[name] or {}
    table.insert(by_section[name], task)
  end
  local shown = head(view)
  for _, section in ipairs(M.SECTIONS) do
    local tasks = by_section[section.name]
    if tasks then
      shown[#shown + 1] = { { '', nil } }
      shown[#shown + 1] = { { ('%s (%d)'):format(section.title, #tasks), 'CallboardHeading' } }
      local over = section.name == 'done' or section.name == 'cancelled'
      local left_out = over and math.max(0, #tasks - M.OVER) or 0
      if left_out > 0 then
        shown[#shown + 1] = { { ('  … %d before these'):format(left_out), 'CallboardDim' } }
      end
      for i = left_out + 1, #tasks do
        vim.list_extend(shown, task_lines(view, found, tasks[i], section))
      end
    end
  end
  if view.more then
    shown[#shown + 1] =
      { { 'There are more tasks: `callboard group ID` lists all of them', 'CallboardDim' } }
  end
  if #view.messages > 0 then
    shown[#shown + 1] = { { '', nil } }
    shown[#shown + 1] = { { 'Messages to this session', 'CallboardHeading' } }
    for i = math.min(MESSAGES, #view.messages), 1, -1 do
      shown[#shown + 1] = message_line(view, view.messages[i])
    end
  end
  return shown
end

return M

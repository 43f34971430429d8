-- What the keys of a task board do, in the place of its root. Whatever they ask for first is asked without
-- stopping the editor, but for picks, which go the way that the user has for them.
local model = require('callboard.model.tasks')
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---@param board callboard.BoardPage
---@return callboard.GroupTask?
local function here(board)
  local target = board.page:target()
  if not target then
    notify.info('there is no task on this line')
    return nil
  end
  return board.view and model.task(board.view, target.id) or target.task
end

---@param title string
---@param fn fun(said: string)
---@param blank boolean? nothing typed counts, too
local function with_line(title, fn, blank)
  require('callboard.ui.ask').line({ title = title }, function(said)
    if said == nil then
      return
    end
    said = vim.trim(said)
    if said ~= '' or blank then
      fn(said)
    end
  end)
end

---@param task callboard.GroupTask
---@return string
local function called(task)
  return ('"%s"'):format(text.one_line(task.title, 60))
end

---@param board callboard.BoardPage
---@param method string
---@param doing string
---@param task callboard.GroupTask
---@param params table?
local function act(board, method, doing, task, params)
  params = vim.tbl_extend('error', { rootId = board.root, taskId = task.taskId }, params or {})
  board.app:change(method, params, ('%s %s'):format(doing, called(task)), function()
    board.live:fetch()
  end)
end

---@param board callboard.BoardPage
---@param title string
---@param depends callboard.GroupTask[]
local function create(board, title, depends)
  local ids = vim.tbl_map(function(task)
    return task.taskId
  end, depends)
  local params = { rootId = board.root, title = title, dependencies = #ids > 0 and ids or nil }
  board.app:change(
    'group/taskCreate',
    params,
    ('make the task "%s"'):format(text.one_line(title, 60)),
    function()
      board.live:fetch()
    end
  )
end

---Asks for one dependency after the other, until there are enough.
---@param board callboard.BoardPage
---@param title string
---@param depends callboard.GroupTask[]
local function pick_dependencies(board, title, depends)
  local open = vim.tbl_filter(function(task)
    return task.status ~= 'completed'
      and task.status ~= 'cancelled'
      and not vim.list_contains(depends, task)
  end, board.view and board.view.tasks or {})
  if #open == 0 then
    return create(board, title, depends)
  end
  local choices = vim.list_extend({ false }, open)
  vim.ui.select(choices, {
    prompt = #depends == 0 and 'What must be done before it?' or 'And what else?',
    kind = 'callboard-task',
    format_item = function(task)
      return task and text.one_line(task.title, 80)
        or (#depends == 0 and 'Nothing: make it' or 'No more: make it')
    end,
  }, function(task)
    if task == nil then
      notify.info('no task was made')
    elseif task == false then
      create(board, title, depends)
    else
      pick_dependencies(board, title, vim.list_extend({ task }, depends))
    end
  end)
end

---@param board callboard.BoardPage
local function new_task(board)
  with_line('What is to be done?', function(title)
    pick_dependencies(board, title, {})
  end)
end

---@param board callboard.BoardPage
---@param prompt string
---@param first string? what stands before the members
---@param fn fun(member: callboard.GroupMember|false)
local function pick_member(board, prompt, first, fn)
  local members = board.view and board.view.group and board.view.group.members or {}
  local choices = first and { false } or {}
  for _, member in ipairs(members) do
    if not (first and member.isRoot) then
      choices[#choices + 1] = member
    end
  end
  vim.ui.select(choices, {
    prompt = prompt,
    kind = 'callboard-member',
    format_item = function(member)
      if not member then
        return first
      end
      local name = text.one_line(member.name, 60)
      return member.isRoot and name .. ' (this session)'
        or ('%s (%s)'):format(name, text.one_line(member.status or '?'))
    end,
  }, function(member)
    if member ~= nil then
      fn(member)
    end
  end)
end

---@param board callboard.BoardPage
local function assign(board)
  local task = here(board)
  if task then
    pick_member(board, ('Who is to do %s?'):format(called(task)), nil, function(member)
      act(
        board,
        'group/taskReassign',
        ('give to %s'):format(text.one_line(member.name, 40)),
        task,
        {
          agentId = member.agentId,
        }
      )
    end)
  end
end

---Writes to the group, or to one member.
---@param app callboard.App
---@param root string
---@param said string
---@param member callboard.GroupMember|false
function M.send(app, root, said, member)
  local to = member and text.one_line(member.name, 40) or 'the group'
  app:change(
    'group/messageSend',
    {
      rootId = root,
      to = member and 'agent' or 'group',
      agentId = member and member.agentId or nil,
      text = said,
    },
    'write to ' .. to,
    function(result)
      local count = #result.recipients
      if count == 0 then
        notify.info('nobody else takes part yet, so nobody reads it')
      else
        notify.info(
          ('sent to %d member%s; read at the next step of each'):format(
            count,
            count == 1 and '' or 's'
          )
        )
      end
    end
  )
end

---@param board callboard.BoardPage
local function message(board)
  local function write(member)
    with_line(
      ('Message to %s'):format(member and text.one_line(member.name, 40) or 'the group'),
      function(said)
        M.send(board.app, board.root, said, member)
      end
    )
  end
  local members = board.view and board.view.group and board.view.group.members or {}
  if #members < 2 then
    return write(false)
  end
  pick_member(board, 'To whom?', 'Everybody', write)
end

---@param board callboard.BoardPage
local function show_card(board)
  local task = here(board)
  if task and board.view then
    local lines = require('callboard.model.task_card').lines(board.view, task)
    require('callboard.ui.float').open('Task', lines, 'callboard-task')
  end
end

---Writes to all members of the group; without a text, asks for one.
---@param app callboard.App
---@param root string
---@param said string?
function M.say(app, root, said)
  if said and vim.trim(said) ~= '' then
    return M.send(app, root, said, false)
  end
  with_line('Message to the group', function(typed)
    M.send(app, root, typed, false)
  end)
end

---What changes the board; nothing else does.
---@param board callboard.BoardPage
---@return callboard.Key[]
function M.keys(board)
  local function on_task(fn)
    return function()
      local task = here(board)
      if task then
        fn(task)
      end
    end
  end
  local function asked(title, method, doing, field, blank)
    return on_task(function(task)
      with_line(title:format(called(task)), function(said)
        act(board, method, doing, task, { [field] = said ~= '' and said or nil })
      end, blank)
    end)
  end
  local function plain(method, doing)
    return on_task(function(task)
      act(board, method, doing, task)
    end)
  end
  local list = {
    {
      'open',
      '<CR>',
      'Show all of the task',
      function()
        show_card(board)
      end,
    },
    {
      'new_task',
      'n',
      'Make a task',
      function()
        new_task(board)
      end,
    },
    { 'claim', 'c', 'Claim it for this session', plain('group/taskClaim', 'claim') },
    { 'start', 's', 'Start it', plain('group/taskStart', 'start') },
    {
      'complete',
      'd',
      'Complete it, and say what came of it',
      asked('What came of %s?', 'group/taskComplete', 'complete', 'summary'),
    },
    {
      'block',
      'b',
      'Say what keeps it from being done',
      asked('What blocks %s?', 'group/taskBlock', 'block', 'reason'),
    },
    { 'release', 'u', 'Give it back', plain('group/taskRelease', 'release') },
    {
      'cancel',
      'x',
      'Cancel it',
      asked(
        'Why is %s cancelled? (Enter alone: no reason)',
        'group/taskCancel',
        'cancel',
        'reason',
        true
      ),
    },
    {
      'assign',
      'A',
      'Give it to a member',
      function()
        assign(board)
      end,
    },
    {
      'message',
      'm',
      'Write to the group, or to a member',
      function()
        message(board)
      end,
    },
    {
      'refresh',
      'gr',
      'Ask for it all again',
      function()
        board.live:fetch()
      end,
    },
  }
  return vim.tbl_map(function(key)
    return { action = key[1], lhs = key[2], desc = key[3], fn = key[4] }
  end, list)
end

return M

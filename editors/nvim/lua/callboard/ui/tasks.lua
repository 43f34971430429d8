-- `callboard://tasks/ROOT`: the board of a group, and keys that drive it in the place of the root. Nothing but
-- these keys changes it.
local model = require('callboard.model.tasks')
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---@class callboard.BoardPage
---@field app callboard.App
---@field root string
---@field page callboard.Page
---@field live callboard.Live
---@field view callboard.BoardView?
local Board = {}
Board.__index = Board

---@type table<string, callboard.BoardPage> by root
local pages = {}

---Events after which the board may look different.
local TYPES = {
  'agent_group_created',
  'agent_group_member_joined',
  'group_task_created',
  'group_task_claimed',
  'group_task_released',
  'group_task_status_changed',
  'group_message_queued',
  'group_message_delivered',
  'agent_status_changed',
  'agent_report_created',
  'agent_interrupted',
  'agent_closed',
  'turn_started',
  'turn_finished',
  'session_updated',
  'session_deleted',
}

---So many tasks are read; a page of the server has fewer.
M.TASKS = 1000

---@private
---@param done fun(err: table?)
function Board:fetch(done)
  local view = { root = self.root, title = self:title(), tasks = {}, more = false, messages = {} }
  local function ask(method, params, fn)
    params.rootId = self.root
    self.app:request(method, params, function(err, got)
      if err then
        return done(err)
      end
      fn(got)
    end)
  end
  local function messages()
    ask('group/messageList', { limit = 20 }, function(got)
      view.messages = got.data
      self.view = view
      done()
    end)
  end
  local function tasks(cursor)
    ask('group/taskList', { status = 'all', cursor = cursor }, function(got)
      vim.list_extend(view.tasks, got.data)
      if got.nextCursor and #view.tasks < M.TASKS then
        return tasks(got.nextCursor)
      end
      view.more = got.nextCursor ~= nil
      messages()
    end)
  end
  ask('group/get', {}, function(got)
    view.group = got.group
    if view.group then
      return tasks()
    end
    self.view = view
    done()
  end)
end

---@private
---@return string
function Board:title()
  local session = self.app.sessions.by_id[self.root] or { sessionId = self.root }
  return require('callboard.model.store').name(session)
end

---@private
function Board:draw()
  local lines = {}
  local notice = self.live and self.live:notice()
  if notice then
    lines = require('callboard.ui.lines').of(notice, 'CallboardApproval')
  end
  if self.view then
    vim.list_extend(lines, model.lines(self.view))
  end
  self.page:draw(lines)
end

---@private
---@return callboard.GroupTask?
function Board:here()
  local target = self.page:target()
  if not target then
    notify.info('there is no task on this line')
    return nil
  end
  return self.view and model.task(self.view, target.id) or target.task
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

---@private
---@param method string
---@param doing string
---@param task callboard.GroupTask
---@param params table?
function Board:act(method, doing, task, params)
  params = vim.tbl_extend('error', { rootId = self.root, taskId = task.taskId }, params or {})
  self.app:change(method, params, ('%s %s'):format(doing, called(task)), function()
    self.live:fetch()
  end)
end

---@private
---@param title string
---@param depends callboard.GroupTask[]
function Board:create(title, depends)
  local ids = vim.tbl_map(function(task)
    return task.taskId
  end, depends)
  local params = { rootId = self.root, title = title, dependencies = #ids > 0 and ids or nil }
  self.app:change(
    'group/taskCreate',
    params,
    ('make the task "%s"'):format(text.one_line(title, 60)),
    function()
      self.live:fetch()
    end
  )
end

---Asks for one dependency after the other, until there are enough.
---@private
---@param title string
---@param depends callboard.GroupTask[]
function Board:pick_dependencies(title, depends)
  local open = vim.tbl_filter(function(task)
    return task.status ~= 'completed'
      and task.status ~= 'cancelled'
      and not vim.list_contains(depends, task)
  end, self.view and self.view.tasks or {})
  if #open == 0 then
    return self:create(title, depends)
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
      self:create(title, depends)
    else
      self:pick_dependencies(title, vim.list_extend({ task }, depends))
    end
  end)
end

---@private
function Board:new_task()
  with_line('What is to be done?', function(title)
    self:pick_dependencies(title, {})
  end)
end

---@private
---@param prompt string
---@param first string? what stands before the members
---@param fn fun(member: callboard.GroupMember|false)
function Board:pick_member(prompt, first, fn)
  local members = self.view and self.view.group and self.view.group.members or {}
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

---@private
function Board:assign()
  local task = self:here()
  if task then
    self:pick_member(('Who is to do %s?'):format(called(task)), nil, function(member)
      self:act('group/taskReassign', ('give to %s'):format(text.one_line(member.name, 40)), task, {
        agentId = member.agentId,
      })
    end)
  end
end

---@param app callboard.App
---@param root string
---@param said string
---@param member callboard.GroupMember|false
local function send(app, root, said, member)
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

---@private
function Board:message()
  local function write(member)
    with_line(
      ('Message to %s'):format(member and text.one_line(member.name, 40) or 'the group'),
      function(said)
        send(self.app, self.root, said, member)
      end
    )
  end
  local members = self.view and self.view.group and self.view.group.members or {}
  if #members < 2 then
    return write(false)
  end
  self:pick_member('To whom?', 'Everybody', write)
end

---@private
function Board:show_card()
  local task = self:here()
  if task and self.view then
    require('callboard.ui.float').open('Task', model.card(self.view, task), 'callboard-task')
  end
end

---@private
---@return callboard.Key[]
function Board:keys()
  local function on_task(fn)
    return function()
      local task = self:here()
      if task then
        fn(task)
      end
    end
  end
  local function asked(title, method, doing, field, blank)
    return on_task(function(task)
      with_line(title:format(called(task)), function(said)
        self:act(method, doing, task, { [field] = said ~= '' and said or nil })
      end, blank)
    end)
  end
  local function plain(method, doing)
    return on_task(function(task)
      self:act(method, doing, task)
    end)
  end
  local list = {
    {
      'open',
      '<CR>',
      'Show all of the task',
      function()
        self:show_card()
      end,
    },
    {
      'new_task',
      'n',
      'Make a task',
      function()
        self:new_task()
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
        self:assign()
      end,
    },
    {
      'message',
      'm',
      'Write to the group, or to a member',
      function()
        self:message()
      end,
    },
    {
      'refresh',
      'gr',
      'Ask for it all again',
      function()
        self.live:fetch()
      end,
    },
  }
  return vim.tbl_map(function(key)
    return { action = key[1], lhs = key[2], desc = key[3], fn = key[4] }
  end, list)
end

---@param app callboard.App
---@param root string
---@return callboard.BoardPage
local function build(app, root)
  local self = setmetatable({ app = app, root = root }, Board)
  self.page = require('callboard.ui.page').new({
    name = 'callboard://tasks/' .. root,
    filetype = 'callboard-tasks',
    same = function(target)
      return target.id
    end,
    keys = function()
      return self:keys()
    end,
    closed = function()
      pages[root] = nil
    end,
  })
  self.live = require('callboard.ui.live').new({
    app = app,
    buf = self.page.buf,
    root = root,
    types = TYPES,
    fetch = function(done)
      self:fetch(done)
    end,
    draw = function()
      self:draw()
    end,
  })
  return self
end

---Shows the board of the tree that a session is part of.
---@param session_id string
function M.open(session_id)
  local app = require('callboard.app').get()
  require('callboard.ui.live').root_of(app, session_id, 'show the tasks', function(root)
    local self = pages[root]
    if not self or not self.page:alive() then
      self = build(app, root)
      pages[root] = self
    end
    self.page:show()
    require('callboard.ui.live').wrap(self.page.buf)
    self.live:attach()
  end)
end

---Writes to all members of the group; without a text, asks for one.
---@param session_id string
---@param said string?
function M.say(session_id, said)
  local app = require('callboard.app').get()
  require('callboard.ui.live').root_of(app, session_id, 'write to the group', function(root)
    if said and vim.trim(said) ~= '' then
      return send(app, root, said, false)
    end
    with_line('Message to the group', function(typed)
      send(app, root, typed, false)
    end)
  end)
end

return M

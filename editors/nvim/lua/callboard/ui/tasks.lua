-- `callboard://tasks/ROOT`: the board of a group, and keys that drive it in the place of the root. Nothing but
-- these keys changes it.
local model = require('callboard.model.tasks')

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
      return require('callboard.ui.task_actions').keys(self)
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
    require('callboard.ui.task_actions').say(app, root, said)
  end)
end

return M

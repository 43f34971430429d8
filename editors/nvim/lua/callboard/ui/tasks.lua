-- `callboard://tasks/ROOT`: the board of a group, and keys that drive it in the place of the root. Nothing but
-- these keys changes it.
local model = require('callboard.model.tasks')
local tree_page = require('callboard.ui.tree_page')

local M = {}

---@class callboard.BoardPage: callboard.TreePage
---@field view callboard.BoardView?
local Board = tree_page.class()

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
---@return callboard.Line[]
function Board:lines()
  return self.view and model.lines(self.view) or {}
end

---Shows the board of the tree that a session is part of.
M.open = tree_page.opener(Board, {
  name = 'tasks',
  types = TYPES,
  keys = function(page)
    return require('callboard.ui.task_actions').keys(page)
  end,
})

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

-- `callboard://agents/ROOT`: the agents of a session as they are, and keys that act on the one under the cursor.
local Approvals = require('callboard.model.approvals')
local model = require('callboard.model.agents')

local M = {}

---@class callboard.AgentsPage
---@field app callboard.App
---@field root string
---@field page callboard.Page
---@field live callboard.Live
---@field view callboard.AgentsView?
---@field closing { id: string, at: number }? asked about once
local Agents = {}
Agents.__index = Agents

---@type table<string, callboard.AgentsPage> by root
local pages = {}

---Events after which an agent may look different.
local TYPES = {
  'agent_spawned',
  'agent_status_changed',
  'agent_asked',
  'agent_replied',
  'agent_report_created',
  'agent_interrupted',
  'agent_interrupt_requested',
  'agent_interrupt_consumed',
  'agent_message_queued',
  'agent_closed',
  'turn_started',
  'turn_finished',
  'turn_parked',
  'turn_resumed',
  'tool_call',
  'tool_result',
  'approval_request',
  'approval_decision',
  'model_changed',
  'session_updated',
  'session_closed',
  'session_deleted',
}

---@private
---@param done fun(err: table?)
function Agents:fetch(done)
  local agents, root = {}, nil
  local function finish()
    self.view = {
      root = root,
      agents = agents,
      approvals = {},
      fetched = vim.uv.hrtime() / 1e6,
    }
    done()
  end
  local function page(cursor)
    self.app:request('agent/list', { rootId = self.root, cursor = cursor }, function(err, got)
      if err then
        return done(err)
      end
      vim.list_extend(agents, got.data)
      if got.nextCursor then
        return page(got.nextCursor)
      end
      finish()
    end)
  end
  self.app:request('session/get', { sessionId = self.root }, function(err, got)
    if err then
      return done(err)
    end
    root = got.session
    self.app:put_session(root)
    page()
  end)
end

---Whether one was asked about not long ago.
---@return boolean
function Agents:is_closing()
  return self.closing ~= nil
    and vim.uv.hrtime() / 1e6 - self.closing.at < require('callboard.ui.agent_actions').CLOSING_MS
end

function Agents:draw()
  local lines = {}
  local notice = self.live and self.live:notice()
  if notice then
    lines = require('callboard.ui.lines').of(notice, 'CallboardApproval')
  end
  local view = self.view
  if view then
    view.approvals = vim.tbl_filter(function(approval)
      return approval.sessionId == self.root
    end, Approvals.of(self.app.approvals, self.root))
    vim.list_extend(
      lines,
      model.lines(view, {
        now = vim.uv.hrtime() / 1e6,
        icons = require('callboard.config').get().render.icons,
        closing = self:is_closing() and self.closing.id or nil,
      })
    )
  end
  self.page:draw(lines)
end

---@param app callboard.App
---@param root string
---@return callboard.AgentsPage
local function build(app, root)
  local self = setmetatable({ app = app, root = root }, Agents)
  self.page = require('callboard.ui.page').new({
    name = 'callboard://agents/' .. root,
    filetype = 'callboard-agents',
    same = function(target)
      return target.id
    end,
    keys = function()
      return require('callboard.ui.agent_actions').keys(self)
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
    ticks = function()
      return self.view ~= nil and model.runs(self.view)
    end,
  })
  return self
end

---Shows the agents of the tree that a session is part of.
---@param session_id string
function M.open(session_id)
  local app = require('callboard.app').get()
  require('callboard.ui.live').root_of(app, session_id, 'show the agents', function(root)
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

return M

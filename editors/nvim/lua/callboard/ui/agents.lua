-- `callboard://agents/ROOT`: the agents of a session as they are, and keys that act on the one under the cursor.
local Approvals = require('callboard.model.approvals')
local model = require('callboard.model.agents')
local tree_page = require('callboard.ui.tree_page')

local M = {}

---@class callboard.AgentsPage: callboard.TreePage
---@field view callboard.AgentsView?
---@field closing { id: string, at: number }? asked about once
local Agents = tree_page.class()

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

---@private
---@return callboard.Line[]
function Agents:lines()
  local view = self.view
  if not view then
    return {}
  end
  view.approvals = vim.tbl_filter(function(approval)
    return approval.sessionId == self.root
  end, Approvals.of(self.app.approvals, self.root))
  return model.lines(view, {
    now = vim.uv.hrtime() / 1e6,
    icons = require('callboard.config').get().render.icons,
    closing = self:is_closing() and self.closing.id or nil,
  })
end

---@private
---@return boolean
function Agents:runs()
  return self.view ~= nil and model.runs(self.view)
end

---Shows the agents of the tree that a session is part of.
M.open = tree_page.opener(Agents, {
  name = 'agents',
  types = TYPES,
  keys = function(page)
    return require('callboard.ui.agent_actions').keys(page)
  end,
})

return M

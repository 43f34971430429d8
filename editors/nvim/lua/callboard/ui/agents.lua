-- `callboard://agents/ROOT`: the agents of a session as they are, and keys that act on the one under the cursor.
local Approvals = require('callboard.model.approvals')
local model = require('callboard.model.agents')
local notify = require('callboard.notify')
local text = require('callboard.model.text')

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

---How long (ms) a first `D` counts.
local CLOSING_MS = 5000

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

---@private
---@return boolean
function Agents:is_closing()
  return self.closing ~= nil and vim.uv.hrtime() / 1e6 - self.closing.at < CLOSING_MS
end

---@private
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

---The agent under the cursor; says so where there is none.
---@private
---@return callboard.Agent?
function Agents:here()
  local target = self.page:target()
  if not target then
    notify.info('there is no agent on this line')
  elseif not target.agent then
    notify.info('this is the session itself: <CR> opens its chat, where you write to it or stop it')
  end
  return target and target.agent
end

---Asks for a line, then does something with it. A blank one does nothing.
---@param title string
---@param fn fun(said: string)
local function with_line(title, fn)
  require('callboard.ui.ask').line({ title = title }, function(said)
    said = said and vim.trim(said) or ''
    if said ~= '' then
      fn(said)
    end
  end)
end

---@private
function Agents:open_chat()
  local target = self.page:target()
  if target then
    require('callboard.ui.chat').open(target.id)
  end
end

---@private
---@param method 'agent/send'|'agent/continue'
function Agents:say(method)
  local agent = self:here()
  if not agent then
    return
  end
  local name = text.one_line(agent.name, 40)
  local continues = method == 'agent/continue'
  with_line(
    continues and ('What should %s go on with?'):format(name) or ('Message to %s'):format(name),
    function(said)
      local doing = (continues and 'continue %s' or 'write to %s'):format(name)
      self.app:change(method, { agentId = agent.agentId, text = said }, doing, function(result)
        if continues then
          notify.info(
            result.turnId and ('%s goes on'):format(name)
              or ('%s reads it at its next step'):format(name)
          )
        else
          notify.info(
            ('left for %s: it is read at the next step, or when it is continued (c)'):format(name)
          )
        end
      end)
    end
  )
end

local OUTCOMES = {
  delivered = '%s is told at its next step',
  ignored = '%s winds down already; this was not passed on',
  aborted = '%s is being stopped',
  already_finished = 'no turn of %s runs',
}

---@private
---@param kind callboard.InterruptKind
---@param title string? what is asked for; nil asks for nothing
function Agents:interrupt(kind, title)
  local agent = self:here()
  if not agent then
    return
  end
  if
    kind ~= 'abort'
    and self.app.server.handshake
    and not self.app:feature('agents.interrupts')
  then
    return notify.warn(
      ('this server cannot %s agents: features = ["agents.interrupts"] in its config.toml switches that on. X stops one at once.'):format(
        kind
      )
    )
  end
  local name = text.one_line(agent.name, 40)
  local function go(reason)
    local params = { agentId = agent.agentId, kind = kind, reason = reason }
    self.app:change('agent/interrupt', params, ('%s %s'):format(kind, name), function(result)
      notify.info(
        (OUTCOMES[result.outcome] or '%s: ' .. text.one_line(result.outcome)):format(name)
      )
    end)
  end
  if title then
    with_line(title:format(name), go)
  else
    go()
  end
end

---@private
function Agents:close()
  local agent = self:here()
  if not agent then
    return
  end
  if agent.status == 'closed' then
    return notify.info(('%s is closed already'):format(text.one_line(agent.name, 40)))
  end
  if not (self:is_closing() and self.closing.id == agent.agentId) then
    local closing = { id = agent.agentId, at = vim.uv.hrtime() / 1e6 }
    self.closing = closing
    self:draw()
    vim.defer_fn(function()
      if self.closing == closing then
        self:forget_closing()
      end
    end, CLOSING_MS)
    return
  end
  self:forget_closing()
  self.app:change(
    'agent/close',
    { agentId = agent.agentId },
    'close ' .. text.one_line(agent.name, 40)
  )
end

---@private
function Agents:forget_closing()
  if self.closing then
    self.closing = nil
    self:draw()
  end
end

---@private
function Agents:reply()
  local agent = self:here()
  local question = agent and agent.question
  if agent and not question then
    return notify.info(('%s asks nothing'):format(text.one_line(agent.name, 40)))
  elseif question then
    local name = text.one_line(agent.name, 40)
    with_line(('%s asks: %s'):format(name, text.one_line(question.text, 300)), function(said)
      self.app:change('agent/reply', { askId = question.askId, text = said }, 'reply to ' .. name)
    end)
  end
end

---@private
function Agents:approve()
  local target = self.page:target()
  if not target then
    return
  end
  local first = vim.iter(self.app.approvals.pending):find(function(approval)
    return approval.sessionId == target.id
  end)
  if first then
    require('callboard.ui.approval').show(first)
  else
    notify.info('nothing of it waits for approval')
  end
end

---@private
---@return callboard.Key[]
function Agents:keys()
  local function key(action, lhs, desc, fn)
    return {
      action = action,
      lhs = lhs,
      desc = desc,
      fn = function()
        if action ~= 'close_agent' then
          self:forget_closing()
        end
        fn()
      end,
    }
  end
  return {
    key('open', '<CR>', "Open the agent's chat", function()
      self:open_chat()
    end),
    key('message', 'm', 'Leave it a message for its next step', function()
      self:say('agent/send')
    end),
    key('continue', 'c', 'Give it more to do: it goes on with its own memory', function()
      self:say('agent/continue')
    end),
    key('steer', 's', 'Correct it at its next step; its work stays', function()
      self:interrupt('steer', 'What should %s do instead?')
    end),
    key('cancel', 'x', 'Have it wind down, and say why', function()
      self:interrupt('cancel', 'Why should %s stop?')
    end),
    key('abort', 'X', 'Stop its turn at once', function()
      self:interrupt('abort')
    end),
    key('close_agent', 'D', 'Close it, and those below it, for good; twice', function()
      self:close()
    end),
    key('reply', 'r', 'Reply to its question', function()
      self:reply()
    end),
    key('approval', 'a', 'Go to what it wants to be allowed', function()
      self:approve()
    end),
    key('refresh', 'gr', 'Ask for it all again', function()
      self.live:fetch()
    end),
  }
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

-- The composition root: one server, one store, what of it this editor follows. Built with the first use.
local Approvals = require('callboard.model.approvals')
local Sessions = require('callboard.model.store')
local catalog = require('callboard.catalog')
local config = require('callboard.config')
local errors = require('callboard.errors')
local events = require('callboard.events')
local log = require('callboard.log')
local notify = require('callboard.notify')

local M = {}

---@alias callboard.Topic 'server'|'sessions'|'approvals'

---@class callboard.App
---@field server callboard.rpc.Supervisor
---@field feed callboard.rpc.Feed
---@field sessions callboard.Sessions
---@field approvals callboard.Approvals
---@field questions callboard.Questions
---@field client_id string
---@field private keys integer
---@field private open table<string, { session: callboard.OpenSession, users: integer, unwatch: fun() }>
---@field private listeners table<callboard.Topic, fun()[]>
---@field private refreshing table<string, boolean|'again'>
---@field private greeted boolean a server was there before
---@field private told_why boolean? that the server does not serve for now
local App = {}
App.__index = App

---How long (ms) Neovim's end may wait for the server's: a running turn is brought to a place where it can go on.
local LEAVE_MS, LEAVE_BUSY_MS = 500, 2000

---@type callboard.App?
local current

---@return string
local function random()
  local bytes = vim.uv.random(12)
  return (bytes:gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end))
end

---The one of this editor; the first use starts the server.
---@return callboard.App
function M.get()
  if current then
    return current
  end
  local app = setmetatable({
    sessions = Sessions.new(),
    approvals = Approvals.new(),
    client_id = 'nvim_' .. random(),
    keys = 0,
    open = {},
    listeners = { server = {}, sessions = {}, approvals = {} },
    refreshing = {},
    greeted = false,
  }, App)
  app.server = require('callboard.wiring').supervisor(app)
  app.feed = require('callboard.rpc.feed').new(app.server)
  app.questions = require('callboard.questions').new(app)
  current = app
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = vim.api.nvim_create_augroup('callboard-app', {}),
    callback = function()
      app.server:leave(Sessions.counts(app.sessions).running > 0 and LEAVE_BUSY_MS or LEAVE_MS)
    end,
  })
  require('callboard.status').watch(app)
  require('callboard.ui.approval').watch(app)
  if config.get().diff.auto_open then
    require('callboard.ui.diff').watch(app)
  end
  catalog.follow(app)
  app.server:start()
  return app
end

---The one of this editor, if it is there already: whoever only looks starts nothing.
---@return callboard.App?
function M.peek()
  return current
end

---A server is there, the first one or another.
---@param handshake callboard.HandshakeResult
function App:ready(handshake)
  log.info('server %s, store %s', handshake.serverInfo.version or '?', handshake.storeId)
  if self.greeted then
    notify.info('the server is back; everything goes on where it was')
  end
  self.greeted = true
  self.feed:resume()
  for _, entry in pairs(self.open) do
    entry.session:returned()
  end
  events.emit('CallboardServerReady', { version = handshake.serverInfo.version })
end

---Of a server that cannot be had, so many of its last lines are told with the message; the chat shows all.
local TOLD_LINES = 5

---The state of the server is another one.
function App:server_changed()
  local server = self.server
  if server.state == 'failed' then
    local lines = server.failure.lines
    notify.no_server(
      server.failure.message,
      vim.list_slice(lines, math.max(1, #lines - TOLD_LINES + 1))
    )
  elseif server.state == 'waiting' and server.failure.refused and not self.told_why then
    self.told_why = true
    notify.warn(server.failure.message .. '\nIt is tried again for a while.')
  elseif server.state == 'ready' then
    self.told_why = false
  end
  self:tell('server')
end

---@param session callboard.Session
function App:put_session(session)
  Sessions.put(self.sessions, session)
  self:tell('sessions')
end

---Asks for a session anew; several wishes at a time are one request.
---@param session_id string
function App:refresh(session_id)
  if self.refreshing[session_id] then
    self.refreshing[session_id] = 'again'
    return
  end
  self.refreshing[session_id] = true
  self:request('session/get', { sessionId = session_id }, function(err, got)
    local again = self.refreshing[session_id] == 'again'
    self.refreshing[session_id] = nil
    if got then
      if type(got.session) == 'table' then
        got.session.options = got.session.options or {} -- here none are none, not left out
      end
      self:put_session(got.session)
    elseif errors.kind(err) == 'sessionNotFound' then
      Sessions.remove(self.sessions, session_id)
      self:tell('sessions')
    end
    if again then
      self:refresh(session_id)
    end
  end)
end

---The server says something.
---@param method string
---@param params table
function App:notification(method, params)
  if self.feed:notification(method, params) then
    return
  elseif method == '$/cancelRequest' then
    self.questions:cancelled(params.id)
  elseif method == 'window/logMessage' then
    log.info('server: %s', params.message or '')
  end
end

---Ends of an approval that make further answers useless.
local OVER = { alreadyResolved = true, approvalExpired = true, approvalNotFound = true }

---Answers an approval. Whoever was first has won; others hear what came of it.
---@param approval callboard.Approval
---@param option callboard.ApprovalOption
---@param feedback string?
---@param done fun(err: table?)?
function App:answer(approval, option, feedback, done)
  self:request('approval/answer', {
    approvalId = approval.approvalId,
    optionId = option.optionId,
    feedback = feedback,
    idempotencyKey = self:new_key(),
  }, function(err)
    local kind = errors.kind(err)
    if not err or OVER[kind] then
      self.questions:withdraw(approval.approvalId)
      if Approvals.remove(self.approvals, approval.approvalId) then
        self:tell('approvals')
      end
    end
    if kind == 'alreadyResolved' then
      local resolution = err.data.resolution or {}
      local by = resolution.by and (resolution.by.name or resolution.by.kind) or 'somebody else'
      notify.info(
        ('%s was %s by %s already'):format(approval.title, resolution.outcome or 'answered', by)
      )
    elseif err then
      notify.failed('answer ' .. approval.title, err)
    end
    if done then
      done(err)
    end
  end)
end

---@return string unique; what is asked again with it does nothing twice
function App:new_key()
  self.keys = self.keys + 1
  return ('%s.%d'):format(self.client_id, self.keys)
end

---Asks the server, starting it if need be. Requests that change something want a key: see `change`.
---@param method string
---@param params table?
---@param callback fun(err: table?, result: any)
---@param opts { once: boolean? }?
---@return fun() cancel
function App:request(method, params, callback, opts)
  return self.server:request(method, params, function(err, result)
    if not err and type(result) ~= 'table' then
      -- All that is asked here is answered with a table.
      local words = 'the server gave no answer to %s that can be read'
      err, result = { code = 0, message = words:format(method), data = {} }, nil
    end
    callback(err, result)
  end, opts)
end

---Asks for a change: with a key, so that a server that died before it answered can be asked again.
---@param method string
---@param params table
---@param doing string for the message when it fails, as in "rename the session"
---@param done fun(result: any)? not called when it fails
function App:change(method, params, doing, done)
  params.idempotencyKey = self:new_key()
  self:request(method, params, function(err, result)
    if err then
      notify.failed(doing, err)
    elseif done then
      done(result)
    end
  end)
end

---A session, followed while somebody looks at it. Each `use` wants its `release`.
---@param id string
---@return callboard.OpenSession
function App:use(id)
  local entry = self.open[id]
  if not entry then
    entry = {
      session = require('callboard.session').open(self, id),
      users = 0,
      unwatch = require('callboard.changes').watch(self, id),
    }
    self.open[id] = entry
  end
  entry.users = entry.users + 1
  return entry.session
end

---@param id string
function App:release(id)
  local entry = self.open[id]
  if entry then
    entry.users = entry.users - 1
    if entry.users == 0 then
      self.open[id] = nil
      entry.session:close()
      entry.unwatch()
    end
  end
end

---@param topic callboard.Topic
---@param listener fun()
---@return fun() off
function App:on(topic, listener)
  local function own()
    listener()
  end
  table.insert(self.listeners[topic], own)
  return function()
    self.listeners[topic] = vim.tbl_filter(function(other)
      return other ~= own
    end, self.listeners[topic])
  end
end

---@param topic callboard.Topic
function App:tell(topic)
  for _, listener in ipairs(vim.list_slice(self.listeners[topic])) do
    notify.guard(listener)
  end
end

---@param name string as in `initialize`
---@return boolean
function App:feature(name)
  local handshake = self.server.handshake
  return handshake ~= nil and handshake.features[name] == true
end

return M

-- The composition root: one server, one store, what of it this editor follows. Built with the first use.
local Approvals = require('callboard.model.approvals')
local Sessions = require('callboard.model.store')
local config = require('callboard.config')
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
---@field private client_id string
---@field private keys integer
---@field private open table<string, { session: callboard.OpenSession, users: integer }>
---@field private listeners table<callboard.Topic, table<fun(), true>>
---@field private questions table<string, { reply: fun(result: table?, err: table?), id: any }> by approval
---@field private started boolean
---@field private refreshing table<string, boolean|'again'>
---@field private greeted boolean
local App = {}
App.__index = App

---How long (ms) Neovim's end may wait for the server's.
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

---@param app callboard.App
---@return callboard.rpc.Supervisor
local function supervise(app)
  local function later(ms, fn)
    local timer = assert(vim.uv.new_timer())
    timer:start(
      ms,
      0,
      vim.schedule_wrap(function()
        if not timer:is_closing() then
          timer:close()
          fn()
        end
      end)
    )
    return function()
      if not timer:is_closing() then
        timer:close()
      end
    end
  end
  local options = config.get().server
  return require('callboard.rpc.supervisor').new({
    locate = function()
      return require('callboard.rpc.locate').find(options, vim.uv.cwd() or '.')
    end,
    start = function(cmd, handlers)
      return require('callboard.rpc.client').start(
        cmd,
        { cwd = options.cwd, env = options.env },
        handlers
      )
    end,
    initialize = function()
      return app:initialize()
    end,
    now = vim.uv.now,
    later = later,
    changed = function()
      app:tell('server')
    end,
    ready = function(handshake)
      app:ready(handshake)
    end,
    notification = function(method, params)
      app:notification(method, params)
    end,
    request = function(method, params, reply, id)
      app:asked(method, params, reply, id)
    end,
    exited = function(exit, expected)
      app.questions = {}
      events.emit(
        'CallboardServerExit',
        { code = exit.code, signal = exit.signal, expected = expected }
      )
    end,
  })
end

---The one of this editor.
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
    questions = {},
    refreshing = {},
    greeted = false,
  }, App)
  app.server = supervise(app)
  app.feed = require('callboard.rpc.feed').new(app.server)
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
  app:follow_server()
  return app
end

---The one of this editor, if it is there already: whoever only looks starts nothing.
---@return callboard.App?
function M.peek()
  return current
end

---@private
---@return table
function App:initialize()
  local folder = vim.uv.cwd() or '.'
  local uri = vim.uri_from_fname(folder)
  return {
    processId = vim.uv.os_getpid(),
    clientInfo = { name = 'Neovim', version = tostring(vim.version()) },
    rootUri = uri,
    workspaceFolders = { { uri = uri, name = vim.fs.basename(folder) } },
    capabilities = vim.empty_dict(),
    initializationOptions = {
      callboard = {
        protocolVersions = { require('callboard.protocol').PROTOCOL_VERSION },
        clientId = self.client_id,
        clientInfo = { name = 'Neovim', version = tostring(vim.version()) },
        capabilities = { approvals = true, deltas = true, readFile = true },
      },
    },
  }
end

---@private
---@param handshake callboard.HandshakeResult
function App:ready(handshake)
  log.info('server %s, store %s', handshake.serverInfo.version or '?', handshake.storeId)
  if self.greeted then
    notify.info('the server is back; everything goes on where it was')
  end
  self.greeted = true
  self.feed:resume()
  self:list_sessions()
  self:list_approvals()
  events.emit('CallboardServerReady', { version = handshake.serverInfo.version })
end

---@private
---Sessions and approvals of the whole store, from here on: listings bring what was before.
function App:follow_server()
  local function lost(err)
    notify.failed('follow the store', err)
  end
  local sessions
  sessions = {
    scope = { kind = 'catalog' },
    cursor = 'now',
    on_events = function(list)
      for _, event in ipairs(list) do
        self:catalog_event(event)
      end
    end,
    on_lost = lost,
  }
  self.feed:follow(sessions)
  self.feed:follow({
    scope = { kind = 'approvals' },
    cursor = 'now',
    on_events = function(list)
      for _, event in ipairs(list) do
        self:approval_event(event)
      end
    end,
    on_live = function()
      self:list_approvals()
    end,
    on_lost = lost,
  })
end

---@private
---@param event callboard.Event
function App:catalog_event(event)
  if event.type == 'session_deleted' then
    Sessions.remove(self.sessions, event.sessionId)
    if #Approvals.forget(self.approvals, event.sessionId) > 0 then
      self:tell('approvals')
    end
    self:tell('sessions')
    return
  elseif event.type == 'session_created' or event.type == 'session_forked' then
    events.emit('CallboardSessionStarted', { sessionId = event.sessionId })
  elseif event.type == 'turn_finished' then
    events.emit('CallboardTurnEnded', {
      sessionId = event.sessionId,
      turnId = event.data.turnId,
      outcome = event.data.outcome,
    })
  end
  self:refresh(event.sessionId)
end

---@private
---@param event callboard.Event
function App:approval_event(event)
  if event.type == 'approval_request' then
    if Approvals.add(self.approvals, event.data.approval) then
      events.emit('CallboardApprovalRequested', event.data.approval)
      self:tell('approvals')
    end
  elseif event.type == 'approval_decision' then
    local id = event.data.approvalId
    self:withdraw(id)
    if Approvals.remove(self.approvals, id) then
      self:tell('approvals')
    end
    -- Also of what this editor has answered itself, and no longer waits.
    events.emit('CallboardApprovalResolved', {
      approvalId = id,
      outcome = event.data.resolution.outcome,
      by = event.data.resolution.by,
    })
  end
  self:refresh(event.sessionId)
end

---What a session that is open here tells, beyond its text.
---@param event callboard.Event
function App:session_event(event)
  if event.type == 'turn_started' then
    events.emit('CallboardTurnStarted', { sessionId = event.sessionId, turnId = event.data.turnId })
    self:refresh(event.sessionId)
  elseif event.type == 'tool_call' then
    events.emit('CallboardToolStarted', {
      sessionId = event.sessionId,
      callId = event.data.callId,
      name = event.data.name,
      title = event.data.title,
    })
  elseif event.type == 'tool_result' then
    events.emit('CallboardToolEnded', {
      sessionId = event.sessionId,
      callId = event.data.callId,
      name = event.data.name,
      status = event.data.status,
    })
    local changes = event.data.changes
    if type(changes) == 'table' and #changes > 0 then
      require('callboard.ui.changes').touched(vim.tbl_map(function(change)
        return change.path
      end, changes))
    end
  elseif
    event.type == 'mode_changed'
    or event.type == 'model_changed'
    or event.type == 'turn_parked'
  then
    self:refresh(event.sessionId)
  end
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
      self:put_session(got.session)
    elseif err.data and err.data.kind == 'sessionNotFound' then
      Sessions.remove(self.sessions, session_id)
      self:tell('sessions')
    end
    if again then
      self:refresh(session_id)
    end
  end)
end

---@private
function App:list_sessions()
  self:request('session/list', { limit = 100 }, function(err, page)
    if err then
      return notify.failed('list the sessions', err)
    end
    local open = {}
    for id, session in pairs(self.sessions.by_id) do
      open[id] = session.parentId and session or nil
    end
    self.sessions.by_id = open
    for _, session in ipairs(page.data) do
      Sessions.put(self.sessions, session)
    end
    self.sessions.loaded, self.sessions.more = true, page.nextCursor ~= nil
    self:tell('sessions')
  end)
end

---@private
function App:list_approvals()
  local all = {}
  local function page(cursor)
    self:request('approval/list', { state = 'pending', cursor = cursor }, function(err, got)
      if err then
        return notify.failed('list what waits for an answer', err)
      end
      vim.list_extend(all, got.data)
      if got.nextCursor then
        return page(got.nextCursor)
      end
      Approvals.replace(self.approvals, all)
      self:tell('approvals')
    end)
  end
  page()
end

---@private
---@param method string
---@param params table
function App:notification(method, params)
  if self.feed:notification(method, params) then
    return
  elseif method == '$/cancelRequest' then
    for id, question in pairs(self.questions) do
      if question.id == params.id then
        self.questions[id] = nil
        question.reply({ defer = true })
      end
    end
  elseif method == 'window/logMessage' then
    log.info('server: %s', params.message or '')
  end
end

---@private
---@param method string
---@param params table
---@param reply fun(result: table?, err: table?)
---@param id any
function App:asked(method, params, reply, id)
  if method == 'approval/request' then
    -- Held open while the person thinks: so the server knows that somebody is there. The answer itself goes
    -- by `approval/answer`, which tells who was first.
    self.questions[params.approval.approvalId] = { reply = reply, id = id }
    if Approvals.add(self.approvals, params.approval) then
      events.emit('CallboardApprovalRequested', params.approval)
      self:tell('approvals')
    end
  elseif method == 'client/readFile' then
    require('callboard.context').read(params, reply)
  else
    reply(nil, { code = -32601, message = ('the client has no method %s'):format(method) })
  end
end

---@private
---@param approval_id string
function App:withdraw(approval_id)
  local question = self.questions[approval_id]
  if question then
    self.questions[approval_id] = nil
    question.reply({ defer = true })
  end
end

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
    local kind = err and err.data and err.data.kind
    if
      not err
      or kind == 'alreadyResolved'
      or kind == 'approvalExpired'
      or kind == 'approvalNotFound'
    then
      self:withdraw(approval.approvalId)
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
  return self.server:request(method, params, callback, opts)
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
    entry = { session = require('callboard.session').open(self, id), users = 0 }
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
    end
  end
end

---@param topic callboard.Topic
---@param listener fun()
---@return fun() off
function App:on(topic, listener)
  self.listeners[topic][listener] = true
  return function()
    self.listeners[topic][listener] = nil
  end
end

---@param topic callboard.Topic
function App:tell(topic)
  for _, listener in ipairs(vim.tbl_keys(self.listeners[topic])) do
    local ok, fault = xpcall(listener, debug.traceback)
    if not ok then
      log.error('%s', fault)
    end
  end
end

---@param name string as in `initialize`
---@return boolean
function App:feature(name)
  local handshake = self.server.handshake
  return handshake ~= nil and handshake.features[name] == true
end

return M

-- Keeps one server running: starts it with the first use, starts it again when it has died, gives up when that
-- does not help, and asks anew what was not answered. What changes something carries a key, so a repetition
-- does nothing twice.
local log = require('callboard.log')

local M = {}

---@alias callboard.rpc.State 'stopped'|'starting'|'ready'|'waiting'|'failed'

---@class callboard.rpc.Environment What a supervisor is built on; tests give their own.
---@field locate fun(): callboard.rpc.Found?, string?
---@field start fun(cmd: string[], handlers: callboard.rpc.Handlers): callboard.rpc.Client?, string?
---@field initialize fun(): table params of `initialize`
---@field now fun(): integer ms
---@field later fun(ms: integer, fn: fun()): fun() takes it back
---@field changed fun() the state is another one
---@field ready fun(handshake: callboard.HandshakeResult)
---@field notification fun(method: string, params: table)
---@field request fun(method: string, params: table, reply: fun(result: table?, err: table?), id: any)
---@field exited fun(exit: callboard.rpc.Exit, expected: boolean)

---@class callboard.rpc.Pending
---@field method string
---@field params table?
---@field callback fun(err: table?, result: any)
---@field id integer? of the request that is under way
---@field once boolean? is not asked again of another server
---@field dropped boolean?

---@class callboard.rpc.Supervisor
---@field state callboard.rpc.State
---@field found callboard.rpc.Found?
---@field handshake callboard.HandshakeResult?
---@field failure { message: string, lines: string[] }? why it is waiting or has failed
---@field client callboard.rpc.Client?
---@field private env callboard.rpc.Environment
---@field private queue callboard.rpc.Pending[] not asked yet
---@field private asked table<callboard.rpc.Pending, true> and not answered
---@field private deaths integer[] when servers ended by themselves (ms)
---@field private untimed fun()?
---@field private stopping boolean
local Supervisor = {}
Supervisor.__index = Supervisor

---Pauses (ms) before the first, second, ... new start.
M.BACK_OFF_MS = { 1000, 2000, 4000, 8000 }
---So many ends within so long (ms) are enough.
M.DEATHS, M.WINDOW_MS = 5, 180000
---A server that has not answered `initialize` by then (ms) is ended.
M.PATIENCE_MS = 20000
---How long (ms) a server may take to go.
M.GRACE_MS = 2000

---@param env callboard.rpc.Environment
---@return callboard.rpc.Supervisor
function M.new(env)
  return setmetatable({
    state = 'stopped',
    env = env,
    queue = {},
    asked = {},
    deaths = {},
    stopping = false,
  }, Supervisor)
end

---@private
---@param state callboard.rpc.State
function Supervisor:become(state)
  self.state = state
  self.env.changed()
end

---@private
---@param ms integer?
---@param fn fun()?
function Supervisor:timer(ms, fn)
  if self.untimed then
    self.untimed()
    self.untimed = nil
  end
  if ms then
    self.untimed = self.env.later(ms, function()
      self.untimed = nil
      fn()
    end)
  end
end

---@private
---@param message string
---@param lines string[]?
function Supervisor:fail(message, lines)
  self:timer()
  self.failure = { message = message, lines = lines or {} }
  log.error('%s', message)
  self:become('failed')
  local given_up = {}
  for _, pending in ipairs(self.queue) do
    given_up[#given_up + 1] = pending
  end
  self.queue = {}
  for _, pending in ipairs(given_up) do
    pending.callback({ code = 0, message = message, data = { kind = 'noServer' } })
  end
end

---Starts the server, unless one runs or is about to.
function Supervisor:start()
  if self.state == 'stopped' or self.state == 'failed' then
    self.deaths = {}
    self:launch()
  end
end

---Ends the server that runs, if one does, and starts another.
function Supervisor:restart()
  self.deaths = {}
  self.failure = nil
  self:timer()
  if self.client and self.client:alive() then
    self.stopping = true
    self.client:stop(M.GRACE_MS)
  else
    self:launch()
  end
end

---@private
function Supervisor:launch()
  local found, fault = self.env.locate()
  if not found then
    return self:fail(fault or 'the server was not found')
  end
  self.found, self.stopping = found, false
  self:become('starting')
  local client
  client, fault = self.env.start(found.cmd, {
    notification = function(method, params)
      self.env.notification(method, params)
    end,
    request = function(method, params, reply, id)
      self.env.request(method, params, reply, id)
    end,
    exit = function(exit)
      self:exited(exit)
    end,
  })
  if not client then
    return self:fail(('the server %s could not be started: %s'):format(found.cmd[1], fault))
  end
  self.client = client
  self:timer(M.PATIENCE_MS, function()
    self.late = true
    client:signal('sigkill')
  end)
  client:request('initialize', self.env.initialize(), function(err, result)
    if err then
      self:refused(err)
    else
      self:greeted(result)
    end
  end)
end

---@private
---@param err table
function Supervisor:refused(err)
  self.refusal = err
  if self.client then
    self.client:stop(M.GRACE_MS)
  end
end

---@private
---@param result table
function Supervisor:greeted(result)
  local handshake = vim.tbl_get(result or {}, 'capabilities', 'experimental', 'callboard')
  if type(handshake) ~= 'table' or not handshake.protocolVersion then
    self.refusal = {
      message = ('%s is another program: it does not speak the protocol of Callboard'):format(
        self.found.cmd[1]
      ),
    }
    return self.client:stop(M.GRACE_MS)
  end
  self:timer()
  self.handshake, self.failure = handshake, nil
  self.client:notify('initialized')
  self:become('ready')
  self.env.ready(handshake)
  local queue = self.queue
  self.queue = {}
  for _, pending in ipairs(queue) do
    self:ask(pending)
  end
end

---@private
---@param pending callboard.rpc.Pending
function Supervisor:ask(pending)
  if pending.dropped then
    return
  end
  if self.state ~= 'ready' then
    self.queue[#self.queue + 1] = pending
    return
  end
  self.asked[pending] = true
  pending.id = self.client:request(pending.method, pending.params, function(err, result)
    self.asked[pending] = nil
    if not pending.dropped then
      pending.callback(err, result)
    end
  end)
end

---Asks the server, as soon as there is one.
---@param method string
---@param params table?
---@param callback fun(err: table?, result: any) With kind `noServer` when none can be had.
---@param opts { once: boolean? }? `once`: when the server dies first, it is not asked of the next one, and the
---  callback hears of kind `serverGone`.
---@return fun() cancel its callback is not called any more
function Supervisor:request(method, params, callback, opts)
  local pending =
    { method = method, params = params, callback = callback, once = opts and opts.once }
  if self.state == 'failed' then
    local failure = self.failure
    vim.schedule(function()
      if not pending.dropped then
        callback({
          code = 0,
          message = failure and failure.message or '',
          data = { kind = 'noServer' },
        })
      end
    end)
    return function()
      pending.dropped = true
    end
  end
  if self.state == 'stopped' then
    self:launch()
  end
  -- It may have failed by now, and what waits has been told so; this one would wait for ever.
  if self.state == 'failed' then
    return self:request(method, params, callback, opts)
  end
  self:ask(pending)
  return function()
    pending.dropped = true
    if pending.id and self.asked[pending] and self.client then
      self.client:cancel(pending.id)
    end
  end
end

---@param method string
---@param params table?
function Supervisor:notify(method, params)
  if self.state == 'ready' then
    self.client:notify(method, params)
  end
end

---@private
---@param exit callboard.rpc.Exit
---@return string
function Supervisor:why(exit)
  local program = table.concat(self.found.cmd, ' ')
  if self.refusal then
    return require('callboard.notify').explain(self.refusal)
  elseif exit.garbage then
    local shown = require('callboard.model.text').one_line(exit.garbage, 80)
    return ('%s is no Callboard server: it printed "%s"'):format(program, shown)
  elseif self.late then
    return ('%s did not answer within %d s'):format(program, M.PATIENCE_MS / 1000)
  elseif exit.signal ~= 0 then
    return ('the server was ended by signal %d'):format(exit.signal)
  end
  return ('the server (%s) ended with code %d'):format(program, exit.code)
end

---@private
---@param exit callboard.rpc.Exit
function Supervisor:exited(exit)
  self:timer()
  local expected, was = self.stopping, self.state
  local why = not expected and self:why(exit) or nil
  local refusal = self.refusal
  self.client, self.refusal, self.late = nil, nil, nil
  self.env.exited(exit, expected)
  local asked = vim.tbl_keys(self.asked)
  self.asked = {}
  table.sort(asked, function(a, b)
    return (a.id or 0) < (b.id or 0)
  end)
  local again = {}
  for _, pending in ipairs(asked) do
    pending.id = nil
    if pending.once then
      pending.callback({
        code = 0,
        message = 'the server has ended',
        data = { kind = 'serverGone' },
      })
    else
      again[#again + 1] = pending
    end
  end
  self.queue = vim.list_extend(again, self.queue)
  if expected then
    self.stopping = false
    if self.leaving then
      return self:become('stopped')
    end
    return self:launch()
  end
  local hopeless = refusal and not (refusal.data and refusal.data.retryable)
  if hopeless or exit.garbage then
    return self:fail(why .. self:way_out(refusal), exit.stderr)
  elseif was == 'starting' and self.found.guess then
    return self:fail(require('callboard.rpc.locate').missing(vim.uv.cwd() or '.'), exit.stderr)
  end
  local now = self.env.now()
  self.deaths = vim.tbl_filter(function(at)
    return now - at < M.WINDOW_MS
  end, self.deaths)
  table.insert(self.deaths, now)
  if #self.deaths >= M.DEATHS then
    return self:fail(
      ('%s, %d times in a row. :Callboard restart tries again; :checkhealth callboard says more.'):format(
        why,
        #self.deaths
      ),
      exit.stderr
    )
  end
  self.failure = { message = why, lines = exit.stderr }
  self:become('waiting')
  self:timer(M.BACK_OFF_MS[math.min(#self.deaths, #M.BACK_OFF_MS)], function()
    self:launch()
  end)
end

---@private
---@param refusal table?
---@return string
function Supervisor:way_out(refusal)
  local kind = refusal and refusal.data and refusal.data.kind
  if kind == 'unsupportedVersion' then
    return ('\nThe plugin speaks version %s. Update both to the same release: the wheel carries its plugin (callboard editor path nvim).'):format(
      require('callboard.protocol').PROTOCOL_VERSION
    )
  elseif refusal then
    return '\n:Callboard restart tries again.'
  end
  return '\nSet server.cmd, or correct what it names; then :Callboard restart.'
end

---Ends the server because Neovim goes. There is no later.
---@param grace_ms integer
function Supervisor:leave(grace_ms)
  self:timer()
  self.leaving, self.stopping = true, true
  if self.client then
    self.client:leave(grace_ms)
  end
end

---How long until the next start, for a message. Ms.
---@return integer
function Supervisor:pause()
  return M.BACK_OFF_MS[math.min(math.max(#self.deaths, 1), #M.BACK_OFF_MS)]
end

return M

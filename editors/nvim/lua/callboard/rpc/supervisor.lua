-- Keeps one server running: starts it with the first use, starts it again when it has died, gives up when that
-- does not help, and asks anew what was not answered. What changes something carries a key, so a repetition
-- does nothing twice.
local endings = require('callboard.rpc.endings')
local log = require('callboard.log')
local requests = require('callboard.rpc.requests')
local text = require('callboard.model.text')

local M = {}

---@alias callboard.rpc.State 'stopped'|'starting'|'ready'|'waiting'|'failed'

---@class callboard.rpc.Environment What a supervisor is built on; tests give their own.
---@field locate fun(): callboard.rpc.Found?, string?
---@field start fun(cmd: string[], handlers: callboard.rpc.Handlers): callboard.rpc.Client?, string?
---@field initialize fun(): table params of `initialize`
---@field cwd fun(): string
---@field now fun(): integer ms
---@field later fun(ms: integer, fn: fun()): fun() takes it back
---@field changed fun() the state is another one
---@field ready fun(handshake: callboard.HandshakeResult)
---@field notification fun(method: string, params: table)
---@field request fun(method: string, params: table, reply: fun(result: table?, err: table?), id: any)
---@field exited fun(exit: callboard.rpc.Exit, expected: boolean)
---@field guard fun(fn: function, ...: any) calls it; what it throws keeps nothing else from happening

---@class callboard.rpc.Supervisor
---@field state callboard.rpc.State
---@field found callboard.rpc.Found?
---@field handshake callboard.HandshakeResult?
---@field failure { message: string, lines: string[], refused: boolean? }? why it is waiting or has failed; `refused`:
---  it could be started, and said why it does not serve
---@field client callboard.rpc.Client?
---@field private env callboard.rpc.Environment
---@field private requests callboard.rpc.Requests what was asked, and not answered yet
---@field private deaths integer[] when servers ended by themselves (ms)
---@field private untimed fun()?
---@field private stopping boolean the end of the server that runs is wanted
---@field private leaving boolean? and no other one is
---@field private refusal table? why the server that runs does not serve
---@field private late boolean? it did not answer in time
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
    requests = requests.new(env.guard),
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
---@param ms integer? nil takes back what was to come
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
  -- That there is none was told just now, when it failed; not again of each that waited.
  self.requests:refuse(self.requests:waiting(), message, { kind = 'noServer', told = true })
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
    self.stopping, self.refusal, self.late = true, nil, nil
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
    notification = self.env.notification,
    request = function(...)
      if self.state == 'starting' then
        return not self.refusal and self:another_program() -- as one that gives back what it reads
      end
      self.env.request(...)
    end,
    exit = function(exit)
      self:exited(exit)
    end,
  })
  if not client then
    local words = 'the server %s could not be started: %s\nSet server.cmd, then :Callboard restart.'
    return self:fail(words:format(found.cmd[1], fault))
  end
  self.client = client
  self:timer(M.PATIENCE_MS, function()
    self.late = true
    client:signal('sigkill')
  end)
  client:request('initialize', self.env.initialize(), function(err, result)
    if self.stopping then
      return -- it is not this one that is waited for
    elseif err then
      self:refused(err)
    else
      self:greeted(result)
    end
  end)
end

---@private
---@param err table
function Supervisor:refused(err)
  self:timer()
  self.refusal = err
  self.client:stop(M.GRACE_MS)
end

---@private
function Supervisor:another_program()
  self:refused({
    message = ('%s is another program: it does not speak the protocol of Callboard. Set server.cmd, or correct what it names.'):format(
      self.found.cmd[1]
    ),
  })
end

---@param version any
---@return string? of versions with the same, each understands the other
local function major(version)
  return tostring(version):match('^(%d+)')
end

---@private
---@param result table
function Supervisor:greeted(result)
  local handshake = vim.tbl_get(result or {}, 'capabilities', 'experimental', 'callboard')
  if type(handshake) ~= 'table' or not handshake.protocolVersion then
    return self:another_program()
  end
  local spoken = require('callboard.protocol').PROTOCOL_VERSION
  if major(handshake.protocolVersion) ~= major(spoken) then
    local words = 'the server speaks version %s of the protocol'
    return self:refused({
      message = words:format(text.one_line(handshake.protocolVersion, 20)),
      data = { kind = 'unsupportedVersion' },
    })
  end
  for _, name in ipairs({ 'serverInfo', 'features' }) do
    handshake[name] = type(handshake[name]) == 'table' and handshake[name] or {}
  end
  self:timer()
  self.handshake, self.failure = handshake, nil
  self.client:notify('initialized')
  self:become('ready')
  self.env.ready(handshake)
  for _, pending in ipairs(self.requests:waiting()) do
    self:ask(pending)
  end
end

---@private
---@param pending callboard.rpc.Pending
function Supervisor:ask(pending)
  if self.state == 'ready' then
    self.requests:ask(pending, self.client)
  else
    self.requests:wait(pending)
  end
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
  if self.state == 'stopped' and not self.leaving then
    self:launch()
  end
  if self.state == 'failed' then
    local message = self.failure.message
    self.env.later(0, function()
      self.requests:refuse({ pending }, message, { kind = 'noServer' })
    end)
  else
    self:ask(pending)
  end
  return function()
    self.requests:drop(pending, self.client)
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
function Supervisor:exited(exit)
  self:timer()
  local expected = self.stopping
  ---@type callboard.rpc.Ending
  local ending = {
    cmd = self.found.cmd,
    exit = exit,
    refusal = self.refusal,
    late = self.late and M.PATIENCE_MS / 1000 or nil,
    starting = self.state == 'starting',
    guess = self.found.guess,
  }
  self.client, self.refusal, self.late, self.stopping = nil, nil, nil, false
  self.state = 'waiting' -- whoever asks from here on waits for the next one
  local once = self.requests:take_back()
  self.env.exited(exit, expected)
  if self.leaving then
    self:become('stopped')
  elseif expected then
    self:launch()
  else
    self:go_on(ending)
  end
  self.requests:refuse(once, 'the server has ended', { kind = 'serverGone' })
end

---@private
---@param ending callboard.rpc.Ending of a server that nobody wanted to end
function Supervisor:go_on(ending)
  local fault = endings.hopeless(ending, self.env.cwd())
  if fault then
    return self:fail(fault, ending.exit.stderr)
  end
  local now = self.env.now()
  self.deaths = vim.tbl_filter(function(at)
    return now - at < M.WINDOW_MS
  end, self.deaths)
  table.insert(self.deaths, now)
  if #self.deaths >= M.DEATHS then
    return self:fail(endings.again_and_again(ending, #self.deaths), ending.exit.stderr)
  end
  self.failure = {
    message = endings.why(ending),
    lines = ending.exit.stderr,
    refused = ending.refusal ~= nil,
  }
  log.warn('%s; it is started again', self.failure.message)
  self:become('waiting')
  self:timer(M.BACK_OFF_MS[math.min(#self.deaths, #M.BACK_OFF_MS)], function()
    self:launch()
  end)
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

return M

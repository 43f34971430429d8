-- A supervisor's surroundings without processes and without time: servers that do what a spec says, and a clock
-- that goes when it is told to.
local M = {}

---@class callboard.tests.FakeClient
---@field cmd string[]
---@field sent { id: integer?, method: string, params: table? }[]
---@field signals string[]
---@field stopping boolean it was asked to end
---@field handlers callboard.rpc.Handlers
local Client = {}
Client.__index = Client

function Client:alive()
  return not self.ended
end

function Client:request(method, params, callback)
  self.last = self.last + 1
  table.insert(self.sent, { id = self.last, method = method, params = params, callback = callback })
  return self.last
end

function Client:notify(method, params)
  table.insert(self.sent, { method = method, params = params })
end

function Client:cancel(id)
  table.insert(self.sent, { method = '$/cancelRequest', params = { id = id } })
end

function Client:signal(name)
  table.insert(self.signals, name)
end

function Client:stop()
  self.stopping = true
end

function Client:leave(grace_ms)
  self.left = grace_ms
end

---The requests of a method, the oldest first; they are kept.
---@param method string
---@return table[]
function Client:requests(method)
  return vim.tbl_filter(function(message)
    return message.method == method
  end, self.sent)
end

---Answers the oldest request of a method that was not answered.
---@param method string
---@param result table|string|nil a word stands for an answer that says it
---@param err table?
function Client:answer(method, result, err)
  if type(result) == 'string' then
    result = { said = result }
  end
  for _, message in ipairs(self.sent) do
    if message.method == method and message.callback then
      local callback = message.callback
      message.callback = nil
      return callback(err, result)
    end
  end
  error('nobody asked for ' .. method)
end

---Answers `initialize` as Callboard does.
---@param handshake table?
function Client:greet(handshake)
  local callboard = vim.tbl_extend('force', {
    protocolVersion = '1.0',
    storeId = 'store',
    serverInfo = { version = '1' },
    features = {},
  }, handshake or {})
  self:answer('initialize', { capabilities = { experimental = { callboard = callboard } } })
end

---It ends.
---@param exit table?
function Client:exit(exit)
  self.ended = true
  self.handlers.exit(vim.tbl_extend('force', { code = 1, signal = 0, stderr = {} }, exit or {}))
end

---@class callboard.tests.FakeServers
---@field env callboard.rpc.Environment
---@field clients callboard.tests.FakeClient[] the newest last
---@field states string[] that the supervisor went through
---@field exits { code: integer, expected: boolean }[]
---@field faults string[] what callbacks threw
---@field greeted integer
---@field heard { [1]: string, [2]: table }[] notifications
---@field found callboard.rpc.Found?
---@field fault string? why none is found
---@field refuses string? why none can be started
local Servers = {}
Servers.__index = Servers

---@return callboard.tests.FakeServers
function M.new()
  local self = setmetatable({
    clients = {},
    states = {},
    exits = {},
    faults = {},
    greeted = 0,
    heard = {},
    time = 0,
    timers = {},
    found = { cmd = { '/bin/callboard', 'serve' }, how = 'PATH' },
  }, Servers)
  self.env = {
    locate = function()
      return self.found, self.fault
    end,
    start = function(cmd, handlers)
      if self.refuses then
        return nil, self.refuses
      end
      local client = setmetatable({
        cmd = cmd,
        handlers = handlers,
        sent = {},
        signals = {},
        last = 0,
        stopping = false,
        ended = false,
      }, Client)
      table.insert(self.clients, client)
      return client
    end,
    initialize = function()
      return { hello = true }
    end,
    cwd = function()
      return '/work'
    end,
    now = function()
      return self.time
    end,
    later = function(ms, fn)
      local timer = { at = self.time + ms, fn = fn }
      table.insert(self.timers, timer)
      return function()
        timer.fn = nil
      end
    end,
    changed = function()
      if self.supervisor then
        table.insert(self.states, self.supervisor.state)
      end
    end,
    ready = function()
      self.greeted = self.greeted + 1
      if self.on_ready then
        self.on_ready()
      end
    end,
    notification = function(method, params)
      table.insert(self.heard, { method, params })
    end,
    request = function() end,
    exited = function(exit, expected)
      table.insert(self.exits, { code = exit.code, expected = expected })
    end,
    guard = function(fn, ...)
      local ok, fault = pcall(fn, ...)
      if not ok then
        table.insert(self.faults, fault)
      end
    end,
  }
  self.supervisor = require('callboard.rpc.supervisor').new(self.env)
  return self
end

---The newest server.
---@return callboard.tests.FakeClient
function Servers:client()
  return assert(self.clients[#self.clients], 'no server was started')
end

---Timers that are to go off.
---@return integer[] in so many ms
function Servers:pending()
  local list = {}
  for _, timer in ipairs(self.timers) do
    if timer.fn then
      list[#list + 1] = timer.at - self.time
    end
  end
  table.sort(list)
  return list
end

---Time goes by.
---@param ms integer
function Servers:pass(ms)
  local ends = self.time + ms
  while true do
    local next_one
    for _, timer in ipairs(self.timers) do
      if timer.fn and timer.at <= ends and (not next_one or timer.at < next_one.at) then
        next_one = timer
      end
    end
    if not next_one then
      break
    end
    self.time = math.max(self.time, next_one.at)
    local fn = next_one.fn
    next_one.fn = nil
    fn()
  end
  self.time = ends
end

return M

-- One server process and the JSON-RPC that is spoken with it.
--
-- Not `vim.lsp.rpc.start`: that shows a traceback when a server prints something else than a frame, and keeps
-- the process's number and what it writes to stderr to itself; a person needs both to be helped.
local complaints = require('callboard.rpc.complaints')
local framing = require('callboard.rpc.framing')
local log = require('callboard.log')
local notify = require('callboard.notify')
local process = require('callboard.rpc.process')

local M = {}

---@class callboard.rpc.Handlers
---@field notification fun(method: string, params: table)
---@field request fun(method: string, params: table, reply: fun(result: table?, err: table?), id: any) Answers when it can.
---@field exit fun(exit: callboard.rpc.Exit) once, whatever ended it

---@class callboard.rpc.Exit
---@field code integer
---@field signal integer
---@field garbage string? what came in place of a frame
---@field stderr string[] its last lines

---@class callboard.rpc.Client
---@field pid integer
---@field private process callboard.rpc.Process
---@field private handlers callboard.rpc.Handlers
---@field private next_id integer
---@field private waiting table<integer, fun(err: table?, result: any)>
---@field private inbox (string|{ fault: string })[] bodies of messages that were read and not handled
---@field private first integer the oldest of them
---@field private last integer the newest of them
---@field private draining boolean
---@field private babbles boolean? what it writes are frames no more
---@field private garbage string? the first that was of no use
---@field private complaints callboard.rpc.Complaints what it writes to stderr
---@field private gone boolean its end was told
---@field private stopper uv.uv_timer_t?
local Client = {}
Client.__index = Client

---Messages are handled for so long (ms), and so many, before keys and drawing have their turn.
M.SLICE_MS, M.SLICE = 8, 500

---So many messages may wait to be handled; the server says no more until half of them are.
M.INBOX = 20000

local DECODE = { luanil = { object = true, array = true } }

---@param cmd string[]
---@param opts { cwd: string?, env: table<string, string>? }
---@param handlers callboard.rpc.Handlers
---@return callboard.rpc.Client?
---@return string? fault why it could not be started
function M.start(cmd, opts, handlers)
  local self = setmetatable({
    handlers = handlers,
    next_id = 0,
    waiting = {},
    inbox = {},
    first = 1,
    last = 0,
    draining = false,
    complaints = complaints.new(),
    gone = false,
  }, Client)
  local reader = framing.reader()
  local started, fault = process.spawn(cmd, opts, {
    stdout = function(chunk)
      self:read(reader, chunk)
    end,
    stderr = function(chunk)
      self.complaints:add(chunk)
    end,
    exit = function(code, signal)
      vim.schedule(function()
        self:exited(code, signal)
      end)
    end,
  })
  if not started then
    return nil, fault
  end
  self.process, self.pid = started, started.pid
  log.info('started %s as %d', table.concat(cmd, ' '), started.pid)
  return self
end

---@private
---@param reader callboard.rpc.Reader
---@param chunk string
function Client:read(reader, chunk)
  if self.babbles then
    return
  end
  local bodies, fault = reader:feed(chunk)
  if fault then
    -- Told in its turn: what came before it may be the first that is of no use.
    self.babbles = true
    table.insert(bodies, { fault = fault })
  end
  for _, body in ipairs(bodies) do
    self.last = self.last + 1
    self.inbox[self.last] = body
  end
  if self.last - self.first >= M.INBOX then
    self.process:hold(true)
  end
  if self.last >= self.first and not self.draining then
    self.draining = true
    vim.schedule(function()
      self:drain()
    end)
  end
end

---@private
---What it says is not the protocol: nothing more of it is of use.
---@param garbage string
function Client:refuse(garbage)
  self.garbage = self.garbage or garbage
  self:signal('sigterm')
  self:kill_in(2000)
end

---@private
---@return boolean more
function Client:handle_next()
  local body = self.inbox[self.first]
  if not body then
    return false
  end
  self.inbox[self.first] = nil
  self.first = self.first + 1
  if self.last - self.first < M.INBOX / 2 then
    self.process:hold(false)
  end
  if type(body) == 'table' then
    self:refuse(body.fault)
    return true
  end
  local ok, message = pcall(vim.json.decode, body, DECODE)
  if ok and type(message) == 'table' then
    self:handle(message)
  else
    self:refuse(body:sub(1, 200))
  end
  return true
end

---@private
function Client:drain()
  local ends, handled = vim.uv.hrtime() + M.SLICE_MS * 1e6, 0
  while self:handle_next() do
    handled = handled + 1
    if (handled >= M.SLICE or vim.uv.hrtime() > ends) and self.inbox[self.first] then
      -- A timer, not `schedule`: that one would come before the next key.
      vim.defer_fn(function()
        self:drain()
      end, 1)
      return
    end
  end
  self.draining = false
end

---@param err any as it came
---@return { code: integer, message: string?, data: table? }?
local function error_of(err)
  if err == nil then
    return nil
  elseif type(err) ~= 'table' then
    return { code = 0, message = tostring(err) }
  end
  return {
    code = type(err.code) == 'number' and err.code or 0,
    message = type(err.message) == 'string' and err.message or nil,
    data = type(err.data) == 'table' and err.data or nil,
  }
end

---@private
---@param message table
function Client:handle(message)
  local method = message.method
  local params = type(message.params) == 'table' and message.params or {}
  if method ~= nil and type(method) ~= 'string' then
    return log.warn('a message of the server has no name')
  end
  if method and message.id ~= nil then
    local id = message.id
    local answered = false
    local function reply(result, err)
      if not answered then
        answered = true
        self:send({ jsonrpc = '2.0', id = id, result = result, error = err })
      end
    end
    if not notify.guard(self.handlers.request, method, params, reply, id) then
      reply(nil, { code = -32603, message = ('the client failed at %s'):format(method) })
    end
  elseif method then
    notify.guard(self.handlers.notification, method, params)
  elseif message.id ~= nil then
    local callback = self.waiting[message.id]
    self.waiting[message.id] = nil
    if callback then
      notify.guard(callback, error_of(message.error), message.result)
    end
  end
end

---@private
---@param code integer
---@param signal integer
function Client:exited(code, signal)
  log.info('the server %d ended: code %d, signal %d', self.pid, code, signal)
  self:kill_in()
  -- What it had said before is heard first, however much it is.
  repeat
    local more = self:handle_next()
  until not more
  self.gone = true
  self.handlers.exit({
    code = code,
    signal = signal,
    garbage = self.garbage,
    stderr = self.complaints:lines(),
  })
end

---@private
---@param message table
---@return string? fault why it cannot be sent
function Client:send(message)
  local ok, body = pcall(vim.json.encode, message)
  if not ok then
    log.error('%s cannot be written: %s', message.method or 'an answer', body)
    return tostring(body)
  end
  self.process:write(framing.frame(body))
end

---@param method string
---@param params table?
---@param callback fun(err: table?, result: any) Not called when the process ends first: `exit` is.
---@return integer id
function Client:request(method, params, callback)
  if params and next(params) == nil then
    params = nil -- an empty table would go out as a list
  end
  self.next_id = self.next_id + 1
  local id = self.next_id
  self.waiting[id] = callback
  local fault =
    self:send({ jsonrpc = '2.0', id = id, method = method, params = params or vim.empty_dict() })
  if fault then
    self.waiting[id] = nil
    vim.schedule(function()
      callback({ code = -32602, message = fault, data = { kind = 'invalidParams' } })
    end)
  end
  return id
end

---@param method string
---@param params table?
function Client:notify(method, params)
  self:send({ jsonrpc = '2.0', method = method, params = params or vim.empty_dict() })
end

---Asks that a request is given up; its answer still comes.
---@param id integer
function Client:cancel(id)
  self:notify('$/cancelRequest', { id = id })
end

---@return boolean
function Client:alive()
  return not self.gone
end

---@param name string
function Client:signal(name)
  self.process:kill(name)
end

---@private
---@param ms integer? nil takes it back
function Client:kill_in(ms)
  if self.stopper then
    if not self.stopper:is_closing() then
      self.stopper:close()
    end
    self.stopper = nil
  end
  if ms and not self.gone then
    self.stopper = assert(vim.uv.new_timer())
    self.stopper:start(ms, 0, function()
      self.stopper:close()
      self:signal('sigkill')
    end)
  end
end

---Ends the server: `shutdown`, `exit`, and a kill when it has not gone after `grace_ms`. `exit` of the handlers
---tells of it.
---@param grace_ms integer
function Client:stop(grace_ms)
  if self.gone then
    return
  end
  self:request('shutdown', nil, function()
    self:notify('exit')
  end)
  self:kill_in(grace_ms)
end

---Ends the server while Neovim leaves: waits for at most `grace_ms`, since there is no later.
---@param grace_ms integer
function Client:leave(grace_ms)
  if self.process.ended then
    return
  end
  self:request('shutdown', nil, function() end)
  self:notify('exit')
  self.process:hang_up()
  vim.wait(grace_ms, function()
    return self.process.ended
  end, 5, true)
  self:signal('sigkill')
end

return M

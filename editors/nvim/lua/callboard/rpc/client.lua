-- One server process and the JSON-RPC that is spoken with it.
--
-- Not `vim.lsp.rpc.start`: that shows a traceback when a server prints something else than a frame, and keeps
-- the process's number and what it writes to stderr to itself; a person needs both to be helped.
local framing = require('callboard.rpc.framing')
local log = require('callboard.log')

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
---@field private process vim.SystemObj
---@field private handlers callboard.rpc.Handlers
---@field private next_id integer
---@field private waiting table<integer, fun(err: table?, result: any)>
---@field private inbox table[] messages that were read and not handled
---@field private draining boolean
---@field private garbage string?
---@field private stderr string[]
---@field private ended boolean
local Client = {}
Client.__index = Client

---Messages are handled for so long (ms) before keys and drawing have their turn.
local SLICE_MS = 8

local STDERR_LINES = 20

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
    draining = false,
    stderr = {},
    ended = false,
  }, Client)
  local reader = framing.reader()
  local ok, process = pcall(vim.system, cmd, {
    cwd = opts.cwd,
    env = opts.env,
    stdin = true,
    stdout = function(_, chunk)
      if chunk and not self.garbage then
        self:read(reader, chunk)
      end
    end,
    stderr = function(_, chunk)
      if chunk then
        self:complained(chunk)
      end
    end,
    -- A Ctrl-C in the terminal is Neovim's, not the server's.
    detach = vim.fn.has('win32') == 0,
  }, function(done)
    vim.schedule(function()
      self:exited(done)
    end)
  end)
  if not ok then
    return nil, tostring(process)
  end
  self.process, self.pid = process, process.pid
  log.info('started %s as %d', table.concat(cmd, ' '), process.pid)
  return self
end

---@private
---@param reader callboard.rpc.Reader
---@param chunk string
function Client:read(reader, chunk)
  local bodies, fault = reader:feed(chunk)
  for _, body in ipairs(bodies) do
    local ok, message = pcall(vim.json.decode, body, { luanil = { object = true, array = true } })
    if ok and type(message) == 'table' then
      self.inbox[#self.inbox + 1] = message
    else
      fault = fault or body:sub(1, 200)
    end
  end
  if fault then
    self.garbage = fault
    self:signal('sigterm')
  end
  if #self.inbox > 0 and not self.draining then
    self.draining = true
    vim.schedule(function()
      self:drain()
    end)
  end
end

---@private
function Client:drain()
  local began = vim.uv.hrtime()
  local inbox, at = self.inbox, 1
  self.inbox = {}
  while inbox[at] do
    self:handle(inbox[at])
    at = at + 1
    if (vim.uv.hrtime() - began) / 1e6 > SLICE_MS then
      break
    end
  end
  if inbox[at] or #self.inbox > 0 then
    local rest = vim.list_slice(inbox, at)
    self.inbox = vim.list_extend(rest, self.inbox)
    -- A timer, not `schedule`: that one would come before the next key.
    vim.defer_fn(function()
      self:drain()
    end, 1)
  else
    self.draining = false
  end
end

---@private
---@param message table
function Client:handle(message)
  if message.method and message.id ~= nil then
    local id = message.id
    local answered = false
    local function reply(result, err)
      if not answered then
        answered = true
        self:send({ jsonrpc = '2.0', id = id, result = result, error = err })
      end
    end
    self:guarded(self.handlers.request, message.method, message.params or {}, reply, id)
  elseif message.method then
    self:guarded(self.handlers.notification, message.method, message.params or {})
  elseif message.id ~= nil then
    local callback = self.waiting[message.id]
    self.waiting[message.id] = nil
    if callback then
      self:guarded(callback, message.error, message.result)
    end
  end
end

---@private
---A fault of ours goes to the log, and keeps nothing else from being handled.
---@param fn function
---@param ... any
function Client:guarded(fn, ...)
  local args, count = { ... }, select('#', ...)
  xpcall(function()
    fn(unpack(args, 1, count))
  end, function(fault)
    log.error('%s', debug.traceback(fault, 2))
    require('callboard.notify').warn(
      ('something went wrong in the plugin; it goes on. :Callboard log has the details (%s)'):format(
        tostring(fault):match('[^\n]*')
      )
    )
  end)
end

---@private
---@param chunk string
function Client:complained(chunk)
  for line in chunk:gmatch('[^\n]+') do
    log.debug('server: %s', line)
    table.insert(self.stderr, line)
    if #self.stderr > STDERR_LINES then
      table.remove(self.stderr, 1)
    end
  end
end

---@private
---@param done vim.SystemCompleted
function Client:exited(done)
  self.ended = true
  log.info('the server %d ended: code %d, signal %d', self.pid, done.code, done.signal)
  -- What it had said before is heard first.
  local inbox = self.inbox
  self.inbox = {}
  for _, message in ipairs(inbox) do
    self:handle(message)
  end
  self.handlers.exit({
    code = done.code,
    signal = done.signal,
    garbage = self.garbage,
    stderr = self.stderr,
  })
end

---@private
---@param message table
---@return boolean sent
function Client:send(message)
  if self.ended then
    return false
  end
  return (pcall(function()
    self.process:write(framing.frame(vim.json.encode(message)))
  end))
end

---@param method string
---@param params table?
---@param callback fun(err: table?, result: any) Not called when the process ends first: `exit` is.
---@return integer? id nil when it could not be sent
function Client:request(method, params, callback)
  if params and next(params) == nil then
    params = nil -- an empty table would go out as a list
  end
  self.next_id = self.next_id + 1
  local id = self.next_id
  self.waiting[id] = callback
  if
    not self:send({ jsonrpc = '2.0', id = id, method = method, params = params or vim.empty_dict() })
  then
    self.waiting[id] = nil
    return nil
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
  return not self.ended
end

---@param name string
function Client:signal(name)
  if not self.ended then
    pcall(self.process.kill, self.process, name)
  end
end

---Ends the server: `shutdown`, `exit`, and a kill when it has not gone after `grace_ms`. `exit` of the handlers
---tells of it.
---@param grace_ms integer
function Client:stop(grace_ms)
  if self.ended then
    return
  end
  self:request('shutdown', nil, function()
    self:notify('exit')
  end)
  vim.defer_fn(function()
    self:signal('sigkill')
  end, grace_ms)
end

---Ends the server while Neovim leaves: waits for at most `grace_ms`, since there is no later.
---@param grace_ms integer
function Client:leave(grace_ms)
  if self.ended then
    return
  end
  self:request('shutdown', nil, function() end)
  self:notify('exit')
  pcall(self.process.write, self.process, nil)
  pcall(self.process.wait, self.process, grace_ms)
end

return M

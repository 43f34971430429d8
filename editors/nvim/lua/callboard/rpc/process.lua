-- A child process with its three pipes.
--
-- Not `vim.system`: in 0.10 it closes the pipes as soon as the process has ended, and with them goes what the
-- process said last, which is what a person needs to know of a server that has crashed.
local M = {}

---A grandchild may hold the pipes open: so long (ms) what was written is waited for after the end.
M.LINGER_MS = 300
---One that closes a pipe and lives on is of no use: so long (ms) its end is waited for.
M.MUTE_MS = 2000

---@class callboard.rpc.ProcessHandlers All are called in callbacks of libuv.
---@field stdout fun(chunk: string)
---@field stderr fun(chunk: string)
---@field exit fun(code: integer, signal: integer) once, after all that was written

---@class callboard.rpc.Process
---@field pid integer
---@field ended boolean the process is gone
---@field private handle uv.uv_process_t
---@field private stdin uv.uv_pipe_t
---@field private muted uv.uv_timer_t?
---@field private resume fun()
---@field private stdout uv.uv_pipe_t
---@field private held boolean? nothing is read of what it says
local Process = {}
Process.__index = Process

---@param added table<string, string|number>?
---@return string[]
local function environment(added)
  local all = vim.uv.os_environ()
  all.NVIM_LISTEN_ADDRESS = nil -- another Neovim that a tool starts is to have one of its own
  for name, value in pairs(added or {}) do
    all[name] = tostring(value)
  end
  local list = {}
  for name, value in pairs(all) do
    list[#list + 1] = name .. '=' .. value
  end
  return list
end

---@param handle uv.uv_handle_t?
local function close(handle)
  if handle and not handle:is_closing() then
    handle:close()
  end
end

---@param cmd string[] the first is a path
---@param opts { cwd: string?, env: table<string, string>? }
---@param handlers callboard.rpc.ProcessHandlers
---@return callboard.rpc.Process?
---@return string? fault
function M.spawn(cmd, opts, handlers)
  local stdin, stdout, stderr =
    assert(vim.uv.new_pipe()), assert(vim.uv.new_pipe()), assert(vim.uv.new_pipe())
  local self = setmetatable({ stdin = stdin, stdout = stdout, ended = false }, Process)
  local open, status, linger, over = 2, nil, nil, false

  local function finish()
    if over then
      return
    end
    over = true
    for _, each in ipairs({ stdin, stdout, stderr, linger }) do
      close(each)
    end
    close(self.muted)
    handlers.exit(status.code, status.signal)
  end

  local function exited(code, signal)
    self.ended, status = true, { code = code, signal = signal }
    close(self.handle)
    self:hold(false)
    if open == 0 then
      return finish()
    end
    linger = assert(vim.uv.new_timer())
    linger:start(M.LINGER_MS, 0, finish)
  end

  local function read(pipe, handler)
    pipe:read_start(function(fault, chunk)
      if chunk then
        return handler(chunk)
      end
      pipe:read_stop()
      open = fault and 0 or open - 1
      if open == 0 and status then
        finish()
      elseif pipe == stdout then
        self.resume = function() end
        self:mute()
      end
    end)
  end

  local handle, pid = vim.uv.spawn(cmd[1], {
    args = vim.list_slice(cmd, 2),
    stdio = { stdin, stdout, stderr },
    cwd = opts.cwd,
    env = environment(opts.env),
    -- A Ctrl-C in the terminal is Neovim's, not the server's.
    detached = vim.fn.has('win32') == 0,
    hide = true,
  }, exited)
  if not handle then
    for _, pipe in ipairs({ stdin, stdout, stderr }) do
      close(pipe)
    end
    return nil, tostring(pid)
  end
  self.handle, self.pid = handle, pid --[[@as integer]]
  self.resume = function()
    read(stdout, handlers.stdout)
  end
  self.resume()
  read(stderr, handlers.stderr)
  return self
end

---@private
---It says nothing, or hears nothing, any more.
function Process:mute()
  if not self.ended and not self.muted then
    self.muted = assert(vim.uv.new_timer())
    self.muted:start(M.MUTE_MS, 0, function()
      self:kill('sigkill')
    end)
  end
end

---@param data string
function Process:write(data)
  if not self.stdin:is_closing() then
    self.stdin:write(data, function(fault)
      if fault then
        self:mute()
      end
    end)
  end
end

---Reads nothing more of what it says until it may: whoever says more than can be heard has to wait.
---@param held boolean
function Process:hold(held)
  if held == (self.held or false) or self.stdout:is_closing() then
    return
  end
  self.held = held
  if held then
    self.stdout:read_stop()
  else
    self.resume()
  end
end

---No more will be written: a server takes that for its end.
function Process:hang_up()
  if not self.stdin:is_closing() then
    self.stdin:shutdown(function()
      close(self.stdin)
    end)
  end
end

---@param signal string
function Process:kill(signal)
  if not self.ended then
    self.handle:kill(signal)
  end
end

return M

-- What joins the server's supervisor with this editor: its clock, its options, and whom to tell.
local config = require('callboard.config')
local events = require('callboard.events')
local notify = require('callboard.notify')

local M = {}

---@param ms integer
---@param fn fun()
---@return fun() cancel
local function later(ms, fn)
  local timer = assert(vim.uv.new_timer())
  local function close()
    if not timer:is_closing() then
      timer:close()
      return true
    end
  end
  timer:start(
    ms,
    0,
    vim.schedule_wrap(function()
      if close() then
        notify.guard(fn)
      end
    end)
  )
  return close
end

---@return string
local function cwd()
  return vim.uv.cwd() or '.'
end

---What this editor tells of itself.
---@param client_id string
---@return table
local function introduction(client_id)
  local folder = cwd()
  local uri = vim.uri_from_fname(folder)
  local info = { name = 'Neovim', version = tostring(vim.version()) }
  return {
    processId = vim.uv.os_getpid(),
    clientInfo = info,
    rootUri = uri,
    workspaceFolders = { { uri = uri, name = vim.fs.basename(folder) } },
    capabilities = vim.empty_dict(),
    initializationOptions = {
      callboard = {
        protocolVersions = { require('callboard.protocol').PROTOCOL_VERSION },
        clientId = client_id,
        clientInfo = info,
        capabilities = { approvals = true, deltas = true, readFile = true },
      },
    },
  }
end

---The supervisor of an app.
---@param app callboard.App
---@return callboard.rpc.Supervisor
function M.supervisor(app)
  return require('callboard.rpc.supervisor').new({
    locate = function()
      local options = config.get().server
      if options.cwd and vim.fn.isdirectory(options.cwd) == 0 then
        return nil,
          ('server.cwd is %s, which is no folder. Correct the option.'):format(options.cwd)
      end
      return require('callboard.rpc.locate').find(options, cwd())
    end,
    start = function(cmd, handlers)
      local options = config.get().server
      local opts = { cwd = options.cwd, env = options.env }
      return require('callboard.rpc.client').start(cmd, opts, handlers)
    end,
    initialize = function()
      return introduction(app.client_id)
    end,
    cwd = cwd,
    now = vim.uv.now,
    later = later,
    guard = notify.guard,
    changed = function()
      app:server_changed()
    end,
    ready = function(handshake)
      app:ready(handshake)
    end,
    notification = function(method, params)
      app:notification(method, params)
    end,
    request = function(method, params, reply, id)
      app.questions:asked(method, params, reply, id)
    end,
    exited = function(exit, expected)
      app.questions:forget()
      events.emit(
        'CallboardServerExit',
        { code = exit.code, signal = exit.signal, expected = expected }
      )
    end,
  })
end

return M

-- The plugin's own log: a file, opened with the first line that goes to it.
local M = {}

local LEVELS = { trace = 0, debug = 1, info = 2, warn = 3, error = 4, off = 5 }

---Beyond this (bytes) the file is begun anew when it is opened; the last one stays beside it.
local LIMIT = 4 * 1024 * 1024

---@type file*|false|nil
local file

---@return string
function M.path()
  return vim.fs.joinpath(vim.fn.stdpath('log') --[[@as string]], 'callboard.log')
end

---@return file*|false
local function open()
  local path = M.path()
  -- A folder that cannot be written is no reason for anything but the log to fail.
  pcall(vim.fn.mkdir, vim.fs.dirname(path), 'p')
  local stat = vim.uv.fs_stat(path)
  if stat and stat.size > LIMIT then
    vim.uv.fs_rename(path, path .. '.old')
  end
  return io.open(path, 'a') or false
end

---@param level 'trace'|'debug'|'info'|'warn'|'error'
---@param text string
local function write(level, text)
  if LEVELS[level] < (LEVELS[require('callboard.config').get().log.level] or 2) then
    return
  end
  if file == nil then
    file = open()
  end
  if file then
    file:write(('%s %d %-5s %s\n'):format(os.date('%H:%M:%S'), vim.uv.os_getpid(), level, text))
    file:flush()
  end
end

---@param format string
---@param ... any
local function line(level, format, ...)
  local text = select('#', ...) > 0 and format:format(...) or format
  -- Options, the log's folder and its file are not to be asked for in a callback of libuv.
  if vim.in_fast_event() then
    vim.schedule(function()
      write(level, text)
    end)
  else
    write(level, text)
  end
end

for level in pairs(LEVELS) do
  if level ~= 'off' then
    M[level] = function(format, ...)
      line(level, format, ...)
    end
  end
end

return M

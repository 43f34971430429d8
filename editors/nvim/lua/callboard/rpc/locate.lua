-- Where the server is: the option, the folder's virtual environment, PATH, a Python that has it.
local M = {}

---@class callboard.rpc.Found
---@field cmd string[]
---@field how string in words
---@field guess boolean? whether it has Callboard shows when it is started

---@class callboard.rpc.Finding
---@field executable fun(name: string): string? the whole path of a program that can be run
---@field exists fun(path: string): boolean

---@type callboard.rpc.Finding
M.system = {
  executable = function(name)
    local path = vim.fn.exepath(name)
    return path ~= '' and path or nil
  end,
  exists = function(path)
    return vim.uv.fs_stat(path) ~= nil
  end,
}

local WINDOWS = vim.fn.has('win32') == 1

---The virtual environments that a folder, or one above it, may have.
---@param cwd string
---@return string[]
local function environments(cwd)
  local folders = { cwd }
  for parent in vim.fs.parents(cwd) do
    folders[#folders + 1] = parent
  end
  local programs = {}
  for _, folder in ipairs(folders) do
    for _, name in ipairs({ '.venv', 'venv' }) do
      programs[#programs + 1] = WINDOWS
          and vim.fs.joinpath(folder, name, 'Scripts', 'callboard.exe')
        or vim.fs.joinpath(folder, name, 'bin', 'callboard')
    end
  end
  return programs
end

---Finds the command line of the server.
---@param options callboard.ServerOptions
---@param cwd string the folder that the editor works in
---@param finding callboard.rpc.Finding?
---@return callboard.rpc.Found?
---@return string? fault what was tried, and the way out
function M.find(options, cwd, finding)
  finding = finding or M.system
  if options.cmd then
    local program = vim.fn.expand(options.cmd[1])
    local path = finding.executable(program)
    if not path then
      return nil,
        ('server.cmd names %s, which is not there or cannot be run. Correct the option, or leave it out.'):format(
          options.cmd[1]
        )
    end
    return { cmd = vim.list_extend({ path }, options.cmd, 2), how = 'server.cmd' }
  end
  for _, program in ipairs(environments(cwd)) do
    if finding.exists(program) and finding.executable(program) then
      return { cmd = { program, 'serve' }, how = 'the virtual environment of this folder' }
    end
  end
  local path = finding.executable('callboard')
  if path then
    return { cmd = { path, 'serve' }, how = 'PATH' }
  end
  local python = finding.executable('python3') or finding.executable('python')
  if python then
    return {
      cmd = { python, '-m', 'callboard', 'serve' },
      how = 'a Python that may have it',
      guess = true,
    }
  end
  return nil, M.missing(cwd)
end

---@param cwd string
---@return string
function M.missing(cwd)
  return (
    'the server was not found: no .venv or venv with it in %s or above, no `callboard` on PATH, and no Python that has it. '
    .. 'Install it (pip install callboard), or name it: vim.g.callboard = { server = { cmd = { "/path/to/callboard", "serve" } } }'
  ):format(cwd)
end

return M

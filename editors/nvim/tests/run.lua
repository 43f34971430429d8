--- Runs specs with busted inside Neovim, in front of the plugin of this checkout:
---
---   nvim --clean -l editors/nvim/tests/run.lua [busted's options] [files or folders]
---
--- Without files: all of tests/spec. Exit code 1 when a spec fails. busted is taken from the .tools
--- of this checkout (`make tools`), else from where systems and luarocks put it.

local here = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)))
local plugin = vim.fs.dirname(here)
local checkout = vim.fs.dirname(vim.fs.dirname(plugin))

--- Where Lua modules are looked for, the nearest first.
local prefixes = { checkout .. '/.tools/lua/usr', '/usr', '/usr/local', '/opt/homebrew' }

for index = #prefixes, 1, -1 do
  local prefix = prefixes[index]
  local share = prefix .. '/share/lua/5.1/'
  package.path = share .. '?.lua;' .. share .. '?/init.lua;' .. package.path
  local folders = vim.fn.glob(prefix .. '/lib/*/lua/5.1', true, true)
  table.insert(folders, prefix .. '/lib/lua/5.1')
  for _, folder in ipairs(folders) do
    package.cpath = folder .. '/?.so;' .. package.cpath
  end
end
package.path = here .. '/?.lua;' .. here .. '/?/init.lua;' .. package.path

local found, runner = pcall(require, 'busted.runner')
if not found then
  local missing = tostring(runner):match("module '(.-)' not found") or tostring(runner)
  io.stderr:write(missing, ' is not installed: `make tools` brings it\n')
  os.exit(1)
end

vim.opt.runtimepath:prepend(plugin)
vim.o.swapfile = false
vim.o.shadafile = 'NONE'
local named = vim.iter(ipairs(arg)):any(function(_, argument)
  return argument:find('/', 1, true) or vim.endswith(argument, '.lua')
end)
if not named then
  table.insert(arg, here .. '/spec')
end

-- busted ends a run that failed by an error without a message; Neovim would show it as one of its own.
local passed, fault = pcall(function()
  runner({ standalone = false })
end)
if not passed then
  io.stderr:write(fault and (tostring(fault) .. '\n') or '')
  os.exit(1)
end

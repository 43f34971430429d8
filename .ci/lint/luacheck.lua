-- Runs luacheck of .tools/lua inside Neovim: `nvim --clean -l .ci/lint/luacheck.lua [its arguments]`.
local here = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)))
local tools = vim.fs.dirname(vim.fs.dirname(here)) .. '/.tools/lua/usr'

package.path = tools .. '/share/lua/5.1/?.lua;' .. tools .. '/share/lua/5.1/?/init.lua;' .. package.path
for _, folder in ipairs(vim.fn.glob(tools .. '/lib/*/lua/5.1', true, true)) do
  package.cpath = folder .. '/?.so;' .. package.cpath
end
require('luacheck.main')

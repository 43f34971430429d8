std = 'luajit'
read_globals = { 'vim' }
-- What the editor lets one set; everything else of `vim` is only called.
globals = { 'vim.g', 'vim.v', 'vim.b', 'vim.w', 'vim.t', 'vim.o', 'vim.bo', 'vim.wo', 'vim.go', 'vim.opt', 'vim.env' }
max_line_length = false -- stylua decides about lines
self = false
exclude_files = { 'lua/callboard/protocol.lua' } -- nothing but annotations, generated

files['tests'] = { std = '+busted', globals = { 'vim' } }

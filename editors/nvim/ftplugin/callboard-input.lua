-- What is written to an agent is mostly prose, and may be markdown.
vim.bo.textwidth = 0
vim.bo.commentstring = ''
pcall(vim.treesitter.start, 0, 'markdown')

-- Markdown in colour, where Neovim has its parser. Nothing is hidden: what is said stands there as it is.
local loaded = pcall(vim.treesitter.start, 0, 'markdown')
if not loaded then
  vim.bo.syntax = 'off'
end

-- What is said is coloured by the chat itself, message by message (ui/markdown.lua).
vim.bo.textwidth = 0

-- Callboard: agents in the editor. What users and other plugins may call; the rest is ours.
local M = {}

---Sets options; without it the defaults hold, or `vim.g.callboard`. See |callboard-options|.
---@param opts table?
function M.setup(opts)
  require('callboard.config').setup(opts)
end

---One line for a statusline; empty while there is nothing to tell. It is cached: asking costs nothing.
---@return string
function M.status()
  return require('callboard.status').text()
end

---What the statusline tells, as values.
---@return callboard.Status
function M.status_table()
  return require('callboard.status').get()
end

---Does what `:Callboard {sub}` does.
---@param sub string
---@param args string[]?
function M.run(sub, args)
  require('callboard.commands').invoke(sub, args)
end

return M

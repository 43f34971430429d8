-- Picks by `vim.ui.select`: whatever the user has put there, else Neovim's numbered list.
local M = {}

---@return boolean
function M.installed()
  return true
end

---Whether somebody has put something in the place of Neovim's own.
---@return boolean
function M.replaced()
  local source = debug.getinfo(vim.ui.select, 'S').source:gsub('\\', '/')
  return not source:find('vim/ui%.lua$')
end

---@param opts callboard.Pick
function M.pick(opts)
  local lines = {}
  for i, line in ipairs(require('callboard.pickers').lines(opts)) do
    lines[opts.items[i]] = line
  end
  vim.ui.select(opts.items, {
    prompt = opts.title,
    kind = 'callboard',
    format_item = function(item)
      return lines[item]
    end,
  }, function(item)
    if item ~= nil then
      opts.on_choice(item)
    end
  end)
end

return M

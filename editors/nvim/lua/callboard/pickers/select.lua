-- Picks by `vim.ui.select`: whatever the user has put there, else Neovim's numbered list.
local M = {}

---Whether somebody has put something in the place of Neovim's own.
---@return boolean
function M.installed()
  local source = debug.getinfo(vim.ui.select, 'S').source:gsub('\\', '/')
  return not source:find('vim/ui%.lua$')
end

---@param opts callboard.Pick
function M.pick(opts)
  vim.ui.select(opts.items, {
    prompt = opts.title,
    kind = 'callboard',
    format_item = function(item)
      local heading = opts.heading and opts.heading(item)
      return heading and ('%s: %s'):format(heading, opts.format(item)) or opts.format(item)
    end,
  }, function(item)
    if item ~= nil then
      opts.on_choice(item)
    end
  end)
end

return M

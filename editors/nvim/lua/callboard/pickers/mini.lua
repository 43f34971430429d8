-- Picks by mini.pick.
local M = {}

---It has to be set up by the user; then there is a global table.
---@return boolean
function M.installed()
  return pcall(require, 'mini.pick') and _G.MiniPick ~= nil
end

---@return boolean
function M.preferred()
  return _G.MiniPick ~= nil
end

---@param opts callboard.Pick
function M.pick(opts)
  local pick = require('mini.pick')
  local lines = require('callboard.pickers').lines(opts)
  local items = {}
  for i, item in ipairs(opts.items) do
    items[i] = { text = lines[i], item = item }
  end
  -- What is done is done after the picker has gone: it may open a window, or ask something itself.
  local then_do
  local mappings = {}
  for name, action in pairs(opts.actions or {}) do
    mappings['callboard_' .. name] = {
      char = ('<C-%s>'):format(action.key),
      func = function()
        local current = (pick.get_picker_matches() or {}).current
        if current then
          then_do = function()
            action.fn(current.item)
          end
        end
        return true
      end,
    }
  end
  pick.start({
    source = {
      name = opts.title,
      items = items,
      preview = function(buf, item)
        vim.api.nvim_buf_set_lines(
          buf,
          0,
          -1,
          false,
          opts.preview and opts.preview(item.item) or { item.text }
        )
      end,
      choose = function(item)
        then_do = function()
          opts.on_choice(item.item)
        end
      end,
    },
    mappings = mappings,
  })
  if then_do then
    vim.schedule(then_do)
  end
end

return M

-- Picks by the picker of snacks.nvim.
local M = {}

---@return boolean
function M.installed()
  local found, snacks = pcall(require, 'snacks')
  return found and snacks.picker ~= nil
end

---It comes with much else; whoever wants it for picking switches it on.
---@return boolean
function M.preferred()
  local found, snacks = pcall(require, 'snacks')
  return found and vim.tbl_get(snacks, 'config', 'picker', 'enabled') == true
end

---@param opts callboard.Pick
function M.pick(opts)
  local lines = require('callboard.pickers').lines(opts)
  local items = {}
  for i, item in ipairs(opts.items) do
    items[i] = {
      text = lines[i],
      callboard = item,
      preview = opts.preview and { text = table.concat(opts.preview(item), '\n'), loc = false }
        or nil,
    }
  end
  local function with_item(fn)
    return function(picker, item)
      picker:close()
      if item then
        vim.schedule(function()
          fn(item.callboard)
        end)
      end
    end
  end
  local actions, keys = {}, {}
  for name, action in pairs(opts.actions or {}) do
    local own = 'callboard_' .. name
    actions[own] = with_item(action.fn)
    keys[('<c-%s>'):format(action.key)] =
      { own, mode = { 'n', 'i' }, nowait = true, desc = action.desc }
  end
  require('snacks').picker.pick({
    title = opts.title,
    items = items,
    format = function(item)
      return { { item.text } }
    end,
    preview = opts.preview and 'preview' or nil,
    layout = not opts.preview and { preset = 'select' } or nil,
    confirm = with_item(opts.on_choice),
    actions = actions,
    win = { input = { keys = keys }, list = { keys = keys } },
  })
end

return M

-- Picks from a list in a window of its own: what there is without any plugin. `/` searches in it as anywhere.
local M = {}

---@return boolean
function M.installed()
  return true
end

---@param opts callboard.Pick
---@return callboard.Line[]
local function lines_of(opts)
  local lines = { { { opts.title, 'CallboardHeading' } } }
  local heading
  for _, item in ipairs(opts.items) do
    local own = opts.heading and opts.heading(item)
    if own and own ~= heading then
      lines[#lines + 1] = { { own, 'CallboardState' } }
    end
    heading = own
    lines[#lines + 1] = { { (own and '  ' or ' ') .. opts.format(item) }, target = { item = item } }
  end
  return lines
end

---@param opts callboard.Pick
function M.pick(opts)
  local page
  local function act(fn)
    return function()
      local target = page:target()
      if target then
        page:close()
        fn(target.item)
      end
    end
  end
  page = require('callboard.ui.page').new({
    name = 'callboard://pick',
    filetype = 'callboard-list',
    same = function(target)
      return target.item
    end,
    keys = function()
      local keys = { { action = 'open', lhs = '<CR>', desc = 'Choose', fn = act(opts.on_choice) } }
      for name, action in vim.spairs(opts.actions or {}) do
        keys[#keys + 1] =
          { action = name, lhs = action.key, desc = action.desc, fn = act(action.fn) }
      end
      return keys
    end,
  })
  local lines = lines_of(opts)
  page:show(('botright %dsplit'):format(math.max(3, math.min(#lines, 15))))
  page:draw(lines)
  for row, line in ipairs(lines) do
    if line.target then
      vim.api.nvim_win_set_cursor(0, { row, 0 })
      break
    end
  end
end

return M

-- Lines to be read in a float that `q`, `<Esc>` and leaving it close.
local M = {}

local BUFFER = vim.fn.has('nvim-0.12') == 1 and 'buf' or 'buffer'

---@param title string
---@param shown callboard.Line[]
---@param filetype string
---@return integer win
function M.open(title, shown, filetype)
  require('callboard.ui.highlights').setup()
  local lines = require('callboard.ui.lines')
  title = require('callboard.model.text').one_line(title, math.max(20, vim.o.columns - 12))
  local width = vim.fn.strdisplaywidth(title) + 4
  for _, line in ipairs(shown) do
    width = math.max(width, vim.fn.strdisplaywidth(lines.text(line)) + 1)
  end
  width = math.max(1, math.min(width, vim.o.columns - 4))
  local height = 0
  for _, line in ipairs(shown) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(lines.text(line)) / width))
  end
  height = math.max(1, math.min(height, vim.o.lines - 6))
  local buf = vim.api.nvim_create_buf(false, true)
  lines.set(buf, 0, -1, shown)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].filetype = filetype
  local win = vim.api.nvim_open_win(buf, true, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = width,
    height = height,
    style = 'minimal',
    border = 'rounded',
    title = (' %s '):format(title),
  })
  vim.api.nvim_set_option_value('wrap', true, { win = win, scope = 'local' })
  local function close()
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
  end
  for _, lhs in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', lhs, close, { [BUFFER] = buf, nowait = true })
  end
  vim.api.nvim_create_autocmd('WinLeave', { buffer = buf, once = true, callback = close })
  return win
end

return M

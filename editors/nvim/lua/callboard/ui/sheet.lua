-- A float with all of something, to be read: `q`, `<Esc>` or leaving it closes it.
local M = {}

local BUFFER = vim.fn.has('nvim-0.12') == 1 and 'buf' or 'buffer'

---@param title string
---@param shown callboard.Line[]
function M.show(title, shown)
  local lines = require('callboard.ui.lines')
  local text = require('callboard.model.text')
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].filetype = 'callboard-sheet'
  lines.set(buf, 0, -1, shown)
  vim.bo[buf].modifiable = false
  local most = math.max(20, math.min(100, vim.o.columns - 4))
  local width, height = 30, 0
  for _, line in ipairs(shown) do
    width = math.max(width, vim.fn.strdisplaywidth(lines.text(line)))
  end
  width = math.min(width, most)
  for _, line in ipairs(shown) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(lines.text(line)) / width))
  end
  height = math.max(1, math.min(height, vim.o.lines - 6))
  local win = vim.api.nvim_open_win(buf, true, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = width,
    height = height,
    style = 'minimal',
    border = 'rounded',
    title = (' %s '):format(text.one_line(title, width - 4)),
  })
  require('callboard.ui.buffers').window_options(win, { wrap = true, linebreak = true })
  local function close()
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
  end
  for _, lhs in ipairs({ 'q', '<Esc>', '<CR>' }) do
    vim.keymap.set('n', lhs, close, { [BUFFER] = buf, nowait = true })
  end
  vim.api.nvim_create_autocmd('WinLeave', { buffer = buf, once = true, callback = close })
end

return M

-- One line of text from the person, without keeping the editor: a small float that `<CR>` ends.
local M = {}

local BUFFER = vim.fn.has('nvim-0.12') == 1 and 'buf' or 'buffer'

---@param opts { title: string, default: string? }
---@param done fun(text: string?) nil when it was left with `<Esc>` in normal mode, `<C-c>` or `q`
function M.line(opts, done)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].filetype = 'callboard-ask'
  local default = require('callboard.model.text').one_line(opts.default or '')
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { default })
  local title =
    require('callboard.model.text').one_line(opts.title, math.max(20, vim.o.columns - 12))
  local width = math.max(40, vim.fn.strdisplaywidth(title) + 4, math.min(#default + 10, 100))
  width = math.min(width, vim.o.columns - 4)
  local from = vim.api.nvim_get_current_win()
  local win = vim.api.nvim_open_win(buf, true, {
    relative = 'editor',
    row = math.max(0, math.floor(vim.o.lines / 3)),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = width,
    height = 1,
    style = 'minimal',
    border = 'rounded',
    title = (' %s '):format(title),
  })
  local over = false
  local function finish(text)
    if over then
      return
    end
    over = true
    vim.cmd.stopinsert()
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
    if vim.api.nvim_win_is_valid(from) then
      vim.api.nvim_set_current_win(from)
    end
    vim.schedule(function()
      done(text)
    end)
  end
  local function accept()
    finish(table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), ' '))
  end
  vim.keymap.set({ 'n', 'i' }, '<CR>', accept, { [BUFFER] = buf })
  vim.keymap.set({ 'n', 'i' }, '<C-c>', function()
    finish(nil)
  end, { [BUFFER] = buf })
  for _, lhs in ipairs({ '<Esc>', 'q' }) do
    vim.keymap.set('n', lhs, function()
      finish(nil)
    end, { [BUFFER] = buf, nowait = true })
  end
  vim.api.nvim_create_autocmd('WinLeave', {
    buffer = buf,
    once = true,
    callback = function()
      finish(nil)
    end,
  })
  vim.cmd.startinsert({ bang = true })
end

return M

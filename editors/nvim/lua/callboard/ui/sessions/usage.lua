-- Tokens and cost in a float.
local notify = require('callboard.notify')

local M = {}

local BUFFER = vim.fn.has('nvim-0.12') == 1 and 'buf' or 'buffer'

---@param title string
---@param lines string[]
local function float(title, lines)
  require('callboard.ui.highlights').setup()
  local width = 40
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.min(width, vim.o.columns - 4)
  local height = math.max(1, math.min(#lines, vim.o.lines - 6))
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].filetype = 'callboard-usage'
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
  vim.wo[win].wrap = false
  local mark = require('callboard.ui.lines').namespace
  vim.api.nvim_buf_set_extmark(buf, mark, 0, 0, { end_col = #lines[1], hl_group = 'CallboardHeading' })
  local function close()
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
  end
  for _, lhs in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', lhs, close, { [BUFFER] = buf, nowait = true })
  end
  vim.api.nvim_create_autocmd('WinLeave', { buffer = buf, once = true, callback = close })
end

---@param id string
function M.run(id)
  local app = require('callboard.app').get()
  app:request('session/usage', { sessionId = id, limit = 1 }, function(err, result)
    if err then
      return notify.failed('look up the usage', err)
    end
    local name = require('callboard.ui.sessions').called(id)
    float(('Usage of %s'):format(name), require('callboard.model.usage').lines(result, app.sessions.by_id[id]))
  end)
end

return M

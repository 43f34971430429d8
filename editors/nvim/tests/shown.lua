-- A view in a window, without a server: for specs of what a chat shows.
local M = {}

---@param transcript callboard.Transcript
---@param session callboard.Session?
---@return callboard.Look
function M.look(transcript, session)
  session = session or { profile = 'default' }
  return {
    icons = 'text',
    fold_lines = 25,
    agent = session.parentId and session.title or session.profile,
    parent = session.parentId,
    room = #(session.members or {}) > 0,
    speakers = transcript.speakers,
    cwd = '/project',
  }
end

---@class callboard.tests.Shown
---@field view callboard.View
---@field buf integer
---@field win integer
---@field tail callboard.TailState

---@param transcript callboard.Transcript
---@param opts { max_items: integer?, tail: table?, session: callboard.Session? }?
---@return callboard.tests.Shown
function M.show(transcript, opts)
  opts = opts or {}
  local buf = vim.api.nvim_create_buf(false, true)
  local shown = { buf = buf }
  shown.tail = vim.tbl_extend('force', {
    transcript = transcript,
    outbox = { sending = {} },
    phase = 'live',
    server = 'ready',
    late = false,
    approvals = {},
    keys = { edit = 'e', drop = 'x', steer = 's' },
    cwd = '/project',
  }, opts.tail or {})
  vim.cmd('tabnew')
  shown.win = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(shown.win, buf)
  vim.wo[shown.win].foldmethod = 'manual'
  vim.wo[shown.win].foldtext = ''
  shown.view = require('callboard.ui.view').new({
    buf = buf,
    debounce_ms = 0,
    max_items = opts.max_items or 200,
    look = function()
      return M.look(shown.view.transcript, opts.session)
    end,
    top = function(hidden)
      if hidden == 0 then
        return {}
      end
      return { { { ('▲ %d earlier; <CR> loads'):format(hidden) }, target = { kind = 'older' } } }
    end,
    tail = function()
      return require('callboard.ui.tail').lines(shown.tail)
    end,
  }, transcript)
  vim.bo[buf].modifiable = false
  shown.view:reset()
  shown.view:flush()
  function shown.lines()
    return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  end
  function shown.text()
    return table.concat(shown.lines(), '\n')
  end
  function shown.close()
    shown.view:close()
    vim.api.nvim_buf_delete(buf, { force = true })
    vim.cmd('silent! tabonly! | silent! only!')
  end
  return shown
end

return M

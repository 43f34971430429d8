-- What happens to the buffers and windows of a chat by other hands: `:q`, `:bdelete`, `:split`, a session of Vim
-- that is restored, a person who comes from a file.
local context = require('callboard.context')
local layout = require('callboard.ui.layout')

local M = {}

---@param chat callboard.Conversation
---@param gone fun()
local function on_end(chat, gone)
  local over = false
  local function finish()
    if over then
      return
    end
    over = true
    gone()
    vim.schedule(function()
      for _, each in ipairs({ chat.buf, chat.input.buf }) do
        if vim.api.nvim_buf_is_valid(each) then
          vim.api.nvim_buf_delete(each, { force = true })
        end
      end
    end)
  end
  vim.api.nvim_create_autocmd({ 'BufUnload', 'BufWipeout' }, {
    buffer = chat.buf,
    callback = function(event)
      if over or vim.v.exiting ~= vim.NIL then
        return
      elseif event.event == 'BufWipeout' then
        return finish()
      end
      vim.schedule(function()
        if over or not vim.api.nvim_buf_is_loaded(chat.buf) then
          finish()
        else
          chat.view:reset() -- `:edit` has emptied it
        end
      end)
    end,
  })
end

---Where the person was before they came to the input.
---@return integer? buf
local function before()
  local win = vim.fn.win_getid(vim.fn.winnr('#'))
  local buf = win ~= 0 and vim.api.nvim_win_get_buf(win) or nil
  return buf and context.is_file(buf) and buf or nil
end

---@param chat callboard.Conversation
---@param gone fun() its buffers are no more
function M.watch(chat, gone)
  on_end(chat, gone)
  vim.api.nvim_create_autocmd('BufWinLeave', {
    buffer = chat.buf,
    callback = function()
      local only = vim.api.nvim_get_current_buf() == chat.input.buf
      vim.schedule(function()
        -- `:only` in the input is for the chat as a whole.
        if not (only and layout.rejoin(chat.input.buf, chat.buf)) then
          layout.close_lonely(chat.input.buf, chat.buf)
        end
      end)
    end,
  })
  vim.api.nvim_create_autocmd('BufWinEnter', {
    buffer = chat.buf,
    callback = function()
      M.dress(chat)
    end,
  })
  vim.api.nvim_create_autocmd('BufEnter', {
    buffer = chat.input.buf,
    callback = function()
      local buf = before()
      if buf and chat.chips:come_from(buf) then
        chat.bars:draw()
      end
    end,
  })
end

---Gives the windows that show a chat already what they need.
---@param chat callboard.Conversation
function M.dress(chat)
  for kind, buf in pairs({ chat = chat.buf, input = chat.input.buf }) do
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      layout.dress(win, kind)
    end
  end
  require('callboard.ui.folds').make(chat.view)
  chat.bars:draw()
end

return M

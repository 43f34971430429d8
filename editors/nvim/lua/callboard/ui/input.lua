-- The input below a chat: an ordinary buffer, in which all of Vim works. What was typed is never lost: it is
-- cleared only when it is on its way, and comes back when that fails.
local Queue = require('callboard.model.queue')
local buffers = require('callboard.ui.buffers')

local M = {}

---Where a text goes that cannot come back to the input because something else stands there.
M.REGISTER = 'c'

---@class callboard.Input
---@field buf integer
---@field history callboard.History
---@field private placed string? what the history has put there
local Input = {}
Input.__index = Input

---@param name string of the buffer
---@return callboard.Input
function M.new(name)
  local self = setmetatable({ history = Queue.history() }, Input)
  self.buf = buffers.create(name, 'callboard-input')
  vim.b[self.buf].callboard_kind = 'input'
  vim.bo[self.buf].undolevels = -123456 -- the global value: what is typed can be undone
  vim.bo[self.buf].modifiable = true
  require('callboard.ui.complete').set_up(self.buf)
  return self
end

---@return string
function Input:text()
  return table.concat(vim.api.nvim_buf_get_lines(self.buf, 0, -1, false), '\n')
end

---@return boolean
function Input:is_empty()
  return vim.trim(self:text()) == ''
end

---@param text string
function Input:set(text)
  vim.api.nvim_buf_set_lines(self.buf, 0, -1, false, vim.split(text, '\n', { plain = true }))
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local last = vim.api.nvim_buf_line_count(self.buf)
    vim.api.nvim_win_set_cursor(
      win,
      { last, #vim.api.nvim_buf_get_lines(self.buf, last - 1, last, false)[1] }
    )
  end
end

---Takes out what is there, to be sent.
---@return string
function Input:take()
  local text = self:text()
  Queue.remember(self.history, text)
  -- Else undo would take back what was typed together with this.
  vim.api.nvim_buf_call(self.buf, function()
    vim.cmd('let &l:undolevels = &l:undolevels')
  end)
  self:set('')
  return text
end

---Gives back what could not be sent.
---@param text string
function Input:give_back(text)
  if not vim.api.nvim_buf_is_valid(self.buf) or not self:is_empty() then
    vim.fn.setreg(M.REGISTER, text)
    require('callboard.notify').warn(
      ('what could not be sent is in register %s: "%sp puts it here'):format(M.REGISTER, M.REGISTER)
    )
    return
  end
  self:set(text)
end

---Older (-1) or newer (1) texts in its place, from its first or last line; else the key moves the cursor.
---@param step -1|1
---@param key string
function Input:recall(step, key)
  local row = vim.api.nvim_win_get_cursor(0)[1]
  local at_edge = step < 0 and row == 1 or step > 0 and row == vim.api.nvim_buf_line_count(self.buf)
  local text
  if at_edge and vim.fn.pumvisible() == 0 then
    if self.placed ~= nil and self:text() ~= self.placed then
      self.history.at = nil -- it was changed: that is what is written now
    end
    text = step < 0 and Queue.back(self.history, self:text())
      or step > 0 and Queue.forward(self.history)
      or nil
  end
  if text == nil then
    local raw = vim.api.nvim_replace_termcodes(key, true, false, true)
    vim.api.nvim_feedkeys(raw, 'ni', false) -- before what was typed since
    return
  end
  self:set(text)
  self.placed = text
end

return M

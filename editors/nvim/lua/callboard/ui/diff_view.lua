-- Two windows that show a diff, or one that shows a text about it: how they open, what stands above them, which
-- keys they have, and how they go without leaving a trace in the file's own buffer.
local buffers = require('callboard.ui.buffers')
local keys = require('callboard.keys')
local panes = require('callboard.ui.diff_buffers')

local M = {}

---@class callboard.DiffPane
---@field buf integer
---@field bar string of the winbar, escaped for it
---@field ours boolean? a scratch buffer of this diff

---@class callboard.DiffContent
---@field left callboard.DiffPane? none: only the right one, as it is
---@field right callboard.DiffPane
---@field focus 'left'|'right'|nil right unless said
---@field keys callboard.Key[]

---@class callboard.DiffView
---@field closed fun()? called once when it is gone, by whatever way
---@field private layout 'tab'|'split'
---@field private tab integer?
---@field private left integer? window
---@field private right integer?
---@field private content callboard.DiffContent?
---@field private keyed table<integer, true> buffers of files that have our keys at the moment
---@field private group integer?
---@field private borrowed { win: integer, buf: integer }? the window of a file that a split diff took
---@field private from integer? the window that somebody came from
---@field private busy boolean? our own doing: nobody closed anything
local View = {}
View.__index = View

local number = 0

---@param layout 'tab'|'split'
---@return callboard.DiffView
function M.new(layout)
  return setmetatable({ layout = layout, keyed = {} }, View)
end

---@return boolean
function View:open()
  return self.right ~= nil and vim.api.nvim_win_is_valid(self.right)
end

---The window of a pane.
---@param side 'left'|'right'
---@return integer?
function View:window(side)
  local win = self[side]
  return win and vim.api.nvim_win_is_valid(win) and win or nil
end

---Whether a window is one of this diff.
---@param win integer
---@return boolean
function View:has(win)
  return win == self.left or win == self.right
end

---@private
---@param win integer
---@return callboard.DiffPane?
function View:pane(win)
  if not self.content then
    return nil
  end
  return win == self.left and self.content.left or win == self.right and self.content.right or nil
end

---@private
---Takes away from a window what the diff gave it: the options would go along with the file's buffer.
---@param win integer
function View:clean(win)
  if not vim.api.nvim_win_is_valid(win) then
    return
  end
  vim.api.nvim_win_call(win, function()
    vim.cmd('diffoff')
    vim.cmd('setlocal winbar<')
  end)
end

---@private
---Keys on the buffer of a file are there while one of our windows is the current one, and only then: the
---same buffer may be in other windows.
function View:rekey()
  local win = vim.api.nvim_get_current_win()
  local pane = self:pane(win)
  local wanted = pane and not pane.ours and vim.api.nvim_win_get_buf(win) == pane.buf and pane.buf
    or nil
  for buf in pairs(self.keyed) do
    if buf ~= wanted then
      self.keyed[buf] = nil
      if vim.api.nvim_buf_is_valid(buf) then
        keys.unset(buf, 'diff')
      end
    end
  end
  if wanted and not self.keyed[wanted] then
    self.keyed[wanted] = true
    keys.set(wanted, 'diff', self.content.keys)
  end
end

---@private
function View:watch()
  number = number + 1
  self.group = vim.api.nvim_create_augroup('callboard-diff-' .. number, {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = self.group, callback = callback })
  end
  on('LspAttach', function(event)
    -- A language server came late, and with it mappings that stand in for ours.
    vim.schedule(function()
      if self.keyed[event.buf] and self.content then
        keys.set(event.buf, 'diff', self.content.keys)
      end
    end)
  end)
  on({ 'WinEnter', 'WinLeave', 'BufEnter' }, function(event)
    if event.event == 'WinLeave' then
      vim.schedule(function()
        self:rekey()
      end)
    else
      self:rekey()
    end
  end)
  on('VimResized', function()
    if self.layout == 'tab' and self.tab == vim.api.nvim_get_current_tabpage() then
      vim.cmd('wincmd =')
    end
  end)
  on('WinClosed', function(event)
    local win = tonumber(event.match)
    if win and self:has(win) and not self.busy then
      self:clean(win)
      self:gone(win)
    end
  end)
  on('BufWinEnter', function(event)
    local win = vim.api.nvim_get_current_win()
    local pane = self:pane(win)
    if
      pane
      and not self.busy
      and event.buf ~= pane.buf
      and vim.api.nvim_win_get_buf(win) == event.buf
    then
      -- Something else was opened where the diff was.
      vim.schedule(function()
        self:abandon(win)
      end)
    end
  end)
end

---@private
---Somebody closed one of the windows.
---@param win integer
function View:gone(win)
  local other = win == self.left and self.right or self.left
  local keep = win == self.left -- the file stays where it is, without the diff
  local tab = assert(self.tab)
  vim.schedule(function()
    if other and vim.api.nvim_win_is_valid(other) then
      self:clean(other)
      if not keep then
        pcall(vim.api.nvim_win_close, other, true)
      end
    end
    self:back(tab)
    self:finish()
  end)
end

---@private
---One of the windows shows something else: the diff is over, the window is not.
---@param win integer
function View:abandon(win)
  if not self.content then
    return
  end
  local other = win == self.left and self.right or self.left
  self.busy = true
  if vim.api.nvim_win_is_valid(win) then
    self:clean(win)
  end
  if other and vim.api.nvim_win_is_valid(other) then
    self:clean(other)
    if other == self.left then
      pcall(vim.api.nvim_win_close, other, true)
    end
  end
  self.busy = false
  self:finish()
end

---@private
function View:finish()
  if not self.group then
    return
  end
  vim.api.nvim_del_augroup_by_id(self.group)
  self.group, self.content, self.left, self.right = nil, nil, nil, nil
  for buf in pairs(self.keyed) do
    if vim.api.nvim_buf_is_valid(buf) then
      keys.unset(buf, 'diff')
    end
  end
  self.keyed = {}
  if self.closed then
    self.closed()
  end
end

---@private
---A window that was split off one of ours, as of a chat, has what keeps that from being changed.
---@param win integer
function View:unfix(win)
  for _, name in ipairs({ 'winfixbuf', 'winfixwidth', 'winfixheight' }) do
    vim.api.nvim_set_option_value(name, false, { win = win, scope = 'local' })
  end
end

---@private
---Goes back to where somebody came from; Neovim would go to whatever tab page comes next.
---@param tab integer the diff's
function View:back(tab)
  local gone = not vim.api.nvim_tabpage_is_valid(tab)
  if gone and self.from and vim.api.nvim_win_is_valid(self.from) then
    vim.api.nvim_set_current_win(self.from)
  end
end

---@private
---Makes the window on the right, where there is none.
function View:make()
  self.from = vim.api.nvim_get_current_win()
  if vim.api.nvim_win_get_config(0).relative ~= '' then
    vim.api.nvim_set_current_win(buffers.file_window())
  end
  if self.layout == 'tab' then
    vim.cmd('tab split')
  else
    local win = buffers.file_window()
    vim.api.nvim_set_current_win(win)
    if vim.bo.modified and not vim.o.hidden then
      vim.cmd('vsplit')
    else
      self.borrowed = { win = win, buf = vim.api.nvim_win_get_buf(win) }
    end
  end
  self.right = vim.api.nvim_get_current_win()
  self.tab = vim.api.nvim_get_current_tabpage()
  self:unfix(self.right)
end

---@private
---@param win integer
---@param pane callboard.DiffPane
function View:fill(win, pane)
  if vim.api.nvim_win_get_buf(win) ~= pane.buf then
    self:clean(win)
    panes.load(win, pane.buf)
  end
  vim.api.nvim_set_option_value('winbar', pane.bar, { win = win, scope = 'local' })
end

---Shows something, in place of what was shown.
---@param content callboard.DiffContent
---@param keep boolean? the cursor stays where it is
function View:show(content, keep)
  self.busy = true
  local ok, fault = pcall(self.put, self, content, keep)
  self.busy = false
  if not ok then
    error(fault, 0)
  end
end

---@private
---@param content callboard.DiffContent
---@param keep boolean?
function View:put(content, keep)
  local from = vim.api.nvim_get_current_win()
  if not self:open() then
    self:make()
  end
  if not self.group then
    self:watch()
  end
  self.content = content
  for buf in pairs(self.keyed) do
    self.keyed[buf] = nil
    if vim.api.nvim_buf_is_valid(buf) then
      keys.unset(buf, 'diff')
    end
  end
  self:fill(self.right, content.right)
  if content.left then
    if not self:window('left') then
      vim.api.nvim_set_current_win(self.right)
      vim.cmd('leftabove vsplit')
      self.left = vim.api.nvim_get_current_win()
    end
    self:fill(self.left, content.left)
  elseif self:window('left') then
    vim.api.nvim_win_close(self.left, true)
    self.left = nil
  end
  if content.left and content.left.ours ~= content.right.ours then
    local version, file = content.left, content.right
    if file.ours then
      version, file = file, version
    end
    panes.color(version.buf, file.buf)
  end
  for _, pane in ipairs({ content.right, content.left }) do
    if pane.ours then
      keys.set(pane.buf, 'diff', content.keys)
    end
  end
  for _, win in ipairs({ self.right, self.left }) do
    vim.api.nvim_win_call(win, function()
      vim.cmd(content.left and 'diffthis' or 'diffoff')
    end)
  end
  local focus = content.focus == 'left' and self.left or self.right
  if keep and vim.api.nvim_win_is_valid(from) then
    vim.api.nvim_set_current_win(from)
  else
    vim.api.nvim_set_current_win(focus)
    self:first_change()
  end
  self:rekey()
end

---@private
---Puts the cursor on the first line that differs.
function View:first_change()
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  if self.content.left then
    vim.cmd('diffupdate')
    if vim.fn.diff_hlID(1, 1) == 0 and vim.fn.diff_filler(1) == 0 then
      vim.cmd('silent! normal! ]c')
    end
  end
end

---Changes what stands above a window.
---@param side 'left'|'right'
---@param bar string
function View:say(side, bar)
  local win = self:window(side)
  if win and self.content and self.content[side] then
    self.content[side].bar = bar
    vim.api.nvim_set_option_value('winbar', bar, { win = win, scope = 'local' })
  end
end

---Takes the keys away that answer something, once it is answered.
---@param left callboard.Key[] those that stay
function View:set_keys(left)
  if not self.content then
    return
  end
  self.content.keys = left
  for _, pane in ipairs({ self.content.right, self.content.left }) do
    if pane.ours then
      keys.unset(pane.buf, 'diff')
      keys.set(pane.buf, 'diff', left)
    end
  end
  for buf in pairs(self.keyed) do
    keys.unset(buf, 'diff')
    keys.set(buf, 'diff', left)
  end
end

---Closes it: the windows that it made; a window that it took gets back what was in it.
function View:close()
  if not self:open() then
    return self:finish()
  end
  self.busy = true
  local left, right, tab = self.left, self.right, assert(self.tab)
  self:clean(right)
  if left and vim.api.nvim_win_is_valid(left) then
    self:clean(left)
    pcall(vim.api.nvim_win_close, left, true)
  end
  local borrowed = self.borrowed
  if borrowed then
    if vim.api.nvim_buf_is_valid(borrowed.buf) and self.content and self.content.right.ours then
      pcall(vim.api.nvim_win_set_buf, right, borrowed.buf)
    end
  else
    pcall(vim.api.nvim_win_close, right, true)
  end
  self.borrowed = nil
  self.busy = false
  self:back(tab)
  self:finish()
end

return M

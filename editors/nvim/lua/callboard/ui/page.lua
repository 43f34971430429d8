-- A buffer that is a list of things: sessions, agents, tasks, changes. It is drawn whole, keeps the cursor on
-- the thing that it was on, and its keys act on the thing under the cursor.
local buffers = require('callboard.ui.buffers')
local lines = require('callboard.ui.lines')

local M = {}

---@class callboard.Page
---@field buf integer
---@field private drawn callboard.Line[]
---@field private same fun(target: any): any what makes two targets the same thing
local Page = {}
Page.__index = Page

---@class callboard.PageOptions
---@field name string of the buffer
---@field filetype string
---@field keys (fun(page: callboard.Page): callboard.Key[])?
---@field same fun(target: any): any
---@field closed fun()? it is gone

---@param opts callboard.PageOptions
---@return callboard.Page
function M.new(opts)
  require('callboard.ui.highlights').setup()
  local self = setmetatable({ drawn = {}, same = opts.same }, Page)
  self.buf = buffers.create(opts.name, opts.filetype)
  vim.bo[self.buf].modifiable = false
  local keys = opts.keys and opts.keys(self) or {}
  vim.list_extend(keys, {
    {
      action = 'help',
      lhs = 'g?',
      desc = 'Tell what the keys do',
      fn = require('callboard.keys').help,
    },
    {
      action = 'hide',
      lhs = 'q',
      desc = 'Close',
      fn = function()
        self:close()
      end,
    },
  })
  require('callboard.keys').set(self.buf, 'list', keys)
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = self.buf,
    once = true,
    callback = function()
      require('callboard.keys').forget(self.buf)
      if opts.closed then
        opts.closed()
      end
    end,
  })
  return self
end

---Shows it: in the window that has it, or in a new one. Its height is not fixed: where a chat's input is fixed,
---too, Neovim 0.11 aborts when the terminal becomes too small for both.
---@param command string? that makes the window
function Page:show(command)
  local win = buffers.window(self.buf)
  if win then
    vim.api.nvim_set_current_win(win)
    return
  end
  vim.cmd(command or 'botright 15split')
  win = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(win, self.buf)
  buffers.window_options(win, {
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    foldcolumn = '0',
    wrap = false,
    cursorline = true,
    list = false,
    spell = false,
    fillchars = 'eob: ',
  })
  local help = require('callboard.keys').lhs_of('list', { action = 'help', lhs = 'g?' })[1]
  local hint = help and (help:gsub('%%', '%%%%')) .. ' helps   ' or ''
  require('callboard.ui.layout').plain_status(win, ('Callboard%%=%s%%P '):format(hint))
end

---@return boolean
function Page:alive()
  return vim.api.nvim_buf_is_valid(self.buf) and vim.api.nvim_buf_is_loaded(self.buf)
end

---@param a callboard.Line?
---@param b callboard.Line?
---@return boolean
local function alike(a, b)
  if not a or not b or #a ~= #b then
    return false
  end
  for i, chunk in ipairs(a) do
    if chunk[1] ~= b[i][1] or chunk[2] ~= b[i][2] then
      return false
    end
  end
  return true
end

---Writes what is different, and no more: what stays keeps its marks, and whoever selects something keeps that.
---@private
---@param shown callboard.Line[]
function Page:write(shown)
  local old, first = self.drawn, 0
  if #old == 0 or vim.api.nvim_buf_line_count(self.buf) ~= #old then
    lines.set(self.buf, 0, -1, shown)
    return
  end
  while first < #old and first < #shown and alike(old[first + 1], shown[first + 1]) do
    first = first + 1
  end
  local tail = 0
  while
    tail < #old - first
    and tail < #shown - first
    and alike(old[#old - tail], shown[#shown - tail])
  do
    tail = tail + 1
  end
  if first < #old - tail or first < #shown - tail then
    lines.set(self.buf, first, #old - tail, vim.list_slice(shown, first + 1, #shown - tail))
  end
end

---The first line that stands for the same thing.
---@private
---@param shown callboard.Line[]
---@param key any
---@return integer?
function Page:find(shown, key)
  for i, line in ipairs(shown) do
    if line.target ~= nil and self.same(line.target) == key then
      return i
    end
  end
end

---@param shown callboard.Line[]
function Page:draw(shown)
  if not self:alive() then
    return
  end
  local places = {}
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local at = vim.api.nvim_win_get_cursor(win)
    local line = self.drawn[at[1]]
    local key = line and line.target ~= nil and self.same(line.target) or nil
    places[win] = {
      row = at[1],
      col = at[2],
      key = key,
      off = key ~= nil and at[1] - self:find(self.drawn, key) or 0,
    }
  end
  self:write(shown)
  self.drawn = shown
  for win, place in pairs(places) do
    local row = math.min(place.row, #shown)
    local found = place.key ~= nil and self:find(shown, place.key)
    if found then
      -- On the same line of it, where it still has so many.
      row = found
      local wanted = shown[found + place.off]
      if wanted and wanted.target ~= nil and self.same(wanted.target) == place.key then
        row = found + place.off
      end
    end
    row = math.max(row, 1)
    local at = vim.api.nvim_win_get_cursor(win)
    if at[1] ~= row or at[2] ~= place.col then
      vim.api.nvim_win_set_cursor(win, { row, place.col })
    end
  end
end

---What the line under the cursor stands for.
---@return any?
function Page:target()
  local win = buffers.window(self.buf)
  local line = win and self.drawn[vim.api.nvim_win_get_cursor(win)[1]]
  return line and line.target or nil
end

function Page:close()
  if self:alive() then
    for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
      if #vim.api.nvim_tabpage_list_wins(vim.api.nvim_win_get_tabpage(win)) > 1 then
        vim.api.nvim_win_close(win, true)
      end
    end
    vim.api.nvim_buf_delete(self.buf, { force = true })
  end
end

return M

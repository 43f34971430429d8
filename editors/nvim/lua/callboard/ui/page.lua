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
    { action = 'help', lhs = 'g?', desc = 'Tell what the keys do', fn = require('callboard.keys').help },
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

---Shows it: in the window that has it, or in a new one.
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
    winfixheight = true,
  })
end

---@return boolean
function Page:alive()
  return vim.api.nvim_buf_is_valid(self.buf) and vim.api.nvim_buf_is_loaded(self.buf)
end

---@param shown callboard.Line[]
function Page:draw(shown)
  if not self:alive() then
    return
  end
  local places = {}
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    local row = vim.api.nvim_win_get_cursor(win)[1]
    local line = self.drawn[row]
    places[win] = { row = row, key = line and line.target ~= nil and self.same(line.target) or nil }
  end
  self.drawn = shown
  lines.set(self.buf, 0, -1, shown)
  for win, place in pairs(places) do
    local row = math.min(place.row, #shown)
    for i, line in ipairs(shown) do
      if place.key ~= nil and line.target ~= nil and self.same(line.target) == place.key then
        row = i
        break
      end
    end
    vim.api.nvim_win_set_cursor(win, { math.max(row, 1), 0 })
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

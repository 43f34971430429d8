-- Folds of cards and thoughts: made by hand, in each window that shows the buffer. Whoever opened one finds it
-- open when its card is written anew, and none closes over what is being read.
local M = {}

---@param view callboard.View
---@return integer[]
local function windows(view)
  return vim.fn.win_findbuf(view.buf)
end

---@param block callboard.Drawn
---@param row integer
---@return integer? first line, 1-based
---@return integer? last
local function range(block, row)
  if block.fold and block.fold.last > block.fold.first then
    return row + block.fold.first + 1, row + block.fold.last + 1
  end
end

---Keeps whether a block's fold is open, before it is written anew.
---@param view callboard.View
---@param block callboard.Drawn
---@param row integer
function M.remember_one(view, block, row)
  local first = range(block, row)
  local win = windows(view)[1]
  if first and win then
    local closed = vim.api.nvim_win_call(win, function()
      return vim.fn.foldclosed(first) ~= -1
    end)
    view.unfolded[block.id] = not closed or nil
  end
end

---@param view callboard.View
function M.remember(view)
  local row = view.top.height
  for _, block in ipairs(view.blocks) do
    M.remember_one(view, block, row)
    row = row + block.height
  end
end

---Takes away what is left of folds in lines, in the current window.
---@param first integer
---@param last integer
local function clear(first, last)
  for line = first, last do
    for _ = 1, vim.fn.foldlevel(line) do
      vim.cmd(('silent! %dfoldopen!'):format(line))
      vim.cmd(('silent! keepjumps %dnormal! zd'):format(line))
    end
  end
end

---In the current window.
---@param view callboard.View
---@param block callboard.Drawn
---@param first integer
---@param last integer
local function fold(view, block, first, last)
  local cursor = vim.api.nvim_win_get_cursor(0)[1]
  local reading = cursor > first
    and cursor <= last
    and cursor < vim.api.nvim_buf_line_count(view.buf)
  vim.cmd(('silent! %d,%dfold'):format(first, last))
  if view.unfolded[block.id] or reading then
    vim.cmd(('silent! %dfoldopen'):format(first))
  end
end

---@param win integer
---@param fn fun()
local function within(win, fn)
  vim.api.nvim_win_call(win, function()
    local place = vim.fn.winsaveview()
    fn()
    vim.fn.winrestview(place)
  end)
end

---Folds a block that was just written; what folds it had are gone.
---@param view callboard.View
---@param block callboard.Drawn
---@param row integer
function M.make_one(view, block, row)
  local first, last = range(block, row)
  for _, win in ipairs(windows(view)) do
    within(win, function()
      clear(row + 1, row + block.height)
      if first and last then
        fold(view, block, first, last)
      end
    end)
  end
end

---All of them, in all windows or in one that shows the buffer from now on.
---@param view callboard.View
---@param win integer?
function M.make(view, win)
  for _, each in ipairs(win and { win } or windows(view)) do
    within(each, function()
      vim.cmd('silent! normal! zE')
      local row = view.top.height
      for _, block in ipairs(view.blocks) do
        local first, last = range(block, row)
        if first and last then
          fold(view, block, first, last)
        end
        row = row + block.height
      end
    end)
  end
end

return M

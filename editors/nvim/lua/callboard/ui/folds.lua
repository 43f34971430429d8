-- Folds of cards and thoughts: made by hand, in each window that shows the buffer. Whoever opened one finds it
-- open when its card is written anew.
local M = {}

---@param view callboard.View
---@return integer[]
local function windows(view)
  return vim.fn.win_findbuf(view.buf)
end

---@param view callboard.View
---@param block callboard.Drawn
---@param row integer
function M.remember_one(view, block, row)
  if not block.fold then
    return
  end
  local win = windows(view)[1]
  if not win then
    return
  end
  view.open = view.open or {}
  local closed = vim.api.nvim_win_call(win, function()
    return vim.fn.foldclosed(row + block.fold.first + 1) ~= -1
  end)
  if closed ~= block.fold.closed then
    view.open[block.id] = not closed
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

---@param view callboard.View
---@param block callboard.Drawn
---@return boolean
local function closed(view, block)
  local open = view.open and view.open[block.id]
  if open ~= nil then
    return not open
  end
  return block.fold.closed
end

---In the current window.
---@param view callboard.View
---@param block callboard.Drawn
---@param row integer
local function fold(view, block, row)
  local first, last = row + block.fold.first + 1, row + block.fold.last + 1
  while vim.fn.foldlevel(first) > 0 do
    vim.cmd(('silent! %dnormal! zD'):format(first))
    if vim.fn.foldlevel(first) > 0 then
      break
    end
  end
  vim.cmd(('silent! %d,%dfold'):format(first, last))
  local cursor = vim.api.nvim_win_get_cursor(0)[1]
  local reading = cursor > first and cursor <= last
  if not closed(view, block) or reading then
    vim.cmd(('silent! %dfoldopen'):format(first))
  end
end

---@param view callboard.View
---@param block callboard.Drawn
---@param row integer
function M.make_one(view, block, row)
  if not block.fold or block.fold.last <= block.fold.first then
    return
  end
  for _, win in ipairs(windows(view)) do
    vim.api.nvim_win_call(win, function()
      fold(view, block, row)
    end)
  end
end

---All of them, in all windows or in one that shows the buffer from now on.
---@param view callboard.View
---@param win integer?
function M.make(view, win)
  for _, each in ipairs(win and { win } or windows(view)) do
    vim.api.nvim_win_call(each, function()
      vim.cmd('silent! normal! zE')
      local row = view.top.height
      for _, block in ipairs(view.blocks) do
        if block.fold and block.fold.last > block.fold.first then
          fold(view, block, row)
        end
        row = row + block.height
      end
    end)
  end
end

return M

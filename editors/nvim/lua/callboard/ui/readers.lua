-- Where those who look at a buffer are: who is at its end follows it, everybody else stays at what they read.
local M = {}

---@class callboard.Place
---@field follows boolean
---@field id string? of the block in which the cursor is
---@field offset integer? the line in it
---@field below integer? lines from the top of the window to the cursor
---@field column integer?

---@class callboard.Places
---@field by_window table<integer, callboard.Place>
---@field all_follow boolean

---@param view callboard.View
---@return callboard.Places
function M.note(view)
  local places = { by_window = {}, all_follow = true }
  local count = vim.api.nvim_buf_line_count(view.buf)
  local current = vim.api.nvim_get_current_win()
  for _, win in ipairs(vim.fn.win_findbuf(view.buf)) do
    local cursor = vim.api.nvim_win_get_cursor(win)
    local info = vim.fn.getwininfo(win)[1]
    local place = {}
    place.follows = cursor[1] >= count or (win ~= current and info.botline >= count)
    if not place.follows then
      places.all_follow = false
      local _, block, offset = view:at(cursor[1] - 1)
      place.id = block and block.id
      place.offset, place.column = offset, cursor[2]
      place.below = cursor[1] - info.topline
      place.row = cursor[1]
    end
    places.by_window[win] = place
  end
  return places
end

---@param view callboard.View
---@param win integer
---@param place callboard.Place
local function stay(view, win, place)
  local block = place.id
    and (view.by_id[place.id] or place.id == 'tail' and view.tail or place.id == 'top' and view.top)
  if not block then
    return
  end
  local row
  if block == view.top then
    row = 0
  elseif block == view.tail then
    row = vim.api.nvim_buf_line_count(view.buf) - view.tail.height
  else
    row = view:row_of(block)
  end
  row = row + math.min(place.offset, math.max(block.height - 1, 0)) + 1
  row = math.max(1, math.min(row, vim.api.nvim_buf_line_count(view.buf)))
  if row == place.row and vim.api.nvim_win_get_cursor(win)[1] == row then
    return
  end
  vim.api.nvim_win_call(win, function()
    vim.fn.winrestview({ lnum = row, col = place.column, topline = math.max(1, row - place.below) })
  end)
end

---Where the cursor of who follows is: in the last line, and at its end where it is wider than the window, so that
---the end of a paragraph that streams is in view however long it is.
---@param view callboard.View
---@param win integer
---@return { [1]: integer, [2]: integer }
local function ending(view, win)
  local count = vim.api.nvim_buf_line_count(view.buf)
  local last = vim.api.nvim_buf_get_lines(view.buf, count - 1, count, false)[1] or ''
  return { count, #last > vim.api.nvim_win_get_width(win) and #last - 1 or 0 }
end

---Lines of the screen that lines of the buffer take, with their folds and breaks.
---@param win integer
---@param first integer 1-based
---@param last integer
---@return integer
local function height_of(win, first, last)
  return vim.api.nvim_win_text_height(win, { start_row = first - 1, end_row = last - 1 }).all
end

---Goes to the end of the buffer. What stands there ends at the end of the window: lines that come above, or go,
---would leave it at the top, with nothing below it.
---@param view callboard.View
---@param win integer
local function follow(view, win)
  local cursor = ending(view, win)
  local count = cursor[1]
  vim.api.nvim_win_set_cursor(win, cursor)
  local room = vim.api.nvim_win_get_height(win) - (vim.wo[win].winbar ~= '' and 1 or 0)
  vim.api.nvim_win_call(win, function()
    if height_of(win, count, count) >= room then
      return -- it scrolls to the cursor, within the line
    end
    local top = math.max(1, count - room + 1)
    local height = height_of(win, top, count)
    -- Up while folds leave room, down while breaks take it.
    while top > 1 and height < room do
      local above = math.max(1, top - (room - height))
      height, top = height + height_of(win, above, top - 1), above
    end
    while top < count and height > room do
      local fold = vim.fn.foldclosedend(top)
      local last = fold ~= -1 and fold or top
      height, top = height - height_of(win, top, last), last + 1
    end
    local skip = 0
    if
      top > 1
      and height < room
      and vim.wo[win].smoothscroll
      and vim.fn.foldclosed(top - 1) == -1
    then
      -- The paragraph above is higher than what is left: its end is shown.
      local width = vim.api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff
      skip = (height_of(win, top - 1, top - 1) - (room - height)) * width
      top = top - 1
    end
    local now = vim.fn.winsaveview()
    if now.topline ~= top or now.skipcol ~= skip then
      vim.fn.winrestview({ topline = top, skipcol = skip, lnum = count, col = cursor[2] })
    end
  end)
end

---@param view callboard.View
---@param places callboard.Places
function M.restore(view, places)
  for win, place in pairs(places.by_window) do
    if vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win) == view.buf then
      if place.follows then
        follow(view, win)
      else
        stay(view, win, place)
      end
    end
  end
end

return M

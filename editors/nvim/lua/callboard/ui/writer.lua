-- How a view gets into its buffer: an item that changes is written alone, text that streams is appended.
local folds = require('callboard.ui.folds')
local lines = require('callboard.ui.lines')
local render = require('callboard.ui.render')

local M = {}

---@param view callboard.View
---@param index integer in the transcript
---@return callboard.Drawn
local function draw(view, index)
  local items = view.transcript.items
  local item, before = items[index], items[index - 1]
  local block = render.block(item, before, view.opts.look()) --[[@as callboard.Drawn]]
  block.id, block.height = item.id, #block.lines
  return block
end

---@param section callboard.Drawn
---@param new callboard.Line[]
local function keep(section, new)
  section.lines, section.height = new, #new
end

---Writes all of it.
---@param view callboard.View
function M.all(view)
  folds.remember(view)
  local items = view.transcript.items
  local first = math.max(1, #items - view.limit + 1)
  local top = view.opts.top(first - 1)
  local all = vim.list_slice(top, 1)
  view.blocks, view.by_id = {}, {}
  for i = first, #items do
    local block = draw(view, i)
    view.blocks[#view.blocks + 1] = block
    view.by_id[block.id] = block
    vim.list_extend(all, block.lines)
  end
  local tail = view.opts.tail()
  if #all + #tail == 0 then
    tail = { { { '' } } } -- a buffer has a line
  end
  keep(view.top, top)
  keep(view.tail, tail)
  lines.set(view.buf, 0, -1, vim.list_extend(all, tail))
  folds.make(view)
end

---The end of a text that streamed.
---@param view callboard.View
---@param block callboard.Drawn
---@param item callboard.Item
---@param row integer
local function finish(view, block, item, row)
  if block.prose then
    block.prose = { lines = block.height - block.first }
  end
  local ending = render.ending(item)
  if #ending > 0 then
    lines.set(view.buf, row + block.height, row + block.height, ending)
    block.height = block.height + #ending
  end
  block.over = { text = item.text, partial = item.partial, blobs = item.blobs }
  if item.kind == 'thought' then
    block.fold = { first = block.first, last = block.height - 1 }
    folds.make_one(view, block, row)
  end
end

---@param view callboard.View
---@param block callboard.Drawn
---@param item callboard.Item
---@param row integer
---@return boolean done
local function append(view, block, item, row)
  local stream = block.stream
  local last, column = row + block.height - 1, stream.width
  local more = stream:more(item.text, not item.streaming)
  if more then
    local modifiable = vim.bo[view.buf].modifiable
    vim.bo[view.buf].modifiable = true
    local ok = pcall(vim.api.nvim_buf_set_text, view.buf, last, column, last, column, more)
    vim.bo[view.buf].modifiable = modifiable
    if not ok then
      return false -- somebody else has written there
    end
    block.height = block.height + #more - 1
  end
  if stream.hl then
    local first = row + block.first + (item.kind == 'thought' and 1 or 0)
    block.mark = vim.api.nvim_buf_set_extmark(view.buf, lines.namespace, first, 0, {
      id = block.mark,
      end_row = row + block.height,
      end_col = 0,
      hl_group = stream.hl,
      strict = false,
    })
  end
  if not item.streaming then
    finish(view, block, item, row)
  end
  return true
end

---@param block callboard.Drawn
---@param item callboard.Item
---@return boolean it says what it said when its stream had ended
local function unchanged(block, item)
  local was = block.over
  return was ~= nil
    and not item.streaming
    and was.text == item.text
    and was.partial == item.partial
    and was.blobs == item.blobs
end

---@param view callboard.View
---@param block callboard.Drawn
local function rewrite(view, block)
  local items = view.transcript.items
  for i = #items, 1, -1 do
    if items[i].id == block.id then
      local row, new = view:row_of(block), draw(view, i)
      folds.remember_one(view, block, row)
      lines.set(view.buf, row, row + block.height, new.lines)
      for at, other in ipairs(view.blocks) do
        if other == block then
          view.blocks[at] = new
        end
      end
      view.by_id[new.id] = new
      folds.make_one(view, new, row)
      return
    end
  end
end

---@param view callboard.View
---@param id string
---@return boolean done
local function change(view, id)
  local block, item = view.by_id[id], view.transcript.by_id[id]
  if not block or not item or unchanged(block, item) then
    return true
  elseif
    block.stream
    and not block.over
    and block.stream:continues(item.text, not item.streaming)
  then
    return append(view, block, item, view:row_of(block))
  end
  rewrite(view, block)
  return true
end

---Writes what is new or has changed.
---@param view callboard.View
---@param changed string[] ids
---@param tail boolean what stands below has changed, too
---@return boolean done where not, all must be written
function M.some(view, changed, tail)
  local items = view.transcript.items
  -- New ones are at the end of the transcript.
  local fresh = #items + 1
  while fresh > 1 and not view.by_id[items[fresh - 1].id] do
    fresh = fresh - 1
  end
  local all_are_new = fresh == 1 and #view.blocks > 0
  if all_are_new or #items - fresh >= view.limit then
    return false
  end
  for _, id in ipairs(changed) do
    if not change(view, id) then
      return false
    end
  end
  local row = view:rows() - view.tail.height
  local was_empty = #view.blocks == 0
  for i = fresh, #items do
    local block = draw(view, i)
    lines.set(view.buf, row, row, block.lines)
    view.blocks[#view.blocks + 1] = block
    view.by_id[block.id] = block
    folds.make_one(view, block, row)
    row = row + block.height
  end
  if tail or (was_empty and #view.blocks > 0) then
    local new = view.opts.tail()
    lines.set(view.buf, row, row + view.tail.height, new)
    keep(view.tail, new)
  end
  return true
end

---Takes the oldest items out of the buffer, where nobody reads.
---@param view callboard.View
---@param places callboard.Places
function M.trim(view, places)
  local extra = #view.blocks - view.limit
  if extra <= 0 or not (places.all_follow or extra > view.limit) then
    return
  end
  local height = view.top.height
  for _ = 1, extra do
    local block = table.remove(view.blocks, 1)
    view.by_id[block.id] = nil
    height = height + block.height
  end
  local top = view.opts.top(#view.transcript.items - #view.blocks)
  lines.set(view.buf, 0, height, top)
  keep(view.top, top)
end

return M

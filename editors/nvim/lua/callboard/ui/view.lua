-- The transcript in its buffer. Each item is a block of lines that is written anew alone; text that streams is
-- appended. All that comes within a moment is one write, and no timer runs while there is nothing to write.
local folds = require('callboard.ui.folds')
local lines = require('callboard.ui.lines')
local markdown = require('callboard.ui.markdown')
local notify = require('callboard.notify')
local readers = require('callboard.ui.readers')
local render = require('callboard.ui.render')

local M = {}

---@class callboard.Drawn: callboard.Block
---@field id string
---@field height integer
---@field over { text: string, partial: boolean?, blobs: table? }? what it said when its stream had ended
---@field mark integer? that colours its text

---@class callboard.View
---@field buf integer
---@field blocks callboard.Drawn[] those that are in the buffer, in order
---@field by_id table<string, callboard.Drawn>
---@field top callboard.Drawn what stands above them
---@field tail callboard.Drawn what stands below them
---@field transcript callboard.Transcript
---@field unfolded table<string, true> blocks whose folds somebody has opened
---@field private opts callboard.ViewOptions
---@field private limit integer
---@field private dirty string[] ids
---@field private marked table<string, boolean>
---@field private all_new boolean
---@field private tail_new boolean
---@field private timer uv.uv_timer_t?
---@field private waiting boolean
---@field private last integer when it was written (ms)
local View = {}
View.__index = View

---@class callboard.ViewOptions
---@field buf integer
---@field look fun(): callboard.Look
---@field top fun(hidden: integer): callboard.Line[] above the items, of which so many are not shown
---@field tail fun(): callboard.Line[] below the items; at least one line where there is no item
---@field debounce_ms integer
---@field max_items integer
---@field drawn fun()? after each write

---@param opts callboard.ViewOptions
---@param transcript callboard.Transcript
---@return callboard.View
function M.new(opts, transcript)
  local self = setmetatable({
    buf = opts.buf,
    opts = opts,
    transcript = transcript,
    limit = opts.max_items,
    blocks = {},
    by_id = {},
    top = { id = 'top', lines = {}, height = 0 },
    tail = { id = 'tail', lines = {}, height = 0 },
    dirty = {},
    marked = {},
    all_new = true,
    tail_new = true,
    unfolded = {},
    waiting = false,
    last = -math.huge,
  }, View)
  markdown.paint(self)
  return self
end

---Takes note of what has changed; it is written soon.
---@param change callboard.Change
function View:update(change)
  if change.reset then
    self.all_new = true
  end
  for _, id in ipairs(change.items) do
    if not self.marked[id] then
      self.marked[id] = true
      self.dirty[#self.dirty + 1] = id
    end
  end
  if change.queue or change.head then
    self.tail_new = true
  end
  self:soon()
end

---What stands below the items has changed.
function View:update_tail()
  self.tail_new = true
  self:soon()
end

---Another transcript, or all of it looks different.
---@param transcript callboard.Transcript?
function View:reset(transcript)
  self.transcript = transcript or self.transcript
  self.all_new = true
  self:soon()
end

---So many more of those that are loaded are shown.
---@param more integer
function View:widen(more)
  self.limit = self.limit + more
  self.all_new = true
  self:soon()
end

---@private
function View:soon()
  if self.waiting then
    return
  end
  self.waiting = true
  local pause = math.max(0, self.last + self.opts.debounce_ms - vim.uv.now())
  if pause == 0 then
    vim.schedule(function()
      notify.guard(self.flush, self)
    end)
    return
  end
  self.timer = self.timer or assert(vim.uv.new_timer())
  self.timer:start(
    pause,
    0,
    vim.schedule_wrap(function()
      notify.guard(self.flush, self)
    end)
  )
end

---Writes what has changed.
function View:flush()
  if not self.waiting then
    return
  end
  self.waiting = false
  if self.timer then
    self.timer:stop()
  end
  if not vim.api.nvim_buf_is_loaded(self.buf) then
    return
  end
  local places = readers.note(self)
  if self.all_new or self:is_torn() then
    self:write_all()
  else
    self:write_dirty()
    if self.tail_new then
      self:write_section(self.tail, self:rows() - self.tail.height, self.opts.tail())
    end
    self:trim(places)
  end
  self.dirty, self.marked, self.all_new, self.tail_new = {}, {}, false, false
  vim.bo[self.buf].modified = false
  readers.restore(self, places)
  -- Now, not when it began: a slow terminal gets its pauses, too.
  self.last = vim.uv.now()
  if self.opts.drawn then
    self.opts.drawn()
  end
end

---@private
---@return integer lines that all blocks have
function View:rows()
  local rows = self.top.height + self.tail.height
  for _, block in ipairs(self.blocks) do
    rows = rows + block.height
  end
  return rows
end

---@private
---@return boolean somebody else has changed the buffer
function View:is_torn()
  return vim.api.nvim_buf_line_count(self.buf) ~= self:rows()
end

---@private
---@param first integer
---@param last integer
---@param new callboard.Line[]
function View:set(first, last, new)
  lines.set(self.buf, first, last, new)
end

---@private
---@param section callboard.Drawn
---@param row integer
---@param new callboard.Line[]
function View:write_section(section, row, new)
  self:set(row, row + section.height, new)
  section.lines, section.height = new, #new
end

---@private
---@param index integer in the transcript
---@return callboard.Drawn
function View:render(index)
  local items = self.transcript.items
  local item, before = items[index], items[index - 1]
  local block = render.block(item, before, self.opts.look()) --[[@as callboard.Drawn]]
  block.id, block.height = item.id, #block.lines
  return block
end

---@private
function View:write_all()
  folds.remember(self)
  local items = self.transcript.items
  local first = math.max(1, #items - self.limit + 1)
  local top = self.opts.top(first - 1)
  local all = vim.list_slice(top, 1)
  self.blocks, self.by_id = {}, {}
  for i = first, #items do
    local block = self:render(i)
    self.blocks[#self.blocks + 1] = block
    self.by_id[block.id] = block
    vim.list_extend(all, block.lines)
  end
  self.top.lines, self.top.height = top, #top
  local tail = self.opts.tail()
  if #all + #tail == 0 then
    tail = { { { '' } } }
  end
  self.tail.lines, self.tail.height = tail, #tail
  vim.list_extend(all, tail)
  self:set(0, -1, all)
  folds.make(self)
end

---@private
function View:write_dirty()
  local items = self.transcript.items
  -- New ones are at the end of the transcript.
  local fresh = #items + 1
  while fresh > 1 and not self.by_id[items[fresh - 1].id] do
    fresh = fresh - 1
  end
  for _, id in ipairs(self.dirty) do
    local block = self.by_id[id]
    if block then
      self:write_block(block)
    end
  end
  if fresh == 1 and #self.blocks > 0 then
    return self:write_all()
  end
  fresh = math.max(fresh, #items - self.limit + 1)
  self.tail_new = self.tail_new or #self.blocks == 0
  local row = self:rows() - self.tail.height
  for i = fresh, #items do
    local block = self:render(i)
    self:set(row, row, block.lines)
    self.blocks[#self.blocks + 1] = block
    self.by_id[block.id] = block
    folds.make_one(self, block, row)
    row = row + block.height
  end
end

---@param block callboard.Drawn
---@return integer row 0-based
function View:row_of(block)
  local row = self:rows() - self.tail.height
  for i = #self.blocks, 1, -1 do
    row = row - self.blocks[i].height
    if self.blocks[i] == block then
      return row
    end
  end
  error('the block is not in the buffer')
end

---@private
---@param block callboard.Drawn
function View:write_block(block)
  local item = self.transcript.by_id[block.id]
  if not item then
    return
  end
  local row = self:row_of(block)
  local was = block.over
  if
    was
    and not item.streaming
    and was.text == item.text
    and was.partial == item.partial
    and was.blobs == item.blobs
  then
    return -- it says what it said
  end
  if block.stream and not block.over and block.stream:continues(item.text, not item.streaming) then
    return self:append(block, item, row)
  end
  local new
  for i = #self.transcript.items, 1, -1 do
    if self.transcript.items[i] == item then
      new = self:render(i)
      break
    end
  end
  folds.remember_one(self, block, row)
  self:set(row, row + block.height, new.lines)
  for i, other in ipairs(self.blocks) do
    if other == block then
      self.blocks[i] = new
    end
  end
  self.by_id[new.id] = new
  folds.make_one(self, new, row)
end

---@private
---@param block callboard.Drawn
---@param item callboard.Item
---@param row integer
function View:append(block, item, row)
  local stream = block.stream
  local last = row + block.height - 1
  local column = stream.width
  local over = not item.streaming
  local more = stream:more(item.text, over)
  local ending = over and render.ending(item) or {}
  if more then
    local modifiable = vim.bo[self.buf].modifiable
    vim.bo[self.buf].modifiable = true
    local ok = pcall(vim.api.nvim_buf_set_text, self.buf, last, column, last, column, more)
    vim.bo[self.buf].modifiable = modifiable
    if not ok then
      self.all_new = true
      return self:soon()
    end
    block.height = block.height + #more - 1
  end
  if stream.hl then
    local first = row + block.first + (item.kind == 'thought' and 1 or 0)
    block.mark = vim.api.nvim_buf_set_extmark(self.buf, lines.namespace, first, 0, {
      id = block.mark,
      end_row = row + block.height,
      end_col = 0,
      hl_group = stream.hl,
      strict = false,
    })
  end
  if over and block.prose then
    block.prose = { lines = block.height - block.first }
  end
  if #ending > 0 then
    self:set(row + block.height, row + block.height, ending)
    block.height = block.height + #ending
  end
  if over then
    block.over = { text = item.text, partial = item.partial, blobs = item.blobs }
    if item.kind == 'thought' then
      block.fold = { first = block.first, last = block.height - 1 }
      folds.make_one(self, block, row)
    end
  end
end

---@private
---Takes the oldest ones out of the buffer, where nobody reads.
---@param places callboard.Places
function View:trim(places)
  local extra = #self.blocks - self.limit
  if extra <= 0 or not (places.all_follow or extra > self.limit) then
    return
  end
  local height = 0
  for _ = 1, extra do
    local block = table.remove(self.blocks, 1)
    self.by_id[block.id] = nil
    height = height + block.height
  end
  local hidden = #self.transcript.items - #self.blocks
  local top = self.opts.top(hidden)
  self:set(0, self.top.height + height, top)
  self.top.lines, self.top.height = top, #top
end

---What a line stands for, and in which block it is.
---@param row integer 0-based
---@return callboard.Target?
---@return callboard.Drawn?
---@return integer? offset in the block
function View:at(row)
  local from = 0
  local function within(block)
    local offset = row - from
    from = from + block.height
    if offset < block.height then
      local line = block.lines[offset + 1]
      return true, line and line.target, offset
    end
    return false
  end
  local found, target, offset = within(self.top)
  if found then
    return target, self.top, offset
  end
  for _, block in ipairs(self.blocks) do
    found, target, offset = within(block)
    if found then
      return target, block, offset
    end
  end
  found, target, offset = within(self.tail)
  if found then
    return target, self.tail, offset
  end
end

---@param id string
---@param heading boolean? with the line that says who speaks, where there is one
---@return integer? row 0-based, of its first line
function View:row(id, heading)
  local block = self.by_id[id]
  if not block then
    return nil
  end
  return self:row_of(block) + block.first - (heading and block.heading and 1 or 0)
end

function View:close()
  self.waiting = false
  markdown.forget(self)
  if self.timer and not self.timer:is_closing() then
    self.timer:stop()
    self.timer:close()
  end
  self.timer = nil
end

return M

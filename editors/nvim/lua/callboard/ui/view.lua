-- The transcript in its buffer. Each item is a block of lines that is written anew alone; text that streams is
-- appended. All that comes within a moment is one write, and no timer runs while there is nothing to write.
local markdown = require('callboard.ui.markdown')
local notify = require('callboard.notify')
local readers = require('callboard.ui.readers')
local writer = require('callboard.ui.writer')

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
---@field opts callboard.ViewOptions
---@field limit integer so many items are in the buffer
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
  local function flush()
    notify.guard(self.flush, self)
  end
  if pause == 0 then
    return vim.schedule(flush)
  end
  self.timer = self.timer or assert(vim.uv.new_timer())
  self.timer:start(pause, 0, vim.schedule_wrap(flush))
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
  -- What fails half-way is written anew as a whole with the next change.
  local all, changed, tail = self.all_new or self:is_torn(), self.dirty, self.tail_new
  self.dirty, self.marked, self.all_new, self.tail_new = {}, {}, true, false
  if all or not writer.some(self, changed, tail) then
    writer.all(self)
  else
    writer.trim(self, places)
  end
  self.all_new = false
  vim.bo[self.buf].modified = false
  readers.restore(self, places)
  -- Now, not when it began: a slow terminal gets its pauses, too.
  self.last = vim.uv.now()
  if self.opts.drawn then
    self.opts.drawn()
  end
end

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

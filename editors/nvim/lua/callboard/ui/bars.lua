-- The lines above the windows of a chat and of its input, kept up to date. Seconds are counted only while a
-- turn runs and somebody sees them.
local buffers = require('callboard.ui.buffers')
local keys = require('callboard.keys')
local notify = require('callboard.notify')
local time = require('callboard.model.time')
local winbar = require('callboard.ui.winbar')

local M = {}

---@class callboard.Bars
---@field private chat callboard.Conversation
---@field private timer uv.uv_timer_t?
local Bars = {}
Bars.__index = Bars

---@param chat callboard.Conversation
---@return callboard.Bars
function M.new(chat)
  local self = setmetatable({ chat = chat }, Bars)
  self:watch()
  return self
end

---Follows the mode in the input that there is now.
function Bars:watch()
  local buf = self.chat.input.buf
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'InsertLeave' }, {
    buffer = buf,
    callback = function()
      vim.schedule(function() -- the mode is another one only then
        if vim.api.nvim_buf_is_valid(buf) then
          notify.guard(self.draw, self)
        end
      end)
    end,
  })
end

---@return integer ms
local function now()
  local seconds, micros = vim.uv.gettimeofday()
  return seconds * 1000 + math.floor(micros / 1000)
end

---What is told of a chat's session.
---@param chat callboard.Conversation
---@return callboard.Head
function M.head(chat)
  local record, t = chat:record(), chat.session and chat.session.transcript or nil
  local turn = t and t.turn
  local work = require('callboard.model.options').works_with(
    record,
    t and t.mode or record and record.mode or nil,
    t and t.model or record and record.model or nil
  )
  local name = record and require('callboard.model.store').name(record)
    or t and t.title
    or chat.title
    or 'New session'
  return {
    title = record and record.parentId and name .. ' (agent)' or name,
    server = chat.app.server.state,
    phase = chat:phase(),
    profile = record and record.profile or nil,
    mode = work.mode,
    model = work.model,
    agent_mode = work.agent_mode,
    agent_model = work.agent_model,
    turn = turn and {
      started = time.ms(turn.started_at),
      state = turn.state,
      cancelling = turn.cancelling,
    } or nil,
    approvals = #chat:approvals(),
    queued = t and #t.queue or 0,
    closed = record and record.closed or nil,
    archived = record and record.archived or nil,
    usage = record and record.usage or nil,
  }
end

---@param buf integer
---@param bar fun(width: integer): string
local function show(buf, bar)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local text = bar(vim.api.nvim_win_get_width(win))
    if vim.wo[win].winbar ~= text then
      buffers.window_options(win, { winbar = text })
    end
  end
end

---@param action string
---@param default string
---@return string
local function lhs(action, default)
  return keys.lhs_of('input', { action = action, lhs = default })[1] or ''
end

---What the keys do with what stands in the input, as it can be pressed there now.
---@param head callboard.Head
---@param buf integer the input
---@return string
local function hint(head, buf)
  local typing = vim.api.nvim_get_current_buf() == buf and vim.fn.mode():match('^[iR]') ~= nil
  local send = typing and lhs('send_insert', '<C-s>') or lhs('send', '<CR>')
  local steer = typing and lhs('steer_insert', '<C-g>') or lhs('steer', 'gm')
  local help = typing and '' or (', %s helps'):format(lhs('help', 'g?'))
  if head.approvals > 0 then
    return (':Callboard next answers, %s %s%s'):format(
      send,
      head.turn and 'queues' or 'sends',
      help
    )
  elseif head.turn then
    return ('%s queues, %s steers%s'):format(send, steer, help)
  end
  return ('%s sends%s'):format(send, help)
end

---Sets what is new of them.
function Bars:draw()
  local chat = self.chat
  local head, at = M.head(chat), now()
  show(chat.buf, function(width)
    return winbar.text(head, at, width)
  end)
  local note = hint(head, chat.input.buf)
  local labels, remove = chat.chips:labels(), lhs('remove_context', 'gx')
  show(chat.input.buf, function(width)
    return winbar.input(labels, remove, note, width)
  end)
  self:tick()
end

function Bars:tick()
  local chat = self.chat
  local running = chat.session ~= nil
    and chat.session.transcript.turn ~= nil
    and #vim.fn.win_findbuf(chat.buf) > 0
  if running and not self.timer then
    local timer = assert(vim.uv.new_timer())
    self.timer = timer
    timer:start(
      1000,
      1000,
      vim.schedule_wrap(function()
        if self.timer == timer then
          notify.guard(self.draw, self)
        end
      end)
    )
  elseif not running and self.timer then
    self.timer:stop()
    self.timer:close()
    self.timer = nil
  end
end

return M

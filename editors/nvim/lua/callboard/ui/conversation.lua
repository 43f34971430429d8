-- The chat of one session: its two buffers, what is shown in them, and what is sent from there. Before its
-- session is there it only has an input; the first thing that is said begins the session.
local Approvals = require('callboard.model.approvals')
local Input = require('callboard.ui.input')
local Queue = require('callboard.model.queue')
local Reducer = require('callboard.model.reducer')
local buffers = require('callboard.ui.buffers')
local chips = require('callboard.ui.chips')
local config = require('callboard.config')
local keys = require('callboard.keys')
local notify = require('callboard.notify')
local tail = require('callboard.ui.tail')
local time = require('callboard.model.time')
local view = require('callboard.ui.view')
local winbar = require('callboard.ui.winbar')

local M = {}

---@class callboard.Conversation
---@field id string?
---@field title string? for the session that is to begin
---@field cwd string
---@field buf integer
---@field input callboard.Input
---@field chips callboard.Chips
---@field view callboard.View
---@field session callboard.OpenSession?
---@field private app callboard.App
---@field private early callboard.Outbox what was said before the session was there
---@field private begun (fun(ok: boolean))[]? who waits for the session that is being created
---@field private offs (fun())[]
---@field private late boolean
---@field private ticking uv.uv_timer_t?
---@field private mapped boolean?
local Conversation = {}
Conversation.__index = Conversation

---How long (ms) the server may be away before the chat says what to do.
M.LATE_MS = 2000

---@param app callboard.App
---@param opts { id: string?, title: string?, cwd: string? }
---@return callboard.Conversation
function M.new(app, opts)
  require('callboard.ui.highlights').setup()
  local self = setmetatable({
    app = app,
    title = opts.title,
    cwd = opts.cwd or vim.uv.cwd() or '.',
    early = Queue.new(),
    offs = {},
    late = false,
  }, Conversation)
  self.buf = buffers.create('callboard://chat/' .. (opts.id or 'new'), 'callboard-chat')
  vim.bo[self.buf].modifiable = false
  vim.b[self.buf].callboard_kind = 'chat'
  self.input = Input.new('callboard://input/' .. (opts.id or 'new'))
  self.chips = chips.new()
  local options = config.get().render
  self.view = view.new({
    buf = self.buf,
    debounce_ms = options.debounce_ms,
    max_items = options.max_items,
    look = function()
      return self:look()
    end,
    top = function(hidden)
      return self:top(hidden)
    end,
    tail = function()
      return tail.lines(self:tail_state())
    end,
  }, Reducer.new(''))
  for topic, fn in pairs({
    server = self.server_changed,
    sessions = self.draw_bars,
    approvals = self.approvals_changed,
  }) do
    self.offs[#self.offs + 1] = app:on(topic, function()
      fn(self)
    end)
  end
  require('callboard.ui.chat_keys').set(self)
  if opts.id then
    self:attach(opts.id)
  end
  self:server_changed()
  self.view:reset()
  self.view:flush()
  return self
end

---Somebody wiped the input out: there is another one, with the same history.
function Conversation:renew()
  if vim.api.nvim_buf_is_loaded(self.input.buf) then
    return
  end
  if vim.api.nvim_buf_is_valid(self.input.buf) then
    vim.api.nvim_buf_delete(self.input.buf, { force = true })
  end
  local history = self.input.history
  self.input = Input.new('callboard://input/' .. (self.id or 'new'))
  self.input.history = history
  vim.b[self.input.buf].callboard_session = self.id
  require('callboard.ui.chat_keys').set(self)
end

---Follows a session, or goes on with it.
---@param id string?
function Conversation:attach(id)
  if self.session then
    return
  end
  self.id = id or self.id
  self.session = self.app:use(self.id)
  vim.b[self.buf].callboard_session = self.id
  vim.b[self.input.buf].callboard_session = self.id
  self.detach = self.session:listen(function(update)
    self:changed(update)
  end)
  self:changed({ phase = self.session.phase })
end

---Follows it no more, while nobody looks. What is in the input stays.
function Conversation:rest()
  if self.session then
    self.detach()
    self.session, self.detach = nil, nil
    self.app:release(self.id)
    self:tick()
  end
end

---@private
---@param update callboard.session.Update
function Conversation:changed(update)
  if update.phase then
    if update.phase == 'live' or self.view.transcript ~= self.session.transcript then
      self.view:reset(self.session.transcript)
    end
    self.view:update_tail()
  end
  if update.change then
    self.view:update(update.change)
  end
  if update.outbox then
    self.view:update_tail()
  end
  if update.phase or (update.change and (update.change.head or update.change.queue)) then
    self:draw_bars()
  end
end

---@private
---@return callboard.Session?
function Conversation:record()
  return self.id and self.app.sessions.by_id[self.id] or nil
end

---@private
---@return callboard.Look
function Conversation:look()
  local record, options = self:record(), config.get().render
  return {
    icons = options.icons,
    fold_lines = options.fold_lines,
    agent = record and (record.parentId and record.title or record.profile) or 'default',
    parent = record and record.parentId or nil,
    room = record ~= nil and #(record.members or {}) > 0,
    speakers = self.view.transcript.speakers,
    cwd = record and record.cwd or self.cwd,
  }
end

---@private
---@param hidden integer
---@return callboard.Line[]
function Conversation:top(hidden)
  local more = self.session ~= nil and self.session.phase == 'live' and not self.session.at_start
  if hidden == 0 and not more then
    return {}
  end
  local words = hidden > 0 and ('%d%s earlier'):format(hidden, more and ' and more' or '')
    or 'more before this'
  return {
    { { ('▲ %s; <CR> loads'):format(words), 'CallboardDim' }, target = { kind = 'older' } },
  }
end

---Shows more of what was before.
function Conversation:older()
  local more = config.get().render.max_items
  local shown = #self.view.blocks
  if shown < #self.view.transcript.items then
    return self.view:widen(more)
  elseif self.session then
    self.session:load_older(function(loaded)
      if loaded then
        self.view:widen(more)
      end
    end)
  end
end

---Approvals that wait, of its session and of the agents below.
---@return callboard.Approval[]
function Conversation:approvals()
  return self.id and Approvals.of(self.app.approvals, self.id) or {}
end

---@private
---@return callboard.session.Phase|'new'
function Conversation:phase()
  if self.session then
    return self.session.phase
  end
  return (self.id or self.begun) and 'loading' or 'new'
end

---@private
---@return callboard.TailState
function Conversation:tail_state()
  local function lhs(action, default)
    return keys.lhs_of('chat', { action = action, lhs = default })[1] or ''
  end
  return {
    transcript = self.session and self.view.transcript or nil,
    outbox = self.session and self.session.outbox or self.early,
    phase = self:phase(),
    fault = self.session and self.session.fault or nil,
    server = self.app.server.state,
    failure = self.app.server.failure,
    late = self.late,
    approvals = vim.tbl_filter(function(approval)
      return approval.sessionId ~= self.id
    end, self:approvals()),
    keys = { edit = lhs('edit', 'e'), drop = lhs('drop', 'x'), steer = lhs('now', 's') },
    cwd = self.cwd,
  }
end

---@private
function Conversation:server_changed()
  local state = self.app.server.state
  if state == 'ready' or state == 'stopped' then
    self.late = false
  elseif not self.waiting then
    self.waiting = true
    vim.defer_fn(function()
      self.waiting = false
      local now = self.app.server.state
      if now ~= 'ready' and now ~= 'stopped' then
        self.late = true
        self.view:update_tail()
      end
    end, M.LATE_MS)
  end
  self.view:update_tail()
  self:draw_bars()
end

---@private
function Conversation:approvals_changed()
  local waiting = #self:approvals() > 0
  if waiting and not self.mapped then
    self.mapped = true
    require('callboard.ui.approval').map(self.buf, function()
      return self:approval_here()
    end)
  elseif not waiting and self.mapped then
    self.mapped = false
    require('callboard.ui.approval').unmap(self.buf)
  end
  self.view:update_tail()
  self:draw_bars()
end

---The approval under the cursor, or the only one there is.
---@return callboard.Approval?
function Conversation:approval_here()
  local win = buffers.window(self.buf)
  local target, block
  if win then
    target, block = self.view:at(vim.api.nvim_win_get_cursor(win)[1] - 1)
  end
  if target and target.kind == 'approval' then
    return target.approval
  end
  local item = block and self.view.transcript.by_id[block.id]
  if item and require('callboard.ui.card').waits(item) then
    return item.approval
  end
  local all = self:approvals()
  return #all == 1 and all[1] or nil
end

---@private
---@return callboard.Head
function Conversation:head()
  local record, t = self:record(), self.session and self.session.transcript or nil
  local turn = t and t.turn
  return {
    title = record and require('callboard.model.store').name(record) or self.title or 'New session',
    server = self.app.server.state,
    phase = self:phase(),
    profile = record and record.profile or nil,
    mode = t and t.mode or record and record.mode or nil,
    model = t and t.model or record and record.model or nil,
    turn = turn and {
      started = time.ms(turn.started_at),
      state = turn.state,
      cancelling = turn.cancelling,
    } or nil,
    approvals = #self:approvals(),
    queued = t and #t.queue or 0,
    closed = record and record.closed or nil,
    archived = record and record.archived or nil,
    usage = record and record.usage or nil,
  }
end

---@private
---Sets what stands above the windows, where it is not there yet.
---@param buf integer
---@param bar fun(width: integer): string
function Conversation:set_bar(buf, bar)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local text = bar(vim.api.nvim_win_get_width(win))
    if vim.wo[win].winbar ~= text then
      buffers.window_options(win, { winbar = text })
    end
  end
end

function Conversation:draw_bars()
  local seconds, micros = vim.uv.gettimeofday()
  local head = self:head()
  self:set_bar(self.buf, function(width)
    return winbar.text(head, seconds * 1000 + math.floor(micros / 1000), width)
  end)
  local function lhs(action, default)
    return keys.lhs_of('input', { action = action, lhs = default })[1] or ''
  end
  local note
  if self.view.transcript.turn then
    note = ('%s queues, %s steers, %s helps'):format(
      lhs('send', '<CR>'),
      lhs('steer', 'gm'),
      lhs('help', 'g?')
    )
  end
  local bar = winbar.input(self.chips:labels(), {
    send = lhs('send', '<CR>'),
    remove = lhs('remove_context', 'gx'),
    help = lhs('help', 'g?'),
  }, note)
  self:set_bar(self.input.buf, function()
    return bar
  end)
  self:tick()
end

---@private
---Seconds are counted only while a turn runs and somebody sees them.
function Conversation:tick()
  local running = self.session ~= nil
    and self.session.transcript.turn ~= nil
    and #vim.fn.win_findbuf(self.buf) > 0
  if not running then
    if self.ticking then
      self.ticking:stop()
      self.ticking:close()
      self.ticking = nil
    end
  elseif not self.ticking then
    self.ticking = assert(vim.uv.new_timer())
    self.ticking:start(
      1000,
      1000,
      vim.schedule_wrap(function()
        if self.ticking then
          notify.guard(self.draw_bars, self)
        end
      end)
    )
  end
end

---Makes sure that there is a session.
---@param done fun(ok: boolean)?
function Conversation:begin(done)
  done = done or function() end
  if self.id then
    return done(true)
  elseif self.begun then
    table.insert(self.begun, done)
    return
  end
  self.begun = { done }
  self:server_changed()
  self.app:request('session/create', {
    cwd = self.cwd,
    title = self.title,
    idempotencyKey = self.app:new_key(),
  }, function(err, got)
    local waiting = self.begun
    self.begun = nil
    if err then
      notify.failed('begin a session', err)
    elseif vim.api.nvim_buf_is_valid(self.buf) then
      self.app:put_session(got.session)
      self:attach(got.session.sessionId)
      require('callboard.ui.chat').began(self)
    end
    for _, fn in ipairs(waiting) do
      fn(not err)
    end
    self.view:update_tail()
    self:draw_bars()
  end)
end

---@class callboard.Said
---@field text string
---@field delivery callboard.Delivery?
---@field context callboard.ContextItem[]?
---@field alone boolean? nothing goes along

---Sends what was said, with what goes along. What cannot be sent goes back to the input.
---@param said callboard.Said
function Conversation:say(said)
  local prompt = said.alone and { text = said.text, delivery = said.delivery }
    or self.chips:prompt(said, self.cwd)
  local key = self.app:new_key()
  Queue.add(self.early, { key = key, text = said.text, delivery = said.delivery or 'auto' })
  self.view:update_tail()
  self:draw_bars()
  self:begin(function(ok)
    Queue.settle(self.early, key)
    if not ok then
      self.input:give_back(said.text)
      return
    end
    self:attach()
    self.session:prompt(prompt, function(err)
      if err then
        notify.failed('send it', err)
        self.chips:give_back(prompt.context)
        self.input:give_back(said.text)
      end
    end)
  end)
end

---Its buffers go.
function Conversation:close()
  for _, off in ipairs(self.offs) do
    off()
  end
  self:rest()
  self.view:close()
  keys.forget(self.buf)
  keys.forget(self.input.buf)
end

return M

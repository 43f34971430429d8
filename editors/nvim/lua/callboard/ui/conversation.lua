-- The chat of one session: its two buffers, what is shown in them, and what is sent from there. Before its
-- session is there it only has an input; the first thing that is said begins the session.
local Approvals = require('callboard.model.approvals')
local Bars = require('callboard.ui.bars')
local Input = require('callboard.ui.input')
local Queue = require('callboard.model.queue')
local Reducer = require('callboard.model.reducer')
local buffers = require('callboard.ui.buffers')
local chips = require('callboard.ui.chips')
local config = require('callboard.config')
local keys = require('callboard.keys')
local notify = require('callboard.notify')
local showing = require('callboard.ui.showing')
local view = require('callboard.ui.view')

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
---@field app callboard.App
---@field early callboard.Outbox what was said before the session was there
---@field bars callboard.Bars what stands above its windows
---@field private begun (fun(ok: boolean))[]? who waits for the session that is being created
---@field private offs (fun())[]
---@field late boolean the server has been away for a while
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
  self.chips = chips.new(function()
    local record = self:record()
    return vim.list_extend(
      { record and record.cwd or self.cwd },
      record and record.additionalDirectories or {}
    )
  end)
  self.bars = Bars.new(self)
  local options = config.get().render
  self.view = view.new({
    buf = self.buf,
    debounce_ms = options.debounce_ms,
    max_items = options.max_items,
    look = function()
      return showing.look(self)
    end,
    top = function(hidden)
      return showing.top(self, hidden)
    end,
    tail = function()
      return showing.tail(self)
    end,
  }, Reducer.new(''))
  for topic, fn in pairs({
    server = self.server_changed,
    sessions = self.renamed,
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
  self.bars:watch()
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
  self:approvals_changed()
end

---Follows it no more, while nobody looks. What is in the input stays.
function Conversation:rest()
  if self.session then
    self.detach()
    self.session, self.detach = nil, nil
    self.app:release(self.id)
    self.bars:tick()
  end
end

---@private
---@param update callboard.session.Update
function Conversation:changed(update)
  if update.phase then
    -- What was shown stays until there is something newer.
    if update.phase == 'live' then
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
    self.bars:draw()
  end
end

---@private
function Conversation:renamed()
  self.bars:draw()
end

---What the store says of its session.
---@return callboard.Session?
function Conversation:record()
  return self.id and self.app.sessions.by_id[self.id] or nil
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

---@return callboard.session.Phase|'new'
function Conversation:phase()
  if self.session then
    return self.session.phase
  end
  return (self.id or self.begun) and 'loading' or 'new'
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
  self.bars:draw()
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
  self.bars:draw()
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
    self.bars:draw()
  end)
end

---Whether its agent may see a file; if not, says so.
---@param item callboard.ContextItem
---@return boolean
function Conversation:may_see(item)
  local path = vim.uri_to_fname(item.uri)
  if self.chips:is_seen(path) then
    return true
  end
  local record = self:record()
  notify.warn(
    ('%s is outside of %s, where this session works: its agent may not see it. :%%Callboard send sends its text'):format(
      vim.fn.fnamemodify(path, ':~'),
      vim.fn.fnamemodify(record and record.cwd or self.cwd, ':~')
    )
  )
  return false
end

---@class callboard.Said
---@field text string
---@field delivery callboard.Delivery?
---@field context callboard.ContextItem[]?
---@field alone callboard.Content[]? this goes along, and nothing else

---Sends what was said, with what goes along. What cannot be sent goes back to the input.
---@param said callboard.Said
function Conversation:say(said)
  local prompt = said.alone and { text = said.text, delivery = said.delivery, content = said.alone }
    or self.chips:prompt(said, self.cwd)
  local key = self.app:new_key()
  Queue.add(self.early, { key = key, text = said.text, delivery = said.delivery or 'auto' })
  self.view:update_tail()
  self.bars:draw()
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

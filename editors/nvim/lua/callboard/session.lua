-- A session that is open in this editor: its transcript, followed live; the pages before it; what is said to
-- it. It is a view of the log: whatever happens to the server, it asks again from where it stopped.
local catalog = require('callboard.catalog')
local errors = require('callboard.errors')
local Reducer = require('callboard.model.reducer')
local Queue = require('callboard.model.queue')
local log = require('callboard.log')
local notify = require('callboard.notify')
local reading = require('callboard.reading')

local M = {}

---@alias callboard.session.Phase 'loading'|'live'|'lost'

---@class callboard.session.Update
---@field change callboard.Change? what is new in the transcript
---@field phase callboard.session.Phase? it has changed
---@field outbox boolean? what is on its way to the server has changed

---@class callboard.OpenSession
---@field id string
---@field transcript callboard.Transcript
---@field outbox callboard.Outbox
---@field phase callboard.session.Phase
---@field fault string? why it is lost
---@field at_start boolean all of it is loaded
---@field app callboard.App
---@field oldest string? cursor before the first event that is loaded
---@field private listeners fun(update: callboard.session.Update)[]
---@field private close_feed fun()?
---@field loading_older boolean?
---@field private drafting boolean?
---@field private drafting_again boolean?
---@field private gap integer? before which events were missing when all was read last
---@field epoch integer of what is loaded: answers to what was asked before it count no more
---@field private stranded boolean? it is lost for want of a server
---@field early table<string, boolean> the keys of prompts that were said while it was being read
local Session = {}
Session.__index = Session

---@param app callboard.App
---@param id string
---@return callboard.OpenSession
function M.open(app, id)
  local self = setmetatable({
    app = app,
    id = id,
    transcript = Reducer.new(id),
    outbox = Queue.new(),
    early = {},
    phase = 'loading',
    at_start = false,
    listeners = {},
    epoch = 0,
  }, Session)
  self:load()
  return self
end

---Tells those who listen.
---@param update callboard.session.Update
function Session:tell(update)
  for _, listener in ipairs(vim.list_slice(self.listeners)) do
    notify.guard(listener, update)
  end
end

---@param listener fun(update: callboard.session.Update)
---@return fun() off
function Session:listen(listener)
  local function own(update)
    listener(update)
  end
  table.insert(self.listeners, own)
  return function()
    self.listeners = vim.tbl_filter(function(other)
      return other ~= own
    end, self.listeners)
  end
end

---@private
---@param phase callboard.session.Phase
---@param fault string?
function Session:become(phase, fault)
  self.phase, self.fault = phase, fault
  self:tell({ phase = phase })
end

---@private
---@param err table
function Session:lose(err)
  self.stranded = errors.kind(err) == 'noServer'
  self:become('lost', errors.explain(err))
end

---A server is there again.
function Session:returned()
  if self.phase == 'lost' and self.stranded then
    self:load()
  end
end

---Reads the session anew: the newest page, what streams, and then what comes.
function Session:load()
  self.epoch = self.epoch + 1
  local epoch = self.epoch
  self.loading_older, self.drafting, self.drafting_again = false, false, false
  if self.close_feed then
    self.close_feed()
    self.close_feed = nil
  end
  local function failed(err)
    if epoch == self.epoch then
      self:lose(err)
    end
  end
  self:become('loading')
  self.app:request('session/get', { sessionId = self.id }, function(err, got)
    if err then
      failed(err)
    elseif type(got.session) ~= 'table' then
      failed({ message = 'what the server sent of this session cannot be read.' })
    elseif epoch == self.epoch then
      self.app:put_session(got.session)
      reading.newest(self, got.session, failed)
    end
  end)
end

---Follows it from a cursor on.
---@param cursor string
---@param epoch integer
function Session:follow(cursor, epoch)
  self.close_feed = self.app.feed:follow({
    scope = { kind = 'session', id = self.id },
    cursor = cursor,
    deltas = true,
    on_events = function(events)
      if epoch == self.epoch then
        self:events(events)
      end
    end,
    on_delta = function(delta)
      if epoch == self.epoch then
        self:changed(Reducer.delta(self.transcript, delta))
      end
    end,
    on_live = function()
      -- What streamed before this subscription, or while no server was there, stands in the draft, also when
      -- the event of its turn has not come yet.
      if epoch == self.epoch then
        self:fetch_draft()
      end
    end,
    on_lost = function(err)
      if epoch ~= self.epoch then
        return
      end
      local kind = errors.kind(err)
      if kind == 'invalidCursor' or kind == 'cursorExpired' then
        self:load()
      else
        self:lose(err)
      end
    end,
  })
end

---Takes an event into a transcript of it.
---@param transcript callboard.Transcript
---@param event callboard.Event
---@return callboard.Change?
function Session:apply(transcript, event)
  local change = Reducer.apply(transcript, event)
  if change and change.fault then
    log.error('seq %s of %s cannot be shown: %s', event.seq, self.id, change.fault)
  end
  return change
end

---@private
---Events are missing: all is read anew, but not again and again for the same ones.
---@param seq integer
function Session:torn(seq)
  log.warn('events of %s are missing before seq %d', self.id, seq)
  if self.gap == seq then
    return self:lose({ message = 'the server leaves out a part of this session.' })
  end
  self.gap = seq
  self:load()
end

---@private
---@param events callboard.Event[]
function Session:events(events)
  local merged, sent
  for _, event in ipairs(events) do
    local change = self:apply(self.transcript, event)
    if change and change.gap then
      return self:torn(event.seq)
    end
    merged = Reducer.merge(merged, change)
    local data = event.data
    if event.type == 'message' and type(data) == 'table' and data.clientMessageId then
      sent = Queue.settle(self.outbox, data.clientMessageId) ~= nil or sent
    end
    if change then
      notify.guard(catalog.seen, self.app, event)
    end
  end
  self:changed(merged)
  if sent then
    self:tell({ outbox = true })
  end
  if self.transcript.deleted then
    self.close_feed()
    self:become('lost', 'this session was deleted. :Callboard sessions shows the others.')
  end
end

---The page with which it begins to be followed. What was said here meanwhile, and what comes of it, is news, though
---it stands on that page.
---@param events callboard.Event[]
function Session:begun_with(events)
  local fresh = false
  for _, event in ipairs(events) do
    fresh = fresh or self.early[type(event.data) == 'table' and event.data.clientMessageId or '']
    if fresh then
      notify.guard(catalog.seen, self.app, event)
    end
  end
  self.early = {}
end

---Tells of a change, and asks for what is missing.
---@param change callboard.Change?
function Session:changed(change)
  if not change then
    return
  end
  if change.hole then
    self:fetch_draft()
  end
  self:tell({ change = change })
end

---@private
---Asks for the draft; once more when it is wanted anew before it is there: then it may lack what is missing now.
function Session:fetch_draft()
  if self.drafting then
    self.drafting_again = true
    return
  end
  self.drafting = true
  local epoch = self.epoch
  self.app:request('session/get', { sessionId = self.id }, function(err, got)
    if epoch ~= self.epoch then
      return
    end
    local again = self.drafting_again
    self.drafting, self.drafting_again = false, false
    if not err then
      local change = Reducer.draft(self.transcript, got.draft)
      change.hole = nil -- a piece that is still missing is asked for with the next one that comes
      self:changed(change)
      if again then
        self:fetch_draft()
      end
    end
  end)
end

---Loads the page before what is there.
---@param done fun(loaded: boolean)?
function Session:load_older(done)
  reading.older(self, done or function() end)
end

---@class callboard.Prompt
---@field text string
---@field delivery callboard.Delivery?
---@field context callboard.ContextItem[]?
---@field content callboard.Content[]? more than the text: what of buffers is sent along
---@field to string?

---Says something. It stands in the outbox until it is durable.
---@param prompt callboard.Prompt
---@param done fun(err: table?, result: callboard.SessionPromptResult?)?
function Session:prompt(prompt, done)
  local key = self.app:new_key()
  local delivery = prompt.delivery or 'auto'
  Queue.add(self.outbox, { key = key, text = prompt.text, delivery = delivery })
  if self.phase ~= 'live' then
    self.early[key] = true
  end
  self:tell({ outbox = true })
  local content = { { type = 'text', text = require('callboard.model.text').utf8(prompt.text) } }
  vim.list_extend(content, prompt.content or {})
  self.app:request('session/prompt', {
    sessionId = self.id,
    content = content,
    delivery = delivery,
    clientMessageId = key,
    context = prompt.context,
    to = prompt.to,
    idempotencyKey = key,
  }, function(err, result)
    Queue.settle(self.outbox, key)
    self:tell({ outbox = true })
    if result and result.warning then
      notify.warn(result.warning)
    end
    if done then
      done(err, result)
    end
  end)
end

---Nobody looks at it any more.
function Session:close()
  self.epoch = self.epoch + 1
  if self.close_feed then
    self.close_feed()
    self.close_feed = nil
  end
  self.listeners = {}
end

return M

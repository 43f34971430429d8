-- A session as its events tell it: what was said, done and asked, in the order of the log. Pure.
--
-- Items only ever come at the end, so that a view appends; one that changes keeps its place. A prompt is an
-- item from the moment at which a turn takes it in (`ack`); until then it stands in the queue.
local M = {}

---@alias callboard.ItemKind 'prompt'|'answer'|'thought'|'tool'|'notice'|'error'|'turn'

---@class callboard.Item
---@field id string
---@field kind callboard.ItemKind
---@field seq integer of the event that it began with; 0 while it only streams
---@field at string
---@field turn_id string?
---@field author callboard.Author?
---@field text string
---@field streaming boolean? deltas still come
---@field private pieces string[]? of the text while it streams
---@field private size integer? bytes in them
---@field partial boolean? cut off by a crash or a cancel
---@field steer boolean? a prompt that did not wait for the end of a turn
---@field context callboard.ContextItem[]?
---@field attachments string[]? what else a prompt held: names of files, images
---@field call callboard.ToolCall?
---@field result callboard.ToolResult?
---@field approval callboard.Approval?
---@field blobs table<string, callboard.BlobRef>? by JSON pointer: what the event holds only in part
---@field outcome callboard.TurnOutcome?
---@field failure callboard.Failure?
---@field usage callboard.Usage?
---@field duration_ms integer?
---@field finished callboard.TurnFinished?

---@class callboard.Stream
---@field item callboard.Item?
---@field next integer the piece that comes next
---@field held callboard.EventDelta[] pieces behind a hole

---@class callboard.Transcript
---@field session_id string
---@field items callboard.Item[]
---@field by_id table<string, callboard.Item>
---@field first_seq integer? of the first event that was applied
---@field last_seq integer
---@field queue callboard.Item[] prompts that no turn has taken in, in order
---@field turn { id: string, started_at: string, state: callboard.TurnState, cancelling: boolean }?
---@field plan callboard.PlanEntry[]
---@field mode string?
---@field model string?
---@field title string?
---@field speakers table<string, string> by turn: the profile that plays it
---@field closed boolean?
---@field deleted boolean?
---@field private streams table<string, callboard.Stream> by kind and message
---@field private admitted table<integer, boolean> prompts that were taken in, and are not loaded

---What an event has changed.
---@class callboard.Change
---@field items string[] ids of items that are new or look different, in order
---@field reset boolean? items have gone, or stand elsewhere: show all anew
---@field queue boolean?
---@field head boolean? turn, plan, mode, model, title
---@field hole boolean? streamed text is missing: the draft has it
---@field gap boolean? events are missing: ask again
---@field events string[] types, for whoever follows more than the text

---@param session_id string
---@return callboard.Transcript
function M.new(session_id)
  return {
    session_id = session_id,
    items = {},
    by_id = {},
    last_seq = 0,
    queue = {},
    plan = {},
    speakers = {},
    streams = {},
    admitted = {},
  }
end

---@return callboard.Change
local function nothing()
  return { items = {}, events = {} }
end

---@param change callboard.Change
---@param id string
local function touch(change, id)
  if change.items[#change.items] ~= id and not vim.list_contains(change.items, id) then
    change.items[#change.items + 1] = id
  end
end

-- Text that streams is kept in pieces until somebody looks at it: joining all of it with each piece would cost
-- more and more the longer it gets.
local Streaming = {
  __index = function(item, key)
    local pieces = key == 'text' and rawget(item, 'pieces')
    if not pieces then
      return nil
    end
    local whole = table.concat(pieces)
    item.pieces = { whole }
    return whole
  end,
}

---@param item callboard.Item
---@param piece string
local function append(item, piece)
  if not item.pieces then
    item.pieces, item.size, item.text = { item.text }, #item.text, nil
    setmetatable(item, Streaming)
  end
  item.pieces[#item.pieces + 1] = piece
  item.size = item.size + #piece
end

---@param item callboard.Item
---@param whole string
local function set_text(item, whole)
  item.pieces, item.size = nil, nil
  item.text = whole
  setmetatable(item, nil)
end

---@param t callboard.Transcript
---@param change callboard.Change
---@param item callboard.Item
---@return callboard.Item
local function push(t, change, item)
  t.items[#t.items + 1] = item
  t.by_id[item.id] = item
  touch(change, item.id)
  return item
end

---@param t callboard.Transcript
---@param change callboard.Change
---@param event callboard.Event
---@param text string
local function notice(t, change, event, text)
  push(t, change, {
    id = event.eventId,
    kind = 'notice',
    seq = event.seq,
    at = event.at,
    turn_id = event.turnId,
    text = text,
  })
end

---@param content table[]?
---@return string text
---@return string thought
---@return string[] attachments
local function parts(content)
  local said, thought, attached = {}, {}, {}
  local function is_for(block, whom)
    return block._meta ~= nil and block._meta.audience == whom
  end
  local told = vim.iter(content or {}):any(function(block)
    return is_for(block, 'person')
  end)
  for _, block in ipairs(content or {}) do
    if block.type == 'text' then
      if not (told and is_for(block, 'model')) then
        said[#said + 1] = block.text
      end
    elseif block.type == 'thinking' then
      thought[#thought + 1] = block.text
    elseif block.type == 'image' then
      attached[#attached + 1] = ('image (%s)'):format(block.mimeType)
    elseif block.type == 'resource_link' or block.type == 'resource' then
      attached[#attached + 1] = block.name or block.uri
    end
  end
  return table.concat(said, '\n\n'), table.concat(thought, '\n\n'), attached
end

---@param event callboard.Event
---@return callboard.Item
local function prompt_of(event)
  local data = event.data
  local text, _, attached = parts(data.content)
  for _, item in ipairs(data.context or {}) do
    local range = item.range
    local lines = range and ('#L%d-%d'):format(range.start.line + 1, math.max(range['end'].line, range.start.line + 1))
    attached[#attached + 1] = item.uri .. (lines or '')
  end
  return {
    id = data.messageId,
    kind = 'prompt',
    seq = event.seq,
    at = event.at,
    author = data.author,
    text = text,
    steer = data.delivery == 'steer' or nil,
    attachments = attached,
    blobs = data._blobs,
  }
end

---@param t callboard.Transcript
---@param seq integer
---@return callboard.Item?
local function take(t, seq)
  for i, item in ipairs(t.queue) do
    if item.seq == seq then
      return table.remove(t.queue, i)
    end
  end
end

---@param t callboard.Transcript
---@param kind string
---@param message_id string
---@return callboard.Stream
local function stream_of(t, kind, message_id)
  local key = kind .. ':' .. message_id
  t.streams[key] = t.streams[key] or { next = 0, held = {} }
  return t.streams[key]
end

---@param t callboard.Transcript
---@param message_id string
local function end_streams(t, message_id)
  for _, kind in ipairs({ 'answer', 'thought', 'tool_output' }) do
    t.streams[kind .. ':' .. message_id] = nil
  end
end

---@param t callboard.Transcript
---@param change callboard.Change
---@param id string
local function remove(t, change, id)
  if t.by_id[id] then
    t.by_id[id] = nil
    t.items = vim.tbl_filter(function(item)
      return item.id ~= id
    end, t.items)
    change.reset = true
  end
end

---@param t callboard.Transcript
---@param change callboard.Change
---@param event callboard.Event
---@param kind 'answer'|'thought'
---@param id string
---@param text string
local function settle(t, change, event, kind, id, text)
  local item = t.by_id[id]
  if text == '' and not (item and item.text ~= '') then
    remove(t, change, id)
    return
  end
  local data = event.data
  item = item
    or push(t, change, { id = id, kind = kind, seq = event.seq, at = event.at, text = '' })
  item.seq, item.at, item.turn_id = event.seq, event.at, event.turnId
  item.author, item.partial, item.streaming = data.author, data.partial, nil
  set_text(item, text ~= '' and text or item.text)
  item.blobs = data._blobs
  touch(change, id)
end

---@param t callboard.Transcript
---@param change callboard.Change
---@param outcome 'cancelled'|nil
local function end_turn(t, change, outcome)
  for _, item in ipairs(t.items) do
    if item.streaming then
      set_text(item, item.text)
      item.streaming, item.partial = nil, outcome ~= nil or nil
      touch(change, item.id)
    end
  end
  t.streams = {}
  t.turn = nil
  change.head = true
end

---@type table<string, fun(t: callboard.Transcript, event: callboard.Event, change: callboard.Change)>
local on = {}

function on.message(t, event, change)
  local data = event.data
  if data.author.kind == 'agent' and not data.delivered then
    local text, thought = parts(data.content)
    settle(t, change, event, 'thought', data.messageId .. ':thought', thought)
    settle(t, change, event, 'answer', data.messageId, text)
    end_streams(t, data.messageId)
    return
  end
  local item = prompt_of(event)
  if data.delivered or t.admitted[event.seq] then
    item.turn_id = event.turnId
    push(t, change, item)
  else
    t.queue[#t.queue + 1] = item
    change.queue = true
  end
end

function on.directive(t, event, change)
  local item = {
    id = event.data.messageId,
    kind = 'prompt',
    seq = event.seq,
    at = event.at,
    author = event.data.author,
    text = event.data.text,
    blobs = event.data._blobs,
  }
  t.queue[#t.queue + 1] = item
  change.queue = true
end

function on.ack(t, event, change)
  for _, seq in ipairs(event.data.admits) do
    local item = take(t, seq)
    if item then
      item.turn_id = event.turnId
      push(t, change, item)
      change.queue = true
    else
      t.admitted[seq] = true
    end
  end
end

function on.prompt_updated(t, event, change)
  for _, item in ipairs(t.queue) do
    if item.seq == event.data.seq then
      local text, _, attached = parts(event.data.content)
      item.text, item.attachments = text, attached
      change.queue = true
    end
  end
end

function on.triggers_dropped(t, event, change)
  for _, seq in ipairs(event.data.seqs) do
    if take(t, seq) then
      change.queue = true
    end
  end
end

function on.turn_started(t, event, change)
  local data = event.data
  t.turn = { id = data.turnId, started_at = event.at, state = 'running', cancelling = false }
  t.model = data.model or t.model
  t.speakers[data.turnId] = data.profile
  change.head = true
end

function on.turn_parked(t, _, change)
  if t.turn then
    t.turn.state = 'parked'
  end
  change.head = true
end

function on.turn_resumed(t, event, change)
  t.turn = t.turn or { id = event.data.turnId or event.turnId, started_at = event.at, cancelling = false }
  t.turn.state = 'running'
  change.head = true
end

function on.cancel_requested(t, _, change)
  if t.turn then
    t.turn.cancelling = true
  end
  change.head = true
end

function on.turn_finished(t, event, change)
  local data = event.data
  end_turn(t, change, data.outcome ~= 'completed' and 'cancelled' or nil)
  push(t, change, {
    id = event.eventId,
    kind = 'turn',
    seq = event.seq,
    at = event.at,
    turn_id = data.turnId,
    text = '',
    outcome = data.outcome,
    failure = data.error,
    usage = data.usage,
    duration_ms = data.durationMs,
    finished = data,
  })
end

function on.tool_call(t, event, change)
  local data = event.data
  local item = t.by_id[data.callId]
    or push(t, change, {
      id = data.callId,
      kind = 'tool',
      seq = event.seq,
      at = event.at,
      text = '',
    })
  item.seq, item.at, item.turn_id = event.seq, event.at, event.turnId
  item.call = data
  touch(change, item.id)
end

function on.tool_result(t, event, change)
  local data = event.data
  local item = t.by_id[data.callId]
    or push(t, change, {
      id = data.callId,
      kind = 'tool',
      seq = event.seq,
      at = event.at,
      text = '',
      turn_id = event.turnId,
    })
  set_text(item, data.text)
  item.result, item.streaming = data, nil
  item.blobs = data._blobs
  end_streams(t, data.callId)
  touch(change, item.id)
end

function on.approval_request(t, event, change)
  local approval = event.data.approval
  local item = t.by_id[approval.callId]
  if item then
    item.approval = approval
    touch(change, item.id)
  end
  if t.turn then
    t.turn.state = 'waiting_approval'
    change.head = true
  end
end

function on.approval_decision(t, event, change)
  local data = event.data
  local item = t.by_id[data.callId]
  if item and item.approval then
    item.approval.state = 'resolved'
    item.approval.resolution = data.resolution
    touch(change, item.id)
  end
  if t.turn and t.turn.state == 'waiting_approval' and not M.pending(t) then
    t.turn.state = 'running'
    change.head = true
  end
end

function on.error(t, event, change)
  push(t, change, {
    id = event.eventId,
    kind = 'error',
    seq = event.seq,
    at = event.at,
    turn_id = event.turnId,
    text = event.data.error.message,
    failure = event.data.error,
  })
end

function on.summary(t, event, change)
  notice(t, change, event, 'What was said so far was summarised')
end

function on.plan_updated(t, event, change)
  t.plan = event.data.entries
  change.head = true
end

function on.mode_changed(t, event, change)
  t.mode = event.data.mode
  change.head = true
  notice(t, change, event, 'Mode: ' .. event.data.mode)
end

function on.model_changed(t, event, change)
  t.model = event.data.model
  change.head = true
  notice(t, change, event, 'Model: ' .. (event.data.model or 'the default'))
end

function on.model_retried(t, event, change)
  local data = event.data
  notice(t, change, event, ('The model did not answer (%s); attempt %d'):format(data.error.message, data.attempt + 1))
end

function on.session_updated(t, event, change)
  local title = event.data.changes.title
  if title ~= nil then
    t.title = title ~= vim.NIL and title or nil
  end
  change.head = true
end

function on.session_rewound(t, event, change)
  local data = event.data
  local gone = {}
  for _, seq in ipairs(data.prompts or {}) do
    gone[seq] = true
  end
  local function stays(item)
    return not (gone[item.seq] or (item.seq >= data.beforeSeq and item.seq <= data.throughSeq))
  end
  t.items = vim.tbl_filter(stays, t.items)
  t.queue = vim.tbl_filter(stays, t.queue)
  t.by_id = {}
  for _, item in ipairs(t.items) do
    t.by_id[item.id] = item
  end
  change.reset, change.queue = true, true
  local said = ('Went back: %d turn%s taken out. Files are as they were left.'):format(data.turns, data.turns == 1 and '' or 's')
  notice(t, change, event, said)
end

function on.session_forked(t, event, change)
  notice(t, change, event, 'A fork: what stands above was taken over')
end

function on.session_created(t, event, change)
  local data = event.data
  t.title, t.mode, t.model = data.title, data.mode, data.model
  change.head = true
end

function on.agent_spawned(t, event, change)
  on.session_created(t, { data = event.data.session }, change)
  t.title = event.data.name
end

function on.session_archived(_, _, change)
  change.head = true
end

on.session_unarchived = on.session_archived

function on.session_closed(t, event, change)
  t.closed = true
  change.head = true
  notice(t, change, event, 'The session was closed')
end

function on.session_deleted(t, _, change)
  t.deleted = true
  change.head = true
end

function on.agent_asked(t, event, change)
  notice(t, change, event, (event.data.expectsReply and 'Asks its parent: ' or 'Tells its parent: ') .. event.data.text)
end

function on.agent_replied(t, event, change)
  local data = event.data
  notice(t, change, event, data.outcome == 'replied' and 'Was told: ' .. (data.text or '') or 'No reply: ' .. data.outcome)
end

function on.agent_report_created(t, event, change)
  notice(t, change, event, ('Reported to its parent (%s)'):format(event.data.report.status))
end

function on.agent_interrupted(t, event, change)
  notice(t, change, event, 'Was interrupted: ' .. event.data.reason)
end

function on.member_added(t, event, change)
  notice(t, change, event, ('@%s takes part'):format(event.data.name))
end

function on.member_removed(t, event, change)
  notice(t, change, event, ('@%s takes no part any more'):format(event.data.name))
end

function on.wake_suppressed(t, event, change)
  local data = event.data
  notice(t, change, event, ('@%s was not woken: %d messages of agents in a row. Say something to go on.'):format(data.name, data.burst))
end

function on.schedule_fired(t, event, change)
  notice(t, change, event, ('Woken by the schedule %s: %s'):format(event.data.name, event.data.prompt))
end

function on.peer_linked(t, event, change)
  notice(t, change, event, 'Linked to ' .. event.data.peerId)
end

function on.peer_unlinked(t, event, change)
  notice(t, change, event, 'The link to ' .. event.data.peerId .. ' has ended')
end

function on.peer_message_sent(t, event, change)
  notice(t, change, event, ('To %s: %s'):format(event.data.to, event.data.text))
end

function on.completion_changed(t, event, change)
  notice(t, change, event, 'Says that its work is done; nobody has verified it')
end

---Takes in one event; nil when it was taken in before.
---@param t callboard.Transcript
---@param event callboard.Event
---@return callboard.Change?
function M.apply(t, event)
  local change = nothing()
  if event.type == 'session_deleted' then
    on.session_deleted(t, event, change)
    return change
  end
  if t.first_seq == nil then
    t.first_seq, t.last_seq = event.seq, event.seq - 1
  end
  if event.seq <= t.last_seq then
    return nil
  elseif event.seq > t.last_seq + 1 then
    change.gap = true
    return change
  end
  t.last_seq = event.seq
  change.events[1] = event.type
  local handler = on[event.type]
  if handler then
    handler(t, event, change)
  end
  return change
end

---Bytes of a running tool's output that are kept; its result has all of it.
local OUTPUT_LIMIT = 64 * 1024

---@param t callboard.Transcript
---@param delta callboard.EventDelta
---@return callboard.Change?
local function output(t, delta)
  local stream = stream_of(t, delta.kind, delta.messageId)
  local item = t.by_id[delta.messageId]
  if not item or item.result or delta.index < stream.next then
    return nil
  end
  -- No draft has a tool's output: what is missing stays so until its result.
  append(item, delta.index > stream.next and '\n…\n' .. delta.text or delta.text)
  if item.size > 2 * OUTPUT_LIMIT then
    set_text(item, '…' .. item.text:sub(-OUTPUT_LIMIT):gsub('^[^\n]*', '', 1))
  end
  item.streaming = true
  stream.next = delta.index + (delta.count or 1)
  local change = nothing()
  touch(change, item.id)
  return change
end

---Takes in a piece of streamed text. Pieces behind a hole are held until the draft fills it.
---@param t callboard.Transcript
---@param delta callboard.EventDelta
---@return callboard.Change?
function M.delta(t, delta)
  if delta.kind == 'tool_output' then
    return output(t, delta)
  end
  local id = delta.kind == 'thought' and delta.messageId .. ':thought' or delta.messageId
  local item = t.by_id[id]
  if item and item.seq > 0 then
    return nil -- the message is there already
  end
  local stream = stream_of(t, delta.kind, delta.messageId)
  local count = delta.count or 1
  if delta.index + count <= stream.next then
    return nil
  end
  local change = nothing()
  if delta.index > stream.next then
    stream.held[#stream.held + 1] = delta
    change.hole = true
    return change
  end
  item = item
    or push(t, change, {
      id = id,
      kind = delta.kind == 'thought' and 'thought' or 'answer',
      seq = 0,
      at = '',
      turn_id = delta.turnId,
      text = '',
    })
  item.streaming = true
  append(item, delta.text)
  stream.next = delta.index + count
  touch(change, id)
  return change
end

---What has streamed so far, as the server has saved it. Fills holes, and begins what was under way when
---the session was opened.
---@param t callboard.Transcript
---@param draft callboard.Draft?
---@return callboard.Change
function M.draft(t, draft)
  local change = nothing()
  if not draft then
    for _, stream in pairs(t.streams) do
      stream.held = {}
    end
    return change
  end
  for _, kind in ipairs({ 'thought', 'answer' }) do
    local id = kind == 'thought' and draft.messageId .. ':thought' or draft.messageId
    local item = t.by_id[id]
    local stream = stream_of(t, kind, draft.messageId)
    local next_index = draft.nextIndex[kind] or 0
    if not (item and item.seq > 0) and next_index > stream.next then
      item = item
        or push(t, change, { id = id, kind = kind, seq = 0, at = '', turn_id = draft.turnId, text = '' })
      set_text(item, draft[kind])
      item.streaming = true
      stream.next = next_index
      touch(change, id)
    end
    local held = stream.held
    stream.held = {}
    for _, delta in ipairs(held) do
      local more = M.delta(t, delta)
      for _, changed in ipairs(more and more.items or {}) do
        touch(change, changed)
      end
      change.hole = change.hole or (more and more.hole)
    end
  end
  return change
end

---Puts events from before those that are loaded in front of them.
---@param t callboard.Transcript
---@param events callboard.Event[] in order, all of them older
---@return callboard.Change
function M.older(t, events)
  local change = nothing()
  local first = events[1]
  if not first or (t.first_seq and first.seq >= t.first_seq) then
    return change
  end
  local before = M.new(t.session_id)
  before.admitted = t.admitted
  for _, event in ipairs(events) do
    M.apply(before, event)
  end
  -- What a later page took in, or has the result of, begins here.
  local admitted = {}
  for _, item in ipairs(before.queue) do
    if t.admitted[item.seq] then
      admitted[#admitted + 1] = item
    else
      table.insert(t.queue, 1, item)
    end
  end
  local items = vim.list_extend(before.items, admitted)
  local seen = {}
  for i, item in ipairs(items) do
    local later = t.by_id[item.id]
    if later then
      later.call = later.call or item.call
      later.approval = later.approval or item.approval
      later.seq, later.at = item.seq, item.at
      items[i] = later
      seen[later.id] = true
    end
  end
  for _, item in ipairs(t.items) do
    if not seen[item.id] then
      items[#items + 1] = item
    end
  end
  t.items = items
  t.by_id = {}
  for _, item in ipairs(items) do
    t.by_id[item.id] = item
  end
  if #t.plan == 0 then
    t.plan = before.plan
  end
  t.speakers = vim.tbl_extend('keep', t.speakers, before.speakers)
  t.title, t.mode, t.model = t.title or before.title, t.mode or before.mode, t.model or before.model
  t.first_seq = first.seq
  change.reset, change.queue, change.head = true, true, true
  return change
end

---Joins what several events have changed, for one drawing.
---@param into callboard.Change?
---@param change callboard.Change?
---@return callboard.Change?
function M.merge(into, change)
  if not into or not change then
    return into or change
  end
  for _, id in ipairs(change.items) do
    touch(into, id)
  end
  vim.list_extend(into.events, change.events)
  into.reset = into.reset or change.reset
  into.queue = into.queue or change.queue
  into.head = into.head or change.head
  into.hole = into.hole or change.hole
  into.gap = into.gap or change.gap
  return into
end

---The oldest approval of this session that waits for an answer.
---@param t callboard.Transcript
---@return callboard.Approval?
function M.pending(t)
  for _, item in ipairs(t.items) do
    local approval = item.approval
    if approval and (approval.state or 'pending') == 'pending' and not item.result then
      return approval
    end
  end
end

M.parts = parts

return M

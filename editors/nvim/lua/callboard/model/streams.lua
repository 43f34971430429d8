-- Text that is not in the log yet: pieces of a message, numbered, and the draft that fills their holes. Pure.
local items = require('callboard.model.items')

local M = {}

---Bytes of a running tool's output that are kept; its result has all of it.
local OUTPUT_LIMIT = 64 * 1024

---@param kind 'answer'|'thought'
---@param message_id string
---@return string
function M.id(kind, message_id)
  return kind == 'thought' and message_id .. ':thought' or message_id
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

---No more comes of a message, or of a call's output.
---@param t callboard.Transcript
---@param message_id string
function M.finish(t, message_id)
  t.said[message_id] = true
  for _, kind in ipairs({ 'answer', 'thought', 'tool_output' }) do
    t.streams[kind .. ':' .. message_id] = nil
  end
end

---The turn is over. What streamed and did not come into the log is no part of what was said: a server that was
---killed could not save it.
---@param t callboard.Transcript
---@param change callboard.Change
---@param turn_id string
function M.cut(t, change, turn_id)
  local kept = {}
  for _, item in ipairs(t.items) do
    if item.seq == 0 then
      t.by_id[item.id] = nil
      change.reset = true
    else
      kept[#kept + 1] = item
      if item.streaming then
        items.set_text(item, item.text)
        item.streaming, item.partial = nil, true
        items.touch(change, item.id)
      end
    end
  end
  if change.reset then
    t.items = kept
  end
  t.streams, t.ended[turn_id] = {}, true
end

---The message is in the log: what it says takes the place of what was streamed.
---@param t callboard.Transcript
---@param change callboard.Change
---@param event callboard.Event
---@param kind 'answer'|'thought'
---@param text string
function M.settle(t, change, event, kind, text)
  local data = event.data
  local id = M.id(kind, data.messageId)
  local item = t.by_id[id]
  if text == '' and not (item and item.text ~= '') then
    items.remove(t, change, id)
    return
  end
  item = item or items.add(t, change, event, { id = id, kind = kind })
  item.seq, item.placed, item.at, item.turn_id = event.seq, event.seq, event.at, event.turnId
  item.author, item.streaming = data.author, nil
  item.partial = data.partial or nil
  items.set_text(item, text ~= '' and text or item.text)
  item.blobs = data._blobs
  items.touch(change, id)
end

---@param t callboard.Transcript
---@param delta callboard.EventDelta
---@return callboard.Change?
local function output(t, delta)
  local item = t.by_id[delta.messageId]
  if not item then
    t.early[#t.early + 1] = delta
    return nil
  elseif item.result then
    return nil
  end
  local stream = stream_of(t, delta.kind, delta.messageId)
  if delta.index < stream.next then
    return nil
  end
  -- No draft has a tool's output: what is missing stays so until its result.
  local missing = delta.index > stream.next and '\n…\n' or ''
  if items.append(item, missing .. delta.text) > 2 * OUTPUT_LIMIT then
    items.set_text(item, '…' .. item.text:sub(-OUTPUT_LIMIT):gsub('^[^\n]*', '', 1))
  end
  item.streaming = true
  stream.next = delta.index + (delta.count or 1)
  local change = items.nothing()
  items.touch(change, item.id)
  return change
end

---@param t callboard.Transcript
---@param change callboard.Change
---@param kind 'answer'|'thought'
---@param from { messageId: string, turnId: string }
---@return callboard.Item
local function streaming(t, change, kind, from)
  local id = M.id(kind, from.messageId)
  return t.by_id[id]
    or items.push(t, change, {
      id = id,
      kind = kind,
      seq = 0,
      placed = math.huge,
      at = '',
      turn_id = from.turnId,
      text = '',
    })
end

---Whether a turn has begun and taken its prompts in: what it says stands below them.
---@param t callboard.Transcript
---@param turn_id string
---@return boolean
local function is_open(t, turn_id)
  return t.turn ~= nil and t.turn.id == turn_id and t.opening ~= turn_id
end

---Takes in a piece of streamed text. Pieces behind a hole are held until the draft fills it; pieces that have
---overtaken the event by which their turn, or their call, began, until `catch_up`.
---@param t callboard.Transcript
---@param delta callboard.EventDelta
---@return callboard.Change?
function M.delta(t, delta)
  if type(delta.text) ~= 'string' or type(delta.index) ~= 'number' then
    return nil
  elseif type(delta.messageId) ~= 'string' or type(delta.turnId) ~= 'string' then
    return nil
  elseif t.ended[delta.turnId] or t.said[delta.messageId] then
    return nil
  elseif not is_open(t, delta.turnId) then
    t.early[#t.early + 1] = delta
    return nil
  elseif delta.kind == 'tool_output' then
    return output(t, delta)
  end
  local stream = stream_of(t, delta.kind, delta.messageId)
  local count = delta.count or 1
  if delta.index + count <= stream.next then
    return nil
  end
  local change = items.nothing()
  if delta.index ~= stream.next then
    stream.held[#stream.held + 1] = delta
    change.hole = true
    return change
  end
  local thought = delta.kind == 'answer' and t.by_id[M.id('thought', delta.messageId)]
  if thought and thought.streaming then
    thought.streaming = nil -- it was thought through
    items.touch(change, thought.id)
  end
  local item = streaming(t, change, delta.kind, delta)
  item.streaming = true
  items.append(item, delta.text)
  stream.next = delta.index + count
  items.touch(change, item.id)
  return change
end

---@param into callboard.Change
---@param more callboard.Change?
local function join(into, more)
  for _, id in ipairs(more and more.items or {}) do
    items.touch(into, id)
  end
  into.hole = into.hole or (more and more.hole)
end

---Sees whether an event lets the pieces in that came before it: before their turn, or their call.
---@param t callboard.Transcript
---@param event callboard.Event
---@param change callboard.Change
function M.follow(t, event, change)
  local turn_id = type(event.data) == 'table' and event.data.turnId or nil
  if event.type == 'turn_started' then
    t.opening = turn_id
    return
  elseif not event.turnId or not (t.early[1] or t.early_draft or t.opening) then
    return
  end
  if t.opening == event.turnId then
    t.opening = nil
  end
  local early, draft = t.early, t.early_draft
  t.early, t.early_draft = {}, nil
  -- Ids rise: what belongs to this turn, or to one before it, is not waited for when it is over.
  local over = event.type == 'turn_finished' and turn_id or ''
  if draft and draft.turnId > over then
    join(change, M.draft(t, draft))
  end
  for _, delta in ipairs(early) do
    if delta.turnId > over then
      join(change, M.delta(t, delta))
    end
  end
end

---What has streamed so far, as the server tells it. Fills holes, and begins what was under way when the
---session was opened. One that has overtaken the events by which its turn began waits for them.
---@param t callboard.Transcript
---@param draft callboard.Draft?
---@return callboard.Change
function M.draft(t, draft)
  local change = items.nothing()
  if not draft then
    for _, stream in pairs(t.streams) do
      stream.held = {}
    end
    return change
  elseif type(draft.turnId) ~= 'string' or type(draft.messageId) ~= 'string' then
    return change
  elseif t.ended[draft.turnId] or t.said[draft.messageId] then
    return change
  elseif not is_open(t, draft.turnId) then
    t.early_draft = draft
    return change
  end
  for _, kind in ipairs({ 'thought', 'answer' }) do
    local stream = stream_of(t, kind, draft.messageId)
    local next_index = draft.nextIndex[kind] or 0
    if next_index > stream.next then
      local item = streaming(t, change, kind, draft)
      items.set_text(item, draft[kind])
      item.streaming = true
      stream.next = next_index
      items.touch(change, item.id)
    end
    local held = stream.held
    stream.held = {}
    for _, delta in ipairs(held) do
      join(change, M.delta(t, delta))
    end
  end
  return change
end

return M

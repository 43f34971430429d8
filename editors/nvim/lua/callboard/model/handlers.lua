-- What each event of a conversation does to its transcript: what is said, what waits, turns, tool calls,
-- approvals. Pure.
local items = require('callboard.model.items')
local streams = require('callboard.model.streams')

---@alias callboard.EventHandler fun(t: callboard.Transcript, event: callboard.Event, change: callboard.Change)

---@type table<string, callboard.EventHandler>
local on = {}

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

---The turn that an event is of; nil where none runs. When the event that began it is not loaded it is known
---from the first one that tells of it.
---@param t callboard.Transcript
---@param event callboard.Event
---@return callboard.RunningTurn?
local function turn_of(t, event)
  if not t.turn and not t.known.turn and event.turnId then
    t.turn = { id = event.turnId, state = 'running', cancelling = false }
  end
  if t.turn then
    t.turn.id = t.turn.id or event.turnId
  end
  return t.turn
end

---@param t callboard.Transcript
---@param change callboard.Change
local function look(t, change)
  local turn = t.turn
  if turn then
    turn.state = turn.parked and 'parked' or next(t.asking) and 'waiting_approval' or 'running'
  end
  change.head = true
end

---@param t callboard.Transcript
---@param event callboard.Event
---@param change callboard.Change
local function wait(t, event, change)
  t.queue[#t.queue + 1] = assert(items.trigger(event))
  change.queue = true
end

on.directive, on.schedule_fired, on.member_mentioned = wait, wait, wait

function on.message(t, event, change)
  local data = event.data
  if data.author.kind == 'agent' and not data.delivered then
    local text, thought = items.parts(data.content)
    streams.settle(t, change, event, 'thought', thought)
    streams.settle(t, change, event, 'answer', text)
    streams.finish(t, data.messageId)
  elseif data.delivered then
    -- A delivery is in the log from the moment at which a turn takes it in.
    local item = assert(items.trigger(event))
    item.turn_id = event.turnId
    items.push(t, change, item)
  else
    wait(t, event, change)
  end
end

function on.ack(t, event, change)
  for _, seq in ipairs(event.data.admits) do
    local item = take(t, seq)
    if not item then
      t.known.admitted[seq] = { at = event.seq, turn_id = event.turnId }
    else
      change.queue = true
      -- The message that mentions somebody is there already.
      if item.trigger ~= 'mention' then
        item.turn_id, item.placed = event.turnId, event.seq
        items.push(t, change, item)
      end
    end
  end
end

function on.prompt_updated(t, event, change)
  local seq, content = event.data.seq, event.data.content
  for _, item in ipairs(t.queue) do
    if item.seq == seq then
      local text, _, attached = items.parts(content)
      item.text, item.attachments = text, attached
      change.queue = true
      return
    end
  end
  t.known.updated[seq] = content
end

function on.triggers_dropped(t, event, change)
  for _, seq in ipairs(event.data.seqs) do
    if take(t, seq) then
      change.queue = true
    else
      t.known.dropped[seq] = true
    end
  end
end

function on.turn_started(t, event, change)
  local data = event.data
  t.turn = { id = data.turnId, started_at = event.at, state = 'running', cancelling = false }
  t.model = data.model or t.model
  t.known.turn, t.known.model = true, true
  t.speakers[data.turnId] = data.profile
  look(t, change)
end

function on.turn_parked(t, event, change)
  local turn = turn_of(t, event)
  if turn then
    turn.parked = true
  end
  look(t, change)
end

function on.turn_resumed(t, event, change)
  local turn = turn_of(t, event)
  if turn then
    turn.parked = false
  end
  look(t, change)
end

function on.cancel_requested(t, event, change)
  local turn = turn_of(t, event)
  -- What only drops the queue lets the turn run.
  if turn and event.data.scope ~= 'queue' then
    turn.cancelling = true
  end
  look(t, change)
end

function on.turn_finished(t, event, change)
  local data = event.data
  streams.cut(t, change, data.turnId)
  t.turn, t.known.turn = nil, true
  change.head = true
  items.add(t, change, event, {
    kind = 'turn',
    turn_id = data.turnId,
    outcome = data.outcome,
    failure = data.error,
    usage = data.usage,
    duration_ms = data.durationMs,
    finished = data,
  })
end

function on.tool_call(t, event, change)
  items.add(t, change, event, { id = event.data.callId, kind = 'tool', call = event.data })
end

function on.tool_result(t, event, change)
  local data = event.data
  local item = t.by_id[data.callId]
    or items.add(t, change, event, { id = data.callId, kind = 'tool' })
  items.set_text(item, data.text)
  item.result, item.streaming, item.partial = data, nil, nil
  item.blobs = data._blobs
  streams.finish(t, data.callId)
  items.touch(change, item.id)
end

---An approval that came to an end, as the server would tell of it.
---@param approval callboard.Approval
---@param resolution callboard.Resolution
local function decide(approval, resolution)
  local outcome = resolution.outcome
  approval.state = (outcome == 'cancelled' or outcome == 'expired') and outcome or 'resolved'
  approval.resolution = resolution
end

function on.approval_request(t, event, change)
  local approval = event.data.approval
  local item = t.by_id[approval.callId]
    or items.add(t, change, event, { id = approval.callId, kind = 'tool' })
  item.approval = vim.tbl_extend('force', {}, approval)
  t.asking[approval.approvalId] = true
  turn_of(t, event)
  items.touch(change, item.id)
  look(t, change)
end

function on.approval_decision(t, event, change)
  local data = event.data
  local item = t.by_id[data.callId]
  if item and item.approval then
    decide(item.approval, data.resolution)
    items.touch(change, item.id)
  end
  if not t.asking[data.approvalId] then
    t.known.decided[data.approvalId] = data.resolution
  end
  t.asking[data.approvalId] = nil
  turn_of(t, event)
  look(t, change)
end

function on.error(t, event, change)
  local failure = event.data.error
  items.add(t, change, event, { kind = 'error', text = failure.message, failure = failure })
end

function on.plan_updated(t, event, change)
  t.plan = event.data.entries
  t.plans[#t.plans + 1] = { seq = event.seq, entries = event.data.entries }
  change.head = true
end

---Whether going back has taken out what stands at a place of the log.
---@param known callboard.Known
---@param seq integer
---@return boolean
local function is_gone(known, seq)
  if known.gone_prompts[seq] then
    return true
  end
  for _, span in ipairs(known.gone) do
    if seq >= span.from and seq <= span.to then
      return true
    end
  end
  return false
end

---Takes out what went by going back.
---@param t callboard.Transcript
---@param known callboard.Known
local function forget(t, known)
  local function stays(each)
    return not is_gone(known, each.seq)
  end
  t.items = vim.tbl_filter(stays, t.items)
  t.queue = vim.tbl_filter(stays, t.queue)
  t.plans = vim.tbl_filter(stays, t.plans)
  local plan = t.plans[#t.plans]
  t.plan = plan and plan.entries or {}
  items.index(t)
end

function on.session_rewound(t, event, change)
  local data, known = event.data, t.known
  known.gone[#known.gone + 1] = { from = data.beforeSeq, to = data.throughSeq }
  for _, seq in ipairs(data.prompts or {}) do
    known.gone_prompts[seq] = true
  end
  forget(t, known)
  change.reset, change.queue, change.head = true, true, true
  local turns = data.turns == 1 and '1 turn' or ('%d turns'):format(data.turns)
  items.notice(
    t,
    change,
    event,
    ('Went back: %s taken out. Files are as they were left.'):format(turns)
  )
end

return {
  on = on,
  decide = decide,
  forget = forget,
  look = look,
}

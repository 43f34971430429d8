-- What each event about a session does to its transcript: what it is and how it is set, who takes part, what
-- became of its agents, links and schedules. Most of it is a line that says so. Pure.
local items = require('callboard.model.items')

---@type table<string, callboard.EventHandler>
local on = {}

---@param say fun(data: table): string?
---@return callboard.EventHandler
local function telling(say)
  return function(t, event, change)
    local text = say(event.data)
    if text then
      items.notice(t, change, event, text)
    end
  end
end

function on.session_created(t, event, change)
  local data, known = event.data, t.known
  t.title, t.mode, t.model = data.title, data.mode, data.model
  known.title, known.mode, known.model, known.turn = true, true, true, true
  change.head = true
end

function on.agent_spawned(t, event, change)
  on.session_created(t, { data = event.data.session }, change)
  t.title = event.data.name
end

---A title that was taken away cannot be told from one that was not changed: whoever lists sessions knows.
function on.session_updated(t, event, change)
  local title = (event.data.changes or {}).title
  if title then
    t.title, t.known.title = title, true
  end
  change.head = true
end

function on.mode_changed(t, event, change)
  t.mode, t.known.mode = event.data.mode, true
  change.head = true
  items.notice(t, change, event, 'Mode: ' .. event.data.mode)
end

function on.model_changed(t, event, change)
  t.model, t.known.model = event.data.model, true
  change.head = true
  items.notice(t, change, event, 'Model: ' .. (event.data.model or 'the default'))
end

local function head(_, _, change)
  change.head = true
end

on.session_archived, on.session_unarchived = head, head

function on.session_closed(t, event, change)
  t.closed = true
  change.head = true
  items.notice(t, change, event, 'The session was closed')
end

function on.session_forked(t, event, change)
  -- Turns that the events before it tell of were those of another session.
  t.turn, t.known.turn = nil, true
  change.head = true
  items.notice(t, change, event, 'A fork: what stands above was taken over')
end

on.summary = telling(function()
  return 'What was said so far was summarised'
end)

on.model_retried = telling(function(data)
  return ('The model did not answer (%s); attempt %d'):format(data.error.message, data.attempt + 1)
end)

on.agent_asked = telling(function(data)
  return (data.expectsReply and 'Asks its parent: ' or 'Tells its parent: ') .. data.text
end)

local NO_REPLY = {
  timed_out = 'no reply came in time',
  cancelled = 'it was called away before a reply came',
  parent_gone = 'its parent is gone',
  parent_restarted = 'its parent began anew',
}

on.agent_replied = telling(function(data)
  if data.outcome == 'replied' then
    return 'Was told: ' .. (data.text or '')
  end
  return 'Was not answered: ' .. (NO_REPLY[data.outcome] or data.outcome)
end)

on.agent_report_created = telling(function(data)
  return ('Reported to its parent (%s)'):format(data.report.status)
end)

on.agent_interrupted = telling(function(data)
  return 'Was interrupted: ' .. data.reason
end)

on.member_added = telling(function(data)
  return ('@%s takes part'):format(data.name)
end)

on.member_removed = telling(function(data)
  return ('@%s takes no part any more'):format(data.name)
end)

on.room_host_changed = telling(function(data)
  return data.name and ('@%s answers when nobody is addressed'):format(data.name)
    or 'The first member answers when nobody is addressed'
end)

on.wake_suppressed = telling(function(data)
  return ('@%s was not woken: %d messages of agents in a row. Say something to go on.'):format(
    data.name,
    data.burst
  )
end)

on.deliveries_dropped = telling(function(data)
  local count = #data.deliveries
  return ('%d message%s to it will not be read: %s'):format(
    count,
    count == 1 and '' or 's',
    data.reason
  )
end)

on.peer_linked = telling(function(data)
  return 'Linked to ' .. data.peerId
end)

on.peer_unlinked = telling(function(data)
  return 'The link to ' .. data.peerId .. ' has ended'
end)

on.peer_message_sent = telling(function(data)
  return ('To %s: %s'):format(data.to, data.text)
end)

on.peer_message_dropped = telling(function(data)
  return ('A message of %s will not be read: %s'):format(data.sender or 'a peer', data.reason)
end)

function on.notice(t, event, change)
  local data = event.data
  items.add(t, change, event, {
    kind = 'notice',
    text = data.title,
    severity = data.severity,
    description = data.description,
  })
end

on.completion_changed = telling(function()
  return 'Says that its work is done; nobody has verified it'
end)

return { on = on }

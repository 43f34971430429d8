-- What a transcript is made of, and how an event becomes an item of it. Pure.
--
-- Items only ever come at the end, so that a view appends; one that changes keeps its place. A prompt is an
-- item from the moment at which a turn takes it in (`ack`); until then it stands in the queue.
local M = {}

---@alias callboard.ItemKind 'prompt'|'answer'|'thought'|'tool'|'notice'|'error'|'turn'

---@class callboard.Item
---@field id string
---@field kind callboard.ItemKind
---@field seq integer of the event that it began with; 0 while it only streams
---@field placed number the seq of the event that put it where it stands
---@field at string
---@field turn_id string?
---@field author callboard.Author?
---@field text string
---@field streaming boolean? deltas still come
---@field partial boolean? cut off by a crash or a cancel
---@field steer boolean? a prompt that did not wait for the end of a turn
---@field trigger 'prompt'|'directive'|'mention'|'schedule'|nil what waits in the queue
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
---@field severity string? of a notice that the log itself calls one, as severe as it says
---@field description string? what such a notice says below its title
---@field private pieces string[]? of the text while it streams
---@field private size integer? bytes in them

---@class callboard.RunningTurn
---@field id string? nil while no event of it is loaded, and it is parked
---@field started_at string? nil while the event that began it is not loaded
---@field state callboard.TurnState
---@field cancelling boolean
---@field parked boolean? as the events that are loaded tell it

---@class callboard.Stream
---@field next integer the piece that comes next
---@field held callboard.EventDelta[] pieces behind a hole

---@class callboard.Transcript
---@field session_id string
---@field items callboard.Item[]
---@field by_id table<string, callboard.Item>
---@field first_seq integer? of the first event that was applied
---@field last_seq integer
---@field queue callboard.Item[] prompts that no turn has taken in, in order
---@field turn callboard.RunningTurn?
---@field plan callboard.PlanEntry[]
---@field mode string?
---@field model string?
---@field title string?
---@field closed boolean?
---@field deleted boolean?
---@field speakers table<string, string> by turn: the profile that plays it
---@field private streams table<string, callboard.Stream> by kind and message
---@field private early callboard.EventDelta[] pieces of a turn that has not taken its prompts in yet
---@field private early_draft callboard.Draft? what it had said before any piece of it came
---@field private opening string? that turn, once it has begun
---@field private said table<string, boolean> messages that are whole: no piece of them is new
---@field private ended table<string, boolean> turns that are over
---@field private plans { seq: integer, entries: callboard.PlanEntry[] }[]
---@field private asking table<string, boolean> approvals that wait
---@field private known callboard.Known

---What the events that are loaded say of those before them.
---@class callboard.Known
---@field turn boolean whether a turn runs
---@field model boolean
---@field mode boolean
---@field title boolean
---@field admitted table<integer, { at: integer, turn_id: string? }> by seq: prompts that a turn took in, and when
---@field dropped table<integer, boolean> by seq: prompts that nobody will answer
---@field updated table<integer, callboard.Content[]> by seq: prompts that say something else
---@field decided table<string, callboard.Resolution> by approval
---@field gone { from: integer, to: integer }[] what was taken out by going back
---@field gone_prompts table<integer, boolean>

---What an event has changed.
---@class callboard.Change
---@field items string[] ids of items that are new or look different, in order
---@field reset boolean? items have gone, or stand elsewhere: show all anew
---@field queue boolean?
---@field head boolean? turn, plan, mode, model, title
---@field hole boolean? streamed text is missing: the draft has it
---@field gap boolean? events are missing: ask again
---@field fault string? what was wrong with an event that cannot be shown
---@field events string[] types, for whoever follows more than the text

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

---Adds to an item's text.
---@param item callboard.Item
---@param piece string
---@return integer size bytes of all of it
function M.append(item, piece)
  if not item.pieces then
    item.pieces, item.size, item.text = { item.text }, #item.text, nil
    setmetatable(item, Streaming)
  end
  item.pieces[#item.pieces + 1] = piece
  item.size = item.size + #piece
  return item.size
end

---Gives an item its text, in place of the one that it had.
---@param item callboard.Item
---@param whole string
function M.set_text(item, whole)
  item.pieces, item.size = nil, nil
  setmetatable(item, nil)
  item.text = whole
end

---@param session_id string
---@return callboard.Transcript
function M.transcript(session_id)
  return {
    session_id = session_id,
    items = {},
    by_id = {},
    last_seq = 0,
    queue = {},
    plan = {},
    speakers = {},
    streams = {},
    early = {},
    said = {},
    ended = {},
    plans = {},
    asking = {},
    known = {
      turn = false,
      model = false,
      mode = false,
      title = false,
      admitted = {},
      dropped = {},
      updated = {},
      decided = {},
      gone = {},
      gone_prompts = {},
    },
  }
end

---@return callboard.Change
function M.nothing()
  return { items = {}, events = {} }
end

---@param change callboard.Change
---@param id string
function M.touch(change, id)
  if change.items[#change.items] ~= id and not vim.list_contains(change.items, id) then
    change.items[#change.items + 1] = id
  end
end

---@param t callboard.Transcript
---@param change callboard.Change
---@param item callboard.Item
---@return callboard.Item
function M.push(t, change, item)
  t.items[#t.items + 1] = item
  t.by_id[item.id] = item
  M.touch(change, item.id)
  return item
end

---Puts an item of an event at the end.
---@param t callboard.Transcript
---@param change callboard.Change
---@param event callboard.Event
---@param item { id: string?, kind: callboard.ItemKind, text: string?, [string]: any }
---@return callboard.Item
function M.add(t, change, event, item)
  item.id = item.id or event.eventId or ('seq %d'):format(event.seq)
  item.text = item.text or ''
  item.seq, item.placed, item.at = event.seq, event.seq, event.at
  item.turn_id = item.turn_id or event.turnId
  return M.push(t, change, item --[[@as callboard.Item]])
end

---@param t callboard.Transcript
---@param change callboard.Change
---@param event callboard.Event
---@param text string
function M.notice(t, change, event, text)
  M.add(t, change, event, { kind = 'notice', text = text })
end

---@param t callboard.Transcript
---@param change callboard.Change
---@param id string
function M.remove(t, change, id)
  if t.by_id[id] then
    t.by_id[id] = nil
    t.items = vim.tbl_filter(function(item)
      return item.id ~= id
    end, t.items)
    change.reset = true
  end
end

---@param t callboard.Transcript
function M.index(t)
  t.by_id = {}
  for _, item in ipairs(t.items) do
    t.by_id[item.id] = item
  end
end

---What the blocks of a message say.
---@param content table[]?
---@return string text
---@return string thought
---@return string[] attachments
function M.parts(content)
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
---@param item { id: string?, text: string, author: callboard.Author?, trigger: string, [string]: any }
---@return callboard.Item
local function prompt(event, item)
  item.id = item.id or event.eventId
  item.kind, item.seq, item.placed, item.at = 'prompt', event.seq, event.seq, event.at
  return item --[[@as callboard.Item]]
end

---What wakes an agent: it waits until a turn takes it in. Nil for an event that does not.
---@param event callboard.Event
---@return callboard.Item?
function M.trigger(event)
  local data = event.data
  if event.type == 'message' then
    local text, _, attached = M.parts(data.content)
    for _, item in ipairs(data.context or {}) do
      local range = item.range
      local lines = range
        and ('#L%d-%d'):format(
          range.start.line + 1,
          math.max(range['end'].line, range.start.line + 1)
        )
      attached[#attached + 1] = item.uri .. (lines or '')
    end
    return prompt(event, {
      id = data.messageId,
      trigger = 'prompt',
      author = data.author,
      text = text,
      steer = data.delivery == 'steer' or nil,
      attachments = attached,
      blobs = data._blobs,
    })
  elseif event.type == 'directive' then
    return prompt(event, {
      id = data.messageId,
      trigger = 'directive',
      author = data.author,
      text = data.text,
      blobs = data._blobs,
    })
  elseif event.type == 'schedule_fired' then
    return prompt(event, {
      trigger = 'schedule',
      author = { kind = 'schedule', name = data.name, id = data.scheduleId },
      text = data.prompt,
      blobs = data._blobs,
    })
  elseif event.type == 'member_mentioned' then
    return prompt(event, {
      trigger = 'mention',
      author = { kind = 'agent', name = data.by, id = event.sessionId },
      text = '@' .. data.name,
    })
  end
end

return M

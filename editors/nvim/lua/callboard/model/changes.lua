-- The files that a session and its agents changed, as the results of their tool calls tell it. Pure.
--
-- A rewind takes turns out of a session, but files stay as they were left: so its changes stay here, too.
local Patch = require('callboard.model.patch')
local Review = require('callboard.model.review')

local M = {}

---One change of one file.
---@class callboard.Step
---@field session_id string
---@field seq integer
---@field pos integer
---@field at string
---@field call_id string
---@field pointer string JSON pointer of the diff in the event's data
---@field change callboard.FileChange
---@field blob callboard.BlobRef? where the diff is, while `change.diff` holds a part of it only

---@alias callboard.ChangeState 'new'|'settling'|'accepted'|'rejected' settling: said, and not kept yet

---@class callboard.ChangedFile
---@field path string
---@field old_path string? from where it was moved
---@field operation 'create'|'modify'|'delete'|'move'|'nothing'|string what all of the chain together did
---@field added integer
---@field removed integer
---@field state callboard.ChangeState
---@field chain callboard.Step[] what is shown: what nobody has settled; if there is no such thing, all
---@field steps callboard.Step[] all, the oldest first
---@field partial string? why its diffs do not hold all of the change

---@class callboard.Changes
---@field private steps callboard.Step[] by pos
---@field private seen table<string, true>
---@field private reviews table<string, callboard.Review> by session
---@field private heads table<string, integer> the last seq seen, by session
---@field private settling table<callboard.Step, integer> how many times it is being settled just now

---@return callboard.Changes
function M.new()
  return { steps = {}, seen = {}, reviews = {}, heads = {}, settling = {} }
end

---@param changes callboard.Changes
---@param step callboard.Step
local function insert(changes, step)
  local steps = changes.steps
  local at = #steps + 1
  while at > 1 and steps[at - 1].pos > step.pos do
    at = at - 1
  end
  table.insert(steps, at, step)
end

---Takes in an event; any order will do, and twice is once.
---@param changes callboard.Changes
---@param event callboard.Event
---@return string[] paths that it changed
function M.add(changes, event)
  local id = event.sessionId
  changes.heads[id] = math.max(changes.heads[id] or 0, event.seq)
  if event.type == 'session_forked' then
    -- What stands before it is the history of another session.
    changes.steps = vim.tbl_filter(function(step)
      return step.session_id ~= id or step.seq > event.seq
    end, changes.steps)
    return {}
  end
  local key = ('%s %d'):format(id, event.seq)
  if event.type ~= 'tool_result' or changes.seen[key] then
    return {}
  end
  changes.seen[key] = true
  local paths = {}
  for i, change in ipairs(event.data.changes or {}) do
    local pointer = ('/changes/%d/diff'):format(i - 1)
    insert(changes, {
      session_id = id,
      seq = event.seq,
      pos = event.pos,
      at = event.at,
      call_id = event.data.callId,
      pointer = pointer,
      change = change,
      blob = (event.data._blobs or {})[pointer],
    })
    paths[#paths + 1] = change.path
    if change.oldPath then
      paths[#paths + 1] = change.oldPath
    end
  end
  return paths
end

---Takes over what the metadata of a session say of it. Nothing that was said is unsaid.
---@param changes callboard.Changes
---@param session_id string
---@param metadata table?
function M.reviewed(changes, session_id, metadata)
  M.settled(changes, session_id, Review.read(metadata, session_id))
end

---@param changes callboard.Changes
---@param step callboard.Step
---@return callboard.Verdict?
local function verdict(changes, step)
  local review = changes.reviews[step.session_id]
  return review and Review.verdict(review, step.change.path, step.seq)
end

---What two operations come to, one after the other.
---@param first string?
---@param second string
---@return string
local function merged(first, second)
  if not first then
    return second
  elseif first == 'create' then
    return second == 'delete' and 'nothing' or 'create'
  elseif first == 'nothing' then
    return second
  elseif first == 'delete' then
    return second == 'delete' and 'delete' or 'modify'
  elseif second == 'create' or (second == 'modify' and first == 'move') then
    return first
  end
  return second
end

---@param chain callboard.Step[]
---@return string?
local function partial(chain)
  for _, step in ipairs(chain) do
    if step.change.truncated then
      return 'its diff is too large and was cut'
    elseif step.change.diff == '' and step.change.added + step.change.removed == 0 then
      if step.change.operation == 'modify' then
        return 'it has no diff (it may be no text)'
      end
    end
  end
end

---@param changes callboard.Changes
---@param path string
---@param steps callboard.Step[]
---@return callboard.ChangedFile
local function file_of(changes, path, steps)
  local chain = vim.tbl_filter(function(step)
    return not verdict(changes, step)
  end, steps)
  local state = 'settling'
  for _, step in ipairs(chain) do
    if not changes.settling[step] then
      state = 'new'
    end
  end
  if #chain == 0 then
    state, chain = verdict(changes, steps[#steps]), steps
  end
  local file = {
    path = path,
    added = 0,
    removed = 0,
    state = state,
    chain = chain,
    steps = steps,
    partial = partial(chain),
  }
  for _, step in ipairs(chain) do
    file.operation = merged(file.operation, step.change.operation)
    file.added = file.added + step.change.added
    file.removed = file.removed + step.change.removed
    if step.change.oldPath and step.change.oldPath ~= path then
      file.old_path = file.old_path or step.change.oldPath
    end
  end
  return file
end

---The changed files, by path.
---@param changes callboard.Changes
---@return callboard.ChangedFile[]
function M.files(changes)
  local by_path = {}
  for _, step in ipairs(changes.steps) do
    local path, old = step.change.path, step.change.oldPath
    if old and old ~= path and by_path[old] then
      -- It was moved: what was changed before goes along.
      by_path[path] = vim.list_extend(by_path[old], by_path[path] or {})
      table.sort(by_path[path], function(a, b)
        return a.pos < b.pos
      end)
      by_path[old] = nil
    end
    by_path[path] = by_path[path] or {}
    table.insert(by_path[path], step)
  end
  local files = {}
  for path, steps in pairs(by_path) do
    files[#files + 1] = file_of(changes, path, steps)
  end
  table.sort(files, function(a, b)
    return a.path < b.path
  end)
  return files
end

---The sessions whose calls changed something.
---@param changes callboard.Changes
---@return string[]
function M.sessions(changes)
  local ids, seen = {}, {}
  for _, step in ipairs(changes.steps) do
    if not seen[step.session_id] then
      seen[step.session_id] = true
      ids[#ids + 1] = step.session_id
    end
  end
  return ids
end

---The reviews of the sessions that are concerned as they are once the files are settled. Nothing is, until it
---is kept and they are told by `settled`.
---@param changes callboard.Changes
---@param files callboard.ChangedFile[]
---@param said callboard.Verdict
---@return table<string, callboard.Review> by session
function M.settle(changes, files, said)
  local touched = {}
  for _, file in ipairs(files) do
    for _, step in ipairs(file.chain) do
      local id = step.session_id
      if not touched[id] then
        touched[id] = Review.new()
        Review.merge(touched[id], changes.reviews[id] or Review.new())
      end
      Review.note(touched[id], step.change.path, step.seq, said)
    end
  end
  for id, review in pairs(touched) do
    local waiting
    for _, step in ipairs(changes.steps) do
      local over = Review.verdict(review, step.change.path, step.seq)
      if step.session_id == id and not over then
        waiting = math.min(waiting or step.seq, step.seq)
      end
    end
    Review.trim(review, waiting, changes.heads[id] or 0)
  end
  return touched
end

---Notes that files are being settled, or are not any more, whatever came of it.
---@param changes callboard.Changes
---@param files callboard.ChangedFile[]
---@param are boolean
function M.settling(changes, files, are)
  for _, file in ipairs(files) do
    for _, step in ipairs(file.chain) do
      local count = (changes.settling[step] or 0) + (are and 1 or -1)
      changes.settling[step] = count > 0 and count or nil
    end
  end
end

---What was said of a session's changes is kept.
---@param changes callboard.Changes
---@param session_id string
---@param review callboard.Review
function M.settled(changes, session_id, review)
  local known = changes.reviews[session_id] or Review.new()
  changes.reviews[session_id] = known
  Review.merge(known, review)
end

---@class callboard.Untaken
---@field step callboard.Step
---@field failure callboard.HunkFailure? nil when none of the step could be taken back
---@field why string

---@class callboard.Before
---@field text callboard.Text? nil: there was no such file, whatever could be taken back
---@field failed callboard.Untaken[] what could not be taken back, the newest first
---@field taken integer so many hunks were

local FAULTS = {
  changed = 'was changed since',
  ambiguous = 'is in the file more than once',
}

---@param step callboard.Step
---@param why string
---@return callboard.Untaken
local function whole(step, why)
  return { step = step, why = why }
end

---Takes one step back.
---@param text callboard.Text?
---@param step callboard.Step
---@param before callboard.Before
---@return callboard.Text?
local function back(text, step, before)
  local change = step.change
  local patch, fault = Patch.parse(change.diff)
  if change.truncated or not patch or step.blob then
    local why = change.truncated and 'its diff was cut' or fault or 'its diff is not loaded'
    table.insert(before.failed, whole(step, why))
    return text
  elseif #patch.hunks == 0 and change.added + change.removed > 0 then
    table.insert(before.failed, whole(step, 'its diff is empty'))
    return text
  elseif not text and change.operation ~= 'delete' then
    table.insert(before.failed, whole(step, 'the file is not there any more'))
    return text
  elseif text and change.operation == 'delete' then
    table.insert(before.failed, whole(step, 'the file is there again'))
    return text
  end
  local result = Patch.reverse(text or {}, patch)
  for i = #result.failed, 1, -1 do
    local failure = result.failed[i]
    local why = ('%s %s'):format(Patch.name(failure), FAULTS[failure.fault])
    table.insert(before.failed, { step = step, failure = failure, why = why })
  end
  before.taken = before.taken + #patch.hunks - #result.failed
  if change.operation == 'create' then
    if #result.text == 0 then
      before.taken = before.taken + (#patch.hunks == 0 and 1 or 0)
      return nil
    elseif #result.failed == 0 then
      table.insert(before.failed, whole(step, 'the file has more in it now'))
      return text
    end
  end
  return result.text
end

---The text of a file before a chain of changes, taken back from the newest to the oldest.
---@param text callboard.Text? as it is now; nil: there is no such file
---@param chain callboard.Step[] the oldest first
---@return callboard.Before
function M.before(text, chain)
  local before = { failed = {}, taken = 0 }
  local operation
  for _, step in ipairs(chain) do
    operation = merged(operation, step.change.operation)
  end
  if text == nil and operation == 'create' then
    return before -- it is gone already
  end
  for i = #chain, 1, -1 do
    text = back(text, chain[i], before)
  end
  local first = chain[1] and chain[1].change.operation
  before.text = first ~= 'create' and text or nil
  return before
end

return M

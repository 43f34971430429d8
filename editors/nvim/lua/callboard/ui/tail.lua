-- What stands below the transcript, in its place however much is said: the plan, what agents ask, what waits
-- to be sent or read, and what is wrong with the server.
local card = require('callboard.ui.card')
local text = require('callboard.model.text')

local M = {}

---@class callboard.TailState
---@field transcript callboard.Transcript?
---@field outbox callboard.Outbox?
---@field phase callboard.session.Phase|'new'
---@field fault string?
---@field server callboard.rpc.State
---@field failure { message: string, lines: string[] }?
---@field late boolean it has not been there for a while
---@field approvals callboard.Approval[] of its agents
---@field keys table<string, string> by action
---@field cwd string

local BOXES = { completed = '[x]', in_progress = '[>]' }
---Of a longer plan, what is done is only counted.
local PLAN_LINES = 12
---Lines of what waits.
local WAITING_LINES = 3

---@param shown callboard.Line[]
---@param line callboard.Line
local function add(shown, line)
  shown[#shown + 1] = line
end

---@param shown callboard.Line[]
---@param t callboard.Transcript
---@param brief boolean its heading alone: what is asked needs the room
local function plan(shown, t, brief)
  local entries = t.plan
  local done = 0
  for _, entry in ipairs(entries) do
    done = done + (entry.status == 'completed' and 1 or 0)
  end
  if #entries == 0 or (done == #entries and not t.turn) then
    return
  end
  add(shown, { { '' } })
  add(shown, { { ('Plan: %d of %d done'):format(done, #entries), 'CallboardHeading' } })
  if brief then
    return
  end
  local short = #entries > PLAN_LINES
  local left = 0
  for _, entry in ipairs(entries) do
    if not (short and entry.status == 'completed') then
      left = left + 1
      if left <= PLAN_LINES then
        local hl = entry.status == 'completed' and 'CallboardDim'
          or entry.status == 'in_progress' and 'CallboardToolRunning'
          or nil
        add(shown, {
          {
            ('  %s %s'):format(BOXES[entry.status] or '[ ]', text.one_line(entry.content, 200)),
            hl,
          },
        })
      end
    end
  end
  if left > PLAN_LINES then
    add(shown, { { ('  … %d more'):format(left - PLAN_LINES), 'CallboardDim' } })
  end
end

---@param shown callboard.Line[]
---@param state callboard.TailState
local function asked(shown, state)
  for _, approval in ipairs(state.approvals) do
    add(shown, { { '' } })
    vim.list_extend(shown, card.question(approval))
  end
end

---@param raw string
---@param mark string
---@param hl string
---@param target callboard.Target
---@return callboard.Line[]
local function waiting(raw, mark, hl, target)
  -- It is drawn whenever something below the transcript changes: no more of megabytes is looked at than is shown.
  local rest = vim.trim(raw):gsub('\r\n', '\n')
  local shown, from = {}, 1
  while from and #shown < WAITING_LINES do
    local ends = rest:find('\n', from, true)
    local line = text.one_line(rest:sub(from, (ends or #rest + 1) - 1), 200)
    shown[#shown + 1] = { { #shown == 0 and mark or '    ', hl }, { line, hl }, target = target }
    from = ends and ends + 1
  end
  if from then
    local _, more = rest:sub(from):gsub('\n', '')
    shown[#shown + 1] =
      { { ('    … %d more lines'):format(more + 1), 'CallboardDim' }, target = target }
  end
  return shown
end

---@param shown callboard.Line[]
---@param state callboard.TailState
local function queue(shown, state)
  local queued = state.transcript and state.transcript.queue or {}
  local sending = state.outbox and state.outbox.sending or {}
  if #queued + #sending == 0 then
    return
  end
  add(shown, { { '' } })
  if #queued > 0 then
    local turn = state.transcript.turn
    local words = turn and 'Waits for the end of the turn' or 'Waits for its turn'
    local keys = state.keys
    local hint = ('  (%s edits, %s drops, %s sends now)'):format(keys.edit, keys.drop, keys.steer)
    add(shown, { { words, 'CallboardQueued' }, { hint, 'CallboardDim' } })
  end
  for _, item in ipairs(queued) do
    local author = item.author
    local mark = item.steer and '  > at the next step: ' or '  - '
    local said = item.text
    if author and author.kind ~= 'person' then
      said = ('%s: %s'):format(author.name, said)
    end
    vim.list_extend(shown, waiting(said, mark, 'CallboardQueued', { kind = 'queued', item = item }))
  end
  for _, outgoing in ipairs(sending) do
    local target = { kind = 'outgoing', outgoing = outgoing }
    vim.list_extend(shown, waiting(outgoing.text, '  sending: ', 'CallboardDim', target))
  end
end

---@param shown callboard.Line[]
---@param message string
---@param hl string?
local function said(shown, message, hl)
  for _, line in ipairs(text.lines(message)) do
    add(shown, { { line, hl } })
  end
end

---@param shown callboard.Line[]
---@param state callboard.TailState
local function server(shown, state)
  local failure = state.failure
  if state.server == 'failed' then
    add(shown, { { '' } })
    said(
      shown,
      'No server: ' .. (failure and failure.message or 'it could not be started'),
      'CallboardError'
    )
    local lines = failure and failure.lines or {}
    for i = math.max(1, #lines - 19), #lines do
      add(shown, { { card.BAR .. text.one_line(lines[i], 200), 'CallboardDim' } })
    end
    add(shown, { { ':Callboard restart tries again, :Callboard log has more.', 'CallboardDim' } })
  elseif state.late and state.server ~= 'ready' then
    add(shown, { { '' } })
    local why = failure and failure.message or 'the server is not there yet'
    said(shown, 'Reconnecting… ' .. why, 'CallboardError')
    add(shown, { { 'It starts by itself again; :Callboard restart does so now.', 'CallboardDim' } })
  elseif state.phase == 'lost' then
    add(shown, { { '' } })
    said(shown, state.fault or 'the session cannot be shown', 'CallboardError')
  end
end

---@param state callboard.TailState
---@return callboard.Line[] at least one where there is nothing else
function M.lines(state)
  local shown = {}
  local t = state.transcript
  local empty = not t or #t.items == 0
  if state.phase == 'new' then
    add(shown, {
      {
        'A new session in ' .. text.one_line(vim.fn.fnamemodify(state.cwd, ':~'), 200),
        'CallboardDim',
      },
    })
    add(shown, {
      {
        'It begins with what you write below. :Callboard sessions shows those there are.',
        'CallboardDim',
      },
    })
  elseif state.phase == 'loading' and empty then
    add(shown, { { 'Loading…', 'CallboardDim' } })
  elseif state.phase == 'live' and empty and #t.queue == 0 then
    add(shown, { { 'Nothing was said yet. Write below; g? tells the keys.', 'CallboardDim' } })
  end
  if t then
    plan(shown, t, t.turn ~= nil and t.turn.state == 'waiting_approval')
    asked(shown, state)
  end
  queue(shown, state)
  server(shown, state)
  return shown
end

return M

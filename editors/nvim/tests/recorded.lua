-- Recorded stores: what `tests/editors/nvim/record.py` wrote to the fixtures.
local M = {}

local folder = vim.fs.joinpath(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)), 'fixtures')

local DECODE = { luanil = { object = true, array = true } }

---@param name string
---@return string
local function content(name)
  local file = assert(io.open(vim.fs.joinpath(folder, name)))
  local text = file:read('*a')
  file:close()
  return text
end

---Names of all recordings.
---@return string[]
function M.names()
  local names = {}
  for name in vim.fs.dir(folder) do
    names[#names + 1] = name:match('^(.*)%.jsonl$')
  end
  table.sort(names)
  return names
end

---The events of a recording, in their order: of one session, or of all.
---@param name string
---@param session_id string?
---@return callboard.Event[]
function M.events(name, session_id)
  local events = {}
  for line in content(name .. '.jsonl'):gmatch('[^\n]+') do
    local event = vim.json.decode(line, DECODE)
    if not session_id or event.sessionId == session_id then
      events[#events + 1] = event
    end
  end
  return events
end

---@class callboard.tests.SaidOfSession
---@field session callboard.Session
---@field draft callboard.Draft?
---@field queue callboard.QueuedPrompt[]
---@field turns callboard.Turn[]
---@field agents callboard.Agent[]? of a root
---@field tasks callboard.GroupTask[]? of a root

---What the server said at the recording's end.
---@param name string
---@return { sessions: callboard.tests.SaidOfSession[], approvals: callboard.Approval[] }
function M.said(name)
  return vim.json.decode(content(name .. '.said.json'), DECODE)
end

---The session that a recording began with.
---@param name string
---@return string
function M.root(name)
  return M.said(name).sessions[1].session.sessionId
end

---A transcript of all events of a session.
---@param name string
---@param session_id string? the root, unless given
---@return callboard.Transcript
function M.transcript(name, session_id)
  local Reducer = require('callboard.model.reducer')
  session_id = session_id or M.root(name)
  local transcript = Reducer.new(session_id)
  for _, event in ipairs(M.events(name, session_id)) do
    Reducer.apply(transcript, event)
  end
  return transcript
end

return M

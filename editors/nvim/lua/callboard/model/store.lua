-- The sessions of the store, as lists and statuslines show them. Pure.
local M = {}

---@class callboard.Sessions
---@field by_id table<string, callboard.Session>
---@field loaded boolean a first listing is there
---@field more boolean there are older ones than those listed

---@return callboard.Sessions
function M.new()
  return { by_id = {}, loaded = false, more = false }
end

---What a list leaves out, the options of its agents, stays as it was.
---@param state callboard.Sessions
---@param session callboard.Session
function M.put(state, session)
  if type(session) == 'table' and type(session.sessionId) == 'string' then
    local known = state.by_id[session.sessionId]
    if session.options == nil and known then
      session.options = known.options
    end
    state.by_id[session.sessionId] = session
  end
end

---The newest roots as the server lists them; agents that are known stay, as no listing holds them.
---@param state callboard.Sessions
---@param listed callboard.Session[]
---@param more boolean
function M.replace(state, listed, more)
  local fresh = M.new()
  for id, session in pairs(state.by_id) do
    fresh.by_id[id] = session.parentId and session or nil
  end
  for _, session in ipairs(listed) do
    M.put(state, session)
    M.put(fresh, session)
  end
  state.by_id, state.loaded, state.more = fresh.by_id, true, more
end

---@param state callboard.Sessions
---@param session_id string
function M.remove(state, session_id)
  state.by_id[session_id] = nil
end

---@alias callboard.SessionGroup 'attention'|'running'|'idle'|'archived'

---@param session callboard.Session
---@return callboard.SessionGroup
function M.group(session)
  if session.archived then
    return 'archived'
  elseif (session.pendingApprovals or 0) > 0 then
    return 'attention'
  elseif session.status == 'running' or session.status == 'waiting_approval' then
    return 'running'
  end
  return 'idle'
end

local ORDER = { attention = 1, running = 2, idle = 3, archived = 4 }

---Roots only, those that need someone first, the newest of each group first.
---@param state callboard.Sessions
---@return callboard.Session[]
function M.list(state)
  local list = {}
  for _, session in pairs(state.by_id) do
    if not session.parentId then
      list[#list + 1] = session
    end
  end
  table.sort(list, function(a, b)
    local one, two = ORDER[M.group(a)], ORDER[M.group(b)]
    if one ~= two then
      return one < two
    elseif (a.pinned or false) ~= (b.pinned or false) then
      return a.pinned or false
    elseif a.updatedAt ~= b.updatedAt then
      return a.updatedAt > b.updatedAt
    end
    return a.sessionId > b.sessionId
  end)
  return list
end

---@param state callboard.Sessions
---@return { running: integer }
function M.counts(state)
  local running = 0
  for _, session in pairs(state.by_id) do
    if session.status == 'running' then
      running = running + 1
    end
  end
  return { running = running }
end

---What to call a session: its title, or the beginning of its id.
---@param session { sessionId: string, title?: string }
---@return string
function M.name(session)
  if session.title and vim.trim(session.title) ~= '' then
    return session.title
  end
  return 'session ' .. session.sessionId:sub(-6)
end

return M

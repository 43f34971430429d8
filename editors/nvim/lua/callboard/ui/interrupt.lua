-- Stops what runs: says what that is, what it leaves alone, and offers more force when it takes too long.
local notify = require('callboard.notify')

local M = {}

---So long (ms) it may take until more force is offered.
M.PATIENCE_MS = 5000

---@class callboard.Stopping
---@field scope callboard.CancelScope
---@field turn callboard.TurnId? the one that is to stop
---@field late boolean it has taken too long

---@type table<string, callboard.Stopping> by session
local stopping = {}

---@return callboard.App
local function app()
  return require('callboard.app').get()
end

---@param count integer
---@param one string
---@param many string
---@return string
local function counted(count, one, many)
  return count == 1 and '1 ' .. one or ('%d %s'):format(count, many)
end

---The agents below a session that run, where the server has any.
---@param session_id string
---@param done fun(agents: callboard.Agent[])
local function running(session_id, done)
  if not app():feature('agents') then
    return done({})
  end
  local found = {}
  local function page(cursor)
    app():request('agent/list', { rootId = session_id, cursor = cursor }, function(err, got)
      if err then
        return done({}) -- what it is asked for does not hang on it
      end
      for _, agent in ipairs(got.data) do
        local below = vim.iter(agent.path or {}):any(function(step)
          return step.sessionId == session_id
        end)
        if agent.agentId ~= session_id and (agent.rootId == session_id or below) then
          if agent.status == 'running' or agent.status == 'starting' then
            found[#found + 1] = agent
          end
        end
      end
      if got.nextCursor then
        return page(got.nextCursor)
      end
      done(found)
    end)
  end
  page()
end

---Whether the turn runs that was to stop; what waited may have begun another one since.
---@param session_id string
---@param mine callboard.Stopping
---@return boolean
local function runs(session_id, mine)
  local session = app().sessions.by_id[session_id]
  local turn = session and session.activeTurnId
  return turn ~= nil and (mine.turn == nil or mine.turn == turn)
end

---@param session_id string
---@return integer messages that wait
local function waiting(session_id)
  local entry, session = app().open[session_id], app().sessions.by_id[session_id]
  if entry then
    return #entry.session.transcript.queue
  end
  return session and session.queueLength or 0
end

---@param scope callboard.CancelScope
---@param agents callboard.Agent[]
---@param queued integer
---@param result callboard.SessionCancelResult
---@return string
local function told(scope, agents, queued, result)
  local dropped = #(result.dropped or {})
  local many, one = counted(#agents, 'agent', 'agents'), #agents == 1
  if scope == 'queue' then
    return dropped > 0
        and ('dropped %s; the turn goes on'):format(counted(dropped, 'message', 'messages'))
      or 'nothing waits here'
  elseif scope == 'tree' then
    if result.state == 'idle' and #agents == 0 and dropped == 0 then
      return 'nothing runs here'
    end
    local drops = dropped > 0
        and (' and drops %s'):format(counted(dropped, 'message that waits', 'messages that wait'))
      or ''
    return ('stops the turn and %s%s'):format(many, drops)
  elseif result.state == 'idle' and #agents > 0 then
    return ('no turn runs here; %s below it %s: :Callboard stop ends %s'):format(
      many,
      one and 'does' or 'do',
      one and 'it' or 'them'
    )
  elseif result.state == 'idle' then
    return 'no turn runs here'
  end
  local rest = {}
  if queued > 0 then
    rest[#rest + 1] = ('%s still %s (:Callboard interrupt queue drops %s)'):format(
      counted(queued, 'message', 'messages'),
      queued == 1 and 'waits' or 'wait',
      queued == 1 and 'it' or 'them'
    )
  end
  if #agents > 0 then
    rest[#rest + 1] = ('%s %s on (:Callboard stop stops %s)'):format(
      many,
      one and 'goes' or 'go',
      one and 'it' or 'them'
    )
  end
  return 'stops this turn' .. (#rest > 0 and '; ' .. table.concat(rest, ', ') or '')
end

---@param session_id string
---@param mine callboard.Stopping
local function watch(session_id, mine)
  vim.defer_fn(function()
    if stopping[session_id] ~= mine then
      return
    end
    app():request('session/get', { sessionId = session_id }, function(_, got)
      if stopping[session_id] ~= mine then
        return
      elseif got then
        app():put_session(got.session)
      end
      running(session_id, function(agents)
        if stopping[session_id] ~= mine then
          return
        end
        local left = mine.scope == 'tree' and #agents or 0
        if not runs(session_id, mine) and left == 0 then
          stopping[session_id] = nil
          return
        end
        mine.late = true
        local what = runs(session_id, mine) and 'the turn' or counted(left, 'agent', 'agents')
        notify.warn(
          ('%s has not stopped after %d s. The same key or command again is a force stop'):format(
            what,
            M.PATIENCE_MS / 1000
          )
        )
      end)
    end)
  end, M.PATIENCE_MS)
end

---@param session_id string
---@param scope callboard.CancelScope
local function cancel(session_id, scope)
  local queued = waiting(session_id)
  running(session_id, function(agents)
    app():change(
      'session/cancel',
      { sessionId = session_id, scope = scope },
      'stop it',
      function(result)
        notify.info(told(scope, agents, queued, result))
        local active = result.state == 'cancelling' or (scope == 'tree' and #agents > 0)
        if scope ~= 'queue' and active then
          local mine = { scope = scope, turn = result.turnId, late = false }
          stopping[session_id] = mine
          watch(session_id, mine)
        end
        app():refresh(session_id)
      end
    )
  end)
end

---@param session_id string
---@param was callboard.Stopping
local function force(session_id, was)
  stopping[session_id] = nil
  running(session_id, function(agents)
    local session = app().sessions.by_id[session_id]
    local targets = was.scope == 'tree'
        and vim.tbl_map(function(agent)
          return agent.agentId
        end, agents)
      or {}
    if session and session.parentId then
      table.insert(targets, 1, session_id)
    end
    for _, id in ipairs(targets) do
      app():change(
        'agent/interrupt',
        { agentId = id, kind = 'abort', reason = 'stopped by force' },
        'stop an agent'
      )
    end
    if runs(session_id, was) and not (session and session.parentId) then
      app():change('session/cancel', { sessionId = session_id, scope = was.scope }, 'stop it')
      notify.warn(
        'asked again. When that does not help: :Callboard restart ends the server and with it the turn; its log stays'
      )
    else
      notify.info('force stop: ' .. counted(#targets, 'agent', 'agents'))
    end
    local mine = { scope = was.scope, turn = was.turn, late = false }
    stopping[session_id] = mine
    watch(session_id, mine)
  end)
end

---Whether a session was asked to stop, and has not yet.
---@param session_id string
---@return boolean
function M.is_stopping(session_id)
  return stopping[session_id] ~= nil
end

---Stops what runs in a session: its turn, what waits there, or the turn with all agents below (`tree`).
---@param session_id string
---@param scope callboard.CancelScope
function M.run(session_id, scope)
  if scope ~= 'turn' and scope ~= 'queue' and scope ~= 'tree' then
    return notify.warn('interrupt takes turn, queue or tree')
  end
  local mine = stopping[session_id]
  local goes_on = mine and mine.late and (mine.scope == 'tree' or runs(session_id, mine))
  if mine and goes_on and scope ~= 'queue' then
    local whole = scope == 'tree' or mine.scope == 'tree'
    return force(session_id, { scope = whole and 'tree' or 'turn', turn = mine.turn, late = false })
  end
  cancel(session_id, scope)
end

return M

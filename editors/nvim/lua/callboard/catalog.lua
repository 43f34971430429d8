-- What of the whole store this editor follows: its sessions, and the approvals that wait.
local Approvals = require('callboard.model.approvals')
local Sessions = require('callboard.model.store')
local errors = require('callboard.errors')
local events = require('callboard.events')
local notify = require('callboard.notify')

local M = {}

---So many sessions are listed, the newest.
local LISTED = 100

---@param app callboard.App
local function list_sessions(app)
  app:request('session/list', { limit = LISTED }, function(err, page)
    if err then
      return notify.failed('list the sessions', err)
    end
    Sessions.replace(app.sessions, page.data, page.nextCursor ~= nil)
    app:tell('sessions')
  end)
end

---@param app callboard.App
local function list_approvals(app)
  local all = {}
  local function page(cursor)
    app:request('approval/list', { state = 'pending', cursor = cursor }, function(err, got)
      if err then
        return notify.failed('list what waits for an answer', err)
      end
      vim.list_extend(all, got.data)
      if got.nextCursor then
        return page(got.nextCursor)
      end
      Approvals.replace(app.approvals, all)
      app:tell('approvals')
    end)
  end
  page()
end

---@param app callboard.App
---@param event callboard.Event
local function of_session(app, event)
  if event.type == 'session_deleted' then
    Sessions.remove(app.sessions, event.sessionId)
    if #Approvals.forget(app.approvals, event.sessionId) > 0 then
      app:tell('approvals')
    end
    app:tell('sessions')
    return
  elseif event.type == 'session_created' or event.type == 'session_forked' then
    events.emit('CallboardSessionStarted', { sessionId = event.sessionId })
  elseif event.type == 'turn_finished' then
    events.emit('CallboardTurnEnded', {
      sessionId = event.sessionId,
      turnId = event.data.turnId,
      outcome = event.data.outcome,
    })
  end
  app:refresh(event.sessionId)
end

---@param app callboard.App
---@param approval callboard.Approval
function M.asked(app, approval)
  if Approvals.add(app.approvals, approval) then
    events.emit('CallboardApprovalRequested', approval)
    app:tell('approvals')
  end
end

---@param app callboard.App
---@param event callboard.Event
local function of_approval(app, event)
  if event.type == 'approval_request' then
    M.asked(app, event.data.approval)
  elseif event.type == 'approval_decision' then
    local id = event.data.approvalId
    app.questions:withdraw(id)
    if Approvals.remove(app.approvals, id) then
      app:tell('approvals')
    end
    -- Also of what this editor has answered itself, and no longer waits.
    events.emit('CallboardApprovalResolved', {
      approvalId = id,
      outcome = event.data.resolution.outcome,
      by = event.data.resolution.by,
    })
  end
  app:refresh(event.sessionId)
end

---Follows a scope of the store from now on, with a listing of what was before each time that it begins.
---@param app callboard.App
---@param scope callboard.ScopeKind
---@param list fun(app: callboard.App)
---@param on fun(app: callboard.App, event: callboard.Event)
local function follow(app, scope, list, on)
  app.feed:follow({
    scope = { kind = scope },
    cursor = 'now',
    on_events = function(batch)
      for _, event in ipairs(batch) do
        on(app, event)
      end
    end,
    on_live = function()
      list(app)
    end,
    on_lost = function(err)
      local kind = errors.kind(err)
      if kind == 'invalidCursor' or kind == 'cursorExpired' then
        follow(app, scope, list, on)
      else
        notify.failed('follow the store', err)
      end
    end,
  })
end

---What a session that is open here tells, beyond its text.
---@param app callboard.App
---@param event callboard.Event
function M.seen(app, event)
  if event.type == 'turn_started' then
    events.emit('CallboardTurnStarted', { sessionId = event.sessionId, turnId = event.data.turnId })
    app:refresh(event.sessionId)
  elseif event.type == 'tool_call' then
    events.emit('CallboardToolStarted', {
      sessionId = event.sessionId,
      callId = event.data.callId,
      name = event.data.name,
      title = event.data.title,
    })
  elseif event.type == 'tool_result' then
    events.emit('CallboardToolEnded', {
      sessionId = event.sessionId,
      callId = event.data.callId,
      name = event.data.name,
      status = event.data.status,
    })
  elseif
    event.type == 'mode_changed'
    or event.type == 'model_changed'
    or event.type == 'external_options'
    or event.type == 'turn_parked'
  then
    app:refresh(event.sessionId)
  end
end

---@param app callboard.App
function M.follow(app)
  follow(app, 'catalog', list_sessions, of_session)
  follow(app, 'approvals', list_approvals, of_approval)
end

return M

-- A session as its events tell it: what was said, done and asked, in the order of the log. Pure.
--
-- The same events give the same transcript, however they come: live, or page by page from the newest one back.
local handlers = require('callboard.model.handlers')
local items = require('callboard.model.items')
local notices = require('callboard.model.notices')
local pages = require('callboard.model.pages')
local streams = require('callboard.model.streams')

local M = {}

---@type table<string, callboard.EventHandler>
local on = vim.tbl_extend('error', handlers.on, notices.on)

M.new = items.transcript
M.parts = items.parts
M.delta = streams.delta
M.draft = streams.draft

---Takes in one event; nil when it was taken in before. One that does not follow the last is told as a `gap`,
---and changes nothing.
---@param t callboard.Transcript
---@param event callboard.Event
---@return callboard.Change?
function M.apply(t, event)
  if type(event) ~= 'table' then
    return nil
  end
  local change = items.nothing()
  -- Nothing else remains of the session, whatever was before.
  if event.type == 'session_deleted' then
    t.deleted = true
    change.head = true
    return change
  end
  if type(event.seq) ~= 'number' then
    return nil
  end
  if t.first_seq == nil then
    t.first_seq, t.last_seq = event.seq, event.seq - 1
  end
  if event.seq <= t.last_seq then
    return nil
  elseif event.seq > t.last_seq + 1 then
    change.gap = true
    return change
  end
  t.last_seq = event.seq
  change.events[1] = event.type
  local ok, fault = pcall(function()
    local handler = on[event.type]
    if handler then
      handler(t, event, change)
    end
    streams.follow(t, event, change)
  end)
  if not ok then
    -- One that holds what nobody thought of must not keep the others from being seen.
    change.fault = tostring(fault)
    items.notice(t, change, event, ('Something that cannot be shown (%s)'):format(event.type))
  end
  return change
end

---Puts events from before those that are loaded in front of them.
---@param t callboard.Transcript
---@param events callboard.Event[] in order, up to the first one that is loaded
---@return callboard.Change
function M.older(t, events)
  local before = M.new(t.session_id)
  for _, event in ipairs(events) do
    if t.first_seq and event.seq >= t.first_seq then
      break
    end
    M.apply(before, event)
  end
  if not before.first_seq then
    return items.nothing()
  end
  return pages.put(t, before)
end

---Joins what several events have changed, for one drawing.
---@param into callboard.Change?
---@param change callboard.Change?
---@return callboard.Change?
function M.merge(into, change)
  if not into or not change then
    return into or change
  end
  for _, id in ipairs(change.items) do
    items.touch(into, id)
  end
  vim.list_extend(into.events, change.events)
  into.reset = into.reset or change.reset
  into.queue = into.queue or change.queue
  into.head = into.head or change.head
  into.hole = into.hole or change.hole
  into.gap = into.gap or change.gap
  return into
end

local RUNNING = { running = true, waiting_approval = true, parked = true }

---What the server tells of the session itself, where the events that are loaded do not.
---@param t callboard.Transcript
---@param session callboard.Session as it was before, or with, the last event
function M.seed(t, session)
  local known = t.known
  t.title = session.title
  t.closed = session.closed or t.closed
  if not known.mode then
    t.mode = session.mode
  end
  if not known.model then
    t.model = session.model
  end
  local state = session.status
  if not known.turn and not t.turn and RUNNING[state] then
    t.turn = {
      id = session.activeTurnId,
      state = state,
      cancelling = false,
      parked = state == 'parked' or nil,
    }
  end
end

---Whether it is known what the plan is, or that there is none since.
---@param t callboard.Transcript
---@return boolean
function M.has_plan(t)
  return #t.plans > 0
end

---The last plan that was made before what is loaded.
---@param t callboard.Transcript
---@param event callboard.Event
---@return callboard.Change?
function M.earlier_plan(t, event)
  local before = items.transcript(t.session_id)
  handlers.on.plan_updated(before, event, items.nothing())
  handlers.forget(before, t.known)
  if M.has_plan(t) or not M.has_plan(before) then
    return nil
  end
  t.plan, t.plans = before.plan, before.plans
  local change = items.nothing()
  change.head = true
  return change
end

---The oldest approval of this session that waits for an answer.
---@param t callboard.Transcript
---@return callboard.Approval?
function M.pending(t)
  for _, item in ipairs(t.items) do
    local approval = item.approval
    if approval and (approval.state or 'pending') == 'pending' and not item.result then
      return approval
    end
  end
end

return M

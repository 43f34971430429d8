-- Approvals that wait for an answer, of all sessions of the store. Pure.
local M = {}

---@class callboard.Approvals
---@field pending callboard.Approval[] the oldest first
---@field private ended table<string, boolean> those that have ended; an older listing may still hold them

---@return callboard.Approvals
function M.new()
  return { pending = {}, ended = {} }
end

---@param state callboard.Approvals
---@param approval_id string
---@return integer?
local function place(state, approval_id)
  for i, approval in ipairs(state.pending) do
    if approval.approvalId == approval_id then
      return i
    end
  end
end

---@param state callboard.Approvals
---@param approval_id string
---@return callboard.Approval?
function M.get(state, approval_id)
  local i = place(state, approval_id)
  return i and state.pending[i] or nil
end

---@param state callboard.Approvals
---@param approval callboard.Approval
---@return boolean new
function M.add(state, approval)
  if state.ended[approval.approvalId] or (approval.state or 'pending') ~= 'pending' then
    return false
  end
  if place(state, approval.approvalId) then
    return false
  end
  table.insert(state.pending, approval)
  table.sort(state.pending, function(a, b)
    if a.createdAt ~= b.createdAt then
      return a.createdAt < b.createdAt
    end
    return a.approvalId < b.approvalId
  end)
  return true
end

---@param state callboard.Approvals
---@param approval_id string
---@return callboard.Approval? ended nil when it did not wait
function M.remove(state, approval_id)
  state.ended[approval_id] = true
  local i = place(state, approval_id)
  return i and table.remove(state.pending, i) or nil
end

---All that wait, as the server lists them; others are gone.
---@param state callboard.Approvals
---@param listed callboard.Approval[]
function M.replace(state, listed)
  state.pending = {}
  for _, approval in ipairs(listed) do
    M.add(state, approval)
  end
end

---A session is gone, and with it what it asked.
---@param state callboard.Approvals
---@param session_id string
---@return callboard.Approval[] gone
function M.forget(state, session_id)
  local gone = {}
  for i = #state.pending, 1, -1 do
    local approval = state.pending[i]
    if approval.sessionId == session_id or approval.rootId == session_id then
      table.insert(gone, 1, table.remove(state.pending, i))
    end
  end
  return gone
end

---Those of a session, or of its agents.
---@param state callboard.Approvals
---@param session_id string
---@return callboard.Approval[]
function M.of(state, session_id)
  return vim.tbl_filter(function(approval)
    return approval.sessionId == session_id or approval.rootId == session_id
  end, state.pending)
end

---The one after `approval_id`, from the oldest again after the last.
---@param state callboard.Approvals
---@param approval_id string?
---@return callboard.Approval?
function M.next(state, approval_id)
  local i = approval_id and place(state, approval_id) or 0
  return state.pending[i + 1] or state.pending[1]
end

---The options of an approval by the keys 1 to 5: once, for the session, for good, reject, reject and say
---why. Nil where it does not offer one.
---@param approval callboard.Approval
---@param number integer
---@return callboard.ApprovalOption?
function M.option(approval, number)
  local kinds = { 'allow_once', 'allow_session', 'allow_always', 'reject_once', 'reject_once' }
  for _, option in ipairs(approval.options) do
    if option.kind == kinds[number] then
      return option
    end
  end
end

return M

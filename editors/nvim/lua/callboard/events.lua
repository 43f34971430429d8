-- `User` autocommands, for statuslines, notifiers and whatever else a user hangs on them.
local M = {}

---@alias callboard.UserEvent
---| 'CallboardSessionStarted' data: sessionId
---| 'CallboardTurnStarted' data: sessionId, turnId
---| 'CallboardTurnEnded' data: sessionId, turnId, outcome
---| 'CallboardToolStarted' data: sessionId, callId, name, title
---| 'CallboardToolEnded' data: sessionId, callId, name, status
---| 'CallboardApprovalRequested' data: the approval
---| 'CallboardApprovalResolved' data: approvalId, outcome, by
---| 'CallboardServerReady' data: version
---| 'CallboardServerExit' data: code, signal, expected
---| 'CallboardStatus' something that a statusline shows has changed

---@param name callboard.UserEvent
---@param data table?
function M.emit(name, data)
  vim.api.nvim_exec_autocmds('User', { pattern = name, modeline = false, data = data or {} })
end

return M

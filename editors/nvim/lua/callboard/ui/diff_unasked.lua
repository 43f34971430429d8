-- Opens the diff of a change that begins to wait, where that is wished: while the chat of its session is in view,
-- and never under the hands of somebody who types.
local Approvals = require('callboard.model.approvals')
local diff = require('callboard.ui.diff_approval')
local proposed = require('callboard.ui.diff_proposed')

local M = {}

---Whether a person is at a place from which nobody takes them away: typing, selecting, in a command line.
---@return boolean
local function busy()
  return vim.api.nvim_get_mode().mode ~= 'n' or vim.fn.getcmdwintype() ~= ''
end

---@param approval callboard.Approval
---@return boolean
local function in_view(approval)
  local chat = require('callboard.ui.chat')
  return chat.visible(approval.sessionId) or chat.visible(approval.rootId)
end

---@param app callboard.App
---@param approval callboard.Approval
local function open(app, approval)
  local waits = Approvals.get(app.approvals, approval.approvalId)
  if not waits or diff.open() or not in_view(approval) then
    return
  elseif not busy() then
    return diff.show(approval)
  end
  vim.api.nvim_create_autocmd('ModeChanged', {
    pattern = '*:n',
    once = true,
    callback = function()
      vim.schedule(function()
        open(app, approval)
      end)
    end,
  })
end

---@type table<string, true>
local opened = {}

---The next one that nobody has seen yet.
---@param app callboard.App
local function look(app)
  if diff.open() then
    return
  end
  for _, approval in ipairs(app.approvals.pending) do
    if not opened[approval.approvalId] and #proposed.changes(approval) > 0 then
      opened[approval.approvalId] = true
      return open(app, approval)
    end
  end
end

---@param app callboard.App
---@return fun() off
function M.watch(app)
  return app:on('approvals', function()
    vim.schedule(function()
      look(app)
    end)
  end)
end

return M

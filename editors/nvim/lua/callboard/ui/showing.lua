-- What the view of a chat asks it for: how items look, what stands above and below them.
local config = require('callboard.config')
local keys = require('callboard.keys')
local tail = require('callboard.ui.tail')

local M = {}

---How its items look.
---@param chat callboard.Conversation
---@return callboard.Look
function M.look(chat)
  local record, options = chat:record(), config.get().render
  return {
    icons = options.icons,
    fold_lines = options.fold_lines,
    agent = record and (record.parentId and record.title or record.profile) or 'default',
    parent = record and record.parentId or nil,
    room = record ~= nil and #(record.members or {}) > 0,
    speakers = chat.view.transcript.speakers,
    cwd = record and record.cwd or chat.cwd,
  }
end

---What stands above them.
---@param chat callboard.Conversation
---@param hidden integer items that are loaded, and not in the buffer
---@return callboard.Line[]
function M.top(chat, hidden)
  local more = chat.session ~= nil and chat.session.phase == 'live' and not chat.session.at_start
  if hidden == 0 and not more then
    return {}
  end
  local words = hidden > 0 and ('%d%s earlier'):format(hidden, more and ' and more' or '')
    or 'more before this'
  return {
    { { ('▲ %s; <CR> loads'):format(words), 'CallboardDim' }, target = { kind = 'older' } },
  }
end

---What stands below them.
---@param chat callboard.Conversation
---@return callboard.Line[]
function M.tail(chat)
  local function lhs(action, default)
    return keys.lhs_of('chat', { action = action, lhs = default })[1] or ''
  end
  return tail.lines({
    transcript = chat.session and chat.view.transcript or nil,
    outbox = chat.session and chat.session.outbox or chat.early,
    phase = chat:phase(),
    fault = chat.session and chat.session.fault or nil,
    server = chat.app.server.state,
    failure = chat.app.server.failure,
    late = chat.late,
    approvals = vim.tbl_filter(function(approval)
      return approval.sessionId ~= chat.id
    end, chat:approvals()),
    keys = { edit = lhs('edit', 'e'), drop = lhs('drop', 'x'), steer = lhs('now', 's') },
    cwd = chat.cwd,
  })
end

return M

-- What a picker tells of a session beside its row.
local Rows = require('callboard.model.rows')
local text = require('callboard.model.text')

local M = {}

---@param line callboard.PickerLine
---@return string[]
function M.of(line)
  local session = line.session
  if not session then
    return { text.one_line(line.text) }
  end
  local function row(name, value)
    return ('%-10s %s'):format(name, text.one_line(tostring(value), 200))
  end
  local now = os.time()
  local lines = {
    text.one_line(require('callboard.model.store').name(session), 200),
    '',
    row('Id', session.sessionId),
    row('Folder', session.cwd),
    row('State', Rows.state(session, require('callboard.model.store').group(session))),
    row('Model', session.model or 'as configured'),
    row('Mode', session.mode),
    row('Profile', session.profile),
    row('Changed', Rows.age(session.updatedAt, now)),
    row('Begun', Rows.age(session.createdAt, now)),
  }
  local used = Rows.used(session.usage)
  lines[#lines + 1] = row('Usage', used ~= '' and used or 'not known')
  if (session.queueLength or 0) > 0 then
    lines[#lines + 1] = row('Queue', session.queueLength)
  end
  if (session.pendingApprovals or 0) > 0 then
    lines[#lines + 1] = row('Approvals', session.pendingApprovals .. ' wait for an answer')
  end
  if session.forkedFrom then
    lines[#lines + 1] = row('Fork of', session.forkedFrom.sessionId)
  end
  return lines
end

return M

-- Tokens and cost in a float.
local notify = require('callboard.notify')

local M = {}

---@param id string
function M.run(id)
  local app = require('callboard.app').get()
  app:request('session/usage', { sessionId = id, limit = 1 }, function(err, result)
    if err then
      return notify.failed('look up the usage', err)
    end
    local shown = {}
    for i, line in ipairs(require('callboard.model.usage').lines(result, app.sessions.by_id[id])) do
      shown[i] = { { line, i == 1 and 'CallboardHeading' or nil } }
    end
    local name = require('callboard.ui.sessions').called(id)
    require('callboard.ui.float').open('Usage of ' .. name, shown, 'callboard-usage')
  end)
end

return M

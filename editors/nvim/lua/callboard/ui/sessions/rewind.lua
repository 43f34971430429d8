-- Going back to before the last turn: the agent knows nothing of it any more, the files stay as they are.
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

local PATHS_SHOWN = 8

---@param count integer
---@param one string
---@return string
local function plural(count, one)
  return count == 1 and ('1 %s'):format(one) or ('%d %ss'):format(count, one)
end

---What a rewind did, and what it did not.
---@param result callboard.SessionRewindResult
---@param turn_id string the turn that it went back to before
---@return callboard.Line[]
function M.describe(result, turn_id)
  local shown = {}
  local function add(line, hl)
    shown[#shown + 1] = { { line, hl } }
  end
  add(
    ('%s taken back: the agent knows nothing of it any more.'):format(plural(result.turns, 'turn'))
  )
  local paths = result.changedPaths or {}
  if #paths > 0 then
    add('Files stay as they are. These had been changed:')
    for i = 1, math.min(#paths, PATHS_SHOWN) do
      add('  ' .. text.one_line(paths[i], 120), 'CallboardPath')
    end
    local more = math.max(0, #paths - PATHS_SHOWN) + (result.morePaths or 0)
    if more > 0 then
      add(('  and %d more'):format(more))
    end
  else
    add('No file had been changed by its tools.')
  end
  if (result.commands or 0) > 0 then
    add(('%s ran in it; what they did stands.'):format(plural(result.commands, 'command')))
  end
  add('To go on from where it was, in a session of its own:', 'CallboardDim')
  add('  :Callboard fork ' .. text.one_line(turn_id, 60), 'CallboardCommand')
  return shown
end

---The last turn that counts.
---@param id string
---@param done fun(turn: callboard.Turn?)
local function last_turn(id, done)
  local function page(cursor, last)
    require('callboard.app')
      .get()
      :request('session/turns', { sessionId = id, cursor = cursor }, function(err, got)
        if err then
          return notify.failed('find the last turn', err)
        end
        last = got.data[#got.data] or last
        if got.nextCursor then
          return page(got.nextCursor, last)
        end
        done(last)
      end)
  end
  page()
end

---@param id string
function M.run(id)
  local app = require('callboard.app').get()
  last_turn(id, function(turn)
    if not turn then
      local session = app.sessions.by_id[id]
      local inherited = session and session.forkedFrom
      return notify.warn(
        inherited
            and 'this fork has no turn of its own to take back. Fork the session that it comes from instead.'
          or 'there is no turn to take back yet'
      )
    end
    local params = { sessionId = id, beforeTurnId = turn.turnId }
    app:change('session/rewind', params, 'take back the last turn', function(result)
      app:put_session(result.session)
      local name = require('callboard.ui.sessions').called(id)
      require('callboard.ui.float').open(
        'Back in ' .. name,
        M.describe(result, turn.turnId),
        'callboard-undo'
      )
    end)
  end)
end

return M

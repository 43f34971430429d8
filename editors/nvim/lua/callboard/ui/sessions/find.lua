-- Sessions by the beginning of an id, or by being the newest of the folder.
local Sessions = require('callboard.model.store')
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---@return callboard.App
local function app()
  return require('callboard.app').get()
end

---All sessions of the store, page by page, those that are archived at the end.
---@param params table
---@param each fun(session: callboard.Session): boolean? true ends it
---@param done fun(err: table?)
local function walk(params, each, done)
  app():request('session/list', params, function(err, page)
    if err then
      return done(err)
    end
    for _, session in ipairs(page.data) do
      if each(session) then
        return done()
      end
    end
    if page.nextCursor then
      return walk(vim.tbl_extend('force', params, { cursor = page.nextCursor }), each, done)
    elseif not params.archived then
      return walk({ archived = true }, each, done)
    end
    done()
  end)
end

---Whether an id begins so; its prefix may be left out.
---@param id string
---@param wanted string
---@return boolean
local function begins(id, wanted)
  return vim.startswith(id, wanted) or vim.startswith(id:gsub('^ses_', ''), wanted)
end

---Agents are in no list of sessions, but a whole id names one.
---@param wanted string
local function open_child(wanted)
  app():request('session/get', { sessionId = wanted }, function(err, got)
    if got then
      app():put_session(got.session)
      return require('callboard.ui.chat').open(got.session.sessionId)
    end
    local kind = err.data and err.data.kind
    if kind ~= 'sessionNotFound' and err.code ~= -32602 then
      return notify.failed(('open the session %s'):format(text.one_line(wanted, 40)), err)
    end
    notify.warn(
      ('no session has an id that begins with %s. :Callboard sessions shows those that are there.'):format(
        text.one_line(wanted, 40)
      )
    )
  end)
end

local AMBIGUOUS_SHOWN = 5

---Opens the session whose id begins so.
---@param wanted string
function M.open(wanted)
  local found, exact = {}, nil
  walk({}, function(session)
    exact = (session.sessionId == wanted or session.sessionId == 'ses_' .. wanted) and session
      or nil
    if begins(session.sessionId, wanted) then
      found[#found + 1] = session
    end
    return exact ~= nil
  end, function(err)
    if err then
      return notify.failed(('find the session %s'):format(text.one_line(wanted, 40)), err)
    end
    local session = exact or (#found == 1 and found[1])
    if session then
      app():put_session(session)
      return require('callboard.ui.chat').open(session.sessionId)
    elseif #found == 0 then
      return open_child(wanted)
    end
    local lines = {
      ('%d sessions have an id that begins with %s; give more of it:'):format(
        #found,
        text.one_line(wanted, 40)
      ),
    }
    for i = 1, math.min(#found, AMBIGUOUS_SHOWN) do
      lines[#lines + 1] = ('%s  %s'):format(
        found[i].sessionId,
        text.one_line(Sessions.name(found[i]), 50)
      )
    end
    if #found > AMBIGUOUS_SHOWN then
      lines[#lines + 1] = ('and %d more'):format(#found - AMBIGUOUS_SHOWN)
    end
    notify.warn(table.concat(lines, '\n'))
  end)
end

---Opens the newest session of this folder.
function M.resume()
  app():request(
    'session/list',
    { cwd = require('callboard.ui.sessions').folder(), limit = 1 },
    function(err, page)
      if err then
        return notify.failed('find the newest session of this folder', err)
      elseif not page.data[1] then
        return notify.warn(
          'this folder has no session yet. :Callboard new begins one, :Callboard sessions shows those of other folders.'
        )
      end
      app():put_session(page.data[1])
      require('callboard.ui.chat').open(page.data[1].sessionId)
    end
  )
end

return M

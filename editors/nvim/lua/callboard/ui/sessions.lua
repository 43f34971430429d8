-- What is done with a session as a whole. Each function is a sub-command of `:Callboard`.
local Sessions = require('callboard.model.store')
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---@return callboard.App
local function app()
  return require('callboard.app').get()
end

---What a message calls a session.
---@param id string
---@return string
local function called(id)
  local session = app().sessions.by_id[id]
  return '«'
    .. text.one_line(session and Sessions.name(session) or Sessions.name({ sessionId = id }), 60)
    .. '»'
end

M.called = called

---The folder that the editor works in, by the name under which the server knows it.
---@return string
function M.folder()
  local cwd = vim.uv.cwd() or '.'
  return vim.uv.fs_realpath(cwd) or cwd
end

---Lists the sessions in which somebody is to pick one.
function M.pick()
  require('callboard.ui.sessions.picker').pick()
end

---Lists what was said with these words.
---@param words string
function M.search(words)
  require('callboard.ui.sessions.search').run(words)
end

---Opens the session whose id begins so.
---@param wanted string?
function M.open(wanted)
  wanted = vim.trim(wanted or '')
  if wanted == '' then
    return M.pick()
  end
  require('callboard.ui.sessions.find').open(wanted)
end

---Opens the newest session of this folder.
function M.resume()
  require('callboard.ui.sessions.find').resume()
end

---@param id string
---@param title string? asked for without it
function M.rename(id, title)
  if not title then
    local session = app().sessions.by_id[id]
    return require('callboard.ui.ask').line({
      title = 'Title of the session',
      default = session and session.title or nil,
    }, function(given)
      if given and vim.trim(given) ~= '' then
        M.rename(id, given)
      end
    end)
  end
  app():change(
    'session/update',
    { sessionId = id, title = vim.trim(text.utf8(title)) },
    'rename ' .. called(id),
    function(result)
      app():put_session(result.session)
      notify.info(('the session is called %s now'):format(called(id)))
    end
  )
end

---@param id string
---@param hide boolean false brings it back
function M.archive(id, hide)
  local name = called(id)
  local method = hide and 'session/archive' or 'session/unarchive'
  app():change(
    method,
    { sessionId = id },
    (hide and 'archive ' or 'bring back ') .. name,
    function(result)
      app():put_session(result.session)
      notify.info(
        hide and ('%s is archived. :Callboard! archive shows it again.'):format(name)
          or ('%s is in the lists again'):format(name)
      )
    end
  )
end

---Deletes a session with its agents and all that was said.
---@param id string
---@param sure boolean? do not ask
function M.delete(id, sure)
  local name = called(id)
  if not sure then
    return require('callboard.pickers').ask(
      ('Delete %s, its agents and all that was said?'):format(name),
      {
        { 'Keep it' },
        {
          'Delete it for good',
          function()
            M.delete(id, true)
          end,
        },
      }
    )
  end
  app():change('session/delete', { sessionId = id }, 'delete ' .. name, function()
    Sessions.remove(app().sessions, id)
    app():tell('sessions')
    notify.info(('%s is deleted'):format(name))
  end)
end

---A new session with the history of this one, which is opened.
---@param id string
---@param at_turn string? the last turn that it takes over; a turn that was undone can be named, too
function M.fork(id, at_turn)
  app():change(
    'session/fork',
    { sessionId = id, atTurnId = at_turn },
    'fork ' .. called(id),
    function(result)
      app():put_session(result.session)
      require('callboard.ui.chat').open(result.session.sessionId)
      notify.info(
        ('this is a fork of %s: what is said here does not change the other one'):format(called(id))
      )
    end
  )
end

---Goes back to before the last turn.
---@param id string
function M.rewind(id)
  require('callboard.ui.sessions.rewind').run(id)
end

---Shows the session as Markdown.
---@param id string
function M.export(id)
  require('callboard.ui.sessions.export').run(id)
end

---Shows tokens and cost.
---@param id string
function M.usage(id)
  require('callboard.ui.sessions.usage').run(id)
end

---@param id string
---@param name string? picked from those there are without it
function M.model(id, name)
  require('callboard.ui.sessions.choices').model(id, name)
end

---@param id string
---@param mode string? picked without it
function M.mode(id, mode)
  require('callboard.ui.sessions.choices').mode(id, mode)
end

---Ids of the sessions that are known, for completion. Asks nothing.
---@return string[]
function M.ids()
  local known = require('callboard.app').peek()
  if not known then
    return {}
  end
  return vim.tbl_map(function(session)
    return session.sessionId
  end, Sessions.list(known.sessions))
end

---Models that can be used, for completion. What is not known yet is asked for, and is there the next time.
---@return string[]
function M.models()
  return require('callboard.ui.sessions.choices').models()
end

return M

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

local AMBIGUOUS_SHOWN = 5

---Opens the session whose id begins so.
---@param wanted string?
function M.open(wanted)
  wanted = vim.trim(wanted or '')
  if wanted == '' then
    return M.pick()
  end
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
      return M.open_child(wanted)
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

---Agents are in no list of sessions, but a whole id names one.
---@private
---@param wanted string
function M.open_child(wanted)
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

---Opens the newest session of this folder.
function M.resume()
  app():request('session/list', { cwd = M.folder(), limit = 1 }, function(err, page)
    if err then
      return notify.failed('find the newest session of this folder', err)
    elseif not page.data[1] then
      return notify.warn(
        'this folder has no session yet. :Callboard new begins one, :Callboard sessions shows those of other folders.'
      )
    end
    app():put_session(page.data[1])
    require('callboard.ui.chat').open(page.data[1].sessionId)
  end)
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

---Models of the last listing, for completion.
---@type callboard.ModelInfo[]
local known_models = {}

---@param done fun(models: callboard.ModelInfo[])
local function list_models(done)
  local all = {}
  local function page(cursor)
    app():request('model/list', { cursor = cursor }, function(err, got)
      if err then
        return notify.failed('list the models', err)
      end
      vim.list_extend(all, got.data)
      if got.nextCursor then
        return page(got.nextCursor)
      end
      known_models = all
      done(all)
    end)
  end
  page()
end

---@param id string
---@param model string
local function set_model(id, model)
  app():change(
    'session/update',
    { sessionId = id, model = model },
    'change the model',
    function(result)
      app():put_session(result.session)
      notify.info(
        ('%s answers from the next turn on'):format(
          text.one_line(result.session.model or model, 80)
        )
      )
    end
  )
end

---@param model callboard.ModelInfo
---@param current string?
---@return string
local function model_line(model, current)
  local parts = { (model.modelId == current and '* ' or '  ') .. text.one_line(model.modelId, 100) }
  if not model.available then
    parts[#parts + 1] = 'not available: '
      .. text.one_line(model.reason or 'no reason was given', 80)
  elseif model.contextWindow then
    parts[#parts + 1] = text.count(model.contextWindow) .. ' tokens of context'
  end
  return table.concat(parts, '  ')
end

---@param id string
---@param name string? picked from those there are without it
function M.model(id, name)
  if name then
    return set_model(id, name)
  end
  list_models(function(models)
    if #models == 0 then
      return notify.warn('no model was found. :checkhealth callboard says what is looked for.')
    end
    local session = app().sessions.by_id[id]
    local current, usable, rest = session and session.model, {}, {}
    for _, model in ipairs(models) do
      table.insert(model.available and usable or rest, model)
      -- One that was not set is the one that new sessions get.
      current = current or (model.selected and model.modelId) or nil
    end
    require('callboard.pickers').pick({
      title = 'Model of ' .. called(id),
      items = vim.list_extend(usable, rest),
      format = function(model)
        return model_line(model, current)
      end,
      on_choice = function(model)
        if model.available then
          set_model(id, model.modelId)
        else
          notify.warn(
            ('%s cannot be used: %s'):format(model.modelId, model.reason or 'no reason was given')
          )
        end
      end,
    })
  end)
end

local MODES = {
  { 'ask', 'reads and answers; changes nothing' },
  { 'plan', 'reads and makes a plan; changes nothing' },
  { 'work', 'changes files and runs commands, as far as it is allowed' },
}

---@param id string
---@param mode string? picked without it
function M.mode(id, mode)
  if mode then
    return app():change(
      'session/update',
      { sessionId = id, mode = mode },
      'change the mode',
      function(result)
        app():put_session(result.session)
        notify.info(('the mode is %s now'):format(result.session.mode))
      end
    )
  end
  local session = app().sessions.by_id[id]
  require('callboard.pickers').pick({
    title = 'Mode of ' .. called(id),
    items = MODES,
    format = function(item)
      return ('%s%-5s %s'):format(
        session and session.mode == item[1] and '* ' or '  ',
        item[1],
        item[2]
      )
    end,
    on_choice = function(item)
      M.mode(id, item[1])
    end,
  })
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
  local known = require('callboard.app').peek()
  if known and #known_models == 0 and known.server.state == 'ready' then
    list_models(function() end)
  end
  local names = {}
  for _, model in ipairs(known_models) do
    if model.available then
      names[#names + 1] = model.modelId
    end
  end
  return names
end

return M

-- The list of sessions: those of this folder, and lines that lead to the rest.
local Rows = require('callboard.model.rows')
local notify = require('callboard.notify')

local M = {}

---What of the store is listed so far.
---@class callboard.SessionListing
---@field folder string
---@field sessions callboard.Session[]
---@field here_cursor string? where the next page of the folder's begins
---@field all_cursor string? and of all
---@field all boolean those of other folders are shown, too
---@field archived boolean those that are archived are listed

---@class callboard.PickerLine
---@field session callboard.Session? nil for a line that leads on
---@field heading string?
---@field text string
---@field go fun()?

---@return callboard.App
local function app()
  return require('callboard.app').get()
end

---@param listing callboard.SessionListing
---@param wanted { params: table, keep: string }[] requests; `keep` names the field for the next page's cursor
---@param done fun()
local function fetch(listing, wanted, done)
  local left, failed = #wanted, false
  for _, want in ipairs(wanted) do
    app():request('session/list', want.params, function(err, page)
      if failed then
        return
      elseif err then
        failed = true
        return notify.failed('list the sessions', err)
      end
      vim.list_extend(listing.sessions, page.data)
      if want.keep ~= '' then
        listing[want.keep] = page.nextCursor
      end
      left = left - 1
      if left == 0 then
        done()
      end
    end)
  end
end

local show

---@param listing callboard.SessionListing
---@return fun()
local function older(listing)
  return function()
    local wanted = {}
    if listing.here_cursor then
      wanted[#wanted + 1] = {
        params = { cwd = listing.folder, cursor = listing.here_cursor, limit = M.PAGE },
        keep = 'here_cursor',
      }
    end
    if listing.all and listing.all_cursor then
      wanted[#wanted + 1] =
        { params = { cursor = listing.all_cursor, limit = M.PAGE }, keep = 'all_cursor' }
    end
    fetch(listing, wanted, function()
      show(listing)
    end)
  end
end

---Lines that lead to what is not shown.
---@param listing callboard.SessionListing
---@param hidden integer
---@return callboard.PickerLine[]
local function leads(listing, hidden)
  local lines = {}
  local function add(text, go)
    lines[#lines + 1] = { text = text, go = go, heading = 'More' }
  end
  if hidden > 0 then
    local many = listing.all_cursor and ('%d or more'):format(hidden) or tostring(hidden)
    local one = hidden == 1 and not listing.all_cursor
    add(
      ('%s of other folders %s hidden; choose this to show %s'):format(
        many,
        one and 'is' or 'are',
        one and 'it' or 'them'
      ),
      function()
        listing.all = true
        show(listing)
      end
    )
  end
  if listing.here_cursor or (listing.all and listing.all_cursor) then
    add('older ones', older(listing))
  end
  if not listing.archived then
    add('archived ones', function()
      listing.archived = true
      fetch(listing, { { params = { archived = true, limit = M.PAGE }, keep = '' } }, function()
        show(listing)
      end)
    end)
  end
  return lines
end

---@param listing callboard.SessionListing
---@return callboard.PickerLine[]
local function lines_of(listing)
  local rows, hidden = Rows.arrange(listing.sessions, {
    cwd = listing.folder,
    all = listing.all,
    approvals = app().approvals,
  })
  local texts = Rows.lines(rows, {
    now = os.time(),
    icons = require('callboard.config').get().render.icons,
    home = vim.uv.os_homedir(),
  })
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = { session = row.session, text = texts[i], heading = Rows.HEADINGS[row.group] }
  end
  return vim.list_extend(lines, leads(listing, hidden)), #rows
end

---@param fn fun(sessions: table, id: string, session: callboard.Session)
---@param again fun()
---@return fun(line: callboard.PickerLine)
local function on_session(fn, again)
  return function(line)
    if line.session then
      fn(require('callboard.ui.sessions'), line.session.sessionId, line.session)
    else
      again()
    end
  end
end

---@param listing callboard.SessionListing
function show(listing)
  for _, session in ipairs(listing.sessions) do
    require('callboard.model.store').put(app().sessions, session)
  end
  local lines, count = lines_of(listing)
  if count == 0 and listing.archived then
    return notify.info('there is no session yet. :Callboard new begins one.')
  end
  local function again()
    show(listing)
  end
  require('callboard.pickers').pick({
    title = listing.all and 'Sessions'
      or 'Sessions of ' .. vim.fn.fnamemodify(listing.folder, ':~'),
    items = lines,
    format = function(line)
      return line.text
    end,
    heading = function(line)
      return line.heading
    end,
    preview = require('callboard.ui.sessions.preview').of,
    on_choice = function(line)
      if line.session then
        require('callboard.ui.chat').open(line.session.sessionId)
      else
        line.go()
      end
    end,
    actions = {
      rename = {
        key = 'r',
        desc = 'Rename',
        fn = on_session(function(sessions, id)
          sessions.rename(id)
        end, again),
      },
      archive = {
        key = 'a',
        desc = 'Archive, or bring back',
        fn = on_session(function(sessions, id, session)
          sessions.archive(id, not session.archived)
        end, again),
      },
      delete = {
        key = 'x',
        desc = 'Delete, after asking',
        fn = on_session(function(sessions, id)
          sessions.delete(id)
        end, again),
      },
      fork = {
        key = 'f',
        desc = 'Fork',
        fn = on_session(function(sessions, id)
          sessions.fork(id)
        end, again),
      },
    },
  })
end

---Sessions of a page.
M.PAGE = 100

function M.pick()
  local listing = {
    folder = require('callboard.ui.sessions').folder(),
    sessions = {},
    all = false,
    archived = false,
  }
  fetch(listing, {
    { params = { cwd = listing.folder, limit = M.PAGE }, keep = 'here_cursor' },
    { params = { limit = M.PAGE }, keep = 'all_cursor' },
  }, function()
    if #listing.sessions == 0 then
      listing.archived = true
      return fetch(
        listing,
        { { params = { archived = true, limit = M.PAGE }, keep = '' } },
        function()
          show(listing)
        end
      )
    end
    show(listing)
  end)
end

return M

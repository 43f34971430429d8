-- The list of files that a session changed: a page, with the quickfix list beside it. And what becomes of
-- buffers when an agent writes their files.
local files = require('callboard.files')
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---@class callboard.ChangesPage
---@field tracked callboard.Tracked
---@field page callboard.Page
---@field off fun()
---@field quickfix integer id of the list

---@type table<string, callboard.ChangesPage>
local pages = {}

local STATES = {
  new = { 'new', 'CallboardApproval' },
  accepted = { 'accepted', 'CallboardToolOk' },
  rejected = { 'rejected', 'CallboardToolFailed' },
}

local MARKS = { create = 'A', modify = 'M', delete = 'D', move = 'R', nothing = '-' }

---@param file callboard.ChangedFile
---@return string
local function mark(file)
  return MARKS[file.operation] or '?'
end

---@param count integer
---@param noun string
---@return string
local function counted(count, noun)
  return ('%d %s%s'):format(count, noun, count == 1 and '' or 's')
end
M.counted = counted

---@param tracked callboard.Tracked
---@return string
local function title_of(tracked)
  return text.one_line(tracked.title or 'this session', 60)
end

---@param tracked callboard.Tracked
---@param file callboard.ChangedFile
---@return string? agents that changed it
local function by(tracked, file)
  local names, seen = {}, {}
  for _, step in ipairs(file.chain) do
    local name = tracked.names[step.session_id]
    if name and not seen[name] then
      seen[name] = true
      names[#names + 1] = text.one_line(name, 30)
    end
  end
  return #names > 0 and table.concat(names, ', ') or nil
end

---@param tracked callboard.Tracked
---@param file callboard.ChangedFile
---@param width integer of the longest path
---@return callboard.Line
local function row(tracked, file, width)
  local name = text.one_line(tracked:short(file.path))
  local state = STATES[file.state]
  local line = {
    { (' %-8s '):format(state[1]), state[2] },
    { mark(file) .. ' ', 'CallboardDim' },
    { name, 'CallboardPath' },
    { (' '):rep(math.max(width - vim.fn.strdisplaywidth(name), 0) + 2) },
    { ('+%d'):format(file.added), 'CallboardAdded' },
    { ' ' },
    { ('−%d'):format(file.removed), 'CallboardRemoved' },
    target = file.path,
  }
  if file.old_path then
    table.insert(line, { '  from ' .. text.one_line(tracked:short(file.old_path)), 'CallboardDim' })
  end
  local agents = by(tracked, file)
  if agents then
    table.insert(line, { '  by ' .. agents, 'CallboardAgent' })
  end
  if file.partial then
    table.insert(line, { '  cannot be shown whole: ' .. file.partial, 'CallboardDim' })
  end
  return line
end

---What to say above all else.
---@param tracked callboard.Tracked
---@return callboard.Line?
local function trouble(tracked)
  local server = require('callboard.app').get().server
  if tracked.fault then
    return { { ' This may be old: ' .. text.one_line(tracked.fault), 'CallboardError' } }
  elseif server.state == 'failed' then
    local failure = server.failure and server.failure.message or 'see :Callboard log'
    return { { ' No server: ' .. text.one_line(failure), 'CallboardError' } }
  elseif server.state == 'waiting' then
    return { { ' The server has ended; it is started again…', 'CallboardError' } }
  elseif not tracked.loaded then
    return { { ' Loading…', 'CallboardDim' } }
  end
end

---@param tracked callboard.Tracked
---@return callboard.Line[]
local function draw(tracked)
  local list = tracked:files()
  local added, removed, width = 0, 0, 10
  for _, file in ipairs(list) do
    added, removed = added + file.added, removed + file.removed
    width = math.max(width, vim.fn.strdisplaywidth(text.one_line(tracked:short(file.path))))
  end
  width = math.min(width, 60)
  local shown = { { { ' Changes of ' .. title_of(tracked), 'CallboardHeading' } } }
  if #list > 0 then
    vim.list_extend(shown[1], {
      { ('   %s, %d new   '):format(counted(#list, 'file'), #tracked:pending()), 'CallboardDim' },
      { ('+%d'):format(added), 'CallboardAdded' },
      { ' ' },
      { ('−%d'):format(removed), 'CallboardRemoved' },
    })
  end
  table.insert(shown, trouble(tracked))
  for _, file in ipairs(list) do
    table.insert(shown, row(tracked, file, width))
  end
  if #list == 0 and tracked.loaded then
    table.insert(shown, { { ' No file was changed yet.', 'CallboardDim' } })
  end
  if tracked.loaded then
    local note =
      ' What commands and other programs wrote is not seen here: ask your version control.'
    table.insert(shown, { { note, 'CallboardDim' } })
  end
  return shown
end

---@param tracked callboard.Tracked
---@return table[]
local function quickfix_items(tracked)
  local list = tracked:pending()
  if #list == 0 then
    list = tracked:files()
  end
  return vim.tbl_map(function(file)
    local last = file.chain[#file.chain]
    local line = tonumber(last.change.diff:match('\n@@ %-[%d,]+ %+(%d+)')) or 1
    return {
      filename = file.path,
      lnum = math.max(line, 1),
      type = 'I',
      text = ('%s %s +%d −%d'):format(file.state, mark(file), file.added, file.removed),
    }
  end, list)
end

---Fills the quickfix list: a new one at first, later the same.
---@param tracked callboard.Tracked
---@param id integer? of the list
---@return integer? id nil when that list is gone
local function quickfix(tracked, id)
  local what = {
    title = 'Callboard: changes of ' .. title_of(tracked),
    items = quickfix_items(tracked),
  }
  if not id then
    vim.fn.setqflist({}, ' ', what)
    return vim.fn.getqflist({ id = 0 }).id
  elseif vim.fn.getqflist({ id = id }).id ~= id then
    return nil
  end
  what.id, what.idx = id, vim.fn.getqflist({ id = id, idx = 0 }).idx
  vim.fn.setqflist({}, 'r', what)
  return id
end

---@param entry callboard.ChangesPage
local function update(entry)
  entry.page:draw(draw(entry.tracked))
  if not entry.tracked.loaded then
    return
  end
  if not entry.quickfix then
    entry.quickfix = quickfix(entry.tracked) or 0
  elseif entry.quickfix ~= 0 then
    entry.quickfix = quickfix(entry.tracked, entry.quickfix) or 0
  end
end

---@param tracked callboard.Tracked
---@param page callboard.Page
---@return callboard.Key[]
local function keys(tracked, page)
  local diff = require('callboard.ui.diff')
  local function on_file(fn)
    return function()
      local file = page:target() and tracked:file(page:target())
      if file then
        return fn(file)
      end
      notify.info('no file is under the cursor')
    end
  end
  local function show(file)
    diff.show(tracked, file.path)
  end
  local function go(step)
    return function()
      local from = vim.api.nvim_win_get_cursor(0)
      local at = from[1] + step
      while at >= 1 and at <= vim.api.nvim_buf_line_count(page.buf) do
        vim.api.nvim_win_set_cursor(0, { at, 0 })
        if page:target() then
          return
        end
        at = at + step
      end
      vim.api.nvim_win_set_cursor(0, from)
    end
  end
  return {
    { action = 'open', lhs = '<CR>', desc = 'Show how the file was changed', fn = on_file(show) },
    { action = 'diff', lhs = 'gd', desc = 'Show how the file was changed', fn = on_file(show) },
    {
      action = 'accept',
      lhs = 'ga',
      desc = 'Accept the change',
      fn = on_file(function(file)
        diff.accept_files(tracked, { file })
      end),
    },
    {
      action = 'reject',
      lhs = 'gr',
      desc = 'Put back what the file was before',
      fn = on_file(function(file)
        diff.reject_files(tracked, { file })
      end),
    },
    {
      action = 'accept_all',
      lhs = 'gA',
      desc = 'Accept all that is new',
      fn = function()
        diff.accept_files(tracked, tracked:pending())
      end,
    },
    {
      action = 'reject_all',
      lhs = 'gR',
      desc = 'Put back all that is new, after asking',
      fn = function()
        diff.ask_reject(tracked)
      end,
    },
    { action = 'next_file', lhs = ']f', desc = 'Next file', fn = go(1) },
    { action = 'previous_file', lhs = '[f', desc = 'Previous file', fn = go(-1) },
  }
end

---Lists what a session and its agents changed, and fills the quickfix list with what is new.
---@param session_id string
function M.open(session_id)
  local entry = pages[session_id]
  if entry and entry.page:alive() then
    entry.quickfix = entry.tracked.loaded and quickfix(entry.tracked) or nil
    return entry.page:show()
  end
  local tracked = require('callboard.changes').use(session_id)
  local app = require('callboard.app').get()
  local offs = {}
  entry = { tracked = tracked }
  pages[session_id] = entry
  entry.page = require('callboard.ui.page').new({
    name = 'callboard://changes/' .. session_id,
    filetype = 'callboard-changes',
    keys = function(page)
      return keys(tracked, page)
    end,
    same = function(path)
      return path
    end,
    closed = function()
      for _, off in ipairs(offs) do
        off()
      end
      pages[session_id] = nil
      tracked:release()
    end,
  })
  offs[1] = tracked:listen(function()
    update(entry)
  end)
  offs[2] = app:on('server', function()
    update(entry)
  end)
  update(entry)
  entry.page:show()
end

---The session whose changes the current window lists, and the file under the cursor.
---@return callboard.Tracked?
---@return callboard.ChangedFile?
function M.current()
  local buf = vim.api.nvim_get_current_buf()
  for _, entry in pairs(pages) do
    if entry.page.buf == buf then
      local path = entry.page:target()
      return entry.tracked, path and entry.tracked:file(path) or nil
    end
  end
end

---The changed file that is meant by a name: as it is on the wire, from where Neovim is, or from where the
---session works.
---@param tracked callboard.Tracked
---@param name string
---@return callboard.ChangedFile?
function M.find(tracked, name)
  local absolute = vim.fn.fnamemodify(name, ':p')
  local real = vim.uv.fs_realpath(absolute)
  for _, file in ipairs(tracked:files()) do
    if file.path == name or file.path == absolute or tracked:short(file.path) == name then
      return file
    elseif real and vim.uv.fs_realpath(file.path) == real then
      return file
    end
  end
end

---Shows how a file was changed: the one of the current buffer unless named, or the first that is new.
---@param session_id string
---@param path string?
function M.diff(session_id, path)
  local tracked = require('callboard.changes').use(session_id)
  local here = vim.api.nvim_buf_get_name(0)
  local ordinary = vim.bo.buftype == '' and here ~= ''
  tracked:when_loaded(function()
    local file
    if path or ordinary then
      local name = path or here
      file = M.find(tracked, name)
      if not file then
        local called = text.one_line(vim.fn.fnamemodify(name, ':~:.'), 60)
        notify.info(
          ('%s was not changed by this session. :Callboard changes lists what was.'):format(called)
        )
      end
    else
      file = tracked:pending()[1] or tracked:files()[1]
      if not file then
        notify.info(tracked.fault or 'no file was changed yet')
      end
    end
    if file then
      require('callboard.ui.diff').show(tracked, file.path)
    end
    tracked:release()
  end)
end

---Buffers of which it was told that their file is another.
---@type table<integer, true>
local told = {}

---Files were written by an agent: their buffers take it in, unless there is something in them that is not
---written. No other buffer is looked at.
---@param paths string[]
function M.touched(paths)
  local seen = {}
  for _, path in ipairs(paths) do
    local buf = not seen[path] and files.buffer(path) or nil
    seen[path] = true
    if buf and not files.may_reload(buf) then
      if not told[buf] and not files.in_step(buf) then
        told[buf] = true
        local name = text.one_line(vim.fn.fnamemodify(path, ':~:.'), 60)
        local why = vim.bo[buf].modified and 'its buffer has changes that are not written'
          or "'autoread' is off"
        notify.warn(
          ('%s was changed on disk; %s. :Callboard diff shows what was changed.'):format(name, why)
        )
      end
    elseif buf then
      told[buf] = nil
      vim.schedule(function()
        if vim.api.nvim_buf_is_loaded(buf) then
          files.refresh(buf)
        end
      end)
    end
  end
end

return M

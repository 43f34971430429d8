-- The list of files that a session changed: a page, with the quickfix list beside it. And what becomes of
-- buffers when an agent writes their files.
local files = require('callboard.files')
local notify = require('callboard.notify')
local rows = require('callboard.ui.changes_page')
local text = require('callboard.model.text')

local M = {}

---@class callboard.ChangesPage
---@field tracked callboard.Tracked
---@field page callboard.Page
---@field quickfix integer? id of the list; 0 when the user has dropped it
---@field placed boolean? the cursor was put on the first file

---@type table<string, callboard.ChangesPage>
local pages = {}

---Fills the quickfix list: a new one at first, later the same.
---@param tracked callboard.Tracked
---@param id integer? of the list
---@return integer? id nil when that list is gone
local function quickfix(tracked, id)
  local what = {
    title = 'Callboard: changes of ' .. rows.title(tracked),
    items = rows.quickfix(tracked),
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
  entry.page:draw(rows.lines(entry.tracked))
  if not entry.placed and #entry.tracked:files() > 0 then
    entry.placed = true
    for _, win in ipairs(vim.fn.win_findbuf(entry.page.buf)) do
      vim.api.nvim_win_set_cursor(win, { 2, 0 }) -- the first file: what keys act on
    end
  end
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
        require('callboard.ui.verdicts').ask_reject(tracked)
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
  vim.api.nvim_create_autocmd('BufHidden', {
    buffer = entry.page.buf,
    once = true,
    callback = function()
      vim.schedule(function()
        entry.page:close() -- nobody sees it: it follows nothing any more
      end)
    end,
  })
  offs[1] = tracked:listen(function()
    update(entry)
  end)
  offs[2] = app:on('server', function()
    update(entry)
  end)
  entry.page:show('botright 12split')
  update(entry)
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

-- Reviewing what a session changed: what a file was before beside what it is now, accepted or put back by keys
-- and commands, and by nothing else.
local notify = require('callboard.notify')
local verdicts = require('callboard.ui.verdicts')
local view_of = require('callboard.ui.diff_view')

local M = {}

---The file that is shown.
---@class callboard.Shown
---@field view callboard.DiffView
---@field tracked callboard.Tracked
---@field path string
---@field file callboard.ChangedFile as it was when it was shown: what a key settles is what was seen
---@field off fun()

---@type callboard.Shown?
local shown

---The file to go to from another.
---@param tracked callboard.Tracked
---@param path string
---@param step 1|-1
---@return callboard.ChangedFile?
local function neighbour(tracked, path, step)
  local list = tracked:pending()
  if step < 0 then
    for i = #list, 1, -1 do
      if list[i].path < path then
        return list[i]
      end
    end
    return list[#list]
  end
  for _, file in ipairs(list) do
    if file.path > path then
      return file
    end
  end
  return list[1]
end

---@param step 1|-1
local function go(step)
  local from = assert(shown)
  local file = neighbour(from.tracked, from.path, step)
  if not file or file.path == from.path then
    return notify.info('there is no other file that is new')
  end
  M.show(from.tracked, file.path)
end

---After a file was settled: the next, or the end.
local function proceed()
  local from = shown
  if not from or not from.view:has(vim.api.nvim_get_current_win()) then
    return -- settled from elsewhere: what is shown says so, and nobody is taken to it
  end
  local file = neighbour(from.tracked, from.path, 1)
  if file then
    return M.show(from.tracked, file.path)
  end
  local tracked = from.tracked
  from.view:close()
  if #tracked:files() > 1 then
    notify.info('that was the last file that was new')
  end
end

---@return callboard.Key[]
local function review_keys()
  local function on_shown(fn)
    return function()
      if shown then
        fn(shown)
      end
    end
  end
  return {
    {
      action = 'accept',
      lhs = 'ga',
      desc = 'Accept the change, and go to the next file',
      fn = on_shown(function(from)
        M.accept_files(from.tracked, { from.file })
      end),
    },
    {
      action = 'reject',
      lhs = 'gr',
      desc = 'Put back what the file was before, and go to the next one',
      fn = on_shown(function(from)
        M.reject_files(from.tracked, { from.file })
      end),
    },
    {
      action = 'next_file',
      lhs = ']f',
      desc = 'Next file that is new',
      fn = on_shown(function()
        go(1)
      end),
    },
    {
      action = 'previous_file',
      lhs = '[f',
      desc = 'Previous file that is new',
      fn = on_shown(function()
        go(-1)
      end),
    },
    {
      action = 'hide',
      lhs = 'q',
      desc = 'Close the diff',
      fn = on_shown(function(from)
        from.view:close()
      end),
    },
    {
      action = 'help',
      lhs = 'g?',
      desc = 'Tell what the keys do',
      fn = require('callboard.keys').help,
    },
  }
end

---It is gone, by key or by `:q`: what was not settled waits.
---@param gone callboard.Shown
local function closed(gone)
  if shown == gone then
    shown = nil
  end
  gone.off()
  local file = gone.tracked:file(gone.path)
  if file and file.state == 'new' then
    local count = #gone.tracked:pending()
    local rest = count > 1 and (' and %s'):format(verdicts.counted(count - 1)) or ''
    notify.info(
      ('%s%s still to be reviewed: :Callboard changes'):format(
        verdicts.name(gone.tracked, file),
        rest
      )
    )
  end
  gone.tracked:release()
end

---@param from callboard.Shown
---@param keep boolean? the cursor stays where it is
local function render(from, keep)
  local file = from.tracked:file(from.path)
  if not file then
    return
  end
  from.tracked:whole({ file }, function(err)
    if shown ~= from then
      return
    elseif err then
      return notify.failed('read the diff of ' .. verdicts.name(from.tracked, file), err)
    end
    from.file = file
    local ok, fault = pcall(function()
      local content = require('callboard.ui.diff_content').of(from.tracked, file)
      content.keys = review_keys()
      from.view:show(content, keep)
    end)
    if not ok then
      require('callboard.log').error('%s', fault)
      notify.error(
        ('could not show %s: %s'):format(
          verdicts.name(from.tracked, file),
          vim.split(fault, '\n')[1]
        )
      )
    end
  end)
end

---@param a callboard.ChangedFile
---@param b callboard.ChangedFile
---@return boolean
local function same(a, b)
  return a.state == b.state and #a.chain == #b.chain and a.chain[#a.chain] == b.chain[#b.chain]
end

---Shows a file as it was and as it is.
---@param tracked callboard.Tracked
---@param path string as on the wire
function M.show(tracked, path)
  require('callboard.ui.highlights').setup()
  if shown and shown.tracked == tracked and shown.view:open() then
    shown.path = path
    vim.api.nvim_set_current_win(shown.view:window('right'))
    return render(shown)
  end
  if shown then
    shown.view:close()
  end
  local view = view_of.new(require('callboard.config').get().diff.layout)
  tracked = require('callboard.changes').use(tracked.id)
  local from = { view = view, tracked = tracked, path = path }
  view.closed = function()
    closed(from)
  end
  from.off = tracked:listen(function()
    local file = shown == from and tracked:file(from.path)
    if file and from.file and view:open() and not same(file, from.file) then
      vim.schedule(function()
        local seen = shown == from and from.tracked:file(from.path)
        if seen and view:open() and not same(seen, from.file) then
          render(from, true)
        end
      end)
    end
  end)
  shown = from
  render(from)
end

---Accepts files, and goes on to the next one where one of them was shown.
---@param tracked callboard.Tracked
---@param list callboard.ChangedFile[]
function M.accept_files(tracked, list)
  verdicts.accept(tracked, list, proceed)
end

---Puts back what files were before, and goes on.
---@param tracked callboard.Tracked
---@param list callboard.ChangedFile[]
function M.reject_files(tracked, list)
  verdicts.reject(tracked, list, proceed)
end

---What a command is about: what is shown, the file under the cursor of the list, or the file of this buffer.
---@param all boolean
---@param act fun(tracked: callboard.Tracked, list: callboard.ChangedFile[])
local function on_current(all, act)
  local win = vim.api.nvim_get_current_win()
  if shown and shown.view:has(win) then
    return act(shown.tracked, all and shown.tracked:pending() or { shown.file })
  end
  local changes = require('callboard.ui.changes')
  local listed, file = changes.current()
  if listed then
    return act(listed, all and listed:pending() or { file })
  end
  local id = require('callboard.ui.chat').current()
  if not id then
    return notify.warn('no session is open. :Callboard sessions shows those there are.')
  end
  local name = vim.api.nvim_buf_get_name(0)
  local tracked = require('callboard.changes').use(id)
  tracked:when_loaded(function()
    if all then
      act(tracked, tracked:pending())
    else
      file = name ~= '' and changes.find(tracked, name) or nil
      if file then
        act(tracked, { file })
      else
        notify.info('this file was not changed by the session. :Callboard changes lists what was.')
      end
    end
    tracked:release()
  end)
end

---Accepts the change of the file that is shown, or all that is new. On a change that waits for an answer:
---allows it once.
---@param all boolean
function M.accept(all)
  if require('callboard.ui.diff_approval').answer_current(1) then
    return
  end
  on_current(all, M.accept_files)
end

---Puts back what the file that is shown was before, or all that is new. On a change that waits for an answer:
---denies it.
---@param all boolean
function M.reject(all)
  if require('callboard.ui.diff_approval').answer_current(4) then
    return
  end
  on_current(all, M.reject_files)
end

---Shows what a change that waits for an answer would do.
---@param approval callboard.Approval
function M.show_approval(approval)
  require('callboard.ui.diff_approval').show(approval)
end

---Opens the diff of a change that begins to wait while the chat of its session is in view.
---@param app callboard.App
function M.watch(app)
  require('callboard.ui.diff_unasked').watch(app)
end

return M

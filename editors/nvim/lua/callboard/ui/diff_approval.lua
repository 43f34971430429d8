-- A change that waits for an answer: the file as it is beside what it would be.
local Approvals = require('callboard.model.approvals')
local Patch = require('callboard.model.patch')
local files = require('callboard.files')
local notify = require('callboard.notify')
local text = require('callboard.model.text')
local view_of = require('callboard.ui.diff_view')

local M = {}

---@class callboard.ShownApproval
---@field view callboard.DiffView
---@field approval callboard.Approval
---@field index integer which of its changes
---@field offs fun()[]
---@field over string? what came of it
---@field answering boolean? the answer is on its way

---@type callboard.ShownApproval?
local shown

---@return callboard.App
local function app()
  return require('callboard.app').get()
end

---@param approval callboard.Approval
---@return callboard.FileChange[]
local function changes_of(approval)
  return approval.subject and approval.subject.type == 'fileChange' and approval.subject.changes
    or {}
end

---@param path string
---@return string
local function short(path)
  return text.bar(vim.fn.fnamemodify(path, ':~:.'), 80)
end

---What the file would be.
---@param change callboard.FileChange
---@param now callboard.FileNow
---@return callboard.Text? proposed nil: it would be gone
---@return string? why it cannot be told
local function proposed(change, now)
  if now.fault then
    return nil, now.fault
  elseif change.truncated then
    return nil, 'the change is too large, its diff was cut'
  elseif change.operation == 'delete' then
    return nil, nil
  elseif change.operation == 'create' and now.text then
    return nil, 'the file is there already'
  end
  local patch, why = Patch.parse(change.diff)
  if not patch then
    return nil, why
  end
  local result = Patch.apply(now.text or {}, patch)
  if #result.failed > 0 then
    local unsaved = now.buf and vim.bo[now.buf].modified
    local name = Patch.name(result.failed[1])
    return nil,
      ('%s does not fit %s'):format(
        name,
        unsaved and 'your unsaved buffer' or 'the file as it is now'
      )
  end
  return result.text
end

local WORDS = {
  create = { 'now: no such file', 'would be made' },
  delete = { 'now', 'would be deleted' },
  move = { 'now', 'would be moved here' },
}

---@param from callboard.ShownApproval
---@return string
local function right_bar(from)
  local list = changes_of(from.approval)
  local change = list[from.index]
  local word = (WORDS[change.operation] or { '', 'would be' })[2]
  local diff = require('callboard.ui.diff')
  local state
  if from.over then
    state = ('%%#CallboardDim#%s%%*  %s'):format(
      text.bar(from.over, 60),
      diff.hint('hide', 'q', 'close') or ''
    )
  else
    state = diff.joined({
      diff.hint('accept', 'ga', 'allow once'),
      diff.hint('reject', 'gr', 'deny'),
      diff.hint('hide', 'q', 'close'),
    }, 3)
  end
  local counts = ('%%#CallboardAdded#+%d%%* %%#CallboardRemoved#−%d%%*'):format(
    change.added,
    change.removed
  )
  local which = #list > 1 and (' %d/%d'):format(from.index, #list) or ''
  return (' %%#CallboardApproval#%s%%* %s%s  %%=%s %%<'):format(word, counts, which, state)
end

---@param from callboard.ShownApproval
---@return callboard.DiffContent
local function content_of(from)
  local change = changes_of(from.approval)[from.index]
  local now = files.now(change.oldPath or change.path)
  if now.buf then
    files.refresh(now.buf)
    now.text = files.of_buffer(now.buf)
  end
  local after, why = proposed(change, now)
  if why then
    local lines = text.lines((change.diff:gsub('\n$', '')))
    local buf = view_of.scratch('callboard://diff' .. change.path, lines)
    vim.bo[buf].filetype = 'diff'
    local bar = (' %%#CallboardApproval#Only the diff: %s%%*  %s '):format(
      text.bar(why, 100),
      short(change.path)
    )
    return {
      right = { buf = buf, ours = true, bar = bar .. right_bar(from):gsub('%%<', '') },
      keys = {},
    }
  end
  local word = (WORDS[change.operation] or { 'now' })[1]
  local left = { bar = (' %%#CallboardHeading#%s%%*  %%<%s'):format(word, short(change.path)) }
  if now.text == nil then
    left.buf, left.ours = view_of.scratch('callboard://now' .. change.path, {}), true
  else
    left.buf = now.buf or vim.fn.bufadd(change.oldPath or change.path)
    vim.bo[left.buf].buflisted = true
  end
  local right =
    view_of.scratch('callboard://proposed' .. change.path, files.shown(after or {}), change.path)
  return { left = left, right = { buf = right, ours = true, bar = right_bar(from) }, keys = {} }
end

---@param from callboard.ShownApproval
---@param number integer
---@param note string?
local function answer(from, number, note)
  if from.over or from.answering then
    return
  end
  local option = Approvals.option(from.approval, number)
  if not option then
    return notify.warn('that answer is not offered here')
  end
  from.answering = true
  app():answer(from.approval, option, note, function(err)
    from.answering = false
    if not err and shown == from then
      from.over = option.name
      from.view:close()
    end
  end)
end

---@param from callboard.ShownApproval
local function deny_with_note(from)
  local title = 'What should it do instead? (Enter alone: just deny)'
  require('callboard.ui.ask').line({ title = title }, function(said)
    if said == nil then
      return notify.info('it was not answered; it still waits')
    end
    said = vim.trim(said)
    answer(from, 5, said ~= '' and said or nil)
  end)
end

---@type fun(from: callboard.ShownApproval, keep: boolean?)
local render

---@param from callboard.ShownApproval
---@return callboard.Key[]
local function keys_of(from)
  local function number(n)
    return function()
      answer(from, n)
    end
  end
  local function go(step)
    return function()
      local count = #changes_of(from.approval)
      from.index = (from.index - 1 + step) % count + 1
      render(from)
    end
  end
  local list = {}
  if not from.over then
    list = {
      { action = 'accept', lhs = { 'ga', '1' }, desc = 'Allow it once', fn = number(1) },
      { action = 'allow_session', lhs = '2', desc = 'Allow it for this session', fn = number(2) },
      { action = 'allow_always', lhs = '3', desc = 'Allow it always', fn = number(3) },
      { action = 'reject', lhs = { 'gr', '4' }, desc = 'Deny it', fn = number(4) },
      {
        action = 'reject_note',
        lhs = '5',
        desc = 'Deny it, and say why',
        fn = function()
          deny_with_note(from)
        end,
      },
    }
    list = vim.tbl_filter(function(key)
      local n = ({ allow_session = 2, allow_always = 3 })[key.action]
      return not n or Approvals.option(from.approval, n) ~= nil
    end, list)
  end
  vim.list_extend(list, {
    { action = 'next_file', lhs = ']f', desc = 'Next file', fn = go(1) },
    { action = 'previous_file', lhs = '[f', desc = 'Previous file', fn = go(-1) },
    {
      action = 'hide',
      lhs = 'q',
      desc = 'Close the diff',
      fn = function()
        from.view:close()
      end,
    },
    {
      action = 'help',
      lhs = 'g?',
      desc = 'Tell what the keys do',
      fn = require('callboard.keys').help,
    },
  })
  return list
end

render = function(from, keep)
  local ok, fault = pcall(function()
    local content = content_of(from)
    content.keys = keys_of(from)
    from.view:show(content, keep)
  end)
  if not ok then
    require('callboard.log').error('%s', fault)
    notify.error(('could not show the change: %s'):format(vim.split(fault, '\n')[1]))
  end
end

---It was answered, by somebody else.
---@param from callboard.ShownApproval
---@param what string? what came of it, as soon as that is known
local function over(from, what)
  if from.answering or (from.over and not what) then
    return
  end
  from.over = what or 'answered'
  if from.view:open() then
    from.view:set_keys(keys_of(from))
    from.view:say('right', right_bar(from))
  end
end

---@param from callboard.ShownApproval
local function follow(from)
  local id = from.approval.approvalId
  local autocmd = vim.api.nvim_create_autocmd('User', {
    pattern = 'CallboardApprovalResolved',
    callback = function(event)
      local data = event.data or {}
      if data.approvalId == id then
        local by = data.by and (data.by.name or data.by.kind)
        over(from, ('%s%s'):format(data.outcome or 'answered', by and ' by ' .. by or ''))
      end
    end,
  })
  from.offs = {
    function()
      pcall(vim.api.nvim_del_autocmd, autocmd)
    end,
    app():on('approvals', function()
      if not Approvals.get(app().approvals, id) then
        over(from)
      end
    end),
  }
end

---@param approval callboard.Approval
local function open(approval)
  if #changes_of(approval) == 0 then
    return notify.info(('"%s" changes no file'):format(text.one_line(approval.title, 60)))
  end
  require('callboard.ui.highlights').setup()
  if shown then
    shown.view:close()
  end
  Approvals.add(app().approvals, approval)
  local view = view_of.new(require('callboard.config').get().diff.layout)
  local from = { view = view, approval = approval, index = 1, offs = {} }
  view.closed = function()
    for _, off in ipairs(from.offs) do
      off()
    end
    if shown == from then
      shown = nil
    end
    if not from.over then
      local title = text.one_line(approval.title, 60)
      notify.info(('"%s" still waits for your answer: :Callboard next'):format(title))
    end
  end
  shown = from
  follow(from)
  render(from)
end

---Shows what it would do, as the server has it now.
---@param approval callboard.Approval
function M.show(approval)
  local id = approval.approvalId
  if shown and shown.approval.approvalId == id and shown.view:open() then
    return vim.api.nvim_set_current_win(shown.view:window('right'))
  end
  app():request('approval/get', { approvalId = id }, function(err, got)
    if err then
      return notify.failed('read what waits', err)
    elseif (got.approval.state or 'pending') ~= 'pending' then
      local title = text.one_line(approval.title, 60)
      return notify.info(('"%s" was answered already'):format(title))
    end
    open(got.approval)
  end)
end

---Whether it is in view, in the tab page that is.
---@param id string
---@return boolean
function M.shows(id)
  local win = shown and shown.approval.approvalId == id and shown.view:window('right') or nil
  return win ~= nil
    and vim.api.nvim_win_is_valid(win)
    and vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage()
end

---Answers what is shown in the current window.
---@param number integer
---@return boolean nothing is shown there
function M.answer_current(number)
  if shown and not shown.over and shown.view:has(vim.api.nvim_get_current_win()) then
    answer(shown, number)
    return true
  end
  return false
end

---Whether a person is at a place from which nobody takes them away: typing, selecting, in a command line.
---@return boolean
local function busy()
  return vim.api.nvim_get_mode().mode ~= 'n' or vim.fn.getcmdwintype() ~= ''
end

---@param approval callboard.Approval
---@return boolean
local function in_view(approval)
  local chat = require('callboard.ui.chat')
  return chat.visible(approval.sessionId) or chat.visible(approval.rootId)
end

---@param approval callboard.Approval
local function open_unasked(approval)
  local waits = Approvals.get(app().approvals, approval.approvalId)
  if not waits or shown or not in_view(approval) then
    return
  elseif not busy() then
    return M.show(approval)
  end
  vim.api.nvim_create_autocmd('ModeChanged', {
    pattern = '*:n',
    once = true,
    callback = function()
      vim.schedule(function()
        open_unasked(approval)
      end)
    end,
  })
end

---@type boolean
local watching = false

---Opens the diff of a change that begins to wait while the chat of its session is in view, if that is wished.
---@param of callboard.App
function M.watch(of)
  if watching then
    return
  end
  watching = true
  local opened = {}
  of:on('approvals', function()
    if not require('callboard.config').get().diff.auto_open then
      return
    end
    for _, approval in ipairs(of.approvals.pending) do
      if not opened[approval.approvalId] and #changes_of(approval) > 0 then
        opened[approval.approvalId] = true
        open_unasked(approval)
      end
    end
  end)
end

return M

-- A change that waits for an answer: the file as it is beside what it would be.
local Approvals = require('callboard.model.approvals')
local notify = require('callboard.notify')
local proposed = require('callboard.ui.diff_proposed')
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
      local count = #proposed.changes(from.approval)
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
    local content = proposed.of(from)
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
    from.view:say('right', proposed.bar(from))
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
  if #proposed.changes(approval) == 0 then
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

---Whether what an approval would change is shown in the tab page that is.
---@param approval callboard.Approval
---@return boolean
function M.in_view(approval)
  if not shown or shown.approval.approvalId ~= approval.approvalId then
    return false
  end
  local win = shown.view:window('right')
  return win ~= nil and vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage()
end

---What is shown in the current window, while it waits.
---@return callboard.Approval?
function M.current()
  local here = shown and not shown.over and shown.view:has(vim.api.nvim_get_current_win())
  return here and assert(shown).approval or nil
end

---Answers what is shown in the current window.
---@param number integer
---@return boolean something is shown there
function M.answer_current(number)
  if M.current() then
    answer(assert(shown), number)
    return true
  end
  return false
end

---Whether one is shown.
---@return boolean
function M.open()
  return shown ~= nil
end

return M

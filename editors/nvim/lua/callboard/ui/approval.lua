-- Approvals: told while nobody looks at them, answered with keys, gone to one after the other. Nothing here
-- waits for the person, and nothing is ever allowed by Enter.
local Approvals = require('callboard.model.approvals')
local answers = require('callboard.model.answers')
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---@type callboard.App?
local app
local arrivals = answers.arrivals()
---@type callboard.Approval[] as they were told last
local known = {}
---Those whose answer is on its way.
---@type table<string, true>
local answering = {}
---The one that `next` went to last.
---@type string?
local visited
---A first listing is there; before, nobody knows what waits.
local listed = false
---What is to be done with the first listing.
---@type fun()?
local when_listed
---Buffers with keys for approvals: what the keys are about, and how many there are.
---@type table<integer, { get: fun(): callboard.Approval?, keys: integer }>
local mapped = {}

---@return number ms
local function now()
  return vim.uv.hrtime() / 1e6
end

---@param approval callboard.Approval
---@return string
local function called(approval)
  local who = answers.who(approval)
  return text.one_line(approval.title, 60) .. (who and (' (%s)'):format(who) or '')
end

---@param approval callboard.Approval
---@return callboard.Line[]
function M.block(approval)
  return require('callboard.ui.approval_block').lines(approval)
end

---@param approval callboard.Approval
---@param choice callboard.Choice
---@param feedback string?
local function send(approval, choice, feedback)
  local id = approval.approvalId
  if answering[id] then
    return notify.info(('the answer to "%s" is on its way'):format(called(approval)))
  end
  answering[id] = true
  assert(app):answer(approval, choice.option, feedback, function()
    answering[id] = nil
  end)
end

---@param approval callboard.Approval
---@param choice callboard.Choice
local function ask_note(approval, choice)
  local title = choice.note == 'why' and 'What should it do instead? (Enter alone: just deny)'
    or 'Your answer'
  require('callboard.ui.ask').line({ title = title }, function(said)
    if said == nil then
      if Approvals.get(assert(app).approvals, approval.approvalId) then
        notify.info(('"%s" was not answered; it still waits'):format(called(approval)))
      end
      return
    end
    said = vim.trim(said)
    if said == '' and choice.note == 'answer' then
      return notify.info(('nothing was written, so "%s" was not answered'):format(called(approval)))
    end
    send(approval, choice, said ~= '' and said or nil)
  end)
end

---Answers with the choice behind a key.
---@param approval callboard.Approval
---@param number integer
---@param note string?
local function answer(approval, number, note)
  local title = called(approval)
  if answering[approval.approvalId] then
    return notify.info(('the answer to "%s" is on its way'):format(title))
  elseif not Approvals.get(assert(app).approvals, approval.approvalId) then
    return notify.info(('"%s" does not wait for an answer any more'):format(title))
  end
  local choice = answers.choice(approval, number)
  if not choice then
    local offered = vim.tbl_map(function(each)
      return ('%d %s'):format(each.number, each.label)
    end, answers.choices(approval))
    local list = table.concat(offered, '; ')
    return notify.info(('"%s" has no answer %d. It has: %s'):format(title, number, list))
  end
  local held = answers.hold(arrivals, approval, now())
  if held then
    return notify.warn(held)
  end
  if choice.note and not note then
    return ask_note(approval, choice)
  end
  send(approval, choice, note)
end

---@param get fun(): callboard.Approval?
---@param number integer
local function press(get, number)
  local approval = get()
  if approval then
    answer(approval, number)
  elseif #assert(app).approvals.pending > 0 then
    notify.info('several wait: a key answers the one that the cursor is on')
  else
    notify.info('nothing waits for an answer here')
  end
end

---How many of the digits are keys while this approval is asked about.
---@param approval callboard.Approval?
---@return integer
local function keys_of(approval)
  local highest = 5
  for _, choice in ipairs(approval and answers.choices(approval) or {}) do
    highest = math.max(highest, choice.number)
  end
  return highest
end

---@param approval callboard.Approval?
---@param number integer
---@return string action
---@return string desc
local function key_of(approval, number)
  local choice = approval and answers.choice(approval, number)
  if choice then
    return choice.action, choice.label
  end
  local fixed = answers.FIXED[number]
  if fixed then
    return fixed.action, fixed.says
  end
  return 'option' .. number, 'Answer ' .. number
end

---Makes keys of the buffer answer what `get` tells when they are pressed.
---@param buf integer
---@param get fun(): callboard.Approval?
function M.map(buf, get)
  local approval = get()
  local count = keys_of(approval)
  local entry = mapped[buf]
  if entry and entry.keys == count then
    entry.get = get
    return
  end
  M.unmap(buf)
  entry = { get = get, keys = count }
  mapped[buf] = entry
  local list = {}
  for number = 1, count do
    local action, desc = key_of(approval, number)
    list[number] = {
      action = action,
      lhs = tostring(number),
      desc = desc,
      fn = function()
        press(entry.get, number)
      end,
    }
  end
  require('callboard.keys').set(buf, 'approval', list)
end

---@param buf integer
function M.unmap(buf)
  if mapped[buf] then
    mapped[buf] = nil
    require('callboard.keys').unset(buf, 'approval')
  end
end

---Goes to an approval, in the chat of its root, or in the agent's own where that is in view.
---@param approval callboard.Approval
function M.show(approval)
  visited = approval.approvalId
  local chat = require('callboard.ui.chat')
  local id = chat.visible(approval.sessionId) and approval.sessionId or approval.rootId
  chat.open(id, { item = approval.callId, approval = approval.approvalId })
end

---Does something as soon as it is known what waits.
---@param fn fun(state: callboard.Approvals)
local function with_approvals(fn)
  local composed = app or require('callboard.app').get()
  if listed then
    return fn(composed.approvals)
  end
  when_listed = function()
    fn(composed.approvals)
  end
end

---@param state callboard.Approvals
local function go_on(state)
  local approval = Approvals.next(state, visited)
  if not approval then
    visited = nil
    return notify.info('nothing waits for an answer')
  end
  M.show(approval)
end

---Goes to the approval after the one that was gone to last, the oldest first.
function M.next()
  with_approvals(go_on)
end

---What a command without a place is about: the approval of the chat in view, or the only one there is.
---@param state callboard.Approvals
---@return callboard.Approval?
local function current(state)
  -- Only where the person is does a cursor mean something; in other windows it stands wherever text ended.
  local entry = mapped[vim.api.nvim_get_current_buf()]
  if entry then
    return entry.get()
  end
  local diff = package.loaded['callboard.ui.diff_approval']
  local seen = diff and diff.current()
  if seen then
    return seen
  end
  local chat = require('callboard.ui.chat')
  local id = chat.current()
  local here = id and chat.visible(id) and Approvals.of(state, id) or {}
  if #here > 0 then
    return #here == 1 and here[1] or nil
  end
  return #state.pending == 1 and state.pending[1] or nil
end

---@param state callboard.Approvals
local function tell_which(state)
  if #state.pending == 0 then
    return notify.info('nothing waits for an answer')
  end
  local titles = vim.tbl_map(called, vim.list_slice(state.pending, 1, 5))
  if #state.pending > 5 then
    titles[#titles + 1] = ('and %d more'):format(#state.pending - 5)
  end
  notify.warn(
    ('%d wait, and it is not clear which one is meant:\n%s\n:Callboard next goes to each'):format(
      #state.pending,
      table.concat(titles, '\n')
    )
  )
end

---Answers what waits where the person is.
---@param number integer as the keys
---@param note string? goes to the agent, with a denial
function M.answer_current(number, note)
  with_approvals(function(state)
    local approval = current(state)
    if approval then
      answer(approval, number, note)
    else
      tell_which(state)
    end
  end)
end

---@param new callboard.Approval[]
local function tell(new)
  local options = require('callboard.config').get().approvals
  if options.bell and #vim.api.nvim_list_uis() > 0 then
    vim.api.nvim_chan_send(vim.v.stderr, '\a')
  end
  if options.float then
    return
  end
  for _, approval in ipairs(new) do
    if not require('callboard.ui.approval_float').in_view(approval) then
      notify.warn(('%s waits for your answer. :Callboard next shows it'):format(called(approval)))
    end
  end
end

local function changed()
  local pending = assert(app).approvals.pending
  local new = answers.update(arrivals, known, pending, now())
  known = vim.list_slice(pending)
  for buf, entry in pairs(mapped) do
    if not vim.api.nvim_buf_is_valid(buf) then
      mapped[buf] = nil
    elseif entry.get() then
      M.map(buf, entry.get)
    end
  end
  if #new > 0 then
    tell(new)
  end
  require('callboard.ui.approval_float').update(pending)
  listed = true
  local wanted = when_listed
  when_listed = nil
  if wanted then
    wanted()
  end
end

---Follows the approvals of the store. Called once, when the app is made.
---@param composed callboard.App
function M.watch(composed)
  app, arrivals, known, answering, visited = composed, answers.arrivals(), {}, {}, nil
  listed, when_listed = false, nil
  app:on('approvals', changed)
  app:on('server', function()
    if app.server.state == 'failed' then
      when_listed = nil -- why there is no server is told by whoever finds it out
    end
  end)
end

return M

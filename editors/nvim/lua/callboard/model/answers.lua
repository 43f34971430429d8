-- How an approval can be answered: which key chooses what, who asks, and when a key is not to be taken. Pure.
local text = require('callboard.model.text')

local M = {}

---One way to answer, behind its key.
---@class callboard.Choice
---@field number integer the key, as a digit
---@field action string its name in `keymaps.approval`
---@field option callboard.ApprovalOption
---@field note 'why'|'answer'|nil what the person is asked for with it
---@field short string what it does, in a word or two
---@field label string what it does

---The answers that every permission is made of, by their keys.
---@type { action: string, kind: callboard.OptionKind, note: 'why'?, short: string, says: string }[]
M.FIXED = {
  { action = 'once', kind = 'allow_once', short = 'once', says = 'Allow once' },
  {
    action = 'session',
    kind = 'allow_session',
    short = 'this session',
    says = 'Allow for this session',
  },
  { action = 'always', kind = 'allow_always', short = 'always', says = 'Allow always' },
  { action = 'deny', kind = 'reject_once', short = 'deny', says = 'Deny' },
  {
    action = 'deny_note',
    kind = 'reject_once',
    short = 'deny and say why',
    says = 'Deny, and say why',
    note = 'why',
  },
  { action = 'deny_always', kind = 'reject_always', short = 'never', says = 'Deny always' },
}

---The highest digit that a choice can have.
M.KEYS = 9

---@param option callboard.ApprovalOption
---@param fixed { note: 'why'?, says: string }
---@return string
local function label_of(option, fixed)
  if fixed.note or option.kind == 'reject_once' then
    return fixed.says
  end
  local label = text.one_line(option.name)
  label = label ~= '' and label or fixed.says
  if option.kind == 'allow_always' or option.kind == 'reject_always' then
    label = label .. ' (writes a rule)'
  end
  return label
end

---@param approval callboard.Approval
---@return callboard.Choice[]
local function of_question(approval)
  local choices = {}
  for number, option in ipairs(approval.options) do
    if number > M.KEYS then
      break
    end
    local label = text.one_line(option.name)
    choices[number] = {
      number = number,
      action = 'option' .. number,
      option = option,
      note = option.kind:match('^allow') and approval.subject.type == 'form' and 'answer' or nil,
      short = label ~= '' and label or option.kind,
      label = label ~= '' and label or option.kind,
    }
  end
  return choices
end

---What the approval offers, by key. A permission has its answers at the same keys always, and those of a
---kind that is not known here behind them; a question has its options in their own order.
---@param approval callboard.Approval
---@return callboard.Choice[]
function M.choices(approval)
  if approval.kind == 'question' then
    return of_question(approval)
  end
  local choices, used = {}, {}
  for number, fixed in ipairs(M.FIXED) do
    for _, option in ipairs(approval.options) do
      if option.kind == fixed.kind then
        used[option] = true
        choices[#choices + 1] = {
          number = number,
          action = fixed.action,
          option = option,
          note = fixed.note,
          short = fixed.short,
          label = label_of(option, fixed),
        }
        break
      end
    end
  end
  local number = #M.FIXED
  for _, option in ipairs(approval.options) do
    if not used[option] and number < M.KEYS then
      number = number + 1
      local label = text.one_line(option.name ~= '' and option.name or option.kind)
      choices[#choices + 1] = {
        number = number,
        action = 'option' .. number,
        option = option,
        short = label,
        label = label,
      }
    end
  end
  return choices
end

---@param approval callboard.Approval
---@param number integer
---@return callboard.Choice?
function M.choice(approval, number)
  for _, choice in ipairs(M.choices(approval)) do
    if choice.number == number then
      return choice
    end
  end
end

---The agents from below the root down to the one that asks; nil when it is the root itself.
---@param approval callboard.Approval
---@return string?
function M.who(approval)
  local path = approval.path or {}
  local names = {}
  for i = 2, #path do
    names[#names + 1] = text.one_line(path[i].name, 40)
  end
  if #names > 0 then
    return table.concat(names, ' › ')
  end
  return approval.sessionId ~= approval.rootId and 'an agent' or nil
end

---For how long (ms) after something else has ended, or this came, no key answers it: it was typed for what
---stood there before, or for nothing of the kind.
M.HOLD_MS = 300

---When approvals came and ended here.
---@class callboard.Arrivals
---@field came table<string, number> ms, by approval
---@field ended { root: string, title: string, at: number }? the last one

---@return callboard.Arrivals
function M.arrivals()
  return { came = {}, ended = nil }
end

---Takes in what waits now; tells which are new, and which have ended.
---@param arrivals callboard.Arrivals
---@param before callboard.Approval[]
---@param after callboard.Approval[]
---@param now number ms
---@return callboard.Approval[] new
function M.update(arrivals, before, after, now)
  local there, new = {}, {}
  for _, approval in ipairs(after) do
    there[approval.approvalId] = true
    if not arrivals.came[approval.approvalId] then
      arrivals.came[approval.approvalId] = now
      new[#new + 1] = approval
    end
  end
  for _, approval in ipairs(before) do
    if not there[approval.approvalId] then
      arrivals.came[approval.approvalId] = nil
      arrivals.ended = { root = approval.rootId, title = approval.title, at = now }
    end
  end
  return new
end

---Why a key must not answer this approval right now; nil when it may.
---@param arrivals callboard.Arrivals
---@param approval callboard.Approval
---@param now number ms
---@return string?
function M.hold(arrivals, approval, now)
  local title = text.one_line(approval.title, 60)
  local ended = arrivals.ended
  if ended and ended.root == approval.rootId and now - ended.at < M.HOLD_MS then
    return ('"%s" has just ended, so that key was not taken for "%s". Press it again if you mean it.'):format(
      text.one_line(ended.title, 60),
      title
    )
  end
  local came = arrivals.came[approval.approvalId]
  if came and now - came < M.HOLD_MS then
    return ('"%s" has only just come, so that key was not taken for it. Press it again if you mean it.'):format(
      title
    )
  end
end

return M

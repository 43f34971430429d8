-- The line above a chat: which session it is, what its agent does, with what, and what it has used.
local text = require('callboard.model.text')

local M = {}

---@class callboard.Head What is told of a session. All of it is untrusted text.
---@field title string
---@field server callboard.rpc.State
---@field phase callboard.session.Phase|'new'
---@field profile string?
---@field mode string?
---@field model string?
---@field agent_mode string? as agents that are programs of their own call theirs
---@field agent_model string?
---@field turn { started: integer?, state: string, cancelling: boolean }? `started` in ms of `now`
---@field approvals integer that wait, of it and its agents
---@field queued integer
---@field closed boolean?
---@field archived boolean?
---@field usage callboard.Usage?

---@param head callboard.Head
---@param now integer ms
---@return string words
---@return string hl
function M.state(head, now)
  if head.server == 'failed' then
    return 'no server: :Callboard restart', 'CallboardError'
  elseif head.server == 'waiting' then
    return 'reconnecting', 'CallboardError'
  elseif head.server == 'starting' then
    return 'the server starts', 'CallboardApproval'
  elseif head.phase == 'lost' then
    return 'lost', 'CallboardError'
  elseif head.phase == 'loading' then
    return 'loading', 'CallboardDim'
  elseif head.phase == 'new' then
    return 'new', 'CallboardDim'
  end
  local turn = head.turn
  local seconds = turn and turn.started and math.max(0, math.floor((now - turn.started) / 1000))
  local since = seconds and (' ' .. text.duration(seconds * 1000):gsub('^0 ms$', '0 s')) or ''
  if turn and turn.cancelling then
    return 'stopping' .. since, 'CallboardApproval'
  elseif head.approvals > 0 then
    return ('%d to approve'):format(head.approvals), 'CallboardApproval'
  elseif turn and turn.state == 'parked' then
    return 'paused', 'CallboardApproval'
  elseif turn then
    return 'running' .. since, 'CallboardToolRunning'
  elseif head.closed then
    return 'closed', 'CallboardDim'
  elseif head.archived then
    return 'archived', 'CallboardDim'
  end
  return 'idle', 'CallboardState'
end

---@param parts string[]
---@return string
---@return integer width
local function joined(parts)
  local all = table.concat(parts, ' · ')
  return all, vim.fn.strdisplaywidth(all)
end

---With what it works: agent, modes and models.
---@param head callboard.Head
---@param short boolean? of the model only its name
---@return string
---@return integer width
local function about(head, short)
  local parts = {}
  if head.profile and head.profile ~= 'default' then
    parts[#parts + 1] = text.one_line(head.profile, 24)
  end
  parts[#parts + 1] = head.mode and text.one_line(head.mode, 12) or nil
  parts[#parts + 1] = head.agent_mode and text.one_line(head.agent_mode, 24) or nil
  if head.model then
    local model = text.one_line(head.model)
    parts[#parts + 1] = text.one_line(short and model:match('[^/]+$') or model, 40)
  end
  parts[#parts + 1] = head.agent_model and text.one_line(head.agent_model, 40) or nil
  return joined(parts)
end

---@param head callboard.Head
---@param now integer ms
---@param width integer of the window; the model and a long title make room for the rest
---@return string as the option 'winbar' takes it
function M.text(head, now, width)
  local words, hl = M.state(head, now)
  local right = {}
  if head.queued > 0 then
    right[#right + 1] = ('%d queued'):format(head.queued)
  end
  for _, part in ipairs(require('callboard.ui.render').usage(head.usage)) do
    right[#right + 1] = text.one_line(part)
  end
  local rest, taken = joined(right)
  local free = width - vim.fn.strdisplaywidth(words) - taken - (taken > 0 and 8 or 6)
  local title = text.one_line(head.title, 40)
  local middle, wanted = about(head)
  if wanted > free - vim.fn.strdisplaywidth(title) then
    middle, wanted = about(head, true)
    title = text.one_line(title, math.max(12, free - wanted))
    local room = free - vim.fn.strdisplaywidth(title)
    middle = wanted <= room and middle or room >= 4 and text.one_line(middle, room) or ''
  end
  return ('%%#CallboardHeading# %s %%* %%#%s#%s%%*  %%<%%#CallboardDim#%s%%=%s %%*'):format(
    text.bar(title),
    hl,
    text.bar(words),
    text.bar(middle),
    text.bar(rest)
  )
end

---Above the input: what goes along with what is sent, and how to send it.
---@param chips string[]
---@param remove string the key that takes the last of them away
---@param note string what is least wanted of it stands last, after a comma
---@param width integer of the window
---@return string
function M.input(chips, remove, note, width)
  local parts = {}
  for _, chip in ipairs(chips) do
    parts[#parts + 1] = '+ ' .. text.one_line(chip, 48)
  end
  local left = table.concat(parts, '  ')
  local how = #chips > 0 and remove ~= '' and ('(%s removes)'):format(remove) or ''
  local function fits()
    local taken = vim.fn.strdisplaywidth(left .. how .. note)
    return taken + (how ~= '' and 5 or left ~= '' and 3 or 2) <= width
  end
  how = fits() and how or ''
  while not fits() and note:find(', ', 1, true) do
    note = note:match('^(.*), ')
  end
  return ('%%#CallboardPath# %s%%#CallboardDim#%s%%*%%=%%<%%#CallboardDim#%s %%*'):format(
    text.bar(left),
    how ~= '' and '  ' .. text.bar(how) or '',
    text.bar(note)
  )
end

return M

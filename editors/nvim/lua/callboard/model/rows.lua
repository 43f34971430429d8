-- Sessions as rows of a list: what each says, which come first, and which are left out. Pure.
local Approvals = require('callboard.model.approvals')
local Sessions = require('callboard.model.store')
local text = require('callboard.model.text')

local M = {}

---@class callboard.Row
---@field session callboard.Session
---@field group callboard.SessionGroup
---@field here boolean it belongs to the folder in question

---@type table<callboard.SessionGroup, string>
M.HEADINGS = {
  attention = 'Needs you',
  running = 'Running',
  idle = 'Idle',
  archived = 'Archived',
}

local ORDER = { attention = 1, running = 2, idle = 3, archived = 4 }

---Marks by what a session does: of plain characters, and of a patched font.
local ICONS = {
  text = { attention = '!', running = '>', failed = 'x', idle = '-', archived = '.' },
  nerd = {
    attention = '\u{f0f3}',
    running = '\u{f04b}',
    failed = '\u{f00d}',
    idle = '\u{f10c}',
    archived = '\u{f187}',
  },
}

---What a session is doing, in a word or two.
---@param session callboard.Session
---@param group callboard.SessionGroup
---@return string
function M.state(session, group)
  if session.closed or session.status == 'closed' then
    return 'closed'
  elseif group == 'archived' then
    return 'archived'
  elseif
    group == 'attention'
    or session.status == 'waiting_approval'
    or session.status == 'parked'
  then
    return 'waits for you'
  elseif session.status == 'running' then
    return 'running'
  elseif session.lastOutcome == 'failed' or session.lastOutcome == 'timed_out' then
    return 'failed'
  elseif session.lastOutcome == 'cancelled' or session.lastOutcome == 'interrupted' then
    return 'stopped'
  elseif session.lastOutcome == nil then
    return 'new'
  end
  return 'done'
end

---@param row callboard.Row
---@param icons 'text'|'nerd'
---@return string
function M.icon(row, icons)
  local kind = row.group
  if kind == 'idle' and M.state(row.session, kind) == 'failed' then
    kind = 'failed'
  end
  return (ICONS[icons] or ICONS.text)[kind]
end

---@param at string RFC 3339, UTC
---@return integer? seconds since the epoch
function M.seconds(at)
  local year, month, day, hour, minute, second =
    tostring(at):match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)')
  if not year then
    return nil
  end
  -- Days since the epoch, after Howard Hinnant's `days_from_civil`: `os.time` would take it for local time.
  local y, m = tonumber(year), tonumber(month)
  if m <= 2 then
    y = y - 1
  end
  local era = math.floor(y / 400)
  local of_era = y - era * 400
  local of_year = math.floor((153 * (m + (m > 2 and -3 or 9)) + 2) / 5) + tonumber(day) - 1
  local days = era * 146097
    + of_era * 365
    + math.floor(of_era / 4)
    - math.floor(of_era / 100)
    + of_year
    - 719468
  return days * 86400 + tonumber(hour) * 3600 + tonumber(minute) * 60 + tonumber(second)
end

---How long ago something was, in its largest unit.
---@param at string
---@param now integer seconds since the epoch
---@return string
function M.age(at, now)
  local then_ = M.seconds(at)
  if not then_ then
    return ''
  end
  local s = math.max(0, now - then_)
  if s < 60 then
    return 'now'
  elseif s < 3600 then
    return ('%d m'):format(math.floor(s / 60))
  elseif s < 86400 then
    return ('%d h'):format(math.floor(s / 3600))
  elseif s < 86400 * 60 then
    return ('%d d'):format(math.floor(s / 86400))
  elseif s < 86400 * 365 then
    return ('%d months'):format(math.floor(s / 86400 / 30))
  end
  return ('%d y'):format(math.floor(s / 86400 / 365))
end

---Tokens and cost, as far as they are known.
---@param usage callboard.Usage?
---@return string
function M.used(usage)
  local parts = {}
  if usage and (usage.inputTokens or usage.outputTokens) then
    parts[#parts + 1] = text.count((usage.inputTokens or 0) + (usage.outputTokens or 0))
      .. ' tokens'
  end
  if usage and usage.cost then
    parts[#parts + 1] = M.cost(usage.cost, usage.currency)
  end
  return table.concat(parts, ' ')
end

---@param amount number
---@param currency string?
---@return string
function M.cost(amount, currency)
  local figure = (amount > 0 and amount < 0.01) and ('%.4f'):format(amount)
    or ('%.2f'):format(amount)
  if currency == nil or currency == 'USD' then
    return '$' .. figure
  end
  return figure .. ' ' .. text.one_line(currency, 8)
end

---@class callboard.RowsWanted
---@field cwd string the folder whose sessions come first, its links resolved
---@field all boolean those of other folders, too
---@field approvals callboard.Approvals

---Sessions in the order in which a list shows them: group by group, in each those of the folder first, and
---the pinned and newest of those. One that needs somebody is always shown. Where the folder has none, all are.
---@param sessions callboard.Session[]
---@param wanted callboard.RowsWanted
---@return callboard.Row[] shown
---@return integer hidden how many of other folders are not
function M.arrange(sessions, wanted)
  local rows, any_here, seen = {}, false, {}
  for _, session in ipairs(sessions) do
    if not session.parentId and not seen[session.sessionId] then
      seen[session.sessionId] = true
      local group = Sessions.group(session)
      if group ~= 'archived' and #Approvals.of(wanted.approvals, session.sessionId) > 0 then
        group = 'attention'
      end
      local here = session.cwd == wanted.cwd
      any_here = any_here or here
      rows[#rows + 1] = { session = session, group = group, here = here }
    end
  end
  local shown, hidden = {}, 0
  for _, row in ipairs(rows) do
    if wanted.all or row.here or row.group == 'attention' or not any_here then
      shown[#shown + 1] = row
    else
      hidden = hidden + 1
    end
  end
  table.sort(shown, function(a, b)
    local one, two = a.session, b.session
    if a.group ~= b.group then
      return ORDER[a.group] < ORDER[b.group]
    elseif a.here ~= b.here then
      return a.here
    elseif (one.pinned or false) ~= (two.pinned or false) then
      return one.pinned or false
    elseif one.updatedAt ~= two.updatedAt then
      return one.updatedAt > two.updatedAt
    end
    return one.sessionId > two.sessionId
  end)
  return shown, hidden
end

---Pads a text on its right, by cells of the screen.
---@param value string
---@param width integer
---@return string
local function pad(value, width)
  return value .. (' '):rep(math.max(0, width - vim.fn.strdisplaywidth(value)))
end

---Widest title that a row shows whole.
local TITLE_WIDTH = 48

---One line for each row, their columns below each other.
---@param rows callboard.Row[]
---@param opts { now: integer, icons: 'text'|'nerd', home: string? }
---@return string[]
function M.lines(rows, opts)
  local columns, widths = {}, { 0, 0, 0, 0, 0 }
  for i, row in ipairs(rows) do
    local session = row.session
    local folder = ''
    if not row.here then
      folder = text.one_line(session.cwd)
      if opts.home and vim.startswith(folder .. '/', opts.home .. '/') then
        folder = '~' .. folder:sub(#opts.home + 1)
      end
      if vim.fn.strchars(folder) > 30 then
        folder = '…' .. vim.fn.strcharpart(folder, vim.fn.strchars(folder) - 29)
      end
    end
    columns[i] = {
      M.icon(row, opts.icons) .. ' ' .. M.state(session, row.group),
      (session.pinned and '* ' or '') .. text.one_line(Sessions.name(session), TITLE_WIDTH),
      folder,
      M.age(session.updatedAt, opts.now),
      M.used(session.usage),
    }
    for column, value in ipairs(columns[i]) do
      widths[column] = math.max(widths[column], vim.fn.strdisplaywidth(value))
    end
  end
  return vim.tbl_map(function(values)
    local parts = {}
    for column, value in ipairs(values) do
      if widths[column] > 0 then
        parts[#parts + 1] = pad(value, widths[column])
      end
    end
    return (table.concat(parts, '  '):gsub('%s+$', ''))
  end, columns)
end

return M

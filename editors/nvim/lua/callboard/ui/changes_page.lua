-- How the changes of a session are told: as lines of a page, and as entries of the quickfix list.
local text = require('callboard.model.text')

local M = {}

local STATES = {
  new = { 'new', 'CallboardApproval' },
  settling = { 'settling', 'CallboardDim' },
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
function M.counted(count, noun)
  return ('%d %s%s'):format(count, noun, count == 1 and '' or 's')
end
---@param tracked callboard.Tracked
---@return string
function M.title(tracked)
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
function M.lines(tracked)
  local list = tracked:files()
  local added, removed, width = 0, 0, 10
  for _, file in ipairs(list) do
    added, removed = added + file.added, removed + file.removed
    width = math.max(width, vim.fn.strdisplaywidth(text.one_line(tracked:short(file.path))))
  end
  width = math.min(width, 60)
  local shown = { { { ' Changes of ' .. M.title(tracked), 'CallboardHeading' } } }
  if #list > 0 then
    vim.list_extend(shown[1], {
      { ('   %s, %d new   '):format(M.counted(#list, 'file'), #tracked:pending()), 'CallboardDim' },
      { ('+%d'):format(added), 'CallboardAdded' },
      { ' ' },
      { ('−%d'):format(removed), 'CallboardRemoved' },
    })
  end
  local fault = trouble(tracked)
  if fault then
    table.insert(shown, fault)
  end
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
function M.quickfix(tracked)
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

return M

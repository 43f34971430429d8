-- The agents of a root session as a tree of lines: who does what, since when, with which model, at what cost,
-- and what it waits for. Pure.
local spent = require('callboard.model.spent')
local text = require('callboard.model.text')
local time = require('callboard.model.time')

local M = {}

---@class callboard.AgentsView
---@field root callboard.Session
---@field agents callboard.Agent[]
---@field approvals callboard.Approval[] of the root itself
---@field fetched number ms

---@class callboard.AgentsOptions
---@field now number ms
---@field icons 'text'|'nerd'
---@field closing string? the agent that another `D` closes

---@class callboard.AgentTarget
---@field id string
---@field agent callboard.Agent? nil: the root

---@alias callboard.AgentLook 'starting'|'running'|'attention'|'completed'|'failed'|'interrupted'|'closed'

local ICONS = {
  text = {
    starting = '○',
    running = '●',
    attention = '?',
    completed = '✓',
    failed = '✗',
    interrupted = '■',
    closed = '-',
  },
  nerd = {
    starting = '󰔟',
    running = '󰐊',
    attention = '󰂚',
    completed = '󰄬',
    failed = '󰅖',
    interrupted = '󰓛',
    closed = '󰧵',
  },
}

local HIGHLIGHTS = {
  starting = 'CallboardDim',
  running = 'CallboardToolRunning',
  attention = 'CallboardApproval',
  completed = 'CallboardToolOk',
  failed = 'CallboardToolFailed',
  interrupted = 'CallboardApproval',
  closed = 'CallboardDim',
}

---How an agent stands, in words.
---@param agent callboard.Agent
---@return string word
---@return callboard.AgentLook
function M.state(agent)
  if #(agent.approvals or {}) > 0 then
    return 'waits for approval', 'attention'
  elseif agent.question then
    return 'waits for a reply', 'attention'
  elseif agent.interrupt == 'steer' then
    return 'is about to be corrected', 'running'
  elseif agent.interrupt == 'cancel' then
    return 'winds down', 'running'
  elseif agent.interrupt then
    return 'is being stopped', 'running'
  elseif agent.waitsForSlot then
    return 'waits for a free place', 'starting'
  end
  local word = text.one_line(agent.status):gsub('_', ' ')
  return word, HIGHLIGHTS[agent.status] and agent.status or 'running'
end

---How long the turn that runs has taken by now, or the last one took. Ms.
---@param view callboard.AgentsView
---@param agent callboard.Agent
---@param now number
---@return number?
function M.elapsed(view, agent, now)
  if agent.elapsedMs and agent.turnId then
    return agent.elapsedMs + math.max(0, now - view.fetched)
  end
  return agent.elapsedMs
end

---Agents by the one that started them, each list in the order in which they came. One whose parent is not
---there stands below the root.
---@param view callboard.AgentsView
---@return table<string, callboard.Agent[]>
local function children(view)
  local there, by_parent = { [view.root.sessionId] = true }, {}
  for _, agent in ipairs(view.agents) do
    there[agent.agentId] = true
  end
  for _, agent in ipairs(view.agents) do
    local known = there[agent.parentId] and agent.parentId ~= agent.agentId
    local parent = known and agent.parentId or view.root.sessionId
    by_parent[parent] = by_parent[parent] or {}
    table.insert(by_parent[parent], agent)
  end
  for _, list in pairs(by_parent) do
    table.sort(list, function(a, b)
      if a.createdAt ~= b.createdAt then
        return a.createdAt < b.createdAt
      end
      return a.agentId < b.agentId
    end)
  end
  return by_parent
end

---@param view callboard.AgentsView
---@param opts callboard.AgentsOptions
---@param agent callboard.Agent
---@return callboard.Chunk[]
local function head(view, opts, agent)
  local word, look = M.state(agent)
  local line = {
    { ICONS[opts.icons][look] .. ' ', HIGHLIGHTS[look] },
    { text.one_line(agent.name, 40), 'CallboardAgent' },
  }
  local function add(part, hl)
    line[#line + 1] = { part, hl }
  end
  if agent.agentType then
    add((' (%s)'):format(text.one_line(agent.agentType, 30)), 'CallboardDim')
  end
  add('  ' .. word, HIGHLIGHTS[look])
  local elapsed = M.elapsed(view, agent, opts.now)
  if elapsed then
    add(' ' .. text.duration(agent.turnId and math.max(1000, elapsed) or elapsed), 'CallboardDim')
  end
  local rest = {}
  rest[#rest + 1] = agent.model and text.one_line(agent.model, 40) or nil
  rest[#rest + 1] = spent.said(agent.usage)
  if #rest > 0 then
    add('  ' .. table.concat(rest, ' · '), 'CallboardDim')
  end
  return line
end

---@param view callboard.AgentsView
---@param opts callboard.AgentsOptions
---@param agent callboard.Agent
---@return callboard.Chunk[][]
local function below(view, opts, agent)
  local shown = {}
  local function add(mark, hl, said, said_hl)
    shown[#shown + 1] = { { mark, hl }, { said, said_hl } }
  end
  for _, tool in ipairs(agent.tools or {}) do
    local line = {
      { '⋯ ', 'CallboardToolRunning' },
      { text.one_line(tool.title ~= '' and tool.title or tool.name, 120), 'CallboardTool' },
    }
    local began, turn = time.ms(tool.startedAt), time.ms(agent.turnStartedAt)
    local elapsed = M.elapsed(view, agent, opts.now)
    if began and turn and elapsed and agent.turnId then
      line[#line + 1] =
        { '  ' .. text.duration(math.max(1000, elapsed - (began - turn))), 'CallboardDim' }
    end
    shown[#shown + 1] = line
  end
  for _, approval in ipairs(agent.approvals or {}) do
    add('to approve: ', 'CallboardApproval', text.one_line(approval.title, 160))
  end
  if agent.question then
    add('asks: ', 'CallboardApproval', text.one_line(agent.question.text, 1000))
  end
  if (agent.queued or 0) > 0 then
    local waits = ('%d message%s for its next step'):format(
      agent.queued,
      agent.queued == 1 and '' or 's'
    )
    add('', nil, waits, 'CallboardQueued')
  end
  if agent.interrupted then
    add(
      'stopped: ',
      'CallboardApproval',
      text.one_line(agent.interrupted.reason, 160),
      'CallboardDim'
    )
  elseif agent.report and not agent.turnId and text.one_line(agent.report.summary) ~= '' then
    local failed = agent.report.status == 'failed'
    add(
      failed and 'failed: ' or 'reported: ',
      failed and 'CallboardError' or 'CallboardDim',
      text.one_line(agent.report.summary, 160),
      'CallboardDim'
    )
  end
  if opts.closing == agent.agentId then
    local said = ('D again closes %s, and those below it, for good'):format(
      text.one_line(agent.name, 40)
    )
    add('', nil, said, 'CallboardRisk')
  end
  return shown
end

---@param view callboard.AgentsView
---@return callboard.Line
local function root_line(view)
  local root = view.root
  local status = text.one_line(root.status):gsub('_', ' ')
  local name = text.one_line(require('callboard.model.store').name(root), 60)
  local line = { { name, 'CallboardHeading' }, { '  ' .. status, 'CallboardState' } }
  local rest = {}
  rest[#rest + 1] = root.model and text.one_line(root.model, 40) or nil
  rest[#rest + 1] = spent.said(root.usage)
  if #rest > 0 then
    line[#line + 1] = { '  ' .. table.concat(rest, ' · '), 'CallboardDim' }
  end
  line.target = { id = root.sessionId }
  return line
end

---@param view callboard.AgentsView
---@return callboard.Line
local function sum_line(view)
  local running, attention = 0, #view.approvals
  for _, agent in ipairs(view.agents) do
    local _, look = M.state(agent)
    running = running + ((look == 'running' or look == 'starting') and 1 or 0)
    attention = attention + (look == 'attention' and 1 or 0)
  end
  local parts = { ('%d agent%s'):format(#view.agents, #view.agents == 1 and '' or 's') }
  parts[#parts + 1] = running > 0 and ('%d running'):format(running) or nil
  parts[#parts + 1] = attention > 0 and ('%d waiting for you'):format(attention) or nil
  local sum = spent.said(spent.total(view))
  parts[#parts + 1] = sum and ('all together %s'):format(sum) or nil
  return { { table.concat(parts, ' · '), 'CallboardDim' } }
end

---Whether a turn runs whose time goes on.
---@param view callboard.AgentsView
---@return boolean
function M.runs(view)
  for _, agent in ipairs(view.agents) do
    if agent.turnId and agent.elapsedMs then
      return true
    end
  end
  return false
end

---@param view callboard.AgentsView
---@param opts callboard.AgentsOptions
---@return callboard.Line[]
function M.lines(view, opts)
  local shown = { sum_line(view), root_line(view) }
  local by_parent, seen = children(view), {}
  for _, approval in ipairs(view.approvals) do
    local line = {
      { '│ ', 'CallboardDim' },
      { 'to approve: ', 'CallboardApproval' },
      { text.one_line(approval.title, 160) },
    }
    line.target = { id = view.root.sessionId }
    shown[#shown + 1] = line
  end
  local function add(parent, guide)
    local list = by_parent[parent] or {}
    for i, agent in ipairs(list) do
      if not seen[agent.agentId] then
        seen[agent.agentId] = true
        local last = i == #list
        local target = { id = agent.agentId, agent = agent }
        local line = { { guide .. (last and '└─ ' or '├─ '), 'CallboardDim' } }
        vim.list_extend(line, head(view, opts, agent))
        line.target = target
        shown[#shown + 1] = line
        local inner = guide .. (last and '   ' or '│  ')
        local inner_text = inner .. (by_parent[agent.agentId] and '│ ' or '  ')
        for _, chunks in ipairs(below(view, opts, agent)) do
          local detail = { { inner_text, 'CallboardDim' } }
          vim.list_extend(detail, chunks)
          detail.target = target
          shown[#shown + 1] = detail
        end
        add(agent.agentId, inner)
      end
    end
  end
  add(view.root.sessionId, '')
  for _, agent in ipairs(view.agents) do
    if not seen[agent.agentId] then -- below itself, as no tree is: it is shown all the same
      by_parent[agent.agentId .. ':alone'] = { agent }
      add(agent.agentId .. ':alone', '')
    end
  end
  if #view.agents == 0 then
    shown[#shown + 1] = {
      {
        'No agents yet: whoever works in this session starts them when there is work for several.',
        'CallboardDim',
      },
    }
  end
  return shown
end

return M

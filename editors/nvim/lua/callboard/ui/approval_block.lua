-- What is shown of an approval: all that is needed to answer it, and what each answer does.
local answers = require('callboard.model.answers')
local lines = require('callboard.ui.lines')
local text = require('callboard.model.text')

local M = {}

local INDENT = '  '

---@param into callboard.Line[]
---@param more callboard.Line[]
local function append(into, more)
  for _, line in ipairs(more) do
    into[#into + 1] = line
  end
end

---@param line string
---@return string? highlight
local function diff_highlight(line)
  local first = line:sub(1, 1)
  if first == '+' then
    return 'CallboardAdded'
  elseif first == '-' then
    return 'CallboardRemoved'
  end
  return 'CallboardDim'
end

---@param change callboard.FileChange
---@return callboard.Line
local function file_line(change)
  local path = text.one_line(change.path)
  if change.oldPath then
    path = ('%s → %s'):format(text.one_line(change.oldPath), path)
  end
  return {
    { INDENT .. text.one_line(change.operation) .. ' ', 'CallboardDim' },
    { path, 'CallboardPath' },
    { ('  +%d'):format(change.added or 0), 'CallboardAdded' },
    { (' -%d'):format(change.removed or 0), 'CallboardRemoved' },
  }
end

---@param changes callboard.FileChange[]
---@return callboard.Line[]
local function of_changes(changes)
  local shown, left = {}, require('callboard.config').get().render.fold_lines
  local hidden = 0
  for _, change in ipairs(changes) do
    shown[#shown + 1] = file_line(change)
    local body = vim.tbl_filter(function(line)
      return not (vim.startswith(line, '--- ') or vim.startswith(line, '+++ '))
    end, text.lines((change.diff or ''):gsub('\n$', '')))
    for i, line in ipairs(body) do
      if left == 0 then
        hidden = hidden + #body - i + 1
        break
      elseif line ~= '' or #body > 1 then
        shown[#shown + 1] = { { INDENT .. line, diff_highlight(line) } }
        left = left - 1
      end
    end
    if change.truncated then
      shown[#shown + 1] =
        { { INDENT .. '… the change is longer than what is told of it here', 'CallboardRisk' } }
    end
  end
  if hidden > 0 then
    local key = require('callboard.keys').lhs_of(
      'chat',
      { action = 'diff', lhs = 'gd', desc = '', fn = function() end }
    )[1]
    shown[#shown + 1] = {
      {
        INDENT .. ('… %d more line%s: '):format(hidden, hidden == 1 and '' or 's'),
        'CallboardRisk',
      },
      { key or ':Callboard diff', 'CallboardApprovalKey' },
      { ' shows all', 'CallboardRisk' },
    }
  end
  return shown
end

---@param command string
---@param cwd string?
---@return callboard.Line[]
local function of_command(command, cwd)
  local shown = {}
  for i, line in ipairs(text.lines(command)) do
    shown[i] =
      { { INDENT .. (i == 1 and '$ ' or '  '), 'CallboardDim' }, { line, 'CallboardCommand' } }
  end
  if cwd then
    shown[#shown + 1] =
      { { INDENT .. 'in ', 'CallboardDim' }, { text.one_line(cwd), 'CallboardPath' } }
  end
  return shown
end

---A value of JSON, one line each.
---@param value any
---@param depth integer
---@return string[]
local function json(value, depth)
  local pad = ('  '):rep(depth)
  if type(value) == 'table' and next(value) ~= nil and depth < 8 then
    local shown = {}
    local keys = vim.tbl_keys(value)
    table.sort(keys, function(a, b)
      return tostring(a) < tostring(b)
    end)
    if vim.islist(value) then
      keys = vim.fn.range(1, #value)
    end
    for _, key in ipairs(keys) do
      local name = vim.islist(value) and '-' or text.one_line(tostring(key)) .. ':'
      local item = value[key]
      if type(item) == 'table' and next(item) ~= nil and depth < 7 then
        shown[#shown + 1] = pad .. name
        vim.list_extend(shown, json(item, depth + 1))
      else
        local rest = json(item, 0)
        shown[#shown + 1] = pad .. name .. ' ' .. rest[1]
        for i = 2, #rest do
          shown[#shown + 1] = pad .. '  ' .. rest[i]
        end
      end
    end
    return shown
  elseif type(value) == 'string' then
    return text.lines(value)
  end
  return text.lines(vim.json.encode(value))
end

---@param value any
---@return callboard.Line[]
local function of_arguments(value)
  local shown = {}
  if type(value) == 'table' and next(value) ~= nil then
    for _, line in ipairs(json(value, 0)) do
      shown[#shown + 1] = { { INDENT .. line, 'CallboardCommand' } }
    end
  end
  return shown
end

---@param schema any
---@return callboard.Line[]
local function of_schema(schema)
  local shown = {}
  local required = type(schema) == 'table' and schema.required or {}
  local properties = type(schema) == 'table' and schema.properties or nil
  if type(properties) ~= 'table' then
    return of_arguments(schema)
  end
  local names = vim.tbl_keys(properties)
  table.sort(names)
  for _, name in ipairs(names) do
    local property = type(properties[name]) == 'table' and properties[name] or {}
    local about = { type(property.type) == 'string' and property.type or 'anything' }
    if vim.islist(required) and vim.list_contains(required, name) then
      about[#about + 1] = 'required'
    end
    if type(property.enum) == 'table' then
      about[#about + 1] = 'one of ' .. table.concat(vim.tbl_map(tostring, property.enum), ', ')
    end
    if type(property.description) == 'string' then
      about[#about + 1] = property.description
    end
    shown[#shown + 1] = {
      { INDENT .. text.one_line(name), 'CallboardCommand' },
      { '  ' .. text.one_line(table.concat(about, '; ')), 'CallboardDim' },
    }
  end
  return shown
end

---@param approval callboard.Approval
---@return callboard.Line[]
local function subject(approval)
  local about = approval.subject
  if about.type == 'command' then
    return of_command(about.command, about.cwd)
  elseif about.type == 'fileChange' then
    return of_changes(about.changes)
  elseif about.type == 'form' then
    local shown = lines.of(about.message, nil, INDENT)
    append(shown, of_schema(about.schema))
    return shown
  end
  local shown = { { { INDENT .. text.one_line(about.name or approval.tool), 'CallboardTool' } } }
  append(shown, of_arguments(about.arguments or about))
  for _, location in ipairs(about.locations or {}) do
    shown[#shown + 1] =
      { { INDENT .. 'at ', 'CallboardDim' }, { text.one_line(location.path), 'CallboardPath' } }
  end
  return shown
end

---@param choice callboard.Choice
---@return string
local function key_of(choice)
  return require('callboard.keys').lhs_of('approval', {
    action = choice.action,
    lhs = tostring(choice.number),
    desc = '',
    fn = function() end,
  })[1] or '–'
end

---@param choice callboard.Choice
---@return string
local function color_of(choice)
  return choice.option.kind:match('^reject') and 'CallboardRemoved' or 'CallboardAdded'
end

---What those answers do that last, a line each.
---@param choices callboard.Choice[]
---@return callboard.Line[]
local function lasting(choices)
  local shown, always = {}, nil
  for _, choice in ipairs(choices) do
    local kind = choice.option.kind
    if kind == 'allow_session' or kind == 'allow_always' or kind == 'reject_always' then
      local opposite = always
        and choice.option.name:gsub('^Always reject', 'Always allow', 1) == always.option.name
      if opposite then
        local line = shown[#shown]
        line[#line + 1] = { ('; %s: its opposite'):format(key_of(choice)), 'CallboardDim' }
      else
        shown[#shown + 1] =
          { { ('%s%s: %s'):format(INDENT, key_of(choice), choice.label), 'CallboardDim' } }
      end
      always = kind == 'allow_always' and choice or always
    end
  end
  return shown
end

---@param approval callboard.Approval
---@return callboard.Line[]
local function options(approval)
  local choices = answers.choices(approval)
  if #choices == 0 then
    return {
      { { INDENT .. 'It offers no answer: :Callboard interrupt ends the turn', 'CallboardRisk' } },
    }
  elseif approval.kind == 'question' then
    return vim.tbl_map(function(choice)
      return {
        { INDENT .. key_of(choice) .. ' ', 'CallboardApprovalKey' },
        { choice.label, color_of(choice) },
      }
    end, choices)
  end
  local keys = {}
  for i, choice in ipairs(choices) do
    keys[#keys + 1] =
      { (i == 1 and INDENT or '  ') .. key_of(choice) .. ' ', 'CallboardApprovalKey' }
    keys[#keys + 1] = { choice.short, color_of(choice) }
  end
  local shown = { keys }
  append(shown, lasting(choices))
  return shown
end

local OUTCOMES =
  { allowed = 'Allowed', rejected = 'Denied', cancelled = 'Cancelled', expired = 'Expired' }

---@param resolution callboard.Resolution
---@return callboard.Line
local function answered(resolution)
  local by = resolution.by and (resolution.by.name or resolution.by.kind) or nil
  local line = {
    {
      OUTCOMES[resolution.outcome] or text.one_line(resolution.outcome),
      resolution.outcome == 'allowed' and 'CallboardToolOk' or 'CallboardToolFailed',
    },
  }
  if by then
    line[#line + 1] = { ' by ' .. text.one_line(by, 60), 'CallboardDim' }
  end
  local why = resolution.feedback or resolution.reason
  if why then
    line[#line + 1] = { ': ' .. text.one_line(why), 'CallboardDim' }
  end
  return line
end

---Its title; not the command, which stands below as a whole.
---@param approval callboard.Approval
---@return string
local function title_of(approval)
  local title, about = text.one_line(approval.title), approval.subject
  if about.type == 'command' then
    local shown, cut = text.one_line(about.command), title:gsub('…$', '')
    if title ~= '' and vim.startswith(shown, cut) then
      return 'Run this command'
    end
  end
  return title
end

---All of an approval that waits; one line of one that was answered.
---@param approval callboard.Approval
---@return callboard.Line[]
function M.lines(approval)
  if approval.resolution then
    return { answered(approval.resolution) }
  end
  local risk = approval.risk or 'medium'
  local head = {
    { approval.kind == 'question' and '? ' or '! ', 'CallboardApproval' },
    { title_of(approval), 'CallboardApproval' },
  }
  if approval.kind ~= 'question' then
    head[#head + 1] = {
      ('  %s risk'):format(text.one_line(risk)),
      risk == 'high' and 'CallboardRisk' or 'CallboardDim',
    }
  end
  local shown = { head }
  local who = answers.who(approval)
  if who then
    shown[#shown + 1] = { { INDENT .. 'asked by ', 'CallboardDim' }, { who, 'CallboardAgent' } }
  end
  append(shown, subject(approval))
  if approval.reason and approval.reason ~= '' then
    append(shown, lines.of('why: ' .. approval.reason, 'CallboardDim', INDENT))
  end
  append(shown, options(approval))
  return shown
end

return M

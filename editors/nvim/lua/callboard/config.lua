-- Options: defaults, what the user has set, and what of it does not hold.
local M = {}

---@class callboard.ServerOptions
---@field cmd string[]|nil The server's command line; nil looks for it.
---@field env table<string, string> Added to the server's environment.
---@field cwd string|nil The folder it runs in; nil is Neovim's.

---@class callboard.WindowOptions
---@field position 'right'|'left'|'bottom'|'tab' Where the chat opens.
---@field width number Columns, or a part of the screen below 1.
---@field input_height integer Lines of the input.

---@class callboard.ApprovalOptions
---@field float boolean Show what waits in the corner while its chat is not in view.
---@field bell boolean Ring the terminal's bell for it.

---@class callboard.RenderOptions
---@field debounce_ms integer One write of streamed text in so many milliseconds.
---@field fold_lines integer Longer outputs of tools are cut to so many lines; all of it opens on demand.
---@field max_items integer So many messages and tool calls are in the buffer.
---@field icons 'text'|'nerd' Marks of plain characters, or of a patched font.

---@class callboard.ContextOptions
---@field selection boolean Say with a prompt which file and selection you were at.
---@field diagnostics boolean Send the diagnostics of that file along.

---@class callboard.DiffOptions
---@field layout 'tab'|'split' Where a diff opens.
---@field auto_open boolean Open the diff of a change that waits for you, while its chat is in view.

---@class callboard.KeymapOptions
---@field chat table<string, string|false>|false By action; false disables one, or all.
---@field input table<string, string|false>|false
---@field approval table<string, string|false>|false
---@field diff table<string, string|false>|false
---@field list table<string, string|false>|false Of the sessions, agents, tasks and changes.

---@class callboard.LogOptions
---@field level 'trace'|'debug'|'info'|'warn'|'error'|'off'

---@class callboard.Options
---@field server callboard.ServerOptions
---@field window callboard.WindowOptions
---@field approvals callboard.ApprovalOptions
---@field render callboard.RenderOptions
---@field context callboard.ContextOptions
---@field diff callboard.DiffOptions
---@field picker 'auto'|'select'|'telescope'|'fzf_lua'|'mini'|'snacks'
---@field keymaps callboard.KeymapOptions
---@field log callboard.LogOptions

---@type callboard.Options
local DEFAULTS = {
  server = { cmd = nil, env = {}, cwd = nil },
  window = { position = 'right', width = 0.4, input_height = 6 },
  approvals = { float = true, bell = false },
  render = { debounce_ms = 80, fold_lines = 25, max_items = 200, icons = 'text' },
  context = { selection = true, diagnostics = false },
  diff = { layout = 'tab', auto_open = false },
  picker = 'auto',
  keymaps = { chat = {}, input = {}, approval = {}, diff = {}, list = {} },
  log = { level = 'info' },
}

---What each option may be: a type, a list of values, or a test and its words.
local function at_least(low)
  return function(value)
    return type(value) == 'number' and value >= low and value == value
  end,
    'a number of ' .. low .. ' or more'
end

local function keys(value)
  return value == false or type(value) == 'table'
end

local function strings(value)
  return type(value) == 'table'
    and #value > 0
    and vim.iter(value):all(function(item)
      return type(item) == 'string'
    end)
end

local RULES = {
  ['server.cmd'] = { strings, 'a list of strings, the program first', optional = true },
  ['server.env'] = 'table',
  ['server.cwd'] = { 'string', optional = true },
  ['window.position'] = { 'right', 'left', 'bottom', 'tab' },
  ['window.width'] = { at_least(0.1) },
  ['window.input_height'] = { at_least(1) },
  ['approvals.float'] = 'boolean',
  ['approvals.bell'] = 'boolean',
  ['render.debounce_ms'] = { at_least(0) },
  ['render.fold_lines'] = { at_least(1) },
  ['render.max_items'] = { at_least(20) },
  ['render.icons'] = { 'text', 'nerd' },
  ['context.selection'] = 'boolean',
  ['context.diagnostics'] = 'boolean',
  ['diff.layout'] = { 'tab', 'split' },
  ['diff.auto_open'] = 'boolean',
  ['picker'] = { 'auto', 'select', 'telescope', 'fzf_lua', 'mini', 'snacks' },
  ['keymaps.chat'] = { keys, 'a table, or false' },
  ['keymaps.input'] = { keys, 'a table, or false' },
  ['keymaps.approval'] = { keys, 'a table, or false' },
  ['keymaps.diff'] = { keys, 'a table, or false' },
  ['keymaps.list'] = { keys, 'a table, or false' },
  ['log.level'] = { 'trace', 'debug', 'info', 'warn', 'error', 'off' },
}

---@type callboard.Options|nil
local options

---What was wrong with the options when they were set.
---@type string[]
local complaints = {}

---@param rule any
---@param value any
---@return string? what it would have to be
local function misses(rule, value)
  if type(rule) == 'string' then
    return type(value) ~= rule and 'a ' .. rule or nil
  elseif rule.optional and value == nil then
    return nil
  elseif type(rule[1]) == 'function' then
    return not rule[1](value) and rule[2] or nil
  elseif rule.optional then
    return type(value) ~= rule[1] and 'a ' .. rule[1] or nil
  elseif not vim.tbl_contains(rule, value) then
    return 'one of ' .. table.concat(rule, ', ')
  end
end

---@param path string
---@return any
local function default_of(path)
  return vim.tbl_get(DEFAULTS, unpack(vim.split(path, '.', { plain = true })))
end

---What the user has set, with the defaults for all else, and a warning for each option that is unknown or
---cannot be what it is. Such a one is left out.
---@param given table?
---@return callboard.Options
---@return string[] warnings
function M.resolve(given)
  local resolved, warnings = vim.deepcopy(DEFAULTS), {}
  if given ~= nil and type(given) ~= 'table' then
    return resolved, { 'the options must be a table, not a ' .. type(given) }
  end
  local function set(path, value)
    local rule = RULES[path]
    local wanted = misses(rule, value)
    if wanted then
      warnings[#warnings + 1] = ('option %s: %s is not %s'):format(
        path,
        vim.inspect(value, { newline = ' ', indent = '' }),
        wanted
      )
      return
    end
    local place, names = resolved, vim.split(path, '.', { plain = true })
    for i = 1, #names - 1 do
      place = place[names[i]]
    end
    place[names[#names]] = vim.deepcopy(value)
  end
  for name, value in pairs(given or {}) do
    if RULES[name] then
      set(name, value)
    elseif type(name) ~= 'string' or DEFAULTS[name] == nil then
      warnings[#warnings + 1] = ('unknown option %s'):format(tostring(name))
    elseif type(value) ~= 'table' then
      warnings[#warnings + 1] = ('option %s: must be a table'):format(name)
    else
      for key, item in pairs(value) do
        local path = ('%s.%s'):format(name, key)
        if RULES[path] then
          set(path, item)
        else
          warnings[#warnings + 1] = ('unknown option %s'):format(path)
        end
      end
    end
  end
  return resolved, warnings
end

---Options of `setup`, over those of `vim.g.callboard`.
---@param given table?
---@return callboard.Options
function M.setup(given)
  local base = vim.g.callboard
  local merged = given
  if type(base) == 'table' and type(given or {}) == 'table' then
    merged = vim.tbl_deep_extend('force', base, given or {})
  elseif given == nil then
    merged = base
  end
  local warnings
  options, warnings = M.resolve(merged)
  complaints = warnings
  if #warnings > 0 then
    table.sort(warnings)
    require('callboard.notify').warn(
      table.concat(warnings, '\n') .. '\n(see :help callboard-options)'
    )
  end
  return options
end

---The options in force; the first use takes those of `vim.g.callboard`.
---@return callboard.Options
function M.get()
  return options or M.setup()
end

---What was wrong with the options in force.
---@return string[]
function M.warnings()
  return vim.deepcopy(complaints)
end

---@return callboard.Options
function M.defaults()
  return vim.deepcopy(DEFAULTS)
end

M.default_of = default_of

return M

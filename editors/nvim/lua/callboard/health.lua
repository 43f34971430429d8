-- `:checkhealth callboard`: what Callboard needs, what of it was found, and what to do about the rest. Only here
-- may anything be waited for, with a limit.
local M = {}

---@class callboard.Finding
---@field level 'ok'|'info'|'warn'|'error'
---@field text string
---@field advice string[]?

---What the checks look at; tests give their own.
---@class callboard.health.World
---@field options callboard.Options
---@field warnings string[] about options
---@field app callboard.App? nil while no server was needed yet
---@field find fun(): callboard.rpc.Found?, string?
---@field run fun(cmd: string[], limit_ms: integer): { code: integer, stdout: string, stderr: string }
---@field cwd string
---@field env table<string, string>

local finding = require('callboard.health_server').finding

---@return callboard.Finding[]
function M.editor()
  local version = tostring(vim.version())
  local found = {}
  if vim.fn.has('nvim-0.10') == 1 then
    found[1] = finding('ok', 'Neovim ' .. version)
  else
    found[1] = finding('error', 'Neovim ' .. version, 'Callboard needs 0.10 or newer.')
  end
  if vim.g.loaded_callboard then
    found[2] = finding('ok', 'the command :Callboard is defined')
  else
    found[2] = finding(
      'error',
      'plugin/callboard.lua was not run',
      'Put the folder of the plugin on the runtimepath; where plugins are loaded late, give cmd = "Callboard".'
    )
  end
  if #vim.fn.getcompletion('callboard-options', 'help') > 0 then
    found[3] = finding('ok', ':help callboard is there')
  else
    found[3] = finding('warn', ':help callboard has no tags', ':helptags ALL makes them.')
  end
  return found
end

---@param world callboard.health.World
---@return callboard.Finding[]
function M.around(world)
  local findings = {}
  local function add(...)
    findings[#findings + 1] = finding(...)
  end
  for _, language in ipairs({ 'markdown', 'markdown_inline' }) do
    if #vim.api.nvim_get_runtime_file(('parser/%s.*'):format(language), false) > 0 then
      add('ok', ('treesitter parser for %s'):format(language))
    else
      add(
        'warn',
        ('no treesitter parser for %s: answers are shown without colours'):format(language),
        'Neovim comes with it; where a system has cut it out, `:TSInstall '
          .. language
          .. '` brings it.'
      )
    end
  end
  local picker, missing = require('callboard.pickers').which()
  if missing then
    add(
      'warn',
      ("the option picker is '%s', which is not installed; vim.ui.select is used"):format(missing),
      "Install it, or set picker = 'auto'."
    )
  else
    add(
      'ok',
      ("picker: %s (the option is '%s')"):format(
        picker == 'page' and 'a list in a window' or picker,
        world.options.picker
      )
    )
  end
  local engines = {}
  for name, module in pairs({
    ['blink.cmp'] = 'blink.cmp',
    ['nvim-cmp'] = 'cmp',
    ['mini.completion'] = 'mini.completion',
  }) do
    if package.loaded[module] then
      engines[#engines + 1] = name
    end
  end
  table.sort(engines)
  add(
    'ok',
    'completion of @files: by omnifunc'
      .. (#engines > 0 and ', beside ' .. table.concat(engines, ', ') or '')
  )
  return findings
end

---@param world callboard.health.World
---@return callboard.Finding[]
function M.settings(world)
  local findings = {}
  local function add(...)
    findings[#findings + 1] = finding(...)
  end
  for _, warning in ipairs(world.warnings) do
    add('warn', warning, 'See |callboard-options|; it is left at its default.')
  end
  if #world.warnings == 0 then
    add('ok', 'options: all are known')
  end
  local log = require('callboard.log').path()
  local folder = vim.fs.dirname(log)
  while not vim.uv.fs_stat(folder) and folder ~= vim.fs.dirname(folder) do
    folder = vim.fs.dirname(folder)
  end
  if vim.uv.fs_access(folder, 'W') then
    add('ok', ('log: %s (level %s)'):format(log, world.options.log.level))
  else
    add(
      'warn',
      ('log: %s cannot be written'):format(log),
      'Make its folder writable, or set NVIM_LOG_FILE and XDG_STATE_HOME.'
    )
  end
  -- Names and plain values only: a key must not get into a report that somebody shares.
  for _, name in ipairs({
    'CALLBOARD_STORE',
    'CALLBOARD_MODEL',
    'CALLBOARD_FEATURES',
    'OPENAI_MODEL',
    'ANTHROPIC_MODEL',
  }) do
    if world.env[name] then
      add(
        'info',
        ('%s=%s'):format(name, require('callboard.model.text').one_line(world.env[name], 200))
      )
    end
  end
  for _, name in ipairs({
    'OPENAI_API_KEY',
    'OPENAI_BASE_URL',
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_BASE_URL',
  }) do
    if world.env[name] then
      add('info', name .. ' is set')
    end
  end
  return findings
end

---@return callboard.health.World
local function world()
  local config = require('callboard.config')
  local options = config.get()
  local env = vim.tbl_extend('force', vim.fn.environ(), options.server.env)
  local cwd = vim.uv.cwd() or '.'
  return {
    options = options,
    warnings = config.warnings(),
    app = require('callboard.app').peek(),
    cwd = cwd,
    env = env,
    find = function()
      return require('callboard.rpc.locate').find(options.server, cwd)
    end,
    run = function(cmd, limit_ms)
      local ok, process =
        pcall(vim.system, cmd, { text = true, env = options.server.env, cwd = options.server.cwd })
      if not ok then
        return { code = -1, stdout = '', stderr = tostring(process):match('[^\n]*') }
      end
      local done = process:wait(limit_ms)
      local late = done.code == 124 and ('it took longer than %d s'):format(limit_ms / 1000) or ''
      return {
        code = done.code,
        stdout = done.stdout or '',
        stderr = late ~= '' and late or done.stderr or '',
      }
    end,
  }
end

---@param title string
---@param findings callboard.Finding[]
local function report(title, findings)
  vim.health.start(title)
  for _, each in ipairs(findings) do
    if each.level == 'ok' or each.level == 'info' then
      local advice = each.advice and ('\n' .. table.concat(each.advice, '\n')) or ''
      vim.health[each.level](each.text .. advice)
    else
      vim.health[each.level](each.text, each.advice)
    end
  end
end

function M.check()
  local here = world()
  report('Neovim', M.editor())
  local findings, found = require('callboard.health_server').server(here)
  report('Server', findings)
  report(
    'What the server found (callboard doctor)',
    require('callboard.health_server').doctor(here, found)
  )
  report('In the editor', M.around(here))
  report('Settings', M.settings(here))
end

return M

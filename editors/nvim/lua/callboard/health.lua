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

---How long (ms) the server may take to tell its version, and what it found.
local VERSION_MS, DOCTOR_MS = 3000, 10000

---@param level 'ok'|'info'|'warn'|'error'
---@param message string
---@param ... string advice
---@return callboard.Finding
local function finding(level, message, ...)
  local advice = vim.tbl_filter(function(line)
    return line ~= ''
  end, { ... })
  return { level = level, text = message, advice = #advice > 0 and advice or nil }
end

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

---Another command of the program that is the server; nil where it cannot be told how.
---@param cmd string[] the server's
---@param ... string
---@return string[]?
function M.other_command(cmd, ...)
  for i = #cmd, 2, -1 do
    if cmd[i] == 'serve' then
      return vim.list_extend(vim.list_slice(cmd, 1, i - 1), { ... })
    end
  end
end

---@param output string
---@return string
local function last_line(output)
  local lines = vim.split(vim.trim(output), '\n')
  return require('callboard.model.text').one_line(lines[#lines], 200)
end

---@param world callboard.health.World
---@param found callboard.rpc.Found
---@return callboard.Finding
local function version_of(world, found)
  local cmd = M.other_command(found.cmd, 'version')
  if not cmd then
    return finding('info', 'its version shows when it runs: server.cmd is not a plain `... serve`')
  end
  local done = world.run(cmd, VERSION_MS)
  local protocol = done.stdout:match('protocol (%d+)')
  if done.code ~= 0 or not protocol then
    local said = last_line(done.stderr ~= '' and done.stderr or done.stdout)
    return finding(
      'error',
      ('`%s` did not tell a version (exit code %d): %s'):format(
        table.concat(cmd, ' '),
        done.code,
        said
      ),
      found.guess
          and 'Install Callboard into that Python (pip install callboard), or name the server: see |callboard-server|.'
        or 'Run it in a terminal; install Callboard again if it is broken.'
    )
  end
  local wanted = require('callboard.protocol').PROTOCOL_VERSION
  if protocol ~= wanted:match('^(%d+)') then
    return finding(
      'error',
      ('%s; this plugin speaks protocol %s'):format(last_line(done.stdout), wanted),
      'Use the plugin that came with the server: `callboard editor path nvim` tells where it is.'
    )
  end
  return finding('ok', last_line(done.stdout))
end

---@param world callboard.health.World
---@return callboard.Finding
local function running(world)
  local server = world.app and world.app.server
  if not server or server.state == 'stopped' then
    return finding('info', 'not started yet; it is, with the first thing that needs it')
  elseif server.state == 'ready' then
    local handshake = server.handshake
    return finding(
      'ok',
      ('it runs: version %s, protocol %s, store %s'):format(
        handshake.serverInfo.version or '?',
        handshake.protocolVersion,
        handshake.storeId
      )
    )
  elseif server.state == 'starting' then
    return finding('info', 'it is being started')
  end
  local failure = server.failure or { message = 'no reason is known', lines = {} }
  local said = #failure.lines > 0
      and 'It said last: ' .. last_line(table.concat(failure.lines, '\n'))
    or ''
  local state = server.state == 'waiting' and 'it ended, and is started again soon: '
    or 'it could not be kept running: '
  return finding(
    'error',
    state .. failure.message,
    said,
    ':Callboard restart tries again; :Callboard log has all of it.'
  )
end

---@param world callboard.health.World
---@return callboard.Finding[] findings
---@return callboard.rpc.Found?
function M.server(world)
  local found, fault = world.find()
  if not found then
    return {
      finding('error', fault or 'the server was not found', 'See |callboard-server|.'),
      running(world),
    }
  end
  return {
    finding('ok', ('%s (found by %s)'):format(table.concat(found.cmd, ' '), found.how)),
    version_of(world, found),
    running(world),
  },
    found
end

local LEVELS = { ok = 'ok', warn = 'warn', fail = 'error' }

---What the server itself looks at: store, model, keys, programs.
---@param world callboard.health.World
---@param found callboard.rpc.Found?
---@return callboard.Finding[]
function M.doctor(world, found)
  local cmd = found and M.other_command(found.cmd, 'doctor', '--json')
  if not cmd then
    return {
      finding(
        'info',
        'not looked at: there is no server to ask, or server.cmd is not a plain `... serve`'
      ),
    }
  end
  local text = require('callboard.model.text')
  local done = world.run(cmd, DOCTOR_MS)
  local findings = {}
  for line in vim.gsplit(done.stdout, '\n', { trimempty = true }) do
    local ok, check = pcall(vim.json.decode, line)
    if ok and type(check) == 'table' and check.name and check.name ~= 'Editors' then
      findings[#findings + 1] = finding(
        LEVELS[check.status] or 'info',
        ('%s: %s'):format(
          text.one_line(tostring(check.name)),
          text.one_line(tostring(check.found), 300)
        ),
        text.one_line(tostring(check.advice or ''), 300)
      )
    end
  end
  if #findings == 0 then
    findings[1] = finding(
      'warn',
      ('`%s` told nothing (exit code %d): %s'):format(
        table.concat(cmd, ' '),
        done.code,
        last_line(done.stderr)
      ),
      'Run it in a terminal.'
    )
  end
  return findings
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
  local findings, found = M.server(here)
  report('Server', findings)
  report('What the server found (callboard doctor)', M.doctor(here, found))
  report('In the editor', M.around(here))
  report('Settings', M.settings(here))
end

return M

-- What `:checkhealth callboard` finds out about the server: where it is, whether it fits, what it found itself.
local M = {}

---How long (ms) the server may take to tell its version, and what it found.
local VERSION_MS, DOCTOR_MS = 3000, 10000

---@param level 'ok'|'info'|'warn'|'error'
---@param message string
---@param ... string advice
---@return callboard.Finding
function M.finding(level, message, ...)
  local advice = vim.tbl_filter(function(line)
    return line ~= ''
  end, { ... })
  return { level = level, text = message, advice = #advice > 0 and advice or nil }
end

local finding = M.finding

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

return M

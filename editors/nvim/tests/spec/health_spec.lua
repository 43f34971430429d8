local health = require('callboard.health')
local server = require('callboard.health_server')

describe('the health check', function()
  local function world(fields)
    return vim.tbl_extend('force', {
      options = require('callboard.config').defaults(),
      warnings = {},
      cwd = '/project',
      env = {},
      find = function()
        return { cmd = { '/bin/callboard', 'serve' }, how = 'PATH' }
      end,
      run = function(cmd)
        if cmd[#cmd] == 'version' then
          return { code = 0, stdout = 'callboard 9.8.7, protocol 1.0, Python 3.12.0\n', stderr = '' }
        end
        return { code = 0, stdout = '', stderr = '' }
      end,
    }, fields or {})
  end

  local function texts(findings)
    return vim.tbl_map(function(each)
      return each.level .. ' ' .. each.text
    end, findings)
  end

  local function joined(findings)
    local all = {}
    for _, each in ipairs(findings) do
      table.insert(all, each.text)
      vim.list_extend(all, each.advice or {})
    end
    return table.concat(all, '\n')
  end

  it('tells the server, how it was found, its version, and whether it runs', function()
    local ran
    local findings = server.server(world({
      run = function(cmd, limit)
        ran = { cmd, limit }
        return { code = 0, stdout = 'callboard 9.8.7, protocol 1.0, Python 3.12.0\n', stderr = '' }
      end,
    }))
    assert.same({
      'ok /bin/callboard serve (found by PATH)',
      'ok callboard 9.8.7, protocol 1.0, Python 3.12.0',
      'info not started yet; it is, with the first thing that needs it',
    }, texts(findings))
    assert.same({ { '/bin/callboard', 'version' }, 3000 }, ran)
  end)

  it('tells what was tried when there is no server', function()
    local findings, found = server.server(world({
      find = function()
        return nil, 'the server was not found: nowhere'
      end,
    }))
    assert.is_nil(found)
    assert.equal('error the server was not found: nowhere', texts(findings)[1])
    assert.truthy(findings[1].advice[1]:find('|callboard-server|', 1, true))
  end)

  it('tells a program that is none of ours', function()
    local findings = server.server(world({
      run = function()
        return { code = 1, stdout = '', stderr = 'Traceback\nNo module named callboard\n' }
      end,
      find = function()
        return {
          cmd = { '/bin/python3', '-m', 'callboard', 'serve' },
          how = 'a Python that may have it',
          guess = true,
        }
      end,
    }))
    assert.equal('error', findings[2].level)
    assert.truthy(
      joined(findings):find(
        '`/bin/python3 -m callboard version` did not tell a version (exit code 1): No module named callboard',
        1,
        true
      )
    )
    assert.truthy(joined(findings):find('pip install callboard', 1, true))
  end)

  it('tells another protocol, and where the plugin is that fits', function()
    local findings = server.server(world({
      run = function()
        return { code = 0, stdout = 'callboard 9.8.7, protocol 2.1, Python 3.12.0', stderr = '' }
      end,
    }))
    assert.equal('error', findings[2].level)
    assert.truthy(joined(findings):find('this plugin speaks protocol 1.0', 1, true))
    assert.truthy(joined(findings):find('callboard editor path nvim', 1, true))
  end)

  it('asks nothing of a command that it does not know', function()
    local custom = world({
      find = function()
        return { cmd = { 'ssh', 'host', 'run-it' }, how = 'server.cmd' }
      end,
      run = function()
        error('nothing is to be run')
      end,
    })
    local findings, found = server.server(custom)
    assert.equal('info', findings[2].level)
    assert.equal('info', server.doctor(custom, found)[1].level)
    assert.same(
      { 'env', 'A=serve', 'callboard', 'version' },
      server.other_command({ 'env', 'A=serve', 'callboard', 'serve', '--x' }, 'version')
    )
  end)

  it('tells a running server', function()
    local findings = server.server(world({
      app = {
        server = {
          state = 'ready',
          handshake = {
            serverInfo = { version = '9.8.7' },
            protocolVersion = '1.0',
            storeId = 'store_1',
          },
        },
      },
    }))
    assert.equal('ok it runs: version 9.8.7, protocol 1.0, store store_1', texts(findings)[3])
  end)

  it('tells why a server does not run, what it said last, and what to do', function()
    local findings = server.server(world({
      app = {
        server = {
          state = 'failed',
          failure = { message = 'it ended 5 times', lines = { 'a', 'store is locked' } },
        },
      },
    }))
    assert.equal('error', findings[3].level)
    local all = joined(findings)
    assert.truthy(all:find('it could not be kept running: it ended 5 times', 1, true))
    assert.truthy(all:find('It said last: store is locked', 1, true))
    assert.truthy(all:find(':Callboard restart', 1, true))
  end)

  it('passes on what the server looks at', function()
    local findings = server.doctor(
      world({
        run = function(cmd)
          assert.same({ '/bin/callboard', 'doctor', '--json' }, cmd)
          return {
            code = 1,
            stdout = table.concat({
              '{"name":"Store","status":"ok","found":"/store.db: 1 KiB","advice":""}',
              '{"name":"Model","status":"warn","found":"none","advice":"Set a key."}',
              '{"name":"SQLite","status":"fail","found":"too old\\u001b","advice":"Update it."}',
              '{"name":"Editors","status":"ok","found":"Neovim","advice":""}',
              'no JSON',
            }, '\n'),
            stderr = '',
          }
        end,
      }),
      { cmd = { '/bin/callboard', 'serve' }, how = 'PATH' }
    )
    assert.same(
      { 'ok Store: /store.db: 1 KiB', 'warn Model: none', 'error SQLite: too old<1B>' },
      texts(findings)
    )
    assert.is_nil(findings[1].advice)
    assert.same({ 'Set a key.' }, findings[2].advice)
  end)

  it('tells when the server tells nothing', function()
    local findings = server.doctor(
      world({
        run = function()
          return { code = 124, stdout = '', stderr = 'it took longer than 10 s' }
        end,
      }),
      { cmd = { '/bin/callboard', 'serve' }, how = 'PATH' }
    )
    assert.equal('warn', findings[1].level)
    assert.truthy(findings[1].text:find('it took longer than 10 s', 1, true))
  end)

  it('tells options that do not hold, and where the log is', function()
    local findings = health.settings(world({ warnings = { 'unknown option widnow' } }))
    assert.equal('warn unknown option widnow', texts(findings)[1])
    assert.truthy(joined(findings):find(require('callboard.log').path(), 1, true))
  end)

  it('never tells a key', function()
    local findings = health.settings(world({
      env = {
        OPENAI_API_KEY = 'sk-secret',
        OPENAI_BASE_URL = 'https://user:secret@host',
        CALLBOARD_MODEL = 'a/b',
      },
    }))
    local all = joined(findings)
    assert.is_nil(all:find('secret', 1, true))
    assert.truthy(all:find('OPENAI_API_KEY is set', 1, true))
    assert.truthy(all:find('CALLBOARD_MODEL=a/b', 1, true))
  end)

  it('tells the picker, and one that is missing', function()
    local config = require('callboard.config')
    config.setup({ picker = 'telescope' })
    local findings = health.around(world())
    config.setup({})
    assert.truthy(
      joined(findings):find("the option picker is 'telescope', which is not installed", 1, true)
    )
    assert.truthy(joined(health.around(world())):find('treesitter parser for markdown', 1, true))
  end)

  it('runs as :checkhealth, with a server that is not there', function()
    local notify = vim.notify
    vim.notify = function() end
    require('callboard.config').setup({
      server = { cmd = { '/nowhere/callboard', 'serve' } },
      widnow = {},
    })
    vim.cmd('checkhealth callboard')
    local said = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
    for _, part in ipairs({
      'Neovim',
      'server.cmd names /nowhere/callboard, which is not there',
      'unknown option widnow',
      'log:',
      'treesitter parser for markdown',
    }) do
      assert.truthy(said:find(part, 1, true), part .. ' is not in\n' .. said)
    end
    assert.is_nil(said:find('traceback', 1, true))
    require('callboard.config').setup({})
    vim.wait(50, function()
      return false
    end)
    vim.notify = notify
    vim.cmd('silent! %bwipeout!')
  end)
end)

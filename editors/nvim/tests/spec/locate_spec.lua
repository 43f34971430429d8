--- Where the server is looked for, and in which order.
local locate = require('callboard.rpc.locate')

---@param programs table<string, string|true> what can be run, by what it is looked for as; true where that is its path
---@param windows boolean?
---@return callboard.rpc.Finding
local function finding(programs, windows)
  return {
    executable = function(name)
      local path = programs[name]
      return path == true and name or path
    end,
    exists = function(path)
      return programs[path] ~= nil
    end,
    windows = windows or false,
  }
end

local EVERYWHERE = {
  ['/named/callboard'] = true,
  ['/home/ann/project/.venv/bin/callboard'] = true,
  ['/home/ann/project/venv/bin/callboard'] = true,
  ['/home/ann/.venv/bin/callboard'] = true,
  ['/home/ann/venv/bin/callboard'] = true,
  callboard = '/usr/bin/callboard',
  python3 = '/usr/bin/python3',
  python = '/usr/bin/python',
}

describe('the server is found', function()
  it('in the order of what is nearest', function()
    local programs = vim.deepcopy(EVERYWHERE)
    local order = {
      { '/home/ann/project/.venv/bin/callboard', 'serve' },
      { '/home/ann/project/venv/bin/callboard', 'serve' },
      { '/home/ann/.venv/bin/callboard', 'serve' },
      { '/home/ann/venv/bin/callboard', 'serve' },
      { '/usr/bin/callboard', 'serve' },
      { '/usr/bin/python3', '-m', 'callboard', 'serve' },
      { '/usr/bin/python', '-m', 'callboard', 'serve' },
    }
    for _, cmd in ipairs(order) do
      local found = assert(locate.find({}, '/home/ann/project', finding(programs)))
      assert.same(cmd, found.cmd)
      assert.equal(cmd[2] == '-m' or nil, found.guess)
      assert.is_true(#found.how > 0)
      for name, path in pairs(programs) do
        if path == cmd[1] or name == cmd[1] then
          programs[name] = nil
        end
      end
    end
  end)

  it('where the option says, with its arguments', function()
    local options = { cmd = { '/named/callboard', 'serve', '--verbose' } }
    local found = assert(locate.find(options, '/home/ann/project', finding(EVERYWHERE)))
    assert.same({ '/named/callboard', 'serve', '--verbose' }, found.cmd)
    assert.equal('server.cmd', found.how)
    assert.same({ '/named/callboard', 'serve', '--verbose' }, options.cmd)
  end)

  it('by the name that the option has, on PATH', function()
    local found = assert(locate.find({ cmd = { 'callboard', 'serve' } }, '/', finding(EVERYWHERE)))
    assert.same({ '/usr/bin/callboard', 'serve' }, found.cmd)
  end)

  it('below the home that the option names', function()
    local home = vim.fs.normalize('~')
    local programs = { [home .. '/bin/callboard'] = true }
    for _, name in ipairs({ '~/bin/callboard', '$HOME/bin/callboard' }) do
      local found = assert(locate.find({ cmd = { name, 'serve' } }, '/', finding(programs)))
      assert.equal(home .. '/bin/callboard', found.cmd[1])
    end
  end)

  it('under names that mean something to Vim', function()
    for _, name in ipairs({ '/a b/[x]*?{}/callboard', '/100%/#1/callboard', '/<cfile>/callboard' }) do
      local found = locate.find({ cmd = { name } }, '/', finding({ [name] = true }))
      assert.equal(name, found and found.cmd[1])
    end
  end)

  it('where Windows has it', function()
    local programs = {
      ['C:/work/.venv/Scripts/callboard.exe'] = true,
      ['C:/work/.venv/bin/callboard'] = true,
      callboard = 'C:\\Python\\Scripts\\callboard.exe',
    }
    local found = assert(locate.find({}, 'C:/work', finding(programs, true)))
    assert.same({ 'C:/work/.venv/Scripts/callboard.exe', 'serve' }, found.cmd)
    programs['C:/work/.venv/Scripts/callboard.exe'] = nil
    found = assert(locate.find({}, 'C:/work', finding(programs, true)))
    assert.same({ 'C:\\Python\\Scripts\\callboard.exe', 'serve' }, found.cmd)
  end)

  it('only where it can be run', function()
    local programs = finding({ python = '/usr/bin/python' })
    programs.exists = function()
      return true -- there is a file, and nothing that can be run
    end
    local found = assert(locate.find({}, '/work', programs))
    assert.same({ '/usr/bin/python', '-m', 'callboard', 'serve' }, found.cmd)
  end)

  it('on this machine: programs and files are looked up', function()
    local folder = vim.fn.tempname()
    vim.fn.mkdir(folder .. '/project/.venv/bin', 'p')
    local program = folder .. '/project/.venv/bin/callboard'
    vim.fn.writefile({ '#!/bin/sh' }, program)
    local found = locate.find({}, folder .. '/project')
    assert.not_equal(program, found and found.cmd[1])
    vim.uv.fs_chmod(program, 493)
    found = assert(locate.find({}, folder .. '/project'))
    assert.equal(program, found.cmd[1])
    vim.fn.delete(folder, 'rf')
  end)
end)

describe('a server that is not found', function()
  it('is told with what was tried, and the way out', function()
    local found, fault = locate.find({}, '/home/ann/project', finding({}))
    assert.is_nil(found)
    for _, words in ipairs({
      '/home/ann/project',
      'PATH',
      'pip install callboard',
      'server = { cmd',
    }) do
      assert.is_truthy(fault:find(words, 1, true), words)
    end
  end)

  it('is told with the option that names it, and nothing else is taken for it', function()
    local found, fault = locate.find(
      { cmd = { '/gone/callboard', 'serve' } },
      '/home/ann/project',
      finding(EVERYWHERE)
    )
    if not vim.deep_equal(found, nil) then
      error('found ' .. vim.inspect(found))
    end
    assert.is_truthy(fault:find('/gone/callboard', 1, true))
    assert.is_truthy(fault:find('Correct the option', 1, true))
  end)
end)

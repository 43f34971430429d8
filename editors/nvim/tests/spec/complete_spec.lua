-- What completes after `@`.
local complete = require('callboard.ui.complete')

local folder, buf

before_each(function()
  folder = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/complete'
  for _, path in ipairs({ 'README.md', 'lua/init.lua', 'lua/deep/init_spec.lua', 'a name.txt' }) do
    vim.fn.mkdir(vim.fs.dirname(folder .. '/' .. path), 'p')
    assert(io.open(folder .. '/' .. path, 'w')):close()
  end
  vim.cmd('tabnew')
  vim.cmd.tcd(folder)
  buf = vim.api.nvim_get_current_buf()
  complete.set_up(buf)
  complete.forget(folder)
end)

after_each(function()
  vim.cmd('silent! tabclose!')
  vim.api.nvim_buf_delete(buf, { force = true })
  vim.fn.delete(folder, 'rf')
end)

---@param line string with the cursor at its end
---@return integer
local function starts(line)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { line .. ' ' })
  vim.api.nvim_win_set_cursor(0, { 1, #line })
  return complete.omnifunc(1, '')
end

---@param base string
---@return string[]
local function words(base)
  return vim.tbl_map(function(candidate)
    return candidate.word
  end, complete.omnifunc(0, base).words)
end

describe('a name after @', function()
  it('begins at the @', function()
    assert.equal(5, starts('look @lua/in'))
    assert.equal(0, starts('@'))
    assert.equal(-3, starts('look at lua'))
    assert.equal(-3, starts('@done and'))
  end)

  it('is a file of the folder, level by level where nobody lists them', function()
    assert.same({ '@README.md', '@lua/' }, words('@'))
    assert.same({ '@lua/deep/', '@lua/init.lua' }, words('@lua/'))
    assert.same({}, words('@nothing'))
  end)

  it('is any file that git knows', function()
    vim.system({ 'git', 'init', '-q' }, { cwd = folder }):wait()
    complete.forget(folder)
    complete.list(folder)
    assert.is_true(vim.wait(5000, function()
      return #complete.list(folder).files > 0
    end, 5))
    -- The name that begins so comes first; what cannot stand in a text does not come.
    assert.same({ '@lua/init.lua', '@lua/deep/init_spec.lua' }, words('@init'))
    assert.same({}, words('@a name'))
  end)

  it('is a member of the room', function()
    local app = package.loaded['callboard.app']
    package.loaded['callboard.app'] = {
      peek = function()
        return { sessions = { by_id = { ses_1 = { cwd = folder, members = { 'alpha', 'beta' } } } } }
      end,
    }
    vim.b[buf].callboard_session = 'ses_1'
    assert.same({ '@beta' }, words('@bet'))
    assert.same({ '@alpha', '@beta', '@README.md', '@lua/' }, words('@'))
    package.loaded['callboard.app'] = app
  end)

  it('asks for nothing in an address', function()
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, { 'mail me ' })
    vim.api.nvim_win_set_cursor(0, { 1, 7 })
    assert.equal('@', complete.trigger())
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, { 'see  ' })
    vim.api.nvim_win_set_cursor(0, { 1, 4 })
    assert.matches('^@<C%-x><C%-o>', complete.trigger())
  end)
end)

describe('matching', function()
  it('has limits', function()
    local many = {}
    for i = 1, 5000 do
      many[i] = 'file' .. i
    end
    assert.equal(200, #complete.match(many, '', 200))
    assert.equal(200, #complete.match(many, 'file', 200))
    assert.same({ 'file77', 'file770', 'file771' }, complete.match(many, 'file77', 3))
  end)
end)

--- What the editor knows and an agent may see.
local context = require('callboard.context')

describe('a buffer', function()
  local folder, path, buf

  before_each(function()
    folder = vim.uv.fs_realpath(vim.fn.fnamemodify(vim.fn.tempname(), ':h'))
      .. '/callboard context [x] #1 %'
    vim.fn.mkdir(folder, 'p')
    path = folder .. '/a file{1}.txt'
    vim.fn.writefile({ 'one', 'zwö', '🙂drei' }, path)
    vim.cmd.edit({ args = { path }, magic = { file = false, bar = false } })
    buf = vim.api.nvim_get_current_buf()
  end)

  after_each(function()
    vim.cmd('%bwipeout!')
    vim.fn.delete(folder, 'rf')
  end)

  ---@param uri string
  ---@param range callboard.Range?
  ---@return table? result
  ---@return table? err
  local function read(uri, range)
    local result, err
    context.read({ uri = uri, range = range }, function(...)
      result, err = ...
    end)
    return result, err
  end

  ---@return callboard.Range
  local function range(l1, c1, l2, c2)
    return { start = { line = l1, character = c1 }, ['end'] = { line = l2, character = c2 } }
  end

  it('is read as it is, not as it is on disk', function()
    local uri = vim.uri_from_fname(path)
    assert.equal('one\nzwö\n🙂drei\n', read(uri).text)
    vim.api.nvim_buf_set_lines(buf, 1, 2, false, { 'two', 'and more' })
    local result = read(uri)
    assert.equal('one\ntwo\nand more\n🙂drei\n', result.text)
    assert.equal(vim.api.nvim_buf_get_changedtick(buf), result.version)
    assert.same({ 'one', 'zwö', '🙂drei' }, vim.fn.readfile(path))
  end)

  it('is read with the line ends that it will have', function()
    local uri = vim.uri_from_fname(path)
    vim.bo[buf].fileformat = 'dos'
    assert.equal('one\r\nzwö\r\n🙂drei\r\n', read(uri).text)
    vim.bo[buf].fileformat = 'unix'
    vim.bo[buf].endofline = false
    assert.equal('one\nzwö\n🙂drei\n', read(uri).text) -- 'fixendofline' adds it
    vim.bo[buf].fixendofline = false
    assert.equal('one\nzwö\n🙂drei', read(uri).text)
  end)

  it('that is empty is an empty text', function()
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, {})
    assert.equal('', read(vim.uri_from_fname(path)).text)
  end)

  it('is read in part', function()
    local uri = vim.uri_from_fname(path)
    for _, case in ipairs({
      { range(0, 0, 1, 0), 'one\n' },
      { range(1, 0, 3, 0), 'zwö\n🙂drei\n' },
      { range(0, 1, 0, 2), 'n' },
      { range(0, 2, 1, 2), 'e\nzw' },
      { range(1, 2, 1, 3), 'ö' },
      { range(2, 0, 2, 2), '🙂' },
      { range(2, 2, 2, 4), 'dr' },
      { range(2, 1, 2, 3), '🙂d' }, -- half a character is the whole of it
      { range(0, 0, 99, 0), 'one\nzwö\n🙂drei\n' },
      { range(0, 2, 0, 99), 'e\n' },
      { range(9, 0, 10, 0), '' },
      { range(1, 2, 1, 2), '' },
      { range(2, 0, 1, 0), '' },
    }) do
      local told = vim.inspect(case[1], { newline = '', indent = '' })
      assert.equal(case[2], read(uri, case[1]).text, told)
    end
  end)

  it('is found by another path to the same file', function()
    local link = folder .. '/link.txt'
    assert(vim.uv.fs_symlink(path, link))
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, { 'changed' })
    assert.equal('changed\n', read(vim.uri_from_fname(link)).text)
  end)

  it('that is not there is refused with a kind', function()
    for _, uri in ipairs({
      vim.uri_from_fname(folder .. '/other.txt'),
      'file:///',
      'untitled:x',
      '',
    }) do
      local result, err = read(uri)
      assert.is_nil(result)
      assert.equal(-31702, err.code)
      assert.equal('pathNotFound', err.data.kind)
    end
  end)

  it('that is no file is no context', function()
    local scratch = vim.api.nvim_create_buf(false, true)
    assert.is_nil(context.item(scratch))
    assert.is_nil(context.item(vim.api.nvim_create_buf(true, false)))
    local remote = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_name(remote, 'oil:///tmp/')
    assert.is_nil(context.item(remote))
  end)

  it('holds no invalid bytes on the wire', function()
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, { 'a\255b' })
    assert.equal('a�b\n', read(vim.uri_from_fname(path)).text)
  end)

  it('is named as a file, and as lines of it', function()
    local whole = context.item(buf)
    assert.same({ uri = vim.uri_from_fname(path) }, whole)
    local lines = context.item(buf, 2, 3)
    assert.same(range(1, 0, 3, 0), lines.range)
    assert.equal(vim.fn.fnamemodify(path, ':~:.') .. ':2-3', context.label(lines))
    assert.equal('zwö\n🙂drei\n', read(lines.uri, lines.range).text)
  end)

  it('has diagnostics that go along', function()
    assert.is_nil(context.diagnostics(buf))
    local namespace = vim.api.nvim_create_namespace('callboard-spec')
    vim.diagnostic.set(namespace, buf, {
      { lnum = 0, col = 1, message = 'is\nwrong', severity = vim.diagnostic.severity.ERROR },
      { lnum = 2, col = 0, message = 'may be better', severity = vim.diagnostic.severity.HINT },
    })
    local block = context.diagnostics(buf)
    assert.equal('resource', block.type)
    assert.equal(vim.uri_from_fname(path) .. '#diagnostics', block.uri)
    assert.equal('1:2 error is wrong\n3:1 hint may be better', block.text)
    vim.diagnostic.reset(namespace, buf)
  end)
end)

--- What files hold, in buffers and on disk, and how what they held before is put back.
local Changes = require('callboard.model.changes')
local Patch = require('callboard.model.patch')
local files = require('callboard.files')
local reverting = require('callboard.reverting')
local writing = require('callboard.writing')

local folder

---@param name string
---@param data string
---@return string path
local function file(name, data)
  local path = folder .. '/' .. name
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  local out = assert(io.open(path, 'wb'))
  out:write(data)
  out:close()
  return path
end

---@param path string
---@return string?
local function data_of(path)
  local input = io.open(path, 'rb')
  local data = input and input:read('*a')
  if input then
    input:close()
  end
  return data
end

---@param path string
---@return integer
local function load(path)
  local buf = vim.fn.bufadd(path)
  vim.fn.bufload(buf)
  return buf
end

before_each(function()
  folder = vim.uv.fs_realpath(vim.fn.tempname():match('^.*/')) .. '/ws' .. vim.uv.hrtime()
  vim.fn.mkdir(folder, 'p')
end)

after_each(function()
  vim.cmd('silent! %bwipeout!')
  vim.fn.delete(folder, 'rf')
end)

describe('the text of a file', function()
  for name, case in pairs({
    ['is what it is'] = { 'a\nb\n', 'a\nb\n' },
    ['may have no last line end'] = { 'a\nb', 'a\nb' },
    ['may be empty'] = { '', '' },
    ['may be one empty line'] = { '\n', '\n' },
    ['keeps its line ends'] = { 'a\r\nb\r\n', 'a\r\nb\r\n' },
    ['keeps line ends that are mixed'] = { 'a\r\nb\n', 'a\r\nb\n' },
    ['has no byte order mark'] = { '\239\187\191ä\n', 'ä\n' },
    ['is decoded from UTF-16'] = { '\255\254a\0\n\0', 'a\n' },
    ['is latin-1 where it is no UTF-8'] = { 'caf\233\n', 'café\n' },
  }) do
    it(name .. ', on disk and in a buffer', function()
      local path = file('f.txt', case[1])
      assert.equal(case[2], Patch.content(files.on_disk(path).text))
      assert.equal(case[2], Patch.content(files.of_buffer(load(path))))
    end)

    it(name .. ', and is written as it was spelled', function()
      local path = file('f.txt', case[1])
      local now = files.on_disk(path)
      file('f.txt', 'something else')
      assert.is_nil(writing.write(path, now.text, now.form))
      assert.equal(case[1], data_of(path))
    end)
  end

  it('is not written where no folder can be made, which is told', function()
    local below = file('f.txt', '') .. '/deeper/f.txt'
    assert.matches('E739', writing.write(below, { 'a\n' }))
  end)

  it('is none where there is no file, and no text', function()
    assert.same({}, files.on_disk(folder .. '/none'))
    assert.equal('it is not text', files.on_disk(file('bin', 'a\0b')).fault)
    assert.equal('it is not a file but a directory', files.on_disk(folder).fault)
  end)

  it('is that of the buffer where one is loaded, by whatever name', function()
    local path = file('f.txt', 'a\n')
    vim.uv.fs_symlink(path, folder .. '/link')
    local buf = load(folder .. '/link')
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, { 'unsaved' })
    local now = files.now(path)
    assert.same({ buf, 'unsaved\n' }, { now.buf, Patch.content(now.text) })
  end)

  it('keeps the mode of a file that is written', function()
    local path = file('run.sh', 'a\n')
    vim.uv.fs_chmod(path, 493)
    writing.write(path, { 'b\n' })
    assert.equal(493, vim.uv.fs_stat(path).mode % 512)
    assert.same({ 'run.sh' }, vim.fn.readdir(folder))
  end)
end)

describe('a text that is put into a buffer', function()
  for name, case in pairs({
    ['in the middle'] = { 'a\nb\nc\n', 'a\nB\nB2\nc\n' },
    ['at the beginning'] = { 'a\nb\n', 'x\ny\na\nb\n' },
    ['at the end'] = { 'a\nb\n', 'a\n' },
    ['all of it'] = { 'a\nb\n', 'c\n' },
    ['an empty one'] = { 'a\n', '' },
    ['into an empty one'] = { '', 'a\nb\n' },
    ['without a last line end'] = { 'a\n', 'a\nb' },
    ['with a last line end'] = { 'a\nb', 'a\nb\n' },
    ['with line ends of its own'] = { 'a\r\nb\r\n', 'a\r\nc\r\n' },
    ['with mixed line ends'] = { 'a\r\nb\r\n', 'a\r\nc\n' },
  }) do
    it('is that text, written too, and can be undone: ' .. name, function()
      local path = file('f.txt', case[1])
      local buf = load(path)
      vim.api.nvim_set_current_buf(buf)
      writing.put(buf, Patch.text(case[2]))
      assert.equal(case[2], Patch.content(files.of_buffer(buf)))
      assert.is_nil(writing.save(buf))
      assert.equal(case[2], data_of(path))
      local lines = vim.split((case[1]:gsub('\r', ''):gsub('\n$', '')), '\n')
      vim.cmd('silent undo')
      local now = vim.tbl_map(function(line)
        return (line:gsub('\r$', ''))
      end, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
      assert.same(lines, now)
    end)
  end

  it('keeps the line ends of an old Mac', function()
    local path = file('f.txt', 'a\rb\r')
    vim.o.fileformats = 'unix,dos,mac'
    local buf = load(path)
    assert.equal('mac', vim.bo[buf].fileformat)
    assert.equal('a\rb\r', Patch.content(files.of_buffer(buf)))
    writing.put(buf, Patch.text('a\rc\rd\r'))
    assert.same({ 'a', 'c', 'd' }, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
    assert.is_nil(writing.save(buf))
    assert.equal('a\rc\rd\r', data_of(path))
  end)

  it('moves no marks of lines that stay', function()
    local buf = load(file('f.txt', 'a\nb\nc\nd\n'))
    local space = vim.api.nvim_create_namespace('spec')
    vim.api.nvim_buf_set_extmark(buf, space, 3, 0, {})
    writing.put(buf, Patch.text('a\nb2\nb3\nc\nd\n'))
    assert.equal(4, vim.api.nvim_buf_get_extmarks(buf, space, 0, -1, {})[1][2])
  end)

  it('is written without what formats on the way, and others hear of it', function()
    local buf = load(file('f.txt', 'a\n'))
    local heard = {}
    local group = vim.api.nvim_create_augroup('spec', {})
    for _, event in ipairs({ 'BufWritePre', 'BufWritePost' }) do
      vim.api.nvim_create_autocmd(event, {
        group = group,
        buffer = buf,
        callback = function()
          heard[#heard + 1] = event
        end,
      })
    end
    writing.put(buf, { 'b\n' })
    assert.is_nil(writing.save(buf))
    vim.api.nvim_del_augroup_by_id(group)
    assert.same({ 'BufWritePost' }, heard)
    assert.equal('', vim.o.eventignore)
  end)
end)

describe('a path', function()
  it('is inside, or leads out', function()
    local outside = folder .. '-outside'
    vim.fn.mkdir(outside, 'p')
    file('sub/in.txt', '')
    vim.uv.fs_symlink(outside, folder .. '/out')
    vim.uv.fs_symlink(outside .. '/gone', folder .. '/dangling')
    vim.uv.fs_symlink(folder .. '/sub', folder .. '/within')
    local function inside(name)
      return files.inside(folder .. '/' .. name, { folder })
    end
    assert.equal(folder .. '/sub/in.txt', inside('sub/in.txt'))
    assert.equal(folder .. '/sub/in.txt', inside('within/in.txt'))
    assert.equal(folder .. '/new/deep/file', inside('new/deep/file'))
    assert.equal(folder .. '/$HOME.txt', inside('$HOME.txt'))
    assert.is_nil(inside(('d/'):rep(3000)))
    assert.is_nil(inside('out/file'))
    assert.is_nil(inside('out/new/file'))
    assert.is_nil(inside('dangling'))
    assert.is_nil(inside('../other'))
    assert.is_nil(inside('sub/../../other'))
    assert.is_nil(files.inside(folder .. '-outside/x', { folder }))
    assert.is_nil(files.inside(folder, { folder }))
    assert.is_nil(files.inside('relative', { folder }))
    assert.is_nil(files.inside(folder .. '/sub/in.txt', {}))
    vim.fn.delete(outside, 'rf')
  end)
end)

describe('what is put back', function()
  ---A file that a session changed from one text to another.
  ---@param name string
  ---@param before string?
  ---@param after string?
  ---@return callboard.ChangedFile
  local function changed(name, before, after)
    local path = folder .. '/' .. name
    local operation = not before and 'create' or not after and 'delete' or 'modify'
    local changes = Changes.new()
    Changes.add(changes, {
      type = 'tool_result',
      sessionId = 's',
      seq = 1,
      pos = 1,
      data = {
        callId = 'c',
        changes = {
          {
            path = path,
            operation = operation,
            diff = vim.diff(before or '', after or '', { ctxlen = 3 }),
            added = 1,
            removed = 1,
          },
        },
      },
    })
    if after then
      file(name, after)
    end
    return Changes.files(changes)[1]
  end

  local tracked = {
    folders_of = function()
      return { folder }
    end,
  }

  ---@param each callboard.ChangedFile
  ---@return string? fault
  ---@return string? note
  local function put_back(each)
    return reverting.put_back(tracked, each)
  end

  it('is written where no buffer holds the file, and loads none', function()
    local each = changed('f.txt', 'a\nb\n', 'a\nc\n')
    assert.same({}, { put_back(each) })
    assert.equal('a\nb\n', data_of(each.path))
    assert.is_nil(files.buffer(each.path))
  end)

  it('keeps how the file is spelled', function()
    local each = changed('f.txt', 'ä\r\nb\r\n', 'ö\r\nb\r\n')
    file('f.txt', '\239\187\191ö\r\nb\r\n')
    assert.same({}, { put_back(each) })
    assert.equal('\239\187\191ä\r\nb\r\n', data_of(each.path))
  end)

  it('goes into a buffer, and is written, where nothing else was unwritten', function()
    local each = changed('f.txt', 'a\nb\n', 'a\nc\n')
    local buf = load(each.path)
    assert.same({}, { put_back(each) })
    assert.same({ 'a', 'b' }, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
    assert.is_false(vim.bo[buf].modified)
    assert.equal('a\nb\n', data_of(each.path))
  end)

  it('goes into a buffer, and is not written, where something else was unwritten', function()
    local each = changed('f.txt', 'a\nb\n', 'a\nc\n')
    local buf = load(each.path)
    vim.api.nvim_buf_set_lines(buf, 2, 2, false, { '', '', '', 'mine' })
    local fault, note = put_back(each)
    assert.is_nil(fault)
    assert.truthy(note:find('not written'))
    assert.same({ 'a', 'b', '', '', '', 'mine' }, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
    assert.equal('a\nc\n', data_of(each.path))
  end)

  it('is not written over a file that another program wrote meanwhile', function()
    local each = changed('f.txt', 'a\nb\n', 'a\nc\n')
    local buf = load(each.path)
    vim.bo[buf].autoread = false
    file('f.txt', 'a\nc\nmore\n')
    local fault, note = put_back(each)
    assert.is_nil(fault)
    assert.truthy(note:find('not written'))
    assert.equal('a\nc\nmore\n', data_of(each.path))
  end)

  it('is refused where the buffer may not be changed', function()
    local each = changed('f.txt', 'a\nb\n', 'a\nc\n')
    vim.bo[load(each.path)].modifiable = false
    local fault = put_back(each)
    assert.truthy(fault:find('modifiable'))
    assert.equal('a\nc\n', data_of(each.path))
  end)

  it('stays unwritten in a buffer that is read-only', function()
    local each = changed('f.txt', 'a\nb\n', 'a\nc\n')
    vim.bo[load(each.path)].readonly = true
    local fault, note = put_back(each)
    assert.is_nil(fault)
    assert.truthy(note:find('read%-only'))
    assert.equal('a\nc\n', data_of(each.path))
  end)

  it('is no file, for one that was made', function()
    local each = changed('f.txt', nil, 'a\n')
    assert.same({}, { put_back(each) })
    assert.is_nil(data_of(each.path))
    assert.same({}, { put_back(each) })
  end)

  it('leaves a file that was made and changed since', function()
    local each = changed('f.txt', nil, 'a\n')
    file('f.txt', 'a\nb\n')
    assert.truthy(put_back(each):find('so it stays'))
    assert.equal('a\nb\n', data_of(each.path))
  end)

  it('leaves a file that was made and is changed in a buffer', function()
    local each = changed('f.txt', nil, 'a\n')
    vim.api.nvim_buf_set_lines(load(each.path), 1, 1, false, { 'mine' })
    assert.truthy(put_back(each):find('so it stays'))
    assert.equal('a\n', data_of(each.path))
  end)

  it('is the file again, for one that was deleted, with its folders', function()
    local each = changed('sub/deep/f.txt', 'a\nb', nil)
    assert.same({}, { put_back(each) })
    assert.equal('a\nb', data_of(each.path))
  end)

  it('is not written over a file that is there again', function()
    local each = changed('f.txt', 'a\n', nil)
    file('f.txt', 'other\n')
    assert.truthy(put_back(each):find('there again'))
    assert.equal('other\n', data_of(each.path))
  end)

  it('is the old name, for one that was moved', function()
    local each = changed('new.txt', 'a\n', 'b\n')
    each.old_path = folder .. '/old.txt'
    assert.same({}, { put_back(each) })
    assert.same({ 'old.txt' }, vim.fn.readdir(folder))
    assert.equal('a\n', data_of(each.old_path))
  end)

  it('never leaves the folders of the session', function()
    local each = changed('f.txt', 'a\n', 'b\n')
    local outside = {
      folders_of = function()
        return { folder .. '/other' }
      end,
    }
    assert.truthy(reverting.put_back(outside, each):find('not in a folder'))
    assert.equal('b\n', data_of(each.path))
  end)

  it('is nothing where it was put back already', function()
    local each = changed('f.txt', 'a\n', 'b\n')
    each.state = 'rejected'
    assert.truthy(put_back(each):find('already'))
  end)

  it('is nothing where nothing of the change is left, and says so', function()
    local each = changed('f.txt', 'a\n', 'b\n')
    file('f.txt', 'all new\n')
    assert.truthy(put_back(each):find('was changed since'))
    assert.equal('all new\n', data_of(each.path))
  end)
end)

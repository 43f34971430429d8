--- Our buffers: named, never taken for a file, and written whatever a text holds.
local buffers = require('callboard.ui.buffers')
local lines = require('callboard.ui.lines')

describe('a buffer of ours', function()
  after_each(function()
    vim.cmd('silent! only')
    vim.cmd('silent %bwipeout!')
  end)

  it('is nothing that is written, listed or swapped', function()
    local buf = buffers.create('callboard://spec/1', 'callboard-spec')
    assert.equal('nofile', vim.bo[buf].buftype)
    assert.equal('hide', vim.bo[buf].bufhidden)
    assert.is_false(vim.bo[buf].buflisted)
    assert.is_false(vim.bo[buf].swapfile)
    assert.equal('callboard-spec', vim.bo[buf].filetype)
    assert.equal('callboard://spec/1', vim.api.nvim_buf_get_name(buf))
    assert.is_true(vim.b[buf].callboard)
  end)

  it('has a name of its own, also when there is one of that name', function()
    local one = buffers.create('callboard://spec/[x]*', 'callboard-spec')
    local two = buffers.create('callboard://spec/[x]*', 'callboard-spec')
    assert.not_equal(one, two)
    assert.equal('callboard://spec/[x]*', vim.api.nvim_buf_get_name(one))
    assert.equal('callboard://spec/[x]*#2', vim.api.nvim_buf_get_name(two))
  end)

  it('takes over a name that a saved session of Vim has brought back', function()
    vim.cmd.badd('callboard://spec/1')
    local left = vim.fn.bufnr('callboard://spec/1')
    assert.equal(left, buffers.create('callboard://spec/1', 'callboard-spec'))
    assert.equal('nofile', vim.bo[left].buftype)
  end)

  it('gets another name, and leaves nothing behind that has the old one', function()
    local buf = buffers.create('callboard://spec/new', 'callboard-spec')
    buffers.rename(buf, 'callboard://spec/ses_1')
    assert.equal('callboard://spec/ses_1', vim.api.nvim_buf_get_name(buf))
    assert.equal(-1, vim.fn.bufnr('callboard://spec/new'))
  end)

  it('is in view where a window of this tab page shows it', function()
    local buf = buffers.create('callboard://spec/1', 'callboard-spec')
    assert.is_false(buffers.visible(buf))
    vim.cmd.split()
    vim.api.nvim_win_set_buf(0, buf)
    assert.equal(vim.api.nvim_get_current_win(), buffers.window(buf))
    vim.cmd.tabnew()
    assert.is_false(buffers.visible(buf))
    vim.cmd.tabclose()
  end)

  it('is not where files go: they have a window, or get one', function()
    local file = vim.api.nvim_get_current_win()
    vim.cmd.split()
    local win = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(win, buffers.create('callboard://spec/1', 'callboard-spec'))
    assert.equal(file, buffers.file_window())
    vim.api.nvim_win_close(file, true)
    local made = buffers.file_window()
    assert.not_equal(win, made)
    assert.is_true(vim.api.nvim_win_is_valid(made))
  end)
end)

describe('lines', function()
  local buf

  before_each(function()
    buf = vim.api.nvim_create_buf(false, true)
    vim.bo[buf].modifiable = false
  end)

  after_each(function()
    vim.api.nvim_buf_delete(buf, { force = true })
  end)

  ---@return string[]
  local function content()
    return vim.api.nvim_buf_get_lines(buf, 0, -1, true)
  end

  ---@return any[][] row, column, end column, group
  local function marks()
    return vim.tbl_map(function(mark)
      return { mark[2], mark[3], mark[4].end_col, mark[4].hl_group }
    end, vim.api.nvim_buf_get_extmarks(buf, lines.namespace, 0, -1, { details = true }))
  end

  it('are chunks with colours, in a buffer that stays as it was', function()
    lines.set(
      buf,
      0,
      -1,
      { { { 'a ' }, { 'üb', 'Title' } }, { { 'c', 'Comment' }, { '', 'Title' } } }
    )
    assert.same({ 'a üb', 'c' }, content())
    assert.same({ { 0, 2, 5, 'Title' }, { 1, 0, 1, 'Comment' } }, marks())
    assert.is_false(vim.bo[buf].modifiable)
    assert.is_false(vim.bo[buf].modified)
  end)

  it('are replaced with their colours, and no others', function()
    lines.set(buf, 0, -1, { { { 'a', 'Title' } }, { { 'b', 'Title' } }, { { 'c', 'Title' } } })
    lines.set(buf, 1, 2, { { { 'x' } }, { { 'y', 'Comment' } } })
    assert.same({ 'a', 'x', 'y', 'c' }, content())
    assert.same({ { 0, 0, 1, 'Title' }, { 2, 0, 1, 'Comment' }, { 3, 0, 1, 'Title' } }, marks())
    lines.set(buf, 1, 1, { { { 'between', 'Title' } } })
    assert.same({ 'a', 'between', 'x', 'y', 'c' }, content())
  end)

  it('never break on a line end within', function()
    lines.set(buf, 0, -1, { { { 'a\nb', 'Title' }, { '\n' } } })
    assert.same({ 'a b ' }, content())
  end)

  it('are made of any text', function()
    lines.set(buf, 0, -1, lines.of('a\n\27[1m\0\255', 'Comment', '  '))
    assert.same({ '  a', '  <1B>[1m<00>�' }, content())
  end)
end)

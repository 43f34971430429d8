--- Mappings of our buffers: as the user has set them, gone when they are taken back, and told.
describe('keys', function()
  local keys, buf, did

  before_each(function()
    package.loaded['callboard.config'] = nil
    package.loaded['callboard.keys'] = nil
    keys = require('callboard.keys')
    buf = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_set_current_buf(buf)
    did = {}
  end)

  after_each(function()
    vim.api.nvim_buf_delete(buf, { force = true })
    package.loaded['callboard.config'] = nil
    package.loaded['callboard.keys'] = nil
  end)

  ---@param action string
  ---@param lhs string|string[]
  ---@param mode string|string[]?
  ---@return callboard.Key
  local function key(action, lhs, mode)
    return {
      action = action,
      lhs = lhs,
      desc = 'Do ' .. action,
      mode = mode,
      fn = function()
        table.insert(did, action)
      end,
    }
  end

  local function setup(keymaps)
    require('callboard.config').setup({ keymaps = keymaps })
  end

  ---@param typed string
  local function press(typed)
    vim.api.nvim_feedkeys(vim.keycode(typed), 'xt', false)
  end

  ---@param lhs string
  ---@param mode string?
  local function mapped(lhs, mode)
    return vim.fn.maparg(lhs, mode or 'n', false, true).desc
  end

  it('do what they say, in this buffer alone', function()
    keys.set(buf, 'chat', { key('open', '<CR>'), key('hide', 'q') })
    press('<CR>q')
    assert.same({ 'open', 'hide' }, did)
    assert.equal('Callboard: Do open', mapped('<CR>'))
    vim.cmd.enew()
    assert.is_nil(mapped('<CR>'))
  end)

  it('may be several for one thing, and in several modes', function()
    keys.set(buf, 'input', { key('send', { '<C-s>', '<CR>' }), key('stop', '<C-x>', { 'n', 'i' }) })
    press('<C-s><CR>')
    press('<C-x>')
    press('i<C-x><Esc>')
    assert.same({ 'send', 'send', 'stop', 'stop' }, did)
  end)

  it('are set as the user wants them', function()
    setup({ chat = { open = 'gx', hide = false, next = { 'gn', ']]' } } })
    keys.set(buf, 'chat', { key('open', '<CR>'), key('hide', 'q'), key('next', 'n') })
    assert.is_nil(mapped('<CR>'))
    assert.is_nil(mapped('q'))
    assert.is_nil(mapped('n'))
    press('gxgn]]')
    assert.same({ 'open', 'next', 'next' }, did)
    assert.same({}, keys.lhs_of('chat', key('hide', 'q')))
    assert.same({ 'gx' }, keys.lhs_of('chat', key('open', '<CR>')))
  end)

  it('are none where a group is switched off', function()
    setup({ chat = false })
    keys.set(buf, 'chat', { key('open', '<CR>') })
    assert.is_nil(mapped('<CR>'))
    assert.same({}, keys.lines(buf))
  end)

  it('do not wait for longer ones that begin alike', function()
    vim.keymap.set('n', 'gzz', '<Nop>')
    keys.set(buf, 'diff', { key('reject', 'gz') })
    assert.equal(1, vim.fn.maparg('gz', 'n', false, true).nowait)
    vim.keymap.del('n', 'gzz')
  end)

  it('are taken back by their group, and what was there before comes back', function()
    vim.keymap.set('n', '1', function()
      table.insert(did, 'mine')
    end, { buffer = buf, desc = 'Mine' })
    keys.set(buf, 'chat', { key('open', '<CR>') })
    keys.set(buf, 'approval', { key('once', '1'), key('reject', '4') })
    press('14')
    keys.unset(buf, 'approval')
    press('1')
    assert.same({ 'once', 'reject', 'mine' }, did)
    assert.is_nil(mapped('4'))
    assert.equal('Callboard: Do open', mapped('<CR>'))
    keys.unset(buf, 'approval')
    assert.equal('Mine', mapped('1'))
  end)

  it('leave alone what somebody mapped over them', function()
    keys.set(buf, 'approval', { key('once', '1') })
    vim.keymap.set('n', '1', 'x', { buffer = buf, desc = 'Theirs' })
    keys.unset(buf, 'approval')
    assert.equal('Theirs', mapped('1'))
  end)

  it('of a group replace those that it had', function()
    keys.set(buf, 'approval', { key('once', '1'), key('session', '2') })
    keys.set(buf, 'approval', { key('once', '1') })
    assert.is_nil(mapped('2'))
    assert.equal(1, #keys.lines(buf))
  end)

  it('are told, by group, with their modes', function()
    keys.set(buf, 'chat', { key('open', '<CR>'), key('next', { 'n', 'gn' }) })
    keys.set(buf, 'approval', { key('stop', '<C-x>', { 'n', 'i' }) })
    assert.same({
      ' <CR>      Do open',
      ' n         Do next',
      ' gn        Do next',
      '',
      ' <C-x>     Do stop (ni)',
    }, keys.lines(buf))
    keys.forget(buf)
    assert.same({}, keys.lines(buf))
  end)

  it('are shown in a float that goes again', function()
    keys.set(buf, 'chat', { key('open', '<CR>') })
    local wins = #vim.api.nvim_list_wins()
    for _, closing in ipairs({ 'q', '<Esc>', 'g?' }) do
      keys.help()
      local float = vim.api.nvim_get_current_buf()
      assert.not_equal(buf, float)
      assert.is_true(
        vim.tbl_contains(vim.api.nvim_buf_get_lines(float, 0, -1, false), ' <CR>      Do open')
      )
      assert.is_false(vim.bo[float].modifiable)
      press(closing)
      assert.equal(buf, vim.api.nvim_get_current_buf())
      assert.equal(wins, #vim.api.nvim_list_wins())
      assert.is_false(vim.api.nvim_buf_is_valid(float))
    end
  end)

  it('are shown in a float that goes when it is left', function()
    vim.cmd.split()
    local wins = #vim.api.nvim_list_wins()
    keys.help()
    vim.cmd('wincmd w')
    vim.wait(1000, function()
      return #vim.api.nvim_list_wins() == wins
    end)
    assert.equal(wins, #vim.api.nvim_list_wins())
    vim.cmd.only()
  end)
end)

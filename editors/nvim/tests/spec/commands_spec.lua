local commands = require('callboard.commands')

describe(':Callboard', function()
  local notify, told, called

  ---A module whose functions only note how they were called.
  local function recorder(name)
    return setmetatable({}, {
      __index = function(_, key)
        return function(...)
          table.insert(called, { name .. '.' .. key, ... })
        end
      end,
    })
  end

  before_each(function()
    notify, told, called = vim.notify, {}, {}
    vim.notify = function(text)
      table.insert(told, text)
    end
    for _, name in ipairs({
      'sessions',
      'approval',
      'agents',
      'tasks',
      'changes',
      'diff',
      'queue',
      'interrupt',
    }) do
      package.loaded['callboard.ui.' .. name] = recorder(name)
    end
    local chat = recorder('chat')
    chat.current = function()
      return 'ses_1'
    end
    package.loaded['callboard.ui.chat'] = chat
    if vim.fn.exists(':Callboard') == 0 then
      vim.g.loaded_callboard = nil
      vim.cmd('runtime plugin/callboard.lua')
    end
  end)

  after_each(function()
    vim.notify = notify
    for _, name in ipairs({
      'chat',
      'sessions',
      'approval',
      'agents',
      'tasks',
      'changes',
      'diff',
      'queue',
      'interrupt',
    }) do
      package.loaded['callboard.ui.' .. name] = nil
    end
    vim.cmd('silent! %bwipeout!')
  end)

  local function settle()
    local done
    vim.schedule(function()
      done = true
    end)
    vim.wait(2000, function()
      return done
    end)
  end

  ---@param line string
  local function run(line)
    called = {}
    vim.cmd(line)
    settle()
    return called[1]
  end

  it('shows or hides the chat by itself', function()
    assert.same({ 'chat.toggle' }, run('Callboard'))
  end)

  it('does what its sub-commands say', function()
    for line, wanted in pairs({
      ['new'] = { 'chat.new', {} },
      ['new A title'] = { 'chat.new', { title = 'A title' } },
      ['open ses_12'] = { 'sessions.open', 'ses_12' },
      ['sessions'] = { 'sessions.pick' },
      ['sessions two  words'] = { 'sessions.search', 'two  words' },
      ['resume'] = { 'sessions.resume' },
      ['rename A title'] = { 'sessions.rename', 'ses_1', 'A title' },
      ['archive'] = { 'sessions.archive', 'ses_1', true },
      ['delete'] = { 'sessions.delete', 'ses_1', false },
      ['fork'] = { 'sessions.fork', 'ses_1' },
      ['fork trn_1'] = { 'sessions.fork', 'ses_1', 'trn_1' },
      ['undo'] = { 'sessions.rewind', 'ses_1' },
      ['export'] = { 'sessions.export', 'ses_1' },
      ['chat'] = { 'chat.focus' },
      ['toggle'] = { 'chat.toggle' },
      ['send a | b "c'] = { 'chat.send', { text = 'a | b "c' } },
      ['steer left'] = { 'chat.send', { text = 'left', delivery = 'steer' } },
      ['add'] = { 'chat.add', {} },
      ['ask why'] = { 'chat.ask', { text = 'why' } },
      ['queue'] = { 'queue.open', 'ses_1' },
      ['interrupt'] = { 'interrupt.run', 'ses_1', 'turn' },
      ['interrupt queue'] = { 'interrupt.run', 'ses_1', 'queue' },
      ['stop'] = { 'interrupt.run', 'ses_1', 'tree' },
      ['approve'] = { 'approval.answer_current', 1 },
      ['approve session'] = { 'approval.answer_current', 2 },
      ['approve always'] = { 'approval.answer_current', 3 },
      ['deny'] = { 'approval.answer_current', 4 },
      ['deny not that one'] = { 'approval.answer_current', 5, 'not that one' },
      ['next'] = { 'approval.next' },
      ['changes'] = { 'changes.open', 'ses_1' },
      ['diff'] = { 'changes.diff', 'ses_1' },
      ['diff a b.txt'] = { 'changes.diff', 'ses_1', 'a b.txt' },
      ['accept'] = { 'diff.accept', false },
      ['reject'] = { 'diff.reject', false },
      ['agents'] = { 'agents.open', 'ses_1' },
      ['tasks'] = { 'tasks.open', 'ses_1' },
      ['group'] = { 'tasks.say', 'ses_1' },
      ['group hello all'] = { 'tasks.say', 'ses_1', 'hello all' },
      ['model a/b'] = { 'sessions.model', 'ses_1', 'a/b' },
      ['mode plan'] = { 'sessions.mode', 'ses_1', 'plan' },
      ['usage'] = { 'sessions.usage', 'ses_1' },
    }) do
      assert.same(wanted, run('Callboard ' .. line), line)
    end
    assert.same({ 'sessions.archive', 'ses_1', false }, run('Callboard! archive'))
    assert.same({ 'sessions.delete', 'ses_1', true }, run('Callboard! delete'))
    assert.same({ 'diff.accept', true }, run('Callboard! accept'))
    assert.same({ 'diff.reject', true }, run('Callboard! reject'))
    assert.same({}, told)
  end)

  it('takes a range of lines', function()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a', 'b', 'c' })
    assert.same(
      { 'chat.send', { text = '', range = { first = 2, last = 3 } } },
      run('2,3Callboard send')
    )
    assert.same(
      { 'chat.ask', { text = 'why', range = { first = 1, last = 3 } } },
      run('%Callboard ask why')
    )
    assert.same({ 'chat.add', { range = { first = 1, last = 1 } } }, run('1Callboard add'))
  end)

  it('says so when there is no such sub-command, and what could be meant', function()
    assert.is_nil(run('Callboard sesions'))
    assert.truthy(
      told[1]:find('there is no :Callboard sesions. Do you mean send, sessions?', 1, true)
    )
    told = {}
    run('Callboard xyz')
    assert.equal('Callboard: there is no :Callboard xyz.', told[1])
  end)

  it('says so when no session is open, and what to do', function()
    package.loaded['callboard.ui.chat'].current = function() end
    for _, name in ipairs({ 'rename', 'undo', 'usage', 'agents', 'diff', 'stop' }) do
      told = {}
      assert.is_nil(run('Callboard ' .. name))
      assert.truthy(told[1]:find('no session is open. :Callboard new', 1, true), name)
    end
  end)

  it('refuses an answer that there is not', function()
    assert.is_nil(run('Callboard approve everything'))
    assert.truthy(told[1]:find('approve takes once, session or always', 1, true))
  end)

  it('completes sub-commands', function()
    local function complete(line)
      return vim.fn.getcompletion(line, 'cmdline')
    end
    assert.same(commands.names(), complete('Callboard '))
    assert.same({ 'send', 'sessions' }, complete('Callboard se'))
    assert.same({ 'send', 'sessions' }, complete('2,3Callboard se'))
    assert.same({ 'send', 'sessions' }, complete('Callb se'))
    assert.same({ 'delete', 'deny' }, complete('Callboard! de'))
    assert.same({}, complete('Callboard nothing '))
  end)

  it('completes what they take, and asks nobody for it', function()
    package.loaded['callboard.ui.sessions'] = {
      ids = function()
        return { 'ses_1', 'ses_2', 'other' }
      end,
      models = function()
        return { 'a/one', 'b/two' }
      end,
    }
    local function complete(line)
      return vim.fn.getcompletion(line, 'cmdline')
    end
    assert.same({ 'ses_1', 'ses_2' }, complete('Callboard open ses'))
    assert.same({ 'a/one', 'b/two' }, complete('Callboard model '))
    assert.same({ 'ask' }, complete('Callboard mode a'))
    assert.same({ 'once', 'session', 'always' }, complete('Callboard approve '))
    assert.same({ 'turn', 'tree' }, complete('Callboard interrupt t'))
    assert.same({ 'work' }, complete('Callb mode w'))
  end)

  it('completes names of files', function()
    vim.fn.writefile({}, 'file_to_add.txt')
    assert.same({ 'file_to_add.txt' }, vim.fn.getcompletion('Callboard add file_to', 'cmdline'))
    assert.same({ 'file_to_add.txt' }, vim.fn.getcompletion('Callboard diff file_to', 'cmdline'))
    os.remove('file_to_add.txt')
  end)

  it('says of each sub-command what it does', function()
    for name, command in pairs(commands.commands) do
      assert.truthy(#command.desc > 0 and not command.desc:find('%.$'), name)
    end
  end)

  it('has <Plug> mappings, and no others', function()
    for _, name in ipairs({
      'toggle',
      'new',
      'sessions',
      'next',
      'agents',
      'tasks',
      'changes',
      'interrupt',
      'send',
    }) do
      assert.truthy(
        vim.fn.maparg(('<Plug>(callboard-%s)'):format(name), 'n') ~= ''
          or vim.fn.maparg(('<Plug>(callboard-%s)'):format(name), 'n', false, true).callback
      )
    end
    for _, mode in ipairs({ 'n', 'x', 'i', 'o', 'c', 't' }) do
      for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
        if (map.desc or ''):find('^Callboard') then
          assert.truthy(vim.startswith(map.lhs, '<Plug>'), map.lhs)
        end
      end
    end
  end)

  it('sends by an operator, and a selection by the same key', function()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a', 'b', 'c', 'd' })
    vim.keymap.set({ 'n', 'x' }, 'gz', '<Plug>(callboard-send)')
    vim.api.nvim_win_set_cursor(0, { 2, 0 })
    vim.api.nvim_feedkeys('gzj', 'xt', false)
    assert.same({ 'chat.send', { text = '', range = { first = 2, last = 3 } } }, called[1])
    called = {}
    vim.api.nvim_win_set_cursor(0, { 1, 0 })
    vim.api.nvim_feedkeys('Vjgz', 'xt', false)
    assert.same({ 'chat.send', { text = '', range = { first = 1, last = 2 } } }, called[1])
    vim.keymap.del({ 'n', 'x' }, 'gz')
  end)

  it('is what require("callboard").run does, too', function()
    require('callboard').run('mode', { 'plan' })
    assert.same({ 'sessions.mode', 'ses_1', 'plan' }, called[1])
  end)
end)

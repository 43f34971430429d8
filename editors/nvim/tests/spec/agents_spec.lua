--- The pages of agents and tasks: when they ask, what their keys send, and what they do without a server.
local fake_app = require('fake_app')
local config = require('callboard.config')
local live = require('callboard.ui.live')

local AGENT = {
  agentId = 'ses_docs',
  rootId = 'ses_root',
  parentId = 'ses_root',
  name = 'docs',
  status = 'running',
  createdAt = '2026-01-01T00:00:00Z',
}
local TASK = {
  taskId = 'tsk_1',
  groupId = 'grp_1',
  title = 'Write it',
  status = 'pending',
  ready = true,
  createdBy = 'ses_root',
  createdAt = '2026-01-01T00:00:00Z',
  updatedAt = '2026-01-01T00:00:00Z',
}
local MEMBERS = {
  { agentId = 'ses_root', name = 'root', isRoot = true },
  { agentId = 'ses_docs', name = 'docs', status = 'running' },
}

describe('a page', function()
  local app, following, listeners, said, chosen, gather, apart, select

  before_each(function()
    config.setup({})
    app, select = fake_app.install(), vim.ui.select
    gather, apart = live.GATHER_MS, live.APART_MS
    live.GATHER_MS, live.APART_MS = 1, 1
    following, listeners = nil, {}
    app.feed = {
      follow = function(_, opts)
        following = opts
        opts.on_live()
        return function()
          following = nil
        end
      end,
    }
    function app:on(topic, fn)
      listeners[topic] = fn
      return function()
        listeners[topic] = nil
      end
    end
    function app.feature(_, name)
      return app.features[name] == true
    end
    app.features = { ['agents.interrupts'] = true }
    app.server.handshake = {}
    package.loaded['callboard.ui.ask'] = {
      line = function(opts, done)
        said = opts.title
        done(chosen)
      end,
    }
    local root = fake_app.session({ sessionId = 'ses_root', title = 'The team' })
    app:put_session(root)
    app.answers['session/get'] = { session = root }
    app.answers['agent/list'] = { data = { AGENT } }
    app.answers['group/get'] = {
      group = {
        groupId = 'grp_1',
        rootId = 'ses_root',
        members = MEMBERS,
        counts = { total = 1, ready = 1, pending = 1 },
      },
    }
    app.answers['group/taskList'] = { data = { TASK } }
    app.answers['group/messageList'] = { data = {} }
  end)

  after_each(function()
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_get_name(buf):find('^callboard://') then
        vim.api.nvim_buf_delete(buf, { force = true })
      end
    end
    vim.cmd('silent! only')
    package.loaded['callboard.ui.ask'] = nil
    rawset(vim.ui, 'select', select)
    live.GATHER_MS, live.APART_MS = gather, apart
    app:restore()
  end)

  local function open(page, line)
    require('callboard.ui.' .. page).open('ses_root')
    vim.fn.search(line, 'cw')
  end

  local function press(keys)
    vim.api.nvim_feedkeys(vim.keycode(keys), 'mx', false)
  end

  local function text()
    return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), '\n')
  end

  local function last()
    return app.asked[#app.asked]
  end

  local function count(method)
    return #vim.tbl_filter(function(asked)
      return asked.method == method
    end, app.asked)
  end

  it('asks once for what several events have changed', function()
    open('agents', 'docs')
    assert.equal(1, count('agent/list'))
    for _ = 1, 50 do
      following.on_events({})
    end
    assert.is_true(vim.wait(1000, function()
      return count('agent/list') == 2
    end, 1))
    vim.wait(20)
    assert.equal(2, count('agent/list'))
  end)

  it('asks once more after an answer that something overtook', function()
    local answer
    function app:request(method, _, callback)
      table.insert(app.asked, { method = method })
      answer = function()
        callback(
          nil,
          method == 'session/get' and { session = self.sessions.by_id.ses_root }
            or { data = { AGENT } }
        )
      end
      return function() end
    end
    open('agents', 'Loading')
    following.on_live()
    following.on_live()
    assert.equal(1, count('session/get'))
    answer()
    answer()
    assert.is_true(vim.wait(1000, function()
      return count('session/get') == 2
    end, 1))
  end)

  it('follows nothing while it is hidden, nor after it was closed', function()
    open('agents', 'docs')
    assert.equal('tree', following.scope.kind)
    vim.cmd('hide')
    assert.is_nil(following)
    assert.same({}, listeners)
    open('agents', 'docs')
    assert.truthy(following)
    press('q')
    assert.is_nil(following)
    assert.equal(-1, vim.fn.bufnr('callboard://agents'))
  end)

  it('says what is wrong above what it had', function()
    open('agents', 'docs')
    app.answers['agent/list'] = function()
      return nil, { code = 1, message = 'the store\nis busy', data = { kind = 'x' } }
    end
    following.on_live()
    assert.truthy(text():find('This may be old: the store\nis busy', 1, true))
    assert.truthy(text():find('docs  running', 1, true))
    app.server.state, app.server.failure = 'failed', { message = 'gone for good', lines = {} }
    listeners.server()
    assert.truthy(text():find('No server: gone for good', 1, true))
    assert.truthy(text():find('docs  running', 1, true))
  end)

  it('asks who the root is, where only an agent is known', function()
    app.answers['session/get'] = function(params)
      return { session = fake_app.session({ sessionId = params.sessionId, rootId = 'ses_root' }) }
    end
    require('callboard.ui.agents').open('ses_docs')
    assert.equal('callboard://agents/ses_root', vim.fn.bufname())
  end)

  describe('of agents', function()
    it('opens chats', function()
      open('agents', 'docs')
      press('<CR>')
      vim.fn.search('The team', 'cw')
      press('<CR>')
      assert.same({ 'ses_docs', 'ses_root' }, { app.opened[1][1], app.opened[2][1] })
    end)

    it('sends what was written, and nothing where nothing was', function()
      open('agents', 'docs')
      app.answers['agent/send'] = {}
      chosen = nil
      press('m')
      chosen = '  '
      press('m')
      assert.equal(0, count('agent/send'))
      chosen = 'Hello'
      press('m')
      assert.equal('Message to docs', said)
      assert.same({ agentId = 'ses_docs', text = 'Hello' }, last().params)
    end)

    it('interrupts by the kind of its key', function()
      open('agents', 'docs')
      app.answers['agent/interrupt'] = { outcome = 'delivered' }
      chosen = 'Because.'
      press('s')
      assert.same({ agentId = 'ses_docs', kind = 'steer', reason = 'Because.' }, last().params)
      press('x')
      assert.same({ agentId = 'ses_docs', kind = 'cancel', reason = 'Because.' }, last().params)
      press('X')
      assert.same({ agentId = 'ses_docs', kind = 'abort' }, last().params)
      assert.equal('Callboard: docs is told at its next step', app:told())
    end)

    it('refuses what the server does not have, and tells the other way', function()
      app.features = {}
      open('agents', 'docs')
      press('s')
      assert.truthy(app:told():find('X stops one at once', 1, true))
      assert.equal(0, count('agent/interrupt'))
    end)

    it('closes after the second press alone', function()
      app.answers['agent/close'] = {}
      open('agents', 'docs')
      press('D')
      assert.equal(0, count('agent/close'))
      assert.truthy(text():find('D again closes docs', 1, true))
      press('D')
      assert.same({ agentId = 'ses_docs' }, last().params)
    end)

    it('replies to what is asked, and says so where nothing is', function()
      open('agents', 'docs')
      press('r')
      assert.equal('Callboard: docs asks nothing', app:told())
      app.answers['agent/list'] = {
        data = {
          vim.tbl_extend('force', AGENT, { question = { askId = 'ask_1', text = 'Which?' } }),
        },
      }
      following.on_live()
      app.answers['agent/reply'] = {}
      chosen = 'This.'
      press('r')
      assert.equal('docs asks: Which?', said)
      assert.same({ askId = 'ask_1', text = 'This.' }, last().params)
    end)

    it('takes keys as they are set', function()
      config.setup({ keymaps = { list = { abort = 'K', close_agent = false } } })
      app.answers['agent/interrupt'] = { outcome = 'aborted' }
      open('agents', 'docs')
      assert.same({}, vim.fn.maparg('X', 'n', false, true))
      assert.same({}, vim.fn.maparg('D', 'n', false, true))
      press('K')
      assert.equal('abort', last().params.kind)
    end)
  end)

  describe('of tasks', function()
    ---Each of the two requests after a change is one of the board's own.
    local function sent(method)
      for i = #app.asked, 1, -1 do
        if app.asked[i].method == method then
          return app.asked[i].params
        end
      end
    end

    before_each(function()
      for _, each in ipairs({
        'Claim',
        'Start',
        'Complete',
        'Block',
        'Release',
        'Cancel',
        'Reassign',
        'Create',
      }) do
        app.answers['group/task' .. each] = {}
      end
      app.answers['group/messageSend'] = { recipients = { 'ses_docs' } }
      rawset(vim.ui, 'select', function(items, opts, done)
        said = vim.tbl_map(opts.format_item, items)
        done(items[chosen])
      end)
    end)

    it('changes a task by the keys alone', function()
      open('tasks', 'Write it')
      local base = { rootId = 'ses_root', taskId = 'tsk_1' }
      press('c')
      assert.same(base, sent('group/taskClaim'))
      press('s')
      assert.same(base, sent('group/taskStart'))
      press('u')
      assert.same(base, sent('group/taskRelease'))
      chosen = 'Words.'
      press('d')
      assert.same(vim.tbl_extend('force', base, { summary = 'Words.' }), sent('group/taskComplete'))
      press('b')
      assert.same(vim.tbl_extend('force', base, { reason = 'Words.' }), sent('group/taskBlock'))
      chosen = ''
      press('x')
      assert.same(base, sent('group/taskCancel'))
      chosen = 2
      press('A')
      assert.same({ 'root (this session)', 'docs (running)' }, said)
      assert.same(
        vim.tbl_extend('force', base, { agentId = 'ses_docs' }),
        sent('group/taskReassign')
      )
    end)

    it('completes nothing without words', function()
      open('tasks', 'Write it')
      chosen = '  '
      press('d')
      chosen = nil
      press('b')
      press('x')
      assert.equal(
        0,
        count('group/taskComplete') + count('group/taskBlock') + count('group/taskCancel')
      )
    end)

    it('writes to all, or to one', function()
      open('tasks', 'Write it')
      local answers = { 1, 'All.', 2, 'One.' }
      package.loaded['callboard.ui.ask'].line = function(_, done)
        done(table.remove(answers, 1))
      end
      rawset(vim.ui, 'select', function(items, _, done)
        done(items[table.remove(answers, 1)])
      end)
      press('m')
      assert.same({ rootId = 'ses_root', to = 'group', text = 'All.' }, last().params)
      press('m')
      assert.same(
        { rootId = 'ses_root', to = 'agent', agentId = 'ses_docs', text = 'One.' },
        last().params
      )
    end)

    it('says so when nobody is there to read', function()
      app.answers['group/messageSend'] = { recipients = {} }
      require('callboard.ui.tasks').say('ses_root', 'Anybody?')
      assert.truthy(app:told():find('nobody else takes part', 1, true))
    end)

    it('makes no task when the question before is left', function()
      open('tasks', 'Write it')
      package.loaded['callboard.ui.ask'].line = function(_, done)
        done('New')
      end
      chosen = 9
      press('n')
      assert.equal(0, count('group/taskCreate'))
      assert.equal('Callboard: no task was made', app:told())
      chosen = 1
      press('n')
      assert.same({ rootId = 'ses_root', title = 'New' }, sent('group/taskCreate'))
    end)

    it('reads all pages of a long list, up to a bound', function()
      local pages = 0
      app.answers['group/taskList'] = function()
        pages = pages + 1
        local data = {}
        for i = 1, 100 do
          data[i] = vim.tbl_extend('force', TASK, { taskId = ('tsk_%d_%d'):format(pages, i) })
        end
        return { data = data, nextCursor = 'next' }
      end
      open('tasks', 'Write it')
      assert.equal(10, pages)
      assert.truthy(text():find('There are more tasks', 1, true))
    end)
  end)
end)

-- The chat of a session: what it says of the session and the server, what is sent from it, its windows.
local Approvals = require('callboard.model.approvals')
local Queue = require('callboard.model.queue')
local Reducer = require('callboard.model.reducer')
local Store = require('callboard.model.store')
local recorded = require('recorded')

local Conversation = require('callboard.ui.conversation')

---An app whose sessions are put there by the spec.
local function fake_app()
  local app = {
    sessions = Store.new(),
    approvals = Approvals.new(),
    server = { state = 'ready' },
    listeners = { server = {}, sessions = {}, approvals = {} },
    used = {},
    asked = {},
    answers = {},
    keys = 0,
  }
  function app:on(topic, fn)
    table.insert(self.listeners[topic], fn)
    return function()
      self.listeners[topic] = vim.tbl_filter(function(other)
        return other ~= fn
      end, self.listeners[topic])
    end
  end
  function app:tell(topic)
    for _, fn in ipairs(self.listeners[topic]) do
      fn()
    end
  end
  function app:use(id)
    self.used[id] = (self.used[id] or 0) + 1
    return self.open
  end
  function app:release(id)
    self.used[id] = self.used[id] - 1
  end
  function app:put_session(session)
    Store.put(self.sessions, session)
  end
  function app:new_key()
    self.keys = self.keys + 1
    return 'key' .. self.keys
  end
  function app:request(method, params, callback)
    table.insert(self.asked, { method = method, params = params })
    local answer = self.answers[method]
    if answer then
      answer(callback, params)
    end
  end
  function app:feature()
    return false
  end
  return app
end

---@param transcript callboard.Transcript?
local function fake_session(transcript)
  local session = {
    transcript = transcript or Reducer.new('ses_1'),
    outbox = Queue.new(),
    phase = transcript and 'live' or 'loading',
    at_start = true,
    said = {},
  }
  function session:listen(fn)
    self.tell = fn
    return function()
      self.tell = nil
    end
  end
  function session:prompt(prompt, done)
    table.insert(self.said, prompt)
    self.done = done
  end
  return session
end

local app, chat, told, real_notify

before_each(function()
  app, told, real_notify = fake_app(), {}, vim.notify
  vim.notify = function(text) -- luacheck: ignore
    table.insert(told, text)
  end
  vim.cmd('tabnew')
end)

after_each(function()
  if chat then
    chat:close()
    for _, buf in ipairs({ chat.buf, chat.input.buf }) do
      if vim.api.nvim_buf_is_valid(buf) then
        vim.api.nvim_buf_delete(buf, { force = true })
      end
    end
    chat = nil
  end
  local settled
  vim.schedule(function()
    settled = true
  end)
  vim.wait(1000, function()
    return settled
  end, 1)
  vim.notify = real_notify -- luacheck: ignore
  vim.cmd('silent! tabonly! | silent! only!')
end)

---@param name string? a recording
---@return callboard.Conversation
local function open(name)
  if name then
    local said = recorded.said(name)
    app.open = fake_session(recorded.transcript(name))
    app:put_session(said.sessions[1].session)
    Approvals.replace(app.approvals, said.approvals)
    chat = Conversation.new(app, { id = recorded.root(name) })
  else
    app.open = fake_session()
    chat = Conversation.new(app, { cwd = '/project' })
  end
  vim.api.nvim_win_set_buf(0, chat.buf)
  chat.bars:draw()
  return chat
end

---@return string
local function text()
  chat.view:flush()
  return table.concat(vim.api.nvim_buf_get_lines(chat.buf, 0, -1, false), '\n')
end

---@return string as it is drawn
local function bar()
  return vim.trim(
    vim.api.nvim_eval_statusline(vim.wo.winbar, { use_winbar = true, maxwidth = 120 }).str
  )
end

describe('a chat without a session', function()
  it('says what it is', function()
    open()
    assert.matches('^A new session in /project', text())
    assert.matches('New session  new', bar())
    assert.equal(0, vim.tbl_count(app.used))
  end)

  it('begins one with the first thing that is said, once', function()
    local created
    app.answers['session/create'] = function(callback)
      created = callback
    end
    open()
    chat:say({ text = 'hello' })
    chat:say({ text = 'and more' })
    assert.matches('  sending: hello\n  sending: and more', text())
    assert.equal(1, #app.asked)
    assert.equal('session/create', app.asked[1].method)
    assert.equal('/project', app.asked[1].params.cwd)
    local registry = require('callboard.ui.chat')
    local began = registry.began
    registry.began = function() end
    created(nil, { session = recorded.said('demo').sessions[1].session })
    registry.began = began
    assert.same(
      { 'hello', 'and more' },
      vim.tbl_map(function(prompt)
        return prompt.text
      end, app.open.said)
    )
  end)

  it('gives back what was said when none can be begun', function()
    app.answers['session/create'] = function(callback)
      callback({ message = 'the folder is not there' })
    end
    open()
    chat:say({ text = 'hello' })
    assert.equal('hello', chat.input:text())
    assert.matches('^A new session in', text())
    assert.is_nil(text():find('sending', 1, true))
  end)
end)

describe('a chat', function()
  it('shows at once that it loads', function()
    app.open = fake_session()
    chat = Conversation.new(app, { id = 'ses_1' })
    vim.api.nvim_win_set_buf(0, chat.buf)
    assert.equal('Loading…', text())
  end)

  it('shows a session with all that stands below it', function()
    open('queue')
    assert.matches(
      'Waits for the end of the turn  %(e edits, x drops, s sends now%)\n  %- first',
      text()
    )
    assert.matches('1 to approve', bar())
    assert.matches('3 queued', bar())
  end)

  it('keeps what is shown while the session is read anew', function()
    open('demo')
    local before = text()
    app.open.phase = 'loading'
    app.open.tell({ phase = 'loading' })
    assert.equal(before, text())
    app.open.phase = 'live'
    app.open.tell({ phase = 'live', change = { items = {}, events = {}, reset = true } })
    assert.equal(before, text())
  end)

  it('says why a session is lost', function()
    open('demo')
    app.open.phase, app.open.fault =
      'lost', 'this session was deleted. :Callboard sessions shows the others.'
    app.open.tell({ phase = 'lost' })
    assert.matches('this session was deleted. :Callboard sessions shows the others.$', text())
    assert.matches('lost', bar())
  end)

  it('says what to do when the server has been away for a while', function()
    local patience = Conversation.LATE_MS
    Conversation.LATE_MS = 20
    open('demo')
    app.server =
      { state = 'waiting', failure = { message = 'the server was ended by signal 9', lines = {} } }
    app:tell('server')
    assert.matches('reconnecting', bar())
    assert.is_true(vim.wait(2000, function()
      return text():find('Reconnecting… the server was ended by signal 9', 1, true) ~= nil
    end, 5))
    assert.matches(':Callboard restart does so now', text())
    app.server = { state = 'ready' }
    app:tell('server')
    assert.is_nil(text():find('Reconnecting', 1, true))
    Conversation.LATE_MS = patience
  end)

  it('shows the last words of a server that cannot be had', function()
    open('demo')
    local lines = {}
    for i = 1, 30 do
      lines[i] = ('line %d of \27[31mstderr'):format(i)
    end
    app.server = { state = 'failed', failure = { message = 'it ended with code 1', lines = lines } }
    app:tell('server')
    assert.matches('No server: it ended with code 1\n  │ line 11 of <1B>%[31mstderr\n', text())
    assert.matches(':Callboard restart tries again', text())
    assert.matches('no server: :Callboard restart', bar())
  end)

  it('gives back what could not be sent, with what went along', function()
    open('demo')
    chat.chips:add({ uri = 'file:///project/a.lua' })
    chat:say({ text = 'hello' })
    assert.same({}, chat.chips:labels())
    app.open.done({ message = 'no' })
    assert.equal('hello', chat.input:text())
    assert.equal(1, #chat.chips:labels())
  end)

  it('lets go of its session while nobody looks, and keeps what was typed', function()
    open('demo')
    local id = chat.id
    chat.input:set('half a thought')
    chat:rest()
    assert.equal(0, app.used[id])
    chat:attach()
    assert.equal(1, app.used[id])
    assert.equal('half a thought', chat.input:text())
  end)

  it('asks for the agents below it, too', function()
    open('demo')
    local approval = vim.deepcopy(recorded.said('waiting').approvals[1])
    approval.sessionId, approval.rootId = 'ses_child', chat.id
    approval.path =
      { { sessionId = chat.id, name = 'default' }, { sessionId = 'ses_child', name = 'stock' } }
    Approvals.add(app.approvals, approval)
    app:tell('approvals')
    assert.matches('asked by [^\n]*stock', text())
    assert.matches('1 to approve', bar())
    assert.is_truthy(vim.fn.maparg('1', 'n') ~= '')
    Approvals.remove(app.approvals, approval.approvalId)
    app:tell('approvals')
    assert.is_nil(text():find('asked by', 1, true))
    assert.equal('', vim.fn.maparg('1', 'n'))
  end)
end)

describe('the line above a chat', function()
  local winbar = require('callboard.ui.winbar')

  local function drawn(head)
    head = vim.tbl_extend(
      'keep',
      head,
      { title = 'x', server = 'ready', phase = 'live', approvals = 0, queued = 0 }
    )
    return vim.trim(
      vim.api.nvim_eval_statusline(
        winbar.text(head, 100000, 120),
        { use_winbar = true, maxwidth = 120 }
      ).str
    )
  end

  it('counts the seconds of a turn, and says that it stops', function()
    local turn = { started = 58000, state = 'running', cancelling = false }
    assert.matches('running 42 s', drawn({ turn = turn }))
    turn.cancelling = true
    assert.matches('stopping', drawn({ turn = turn }))
  end)

  it('says in this order what matters', function()
    local turn = { started = 99000, state = 'running', cancelling = false }
    assert.matches('no server', drawn({ server = 'failed', turn = turn, approvals = 1 }))
    assert.matches('2 to approve', drawn({ turn = turn, approvals = 2 }))
    assert.matches('paused', drawn({ turn = { state = 'parked', cancelling = false } }))
    assert.matches('closed', drawn({ closed = true }))
    assert.matches('archived', drawn({ archived = true }))
    assert.matches('idle', drawn({}))
  end)

  it('takes nothing of a title for its own', function()
    local head = {
      title = '%#Error#%{1+1}\27[31m\n\226\128\174',
      profile = '%=',
      mode = '%<',
      model = '%1@x@',
    }
    local line = drawn(head)
    assert.matches('%%#Error#%%{1%+1}<1B>%[31m', line)
    assert.matches('%%= · %%< · %%1@x@', line)
  end)

  it('has the usage and the queue at its end', function()
    assert.matches(
      '3 queued · 1.2k in, 30 out · %$0.5$',
      drawn({
        queued = 3,
        usage = { inputTokens = 1200, outputTokens = 30, cost = 0.5 },
      })
    )
  end)
end)

describe('the plan', function()
  local tail = require('callboard.ui.tail')

  local function shown(entries, turn)
    local transcript = Reducer.new('x')
    transcript.plan, transcript.turn = entries, turn
    local state = {
      transcript = transcript,
      phase = 'live',
      server = 'ready',
      late = false,
      approvals = {},
      keys = {},
      cwd = '/',
    }
    state.outbox = Queue.new()
    return table.concat(vim.tbl_map(require('callboard.ui.lines').text, tail.lines(state)), '\n')
  end

  it('is a list of boxes', function()
    local lines = shown({
      { content = 'a', status = 'completed' },
      { content = 'b', status = 'in_progress' },
      { content = 'c\nd', status = 'pending' },
    })
    assert.matches('Plan: 1 of 3 done\n  %[x%] a\n  %[>%] b\n  %[ %] c d$', lines)
  end)

  it('is short when it is long: what is done is counted', function()
    local entries = {}
    for i = 1, 40 do
      entries[i] = { content = 'step ' .. i, status = i <= 10 and 'completed' or 'pending' }
    end
    local lines = shown(entries)
    assert.matches('Plan: 10 of 40 done\n  %[ %] step 11\n', lines)
    assert.matches('  … 18 more$', lines)
  end)

  it('is one line while something is asked, which needs the room', function()
    local entries = { { content = 'a', status = 'pending' } }
    assert.matches('Plan: 0 of 1 done$', shown(entries, { state = 'waiting_approval' }))
  end)

  it('goes when it is done and nothing runs', function()
    local done = { { content = 'a', status = 'completed' } }
    assert.is_nil(shown(done):find('Plan', 1, true))
    assert.matches('Plan: 1 of 1', shown(done, { state = 'running' }))
  end)
end)

--- One server and what of its store this editor follows, joined; the server is one that does what the spec says.
local fake_server = require('fake_server')

describe('the app', function()
  local App, app, servers, kept, notes, emitted, group

  before_each(function()
    kept = {}
    for _, name in ipairs({
      'app',
      'wiring',
      'status',
      'notify',
      'catalog',
      'questions',
      'session',
      'reading',
      'config',
      'ui.approval',
    }) do
      kept[name] = package.loaded['callboard.' .. name]
      package.loaded['callboard.' .. name] = nil
    end
    notes = {}
    local real = require('callboard.notify')
    local function note(text)
      table.insert(notes, text)
    end
    package.loaded['callboard.notify'] = setmetatable(
      { info = note, warn = note, error = note },
      { __index = real }
    )
    real.error, real.warn = note, note
    package.loaded['callboard.ui.approval'] = { watch = function() end }
    servers = fake_server.new()
    package.loaded['callboard.wiring'] = {
      supervisor = function(of)
        servers.env.changed = function()
          of:server_changed()
        end
        servers.env.ready = function(handshake)
          of:ready(handshake)
        end
        servers.env.notification = function(method, params)
          of:notification(method, params)
        end
        servers.env.request = function(method, params, reply, id)
          of.questions:asked(method, params, reply, id)
        end
        return servers.supervisor
      end,
    }
    emitted = {}
    group = vim.api.nvim_create_augroup('callboard-app-spec', {})
    vim.api.nvim_create_autocmd('User', {
      group = group,
      pattern = 'Callboard*',
      callback = function(event)
        if event.match ~= 'CallboardStatus' then
          table.insert(emitted, { event.match, event.data })
        end
      end,
    })
    App = require('callboard.app')
  end)

  after_each(function()
    vim.api.nvim_del_augroup_by_id(group)
    pcall(vim.api.nvim_del_augroup_by_name, 'callboard-app')
    for name, module in pairs(kept) do
      package.loaded['callboard.' .. name] = module
    end
    for name in pairs({
      app = 1,
      wiring = 1,
      status = 1,
      notify = 1,
      catalog = 1,
      questions = 1,
      session = 1,
      reading = 1,
      config = 1,
    }) do
      package.loaded['callboard.' .. name] = kept[name]
    end
    package.loaded['callboard.ui.approval'] = kept['ui.approval']
  end)

  ---@param id string
  ---@param fields table?
  local function record(id, fields)
    return vim.tbl_extend('force', {
      sessionId = id,
      rootId = id,
      status = 'idle',
      updatedAt = '2030-01-01T10:00:00Z',
      pendingApprovals = 0,
    }, fields or {})
  end

  ---@param id string
  ---@param fields table?
  local function approval(id, fields)
    return vim.tbl_extend('force', {
      approvalId = id,
      sessionId = 'ses_1',
      rootId = 'ses_1',
      createdAt = '2030-01-01T10:00:00Z',
      title = 'Run ' .. id,
      state = 'pending',
      options = {},
    }, fields or {})
  end

  ---Answers what the app asks when a server is there.
  ---@param sessions table[]?
  ---@param approvals table[]?
  local function serve(sessions, approvals)
    local client = servers:client()
    client:greet({ features = { agents = true, groups = false } })
    client:answer('event/subscribe', { subscriptionId = 'catalog', cursor = 'store.1' })
    client:answer('event/subscribe', { subscriptionId = 'approvals', cursor = 'store.1' })
    client:answer('session/list', { data = sessions or {} })
    client:answer('approval/list', { data = approvals or {} })
    return client
  end

  local function ready(...)
    app = App.get()
    return serve(...)
  end

  ---@param scope string
  ---@param event table
  local function happens(scope, event)
    servers:client().handlers.notification('event/batch', {
      subscriptionId = scope,
      cursor = 'store.2',
      events = { event },
    })
  end

  it('is one, and starts a server with its first use', function()
    assert.is_nil(App.peek())
    app = App.get()
    assert.equal(app, App.get())
    assert.equal(app, App.peek())
    assert.equal(1, #servers.clients)
    assert.equal('starting', app.server.state)
  end)

  it('lists what is there, and follows it from before that', function()
    local client = ready({ record('ses_1') }, { approval('apr_1') })
    local methods = vim.tbl_map(function(message)
      return message.method
    end, client.sent)
    assert.same({
      'initialize',
      'initialized',
      'event/subscribe',
      'event/subscribe',
      'session/list',
      'approval/list',
    }, methods)
    local scopes = vim.tbl_map(function(message)
      return { message.params.scope.kind, message.params.from, message.params.deltas }
    end, client:requests('event/subscribe'))
    assert.same({ { 'catalog', 'now', false }, { 'approvals', 'now', false } }, scopes)
    assert.is_table(app.sessions.by_id.ses_1)
    assert.is_true(app.sessions.loaded)
    assert.equal(1, #app.approvals.pending)
    assert.is_true(app:feature('agents'))
    assert.is_false(app:feature('groups'))
    assert.is_false(app:feature('nothing'))
  end)

  it('lists all approvals, however many pages', function()
    app = App.get()
    local client = servers:client()
    client:greet()
    client:answer('event/subscribe', { subscriptionId = 'catalog', cursor = 'store.1' })
    client:answer('event/subscribe', { subscriptionId = 'approvals', cursor = 'store.1' })
    client:answer('approval/list', { data = { approval('apr_1') }, nextCursor = '5' })
    assert.equal(0, #app.approvals.pending)
    assert.equal('5', client:requests('approval/list')[2].params.cursor)
    client:answer('approval/list', { data = { approval('apr_2') } })
    assert.equal(2, #app.approvals.pending)
  end)

  it('asks for a session that changed, once for many changes at a time', function()
    local client = ready()
    for i = 1, 5 do
      happens(
        'catalog',
        { type = 'session_updated', sessionId = 'ses_1', seq = i, data = { changes = {} } }
      )
    end
    assert.equal(1, #client:requests('session/get'))
    client:answer('session/get', { session = record('ses_1', { title = 'one' }) })
    assert.equal('one', app.sessions.by_id.ses_1.title)
    assert.equal(2, #client:requests('session/get'))
    client:answer('session/get', { session = record('ses_1', { title = 'two' }) })
    assert.equal('two', app.sessions.by_id.ses_1.title)
    assert.equal(2, #client:requests('session/get'))
  end)

  it('forgets a session that is gone, and what it asked', function()
    ready({ record('ses_1') }, { approval('apr_1') })
    happens('catalog', { type = 'session_deleted', sessionId = 'ses_1', seq = 9, data = {} })
    assert.is_nil(app.sessions.by_id.ses_1)
    assert.same({}, app.approvals.pending)
    app:refresh('ses_2')
    app.sessions.by_id.ses_2 = record('ses_2')
    servers
      :client()
      :answer('session/get', nil, { code = 0, message = '', data = { kind = 'sessionNotFound' } })
    assert.is_nil(app.sessions.by_id.ses_2)
  end)

  it('tells those who listen, until they do not', function()
    app = App.get()
    local told = {}
    local function listener()
      table.insert(told, app.server.state)
    end
    local off = app:on('server', listener)
    local off_too = app:on('server', listener)
    serve()
    assert.same({ 'ready', 'ready' }, told)
    off()
    servers:client():exit()
    assert.same({ 'ready', 'ready', 'waiting' }, told)
    off_too()
    servers:pass(1000)
    assert.equal(3, #told)
  end)

  it('says that the server is back, and lists anew', function()
    ready({ record('ses_1'), record('ses_2') }, { approval('apr_1') })
    assert.same({}, notes)
    app.sessions.by_id.child = record('child', { parentId = 'ses_1' })
    servers:client():exit()
    servers:pass(1000)
    serve({ record('ses_2') }, {})
    assert.same({ 'the server is back; everything goes on where it was' }, notes)
    assert.is_nil(app.sessions.by_id.ses_1)
    assert.is_table(app.sessions.by_id.child)
    assert.same({}, app.approvals.pending)
    assert.equal('store.1', servers:client():requests('event/subscribe')[1].params.from)
  end)

  it('says once that there is no server, with its last lines, whatever waited for it', function()
    app = App.get()
    local told = 0
    for _ = 1, 3 do
      app:change('session/update', {}, 'rename the session', function()
        told = told + 1
      end)
    end
    for i = 1, 5 do
      servers:client():exit({ stderr = { '1', '2', '3', '4', '5', 'the last' } })
      servers:pass(i < 5 and 8000 or 0)
    end
    assert.equal(1, #notes)
    assert.is_truthy(notes[1]:find('5 times in a row', 1, true))
    assert.is_truthy(notes[1]:find('\n2\n3\n4\n5\nthe last', 1, true))
    assert.equal(0, told)
    -- and once more for each thing that is wanted after that
    local now = vim.uv.now
    vim.uv.now = function()
      return now() + 2000
    end
    for _ = 1, 3 do
      app:change('session/update', {}, 'rename the session')
    end
    servers:pass(0)
    vim.uv.now = now
    assert.equal(2, #notes)
    assert.is_nil(notes[2]:find('rename', 1, true))
  end)

  it('says once why a server does not serve for now', function()
    app = App.get()
    for _ = 1, 3 do
      servers:client():answer('initialize', nil, {
        message = 'the store is busy',
        data = { kind = 'storeBusy', retryable = true },
      })
      servers:client():exit({ code = 0 })
      servers:pass(8000)
    end
    assert.same({ 'the store is busy\nIt is tried again for a while.' }, notes)
    serve()
    assert.equal(1, #notes)
  end)

  it('says nothing of a server that dies: the next is there in a moment', function()
    ready()
    servers:client():exit()
    assert.same({}, notes)
  end)

  it('starts following anew when its cursor is of no use', function()
    ready({ record('ses_1') })
    servers:client():exit()
    servers:pass(1000)
    local client = servers:client()
    client:greet()
    client:answer(
      'event/subscribe',
      nil,
      { code = 0, message = '', data = { kind = 'invalidCursor' } }
    )
    local asked = client:requests('event/subscribe')
    assert.equal(3, #asked)
    assert.same({ 'catalog', 'now' }, { asked[3].params.scope.kind, asked[3].params.from })
  end)

  it('asks for changes with keys of its own', function()
    local client = ready()
    for _ = 1, 2 do
      app:change('session/update', { sessionId = 'ses_1', title = 'x' }, 'rename the session')
    end
    local one, two = unpack(client:requests('session/update'))
    assert.is_string(one.params.idempotencyKey)
    assert.not_equal(one.params.idempotencyKey, two.params.idempotencyKey)
    client:answer(
      'session/update',
      nil,
      { code = 0, message = 'it is closed', data = { kind = 'sessionClosed' } }
    )
    assert.same(
      { 'could not rename the session: it is closed\nBegin another one with :Callboard new.' },
      notes
    )
  end)

  describe('is asked for an approval', function()
    local client, reply

    before_each(function()
      client = ready()
      client.handlers.request('approval/request', { approval = approval('apr_1') }, function(result)
        reply = result
      end, 's1')
      reply = nil
    end)

    local function answer(done)
      app:answer(
        approval('apr_1'),
        { optionId = 'allow_once', kind = 'allow_once', name = '' },
        'why not',
        done
      )
    end

    it('and keeps the question open, once, however it comes', function()
      happens(
        'approvals',
        { type = 'approval_request', sessionId = 'ses_1', data = { approval = approval('apr_1') } }
      )
      assert.equal(1, #app.approvals.pending)
      assert.is_nil(reply)
      local requested = vim.tbl_filter(function(each)
        return each[1] == 'CallboardApprovalRequested'
      end, emitted)
      assert.equal(1, #requested)
    end)

    it('and answers it by the method that tells who was first', function()
      local told
      answer(function(err)
        told = err or 'answered'
      end)
      local params = client:requests('approval/answer')[1].params
      assert.same(
        { 'apr_1', 'allow_once', 'why not' },
        { params.approvalId, params.optionId, params.feedback }
      )
      assert.equal(1, #app.approvals.pending)
      client:answer('approval/answer', { approval = {} })
      assert.same({ defer = true }, reply)
      assert.same({}, app.approvals.pending)
      assert.equal('answered', told)
      assert.same({}, notes)
    end)

    it('and hears who was first when it was somebody else', function()
      answer()
      client:answer('approval/answer', nil, {
        code = -31302,
        message = 'it was rejected already',
        data = {
          kind = 'alreadyResolved',
          resolution = { outcome = 'rejected', by = { kind = 'client', name = 'VS Code' } },
        },
      })
      assert.same({ 'Run apr_1 was rejected by VS Code already' }, notes)
      assert.same({}, app.approvals.pending)
    end)

    it('and keeps it when the answer was none', function()
      answer()
      client:answer(
        'approval/answer',
        nil,
        { code = 0, message = 'no such option', data = { kind = 'optionInvalid' } }
      )
      assert.equal(1, #app.approvals.pending)
      assert.same({ 'could not answer Run apr_1: no such option' }, notes)
      assert.is_nil(reply)
    end)

    it('and lets go of it when it is decided elsewhere', function()
      happens('approvals', {
        type = 'approval_decision',
        sessionId = 'ses_1',
        data = {
          approvalId = 'apr_1',
          callId = 'c',
          resolution = { outcome = 'allowed', by = { name = 'x' } },
        },
      })
      assert.same({}, app.approvals.pending)
      assert.same({ defer = true }, reply)
    end)

    it('and lets go of the question when the server does', function()
      client.handlers.notification('$/cancelRequest', { id = 'other' })
      assert.is_nil(reply)
      client.handlers.notification('$/cancelRequest', { id = 's1' })
      assert.same({ defer = true }, reply)
      assert.equal(1, #app.approvals.pending)
    end)
  end)

  it('says that it has no method that it does not have', function()
    local client, err = ready(), nil
    client.handlers.request('workspace/applyEdit', {}, function(_, told)
      err = told
    end, 1)
    assert.equal(-32601, err.code)
  end)

  it('follows a session while somebody uses it', function()
    local client = ready()
    local one = app:use('ses_1')
    assert.equal(one, app:use('ses_1'))
    assert.equal(1, #client:requests('session/get'))
    client:answer('session/get', { session = record('ses_1') })
    client:answer('event/list', { data = {}, cursor = 'store.3' })
    client:answer('event/subscribe', { subscriptionId = 'mine', cursor = 'store.3' })
    app:release('ses_1')
    assert.equal(0, #client:requests('event/unsubscribe'))
    app:release('ses_1')
    app:release('ses_1')
    assert.same({ subscriptionId = 'mine' }, client:requests('event/unsubscribe')[1].params)
    assert.not_equal(one, app:use('ses_1'))
  end)

  it('brings sessions back that were lost for want of a server', function()
    servers.found, servers.fault = nil, 'nowhere'
    app = App.get()
    local session = app:use('ses_1')
    servers:pass(0)
    assert.equal('lost', session.phase)
    assert.equal('nowhere', session.fault)
    servers.found = { cmd = { '/bin/callboard', 'serve' }, how = 'PATH' }
    app.server:restart()
    servers:client():greet()
    assert.equal('loading', session.phase)
  end)
end)

--- One server is kept running, and nothing that was asked is lost or done twice.
local fake_server = require('fake_server')

describe('a supervisor', function()
  local servers, supervisor, answers

  before_each(function()
    servers = fake_server.new()
    supervisor = servers.supervisor
    answers = {}
  end)

  ---@param name string
  ---@return fun(err: table?, result: any)
  local function keep(name)
    return function(err, result)
      table.insert(answers, { name, err and err.data.kind or result.said })
    end
  end

  ---Asks for something, so that a server starts, and lets it be ready.
  local function ready()
    supervisor:start()
    servers:client():greet()
    assert.equal('ready', supervisor.state)
  end

  it('starts nothing by itself, and a server with the first request', function()
    assert.equal('stopped', supervisor.state)
    assert.equal(0, #servers.clients)
    supervisor:request('server/ping', nil, keep('ping'))
    assert.equal('starting', supervisor.state)
    assert.same({ '/bin/callboard', 'serve' }, servers:client().cmd)
    assert.equal(1, #servers.clients)
  end)

  it('asks what was wanted before once the server is ready, in order', function()
    for i = 1, 3 do
      supervisor:request('m/' .. i, { i = i }, keep('m' .. i))
    end
    local client = servers:client()
    assert.equal(1, #client.sent)
    assert.same({ hello = true }, client:requests('initialize')[1].params)
    client:greet()
    local methods = vim.tbl_map(function(message)
      return message.method
    end, client.sent)
    assert.same({ 'initialize', 'initialized', 'm/1', 'm/2', 'm/3' }, methods)
    client:answer('m/2', 'two')
    client:answer('m/1', 'one')
    assert.same({ { 'm2', 'two' }, { 'm1', 'one' } }, answers)
    assert.equal(1, servers.greeted)
    assert.same({ 'starting', 'ready' }, servers.states)
  end)

  it('tells who follows before it asks what had waited', function()
    servers.on_ready = function()
      supervisor:request('event/subscribe', {}, keep('subscribed'))
    end
    supervisor:request('m/1', {}, keep('m1'))
    servers:client():greet()
    local methods = vim.tbl_map(function(message)
      return message.method
    end, servers:client().sent)
    assert.same({ 'initialize', 'initialized', 'event/subscribe', 'm/1' }, methods)
  end)

  it('has no timer while all is well', function()
    ready()
    assert.same({}, servers:pending())
    servers:pass(3600 * 1000)
    assert.equal('ready', supervisor.state)
    assert.equal(1, #servers.clients)
  end)

  it(
    'starts a server that died again after 1, 2, 4 and 8 s, and gives up with the fifth',
    function()
      ready()
      for _, pause in ipairs({ 1000, 2000, 4000, 8000 }) do
        servers:client():exit({ code = 3, stderr = { 'oh', 'no' } })
        assert.equal('waiting', supervisor.state)
        assert.same({ pause }, servers:pending())
        assert.is_truthy(supervisor.failure.message:find('ended with code 3', 1, true))
        assert.same({ 'oh', 'no' }, supervisor.failure.lines)
        local count = #servers.clients
        servers:pass(pause - 1)
        assert.equal(count, #servers.clients)
        servers:pass(1)
        assert.equal(count + 1, #servers.clients)
        assert.equal('starting', supervisor.state)
      end
      servers:client():exit({ code = 3, stderr = { 'the', 'last', 'words' } })
      assert.equal('failed', supervisor.state)
      assert.same({}, servers:pending())
      assert.is_truthy(supervisor.failure.message:find('5 times in a row', 1, true))
      assert.is_truthy(supervisor.failure.message:find(':Callboard restart', 1, true))
      assert.same({ 'the', 'last', 'words' }, supervisor.failure.lines)
      servers:pass(3600 * 1000)
      assert.equal(5, #servers.clients)
    end
  )

  it('forgets deaths that were long ago', function()
    ready()
    for _ = 1, 20 do
      servers:client():exit()
      assert.equal('waiting', supervisor.state)
      servers:pass(1000)
      servers:client():greet()
      assert.equal('ready', supervisor.state)
      servers:pass(180000)
    end
  end)

  it('counts deaths within three minutes, also of servers that had served', function()
    ready()
    for i = 1, 5 do
      servers:client():exit()
      if i < 5 then
        servers:pass(8000)
        servers:client():greet()
      end
    end
    assert.equal('failed', supervisor.state)
  end)

  it('begins anew when it is told to, after it gave up', function()
    ready()
    for _ = 1, 5 do
      servers:client():exit()
      servers:pass(8000)
    end
    assert.equal('failed', supervisor.state)
    supervisor:restart()
    assert.equal('starting', supervisor.state)
    assert.is_nil(supervisor.failure)
    servers:client():greet()
    servers:client():exit()
    assert.equal('waiting', supervisor.state)
    assert.same({ 1000 }, servers:pending())
  end)

  it('starts at once when it is told to while it waits', function()
    ready()
    servers:client():exit()
    supervisor:restart()
    assert.equal(2, #servers.clients)
    servers:client():greet()
    servers:pass(10000)
    assert.equal(2, #servers.clients)
  end)

  it('ends a server that runs before it starts another', function()
    ready()
    supervisor:request('m/1', {}, keep('m1'))
    supervisor:restart()
    local first = servers:client()
    assert.is_true(first.stopping)
    assert.equal(1, #servers.clients)
    first:exit({ code = 0 })
    assert.equal(2, #servers.clients)
    assert.same({ { code = 0, expected = true } }, servers.exits)
    servers:client():greet()
    servers:client():answer('m/1', 'done')
    assert.same({ { 'm1', 'done' } }, answers)
  end)

  it('restarts one that is just starting, and is not greeted by it', function()
    supervisor:start()
    supervisor:restart()
    local first = servers:client()
    first:greet()
    assert.equal(0, servers.greeted)
    first:exit({ code = 0 })
    servers:client():greet()
    assert.equal(1, servers.greeted)
    assert.equal('ready', supervisor.state)
  end)

  it(
    'asks again of the next server what the last did not answer, with the same key and in order',
    function()
      ready()
      supervisor:request('session/prompt', { idempotencyKey = 'key.1' }, keep('one'))
      supervisor:request('session/get', { sessionId = 'a' }, keep('two'))
      supervisor:request('session/list', {}, keep('three'))
      servers:client():answer('session/get', 'got')
      servers:client():exit()
      supervisor:request('later', {}, keep('four'))
      assert.same({ { 'two', 'got' } }, answers)
      servers:pass(1000)
      servers:client():greet()
      local sent = vim.tbl_map(function(message)
        return { message.method, message.params }
      end, vim.list_slice(servers:client().sent, 3))
      assert.same({
        { 'session/prompt', { idempotencyKey = 'key.1' } },
        { 'session/list', {} },
        { 'later', {} },
      }, sent)
      servers:client():answer('session/prompt', 'prompted')
      servers:client():answer('session/list', 'listed')
      servers:client():answer('later', 'late')
      assert.same(
        { { 'two', 'got' }, { 'one', 'prompted' }, { 'three', 'listed' }, { 'four', 'late' } },
        answers
      )
    end
  )

  it('tells those who do not want that, once', function()
    ready()
    supervisor:request('event/subscribe', {}, keep('once'), { once = true })
    servers:client():exit()
    assert.same({ { 'once', 'serverGone' } }, answers)
    servers:pass(1000)
    servers:client():greet()
    assert.same({}, servers:client():requests('event/subscribe'))
    assert.equal(1, #answers)
  end)

  it('lets whoever is told so ask at once', function()
    ready()
    supervisor:request('m/1', {}, function()
      supervisor:request('m/2', {}, keep('m2'))
    end, { once = true })
    servers:client():exit()
    assert.same({}, servers.faults)
    servers:pass(1000)
    servers:client():greet()
    servers:client():answer('m/2', 'two')
    assert.same({ { 'm2', 'two' } }, answers)
  end)

  it('asks the next server for what waits for it, even if not to be asked twice', function()
    ready()
    servers:client():exit()
    supervisor:request('event/subscribe', {}, keep('once'), { once = true })
    servers:pass(1000)
    servers:client():greet()
    servers:client():answer('event/subscribe', 'there')
    assert.same({ { 'once', 'there' } }, answers)
  end)

  it('tells nobody who has gone', function()
    ready()
    local cancel = supervisor:request('m/1', {}, keep('m1'))
    local id = servers:client():requests('m/1')[1].id
    cancel()
    assert.same({ id = id }, servers:client():requests('$/cancelRequest')[1].params)
    servers:client():answer('m/1', 'one')
    supervisor:request('m/2', {}, keep('m2'), { once = true })()
    supervisor:request('m/3', {}, keep('m3'))()
    servers:client():exit()
    local waiting = supervisor:request('m/4', {}, keep('m4'))
    waiting()
    servers:pass(1000)
    servers:client():greet()
    assert.same({}, servers:client():requests('m/3'))
    assert.same({}, servers:client():requests('m/4'))
    assert.same({}, answers)
  end)

  it('goes on when a callback throws', function()
    ready()
    supervisor:request('m/1', {}, function()
      error('broken')
    end, { once = true })
    supervisor:request('m/2', {}, keep('m2'), { once = true })
    servers:client():exit()
    assert.equal(1, #servers.faults)
    assert.same({ { 'm2', 'serverGone' } }, answers)
  end)

  describe('that finds no server', function()
    before_each(function()
      servers.found, servers.fault = nil, 'it is nowhere; install it'
    end)

    it('says why, to the one who asked', function()
      supervisor:request('m/1', {}, keep('m1'))
      assert.equal('failed', supervisor.state)
      assert.same({}, answers) -- not before `request` has returned
      servers:pass(0)
      assert.same({ { 'm1', 'noServer' } }, answers)
      assert.equal('it is nowhere; install it', supervisor.failure.message)
    end)

    it('does not look again with each request, but when it is told to', function()
      supervisor:request('m/1', {}, keep('m1'))
      supervisor:request('m/2', {}, keep('m2'))
      servers:pass(0)
      assert.same({ { 'm1', 'noServer' }, { 'm2', 'noServer' } }, answers)
      servers.found = { cmd = { '/bin/callboard', 'serve' }, how = 'PATH' }
      supervisor:request('m/3', {}, keep('m3'))
      assert.equal(0, #servers.clients)
      supervisor:restart()
      servers:client():greet()
      assert.equal('ready', supervisor.state)
    end)
  end)

  it('says why a server cannot be started, and the way out', function()
    servers.refuses = 'EACCES: permission denied'
    supervisor:request('m/1', {}, keep('m1'))
    servers:pass(0)
    assert.same({ { 'm1', 'noServer' } }, answers)
    for _, words in ipairs({
      '/bin/callboard',
      'permission denied',
      'server.cmd',
      ':Callboard restart',
    }) do
      assert.is_truthy(supervisor.failure.message:find(words, 1, true), words)
    end
  end)

  it('tells those who wait when it gives up that this was told already', function()
    local told
    supervisor:request('m/1', {}, function(err)
      told = err.data.told
    end)
    servers:client():answer('initialize', nil, { message = 'no', data = { kind = 'storeVersion' } })
    servers:client():exit({ code = 0 })
    assert.is_true(told)
    supervisor:request('m/2', {}, function(err)
      told = err.data.told
    end)
    servers:pass(0)
    assert.is_nil(told)
  end)

  describe('that is refused', function()
    ---@param err table
    local function refused(err)
      supervisor:request('m/1', {}, keep('m1'))
      servers:client():answer('initialize', nil, err)
      assert.is_true(servers:client().stopping)
      servers:client():exit({ code = 0, stderr = { 'said' } })
    end

    it('for its version gives up at once and names both ways to update', function()
      refused({
        message = 'the server speaks 2.0',
        data = { kind = 'unsupportedVersion', retryable = false },
      })
      assert.equal('failed', supervisor.state)
      local version = require('callboard.protocol').PROTOCOL_VERSION
      for _, words in ipairs({ 'the server speaks 2.0', version, 'callboard editor path nvim' }) do
        assert.is_truthy(supervisor.failure.message:find(words, 1, true), words)
      end
      assert.same({ { 'm1', 'noServer' } }, answers)
      assert.same({}, servers:pending())
    end)

    it('for a store that is newer gives up at once and says to update', function()
      refused({
        message = 'the store has version 99; upgrade Callboard',
        data = { kind = 'storeVersion', retryable = false },
      })
      assert.equal('failed', supervisor.state)
      assert.is_truthy(supervisor.failure.message:find('the store has version 99', 1, true))
      assert.is_truthy(supervisor.failure.message:find(':Callboard restart', 1, true))
      assert.same({ 'said' }, supervisor.failure.lines)
    end)

    it('for a while tries again', function()
      refused({ message = 'the store is locked', data = { kind = 'storeBusy', retryable = true } })
      assert.equal('waiting', supervisor.state)
      assert.is_truthy(supervisor.failure.message:find('the store is locked', 1, true))
      servers:pass(1000)
      servers:client():greet()
      servers:client():answer('m/1', 'one')
      assert.same({ { 'm1', 'one' } }, answers)
    end)

    it('by a Python that has it is not told that there is none', function()
      servers.found =
        { cmd = { '/bin/python3', '-m', 'callboard', 'serve' }, how = 'a Python', guess = true }
      refused({ message = 'the store is locked', data = { kind = 'storeBusy', retryable = true } })
      assert.equal('waiting', supervisor.state)
    end)
  end)

  it('takes a language server for what it is', function()
    supervisor:start()
    servers:client():answer('initialize', { capabilities = { hoverProvider = true } })
    servers:client():exit({ code = 0 })
    assert.equal('failed', supervisor.state)
    assert.is_truthy(supervisor.failure.message:find('another program', 1, true))
    assert.is_truthy(supervisor.failure.message:find('server.cmd', 1, true))
  end)

  it('takes a program that gives back what it reads for what it is', function()
    supervisor:start()
    servers:client().handlers.request('initialize', {}, function() end, 1)
    assert.is_true(servers:client().stopping)
    servers:client():exit({ code = 0 })
    assert.equal('failed', supervisor.state)
    assert.is_truthy(supervisor.failure.message:find('another program', 1, true))
  end)

  it('speaks with no server of another version, and with one of a newer minor one', function()
    supervisor:start()
    servers:client():greet({ protocolVersion = '2.0' })
    servers:client():exit({ code = 0 })
    assert.equal('failed', supervisor.state)
    assert.is_truthy(supervisor.failure.message:find('version 2.0', 1, true))
    assert.is_truthy(supervisor.failure.message:find('Update both', 1, true))
    supervisor:restart()
    servers:client():greet({ protocolVersion = '1.7', features = 'none', serverInfo = 7 })
    assert.equal('ready', supervisor.state)
    assert.same({}, supervisor.handshake.features)
    assert.same({}, supervisor.handshake.serverInfo)
  end)

  it('gives up on a program that prints something else', function()
    supervisor:start()
    servers:client():exit({ code = 0, signal = 15, garbage = 'Welcome to \27[1mbash\n\n' })
    assert.equal('failed', supervisor.state)
    assert.is_truthy(
      supervisor.failure.message:find('it printed "Welcome to <1B>[1mbash"', 1, true)
    )
    assert.is_truthy(supervisor.failure.message:find('server.cmd', 1, true))
    assert.equal(1, #servers.clients)
  end)

  it('gives up on one that prints something else later, too', function()
    ready()
    servers:client():exit({ code = 0, signal = 15, garbage = 'debug: 1\n' })
    assert.equal('failed', supervisor.state)
  end)

  it('ends a server that does not answer in 20 s, and says so', function()
    supervisor:start()
    servers:pass(19999)
    assert.same({}, servers:client().signals)
    servers:pass(1)
    assert.same({ 'sigkill' }, servers:client().signals)
    servers:client():exit({ signal = 9 })
    assert.equal('waiting', supervisor.state)
    assert.is_truthy(supervisor.failure.message:find('did not answer within 20 s', 1, true))
    servers:pass(1000)
    servers:client():exit()
    assert.is_falsy(supervisor.failure.message:find('20 s', 1, true))
  end)

  it('says that Callboard is missing when Python says so', function()
    servers.found =
      { cmd = { '/bin/python3', '-m', 'callboard', 'serve' }, how = 'a Python', guess = true }
    supervisor:start()
    servers:client():exit({ stderr = { '/bin/python3: No module named callboard' } })
    assert.equal('failed', supervisor.state)
    for _, words in ipairs({ 'was not found', '/work', 'pip install callboard' }) do
      assert.is_truthy(supervisor.failure.message:find(words, 1, true), words)
    end
  end)

  it('takes a Callboard in a Python that crashes for one that crashes', function()
    servers.found =
      { cmd = { '/bin/python3', '-m', 'callboard', 'serve' }, how = 'a Python', guess = true }
    supervisor:start()
    servers:client():exit({ stderr = { 'Segmentation fault' } })
    assert.equal('waiting', supervisor.state)
  end)

  it('tells by which signal a server ended', function()
    ready()
    servers:client():exit({ code = 0, signal = 9 })
    assert.is_truthy(supervisor.failure.message:find('signal 9', 1, true))
    assert.same({ { code = 0, expected = false } }, servers.exits)
  end)

  it('passes on what the server says, and notifies it only while it is there', function()
    ready()
    servers:client().handlers.notification('event/batch', { a = 1 })
    assert.same({ { 'event/batch', { a = 1 } } }, servers.heard)
    supervisor:notify('event/ack', { cursor = 'x' })
    assert.equal(1, #servers:client():requests('event/ack'))
    servers:client():exit()
    supervisor:notify('event/ack', { cursor = 'y' })
    servers:pass(1000)
    supervisor:notify('event/ack', { cursor = 'z' })
    assert.equal(0, #servers:client():requests('event/ack'))
  end)

  it('starts no other server when Neovim leaves', function()
    ready()
    supervisor:leave(500)
    assert.equal(500, servers:client().left)
    servers:client():exit({ code = 0 })
    assert.equal('stopped', supervisor.state)
    supervisor:request('m/1', {}, keep('m1'))
    servers:pass(60000)
    assert.equal(1, #servers.clients)
  end)

  it('leaves while it waits for the next start', function()
    ready()
    servers:client():exit()
    supervisor:leave(500)
    servers:pass(60000)
    assert.equal(1, #servers.clients)
  end)
end)

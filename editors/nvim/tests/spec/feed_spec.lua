--- Whoever follows sees every event once and in order, however many servers there were.
local Feed = require('callboard.rpc.feed')

describe('following', function()
  local server, feed, seen

  before_each(function()
    seen = {}
    server = { state = 'ready', asked = {}, notified = {} }
    function server:request(method, params, callback, opts)
      table.insert(self.asked, {
        method = method,
        params = vim.deepcopy(params),
        callback = callback,
        once = opts and opts.once,
      })
    end
    function server:notify(method, params)
      table.insert(self.notified, { method, params })
    end
    feed = Feed.new(server)
  end)

  ---@param more table?
  ---@return table
  local function follower(more)
    return vim.tbl_extend('force', {
      scope = { kind = 'session', id = 'ses_1' },
      cursor = 'store.5',
      deltas = true,
      on_events = function(events, batch)
        for _, event in ipairs(events) do
          table.insert(seen, event)
        end
        table.insert(seen, batch.cursor)
      end,
      on_delta = function(delta)
        table.insert(seen, 'delta ' .. delta.text)
      end,
      on_live = function()
        table.insert(seen, 'live')
      end,
      on_lost = function(err)
        table.insert(seen, 'lost ' .. err.data.kind)
      end,
    }, more or {})
  end

  ---The last request that was made.
  ---@return table
  local function last()
    return server.asked[#server.asked]
  end

  ---@param id string
  ---@param cursor string?
  local function answer(id, cursor)
    last().callback(
      nil,
      { subscriptionId = id, cursor = cursor or last().params.from, head = 'store.9' }
    )
  end

  ---@param id string
  ---@param cursor string
  ---@param events any[]
  local function batch(id, cursor, events)
    return feed:notification(
      'event/batch',
      { subscriptionId = id, cursor = cursor, events = events }
    )
  end

  local function acks()
    return vim.tbl_map(function(each)
      assert.equal('event/ack', each[1])
      return each[2].subscriptionId .. ' ' .. each[2].cursor
    end, server.notified)
  end

  ---A server died, and another one is there.
  local function restart()
    server.state = 'waiting'
    local asked = server.asked
    server.asked = {}
    for _, request in ipairs(asked) do
      if request.once then
        request.callback({ code = 0, message = 'gone', data = { kind = 'serverGone' } })
      end
    end
    server.state = 'ready'
    feed:resume()
  end

  it('asks for what it wants', function()
    feed:follow(follower({ types = { 'turn_finished' } }))
    assert.equal('event/subscribe', last().method)
    assert.same({
      scope = { kind = 'session', id = 'ses_1' },
      from = 'store.5',
      types = { 'turn_finished' },
      deltas = true,
    }, last().params)
    assert.is_true(last().once)
  end)

  it('says when it wants no deltas: the server sends them unless it is told', function()
    feed:follow({ scope = { kind = 'catalog' }, cursor = 'now', on_events = function() end })
    assert.is_false(last().params.deltas)
  end)

  it('tells events and acknowledges each batch after it was handled', function()
    feed:follow(follower({
      on_events = function(events)
        assert.same({}, server.notified)
        vim.list_extend(seen, events)
      end,
    }))
    answer('sub_1')
    assert.is_true(batch('sub_1', 'store.7', { 'six', 'seven' }))
    assert.same({ 'live', 'six', 'seven' }, seen)
    assert.same({ 'sub_1 store.7' }, acks())
  end)

  it('acknowledges what could not be handled, and says that it could not', function()
    feed:follow(follower({
      on_events = function()
        error('broken')
      end,
    }))
    answer('sub_1')
    local ok, fault = pcall(batch, 'sub_1', 'store.7', { 'seven' })
    assert.is_false(ok)
    assert.is_truthy(fault:find('broken', 1, true))
    assert.same({ 'sub_1 store.7' }, acks())
  end)

  it('waits for a server where there is none', function()
    server.state = 'starting'
    feed:follow(follower())
    assert.same({}, server.asked)
    server.state = 'ready'
    feed:resume()
    assert.equal(1, #server.asked)
    assert.equal('store.5', last().params.from)
  end)

  it('goes on at a new server from where it was', function()
    feed:follow(follower())
    answer('sub_1')
    batch('sub_1', 'store.7', { 'six', 'seven' })
    restart()
    assert.equal('store.7', last().params.from)
    answer('sub_1', 'store.7') -- the new server counts anew
    batch('sub_1', 'store.8', { 'eight' })
    assert.same({ 'live', 'six', 'seven', 'store.7', 'live', 'eight', 'store.8' }, seen)
  end)

  it('goes on from its beginning when the server died before it answered', function()
    feed:follow(follower())
    restart()
    assert.equal(1, #server.asked)
    assert.equal('store.5', last().params.from)
    answer('sub_1')
    assert.same({ 'live' }, seen)
  end)

  it('from now on means from when that was asked, also at the next server', function()
    feed:follow(follower({ cursor = 'now' }))
    answer('sub_1', 'store.20')
    restart()
    assert.equal('store.20', last().params.from)
  end)

  it('does not mix up the answers of two servers', function()
    feed:follow(follower())
    local first = last()
    server.state = 'ready'
    feed:resume()
    answer('sub_2')
    first.callback(nil, { subscriptionId = 'sub_1', cursor = 'store.5' })
    assert.equal('event/unsubscribe', last().method)
    assert.same({ subscriptionId = 'sub_1' }, last().params)
    batch('sub_1', 'store.6', { 'twice' })
    batch('sub_2', 'store.6', { 'six' })
    assert.same({ 'live', 'six', 'store.6' }, seen)
  end)

  for _, reason in ipairs({ 'slow', 'store' }) do
    it('goes on after a reset: ' .. reason, function()
      feed:follow(follower())
      answer('sub_1')
      batch('sub_1', 'store.7', { 'seven' })
      feed:notification(
        'event/reset',
        { subscriptionId = 'sub_1', reason = reason, resumeFrom = 'store.6' }
      )
      assert.equal('event/subscribe', last().method)
      assert.equal('store.6', last().params.from)
      answer('sub_2', 'store.6')
      batch('sub_1', 'store.9', { 'late' })
      batch('sub_2', 'store.8', { 'eight' })
      assert.same({ 'live', 'seven', 'store.7', 'live', 'eight', 'store.8' }, seen)
    end)
  end

  it('goes on at the next server after a reset for a shutdown', function()
    feed:follow(follower())
    answer('sub_1')
    feed:notification(
      'event/reset',
      { subscriptionId = 'sub_1', reason = 'shutdown', resumeFrom = 'store.6' }
    )
    assert.equal(1, #server.asked)
    restart()
    assert.equal('store.6', last().params.from)
  end)

  it('tells who follows when its cursor is of no use, and is over', function()
    feed:follow(follower())
    last().callback({
      code = -31009,
      message = 'of another store',
      data = { kind = 'invalidCursor' },
    })
    assert.same({ 'lost invalidCursor' }, seen)
    restart()
    assert.same({}, server.asked)
  end)

  it('keeps what came before the answer was handled', function()
    feed:follow(follower())
    batch('sub_1', 'store.6', { 'six' })
    feed:notification('event/delta', { subscriptionId = 'sub_1', text = 'x' })
    batch('sub_1', 'store.7', { 'seven' })
    assert.same({}, seen)
    assert.same({}, acks())
    answer('sub_1')
    assert.same({ 'live', 'six', 'store.6', 'seven', 'store.7' }, seen)
    assert.same({ 'sub_1 store.6', 'sub_1 store.7' }, acks())
  end)

  it('tells deltas', function()
    feed:follow(follower())
    answer('sub_1')
    assert.is_true(feed:notification('event/delta', { subscriptionId = 'sub_1', text = 'x' }))
    assert.same({ 'live', 'delta x' }, seen)
  end)

  it('leaves other notifications to others', function()
    assert.is_false(feed:notification('window/logMessage', { message = 'x' }))
    assert.is_true(batch('unknown', 'store.1', {}))
    assert.is_true(feed:notification('event/delta', { text = 'of nobody' }))
  end)

  it('ends when it is closed', function()
    local close = feed:follow(follower())
    answer('sub_1')
    close()
    close()
    assert.equal('event/unsubscribe', last().method)
    assert.equal(2, #server.asked)
    batch('sub_1', 'store.6', { 'late' })
    feed:notification('event/delta', { subscriptionId = 'sub_1', text = 'late' })
    restart()
    assert.same({}, server.asked)
    assert.same({ 'live' }, seen)
  end)

  it('ends when it is closed before the answer', function()
    local close = feed:follow(follower())
    close()
    answer('sub_1')
    assert.equal('event/unsubscribe', last().method)
    batch('sub_1', 'store.6', { 'late' })
    assert.same({}, seen)
  end)

  it('ends when it is closed by what an event does', function()
    local close
    close = feed:follow(follower({
      on_events = function()
        close()
      end,
    }))
    answer('sub_1')
    batch('sub_1', 'store.6', { 'six' })
    assert.same({}, acks())
  end)

  it('of several is told apart', function()
    feed:follow(follower())
    answer('sub_1')
    local other = {}
    feed:follow(follower({
      on_events = function(events)
        vim.list_extend(other, events)
      end,
    }))
    answer('sub_2')
    batch('sub_2', 'store.6', { 'for the second' })
    batch('sub_1', 'store.6', { 'for the first' })
    assert.same({ 'for the second' }, other)
    assert.same({ 'live', 'live', 'for the first', 'store.6' }, seen)
    restart()
    assert.equal(2, #server.asked)
  end)
end)

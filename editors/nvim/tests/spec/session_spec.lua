--- A session that is open here: loaded, followed, asked for what was before, and told things; whatever happens to
--- the server.
local recorded = require('recorded')

describe('a session', function()
  local app, session, updates, events, notify_kept, notes

  local ID = 'ses_000001'

  before_each(function()
    package.loaded['callboard.session'], package.loaded['callboard.reading'] = nil, nil
    notify_kept = package.loaded['callboard.notify']
    notes = {}
    package.loaded['callboard.notify'] = {
      warn = function(text)
        table.insert(notes, text)
      end,
      failed = function(doing, err)
        table.insert(notes, doing .. ': ' .. err.message)
      end,
      guard = function(fn, ...)
        local ok, fault = pcall(fn, ...)
        if not ok then
          table.insert(notes, fault)
        end
        return ok
      end,
    }
    events = recorded.events('steered')
    updates = {}
    app = { asked = {}, followed = {}, put = {}, keys = 0, feed = {} }
    function app:request(method, params, callback)
      table.insert(self.asked, { method = method, params = params, callback = callback })
    end
    function app:put_session(record)
      table.insert(self.put, record)
    end
    function app:new_key()
      self.keys = self.keys + 1
      return 'key.' .. self.keys
    end
    function app:refresh() end
    function app.feed:follow(following) -- luacheck: ignore self
      table.insert(app.followed, following)
      return function()
        following.closed = true
      end
    end
  end)

  after_each(function()
    package.loaded['callboard.notify'] = notify_kept
    package.loaded['callboard.session'], package.loaded['callboard.reading'] = nil, nil
  end)

  local function open()
    session = require('callboard.session').open(app, ID)
    session:listen(function(update)
      table.insert(updates, update)
    end)
  end

  ---The oldest request that nobody has answered.
  ---@param method string
  local function asked(method)
    local request = table.remove(app.asked, 1)
    assert.is_table(request, 'nothing was asked')
    assert.equal(method, request.method)
    return request
  end

  ---@param method string
  ---@param result any
  ---@param err table?
  ---@return table params
  local function answer(method, result, err)
    local request = asked(method)
    request.callback(err, result)
    return request.params
  end

  local RECORD = recorded.said('steered').sessions[1].session

  ---@param record table?
  local function got(record)
    return { session = vim.tbl_extend('force', RECORD, record or {}), cursor = 'store.1' }
  end

  ---@param first integer
  ---@param last integer
  ---@param more boolean?
  local function page(first, last, more)
    return {
      data = vim.list_slice(events, first, last),
      cursor = 'store.' .. last,
      nextCursor = more and 'store.' .. first or nil,
    }
  end

  ---Loads the first so many events.
  ---@param count integer?
  local function load(count)
    open()
    answer('session/get', got())
    answer('event/list', page(1, count or #events))
    updates = {}
  end

  local function following()
    return app.followed[#app.followed]
  end

  local function phases()
    return vim.tbl_map(function(update)
      return update.phase
    end, updates)
  end

  it('asks for what it is, and for its newest events, and follows from there', function()
    open()
    assert.equal('loading', session.phase)
    assert.same({ sessionId = ID }, answer('session/get', got()))
    assert.same({ RECORD }, app.put)
    assert.same({
      scope = { kind = 'session', id = ID },
      before = 'now',
      limit = 200,
    }, answer('event/list', page(1, #events)))
    assert.equal('live', session.phase)
    assert.is_true(session.at_start)
    assert.same({ 'live' }, phases())
    assert.is_true(updates[1].change.reset)
    assert.equal(1, #app.followed)
    assert.same({ kind = 'session', id = ID }, following().scope)
    assert.equal('store.' .. #events, following().cursor)
    assert.is_true(following().deltas)
    assert.equal(RECORD.title, session.transcript.title)
    assert.same(recorded.transcript('steered').items, session.transcript.items)
    assert.same({}, app.asked)
  end)

  it('takes in what comes, once, and tells of it', function()
    load(5)
    following().on_events(vim.list_slice(events, 4, 9))
    assert.equal(9, session.transcript.last_seq)
    assert.equal(1, #updates)
    following().on_events(vim.list_slice(events, 4, 9))
    assert.equal(1, #updates)
    following().on_events(vim.list_slice(events, 10, #events))
    assert.same(recorded.transcript('steered').items, session.transcript.items)
  end)

  it('reads anew when events are missing', function()
    load(5)
    local old = following()
    following().on_events({ events[9] })
    assert.equal('loading', session.phase)
    assert.is_true(old.closed)
    old.on_events({ events[6] })
    answer('session/get', got())
    answer('event/list', page(1, 9))
    assert.equal(9, session.transcript.last_seq)
    assert.equal(2, #app.followed)
  end)

  for _, kind in ipairs({ 'invalidCursor', 'cursorExpired' }) do
    it('reads anew when its cursor is of no use: ' .. kind, function()
      load(5)
      following().on_lost({ code = 0, message = 'x', data = { kind = kind } })
      answer('session/get', got())
      answer('event/list', page(1, 6))
      assert.equal('live', session.phase)
      assert.equal(6, session.transcript.last_seq)
    end)
  end

  it('is lost when it is not there, with the way out', function()
    open()
    answer(
      'session/get',
      nil,
      { code = 0, message = 'there is no session', data = { kind = 'sessionNotFound' } }
    )
    assert.equal('lost', session.phase)
    assert.is_truthy(session.fault:find('there is no session', 1, true))
    assert.is_truthy(session.fault:find(':Callboard sessions', 1, true))
    assert.same({ 'lost' }, phases())
  end)

  it('is lost when it is deleted while it is shown', function()
    load(5)
    following().on_events({
      { type = 'session_deleted', sessionId = ID, seq = 6, eventId = 'e', at = '', data = {} },
    })
    assert.equal('lost', session.phase)
    assert.is_truthy(session.fault:find('was deleted', 1, true))
    assert.is_true(following().closed)
    session:returned()
    assert.equal('lost', session.phase)
  end)

  it('that was lost for want of a server comes back with the next', function()
    open()
    answer(
      'session/get',
      nil,
      { code = 0, message = 'no server', data = { kind = 'noServer', told = true } }
    )
    assert.equal('lost', session.phase)
    session:returned()
    answer('session/get', got())
    answer('event/list', page(1, 3))
    assert.equal('live', session.phase)
    session:returned() -- it follows by itself
    assert.same({}, app.asked)
  end)

  it('shows the turn that runs, though its beginning is not loaded', function()
    open()
    answer('session/get', got({ status = 'running', activeTurnId = 'trn_9' }))
    answer('event/list', page(8, 9, true))
    assert.equal('trn_9', session.transcript.turn.id)
    following().on_live()
    assert.equal('event/list', app.asked[1].method) -- the last plan
    assert.equal('session/get', app.asked[2].method) -- the draft
  end)

  it('asks for the draft of what streams, each time that it follows', function()
    load(4) -- a turn has begun
    assert.is_table(session.transcript.turn)
    following().on_live()
    answer('session/get', {
      session = RECORD,
      draft = {
        turnId = 'trn_000001',
        messageId = 'msg_x',
        answer = 'so far',
        thought = '',
        nextIndex = { answer = 3 },
      },
    })
    assert.equal('so far', session.transcript.by_id.msg_x.text)
    following().on_delta({
      kind = 'answer',
      messageId = 'msg_x',
      turnId = 'trn_000001',
      index = 3,
      text = ', so good',
    })
    assert.equal('so far, so good', session.transcript.by_id.msg_x.text)
    assert.same({ 'msg_x' }, updates[#updates].change.items)
  end)

  ---@param at integer
  ---@param words string
  local function said(at, words)
    return {
      session = RECORD,
      draft = {
        turnId = 'trn_000001',
        messageId = 'msg_x',
        answer = words,
        thought = '',
        nextIndex = { answer = at },
      },
    }
  end

  ---@param index integer
  ---@param text string
  local function streamed(index, text)
    following().on_delta({
      kind = 'answer',
      messageId = 'msg_x',
      turnId = 'trn_000001',
      index = index,
      text = text,
    })
  end

  it('has the first pieces of a turn that begins in the moment in which it is opened', function()
    -- Nothing of the turn is loaded, and nothing streams any more.
    open()
    answer('session/get', got())
    answer('event/list', page(1, 2))
    assert.is_nil(session.transcript.turn)
    following().on_live()
    answer('session/get', said(2, 'so far'))
    assert.is_nil(session.transcript.by_id.msg_x)
    following().on_events({ events[3], events[4] })
    assert.equal('so far', session.transcript.by_id.msg_x.text)
    streamed(2, ', so good')
    assert.equal('so far, so good', session.transcript.by_id.msg_x.text)
  end)

  it('asks for the draft once more when pieces were missing while it was asked for', function()
    load(4)
    following().on_live()
    streamed(3, '4')
    assert.equal(1, #app.asked)
    answer('session/get', said(2, '12')) -- as it was before
    assert.equal('12', session.transcript.by_id.msg_x.text)
    answer('session/get', said(4, '1234'))
    assert.equal('1234', session.transcript.by_id.msg_x.text)
    assert.same({}, app.asked)
  end)

  it('does not ask again and again for a draft that lacks what is missing', function()
    load(4)
    streamed(3, '4')
    answer('session/get', said(2, '12'))
    assert.same({}, app.asked)
    streamed(4, '5')
    answer('session/get', said(5, '12345'))
    assert.equal('12345', session.transcript.by_id.msg_x.text)
    assert.same({}, app.asked)
  end)

  it('asks for the draft once when pieces are missing', function()
    load(4)
    local function piece(index)
      following().on_delta({
        kind = 'answer',
        messageId = 'msg_x',
        turnId = 'trn_000001',
        index = index,
        text = '.',
      })
    end
    piece(2)
    assert.equal(1, #app.asked)
    answer('session/get', {
      session = RECORD,
      draft = {
        turnId = 'trn_000001',
        messageId = 'msg_x',
        answer = 'ab',
        thought = '',
        nextIndex = { answer = 2 },
      },
    })
    assert.equal('ab.', session.transcript.by_id.msg_x.text)
    piece(9)
    assert.equal(1, #app.asked)
  end)

  it('loads what was before, page by page, up to its beginning', function()
    open()
    answer('session/get', got())
    answer('event/list', page(13, 18, true))
    answer('event/list', { data = {} }) -- no plan
    assert.is_false(session.at_start)
    updates = {}
    local loaded
    session:load_older(function(more)
      loaded = more
    end)
    session:load_older(function(more)
      assert.is_false(more) -- one at a time
    end)
    assert.same({ 'store.13', 200 }, { app.asked[1].params.before, app.asked[1].params.limit })
    answer('event/list', page(5, 12, true))
    assert.is_true(loaded)
    assert.is_true(updates[1].change.reset)
    session:load_older()
    answer('event/list', page(1, 4))
    assert.is_true(session.at_start)
    assert.same(recorded.transcript('steered').items, session.transcript.items)
    session:load_older(function(more)
      loaded = more
    end)
    assert.is_false(loaded)
    assert.same({}, app.asked)
  end)

  it('takes in no older page that was asked for before it was read anew', function()
    open()
    answer('session/get', got())
    answer('event/list', page(13, 18, true))
    answer('event/list', { data = {} })
    local loaded
    session:load_older(function(more)
      loaded = more
    end)
    local old = asked('event/list')
    session:load()
    answer('session/get', got())
    answer('event/list', page(15, 18, true))
    old.callback(nil, page(5, 12, true))
    assert.is_false(loaded)
    assert.equal(15, session.transcript.first_seq)
    answer('event/list', { data = {} })
    session:load_older()
    assert.equal('store.15', app.asked[1].params.before)
  end)

  it('says why what was before cannot be loaded, and can be asked again', function()
    open()
    answer('session/get', got())
    answer('event/list', page(13, 18, true))
    answer('event/list', { data = {} })
    session:load_older()
    answer('event/list', nil, { code = 0, message = 'busy', data = { kind = 'overloaded' } })
    assert.same({ 'load what came before: busy' }, notes)
    session:load_older()
    answer('event/list', page(1, 12))
    assert.is_true(session.at_start)
  end)

  it('finds the plan that was made before its first page', function()
    open()
    answer('session/get', got())
    answer('event/list', page(13, 18, true))
    local params = answer('event/list', {
      data = {
        {
          seq = 3,
          type = 'plan_updated',
          data = { entries = { { content = 'p', status = 'pending' } } },
        },
      },
    })
    assert.same({ 'plan_updated' }, params.types)
    assert.equal('store.13', params.before)
    assert.equal('p', session.transcript.plan[1].content)
    assert.is_true(updates[#updates].change.head)
  end)

  it('says something, which is on its way until it is in the log', function()
    load(4)
    local told
    session:prompt(
      { text = 'hello\255', delivery = 'steer', to = 'beta', context = { { uri = 'file:///a' } } },
      function(err)
        told = err or 'sent'
      end
    )
    assert.equal('hello\255', session.outbox.sending[1].text)
    assert.same({ { outbox = true } }, updates)
    local request = asked('session/prompt')
    assert.same({
      sessionId = ID,
      content = { { type = 'text', text = 'hello�' } },
      delivery = 'steer',
      clientMessageId = 'key.1',
      context = { { uri = 'file:///a' } },
      to = 'beta',
      idempotencyKey = 'key.1',
    }, request.params)
    following().on_events({
      vim.tbl_deep_extend('force', events[8], { seq = 5, data = { clientMessageId = 'key.1' } }),
    })
    assert.same({}, session.outbox.sending)
    request.callback(nil, { outcome = 'steered', warning = '@gamma takes no part' })
    assert.equal('sent', told)
    assert.same({ '@gamma takes no part' }, notes)
  end)

  it('gives back what could not be said', function()
    load(4)
    local told
    session:prompt({ text = 'hello' }, function(err)
      told = err.message
    end)
    answer(
      'session/prompt',
      nil,
      { code = 0, message = 'the session is closed', data = { kind = 'sessionClosed' } }
    )
    assert.equal('the session is closed', told)
    assert.same({}, session.outbox.sending)
  end)

  it('goes on telling others when one that listens breaks', function()
    load(4)
    local heard = 0
    session:listen(function()
      error('broken')
    end)
    local off = session:listen(function()
      heard = heard + 1
    end)
    following().on_events({ events[5] })
    assert.equal(1, heard)
    assert.is_truthy(notes[1]:find('broken', 1, true))
    off()
    following().on_events({ events[6] })
    assert.equal(1, heard)
  end)

  it('that nobody looks at any more hears nothing', function()
    load(4)
    session:close()
    assert.is_true(following().closed)
    following().on_events({ events[5] })
    following().on_delta({ kind = 'answer', messageId = 'm', turnId = 't', index = 0, text = 'x' })
    following().on_live()
    assert.same({}, updates)
    assert.same({}, app.asked)
    assert.equal(4, session.transcript.last_seq)
  end)

  it('that was closed while it loaded takes in no answer', function()
    open()
    session:close()
    answer('session/get', got())
    assert.same({}, app.asked)
    assert.same({}, app.followed)
  end)
end)

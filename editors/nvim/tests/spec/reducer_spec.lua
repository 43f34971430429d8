--- What each event does to a transcript, and what it does not.
local Reducer = require('callboard.model.reducer')
local recorded = require('recorded')

local PERSON = { kind = 'person', name = 'ann' }
local AGENT = { kind = 'agent', name = 'default' }

describe('an event', function()
  local t, seq

  before_each(function()
    t, seq = Reducer.new('ses_1'), 0
  end)

  ---Applies an event; the next of the session.
  ---@param type_ string
  ---@param data table
  ---@param turn string?
  ---@return callboard.Change?
  local function on(type_, data, turn)
    seq = seq + 1
    return Reducer.apply(t, {
      pos = seq,
      seq = seq,
      sessionId = 'ses_1',
      eventId = 'evt_' .. seq,
      type = type_,
      at = ('2030-01-01T10:00:%02d.000Z'):format(seq),
      actor = { kind = 'system', id = 'x' },
      turnId = turn,
      data = data,
    })
  end

  ---@param id string
  ---@param text string
  ---@param more table?
  local function said(id, text, more)
    return vim.tbl_extend('force', {
      messageId = id,
      author = PERSON,
      content = { { type = 'text', text = text } },
    }, more or {})
  end

  local function answered(id, text, more)
    return said(id, text, vim.tbl_extend('force', { author = AGENT, partial = false }, more or {}))
  end

  ---@return string[] kind and text of each item
  local function shown()
    return vim.tbl_map(function(item)
      return item.kind .. ' ' .. item.text
    end, t.items)
  end

  ---@return string[]
  local function queued()
    return vim.tbl_map(function(item)
      return item.text
    end, t.queue)
  end

  local function start(id)
    return on(
      'turn_started',
      { turnId = id or 'trn_1', model = 'a/b', profile = 'default' },
      id or 'trn_1'
    )
  end

  local function finish(outcome, id)
    return on(
      'turn_finished',
      { turnId = id or 'trn_1', outcome = outcome or 'completed', usage = {} },
      id or 'trn_1'
    )
  end

  it('that was taken in before does nothing', function()
    on('message', said('msg_1', 'one'))
    seq = 0
    assert.is_nil(on('message', said('msg_1', 'one')))
    assert.same({ 'one' }, queued())
  end)

  it('that comes too early is a gap, and does nothing', function()
    on('message', said('msg_1', 'one'))
    seq = seq + 1
    local change = on('message', said('msg_3', 'three'))
    assert.is_true(change.gap)
    assert.same({ 'one' }, queued())
    assert.equal(1, t.last_seq)
    seq = 1
    assert.is_nil(on('message', said('msg_2', 'two')).gap)
    assert.same({ 'one', 'two' }, queued())
  end)

  it('of a kind that is not known only counts', function()
    local change = on('from_the_future', { anything = { 1, 2 } })
    assert.same({ items = {}, events = { 'from_the_future' } }, change)
    assert.equal(1, t.last_seq)
    assert.is_nil(on('message', said('msg_1', 'one')).gap)
  end)

  it('is not changed by being taken in', function()
    for _, name in ipairs(recorded.names()) do
      local events = recorded.events(name, recorded.root(name))
      local before = vim.deepcopy(events)
      local transcript = Reducer.new('x')
      for _, event in ipairs(events) do
        Reducer.apply(transcript, event)
      end
      assert.is_true(vim.deep_equal(before, events), name)
    end
  end)

  it('of a prompt makes it wait, until a turn takes it in', function()
    local change = on('message', said('msg_1', 'one'))
    assert.same({ 'one' }, queued())
    assert.same({}, shown())
    assert.is_true(change.queue)
    start()
    change = on('ack', { admits = { 1 } }, 'trn_1')
    assert.same({}, queued())
    assert.same({ 'prompt one' }, shown())
    assert.is_true(change.queue)
    assert.same({ 'msg_1' }, change.items)
    assert.equal('trn_1', t.items[1].turn_id)
    assert.equal(1, t.items[1].seq)
  end)

  it('puts prompts where they were taken in, not where they were said', function()
    on('message', said('msg_1', 'one'))
    start()
    on('ack', { admits = { 1 } }, 'trn_1')
    on('message', said('msg_2', 'steer', { delivery = 'steer' }))
    on('message', said('msg_3', 'later', { delivery = 'queue' }))
    on('message', answered('msg_4', 'answer'), 'trn_1')
    on('ack', { admits = { 4 } }, 'trn_1')
    assert.same({ 'prompt one', 'answer answer', 'prompt steer' }, shown())
    assert.is_true(t.items[3].steer)
    assert.same({ 'later' }, queued())
    finish()
    assert.same({ 'later' }, queued())
  end)

  it('changes what waits, and drops it', function()
    on('message', said('msg_1', 'one'))
    on('message', said('msg_2', 'two'))
    assert.is_true(
      on('prompt_updated', { seq = 2, content = { { type = 'text', text = 'changed' } } }).queue
    )
    assert.same({ 'one', 'changed' }, queued())
    assert.is_true(on('triggers_dropped', { seqs = { 1 }, reason = 'removed' }).queue)
    assert.same({ 'changed' }, queued())
    assert.is_nil(on('triggers_dropped', { seqs = { 1 }, reason = 'removed' }).queue)
  end)

  it('of an instruction, a schedule or a mention waits, too', function()
    on('directive', { messageId = 'msg_1', author = AGENT, text = 'do it' })
    on('schedule_fired', { name = 'nightly', prompt = 'look', scheduleId = 'sched_1' })
    on('member_mentioned', { name = 'beta', by = 'alpha', messageSeq = 1, burst = 1, budget = 8 })
    assert.same({ 'do it', 'look', '@beta' }, queued())
    start()
    on('ack', { admits = { 1, 2, 3 } }, 'trn_1')
    assert.same({ 'prompt do it', 'prompt look' }, shown()) -- what mentions somebody is there already
    assert.same({ kind = 'schedule', name = 'nightly', id = 'sched_1' }, t.items[2].author)
    assert.same({}, queued())
  end)

  it('of a delivery is shown at once', function()
    on(
      'message',
      said('msg_1', 'from a peer', { author = { kind = 'peer', name = 'one' }, delivered = {} })
    )
    on('message', said('msg_2', 'from an agent', { author = AGENT, delivered = {} }), 'trn_1')
    assert.same({ 'prompt from a peer', 'prompt from an agent' }, shown())
    assert.same({}, queued())
  end)

  it('of a prompt names what else it holds', function()
    on('message', {
      messageId = 'msg_1',
      author = PERSON,
      content = {
        { type = 'text', text = 'look' },
        { type = 'image', mimeType = 'image/png', data = '' },
        { type = 'resource_link', uri = 'file:///a', name = 'a' },
        { type = 'resource', uri = 'file:///b', text = 'x' },
        { type = 'text', text = 'closely' },
      },
      context = {
        { uri = 'file:///c' },
        {
          uri = 'file:///d',
          range = { start = { line = 2, character = 0 }, ['end'] = { line = 5, character = 0 } },
        },
      },
    })
    assert.equal('look\n\nclosely', t.queue[1].text)
    assert.same(
      { 'image (image/png)', 'a', 'file:///b', 'file:///c', 'file:///d#L3-5' },
      t.queue[1].attachments
    )
  end)

  it('of an answer shows what was thought and what was said', function()
    on(
      'message',
      answered('msg_1', 'x', {
        content = {
          { type = 'thinking', text = 'hm' },
          { type = 'text', text = 'first' },
          { type = 'tool_use', callId = 'call_1' },
          { type = 'text', text = 'second' },
        },
        partial = true,
      })
    )
    assert.same({ 'thought hm', 'answer first\n\nsecond' }, shown())
    assert.is_true(t.items[2].partial)
    assert.same(AGENT, t.items[2].author)
  end)

  it('of an answer without words shows nothing', function()
    on('message', answered('msg_1', '', { content = { { type = 'tool_use', callId = 'call_1' } } }))
    assert.same({}, shown())
  end)

  it('tells of turns', function()
    local change = start()
    assert.is_true(change.head)
    assert.same({
      id = 'trn_1',
      started_at = '2030-01-01T10:00:01.000Z',
      state = 'running',
      cancelling = false,
    }, t.turn)
    assert.equal('a/b', t.model)
    assert.same({ trn_1 = 'default' }, t.speakers)
    on('cancel_requested', { scope = 'queue' }, 'trn_1')
    assert.is_false(t.turn.cancelling)
    on('cancel_requested', { scope = 'turn', turnId = 'trn_1' }, 'trn_1')
    assert.is_true(t.turn.cancelling)
    finish('cancelled')
    assert.is_nil(t.turn)
    assert.equal('cancelled', t.items[1].outcome)
    assert.equal('turn', t.items[1].kind)
  end)

  it('of a failure is told', function()
    start()
    on('error', { error = { kind = 'modelError', message = 'no' } }, 'trn_1')
    assert.same({ 'error no' }, shown())
    assert.equal('modelError', t.items[1].failure.kind)
  end)

  describe('of a tool call', function()
    ---@param id string
    local function call(id, approval)
      return on(
        'tool_call',
        { callId = id, name = 'run', title = 'Run ' .. id, approvalId = approval },
        'trn_1'
      )
    end

    local function ask(id)
      return on('approval_request', {
        approval = {
          approvalId = 'apr_' .. id,
          callId = id,
          state = 'pending',
          title = id,
          options = {},
        },
      }, 'trn_1')
    end

    local function decide(id, outcome)
      return on('approval_decision', {
        approvalId = 'apr_' .. id,
        callId = id,
        resolution = { outcome = outcome, by = { kind = 'client', id = 'x' } },
      }, 'trn_1')
    end

    before_each(function()
      start()
    end)

    it('makes a card that its result completes', function()
      call('call_1')
      call('call_2')
      assert.same(
        { 'call_1' },
        on('tool_result', { callId = 'call_1', status = 'ok', text = 'done' }, 'trn_1').items
      )
      assert.same({ 'tool done', 'tool ' }, shown())
      assert.equal('Run call_1', t.by_id.call_1.call.title)
      assert.equal('ok', t.by_id.call_1.result.status)
      assert.is_nil(t.by_id.call_2.result)
    end)

    it('that asks says so until all is answered', function()
      call('call_1')
      call('call_2')
      ask('call_1')
      ask('call_2')
      assert.equal('waiting_approval', t.turn.state)
      assert.equal('apr_call_1', Reducer.pending(t).approvalId)
      decide('call_1', 'allowed')
      assert.equal('waiting_approval', t.turn.state)
      assert.equal('apr_call_2', Reducer.pending(t).approvalId)
      decide('call_2', 'rejected')
      assert.equal('running', t.turn.state)
      assert.is_nil(Reducer.pending(t))
      assert.equal('resolved', t.by_id.call_1.approval.state)
      assert.equal('rejected', t.by_id.call_2.approval.resolution.outcome)
    end)

    it('tells how the asking ended, as the server does', function()
      for outcome, state in pairs({
        allowed = 'resolved',
        rejected = 'resolved',
        cancelled = 'cancelled',
        expired = 'expired',
      }) do
        call(outcome)
        ask(outcome)
        decide(outcome, outcome)
        assert.equal(state, t.by_id[outcome].approval.state)
      end
    end)

    it('is parked, and goes on', function()
      call('call_1')
      ask('call_1')
      on('turn_parked', { turnId = 'trn_1', approvalIds = { 'apr_call_1' } }, 'trn_1')
      assert.equal('parked', t.turn.state)
      decide('call_1', 'allowed')
      assert.equal('parked', t.turn.state) -- until somebody takes it up
      on('turn_resumed', { turnId = 'trn_1', trigger = { kind = 'approval' } }, 'trn_1')
      assert.equal('running', t.turn.state)
    end)

    it('that is not loaded is shown by what asks for it', function()
      ask('call_0')
      assert.equal('apr_call_0', Reducer.pending(t).approvalId)
      assert.equal('tool', t.by_id.call_0.kind)
    end)

    it('that is not loaded is shown by its result', function()
      on('tool_result', { callId = 'call_0', name = 'run', status = 'error', text = 'no' }, 'trn_1')
      assert.same({ 'tool no' }, shown())
    end)
  end)

  it('of a plan replaces the one before', function()
    on('plan_updated', { entries = { { content = 'a', status = 'pending' } } })
    assert.is_true(on('plan_updated', { entries = {} }).head)
    assert.same({}, t.plan)
  end)

  it('of the session itself changes how it is set', function()
    on('session_created', { title = 'T', mode = 'work', model = 'a/b' })
    assert.same({ 'T', 'work', 'a/b' }, { t.title, t.mode, t.model })
    on('session_updated', { changes = { title = 'U' } })
    on('mode_changed', { mode = 'plan' })
    on('model_changed', { model = 'c/d' })
    assert.same({ 'U', 'plan', 'c/d' }, { t.title, t.mode, t.model })
    on('session_updated', { changes = { pinned = true } })
    assert.equal('U', t.title)
    on('model_changed', {})
    assert.is_nil(t.model)
    assert.same({ 'notice Mode: plan', 'notice Model: c/d', 'notice Model: the default' }, shown())
    on('session_closed', {})
    assert.is_true(t.closed)
  end)

  it('of an agent that was spawned tells what it is', function()
    on('agent_spawned', { name = 'stock', session = { mode = 'work', title = 'x' } })
    assert.same({ 'stock', 'work' }, { t.title, t.mode })
  end)

  it('that tells that the session is gone is heard whatever its place', function()
    on('message', said('msg_1', 'one'))
    local change =
      Reducer.apply(t, { type = 'session_deleted', seq = 99, sessionId = 'ses_1', data = {} })
    assert.is_true(t.deleted)
    assert.is_true(change.head)
    assert.is_nil(change.gap)
  end)

  describe('that goes back', function()
    it('takes out the turns, their prompts and their plan', function()
      on('plan_updated', { entries = { { content = 'a', status = 'pending' } } })
      on('message', said('msg_1', 'one'))
      start()
      on('ack', { admits = { 2 } }, 'trn_1')
      on('message', answered('msg_2', 'first'), 'trn_1')
      finish()
      on('message', said('msg_3', 'two'))
      local before = seq + 1
      start('trn_2')
      on('ack', { admits = { 7 } }, 'trn_2')
      on('plan_updated', { entries = { { content = 'b', status = 'pending' } } }, 'trn_2')
      on('message', answered('msg_4', 'second'), 'trn_2')
      finish('completed', 'trn_2')
      local change = on('session_rewound', {
        beforeTurnId = 'trn_2',
        beforeSeq = before,
        throughSeq = seq,
        turns = 1,
        prompts = { 7 },
      })
      assert.is_true(change.reset)
      assert.same({
        'prompt one',
        'answer first',
        'turn ',
        'notice Went back: 1 turn taken out. Files are as they were left.',
      }, shown())
      assert.same({ { content = 'a', status = 'pending' } }, t.plan)
      assert.is_nil(t.by_id.msg_4)
      assert.is_nil(t.by_id.msg_3)
    end)

    it('takes out the notice of having gone back within', function()
      on('message', said('msg_1', 'one'))
      on('session_rewound', { beforeSeq = 1, throughSeq = 1, turns = 2, prompts = {} })
      on('session_rewound', { beforeSeq = 1, throughSeq = 2, turns = 3, prompts = {} })
      assert.same({ 'notice Went back: 3 turns taken out. Files are as they were left.' }, shown())
    end)
  end)

  it('of anything that people should know is a notice', function()
    for type_, case in pairs({
      summary = { {}, 'What was said so far was summarised' },
      model_retried = {
        { attempt = 1, delayMs = 5, error = { message = 'busy' } },
        'The model did not answer (busy); attempt 2',
      },
      agent_asked = { { text = 'why?', expectsReply = true }, 'Asks its parent: why?' },
      agent_replied = { { outcome = 'timed_out' }, 'Was not answered: no reply came in time' },
      agent_report_created = {
        { report = { status = 'failed' } },
        'Reported to its parent (failed)',
      },
      agent_interrupted = { { reason = 'enough' }, 'Was interrupted: enough' },
      member_added = { { name = 'beta' }, '@beta takes part' },
      member_removed = { { name = 'beta' }, '@beta takes no part any more' },
      room_host_changed = { { name = 'beta' }, '@beta answers when nobody is addressed' },
      wake_suppressed = {
        { name = 'beta', burst = 8 },
        '@beta was not woken: 8 messages of agents in a row. Say something to go on.',
      },
      deliveries_dropped = {
        { deliveries = { {} }, reason = 'the session was closed' },
        '1 message to it will not be read: the session was closed',
      },
      peer_linked = { { peerId = 'ses_2' }, 'Linked to ses_2' },
      peer_unlinked = { { peerId = 'ses_2', by = 'ses_2' }, 'The link to ses_2 has ended' },
      peer_message_sent = { { to = 'ses_2', text = 'hello', messageId = 'm' }, 'To ses_2: hello' },
      peer_message_dropped = {
        { sender = 'ses_2', reason = 'unlinked', messageId = 'm' },
        'A message of ses_2 will not be read: unlinked',
      },
      completion_changed = { {}, 'Says that its work is done; nobody has verified it' },
      session_forked = { { inherited = 3 }, 'A fork: what stands above was taken over' },
    }) do
      on(type_, case[1])
      assert.equal(case[2], t.items[#t.items].text)
      assert.equal('notice', t.items[#t.items].kind)
    end
  end)

  it('that is a notice keeps its severity', function()
    on('notice', { severity = 'warning', title = 'Begun anew', description = 'why' })
    local item = t.items[#t.items]
    assert.same(
      { 'notice', 'Begun anew', 'warning', 'why' },
      { item.kind, item.text, item.severity, item.description }
    )
  end)

  it('of each kind that there is in the recordings can be taken in', function()
    local types = {}
    for _, name in ipairs(recorded.names()) do
      for _, event in ipairs(recorded.events(name)) do
        types[event.type] = true
      end
    end
    assert.is_true(vim.tbl_count(types) >= 45, vim.inspect(vim.tbl_keys(types)))
  end)
end)

describe('changes', function()
  it('of several events are one, without doubles and in order', function()
    local merged = Reducer.merge(nil, { items = { 'a' }, events = { 'x' } })
    merged = Reducer.merge(merged, { items = { 'b', 'a' }, events = { 'y' }, head = true })
    merged = Reducer.merge(merged, nil)
    merged = Reducer.merge(
      merged,
      { items = { 'c' }, events = {}, reset = true, queue = true, hole = true, gap = true }
    )
    assert.same({
      items = { 'a', 'b', 'c' },
      events = { 'x', 'y' },
      head = true,
      reset = true,
      queue = true,
      hole = true,
      gap = true,
    }, merged)
    assert.is_nil(Reducer.merge(nil, nil))
  end)
end)

describe('a plan from before what is loaded', function()
  local function plan(seq)
    return { seq = seq, type = 'plan_updated', data = { entries = { { content = 'p' .. seq } } } }
  end

  it('is taken where none is known', function()
    local t = Reducer.new('x')
    assert.is_false(Reducer.has_plan(t))
    assert.is_true(Reducer.earlier_plan(t, plan(3)).head)
    assert.equal('p3', t.plan[1].content)
    assert.is_nil(Reducer.earlier_plan(t, plan(2)))
    assert.equal('p3', t.plan[1].content)
  end)

  it('is not taken when going back took it out', function()
    local t = Reducer.new('x')
    Reducer.apply(t, {
      seq = 9,
      type = 'session_rewound',
      eventId = 'e',
      at = '',
      data = { beforeSeq = 2, throughSeq = 8, turns = 1 },
    })
    assert.is_nil(Reducer.earlier_plan(t, plan(3)))
    assert.same({}, t.plan)
  end)
end)

--- Text that streams: nothing doubled, nothing lost, nothing that comes after its end.
local Reducer = require('callboard.model.reducer')

describe('a stream', function()
  local t, seq

  before_each(function()
    t, seq = Reducer.new('ses_1'), 0
  end)

  ---@param index integer
  ---@param text string
  ---@param more table?
  ---@return callboard.Change?
  local function delta(index, text, more)
    return Reducer.delta(
      t,
      vim.tbl_extend('force', {
        messageId = 'msg_1',
        turnId = 'trn_1',
        kind = 'answer',
        index = index,
        count = 1,
        text = text,
      }, more or {})
    )
  end

  ---@param type_ string
  ---@param data table
  local function on(type_, data)
    seq = seq + 1
    return Reducer.apply(t, {
      seq = seq,
      eventId = 'evt_' .. seq,
      sessionId = 'ses_1',
      type = type_,
      at = 'now',
      turnId = 'trn_1',
      data = data,
    })
  end

  ---@param admits integer[]?
  local function start(admits)
    on('turn_started', { turnId = 'trn_1', model = 'm' })
    return on('ack', { admits = admits or {} })
  end

  before_each(function()
    start()
  end)

  local function message(text, more)
    return on(
      'message',
      vim.tbl_extend('force', {
        messageId = 'msg_1',
        author = { kind = 'agent', name = 'default' },
        content = { { type = 'text', text = text } },
        partial = false,
      }, more or {})
    )
  end

  ---@param answer string
  ---@param next_answer integer
  ---@param thought string?
  ---@param next_thought integer?
  local function draft(answer, next_answer, thought, next_thought)
    return Reducer.draft(t, {
      turnId = 'trn_1',
      messageId = 'msg_1',
      answer = answer,
      thought = thought or '',
      nextIndex = { answer = next_answer, thought = next_thought },
    })
  end

  local function text(id)
    local item = t.by_id[id or 'msg_1']
    return item and item.text
  end

  it('grows with each piece', function()
    assert.same({ 'msg_1' }, delta(0, 'Hel').items)
    delta(1, 'lo')
    assert.equal('Hello', text())
    assert.is_true(t.by_id.msg_1.streaming)
    assert.equal(0, t.by_id.msg_1.seq)
    assert.equal(1, #t.items)
  end)

  it('keeps what is thought and what is said apart', function()
    delta(0, 'hm', { kind = 'thought' })
    delta(0, 'so')
    assert.equal('hm', text('msg_1:thought'))
    assert.equal('so', text())
    assert.equal('thought', t.items[1].kind)
  end)

  it('takes several pieces as one', function()
    delta(0, 'abc', { count = 3 })
    assert.is_nil(delta(2, 'c'))
    delta(3, 'd')
    assert.equal('abcd', text())
  end)

  it('takes no piece twice', function()
    delta(0, 'a')
    assert.is_nil(delta(0, 'a'))
    delta(1, 'b')
    assert.is_nil(delta(0, 'ab', { count = 2 }))
    assert.equal('ab', text())
  end)

  it('holds pieces behind a hole until the draft fills it', function()
    delta(0, 'a')
    assert.is_true(delta(3, 'd').hole)
    assert.is_true(delta(4, 'e').hole)
    assert.equal('a', text())
    local change = draft('abc', 3)
    assert.is_nil(change.hole)
    assert.same({ 'msg_1' }, change.items)
    assert.equal('abcde', text())
    delta(5, 'f')
    assert.equal('abcdef', text())
  end)

  it('asks again when the draft was not there yet', function()
    delta(0, 'a')
    delta(3, 'd')
    assert.is_true(draft('ab', 2).hole)
    assert.equal('ab', text())
    assert.is_nil(draft('abcd', 4).hole)
    assert.equal('abcd', text())
    delta(4, 'e')
    assert.equal('abcde', text())
  end)

  it('takes no older draft over what it has', function()
    delta(0, 'abc', { count = 3 })
    draft('ab', 2)
    assert.equal('abc', text())
  end)

  it('does not take a piece in twice that is half in the draft', function()
    draft('ab', 2)
    assert.is_true(delta(1, 'bc', { count = 2 }).hole)
    assert.equal('ab', text())
  end)

  it('begins in its middle, when it was there before', function()
    assert.is_true(delta(7, 'world').hole)
    assert.is_nil(t.by_id.msg_1)
    draft('Hello, ', 7)
    assert.equal('Hello, world', text())
    draft('x', 1, 'thought', 2)
    assert.equal('thought', text('msg_1:thought'))
  end)

  it('forgets what is held when there is no draft: the message comes', function()
    delta(3, 'd')
    assert.same({ items = {}, events = {} }, Reducer.draft(t, nil))
    message('abcd')
    assert.equal('abcd', text())
  end)

  it('ends with its message, which has the last word', function()
    delta(0, 'Helo')
    local change = message('Hello')
    assert.same({ 'msg_1' }, change.items)
    assert.equal('Hello', text())
    assert.is_nil(t.by_id.msg_1.streaming)
    assert.equal(1, #t.items)
    assert.is_nil(rawget(t.by_id.msg_1, 'pieces'))
  end)

  it('ends with its message: late pieces and drafts do nothing', function()
    delta(0, 'Hel')
    message('Hello')
    assert.is_nil(delta(1, 'lo'))
    assert.is_nil(delta(0, 'hm', { kind = 'thought' }))
    assert.same({}, draft('Hel', 1, 'hm', 1).items)
    assert.equal('Hello', text())
    assert.equal(1, #t.items)
  end)

  it('that came to nothing goes', function()
    delta(0, '')
    local change = message('', { content = {} })
    assert.is_nil(t.by_id.msg_1)
    assert.equal(0, #t.items)
    assert.is_true(change.reset)
  end)

  it('keeps its place when others come meanwhile', function()
    delta(0, 'Hel')
    on('member_added', { name = 'beta' })
    message('Hello')
    assert.same({ 'answer', 'notice' }, { t.items[1].kind, t.items[2].kind })
  end)

  it('is cut off when its turn ends before it', function()
    on('tool_call', { callId = 'call_1', name = 'run', title = 'make' })
    delta(0, 'out', { messageId = 'call_1', kind = 'tool_output' })
    local change = on('turn_finished', { turnId = 'trn_1', outcome = 'interrupted', usage = {} })
    assert.same({ 'call_1', 'evt_' .. seq }, change.items)
    assert.is_true(t.by_id.call_1.partial)
    assert.is_nil(t.by_id.call_1.streaming)
    assert.equal('out', text('call_1'))
  end)

  it('that did not come into the log goes with its turn: nobody knows of it', function()
    delta(0, 'Hel')
    delta(0, 'hm', { kind = 'thought' })
    local change = on('turn_finished', { turnId = 'trn_1', outcome = 'interrupted', usage = {} })
    assert.is_true(change.reset)
    assert.equal(1, #t.items)
    assert.is_nil(t.by_id.msg_1)
    assert.is_nil(delta(1, 'lo'))
    assert.equal(1, #t.items)
  end)

  it(
    'that has overtaken its turn waits for it, and for the prompts that the turn takes in',
    function()
      t, seq = Reducer.new('ses_1'), 0
      on(
        'message',
        { messageId = 'msg_0', author = { kind = 'person', name = 'ann' }, content = {} }
      )
      assert.is_nil(delta(0, 'Hel'))
      on('turn_started', { turnId = 'trn_1', model = 'm' })
      assert.is_nil(delta(1, 'lo'))
      assert.same({}, draft('Hello', 2).items)
      assert.same({}, t.items)
      assert.same({ 'msg_0', 'msg_1' }, on('ack', { admits = { 1 } }).items)
      assert.same({ 'prompt', 'answer' }, { t.items[1].kind, t.items[2].kind })
      assert.equal('Hello', text())
      delta(2, '!')
      assert.equal('Hello!', text())
    end
  )

  it('of a turn that is over is not taken in, and of the next one waits', function()
    delta(0, 'old', { turnId = 'trn_0', messageId = 'msg_8' })
    delta(0, 'new', { turnId = 'trn_2', messageId = 'msg_9' })
    on('turn_finished', { turnId = 'trn_0', outcome = 'completed', usage = {} })
    on('turn_finished', { turnId = 'trn_1', outcome = 'completed', usage = {} })
    assert.is_nil(delta(0, 'late'))
    assert.same({}, draft('late', 1).items)
    seq = seq + 1
    Reducer.apply(t, {
      seq = seq,
      type = 'turn_started',
      turnId = 'trn_2',
      at = '',
      data = { turnId = 'trn_2', model = 'm' },
    })
    seq = seq + 1
    Reducer.apply(t, { seq = seq, type = 'ack', turnId = 'trn_2', at = '', data = { admits = {} } })
    assert.equal('new', text('msg_9'))
    assert.is_nil(t.by_id.msg_8)
    assert.is_nil(t.by_id.msg_1)
    delta(0, 'later')
    assert.same({}, t.early)
  end)

  it('that was cut off and is in the log says so', function()
    delta(0, 'Hello')
    message('Hel', { partial = true })
    assert.equal('Hel', text())
    assert.is_true(t.by_id.msg_1.partial)
  end)

  describe('of a running tool', function()
    before_each(function()
      on('tool_call', { callId = 'call_1', name = 'run', title = 'make' })
    end)

    local function output(index, words)
      return delta(index, words, { messageId = 'call_1', kind = 'tool_output' })
    end

    it('is shown until the result is there', function()
      output(0, 'one\n')
      output(1, 'two\n')
      assert.equal('one\ntwo\n', text('call_1'))
      assert.is_true(t.by_id.call_1.streaming)
      on('tool_result', { callId = 'call_1', status = 'ok', text = 'all' })
      assert.equal('all', text('call_1'))
      assert.is_nil(output(2, 'late'))
      assert.equal('all', text('call_1'))
    end)

    it('says where something is missing', function()
      output(0, 'one\n')
      assert.is_nil(output(5, 'six\n').hole)
      assert.equal('one\n\n…\nsix\n', text('call_1'))
      assert.is_nil(output(3, 'four\n'))
    end)

    it('keeps the end of what is long', function()
      for i = 0, 99 do
        output(i, ('line %d '):format(i) .. ('x'):rep(4096) .. '\n')
      end
      assert.is_true(#text('call_1') < 140 * 1024)
      assert.is_truthy(text('call_1'):find('line 99 ', 1, true))
      assert.equal('…\n', text('call_1'):sub(1, 4))
    end)

    it('that has overtaken the call waits for it', function()
      delta(0, 'one\n', { messageId = 'call_2', kind = 'tool_output' })
      assert.same(
        { 'call_2' },
        on('tool_call', { callId = 'call_2', name = 'run', title = 'test' }).items
      )
      assert.equal('one\n', text('call_2'))
    end)

    it('that is not loaded is not shown, and not kept', function()
      assert.is_nil(delta(0, 'x', { messageId = 'call_0', kind = 'tool_output' }))
      on('turn_finished', { turnId = 'trn_1', outcome = 'completed', usage = {} })
      on('member_added', { name = 'beta' })
      assert.equal(3, #t.items)
      assert.same({}, t.early)
    end)
  end)

  it('however its pieces are joined, dropped and repeated, becomes the same text', function()
    math.randomseed(11)
    for _ = 1, 200 do
      t, seq = Reducer.new('ses_1'), 0
      start()
      local pieces = {}
      for i = 1, math.random(1, 12) do
        pieces[i] = ('<%d>'):format(i)
      end
      local at = 1
      while at <= #pieces do
        local count = math.random(1, math.min(3, #pieces - at + 1))
        local joined = table.concat(pieces, '', at, at + count - 1)
        if math.random(4) > 1 then
          delta(at - 1, joined, { count = count })
        end
        at = at + count
        if math.random(3) == 1 then
          draft(table.concat(pieces, '', 1, at - 1), at - 1)
        end
        if math.random(5) == 1 then
          delta(at - 1 - count, joined, { count = count })
        end
      end
      draft(table.concat(pieces), #pieces)
      assert.equal(table.concat(pieces), text())
      message(table.concat(pieces))
      assert.equal(table.concat(pieces), text())
      assert.equal(1, #t.items)
    end
  end)
end)

--- Pieces of an answer that overtake the events of their turn.
local Reducer = require('callboard.model.reducer')

local seq

local function event(type, data, turn)
  seq = seq + 1
  return {
    pos = seq,
    seq = seq,
    eventId = 'evt_' .. seq,
    sessionId = 'ses_1',
    type = type,
    at = '2026-01-01T00:00:00Z',
    actor = { kind = 'client', id = 'c' },
    turnId = turn,
    data = data,
  }
end

local function piece(index, text, turn)
  return {
    turnId = turn or 'trn_1',
    messageId = 'msg_a',
    index = index,
    text = text,
    kind = 'answer',
  }
end

local function prompt()
  return event('message', {
    messageId = 'msg_p',
    author = { kind = 'person', name = 'Ada' },
    content = { { type = 'text', text = 'Hello' } },
  })
end

local function started(turn)
  return event(
    'turn_started',
    { turnId = turn, index = 1, model = 'm', mode = 'work', trigger = { kind = 'prompt' } },
    turn
  )
end

local function texts(t)
  return vim.tbl_map(function(item)
    return ('%s %s'):format(item.kind, item.text)
  end, t.items)
end

describe('pieces of a turn', function()
  local t

  before_each(function()
    seq = 0
    t = Reducer.new('ses_1')
  end)

  it('stand below the prompt that it has taken in, however early they come', function()
    assert.is_nil(Reducer.delta(t, piece(0, 'Hi')))
    Reducer.apply(t, prompt())
    assert.is_nil(Reducer.delta(t, piece(1, ' the')))
    Reducer.apply(t, started('trn_1'))
    assert.is_nil(Reducer.delta(t, piece(2, 're')))
    assert.same({}, texts(t))
    local change = Reducer.apply(t, event('ack', { admits = { 1 } }, 'trn_1'))
    assert.same({ 'prompt Hello', 'answer Hi there' }, texts(t))
    assert.same({ 'msg_p', 'msg_a' }, change.items)
    Reducer.delta(t, piece(3, '.'))
    assert.same({ 'prompt Hello', 'answer Hi there.' }, texts(t))
  end)

  it('are not said twice when the message overtakes them', function()
    Reducer.delta(t, piece(0, 'Hi'))
    Reducer.apply(t, prompt())
    Reducer.apply(t, started('trn_1'))
    Reducer.apply(t, event('ack', { admits = { 1 } }, 'trn_1'))
    local message = {
      messageId = 'msg_a',
      author = { kind = 'agent', name = 'x' },
      content = { { type = 'text', text = 'Hi!' } },
    }
    Reducer.apply(t, event('message', message, 'trn_1'))
    assert.same({ 'prompt Hello', 'answer Hi!' }, texts(t))
    assert.is_nil(Reducer.delta(t, piece(1, '?')))
  end)

  it('that is over are forgotten', function()
    Reducer.apply(t, prompt())
    Reducer.apply(t, started('trn_1'))
    Reducer.apply(t, event('ack', { admits = { 1 } }, 'trn_1'))
    Reducer.delta(t, piece(0, 'late', 'trn_0'))
    Reducer.apply(
      t,
      event(
        'turn_finished',
        { turnId = 'trn_1', outcome = 'completed', answeredThrough = 1, usage = {} },
        'trn_1'
      )
    )
    assert.same({}, t.early)
  end)

  it('of a turn that began before what is loaded are shown at once', function()
    Reducer.seed(t, { sessionId = 'ses_1', status = 'running', activeTurnId = 'trn_1' })
    Reducer.delta(t, piece(0, 'Hi'))
    assert.same({ 'answer Hi' }, texts(t))
  end)

  describe('that were saved before any piece came', function()
    local function draft(text, next_index, turn)
      return Reducer.draft(t, {
        turnId = turn or 'trn_1',
        messageId = 'msg_a',
        answer = text,
        thought = '',
        nextIndex = { answer = next_index },
      })
    end

    local function over(turn)
      local data =
        { turnId = turn, outcome = 'completed', answeredThrough = 1, usage = vim.empty_dict() }
      return event('turn_finished', data, turn)
    end

    it('come with the turn, whenever they are read, and go on with the next piece', function()
      -- What is read, and each piece behind it, before any of the events of the turn.
      local events = { prompt(), started('trn_1'), event('ack', { admits = { 1 } }, 'trn_1') }
      for read = 0, #events do
        for come = read, #events do
          t = Reducer.new('ses_1')
          for n = 0, #events do
            if n > 0 then
              Reducer.apply(t, events[n])
            end
            if n == read then
              draft('Hi the', 2)
            end
            if n == come then
              Reducer.delta(t, piece(1, ' the')) -- it is in what was read
              Reducer.delta(t, piece(2, 're'))
            end
          end
          assert.same({ 'prompt Hello', 'answer Hi there' }, texts(t), ('%d %d'):format(read, come))
          assert.same({}, t.early)
          assert.is_nil(t.early_draft)
        end
      end
    end)

    it('are forgotten when their turn is over', function()
      Reducer.apply(t, prompt())
      draft('late', 1, 'trn_0')
      Reducer.apply(t, started('trn_1'))
      Reducer.apply(t, event('ack', { admits = { 1 } }, 'trn_1'))
      Reducer.apply(t, over('trn_1'))
      assert.is_nil(t.early_draft)
      assert.same({ 'prompt Hello', 'turn ' }, texts(t))
    end)

    it('and cannot be read are left out', function()
      assert.same({}, Reducer.draft(t, { answer = 'x' }).items)
      assert.is_nil(t.early_draft)
    end)
  end)
end)

--- However the pages of a log are cut, the transcript is the same, and it says what the server says.
local Reducer = require('callboard.model.reducer')
local recorded = require('recorded')

---@param t callboard.Transcript
---@return table all of it that somebody sees
local function seen(t)
  return {
    items = t.items,
    ids = vim.tbl_keys(t.by_id),
    queue = t.queue,
    turn = t.turn,
    plan = t.plan,
    mode = t.mode,
    model = t.model,
    title = t.title,
    closed = t.closed,
    speakers = t.speakers,
    asking = t.asking,
    first = t.first_seq,
    last = t.last_seq,
  }
end

---@param events callboard.Event[]
---@return callboard.Transcript
local function whole(events)
  local t = Reducer.new(events[1].sessionId)
  for _, event in ipairs(events) do
    assert.is_truthy(Reducer.apply(t, event))
  end
  return t
end

---@param events callboard.Event[]
---@param cuts integer[] ascending: each is the last event of a page
---@return callboard.Transcript
local function paged(events, cuts)
  local t = Reducer.new(events[1].sessionId)
  local first = cuts[#cuts] or 0
  for i = first + 1, #events do
    assert.is_truthy(Reducer.apply(t, events[i]))
  end
  for i = #cuts, 1, -1 do
    local from = (cuts[i - 1] or 0) + 1
    Reducer.older(t, vim.list_slice(events, from, cuts[i]))
  end
  return t
end

---@param expected table
---@param got table
---@param about string
local function same(expected, got, about)
  table.sort(expected.ids)
  table.sort(got.ids)
  for _, key in ipairs(vim.tbl_keys(expected)) do
    if not vim.deep_equal(expected[key], got[key]) then
      error(
        ('%s: %s is\n%s\nand not\n%s'):format(
          about,
          key,
          vim.inspect(got[key]),
          vim.inspect(expected[key])
        ),
        0
      )
    end
  end
end

---@param visit fun(name: string, session_id: string, said: callboard.tests.SaidOfSession, events: callboard.Event[])
local function each_session(visit)
  for _, name in ipairs(recorded.names()) do
    for _, said in ipairs(recorded.said(name).sessions) do
      local id = said.session.sessionId
      visit(name, id, said, recorded.events(name, id))
    end
  end
end

describe('pages of a log', function()
  each_session(function(name, id, _, events)
    it(('of %s, %s: cut once, anywhere'):format(name, id), function()
      local expected = seen(whole(events))
      for cut = 1, #events - 1 do
        same(expected, seen(paged(events, { cut })), 'cut after ' .. cut)
      end
    end)

    it(('of %s, %s: an event a page'):format(name, id), function()
      local cuts = {}
      for i = 1, #events - 1 do
        cuts[i] = i
      end
      same(seen(whole(events)), seen(paged(events, cuts)), 'an event a page')
    end)

    it(('of %s, %s: cut by chance'):format(name, id), function()
      local expected = seen(whole(events))
      math.randomseed(42)
      for _ = 1, 40 do
        local cuts = {}
        for i = 1, #events - 1 do
          if math.random(4) == 1 then
            cuts[#cuts + 1] = i
          end
        end
        same(expected, seen(paged(events, cuts)), 'cut after ' .. table.concat(cuts, ', '))
      end
    end)
  end)

  it('overlap without doing anything twice', function()
    local events = recorded.events('demo')
    local t = Reducer.new('x')
    for i = 11, #events do
      Reducer.apply(t, events[i])
    end
    Reducer.older(t, vim.list_slice(events, 1, 15))
    same(seen(whole(events)), seen(t), 'overlapping')
    assert.same({ items = {}, events = {} }, Reducer.older(t, vim.list_slice(events, 1, 5)))
    same(seen(whole(events)), seen(t), 'again')
  end)
end)

describe('pages of a made-up log', function()
  ---A session that is as it might be: prompts wait, are changed, dropped and taken in together; calls ask; turns
  ---end in all ways; and now and then all goes back to before a turn.
  ---@param seed integer
  ---@return callboard.Event[]
  local function made(seed)
    math.randomseed(seed)
    local events, waiting, turns, turn, calls, asking = {}, {}, {}, nil, {}, {}
    local function add(type, data)
      local seq = #events + 1
      events[seq] = {
        seq = seq,
        type = type,
        data = data,
        eventId = 'evt_' .. seq,
        sessionId = 'ses_1',
        at = 'at ' .. seq,
        turnId = turn and turn.id,
      }
      return seq
    end
    local function admit()
      if #waiting > 0 then
        local count = math.random(1, #waiting)
        local admits = vim.list_slice(waiting, 1, count)
        waiting = vim.list_slice(waiting, count + 1)
        add('ack', { admits = admits })
        vim.list_extend(turn.admits, admits)
      end
    end
    local steps = {
      function()
        local was = turn
        turn = nil
        local id = 'msg_' .. #events
        local text = { { type = 'text', text = 'prompt ' .. #events } }
        table.insert(
          waiting,
          add('message', { messageId = id, author = { kind = 'person' }, content = text })
        )
        turn = was
      end,
      function()
        if #waiting > 0 then
          local seq = waiting[math.random(#waiting)]
          add(
            'prompt_updated',
            { seq = seq, content = { { type = 'text', text = 'changed ' .. #events } } }
          )
        end
      end,
      function()
        if #waiting > 0 then
          add(
            'triggers_dropped',
            { seqs = { table.remove(waiting, math.random(#waiting)) }, reason = 'x' }
          )
        end
      end,
      function()
        if not turn and #waiting > 0 then
          turn = { id = 'trn_' .. #events, admits = {} }
          turn.first =
            add('turn_started', { turnId = turn.id, model = 'm' .. #events, profile = 'p' })
          admit()
        elseif turn then
          admit()
        end
      end,
      function()
        if turn then
          local text =
            { { type = 'thinking', text = 't' }, { type = 'text', text = 'answer ' .. #events } }
          add(
            'message',
            { messageId = 'msg_' .. #events, author = { kind = 'agent' }, content = text }
          )
        end
      end,
      function()
        if turn then
          local id = 'call_' .. #events
          calls[#calls + 1] = id
          add('tool_call', { callId = id, name = 'run' })
          if math.random(2) == 1 then
            asking[id] = true
            add(
              'approval_request',
              { approval = { approvalId = 'apr_' .. id, callId = id, state = 'pending' } }
            )
          end
        end
      end,
      function()
        local id = turn and next(asking)
        if id then
          asking[id] = nil
          add(
            'approval_decision',
            { approvalId = 'apr_' .. id, callId = id, resolution = { outcome = 'allowed' } }
          )
        end
      end,
      function()
        local id = turn and calls[1]
        if id and not asking[id] then
          table.remove(calls, 1)
          add('tool_result', { callId = id, status = 'ok', text = 'result of ' .. id })
        end
      end,
      function()
        add('plan_updated', { entries = { { content = 'plan ' .. #events } } })
      end,
      function()
        add('mode_changed', { mode = 'mode ' .. #events })
      end,
      function()
        if turn and next(asking) and math.random(2) == 1 then
          add('turn_parked', { turnId = turn.id })
          add('turn_resumed', { turnId = turn.id })
        elseif turn then
          add('cancel_requested', { scope = 'turn', turnId = turn.id })
        end
      end,
      function()
        if turn and not next(asking) and #calls == 0 then
          add('turn_finished', { turnId = turn.id, outcome = 'completed', usage = {} })
          turns[#turns + 1] = turn
          turn = nil
        end
      end,
      function()
        if not turn and #waiting == 0 and #turns > 0 then
          local at = math.random(#turns)
          local through, prompts = #events, {}
          for i = at, #turns do
            vim.list_extend(prompts, turns[i].admits)
          end
          add('session_rewound', {
            beforeTurnId = turns[at].id,
            beforeSeq = turns[at].first,
            throughSeq = through,
            turns = #turns - at + 1,
            prompts = prompts,
          })
          turns = vim.list_slice(turns, 1, at - 1)
        end
      end,
    }
    for _ = 1, 120 do
      steps[math.random(#steps)]()
    end
    return events
  end

  it('make what it makes read in order, however they are cut', function()
    for seed = 1, 60 do
      local events = made(seed)
      local expected = seen(whole(made(seed)))
      for _ = 1, 6 do
        local cuts = {}
        for i = 1, #events - 1 do
          if math.random(5) == 1 then
            cuts[#cuts + 1] = i
          end
        end
        local about = ('log %d cut after %s'):format(seed, table.concat(cuts, ', '))
        same(expected, seen(paged(events, cuts)), about)
      end
    end
  end)
end)

describe('a transcript', function()
  each_session(function(name, id, said, events)
    it(('of %s, %s says what the server says'):format(name, id), function()
      local session = said.session
      local t = whole(events)
      assert.equal(session.headSeq, t.last_seq)
      if session.status ~= 'parked' then
        assert.equal(session.activeTurnId, t.turn and t.turn.id)
      end
      if session.status == 'closed' then
        assert.is_true(t.closed)
      else
        assert.equal(session.status, t.turn and t.turn.state or 'idle')
      end
      assert.equal(session.mode, t.mode)
      local queue = vim.tbl_map(function(item)
        return { item.seq, item.id, item.trigger, item.author, item.text, item.steer or false }
      end, t.queue)
      local expected = vim.tbl_map(function(prompt)
        local text = Reducer.parts(prompt.content)
        local steer = prompt.delivery == 'steer'
        return { prompt.eventSeq, prompt.messageId, prompt.kind, prompt.author, text, steer }
      end, said.queue)
      assert.same(expected, queue)
      local approvals = vim.tbl_filter(function(approval)
        return approval.sessionId == id
      end, recorded.said(name).approvals)
      assert.equal(#approvals, vim.tbl_count(t.asking))
      assert.equal(#approvals, session.pendingApprovals)
      for _, approval in ipairs(approvals) do
        assert.same(approval, t.by_id[approval.callId].approval)
      end
      assert.same({ approvals[1] }, { Reducer.pending(t) })
    end)

    it(('of %s, %s has the turns that the server has'):format(name, id), function()
      local t = whole(events)
      local ends = {}
      for _, item in ipairs(t.items) do
        if item.kind == 'turn' then
          ends[item.turn_id] = item
        end
      end
      local gone = {}
      for _, event in ipairs(events) do
        if event.type == 'session_rewound' then
          for _, other in ipairs(events) do
            if other.seq >= event.data.beforeSeq and other.seq <= event.data.throughSeq then
              gone[other.turnId or ''] = true
            end
          end
        end
      end
      local ended = 0
      for _, turn in ipairs(said.turns) do
        if not gone[turn.turnId] then
          local item = ends[turn.turnId]
          if turn.endedAt then
            ended = ended + 1
            assert.equal(turn.state, item.outcome)
            assert.same(turn.usage, item.usage)
            assert.same(turn.error, item.failure)
            assert.equal(turn.finalText, item.finished.finalText)
          else
            assert.is_nil(item)
            assert.equal(turn.turnId, t.turn.id)
            assert.equal(turn.startedAt, t.turn.started_at)
          end
        end
      end
      assert.equal(ended, vim.tbl_count(ends))
    end)

    it(
      ('of %s, %s knows at its newest page what the server says of it'):format(name, id),
      function()
        for from = 1, #events do
          local t = Reducer.new(id)
          for i = from, #events do
            Reducer.apply(t, events[i])
          end
          Reducer.seed(t, said.session)
          local whole_turn = whole(events).turn
          local parked = said.session.status == 'parked' and t.turn.id == nil
          assert.equal(whole_turn and not parked and whole_turn.id, t.turn and t.turn.id)
          assert.equal(whole_turn and whole_turn.state, t.turn and t.turn.state, 'from ' .. from)
          assert.equal(said.session.title, t.title)
          assert.equal(said.session.mode, t.mode)
        end
      end
    )
  end)
end)

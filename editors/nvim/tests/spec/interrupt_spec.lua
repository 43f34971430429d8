-- Stopping: it says what it stops and what it leaves alone, and has more force when that takes too long.
local fake_app = require('fake_app')
local interrupt = require('callboard.ui.interrupt')

local app, session, patience

---@param name string
---@param status string
local function agent(name, status)
  return {
    agentId = 'ses_' .. name,
    rootId = session.sessionId,
    name = name,
    status = status,
    path = {},
  }
end

before_each(function()
  app = fake_app.install()
  patience = interrupt.PATIENCE_MS
  interrupt.PATIENCE_MS = 60000
  session = fake_app.session({ status = 'running', activeTurnId = 'trn_1' })
  app:put_session(session)
  function app:feature()
    return true
  end
  function app:refresh() end
  app.answers['agent/list'] = { data = {} }
  app.answers['session/cancel'] = { state = 'cancelling', turnId = 'trn_1' }
  app.answers['session/get'] = function()
    return { session = session }
  end
  app.answers['agent/interrupt'] = { outcome = 'aborted' }
end)

after_each(function()
  interrupt.PATIENCE_MS = patience
  app:restore()
end)

---@param method string
---@return table[]
local function asked(method)
  return vim.tbl_map(
    function(request)
      return request.params
    end,
    vim.tbl_filter(function(request)
      return request.method == method
    end, app.asked)
  )
end

---@param words string
local function heard(words)
  vim.wait(2000, function()
    return app:told():find(words, 1, true) ~= nil
  end, 5)
  assert.matches(vim.pesc(words), app:told())
end

describe('stopping a turn', function()
  it('says what goes on and what still waits', function()
    session.queueLength = 2
    app.answers['agent/list'] =
      { data = { agent('a', 'running'), agent('b', 'completed'), agent('c', 'starting') } }
    interrupt.run(session.sessionId, 'turn')
    heard(
      'stops this turn; 2 messages still wait (:Callboard interrupt queue drops them), 2 agents go on (:Callboard stop stops them)'
    )
    assert.equal('turn', asked('session/cancel')[1].scope)
    assert.same({}, asked('agent/interrupt'))
  end)

  it('counts what waits as the chat shows it', function()
    app.open = { [session.sessionId] = { session = { transcript = { queue = { {}, {}, {} } } } } }
    interrupt.run(session.sessionId, 'turn')
    heard('3 messages still wait')
  end)

  it('says that nothing runs', function()
    app.answers['session/cancel'] = { state = 'idle' }
    interrupt.run(session.sessionId, 'turn')
    heard('no turn runs here')
  end)

  it('names the agents that do, where no turn does', function()
    app.answers['session/cancel'] = { state = 'idle' }
    app.answers['agent/list'] = { data = { agent('a', 'running') } }
    interrupt.run(session.sessionId, 'turn')
    heard('no turn runs here; 1 agent below it does: :Callboard stop ends it')
  end)

  it('goes on without the list of agents', function()
    app.answers['agent/list'] = function()
      return nil, { message = 'no' }
    end
    interrupt.run(session.sessionId, 'turn')
    heard('stops this turn')
  end)

  it('refuses what it does not know', function()
    interrupt.run(session.sessionId, 'everything')
    heard('interrupt takes turn, queue or tree')
    assert.same({}, app.asked)
  end)
end)

describe('stopping more', function()
  it('drops what waits, and leaves the turn', function()
    app.answers['session/cancel'] = { state = 'idle', dropped = { 4, 5 } }
    interrupt.run(session.sessionId, 'queue')
    heard('dropped 2 messages; the turn goes on')
  end)

  it('takes the agents and what waits along', function()
    app.answers['agent/list'] = { data = { agent('a', 'running') } }
    app.answers['session/cancel'] = { state = 'cancelling', dropped = { 4 } }
    interrupt.run(session.sessionId, 'tree')
    heard('stops the turn and 1 agent and drops 1 message that waits')
    assert.equal('tree', asked('session/cancel')[1].scope)
  end)
end)

describe('what does not stop', function()
  local function stop()
    session = vim.tbl_extend('force', session, { status = 'idle' })
    session.activeTurnId = nil
    assert.is_true(vim.wait(2000, function()
      return not interrupt.is_stopping(session.sessionId)
    end, 5))
  end

  before_each(function()
    interrupt.PATIENCE_MS = 10
  end)

  after_each(stop)

  it('is told, and the same again is a force stop', function()
    interrupt.run(session.sessionId, 'turn')
    heard('the turn has not stopped after')
    interrupt.run(session.sessionId, 'turn')
    heard(':Callboard restart ends the server')
    assert.equal(2, #asked('session/cancel'))
  end)

  it('is ended by an abort, where it is an agent', function()
    session.parentId = 'ses_root'
    interrupt.run(session.sessionId, 'turn')
    heard('the turn has not stopped after')
    interrupt.run(session.sessionId, 'turn')
    assert.equal('abort', asked('agent/interrupt')[1].kind)
    assert.equal(session.sessionId, asked('agent/interrupt')[1].agentId)
  end)

  it('never takes agents along that nobody wanted to stop', function()
    app.answers['agent/list'] = { data = { agent('a', 'running') } }
    interrupt.run(session.sessionId, 'turn')
    heard('the turn has not stopped after')
    interrupt.run(session.sessionId, 'turn')
    assert.same({}, asked('agent/interrupt'))
  end)

  it('is no reason for force against another turn', function()
    interrupt.run(session.sessionId, 'turn')
    heard('the turn has not stopped after')
    session.activeTurnId = 'trn_2'
    app:put_session(session)
    app.answers['session/cancel'] = { state = 'cancelling', turnId = 'trn_2' }
    interrupt.run(session.sessionId, 'turn')
    heard('stops this turn')
  end)

  it('is told of no more once it has stopped', function()
    interrupt.run(session.sessionId, 'turn')
    heard('stops this turn')
    stop()
    interrupt.run(session.sessionId, 'turn')
    heard('stops this turn')
    assert.same({}, asked('agent/interrupt'))
  end)
end)

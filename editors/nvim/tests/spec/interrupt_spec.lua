-- Stopping: what is told of it, and that more force is offered only for what was to stop.
local fake = require('fake_app')

describe('stopping', function()
  local app, interrupt, patience

  before_each(function()
    app = fake.install()
    package.loaded['callboard.ui.interrupt'] = nil
    interrupt = require('callboard.ui.interrupt')
    patience = interrupt.PATIENCE_MS
    interrupt.PATIENCE_MS = 20
  end)

  after_each(function()
    interrupt.PATIENCE_MS = patience
    app:restore()
  end)

  ---@param running string? the turn that runs when it is looked for
  ---@return callboard.Session
  local function session(running)
    local fields = { sessionId = 'ses_stop', activeTurnId = 'trn_1' }
    app:put_session(fake.session(fields))
    app.answers['session/cancel'] = { state = 'cancelling', turnId = 'trn_1' }
    fields.activeTurnId = running
    app.answers['session/get'] = { session = fake.session(fields) }
  end

  local function looked()
    vim.wait(2000, function()
      return vim.tbl_contains(app:methods(), 'session/get')
    end)
    app:settle()
  end

  it('offers more force for a turn that does not stop', function()
    session('trn_1')
    interrupt.run('ses_stop', 'turn')
    looked()
    assert.match('has not stopped', app:told())
    interrupt.run('ses_stop', 'turn')
    assert.match('asked again', app:told())
  end)

  it('takes the turn that begins next for another one', function()
    session('trn_2')
    interrupt.run('ses_stop', 'turn')
    looked()
    assert.equal('stops this turn', app:told():gsub('^Callboard: ', ''))
    app.answers['session/cancel'] = { state = 'cancelling', turnId = 'trn_2' }
    interrupt.run('ses_stop', 'turn')
    assert.match('stops this turn', app:told())
  end)

  it('uses no force for another turn', function()
    session('trn_1')
    interrupt.run('ses_stop', 'turn')
    looked()
    app:put_session(fake.session({ sessionId = 'ses_stop', activeTurnId = 'trn_2' }))
    interrupt.run('ses_stop', 'turn')
    assert.match('stops this turn', app:told())
  end)

  it('counts the messages that wait in the chat', function()
    session('trn_2')
    app.open['ses_stop'] = { session = { transcript = { queue = { {}, {} } } } }
    interrupt.run('ses_stop', 'turn')
    assert.match('2 messages still wait', app:told())
  end)
end)

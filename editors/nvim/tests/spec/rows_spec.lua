local fake = require('fake_app')
local Approvals = require('callboard.model.approvals')
local Rows = require('callboard.model.rows')

local HERE = '/home/ada/project'
local NOW = Rows.seconds('2024-05-01T12:00:00Z')

local function wanted(fields)
  return vim.tbl_extend(
    'force',
    { cwd = HERE, all = false, approvals = Approvals.new() },
    fields or {}
  )
end

local function ids(rows)
  return vim.tbl_map(function(row)
    return row.session.sessionId
  end, rows)
end

describe('a time of the wire', function()
  it('is read as UTC', function()
    assert.equal(0, Rows.seconds('1970-01-01T00:00:00Z'))
    assert.equal(951782400, Rows.seconds('2000-02-29T00:00:00.000Z'))
    assert.equal(1709251199, Rows.seconds('2024-02-29T23:59:59.999Z'))
    assert.equal(1735689600, Rows.seconds('2025-01-01T00:00:00Z'))
  end)

  it('is nothing where it is none', function()
    assert.is_nil(Rows.seconds('yesterday'))
    assert.equal('', Rows.age('yesterday', NOW))
  end)

  it('becomes an age in its largest unit', function()
    assert.equal('now', Rows.age('2024-05-01T11:59:30Z', NOW))
    assert.equal('now', Rows.age('2024-05-01T12:00:30Z', NOW))
    assert.equal('59 m', Rows.age('2024-05-01T11:00:30Z', NOW))
    assert.equal('23 h', Rows.age('2024-04-30T13:00:00Z', NOW))
    assert.equal('1 d', Rows.age('2024-04-30T11:00:00Z', NOW))
    assert.equal('4 months', Rows.age('2024-01-01T12:00:00Z', NOW))
    assert.equal('2 y', Rows.age('2022-04-01T12:00:00Z', NOW))
  end)
end)

describe('rows of sessions', function()
  it('come by group, the folder in question first, the pinned and newest first', function()
    local shown, hidden = Rows.arrange({
      fake.session({ sessionId = 'ses_idle' }),
      fake.session({ sessionId = 'ses_other', cwd = '/else', updatedAt = '2024-05-01T11:00:00Z' }),
      fake.session({ sessionId = 'ses_new', updatedAt = '2024-05-01T11:00:00Z' }),
      fake.session({ sessionId = 'ses_pinned', pinned = true }),
      fake.session({ sessionId = 'ses_runs', status = 'running' }),
      fake.session({ sessionId = 'ses_gone', archived = true, pendingApprovals = 1 }),
      fake.session({ sessionId = 'ses_asks', status = 'running', pendingApprovals = 1 }),
    }, wanted({ all = true }))
    assert.same(
      { 'ses_asks', 'ses_runs', 'ses_pinned', 'ses_new', 'ses_idle', 'ses_other', 'ses_gone' },
      ids(shown)
    )
    assert.equal(0, hidden)
  end)

  it('leave other folders out and say how many, but never one that needs somebody', function()
    local shown, hidden = Rows.arrange({
      fake.session({ sessionId = 'ses_here' }),
      fake.session({ cwd = '/else' }),
      fake.session({ cwd = '/else', status = 'running' }),
      fake.session({ sessionId = 'ses_asks', cwd = '/else', pendingApprovals = 2 }),
    }, wanted())
    assert.same({ 'ses_asks', 'ses_here' }, ids(shown))
    assert.equal(2, hidden)
  end)

  it('are those of all folders where the folder has none', function()
    local shown, hidden = Rows.arrange({ fake.session({ cwd = '/else' }) }, wanted())
    assert.equal(1, #shown)
    assert.equal(0, hidden)
  end)

  it('need somebody when one of their agents asks', function()
    local approvals = Approvals.new()
    Approvals.add(approvals, {
      approvalId = 'apr_1',
      sessionId = 'ses_child',
      rootId = 'ses_root',
      createdAt = '2024-05-01T10:00:00Z',
    })
    local shown = Rows.arrange(
      { fake.session({ sessionId = 'ses_root', status = 'running' }) },
      wanted({ approvals = approvals })
    )
    assert.equal('attention', shown[1].group)
  end)

  it('hold no agents, and no session twice', function()
    local shown = Rows.arrange({
      fake.session({ sessionId = 'ses_root' }),
      fake.session({ sessionId = 'ses_root' }),
      fake.session({ parentId = 'ses_root' }),
    }, wanted())
    assert.same({ 'ses_root' }, ids(shown))
  end)

  it('say in words and with a mark what a session does', function()
    local function of(fields)
      local session = fake.session(fields)
      local group = require('callboard.model.store').group(session)
      return Rows.icon({ session = session, group = group }, 'text')
        .. ' '
        .. Rows.state(session, group)
    end
    assert.equal('- done', of({}))
    assert.equal('> running', of({ status = 'running' }))
    assert.equal('! waits for you', of({ status = 'waiting_approval', pendingApprovals = 1 }))
    assert.equal('x failed', of({ lastOutcome = 'failed' }))
    assert.equal('x failed', of({ lastOutcome = 'timed_out' }))
    assert.equal('- stopped', of({ lastOutcome = 'cancelled' }))
    assert.equal('. archived', of({ archived = true }))
    local fresh = fake.session({})
    fresh.lastOutcome = nil
    assert.equal('new', Rows.state(fresh, 'idle'))
    assert.equal('closed', Rows.state(fake.session({ closed = true }), 'idle'))
  end)

  it('stand in columns', function()
    local sessions = {
      fake.session({
        title = 'Ä',
        usage = { inputTokens = 1000, outputTokens = 200, cost = 0.5, currency = 'USD' },
      }),
      fake.session({ title = 'A longer one', cwd = '/home/ada/other', status = 'running' }),
    }
    local rows = Rows.arrange(sessions, wanted({ all = true }))
    local lines = Rows.lines(rows, { now = NOW, icons = 'text', home = '/home/ada' })
    assert.same({
      '> running  A longer one  ~/other  2 h',
      '- done     Ä                      2 h  1.2k tokens $0.50',
    }, lines)
  end)

  it('are one line each, whatever a title or a folder holds', function()
    local rows = Rows.arrange({
      fake.session({ title = 'two\nlines\27[31m\226\128\174gnp' .. ('x'):rep(500), cwd = '/a\nb' }),
    }, wanted({ all = true }))
    local line = Rows.lines(rows, { now = NOW, icons = 'text' })[1]
    assert.is_nil(line:find('[%c]'))
    assert.is_nil(line:find('\226\128\174', 1, true))
    assert.truthy(line:find('two lines<1B>[31m<U+202E>gnp', 1, true))
    assert.truthy(vim.fn.strdisplaywidth(line) < 120)
  end)

  it('say nothing about usage that is not known', function()
    assert.equal('', Rows.used(nil))
    assert.equal('', Rows.used({}))
    assert.equal('12 tokens', Rows.used({ inputTokens = 12 }))
    assert.equal('$0.0012', Rows.used({ cost = 0.0012, currency = 'USD' }))
    assert.equal('1.50 EUR', Rows.used({ cost = 1.5, currency = 'EUR' }))
    assert.equal('0 tokens $0.00', Rows.used({ inputTokens = 0, cost = 0 }))
  end)
end)

describe('usage', function()
  local Usage = require('callboard.model.usage')

  local function sum(fields)
    return vim.tbl_extend('force', { usage = { requests = 1 }, runs = 1 }, fields or {})
  end

  it('shows what is not known as ?, never as 0', function()
    local lines = Usage.lines({
      sessionId = 'ses_1',
      total = sum({ unknownTokens = 1, unknownCost = 1 }),
      models = { { model = 'a/b', total = sum() } },
      tree = sum({ unknownTokens = 1, unknownCost = 1 }),
      sessions = { { sessionId = 'ses_1', total = sum() } },
      runs = {},
    })
    assert.same({
      '              runs  requests  tokens in  cached  out  cost',
      'a/b              1         1          ?       ?    ?     ?',
      'this session     1         1          ?       ?    ?     ?',
      'Tokens: unknown or incomplete for 1 run.',
      'Cost: unknown or incomplete for 1 run.',
    }, lines)
  end)

  it('shows each agent, and what all used', function()
    local own = sum({
      usage = { requests = 2, inputTokens = 1500, outputTokens = 0, cost = 0.02, currency = 'USD' },
    })
    local child = sum({ usage = { requests = 1, inputTokens = 10, outputTokens = 5 } })
    local lines = Usage.lines({
      sessionId = 'ses_1',
      total = own,
      models = { { total = own } },
      tree = sum({
        runs = 2,
        usage = { requests = 3, inputTokens = 1510, outputTokens = 5 },
        costs = { { amount = 0.02, currency = 'USD' }, { amount = 1, currency = 'EUR' } },
      }),
      sessions = {
        { sessionId = 'ses_1', total = own },
        { sessionId = 'ses_2', parentId = 'ses_1', title = 'tests\n', total = child },
      },
      runs = {},
      moreSessions = 3,
    }, fake.session({ usage = { contextTokens = 42000 } }))
    assert.same({
      '                          runs  requests  tokens in  cached  out              cost',
      '(model not known)            1         2       1.5k       ?    0             $0.02',
      'this session                 1         2       1.5k       ?    0             $0.02',
      '  tests                      1         1         10       ?    5                 ?',
      'with all agents below it     2         3       1.5k       ?    5  $0.02 + 1.00 EUR',
      '3 more agents are counted, but not named.',
      'The last request took 42.0k tokens of context.',
    }, lines)
  end)
end)

--- The tree of agents as lines.
local lines = require('callboard.ui.lines')
local model = require('callboard.model.agents')
local spent = require('callboard.model.spent')

local function root(fields)
  return vim.tbl_extend('force', {
    sessionId = 'ses_root',
    rootId = 'ses_root',
    title = 'Mend the stock',
    status = 'running',
    model = 'scripted/team',
    usage = { inputTokens = 1000, outputTokens = 500, cost = 0.02, currency = 'USD' },
  }, fields or {})
end

local function agent(id, fields)
  return vim.tbl_extend('force', {
    agentId = 'ses_' .. id,
    rootId = 'ses_root',
    parentId = 'ses_root',
    name = id,
    status = 'running',
    createdAt = '2026-01-01T00:00:00Z',
  }, fields or {})
end

local function view(agents, fields)
  return vim.tbl_extend(
    'force',
    { root = root(), agents = agents, approvals = {}, fetched = 0 },
    fields or {}
  )
end

local function shown(of, opts)
  opts = vim.tbl_extend('force', { now = 0, icons = 'text' }, opts or {})
  return vim.tbl_map(lines.text, model.lines(of, opts))
end

describe('the tree of agents', function()
  it('says who does what, since when, with which model, at what cost', function()
    local agents = {
      agent('docs', {
        turnId = 'trn_1',
        turnStartedAt = '2026-01-01T00:00:00Z',
        elapsedMs = 12000,
        model = 'scripted/team',
        usage = { inputTokens = 1200, outputTokens = 34 },
        tools = {
          {
            callId = 'c',
            name = 'run',
            title = 'Run `make docs`',
            startedAt = '2026-01-01T00:00:08.500Z',
          },
        },
      }),
      agent('numbers', {
        status = 'completed',
        elapsedMs = 810,
        report = { status = 'completed', summary = 'All\nsums are right.' },
        createdAt = '2026-01-01T00:00:01Z',
      }),
    }
    assert.same({
      '2 agents · 1 running · all together at least 2.7k tokens, $0.02',
      'Mend the stock  running  scripted/team · 1.5k tokens, $0.02',
      '├─ ● docs  running 12 s  scripted/team · 1.2k tokens',
      '│    ⋯ Run `make docs`  4 s',
      '└─ ✓ numbers  completed 810 ms',
      '     reported: All sums are right.',
    }, shown(view(agents)))
  end)

  it('has the time of what runs go on, and of nothing else', function()
    local agents = {
      agent('a', { turnId = 't', elapsedMs = 1000 }),
      agent('b', { status = 'completed', elapsedMs = 1000, createdAt = '2026-01-01T00:00:01Z' }),
    }
    local text = shown(view(agents, { fetched = 500 }), { now = 60500 })
    assert.same('├─ ● a  running 1 m 1 s', text[3])
    assert.same('└─ ✓ b  completed 1 s', text[4])
    assert.is_true(model.runs(view(agents)))
    assert.is_false(model.runs(view({ agents[2] })))
  end)

  it('hangs agents below those that started them, in the order in which they came', function()
    local agents = {
      agent('late', { createdAt = '2026-01-01T00:00:09Z' }),
      agent('child', { parentId = 'ses_early' }),
      agent('early', { createdAt = '2026-01-01T00:00:01Z', queued = 1 }),
      agent('lost', { parentId = 'ses_gone', createdAt = '2026-01-01T00:00:10Z' }),
    }
    assert.same({
      '├─ ● early  running',
      '│  │ 1 message for its next step',
      '│  └─ ● child  running',
      '├─ ● late  running',
      '└─ ● lost  running',
    }, vim.list_slice(shown(view(agents)), 3))
  end)

  it('shows each once, also where parents go in a circle', function()
    local text = table.concat(
      shown(view({
        agent('a', { parentId = 'ses_b' }),
        agent('b', { parentId = 'ses_a' }),
        agent('c', { parentId = 'ses_c' }),
      })),
      '\n'
    )
    for _, name in ipairs({ 'a', 'b', 'c' }) do
      local _, count = text:gsub('● ' .. name .. ' ', '')
      assert.equal(1, count, name)
    end
  end)

  it('says what each waits for', function()
    local agents = {
      agent('a', { approvals = { { approvalId = 'apr', title = 'Run `rm`' } }, turnId = 't' }),
      agent('b', {
        question = { askId = 'ask', text = 'Which of\nthe two?' },
        turnId = 't',
        createdAt = '2026-01-01T00:00:01Z',
      }),
      agent('c', { status = 'starting', waitsForSlot = true, createdAt = '2026-01-01T00:00:02Z' }),
      agent('d', { interrupt = 'cancel', createdAt = '2026-01-01T00:00:03Z' }),
      agent('e', {
        status = 'interrupted',
        interrupted = { reason = 'Enough.' },
        report = { status = 'aborted', summary = 'half' },
        createdAt = '2026-01-01T00:00:04Z',
      }),
      agent('f', {
        status = 'failed',
        report = { status = 'failed', summary = 'no key' },
        createdAt = '2026-01-01T00:00:05Z',
      }),
    }
    local approvals = { { approvalId = 'x', title = 'Edit a.py' } }
    local text = shown(view(agents, { approvals = approvals }))
    assert.same(
      '6 agents · 2 running · 3 waiting for you · all together at least 1.5k tokens, $0.02',
      text[1]
    )
    assert.same({
      '│ to approve: Edit a.py',
      '├─ ? a  waits for approval',
      '│    to approve: Run `rm`',
      '├─ ? b  waits for a reply',
      '│    asks: Which of the two?',
      '├─ ○ c  waits for a free place',
      '├─ ● d  winds down',
      '├─ ■ e  interrupted',
      '│    stopped: Enough.',
      '└─ ✗ f  failed',
      '     failed: no key',
    }, vim.list_slice(text, 3))
  end)

  it('asks before it closes one', function()
    local text = shown(
      view({ agent('a'), agent('b', { createdAt = '2026-01-01T00:00:01Z' }) }),
      { closing = 'ses_a' }
    )
    assert.same('│    D again closes a, and those below it, for good', text[4])
  end)

  it('says so where there are none', function()
    local text = shown(view({}))
    assert.same('0 agents · all together 1.5k tokens, $0.02', text[1])
    assert.truthy(text[3]:find('No agents yet', 1, true))
  end)

  it('takes names, titles, models and statuses that hold anything', function()
    local nasty = 'a\nb\27[2J\226\128\174%f\255' .. ('x'):rep(400)
    local agents = {
      agent('a', {
        name = nasty,
        agentType = nasty,
        model = nasty,
        status = nasty,
        tools = { { callId = 'c', name = nasty, title = nasty, startedAt = nasty } },
        approvals = nil,
        usage = { inputTokens = 1, cost = 1, currency = nasty },
        interrupted = { reason = nasty },
      }),
    }
    for _, line in ipairs(shown(view(agents, { root = root({ title = nasty, status = nasty }) }))) do
      assert.is_nil(line:find('[\n\27]'))
      assert.is_nil(line:find('\226\128\174', 1, true))
    end
  end)

  it('names the agent that each line is about', function()
    local list = model.lines(view({ agent('a', { queued = 2 }) }), { now = 0, icons = 'text' })
    assert.is_nil(list[1].target)
    assert.same({ id = 'ses_root' }, list[2].target)
    assert.same('ses_a', list[3].target.id)
    assert.same('ses_a', list[4].target.agent.agentId)
  end)
end)

describe('what was used', function()
  it('is unknown rather than nothing', function()
    assert.is_nil(spent.said(nil))
    assert.is_nil(spent.said({}))
    assert.same('0 tokens', spent.said({ inputTokens = 0, outputTokens = 0 }))
  end)

  it('is added up by currency, and told as a lower bound where some is unknown', function()
    local agents = {
      agent('a', { usage = { inputTokens = 10, cost = 0.5, currency = 'EUR' } }),
      agent('b', { status = 'completed' }),
    }
    local total = spent.total(view(agents))
    assert.same('at least 1.5k tokens, 0.50 EUR, $0.02', spent.said(total))
    assert.same('$0.0004', spent.said({ cost = 0.0004, currency = 'USD' }))
  end)
end)

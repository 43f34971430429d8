--- How an approval can be answered, and when a key is not taken.
local answers = require('callboard.model.answers')

local KINDS = {
  { 'allow_once', 'Allow once' },
  { 'allow_session', 'Allow commands that start with `make` for this session' },
  { 'allow_always', 'Always allow commands that start with `make` in this workspace' },
  { 'reject_once', 'Reject' },
  { 'reject_always', 'Always reject commands that start with `make` in this workspace' },
}

local function approval(fields)
  local options = {}
  for i, kind in ipairs(KINDS) do
    options[i] = { optionId = kind[1], name = kind[2], kind = kind[1] }
  end
  return vim.tbl_extend('force', {
    approvalId = 'apr_1',
    sessionId = 'ses_1',
    rootId = 'ses_1',
    kind = 'permission',
    title = 'Run `make`',
    tool = 'run_command',
    subject = { type = 'command', command = 'make', cwd = '/w' },
    options = options,
    createdAt = '2026-01-01T00:00:00Z',
  }, fields or {})
end

local function summary(of)
  return vim.tbl_map(function(choice)
    return ('%d %s %s%s'):format(
      choice.number,
      choice.action,
      choice.option.optionId,
      choice.note and ' +' .. choice.note or ''
    )
  end, answers.choices(of))
end

describe('the answers to a permission', function()
  it('stand at the same keys always', function()
    assert.same({
      '1 once allow_once',
      '2 session allow_session',
      '3 always allow_always',
      '4 deny reject_once',
      '5 deny_note reject_once +why',
      '6 deny_always reject_always',
    }, summary(approval()))
  end)

  it('are those that it offers, and no others', function()
    local forced = approval()
    forced.options = { forced.options[1], forced.options[4] }
    assert.same(
      { '1 once allow_once', '4 deny reject_once', '5 deny_note reject_once +why' },
      summary(forced)
    )
    assert.is_nil(answers.choice(forced, 2))
    assert.is_nil(answers.choice(forced, 3))
    assert.same('allow_once', answers.choice(forced, 1).option.optionId)
  end)

  it('say which of them write a rule', function()
    local labels = vim.tbl_map(function(choice)
      return choice.label
    end, answers.choices(approval()))
    assert.same(
      'Always allow commands that start with `make` in this workspace (writes a rule)',
      labels[3]
    )
    assert.same('Allow commands that start with `make` for this session', labels[2])
    assert.same('Deny, and say why', labels[5])
    assert.truthy(labels[6]:find('(writes a rule)', 1, true))
  end)

  it('of a kind that is not known here come behind the others', function()
    local newer = approval({
      options = {
        { optionId = 'a', name = 'Allow for an hour\27[2J', kind = 'allow_hour' },
        { optionId = 'b', name = 'Allow once', kind = 'allow_once' },
      },
    })
    assert.same({ '1 once b', '7 option7 a' }, summary(newer))
    assert.same('Allow for an hour<1B>[2J', answers.choice(newer, 7).label)
  end)
end)

describe('a question', function()
  it('has its options in their own order', function()
    local question = approval({
      kind = 'question',
      subject = { type = 'form', message = 'Which?', schema = {} },
      options = {
        { optionId = 'x', name = 'No', kind = 'reject_once' },
        { optionId = 'y', name = 'This', kind = 'allow_once' },
      },
    })
    assert.same({ '1 option1 x', '2 option2 y +answer' }, summary(question))
  end)
end)

describe('who asks', function()
  it('is told of agents, by their path below the root', function()
    assert.is_nil(answers.who(approval({ path = { { sessionId = 'ses_1', name = 'default' } } })))
    local path = {
      { sessionId = 'ses_1', name = 'default' },
      { sessionId = 'ses_2', name = 'docs' },
      { sessionId = 'ses_3', name = 'num\nbers' },
    }
    assert.same('docs › num bers', answers.who(approval({ sessionId = 'ses_3', path = path })))
    assert.same('an agent', answers.who(approval({ sessionId = 'ses_3' })))
  end)
end)

describe('a key', function()
  local first = approval({ title = 'First' })
  local second = approval({ approvalId = 'apr_2', title = 'Second' })

  it('does not answer what has only just come', function()
    local arrivals = answers.arrivals()
    assert.same({ first }, answers.update(arrivals, {}, { first }, 1000))
    assert.truthy(answers.hold(arrivals, first, 1000 + answers.HOLD_MS - 1))
    assert.is_nil(answers.hold(arrivals, first, 1000 + answers.HOLD_MS))
  end)

  it('does not answer what has just taken the place of another', function()
    local arrivals = answers.arrivals()
    answers.update(arrivals, {}, { first, second }, 0)
    assert.same({}, answers.update(arrivals, { first, second }, { second }, 5000))
    local held = answers.hold(arrivals, second, 5000 + answers.HOLD_MS - 1)
    assert.truthy(held:find('"First" has just ended', 1, true))
    assert.truthy(held:find('"Second"', 1, true))
    assert.is_nil(answers.hold(arrivals, second, 5000 + answers.HOLD_MS))
  end)

  it('is not kept from another session by that', function()
    local arrivals = answers.arrivals()
    local other = approval({ approvalId = 'apr_3', sessionId = 'ses_9', rootId = 'ses_9' })
    answers.update(arrivals, {}, { first, other }, 0)
    answers.update(arrivals, { first, other }, { other }, 5000)
    assert.is_nil(answers.hold(arrivals, other, 5001))
  end)

  it('is told of titles that hold anything', function()
    local arrivals = answers.arrivals()
    local hostile = approval({ title = 'a\nb\27[31m' .. ('x'):rep(500) })
    answers.update(arrivals, {}, { hostile }, 0)
    local held = answers.hold(arrivals, hostile, 1)
    assert.is_nil(held:find('[\n\27]'))
    assert.truthy(#held < 300)
  end)
end)

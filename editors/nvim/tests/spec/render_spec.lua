-- What a chat shows of a session, as text.
local golden = require('golden')
local recorded = require('recorded')
local shown = require('shown')

local render = require('callboard.ui.render')

---@param item table
---@param look table?
---@param before table?
---@return string
local function text_of(item, look, before)
  item = vim.tbl_extend('keep', item, { id = 'x', seq = 1, at = '', text = '' })
  look = vim.tbl_extend('force', { icons = 'text', fold_lines = 5, agent = 'default' }, look or {})
  local block = render.block(item, before, look)
  return table.concat(vim.tbl_map(require('callboard.ui.lines').text, block.lines), '\n')
end

describe('a recorded session', function()
  -- How an approval looks is agreed on elsewhere.
  local real
  before_each(function()
    real = package.loaded['callboard.ui.approval']
    package.loaded['callboard.ui.approval'] = {
      block = function(approval)
        return {
          { { ('! %s'):format(approval.title) } },
          { { '  (what is asked, and the answers)' } },
        }
      end,
    }
  end)
  after_each(function()
    package.loaded['callboard.ui.approval'] = real
  end)

  for _, name in ipairs(recorded.names()) do
    it(name .. ' is shown as it was agreed', function()
      local all = {}
      for _, said in ipairs(recorded.said(name).sessions) do
        local session = said.session
        local view = shown.show(recorded.transcript(name, session.sessionId), { session = session })
        all[#all + 1] = ('=== %s\n%s'):format(session.sessionId, view.text())
        view.close()
      end
      -- Each recording has its own.
      local text = table.concat(all, '\n'):gsub('(%l+_)06%w+', '%1X'):gsub('time="%d+"', 'time="0"')
      assert.equal(golden.check(name, text), text)
    end)
  end
end)

describe('a heading', function()
  it('names who speaks only where another one begins to', function()
    local answer = { kind = 'answer', text = 'Yes.' }
    assert.equal('── Agent ──\nYes.', text_of(answer))
    assert.equal('\nYes.', text_of(answer, nil, { kind = 'tool' }))
    assert.equal('\n── Agent ──\nYes.', text_of(answer, nil, { kind = 'prompt' }))
  end)

  it('tells the members of a room apart', function()
    local look = { room = true, speakers = { trn_1 = 'alpha' } }
    local one = { kind = 'answer', text = 'Yes.', turn_id = 'trn_1' }
    local other = { kind = 'answer', text = 'No.', author = { kind = 'agent', name = 'beta' } }
    assert.equal('── alpha ──\nYes.', text_of(one, look))
    assert.equal('\n── beta ──\nNo.', text_of(other, look, one))
  end)

  it('says who wrote what no person wrote', function()
    local function prompt(author, text)
      return text_of({ kind = 'prompt', text = text or 'x', author = author }, { parent = 'ses_1' })
    end
    assert.equal(
      '── From its parent ──\nx',
      prompt({ kind = 'agent', name = 'lead', id = 'ses_1' })
    )
    assert.equal(
      '── From lead ──\nx',
      prompt({ kind = 'agent', name = 'lead', id = 'ses_2' })
    )
    assert.equal('── From peer one ──\nx', prompt({ kind = 'peer', name = 'one' }))
    assert.equal(
      '── From schedule nightly ──\nx',
      prompt({ kind = 'schedule', name = 'nightly' })
    )
    assert.equal('── From the system ──\nx', prompt({ kind = 'system', name = 'system' }))
  end)

  it('takes off the frame that is for the model', function()
    local text =
      '<agent-report agent="a" status="completed">\n1 &lt; 2 &amp;amp; 3\n</agent-report>\nFor the model.'
    local author = { kind = 'agent', name = 'a' }
    assert.equal(
      '── From a (report, completed) ──\n1 < 2 &amp; 3',
      text_of({ kind = 'prompt', text = text, author = author })
    )
    -- A person may write what they like, and see it.
    assert.equal('── You ──\n' .. text, text_of({ kind = 'prompt', text = text }))
  end)
end)

describe('a card', function()
  local function card(call, result, more)
    local item = vim.tbl_extend('force', {
      kind = 'tool',
      call = vim.tbl_extend(
        'keep',
        call,
        { callId = 'x', name = 'x', title = 'Do it', arguments = {} }
      ),
      result = result,
      text = result and result.text or '',
    }, more or {})
    return text_of(item, nil, { kind = 'tool' })
  end

  it('says in words what came of it', function()
    local told =
      { error = 'failed', denied = 'denied', timed_out = 'timed out', cancelled = 'stopped' }
    for status, words in pairs(told) do
      assert.matches((' %s: Do it$'):format(words), card({}, { status = status, text = '' }))
    end
    assert.matches(' exploded: Do it$', card({}, { status = 'exploded', text = '' }))
    assert.equal('  ✓ Do it', card({}, { status = 'ok', text = '' }))
    assert.matches('running$', card({}, nil))
  end)

  it('has its exit code, and how long it took', function()
    local text = card({}, { status = 'error', text = '', exitCode = 3, durationMs = 4200 })
    assert.equal('  ✗ failed, exit 3: Do it  4 s', text)
    assert.equal(
      '  ✓ Do it',
      card({}, { status = 'ok', text = '', exitCode = 0, durationMs = 20 })
    )
  end)

  it('cuts what was read at its end, and the output of a command at its beginning', function()
    local text = table.concat(vim.fn.range(1, 9), '\n')
    local read = card({ kind = 'read' }, { status = 'ok', text = text })
    assert.equal(
      '  ✓ Do it  6 lines\n  │ 1\n  │ 2\n  │ 3\n  │ 4\n  │ 5\n  │ … 4 more lines, <CR> opens all',
      read
    )
    local ran = card({ kind = 'execute' }, { status = 'ok', text = text })
    assert.equal(
      '  ✓ Do it  6 lines\n  │ … 4 lines above, <CR> opens all\n  │ 5\n  │ 6\n  │ 7\n  │ 8\n  │ 9',
      ran
    )
  end)

  it('shows the end of what a running tool prints', function()
    local text = card(
      { kind = 'execute' },
      nil,
      { text = table.concat(vim.fn.range(1, 100000), '\n') }
    )
    assert.equal(
      '  … Do it  running\n  │ …\n  │ 99996\n  │ 99997\n  │ 99998\n  │ 99999\n  │ 100000',
      text
    )
  end)

  it('shows a change as a diff, and counts it', function()
    local diff = '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n'
    local text = card({}, {
      status = 'ok',
      text = 'Changed',
      changes = { { path = '/x', diff = diff, added = 1, removed = 1, operation = 'modify' } },
    })
    assert.equal('  ✓ Do it  +1 -1  3 lines\n  │ @@ -1 +1 @@\n  │ -old\n  │ +new', text)
  end)

  it('of the plan is its title alone', function()
    assert.equal(
      '  ✓ Plan: 1',
      card({ name = 'update_plan', title = 'Plan: 1' }, { status = 'ok', text = 'Updated' })
    )
  end)
end)

describe('a notice of the log', function()
  it('says how severe it is in words, and why below', function()
    local function of(severity, description)
      return text_of({ kind = 'notice', text = 'T', severity = severity, description = description })
    end
    assert.equal('i Note: T', of('info', ' '))
    assert.equal('! Warning: T\n  a\n  b', of('warning', 'a\nb'))
    assert.equal('✗ Error: T', of('error'))
    assert.equal('! Warning: T', of('fatal'))
  end)
end)

describe('hostile text', function()
  local NASTY = 'a\27[31mb\rc\0d\226\128\174e\nf%#Error#\255'

  it('acts on nothing, wherever it stands', function()
    local items = {
      {
        kind = 'prompt',
        text = NASTY,
        author = { kind = 'peer', name = NASTY },
        attachments = { NASTY, 'file:///' .. NASTY },
      },
      { kind = 'answer', text = NASTY, author = { kind = 'agent', name = NASTY } },
      { kind = 'thought', text = NASTY },
      { kind = 'notice', text = NASTY },
      { kind = 'notice', text = NASTY, severity = NASTY, description = NASTY },
      {
        kind = 'error',
        text = NASTY,
        failure = { kind = NASTY, message = NASTY, provider = NASTY },
      },
      { kind = 'turn', outcome = NASTY, usage = { cost = 1, currency = NASTY } },
      {
        kind = 'tool',
        call = { callId = 'x', name = NASTY, title = NASTY, arguments = {} },
        text = NASTY,
      },
      {
        kind = 'tool',
        call = { callId = 'x', name = 'x', title = NASTY, arguments = {} },
        text = NASTY,
        result = {
          name = NASTY,
          status = NASTY,
          text = NASTY,
          changes = {
            { path = NASTY, diff = NASTY, operation = NASTY, added = 1, removed = 0 },
            { path = NASTY, diff = NASTY, operation = NASTY, added = 1, removed = 0 },
          },
        },
      },
    }
    for _, item in ipairs(items) do
      local text = text_of(item, { room = true, agent = NASTY })
      assert.is_nil(text:find('[%z\1-\8\11-\31\127]'), item.kind)
      assert.is_nil(text:find('\226\128\174', 1, true), item.kind)
      assert.equal(text, require('callboard.model.text').utf8(text), item.kind)
      assert.matches('<1B>', text)
    end
  end)

  it('that cannot be drawn is a line that says so', function()
    local text = text_of({ kind = 'tool', call = { title = 7 }, text = 7 })
    assert.matches('a tool that cannot be shown', text)
  end)
end)

describe('what it cost', function()
  it('is told as far as it is known', function()
    local function told(usage)
      return table.concat(render.usage(usage), ' · ')
    end
    assert.equal('', told(nil))
    assert.equal('', told({ requests = 1 }))
    assert.equal('1.2k in, ? out', told({ inputTokens = 1200 }))
    assert.equal(
      '900 in, 12 out · $0.0125',
      told({ inputTokens = 900, outputTokens = 12, cost = 0.0125 })
    )
    assert.equal('0.5 EUR', told({ cost = 0.5, currency = 'EUR' }))
  end)
end)

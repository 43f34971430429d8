--- What is shown of an approval: all that is asked, and nothing that is not there.
local block = require('callboard.ui.approval').block
local config = require('callboard.config')
local lines = require('callboard.ui.lines')

local OPTIONS = {
  { optionId = 'allow_once', name = 'Allow once', kind = 'allow_once' },
  { optionId = 'allow_session', name = 'Allow it for this session', kind = 'allow_session' },
  { optionId = 'allow_always', name = 'Always allow it in this workspace', kind = 'allow_always' },
  { optionId = 'reject_once', name = 'Reject', kind = 'reject_once' },
}

local function approval(subject, fields)
  return vim.tbl_extend('force', {
    approvalId = 'apr_1',
    sessionId = 'ses_1',
    rootId = 'ses_1',
    kind = 'permission',
    title = 'Do it',
    tool = 'tool',
    subject = subject,
    options = OPTIONS,
    createdAt = '2026-01-01T00:00:00Z',
    risk = 'medium',
  }, fields or {})
end

local function shown(of)
  return vim.tbl_map(lines.text, block(of))
end

---The chunks with that highlight.
local function with(of, hl)
  local found = {}
  for _, line in ipairs(block(of)) do
    for _, chunk in ipairs(line) do
      if chunk[2] == hl then
        found[#found + 1] = chunk[1]
      end
    end
  end
  return found
end

describe('an approval', function()
  before_each(function()
    config.setup({})
  end)

  it('of a command shows all of it, where it runs, and what each answer does', function()
    local command = 'make all &&\n  rm -rf ' .. ('x'):rep(3000)
    assert.same(
      {
        '! Do it  high risk',
        '  asked by docs',
        '  $ make all &&',
        '      rm -rf ' .. ('x'):rep(3000),
        '  in /work',
        '  why: a rule asks about it',
        '  1 once  2 this session  3 always  4 deny  5 deny and say why',
        '  2: Allow it for this session',
        '  3: Always allow it in this workspace (writes a rule)',
      },
      shown(approval({ type = 'command', command = command, cwd = '/work' }, {
        risk = 'high',
        reason = 'a rule asks about it',
        path = { { sessionId = 'ses_1', name = 'default' }, { sessionId = 'ses_2', name = 'docs' } },
      }))
    )
  end)

  it('spells out what would act on the terminal, or turn the text around', function()
    local hostile = 'ls \27[2K\226\128\174fr- mr\226\128\172; \r:\7'
    local text =
      table.concat(shown(approval({ type = 'command', command = hostile, cwd = '/w\n/x' })), '\n')
    assert.truthy(text:find('$ ls <1B>[2K<U+202E>fr- mr<U+202C>; <0D>:<07>', 1, true))
    assert.truthy(text:find('in /w /x', 1, true))
  end)

  it('of changes shows each file with its diff, in colours', function()
    local subject = {
      type = 'fileChange',
      changes = {
        {
          path = '/w/a.py',
          operation = 'modify',
          diff = '--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-old\n+new\n+more\n',
          added = 2,
          removed = 1,
        },
        {
          path = '/w/c.py',
          oldPath = '/w/b.py',
          operation = 'move',
          diff = '',
          added = 0,
          removed = 0,
        },
      },
    }
    local text = shown(approval(subject))
    assert.same({
      '  modify /w/a.py  +2 -1',
      '  @@ -1 +1,2 @@',
      '  -old',
      '  +new',
      '  +more',
      '  move /w/b.py → /w/c.py  +0 -0',
    }, vim.list_slice(text, 2, 7))
    assert.truthy(vim.list_contains(with(approval(subject), 'CallboardAdded'), '  +new'))
    assert.truthy(vim.list_contains(with(approval(subject), 'CallboardRemoved'), '  -old'))
  end)

  it('cuts long diffs, and says how to see the rest', function()
    config.setup({ render = { fold_lines = 3 } })
    local diff = '@@ -0,0 +1,10 @@\n' .. ('+x\n'):rep(10)
    local change = { path = '/w/a', operation = 'create', diff = diff, added = 10, removed = 0 }
    local text = shown(approval({ type = 'fileChange', changes = { change, change } }))
    assert.same({
      '  @@ -0,0 +1,10 @@',
      '  +x',
      '  +x',
      '  create /w/a  +10 -0',
      '  … 19 more lines: gd shows all',
    }, vim.list_slice(text, 3, 7))
  end)

  it('says when the server has cut a diff', function()
    local change =
      { path = '/w/a', operation = 'create', diff = '+x', added = 9, removed = 0, truncated = true }
    assert.truthy(
      table
        .concat(shown(approval({ type = 'fileChange', changes = { change } })))
        :find('longer than')
    )
  end)

  it('of another call shows its arguments', function()
    local text = shown(approval({
      type = 'toolCall',
      name = 'fetch',
      arguments = { url = 'http://x\27', deep = { list = { 1, 'two\nlines' } }, flag = true },
      locations = { { path = '/w/a' } },
    }))
    assert.same({
      '  fetch',
      '  deep:',
      '    list:',
      '      - 1',
      '      - two',
      '        lines',
      '  flag: true',
      '  url: http://x<1B>',
      '  at /w/a',
    }, vim.list_slice(text, 2, 10))
  end)

  it('of a kind that is not known here hides nothing', function()
    local text = table.concat(shown(approval({ type = 'teleport', target = 'mars' })), '\n')
    assert.truthy(text:find('target: mars', 1, true))
  end)

  it('shows the keys as they are set, and none for what has no key', function()
    config.setup({ keymaps = { approval = { once = 'ga', session = false } } })
    local text = shown(approval({ type = 'command', command = 'x', cwd = '/w' }))
    assert.same('  ga once  – this session  3 always  4 deny  5 deny and say why', text[4])
    assert.same('  –: Allow it for this session', text[5])
  end)

  it('says once what a rule and its opposite are about', function()
    local options = vim.list_extend({}, OPTIONS)
    options[5] = {
      optionId = 'reject_always',
      name = 'Always reject it in this workspace',
      kind = 'reject_always',
    }
    local text =
      shown(approval({ type = 'command', command = 'x', cwd = '/w' }, { options = options }))
    assert.same({
      '  1 once  2 this session  3 always  4 deny  5 deny and say why  6 never',
      '  2: Allow it for this session',
      '  3: Always allow it in this workspace (writes a rule); 6: its opposite',
    }, vim.list_slice(text, 4))
    options[5].name = 'Always reject all in this workspace'
    text = shown(approval({ type = 'command', command = 'x', cwd = '/w' }, { options = options }))
    assert.same('  6: Always reject all in this workspace (writes a rule)', text[7])
  end)

  it('of a command does not say it twice', function()
    local of = approval({ type = 'command', command = 'make  all\n' .. ('x'):rep(200), cwd = '/w' })
    of.title = 'make all ' .. ('x'):rep(60) .. '…'
    assert.same('! Run this command  medium risk', shown(of)[1])
    of.title = 'make clean'
    assert.same('! make clean  medium risk', shown(of)[1])
  end)

  it('that was answered is one line', function()
    local answered = approval({ type = 'command', command = 'x', cwd = '/w' }, {
      resolution = {
        outcome = 'rejected',
        by = { kind = 'client', id = 'c', name = 'VS\nCode' },
        feedback = 'not\nnow',
      },
    })
    assert.same({ 'Denied by VS Code: not now' }, shown(answered))
  end)

  it('holds no line end in any line, whatever it is made of', function()
    local nasty = 'a\nb\r\nc\27d\226\128\174e%f\255'
    local of = approval({
      type = 'fileChange',
      changes = { { path = nasty, oldPath = nasty, operation = nasty, diff = nasty } },
    }, {
      title = nasty,
      reason = nasty,
      risk = nasty,
      path = { { name = 'r' }, { name = nasty } },
      options = { { optionId = 'o', name = nasty, kind = 'allow_once' } },
    })
    for _, line in ipairs(block(of)) do
      for _, chunk in ipairs(line) do
        assert.is_nil(chunk[1]:find('[\n\r\27]'), chunk[1])
      end
    end
  end)
end)

describe('a question', function()
  it('shows what is asked, what the answer may hold, and its options by number', function()
    local question = approval({
      type = 'form',
      message = 'Which port?\nMind the firewall.',
      schema = {
        type = 'object',
        required = { 'port' },
        properties = {
          port = { type = 'integer', description = 'below 1024' },
          scheme = { enum = { 'http', 'https' } },
        },
      },
    }, {
      kind = 'question',
      title = 'A question',
      options = {
        { optionId = 'a', name = 'Answer', kind = 'allow_once' },
        { optionId = 'b', name = 'Do not answer', kind = 'reject_once' },
      },
    })
    assert.same({
      '? A question',
      '  Which port?',
      '  Mind the firewall.',
      '  port  integer; required; below 1024',
      '  scheme  anything; one of http, https',
      '  1 Answer',
      '  2 Do not answer',
    }, shown(question))
  end)
end)

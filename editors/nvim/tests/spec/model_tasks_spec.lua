--- The task board as lines.
local card = require('callboard.model.task_card')
local lines = require('callboard.ui.lines')
local model = require('callboard.model.tasks')

local MEMBERS = {
  { agentId = 'ses_root', name = 'root', isRoot = true },
  { agentId = 'ses_docs', name = 'docs', status = 'running' },
  { agentId = 'ses_old', name = 'old', status = 'completed' },
}

local function task(id, status, fields)
  return vim.tbl_extend('force', {
    taskId = 'tsk_' .. id,
    groupId = 'grp',
    title = 'Task ' .. id,
    status = status,
    createdBy = 'ses_root',
    createdAt = '2026-01-01T00:00:00Z',
    updatedAt = '2026-01-01T00:00:00Z',
    required = true,
    dependencies = {},
    blockers = {},
  }, fields or {})
end

local function board(tasks, group, fields)
  return vim.tbl_extend('force', {
    root = 'ses_root',
    title = 'The project',
    tasks = tasks,
    more = false,
    messages = {},
    group = vim.tbl_extend(
      'force',
      { groupId = 'grp', members = MEMBERS, counts = { total = #tasks } },
      group or {}
    ),
  }, fields or {})
end

local function shown(view)
  return vim.tbl_map(lines.text, model.lines(view))
end

describe('the board', function()
  it('has its tasks in sections, with owners and what is in the way', function()
    local tasks = {
      task('parse', 'pending', { ready = true }),
      task('docs', 'in_progress', { assignee = 'ses_docs' }),
      task('stuck', 'claimed', { assignee = 'ses_old', required = false }),
      task('key', 'blocked', { assignee = 'ses_docs', reason = 'no\nkey' }),
      task(
        'ship',
        'pending',
        { blockers = { 'tsk_parse', 'tsk_key' }, dependencies = { 'tsk_parse', 'tsk_key' } }
      ),
      task('plan', 'completed', { assignee = 'ses_root', summary = 'Planned.' }),
      task('no', 'cancelled', { reason = 'Not needed' }),
    }
    local group = {
      counts = {
        total = 7,
        pending = 2,
        ready = 1,
        claimed = 1,
        inProgress = 1,
        blocked = 1,
        completed = 1,
        cancelled = 1,
      },
      dependencyFailures = { { taskId = 'tsk_ship', dependencyId = 'tsk_key', status = 'blocked' } },
      conflicts = { { taskIds = { 'tsk_docs', 'tsk_stuck' }, path = 'README.md' } },
      requiredUnfinished = { 'tsk_parse', 'tsk_docs', 'tsk_key', 'tsk_ship' },
    }
    local messages = {
      {
        messageId = 'm2',
        sender = 'ses_docs',
        senderName = 'docs',
        to = 'root',
        text = 'Second\nline',
        at = '',
        seen = false,
      },
      {
        messageId = 'm1',
        sender = 'ses_old',
        senderName = 'old',
        to = 'group',
        text = 'First',
        at = '',
        seen = true,
      },
    }
    assert.same({
      'The project  7 tasks: 1 ready, 2 active, 1 blocked, 1 waiting, 1 done, 1 cancelled  4 required not done',
      'Members  root, docs (running), old (completed)',
      '',
      'Ready (1)',
      '  ○ Task parse  required',
      '',
      'Active (2)',
      '  ● Task docs  docs  in progress  required',
      '    "Task stuck" changes README.md, too',
      '  ● Task stuck  old  optional',
      '    nobody is at it: old is completed',
      '    "Task docs" changes README.md, too',
      '',
      'Blocked (1)',
      '  ✗ Task key  docs  required',
      '    no key',
      '',
      'Waiting (1)',
      '  · Task ship  required',
      '    cannot become ready: "Task key" is blocked',
      '    waits for "Task parse"',
      '',
      'Done (1)',
      '  ✓ Task plan  root',
      '    Planned.',
      '',
      'Cancelled (1)',
      '  - Task no',
      '    Not needed',
      '',
      'Messages to this session',
      '  old → all: First',
      '  docs → root: Second line  not read yet',
    }, shown(board(tasks, group, { messages = messages })))
  end)

  it('says how to begin where there is none yet', function()
    local view = board({})
    view.group = nil
    assert.same({ 'The project', 'No group yet: n makes the first task' }, shown(view))
  end)

  it('says when all that is required is done', function()
    local text = shown(board({ task('a', 'completed') }))
    assert.truthy(text[1]:find('1 task  all that is required is done', 1, true))
  end)

  it('shows the latest of many that are over, and all that are open', function()
    local tasks = {}
    for i = 1, model.OVER + 5 do
      tasks[#tasks + 1] = task('done' .. i, 'completed')
      tasks[#tasks + 1] = task('open' .. i, 'pending', { ready = true })
    end
    local text = table.concat(shown(board(tasks, {}, { more = true })), '\n')
    assert.truthy(text:find('  … 5 before these\n', 1, true))
    assert.is_nil(text:find('Task done5\n', 1, true))
    assert.truthy(text:find('Task done6\n', 1, true))
    assert.truthy(text:find('Task open1 ', 1, true))
    assert.truthy(text:find('There are more tasks', 1, true))
  end)

  it('names no more than a few of many blockers', function()
    local ids = { 'tsk_a', 'tsk_b', 'tsk_c', 'tsk_d', 'tsk_unknown' }
    local text = shown(board({ task('x', 'pending', { blockers = ids }), task('a', 'claimed') }))
    assert.truthy(
      vim.list_contains(text, '    waits for "Task a", "…tsk_b", "…tsk_c", 2 more'),
      table.concat(text, '\n')
    )
  end)

  it('takes titles, names and reasons that hold anything', function()
    local nasty = 'a\nb\27[2J\226\128\174%f\255' .. ('x'):rep(400)
    local tasks = {
      task('a', 'blocked', { title = nasty, reason = nasty, assignee = 'ses_n' }),
      task('b', nasty, {
        title = nasty,
        summary = nasty,
        description = nasty,
        findings = { nasty },
        touchedFiles = { nasty },
      }),
    }
    local view = board(tasks, {
      members = { { agentId = 'ses_n', name = nasty, status = nasty } },
      conflicts = { { taskIds = { 'tsk_a', 'tsk_b' }, path = nasty } },
    }, {
      title = nasty,
      messages = { { sender = 'x', senderName = nasty, to = 'root', text = nasty, at = '' } },
    })
    for _, line in
      ipairs(vim.list_extend(shown(view), vim.tbl_map(lines.text, card.lines(view, tasks[2]))))
    do
      assert.is_nil(line:find('[\n\27]'))
      assert.is_nil(line:find('\226\128\174', 1, true))
    end
  end)
end)

describe('the card of a task', function()
  it('has all that is known of it', function()
    local one = task('one', 'completed')
    local two = task('two', 'completed', {
      title = 'Write the docs',
      description = 'First line\nsecond line',
      dependencies = { 'tsk_one', 'tsk_gone' },
      expectedPaths = { 'docs/a.md' },
      assignee = 'ses_docs',
      summary = 'Written.',
      findings = { 'It was short', 'It is long' },
      touchedFiles = { '/w/docs/a.md' },
      required = false,
    })
    local view = board({ one, two })
    assert.same({
      'Write the docs',
      'status    completed',
      'owner     docs',
      'required  no: the work is complete without it, too',
      'about     First line',
      '          second line',
      'after     Task one (completed)',
      '          tsk_gone',
      'expects   docs/a.md',
      'summary   Written.',
      'finding   It was short',
      '          It is long',
      'changed   /w/docs/a.md',
      'created   2026-01-01T00:00:00Z by root',
      'id        tsk_two',
    }, vim.tbl_map(lines.text, card.lines(view, two)))
  end)
end)

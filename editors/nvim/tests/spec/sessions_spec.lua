local fake = require('fake_app')

local function refused(kind, message)
  return nil, { code = -31000, message = message or 'no', data = { kind = kind } }
end

describe('a session', function()
  local app, sessions, asked, picked

  before_each(function()
    app = fake.install()
    package.loaded['callboard.ui.sessions'] = nil
    sessions = require('callboard.ui.sessions')
    picked, asked = nil, nil
    package.loaded['callboard.pickers'] = {
      pick = function(opts)
        picked = opts
      end,
      ask = function(title, answers)
        asked = { title = title, answers = answers }
      end,
    }
  end)

  after_each(function()
    app:restore()
    package.loaded['callboard.pickers'] = nil
    package.loaded['callboard.ui.sessions'] = nil
    vim.cmd('silent! tabonly! | silent! only! | silent! %bwipeout!')
  end)

  ---@return string[]
  local function lines()
    return vim.tbl_map(function(item)
      return picked.format(item)
    end, picked.items)
  end

  ---@param start string
  local function choose(start)
    for _, item in ipairs(picked.items) do
      if picked.format(item):find(start, 1, true) then
        return picked.on_choice(item)
      end
    end
    error('no line with ' .. start .. ' in ' .. vim.inspect(lines()))
  end

  describe('is opened', function()
    local stored = {
      {
        fake.session({ sessionId = 'ses_aa11' }),
        fake.session({ sessionId = 'ses_ab22', title = 'two' }),
      },
      { fake.session({ sessionId = 'ses_ac33' }) },
      { fake.session({ sessionId = 'ses_zz99', archived = true }) },
    }

    before_each(function()
      app.answers['session/list'] = function(params)
        if params.archived then
          return { data = stored[3] }
        end
        return params.cursor and { data = stored[2] } or { data = stored[1], nextCursor = 'more' }
      end
      app.answers['session/get'] = function()
        return refused('sessionNotFound')
      end
    end)

    it('by the beginning of its id, from whatever page', function()
      sessions.open('ses_ac')
      assert.same({ { 'ses_ac33' } }, app.opened)
    end)

    it('by that without its prefix, archived or not', function()
      sessions.open('zz')
      assert.same({ { 'ses_zz99' } }, app.opened)
    end)

    it('by its whole id, without looking further', function()
      sessions.open('ses_aa11')
      assert.same({ { 'ses_aa11' } }, app.opened)
      assert.equal(1, #app.asked)
    end)

    it('by none that could be several, which are named', function()
      sessions.open('ses_a')
      local told = app:told()
      assert.same({}, app.opened)
      assert.truthy(told:find('3 sessions have an id that begins with ses_a', 1, true))
      assert.truthy(told:find('ses_ab22  two', 1, true))
    end)

    it('by none that is unknown, and the message says where to look', function()
      sessions.open('ses_x\nx')
      assert.same({}, app.opened)
      assert.truthy(
        app
          :told()
          :find('no session has an id that begins with ses_x x. :Callboard sessions', 1, true)
      )
    end)

    it('also when it is that of an agent, by its whole id', function()
      app.answers['session/get'] =
        { session = fake.session({ sessionId = 'ses_child', parentId = 'ses_aa11' }) }
      sessions.open('ses_child')
      assert.same({ { 'ses_child' } }, app.opened)
    end)

    it('not at all while the server cannot be asked, which is told', function()
      app.answers['session/list'] = function()
        return refused('storeBusy', 'the store x.db is busy; try again')
      end
      sessions.open('ses_a')
      local told = app:told()
      assert.truthy(told:find('could not find the session ses_a: the store x.db is busy', 1, true))
      assert.truthy(told:find('try again', 1, true))
    end)
  end)

  describe('resumed', function()
    it('is the newest of the folder', function()
      app.answers['session/list'] = { data = { fake.session({ sessionId = 'ses_new' }) } }
      sessions.resume()
      assert.same({ { 'ses_new' } }, app.opened)
      assert.same({ cwd = vim.uv.fs_realpath(vim.uv.cwd()), limit = 1 }, app.asked[1].params)
    end)

    it('is none where the folder has none', function()
      app.answers['session/list'] = { data = {} }
      sessions.resume()
      assert.truthy(app:told():find(':Callboard new', 1, true))
    end)
  end)

  it('is renamed', function()
    app.answers['session/update'] = function(params)
      return { session = fake.session({ sessionId = params.sessionId, title = params.title }) }
    end
    sessions.rename('ses_1', '  New name ')
    assert.same({ sessionId = 'ses_1', title = 'New name' }, app.asked[1].params)
    assert.truthy(app:told():find('«New name»', 1, true))
  end)

  it('is renamed to what is typed when no title was given, and not to nothing', function()
    app.answers['session/update'] = { session = fake.session({ sessionId = 'ses_1' }) }
    app:put_session(fake.session({ sessionId = 'ses_1', title = 'old\nname' }))
    local given
    package.loaded['callboard.ui.ask'] = {
      line = function(opts, done)
        assert.equal('old\nname', opts.default)
        given = done
      end,
    }
    sessions.rename('ses_1')
    given(nil)
    given('  ')
    assert.equal(0, #app.asked)
    given('typed')
    assert.equal('typed', app.asked[1].params.title)
    package.loaded['callboard.ui.ask'] = nil
  end)

  it('is archived and brought back', function()
    app.answers['session/archive'] =
      { session = fake.session({ sessionId = 'ses_1', archived = true }) }
    app.answers['session/unarchive'] = { session = fake.session({ sessionId = 'ses_1' }) }
    sessions.archive('ses_1', true)
    assert.truthy(app:told():find(':Callboard! archive', 1, true))
    sessions.archive('ses_1', false)
    assert.same({ 'session/archive', 'session/unarchive' }, app:methods())
  end)

  it('is deleted only after a second word, of which the first is to keep it', function()
    app.answers['session/delete'] = vim.empty_dict()
    app:put_session(fake.session({ sessionId = 'ses_1', title = 'Old' }))
    sessions.delete('ses_1')
    assert.equal(0, #app.asked)
    assert.truthy(asked.title:find('«Old»', 1, true))
    assert.is_nil(asked.answers[1][2])
    asked.answers[2][2]()
    assert.same({ 'session/delete' }, app:methods())
    assert.is_nil(app.sessions.by_id.ses_1)
  end)

  it('is deleted at once with !', function()
    app.answers['session/delete'] = vim.empty_dict()
    sessions.delete('ses_1', true)
    assert.same({ 'session/delete' }, app:methods())
    assert.is_nil(asked)
  end)

  it('is forked, at a turn if one is named, and the fork is opened', function()
    app.answers['session/fork'] = { session = fake.session({ sessionId = 'ses_2' }) }
    sessions.fork('ses_1', 'trn_9')
    assert.same({ sessionId = 'ses_1', atTurnId = 'trn_9' }, app.asked[1].params)
    assert.same({ { 'ses_2' } }, app.opened)
  end)

  describe('goes back', function()
    it('to before the last turn, of all pages, and says what stays and how to go on', function()
      app.answers['session/turns'] = function(params)
        return params.cursor and { data = { { turnId = 'trn_2' } } }
          or { data = { { turnId = 'trn_1' } }, nextCursor = 'n' }
      end
      local paths = {}
      for i = 1, 10 do
        paths[i] = ('src/file%d.py'):format(i)
      end
      app.answers['session/rewind'] = {
        session = fake.session({ sessionId = 'ses_1' }),
        turns = 1,
        changedPaths = paths,
        morePaths = 5,
        commands = 2,
      }
      sessions.rewind('ses_1')
      assert.same({ sessionId = 'ses_1', beforeTurnId = 'trn_2' }, app.asked[3].params)
      assert.same({
        '1 turn taken back: the agent knows nothing of it any more.',
        'Files stay as they are. These had been changed:',
        '  src/file1.py',
        '  src/file2.py',
        '  src/file3.py',
        '  src/file4.py',
        '  src/file5.py',
        '  src/file6.py',
        '  src/file7.py',
        '  src/file8.py',
        '  and 7 more',
        '2 commands ran in it; what they did stands.',
        'To go on from where it was, in a session of its own:',
        '  :Callboard fork trn_2',
      }, vim.api.nvim_buf_get_lines(0, 0, -1, false))
    end)

    it('nowhere when there was no turn', function()
      app.answers['session/turns'] = { data = {} }
      sessions.rewind('ses_1')
      assert.truthy(app:told():find('no turn to take back', 1, true))
      assert.same({ 'session/turns' }, app:methods())
    end)

    it('not while a turn runs, which is told', function()
      app.answers['session/turns'] = { data = { { turnId = 'trn_1' } } }
      app.answers['session/rewind'] = function()
        return refused('turnInProgress', 'a turn runs')
      end
      sessions.rewind('ses_1')
      assert.truthy(app:told():find('could not take back the last turn: a turn runs', 1, true))
    end)
  end)

  describe('exported', function()
    it('is Markdown of all pages in a buffer that nothing writes', function()
      app.answers['session/export'] = function(params)
        return params.cursor and { text = '## Agent\27\n' }
          or { text = '# Title\n\n', nextCursor = 'n' }
      end
      app:put_session(fake.session({ sessionId = 'ses_1', title = 'A/B: "x" | % #' }))
      sessions.export('ses_1')
      assert.same({ '# Title', '', '## Agent<1B>' }, vim.api.nvim_buf_get_lines(0, 0, -1, false))
      assert.equal('markdown', vim.bo.filetype)
      assert.equal('', vim.api.nvim_buf_get_name(0))
      assert.is_false(vim.bo.modified)
      assert.truthy(app:told():find(':saveas A-B-x.md', 1, true))
    end)

    it('gets a name that no shell and no folder trips over', function()
      local name = require('callboard.ui.sessions.export').file_name
      assert.equal('session-abcdef.md', name(nil, 'ses_xxabcdef'))
      assert.equal('session-abcdef.md', name(fake.session({ title = '../..' }), 'ses_xxabcdef'))
      assert.equal('etc-passwd.md', name(fake.session({ title = '../etc/passwd' }), 'ses_1'))
      assert.equal('Größe.md', name(fake.session({ title = 'Größe\n' }), 'ses_1'))
    end)
  end)

  describe('gets a model', function()
    local models = {
      { modelId = 'a/one', provider = 'a', name = 'one', available = true, contextWindow = 200000 },
      {
        modelId = 'b/two',
        provider = 'b',
        name = 'two',
        available = false,
        reason = 'no key\nis set',
      },
    }

    before_each(function()
      app.answers['model/list'] = function(params)
        return params.cursor and { data = { models[2] } }
          or { data = { models[1] }, nextCursor = 'n' }
      end
      app.answers['session/update'] = function(params)
        return {
          session = fake.session({ sessionId = 'ses_1', model = params.model, mode = params.mode }),
        }
      end
      app:put_session(fake.session({ sessionId = 'ses_1', model = 'a/one' }))
    end)

    it('that is picked; of each it is said whether it can be, and why not', function()
      sessions.model('ses_1')
      assert.same({
        '* a/one  200.0k tokens of context',
        '  b/two  not available: no key is set',
      }, lines())
      choose('a/one')
      assert.same({ sessionId = 'ses_1', model = 'a/one' }, app.asked[3].params)
    end)

    it('not one that is not available', function()
      sessions.model('ses_1')
      choose('b/two')
      assert.same({ 'model/list', 'model/list' }, app:methods())
      assert.truthy(app:told():find('b/two cannot be used', 1, true))
    end)

    it('by its name, without asking what there is', function()
      sessions.model('ses_1', 'a/one')
      assert.same({ 'session/update' }, app:methods())
    end)

    it('whose name is completed from the last listing', function()
      sessions.model('ses_1')
      assert.same({ 'a/one' }, sessions.models())
      assert.equal(2, #app.asked)
    end)
  end)

  it('gets a mode that is picked, or named', function()
    app.answers['session/update'] = function(params)
      return { session = fake.session({ sessionId = 'ses_1', mode = params.mode }) }
    end
    app:put_session(fake.session({ sessionId = 'ses_1', mode = 'plan' }))
    sessions.mode('ses_1')
    assert.truthy(lines()[2]:find('^%* plan '))
    choose('ask ')
    assert.same({ sessionId = 'ses_1', mode = 'ask' }, app.asked[1].params)
    sessions.mode('ses_1', 'work')
    assert.equal('work', app.asked[2].params.mode)
  end)

  describe('with agents that are programs of their own', function()
    local function option(id, category, fields)
      return vim.tbl_extend('force', {
        profile = 'codex',
        optionId = id,
        name = id:upper(),
        value = 'small',
        values = {
          { value = 'small', name = 'Small', description = 'quick\nand cheap' },
          { value = 'large', name = 'Large' },
        },
        category = category,
      }, fields or {})
    end

    before_each(function()
      app.answers['model/list'] = { data = {} }
      app:put_session(fake.session({
        sessionId = 'ses_1',
        title = 'It',
        options = {
          option('llm', 'model', { description = 'Who answers' }),
          option('style', 'mode', { profile = 'goose' }),
          option('depth', 'thought_level'),
          option('fast', nil, { value = 'gone' }),
        },
      }))
    end)

    it('offers their options beside the models and the modes', function()
      sessions.model('ses_1')
      assert.same({
        '  LLM of codex: Small  Who answers',
        '  DEPTH of codex: Small',
        '  FAST of codex: gone',
      }, lines())
      sessions.mode('ses_1')
      assert.equal('  STYLE of goose: Small', lines()[4])
      assert.equal(4, #lines())
    end)

    it('has a value picked and set, of the one that it is of', function()
      app.answers['session/update'] = { session = fake.session({ sessionId = 'ses_1' }) }
      sessions.mode('ses_1')
      choose('  STYLE')
      assert.equal('STYLE of goose in «It»', picked.title)
      assert.same({ '* Small  quick and cheap', '  Large' }, lines())
      choose('  Large')
      assert.same(
        { sessionId = 'ses_1', options = { ['goose/style'] = 'large' } },
        app.asked[1].params
      )
      assert.truthy(app:told():find('STYLE of goose is Large from the next prompt on', 1, true))
    end)

    it('is told what the server says against it', function()
      app.answers['session/update'] = function()
        return refused('invalidParams', '$.options.codex/llm cannot be large')
      end
      sessions.model('ses_1')
      choose('  LLM')
      choose('  Large')
      local told = app:told()
      assert.truthy(told:find('could not change the LLM of codex: $.options.codex/llm', 1, true))
    end)
  end)

  it('tells what it used in a float', function()
    local one = { usage = { requests = 1, inputTokens = 12 }, runs = 1 }
    app.answers['session/usage'] = {
      sessionId = 'ses_1',
      total = one,
      tree = one,
      models = {},
      sessions = {},
      runs = {},
    }
    sessions.usage('ses_1')
    assert.equal('editor', vim.api.nvim_win_get_config(0).relative)
    assert.truthy(vim.api.nvim_buf_get_lines(0, 1, 2, false)[1]:find('^this session'))
    assert.is_false(vim.bo.modifiable)
    vim.api.nvim_feedkeys('q', 'xt', false)
    assert.equal('', vim.api.nvim_win_get_config(0).relative)
  end)

  it('has its id completed from what is known, and nothing is asked', function()
    app:put_session(fake.session({ sessionId = 'ses_1' }))
    assert.same({ 'ses_1' }, sessions.ids())
    assert.equal(0, #app.asked)
  end)

  describe('is picked', function()
    local here

    before_each(function()
      here = sessions.folder()
    end)

    it('from those of the folder; a line leads to the others, which are there then', function()
      app.answers['session/list'] = function(params)
        if params.cwd then
          return { data = { fake.session({ cwd = here, title = 'Mine' }) } }
        end
        return {
          data = {
            fake.session({ cwd = '/else', title = 'Theirs' }),
            fake.session({ cwd = '/else', title = 'More' }),
          },
        }
      end
      sessions.pick()
      assert.equal(3, #picked.items)
      assert.truthy(lines()[1]:find('Mine', 1, true))
      assert.equal('2 of other folders are hidden; choose this to show them', lines()[2])
      assert.equal('archived ones', lines()[3])
      choose('hidden')
      assert.truthy(table.concat(lines(), '\n'):find('Theirs.*/else'))
      choose('Mine')
      assert.equal(1, #app.opened)
    end)

    it('from all where the folder has none', function()
      app.answers['session/list'] = function(params)
        return { data = params.cwd and {} or { fake.session({ cwd = '/else', title = 'Theirs' }) } }
      end
      sessions.pick()
      assert.truthy(lines()[1]:find('Theirs', 1, true))
    end)

    it('from older pages, which are asked for when they are wanted', function()
      app.answers['session/list'] = function(params)
        if params.cursor then
          return { data = { fake.session({ cwd = here, title = 'Older' }) } }
        end
        return {
          data = { fake.session({ cwd = here, title = 'Newer' }) },
          nextCursor = params.cwd and 'next' or nil,
        }
      end
      sessions.pick()
      assert.equal(2, #app.asked)
      choose('older ones')
      assert.equal('next', app.asked[3].params.cursor)
      assert.truthy(table.concat(lines(), '\n'):find('Older', 1, true))
      assert.is_nil(table.concat(lines(), '\n'):find('older ones', 1, true))
    end)

    it('from archived ones, which are a group of their own', function()
      app.answers['session/list'] = function(params)
        return {
          data = {
            fake.session({
              cwd = here,
              title = params.archived and 'Gone' or 'There',
              archived = params.archived,
            }),
          },
        }
      end
      sessions.pick()
      choose('archived ones')
      local groups = vim.tbl_map(picked.heading, picked.items)
      assert.same({ 'Idle', 'Archived' }, { groups[1], groups[#groups] })
    end)

    it('from none where there is none, which is told', function()
      app.answers['session/list'] = { data = {} }
      sessions.pick()
      assert.is_nil(picked)
      assert.truthy(app:told():find('no session yet. :Callboard new', 1, true))
    end)

    it('and renamed, archived, deleted or forked right there', function()
      app.answers['session/list'] =
        { data = { fake.session({ sessionId = 'ses_1', cwd = here, archived = false }) } }
      app.answers['session/archive'] = { session = fake.session({ sessionId = 'ses_1' }) }
      app.answers['session/fork'] = { session = fake.session({ sessionId = 'ses_2' }) }
      sessions.pick()
      picked.actions.archive.fn(picked.items[1])
      picked.actions.fork.fn(picked.items[1])
      picked.actions.delete.fn(picked.items[1])
      assert.same({ 'session/archive', 'session/fork' }, vim.list_slice(app:methods(), 3))
      assert.truthy(asked)
      local before = picked
      picked.actions.archive.fn(picked.items[2])
      assert.are_not.equal(before, picked)
    end)

    it('with more about it beside, in lines', function()
      app.answers['session/list'] = {
        data = {
          fake.session({ sessionId = 'ses_1', cwd = here, title = 'A\nB', queueLength = 2 }),
        },
      }
      sessions.pick()
      local preview = picked.preview(picked.items[1])
      assert.equal('A B', preview[1])
      assert.truthy(vim.tbl_contains(preview, 'Id         ses_1'))
      assert.truthy(vim.tbl_contains(preview, 'Queue      2'))
      assert.truthy(vim.tbl_contains(preview, 'Usage      not known'))
      assert.same({ 'archived ones' }, picked.preview(picked.items[2]))
    end)

    it('not when the listing fails, which is told once', function()
      app.answers['session/list'] = function()
        return refused('noServer', 'the server was not found')
      end
      sessions.pick()
      app:told()
      assert.equal(1, #app.messages)
    end)
  end)

  describe('is searched', function()
    local hit = {
      sessionId = 'ses_1',
      seq = 7,
      type = 'message',
      at = '2024-05-01T10:00:00Z',
      snippet = 'the\nwords',
      title = 'A title',
    }

    local function open(items, at_start)
      local session = {
        phase = 'live',
        at_start = at_start,
        transcript = { first_seq = items[1] and items[1].seq, items = items },
      }
      function session:load_older(done)
        table.insert(self.transcript.items, 1, { id = 'old', seq = 3 })
        self.transcript.first_seq, self.at_start = 3, true
        done(true)
      end
      function app:use()
        self.used = (self.used or 0) + 1
        return session
      end
      function app:release()
        self.used = self.used - 1
      end
      return session
    end

    it('and opened where the hit stands', function()
      app.answers['session/search'] = { data = { hit } }
      open({ { id = 'a', seq = 2 }, { id = 'b', seq = 7 }, { id = 'c', seq = 9 } }, true)
      sessions.search('the words')
      assert.truthy(lines()[1]:find('said: the words', 1, true))
      assert.equal('A title', picked.heading(picked.items[1]))
      picked.on_choice(picked.items[1])
      assert.same({ { 'ses_1', { item = 'b' } } }, app.opened)
      assert.equal(0, app.used)
    end)

    it('also when the hit stands on a page that is not loaded', function()
      open({ { id = 'z', seq = 90 } }, false)
      require('callboard.ui.sessions.search').open_at('ses_1', 5)
      assert.same({ { 'ses_1', { item = 'old' } } }, app.opened)
    end)

    it('and opened at the call whose output holds the words', function()
      open({ { id = 'call', seq = 5 }, { id = 'next', seq = 9 } }, true)
      require('callboard.ui.sessions.search').open_at('ses_1', 8)
      assert.same({ { 'ses_1', { item = 'call' } } }, app.opened)
    end)

    it('once it is loaded', function()
      local session = open({ { id = 'a', seq = 7 } }, true)
      local heard
      session.phase = 'loading'
      function session:listen(fn)
        heard = fn
        return function() end
      end
      require('callboard.ui.sessions.search').open_at('ses_1', 7)
      assert.same({}, app.opened)
      heard({ outbox = true })
      session.phase = 'live'
      heard({ phase = 'live' })
      assert.same({ { 'ses_1', { item = 'a' } } }, app.opened)
      assert.equal(0, app.used)
    end)

    it('page by page', function()
      app.answers['session/search'] = function(params)
        return params.cursor and { data = { hit } } or { data = { hit }, nextCursor = 'n' }
      end
      sessions.search('words')
      choose('older ones')
      assert.equal('n', app.asked[2].params.cursor)
      assert.equal(2, #picked.items)
    end)

    it('in vain, which is told with what the words mean', function()
      app.answers['session/search'] = { data = {} }
      sessions.search('nowhere')
      assert.is_nil(picked)
      assert.truthy(app:told():find('nothing was said with nowhere', 1, true))
    end)
  end)
end)

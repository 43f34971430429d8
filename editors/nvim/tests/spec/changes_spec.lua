--- The changes of a session as they are followed and remembered, and what buffers make of them.
local Review = require('callboard.model.review')
local fake = require('fake_app')

local app, following, closed
local position = 0

---@param type string
---@param data table
---@param session string?
---@return callboard.Event
local function event(type, data, session)
  position = position + 1
  return {
    type = type,
    sessionId = session or 'root',
    seq = position,
    pos = position,
    at = '',
    data = data,
  }
end

---@param path string
---@param more table?
---@param session string?
---@return callboard.Event
local function wrote(path, more, session)
  local change = vim.tbl_extend('force', {
    path = path,
    operation = 'modify',
    diff = '--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n',
    added = 1,
    removed = 1,
  }, more or {})
  return event('tool_result', { callId = 'c' .. position, changes = { change } }, session)
end

---@param events callboard.Event[]
---@param caught_up boolean?
local function arrive(events, caught_up)
  following.on_events(events, { caughtUp = caught_up ~= false })
end

local function created(session)
  return event(
    'session_created',
    { cwd = '/ws', additionalDirectories = { '/lib' }, title = 'Tidy' },
    session
  )
end

---@return callboard.Tracked
local function use(id)
  return require('callboard.changes').use(id or 'root')
end

before_each(function()
  position, closed = 0, 0
  package.loaded['callboard.changes'] = nil
  app = fake.install()
  app.feed = {
    follow = function(_, how)
      following = how
      return function()
        closed = closed + 1
      end
    end,
  }
  function app:on()
    return function() end
  end
end)

after_each(function()
  app:restore()
  vim.cmd('silent! %bwipeout!')
end)

describe('the changes of a session', function()
  it(
    'are followed once, from the beginning, with those of its agents, for as long as anybody looks',
    function()
      local first, second = use(), use()
      assert.equal(first, second)
      assert.same(
        { { kind = 'tree', id = 'root' }, 'start' },
        { following.scope, following.cursor }
      )
      first:release()
      assert.equal(0, closed)
      second:release()
      assert.equal(1, closed)
    end
  )

  it('of an agent are its own', function()
    app:put_session(fake.session({ sessionId = 'agent', parentId = 'root' }))
    use('agent')
    assert.same({ kind = 'session', id = 'agent' }, following.scope)
  end)

  it('are loaded once all was read, and whoever waits hears of it then', function()
    local tracked, heard = use(), 0
    tracked:when_loaded(function()
      heard = heard + 1
    end)
    arrive({ created(), wrote('/ws/f') }, false)
    assert.same({ 0, false }, { heard, tracked.loaded })
    arrive({}, true)
    arrive({ wrote('/ws/g') })
    assert.same({ 1, true, 2 }, { heard, tracked.loaded, #tracked:files() })
  end)

  it('are told from where the session works, and with the agents that made them', function()
    local tracked = use()
    arrive({
      created(),
      event(
        'agent_spawned',
        { name = 'scout', session = { cwd = '/tree', sessionId = 'agent' } },
        'agent'
      ),
      wrote('/ws/src/f'),
      wrote('/tree/g', nil, 'agent'),
    })
    assert.same({ 'src/f', '/tree/g' }, { tracked:short('/ws/src/f'), tracked:short('/tree/g') })
    assert.same({ '/ws', '/lib' }, tracked:folders_of(assert(tracked:file('/ws/src/f'))))
    assert.same({ '/tree' }, tracked:folders_of(assert(tracked:file('/tree/g'))))
    local lines = vim.tbl_map(
      require('callboard.ui.lines').text,
      require('callboard.ui.changes_page').lines(tracked)
    )
    assert.equal(' Changes of Tidy   2 files, 2 new   +2 −2', lines[1])
    assert.equal(' new      M /tree/g     +1 −1  by scout', lines[2])
    assert.equal(' new      M src/f       +1 −1', lines[3])
  end)

  it('are shown whatever a path or a title holds', function()
    local tracked = use()
    local path = '/ws/a\nb\27[31m %f\226\128\174 c'
    arrive({ created(), wrote(path), event('session_updated', { changes = { title = 'x\ny%' } }) })
    for _, line in ipairs(require('callboard.ui.changes_page').lines(tracked)) do
      local shown = require('callboard.ui.lines').text(line)
      assert.is_nil(shown:find('[\n\27]'))
      assert.is_nil(shown:find('\226\128\174', 1, true))
    end
    require('callboard.ui.changes').open('root')
    assert.truthy(
      vim.api.nvim_buf_get_lines(0, 1, 2, false)[1]:find('a b<1B>[31m %f<U+202E> c', 1, true)
    )
  end)

  it('say that the session is gone', function()
    local tracked = use()
    local heard = 0
    tracked:when_loaded(function()
      heard = heard + 1
    end)
    following.on_lost({ message = 'no such session', data = { kind = 'sessionNotFound' } })
    assert.equal(1, heard)
    local line = require('callboard.ui.changes_page').lines(tracked)[2]
    assert.truthy(line[1][1]:find('no such session'))
  end)
end)

describe('a large diff', function()
  it('is read whole, in as many pieces as it takes', function()
    local whole = ('x'):rep(10)
    app.answers['blob/read'] = function(params)
      local piece = whole:sub(params.offset + 1, params.offset + 4)
      return { dataBase64 = vim.base64.encode(piece), eof = params.offset + #piece == #whole }
    end
    local tracked = use()
    local large = wrote('/ws/f', { diff = 'xx…' })
    large.data._blobs = { ['/changes/0/diff'] = { blobId = 'blob_1' } }
    arrive({ large })
    local done
    local file = tracked:file('/ws/f')
    assert.truthy(file.chain[1].blob)
    tracked:whole({ file }, function(err)
      done = err or true
    end)
    assert.same({ true, whole, 3 }, { done, file.chain[1].change.diff, #app.asked })
    assert.is_nil(file.chain[1].blob)
  end)
end)

describe('what is said of changes', function()
  local metadata

  before_each(function()
    metadata = { mine = { 'kept' } }
    app.answers['session/get'] = function(params)
      return { session = { sessionId = params.sessionId, metadata = metadata } }
    end
    app.answers['session/update'] = function(params)
      metadata = vim.deepcopy(params.metadata)
      return { session = {} }
    end
  end)

  it('stands in the metadata of the session, beside what else is there', function()
    local tracked = use()
    arrive({ created(), wrote('/ws/f'), wrote('/ws/g') })
    tracked:settle({ tracked:file('/ws/g') }, 'accepted')
    assert.same({ 'kept' }, metadata.mine)
    assert.same(
      { through = 1, files = { ['/ws/g'] = { through = 3, verdict = 'accepted' } } },
      Review.read(metadata, 'root')
    )
    assert.equal('accepted', tracked:file('/ws/g').state)
    assert.same({ 'session/get', 'session/update' }, app:methods())
  end)

  it('adds to what another editor said in the meantime', function()
    local tracked = use()
    arrive({ created(), wrote('/ws/f'), wrote('/ws/g') })
    local other = Review.new()
    Review.note(other, '/ws/f', 2, 'rejected')
    metadata = Review.write(metadata, 'root', other)
    tracked:settle({ tracked:file('/ws/g') }, 'accepted')
    local kept = Review.read(metadata, 'root')
    assert.equal('rejected', kept.files['/ws/f'].verdict)
    assert.equal('accepted', Review.verdict(kept, '/ws/g', 3))
  end)

  describe('while another editor writes between its reading and its writing', function()
    local head, writers

    before_each(function()
      head, writers = 7, {}
      app.answers['session/get'] = function()
        local session = { sessionId = 'root', metadata = metadata, headSeq = head }
        local other = table.remove(writers, 1)
        if other then
          metadata, head = other(vim.deepcopy(metadata)), head + 1
        end
        return { session = session }
      end
      app.answers['session/update'] = function(params)
        if params.ifUnchangedSince < head then
          return nil, { message = 'it was changed', data = { kind = 'sessionChanged' } }
        end
        metadata, head = vim.deepcopy(params.metadata), head + 1
        return { session = {} }
      end
    end)

    ---@param path string
    ---@param seq integer
    local function reject(path, seq)
      return function(before)
        local other = Review.read(before, 'root')
        Review.note(other, path, seq, 'rejected')
        return Review.write(before, 'root', other)
      end
    end

    it('loses nothing of what either said', function()
      local tracked = use()
      arrive({ created(), wrote('/ws/f'), wrote('/ws/g'), wrote('/ws/h') })
      writers = { reject('/ws/f', 2), reject('/ws/h', 4) }
      tracked:settle({ tracked:file('/ws/g') }, 'accepted')
      local kept = Review.read(metadata, 'root')
      assert.same({ 'rejected', 'accepted', 'rejected' }, {
        Review.verdict(kept, '/ws/f', 2),
        Review.verdict(kept, '/ws/g', 3),
        Review.verdict(kept, '/ws/h', 4),
      })
      assert.same({ 'kept' }, metadata.mine)
      assert.equal('', app:told())
    end)

    it('is told when that has no end', function()
      local tracked = use()
      arrive({ created(), wrote('/ws/f'), wrote('/ws/g') })
      for _ = 1, 100 do
        table.insert(writers, reject('/ws/f', 2))
      end
      tracked:settle({ tracked:file('/ws/g') }, 'accepted')
      assert.truthy(app:told():find('it was changed', 1, true))
      assert.equal(80, #writers)
    end)
  end)

  it('is heard when it is said elsewhere', function()
    local tracked = use()
    arrive({ created(), wrote('/ws/f') })
    local review = Review.new()
    Review.note(review, '/ws/f', 2, 'rejected')
    arrive({
      event('session_updated', { changes = { metadata = Review.write(nil, 'root', review) } }),
    })
    assert.equal('rejected', tracked:file('/ws/f').state)
  end)

  it('is told when it could not be kept', function()
    app.answers['session/update'] = function()
      return nil, { message = 'the store is full', data = { kind = 'storeFull' } }
    end
    local tracked = use()
    arrive({ created(), wrote('/ws/f') })
    tracked:settle({ tracked:file('/ws/f') }, 'accepted', function()
      error('it was not kept')
    end)
    assert.truthy(
      app:told():find('could not remember what was said of the changes: the store is full', 1, true)
    )
    assert.equal('new', tracked:file('/ws/f').state)
    assert.equal(1, #tracked:pending())
  end)

  it('is shown as said, and is not said twice, until it is kept', function()
    local verdicts = require('callboard.ui.verdicts')
    local request, answer = app.request, nil
    function app:request(method, params, callback)
      request(self, method, params, function(...)
        local given = { ... }
        if method ~= 'session/update' then
          return callback(...)
        end
        answer = function()
          callback(unpack(given))
        end
      end)
    end
    local tracked = use()
    arrive({ created(), wrote('/ws/f') })
    local states, done = {}, 0
    tracked:listen(function()
      table.insert(states, tracked:file('/ws/f').state)
    end)
    local function finish()
      done = done + 1
    end
    local seen = { tracked:file('/ws/f') }
    verdicts.accept(tracked, seen, finish)
    assert.same({ 'settling', 0, 0 }, { tracked:file('/ws/f').state, #tracked:pending(), done })
    verdicts.accept(tracked, seen, finish)
    assert.truthy(app:told():find('it is being settled already', 1, true))
    answer()
    assert.same({ 'settling', 'accepted' }, states)
    assert.equal(1, done)
    assert.truthy(app:told():find('accepted f', 1, true))
  end)

  it('goes to each session whose change it is about', function()
    local tracked = use()
    arrive({ created(), wrote('/ws/f'), wrote('/ws/f', nil, 'agent') })
    tracked:settle({ tracked:file('/ws/f') }, 'accepted')
    local ids = {}
    for _, request in ipairs(app.asked) do
      if request.method == 'session/update' then
        ids[request.params.sessionId] = true
      end
    end
    assert.same({ root = true, agent = true }, ids)
  end)
end)

describe('a buffer whose file an agent writes', function()
  local path

  before_each(function()
    path = vim.fn.tempname()
    vim.fn.writefile({ 'old' }, path)
    vim.cmd('edit ' .. vim.fn.fnameescape(path))
    vim.fn.writefile({ 'something new' }, path)
  end)

  local function lines()
    return vim.api.nvim_buf_get_lines(vim.fn.bufnr(path), 0, -1, false)
  end

  it('takes it in, and no other is looked at', function()
    local other = vim.fn.tempname()
    vim.fn.writefile({ 'old' }, other)
    vim.cmd('split ' .. vim.fn.fnameescape(other))
    vim.fn.writefile({ 'newer than old' }, other)
    require('callboard.ui.changes').touched({ path, '/no/such/file' })
    app:settle()
    assert.same({ 'something new' }, lines())
    assert.same({ 'old' }, vim.api.nvim_buf_get_lines(0, 0, -1, false))
  end)

  it('is left alone while it has something unwritten, and one notice says so', function()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'mine' })
    require('callboard.ui.changes').touched({ path })
    require('callboard.ui.changes').touched({ path })
    app:settle()
    assert.same({ 'mine' }, lines())
    assert.equal(1, #app.messages)
    assert.truthy(
      app:told():find('was changed on disk; its buffer has changes that are not written', 1, true)
    )
  end)

  it("is left alone where 'autoread' is off", function()
    vim.bo.autoread = false
    require('callboard.ui.changes').touched({ path })
    app:settle()
    assert.same({ 'old' }, lines())
    assert.truthy(app:told():find("'autoread' is off", 1, true))
  end)

  it(
    'is told of by every change that comes while the session is followed, and by none before',
    function()
      local tracked = use()
      arrive({ wrote(path) }, false)
      app:settle()
      assert.same({ 'old' }, lines())
      arrive({}, true)
      arrive({ wrote(path) })
      app:settle()
      assert.same({ 'something new' }, lines())
      tracked:release()
    end
  )
end)

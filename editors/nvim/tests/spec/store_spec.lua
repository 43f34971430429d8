--- Sessions as lists show them.
local Store = require('callboard.model.store')

describe('sessions', function()
  local state

  before_each(function()
    state = Store.new()
  end)

  ---@param id string
  ---@param fields table?
  local function put(id, fields)
    Store.put(
      state,
      vim.tbl_extend(
        'force',
        { sessionId = id, updatedAt = '2030-01-01T10:00:00Z', status = 'idle' },
        fields or {}
      )
    )
  end

  ---@return string[]
  local function listed()
    return vim.tbl_map(function(session)
      return session.sessionId
    end, Store.list(state))
  end

  it('keep the options of their agents, which no list holds', function()
    local options = { { optionId = 'llm' } }
    put('one', { options = options })
    put('gone', { options = options })
    put('child', { parentId = 'one' })
    put('one')
    assert.same(options, state.by_id.one.options)
    Store.replace(state, { { sessionId = 'one' }, { sessionId = 'new' } }, true)
    assert.same(options, state.by_id.one.options)
    assert.same({ 'child', 'new', 'one' }, vim.fn.sort(vim.tbl_keys(state.by_id)))
    assert.same({ true, true }, { state.loaded, state.more })
    put('one', { options = {} })
    assert.same({}, state.by_id.one.options)
  end)

  it('stand with those first that need somebody, then those that run, the newest first', function()
    put('old', { updatedAt = '2030-01-01T09:00:00Z' })
    put('archived', { archived = true, status = 'running', updatedAt = '2030-01-01T12:00:00Z' })
    put('running', { status = 'running' })
    put('asking', { pendingApprovals = 1, status = 'waiting_approval' })
    put('new', { updatedAt = '2030-01-01T11:00:00Z' })
    put('waiting', { status = 'waiting_approval', updatedAt = '2030-01-01T10:30:00Z' })
    assert.same({ 'asking', 'waiting', 'running', 'new', 'old', 'archived' }, listed())
  end)

  it('that are pinned stand first in their group', function()
    put('b', { updatedAt = '2030-01-01T11:00:00Z' })
    put('a', { pinned = true })
    assert.same({ 'a', 'b' }, listed())
  end)

  it('of the same moment have an order', function()
    put('a')
    put('c')
    put('b')
    assert.same({ 'c', 'b', 'a' }, listed())
  end)

  it('are roots', function()
    put('root')
    put('child', { parentId = 'root' })
    assert.same({ 'root' }, listed())
  end)

  it('are replaced, and removed', function()
    put('a', { title = 'one' })
    put('a', { title = 'two' })
    assert.equal('two', Store.list(state)[1].title)
    Store.remove(state, 'a')
    Store.remove(state, 'a')
    assert.same({}, listed())
  end)

  it('that run are counted, agents among them', function()
    put('a', { status = 'running' })
    put('b', { status = 'running', parentId = 'a' })
    put('c', { status = 'parked' })
    assert.same({ running = 2 }, Store.counts(state))
  end)

  it('have a name', function()
    assert.equal('Title', Store.name({ sessionId = 'ses_abcdef123456', title = 'Title' }))
    assert.equal('session 123456', Store.name({ sessionId = 'ses_abcdef123456', title = ' ' }))
    assert.equal('session 123456', Store.name({ sessionId = 'ses_abcdef123456' }))
  end)
end)

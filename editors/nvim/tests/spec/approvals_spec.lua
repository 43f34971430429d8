--- What waits for an answer, whoever told of it and in whatever order.
local Approvals = require('callboard.model.approvals')

---@param id string
---@param fields table?
---@return table
local function approval(id, fields)
  return vim.tbl_extend('force', {
    approvalId = id,
    sessionId = 'ses_1',
    rootId = 'ses_1',
    createdAt = '2030-01-01T10:00:00.000Z',
    title = id,
    state = 'pending',
    options = {},
  }, fields or {})
end

---@param state callboard.Approvals
---@return string[]
local function ids(state)
  return vim.tbl_map(function(each)
    return each.approvalId
  end, state.pending)
end

describe('approvals', function()
  local state

  before_each(function()
    state = Approvals.new()
  end)

  it('stand in the order in which they were asked', function()
    assert.is_true(
      Approvals.add(state, approval('apr_2', { createdAt = '2030-01-01T10:00:02.000Z' }))
    )
    assert.is_true(
      Approvals.add(state, approval('apr_9', { createdAt = '2030-01-01T10:00:01.000Z' }))
    )
    assert.is_true(
      Approvals.add(state, approval('apr_1', { createdAt = '2030-01-01T10:00:02.000Z' }))
    )
    assert.same({ 'apr_9', 'apr_1', 'apr_2' }, ids(state))
  end)

  it('are there once, by whatever road they come', function()
    assert.is_true(Approvals.add(state, approval('apr_1')))
    assert.is_false(Approvals.add(state, approval('apr_1')))
    assert.same({ 'apr_1' }, ids(state))
  end)

  it('that have ended do not come back with an older listing', function()
    Approvals.add(state, approval('apr_1'))
    assert.equal('apr_1', Approvals.remove(state, 'apr_1').approvalId)
    assert.is_nil(Approvals.remove(state, 'apr_1'))
    assert.is_false(Approvals.add(state, approval('apr_1')))
    Approvals.replace(state, { approval('apr_1'), approval('apr_2') })
    assert.same({ 'apr_2' }, ids(state))
  end)

  it('that ended before they were heard of do not come at all', function()
    Approvals.remove(state, 'apr_1')
    assert.is_false(Approvals.add(state, approval('apr_1')))
  end)

  it('that do not wait are not taken in', function()
    assert.is_false(Approvals.add(state, approval('apr_1', { state = 'resolved' })))
    assert.is_false(Approvals.add(state, approval('apr_2', { state = 'expired' })))
    assert.is_true(
      Approvals.add(state, vim.tbl_extend('force', approval('apr_3'), { state = nil }))
    )
    assert.same({ 'apr_3' }, ids(state))
  end)

  it('that a listing does not name are gone', function()
    Approvals.add(state, approval('apr_1'))
    Approvals.replace(state, { approval('apr_2') })
    assert.same({ 'apr_2' }, ids(state))
    assert.is_nil(Approvals.get(state, 'apr_1'))
    assert.equal('apr_2', Approvals.get(state, 'apr_2').approvalId)
  end)

  it('of a session go with it, and those of its agents', function()
    Approvals.add(state, approval('apr_1'))
    Approvals.add(state, approval('apr_2', { sessionId = 'ses_2' }))
    Approvals.add(state, approval('apr_3', { sessionId = 'ses_3', rootId = 'ses_3' }))
    assert.equal(2, #Approvals.of(state, 'ses_1'))
    assert.equal(1, #Approvals.of(state, 'ses_2'))
    local gone = Approvals.forget(state, 'ses_1')
    assert.same(
      { 'apr_1', 'apr_2' },
      vim.tbl_map(function(each)
        return each.approvalId
      end, gone)
    )
    assert.same({ 'apr_3' }, ids(state))
  end)

  it('are gone through in turn', function()
    assert.is_nil(Approvals.next(state))
    for i = 1, 3 do
      Approvals.add(state, approval('apr_' .. i))
    end
    local at, order = nil, {}
    for i = 1, 4 do
      at = Approvals.next(state, at).approvalId
      order[i] = at
    end
    assert.same({ 'apr_1', 'apr_2', 'apr_3', 'apr_1' }, order)
    assert.equal('apr_1', Approvals.next(state, 'apr_gone').approvalId)
  end)

  it('offer their options by number', function()
    local offered = approval('apr_1', {
      options = {
        { optionId = 'a', kind = 'allow_once', name = '' },
        { optionId = 'b', kind = 'reject_once', name = '' },
        { optionId = 'c', kind = 'allow_always', name = '' },
      },
    })
    local got = {}
    for number = 1, 6 do
      local option = Approvals.option(offered, number)
      got[number] = option and option.optionId or 'none'
    end
    assert.same({ 'a', 'none', 'c', 'b', 'b', 'none' }, got)
  end)
end)

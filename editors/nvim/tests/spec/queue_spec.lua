--- What is on its way to the server, and what was said before.
local Queue = require('callboard.model.queue')

describe('the outbox', function()
  it('keeps what is said until it is settled, once', function()
    local box = Queue.new()
    Queue.add(box, { key = 'k.1', text = 'one', delivery = 'auto' })
    Queue.add(box, { key = 'k.2', text = 'two', delivery = 'steer' })
    assert.equal('one', Queue.settle(box, 'k.1').text)
    assert.is_nil(Queue.settle(box, 'k.1'))
    assert.is_nil(Queue.settle(box, 'k.9'))
    assert.same({ { key = 'k.2', text = 'two', delivery = 'steer' } }, box.sending)
  end)
end)

describe('the history', function()
  local history

  before_each(function()
    history = Queue.history()
    for _, text in ipairs({ 'one', 'two', 'three' }) do
      Queue.remember(history, text)
    end
  end)

  it('is gone through back and forth, and gives back what stood there', function()
    assert.equal('three', Queue.back(history, 'draft'))
    assert.equal('two', Queue.back(history, 'three'))
    assert.equal('one', Queue.back(history, 'two'))
    assert.is_nil(Queue.back(history, 'one'))
    assert.equal('two', Queue.forward(history))
    assert.equal('three', Queue.forward(history))
    assert.equal('draft', Queue.forward(history))
    assert.is_nil(Queue.forward(history))
  end)

  it('gives back nothing where nothing stood', function()
    Queue.back(history, '')
    assert.equal('', Queue.forward(history))
  end)

  it('begins at the newest again after something was said', function()
    Queue.back(history, '')
    Queue.back(history, '')
    Queue.remember(history, 'four')
    assert.equal('four', Queue.back(history, ''))
  end)

  it('does not keep what is blank, or what was just said', function()
    Queue.remember(history, ' \n')
    Queue.remember(history, 'three')
    assert.same({ 'one', 'two', 'three' }, history.entries)
  end)

  it('forgets the oldest beyond a hundred', function()
    for i = 1, 150 do
      Queue.remember(history, 'said ' .. i)
    end
    assert.equal(100, #history.entries)
    assert.equal('said 51', history.entries[1])
  end)

  it('is empty at first', function()
    local empty = Queue.history()
    assert.is_nil(Queue.back(empty, 'draft'))
    assert.is_nil(Queue.forward(empty))
  end)
end)

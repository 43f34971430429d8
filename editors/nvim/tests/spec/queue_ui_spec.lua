-- What waits to be read: changed, dropped, told at once; and what has been read meanwhile.
local fake_app = require('fake_app')
local queue = require('callboard.ui.queue')

local app, chat, item

before_each(function()
  app = fake_app.install()
  function app:new_key()
    return 'key'
  end
  item = { seq = 7, text = 'first', author = { kind = 'person', name = 'x' } }
  chat = {
    id = 'ses_1',
    session = { transcript = { queue = { item }, turn = { state = 'running' } } },
    input = {
      history = require('callboard.model.queue').history(),
      give_back = function(_, text)
        chat.back = text
      end,
    },
    say = function(_, said)
      chat.said = said
    end,
  }
  local image = { type = 'image', data = '', mimeType = 'image/png' }
  app.answers['session/queue'] = function(params)
    if not params.cursor then
      return { data = { { eventSeq = 3, content = {} } }, nextCursor = 'c1' }
    end
    return { data = { { eventSeq = 7, content = { { type = 'text', text = 'first' }, image } } } }
  end
  app.answers['session/queueUpdate'] = { eventSeq = 9 }
  app.answers['session/queueRemove'] = { eventSeq = 9 }
end)

after_each(function()
  app:restore()
  vim.cmd('silent! only!')
end)

---@param method string
---@return table?
local function asked(method)
  for _, request in ipairs(app.asked) do
    if request.method == method then
      return request.params
    end
  end
end

local function target()
  return { kind = 'queued', item = item }
end

---@param text string
local function edit(text)
  queue.edit(chat, target())
  vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(text, '\n'))
  vim.cmd('silent write')
end

describe('what waits', function()
  it('is changed with :w, and keeps what goes along', function()
    queue.edit(chat, target())
    assert.same({ 'first' }, vim.api.nvim_buf_get_lines(0, 0, -1, false))
    vim.cmd('bwipeout!')
    edit('other\nwords')
    local params = asked('session/queueUpdate')
    assert.equal(7, params.eventSeq)
    assert.equal('other\nwords', params.content[1].text)
    assert.equal('image', params.content[2].type)
  end)

  it('comes to the input when it was read meanwhile', function()
    app.answers['session/queueUpdate'] = function()
      return nil, { message = 'taken', data = { kind = 'promptTaken' } }
    end
    edit('other')
    assert.matches('it does not wait any more', app:told())
    assert.equal('other', chat.back)
  end)

  it('is not made empty', function()
    queue.edit(chat, target())
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { '  ' })
    pcall(vim.cmd, 'silent write')
    assert.is_nil(asked('session/queueUpdate'))
    assert.matches('it is empty', app:told())
    vim.cmd('bwipeout!')
  end)

  it('is dropped, and can be had back', function()
    queue.drop(chat, target())
    assert.equal(7, asked('session/queueRemove').eventSeq)
    assert.same({ 'first' }, chat.input.history.entries)
  end)

  it('is told at once, with what goes along', function()
    queue.now(chat, target())
    assert.equal('steer', chat.said.delivery)
    assert.equal('first', chat.said.text)
    assert.equal('image', chat.said.alone[1].type)
  end)

  it('is read next where no turn runs', function()
    chat.session.transcript.turn = nil
    queue.now(chat, target())
    assert.matches('no turn runs', app:told())
    assert.is_nil(asked('session/queueRemove'))
  end)

  it('is left alone when no person has said it', function()
    item.author = { kind = 'schedule', name = 'nightly' }
    queue.drop(chat, target())
    queue.now(chat, target())
    assert.matches('no person has said it', app:told())
    assert.is_nil(asked('session/queueRemove'))
  end)

  it('says so when it does not wait any more, or not yet', function()
    chat.session.transcript.queue = {}
    queue.drop(chat, target())
    assert.matches('it does not wait any more', app:told())
    queue.drop(chat, { kind = 'outgoing', outgoing = { key = 'k', text = 'x' } })
    assert.matches('on its way', app:told())
  end)
end)

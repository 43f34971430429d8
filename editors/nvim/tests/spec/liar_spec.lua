-- A server that says what nobody thought of: nothing of it may be a traceback, or keep the rest from being seen.
local Reducer = require('callboard.model.reducer')
local render = require('callboard.ui.render')
local text = require('callboard.model.text')

local WRONG = { 42, true, { 'a list' }, { a = 1 }, 'a text', 1e300, -1 }

---@param type string
---@param seq integer
---@param data any
local function event(type, seq, data)
  return { type = type, seq = seq, eventId = 'evt_' .. seq, at = '', sessionId = 's', data = data }
end

describe('text', function()
  it('is made of whatever comes in its place', function()
    assert.equal('', text.one_line(nil))
    assert.equal('42', text.one_line(42))
    assert.equal('true', text.bar(true, 8))
    assert.equal('…', text.one_line({}))
    assert.same({ '7' }, text.lines(7))
    assert.same({ '' }, text.lines(nil))
  end)
end)

describe('a transcript', function()
  local types = {
    'message',
    'ack',
    'turn_started',
    'turn_finished',
    'tool_call',
    'tool_result',
    'approval_request',
    'approval_decision',
    'error',
    'plan_updated',
    'session_rewound',
    'session_created',
    'directive',
    'prompt_updated',
    'triggers_dropped',
    'model_retried',
    'mode_changed',
    'deliveries_dropped',
  } -- stylua: ignore

  it('goes on after events that hold something else than they should', function()
    for _, type in ipairs(types) do
      for _, wrong in ipairs(WRONG) do
        local transcript = Reducer.new('s')
        Reducer.apply(transcript, event('session_created', 1, {}))
        Reducer.apply(transcript, event(type, 2, wrong))
        Reducer.apply(transcript, event(type, 3, nil))
        Reducer.apply(transcript, event('mode_changed', 4, { mode = 'work' }))
        local last = transcript.items[#transcript.items]
        assert.equal('Mode: work', last.text, type)
        assert.equal(4, transcript.last_seq)
      end
    end
  end)

  it('says where something cannot be shown, and why', function()
    local transcript = Reducer.new('s')
    local change = assert(Reducer.apply(transcript, event('tool_result', 1, nil)))
    assert.equal('Something that cannot be shown (tool_result)', transcript.items[1].text)
    assert.matches('nil', change.fault)
  end)

  it('takes no notice of what is no event', function()
    local transcript = Reducer.new('s')
    for _, wrong in ipairs(WRONG) do
      assert.is_nil(Reducer.apply(transcript, wrong))
      assert.is_nil(Reducer.apply(transcript, { type = 'message', seq = 'x', data = wrong }))
      assert.is_nil(
        Reducer.delta(transcript, { kind = 'answer', messageId = 'm', index = 0, text = {} })
      )
    end
    assert.same({}, transcript.items)
  end)
end)

describe('an item', function()
  it('is drawn, whatever it holds', function()
    local looks = { icons = 'text', fold_lines = 25, agent = 'default', room = true }
    for _, kind in ipairs({ 'prompt', 'answer', 'thought', 'tool', 'notice', 'error', 'turn' }) do
      for _, wrong in ipairs(WRONG) do
        local item = {
          id = 'x',
          kind = kind,
          seq = 1,
          at = '',
          text = wrong,
          author = wrong,
          call = wrong,
          result = wrong,
          failure = wrong,
          usage = wrong,
          attachments = wrong,
          blobs = wrong,
          outcome = wrong,
        } -- stylua: ignore
        local block = render.block(item, { kind = 'answer', author = wrong, text = '' }, looks)
        assert.is_true(#block.lines > 0)
        assert.is_number(block.first)
      end
    end
  end)
end)

describe('a fault', function()
  local notify = require('callboard.notify')
  local toast = require('callboard.ui.toast')
  local kept, told

  before_each(function()
    told, kept = {}, toast.show
    toast.show = function(message)
      told[#told + 1] = message
    end
  end)

  after_each(function()
    toast.show = kept
  end)

  local function settle()
    local done
    vim.defer_fn(function()
      done = true
    end, 5)
    vim.wait(2000, function()
      return done
    end)
  end

  it('is told in a line, once, and keeps nothing else from happening', function()
    local function break_down()
      error('it broke\nwith more', 0)
    end
    for _ = 1, 50 do
      assert.is_false(notify.guard(break_down))
    end
    local ok, result = notify.guard(function(a, b)
      return a + b
    end, 1, 2)
    assert.is_true(ok)
    assert.equal(3, result)
    settle()
    assert.equal(1, #told)
    assert.matches('it broke', told[1])
    assert.is_nil(told[1]:find('with more', 1, true))
  end)

  it('of a key or a command is no traceback', function()
    local buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_set_current_buf(buf)
    require('callboard.keys').set(buf, 'list', {
      {
        action = 'break',
        lhs = 'Z',
        desc = 'Break',
        fn = function()
          error('a broken key', 0)
        end,
      },
    })
    assert.has_no.errors(function()
      vim.api.nvim_feedkeys('Z', 'xt', false)
    end)
    settle()
    assert.matches('a broken key', told[1])
    require('callboard.keys').forget(buf)
  end)
end)

describe('what waits', function()
  local tail = require('callboard.ui.tail')

  ---@param said string
  local function lines(said)
    local transcript = Reducer.new('s')
    transcript.queue = { { id = 'q', kind = 'prompt', seq = 1, text = said } }
    local shown = tail.lines({
      transcript = transcript,
      phase = 'live',
      server = 'ready',
      approvals = {},
      keys = { edit = 'e', drop = 'x', steer = 's' },
      cwd = '/',
    })
    return vim.list_slice(vim.tbl_map(require('callboard.ui.lines').text, shown), 3)
  end

  it('is shown by its first lines, however long it is', function()
    assert.same({ '  - one' }, lines('\n  one  \n'))
    assert.same({ '  - one', '    two', '    ' .. 'three' }, lines('one\r\ntwo\nthree'))
    assert.same(
      { '  - one', '    two', '    three', '    … 2 more lines' },
      lines('one\ntwo\nthree\n\n5')
    )
  end)

  it('costs no more than what is shown of it', function()
    local long = ('some words to paste\n'):rep(250000)
    local taken, visible = 0, text.visible
    text.visible = function(value)
      taken = taken + #value
      return visible(value)
    end
    local shown = lines(long)
    text.visible = visible
    assert.equal('    … 249997 more lines', shown[4])
    assert.is_true(taken < 10000)
  end)
end)

describe('what Neovim refuses', function()
  it('is told with the way out', function()
    local toast = require('callboard.ui.toast')
    local kept, told = toast.show, nil
    toast.show = function(message)
      told = message
    end
    require('callboard.notify').guard(error, 'nvim_exec2(): Vim(split):E36: Not enough room', 0)
    vim.wait(2000, function()
      return told
    end)
    toast.show = kept
    assert.matches('no room for another window', told)
  end)
end)

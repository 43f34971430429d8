-- The transcript in its buffer: what changes is written, and nothing else; who reads is left in peace.
local Reducer = require('callboard.model.reducer')
local recorded = require('recorded')
local shown = require('shown')

local seq

---@param transcript callboard.Transcript
---@param view callboard.View
---@param type string
---@param data table
local function tell(transcript, view, type, data)
  seq = seq + 1
  local change = Reducer.apply(transcript, {
    seq = seq,
    eventId = 'evt_' .. seq,
    type = type,
    at = '2030-01-01T10:00:00.000Z',
    turnId = 'trn_1',
    data = data,
  })
  view:update(assert(change))
end

---@param view callboard.View
---@param transcript callboard.Transcript
---@param index integer
---@param text string
---@param kind string?
local function stream(transcript, view, index, text, kind)
  local change = Reducer.delta(transcript, {
    turnId = 'trn_1',
    messageId = 'msg_2',
    index = index,
    text = text,
    kind = kind or 'answer',
  })
  if change then
    view:update(change)
  end
end

---@param transcript callboard.Transcript
---@param view callboard.View
---@param id string
---@param text string
local function said(transcript, view, id, text)
  tell(transcript, view, 'message', {
    messageId = id,
    author = { kind = 'agent', name = 'default' },
    content = { { type = 'text', text = text } },
  })
end

---A session with a turn under way.
---@return callboard.Transcript
local function running()
  seq = 0
  local transcript = Reducer.new('ses_1')
  local nobody = { update = function() end }
  tell(transcript, nobody, 'session_created', { mode = 'work' })
  tell(transcript, nobody, 'message', {
    messageId = 'msg_1',
    author = { kind = 'person', name = 'x' },
    content = { { type = 'text', text = 'Go.' } },
  })
  tell(transcript, nobody, 'turn_started', { turnId = 'trn_1', model = 'm', profile = 'default' })
  tell(transcript, nobody, 'ack', { admits = { 2 } })
  return transcript
end

---@param view callboard.View
---@param id string
---@param text string
local function call(transcript, view, id, text)
  tell(
    transcript,
    view,
    'tool_call',
    { callId = id, name = 'x', title = id, arguments = {}, kind = 'read' }
  )
  if text then
    tell(transcript, view, 'tool_result', { callId = id, name = 'x', status = 'ok', text = text })
  end
end

local open = {}

---@return callboard.tests.Shown
local function show(...)
  local view = shown.show(...)
  open[#open + 1] = view
  return view
end

after_each(function()
  for _, view in ipairs(open) do
    view.close()
  end
  open = {}
end)

describe('a session that grows', function()
  for _, name in ipairs(recorded.names()) do
    it(('shows the same at each moment as one that is read anew (%s)'):format(name), function()
      local id = recorded.root(name)
      local session = recorded.said(name).sessions[1].session
      local transcript = Reducer.new(id)
      local view = show(transcript, { session = session })
      for i, event in ipairs(recorded.events(name, id)) do
        local change = Reducer.apply(transcript, event)
        if change then
          view.view:update(change)
          view.view:flush()
        end
        if i % 5 == 0 or i == #recorded.events(name, id) then
          local fresh = shown.show(transcript, { session = session })
          assert.equal(fresh.text(), view.text())
          fresh.close()
        end
      end
    end)
  end
end)

describe('streamed text', function()
  it('is appended, and not written again when the message is there', function()
    local transcript = running()
    local view = show(transcript)
    local written = 0
    vim.api.nvim_buf_attach(view.buf, false, {
      on_bytes = function(_, _, _, _, _, _, _, _, _, _, _, new_bytes)
        written = written + new_bytes
      end,
    })
    local text, index = {}, 0
    for i = 1, 300 do
      local piece = i % 7 == 0 and 'word\n' or 'word '
      text[i] = piece
      stream(transcript, view.view, index, piece)
      index = index + 1
      view.view:flush()
    end
    local whole = vim.trim(table.concat(text))
    assert.matches(vim.pesc(vim.trim(whole)) .. '$', view.text())
    -- The message itself, and its heading.
    assert.is_true(written < #whole + 100, ('%d bytes were written for %d'):format(written, #whole))
    written = 0
    said(transcript, view.view, 'msg_2', table.concat(text))
    view.view:flush()
    assert.equal(0, written)
  end)

  it('gives way to the message where that says something else', function()
    local transcript = running()
    local view = show(transcript)
    stream(transcript, view.view, 0, 'I will tell my secr')
    view.view:flush()
    said(transcript, view.view, 'msg_2', 'I will tell nothing.')
    view.view:flush()
    assert.matches('Agent ──\nI will tell nothing.$', view.text())
  end)

  it('is one write for all that comes in a moment, and no timer runs after it', function()
    local transcript = running()
    local view = show(transcript)
    view.view.opts.debounce_ms = 30
    view.view.last = vim.uv.now()
    local writes = 0
    view.view.opts.drawn = function()
      writes = writes + 1
    end
    for i = 0, 99 do
      stream(transcript, view.view, i, 'x ')
    end
    assert.equal(0, writes)
    assert.is_true(vim.wait(2000, function()
      return writes > 0
    end, 5))
    assert.equal(1, writes)
    assert.is_false(view.view.timer:is_active())
  end)

  it('of a thought stays open while it comes, and is folded then', function()
    local transcript = running()
    local view = show(transcript)
    stream(transcript, view.view, 0, 'Hm.\nWell.\nYes.', 'thought')
    view.view:flush()
    vim.api.nvim_win_set_cursor(view.win, { 1, 0 })
    local row = #view.lines() - 3
    assert.equal(-1, vim.fn.foldclosed(row))
    tell(transcript, view.view, 'message', {
      messageId = 'msg_2',
      author = { kind = 'agent', name = 'default' },
      content = {
        { type = 'thinking', text = 'Hm.\nWell.\nYes.' },
        { type = 'text', text = 'Right.' },
      },
    })
    view.view:flush()
    assert.equal('  Thought', view.lines()[row])
    assert.equal(row, vim.fn.foldclosed(row + 2))
    assert.matches('\n\nRight.$', view.text())
  end)

  it('that somebody else has written over is read anew', function()
    local transcript = running()
    local view = show(transcript)
    stream(transcript, view.view, 0, 'Hello ')
    view.view:flush()
    vim.bo[view.buf].modifiable = true
    vim.api.nvim_buf_set_lines(view.buf, 0, 2, false, {})
    stream(transcript, view.view, 1, 'there')
    view.view:flush()
    assert.equal('── You ──\nGo.\n\n── Agent ──\nHello there', view.text())
  end)
end)

describe('who reads', function()
  ---@return callboard.tests.Shown, callboard.Transcript
  local function long()
    local transcript = running()
    local nobody = { update = function() end }
    for i = 1, 60 do
      said(transcript, nobody, 'msg_a' .. i, ('answer %d\nsecond line'):format(i))
    end
    return show(transcript), transcript
  end

  it('at the end follows it', function()
    local view, transcript = long()
    vim.api.nvim_win_set_cursor(view.win, { #view.lines(), 0 })
    said(transcript, view.view, 'msg_b', 'new\nlines\nhere')
    view.view:flush()
    assert.equal(#view.lines(), vim.api.nvim_win_get_cursor(view.win)[1])
  end)

  it('at the end has it at the end of the window, whatever comes above it or goes', function()
    local transcript = running()
    local view = show(transcript, { tail = { phase = 'live' } })
    local height = vim.api.nvim_win_get_height(view.win)
    local function filled()
      local top, count = vim.fn.winsaveview().topline, #view.lines()
      local used =
        vim.api.nvim_win_text_height(view.win, { start_row = top - 1, end_row = count - 1 })
      return top == 1 or used.all >= height - 1, top
    end
    transcript.plan = {}
    for i = 1, 8 do
      transcript.plan[i] = { content = 'step ' .. i, status = 'pending' }
    end
    view.view:update_tail()
    view.view:flush()
    vim.api.nvim_win_set_cursor(view.win, { #view.lines(), 0 })
    for i = 1, 40 do
      said(transcript, view.view, 'msg_b' .. i, 'answer ' .. i)
      view.view:flush()
      assert.is_true(filled())
    end
    assert.is_true(select(2, filled()) > 1)
    -- A long list becomes a short one; a card folds.
    transcript.plan = { { content = 'one', status = 'pending' } }
    view.view:update_tail()
    view.view:flush()
    assert.is_true(filled())
    call(transcript, view.view, 'call_1', table.concat(vim.fn.range(1, 20), '\n'))
    view.view:flush()
    assert.is_true(filled())
    transcript.plan = {}
    view.view:update_tail()
    view.view:flush()
    assert.is_true(filled())
  end)

  it('elsewhere stays there', function()
    local view, transcript = long()
    vim.api.nvim_win_set_cursor(view.win, { 40, 0 })
    vim.cmd('normal! zt')
    local top = vim.fn.line('w0')
    said(transcript, view.view, 'msg_b', 'new')
    stream(transcript, view.view, 0, 'and more')
    view.view:flush()
    assert.equal(40, vim.api.nvim_win_get_cursor(view.win)[1])
    assert.equal(top, vim.fn.line('w0'))
  end)

  it('stays at the line when what is above it changes', function()
    local view, transcript = long()
    call(transcript, view.view, 'call_1', nil)
    for i = 1, 10 do
      said(transcript, view.view, 'msg_c' .. i, 'after ' .. i)
    end
    view.view:flush()
    local row = view.view:row('msg_c3') + 1
    vim.api.nvim_win_set_cursor(view.win, { row, 3 })
    tell(
      transcript,
      view.view,
      'tool_result',
      { callId = 'call_1', name = 'x', status = 'ok', text = 'a\nb\nc\nd' }
    )
    view.view:flush()
    assert.equal('after 3', vim.api.nvim_get_current_line())
    assert.equal(view.view:row('msg_c3') + 1, vim.api.nvim_win_get_cursor(view.win)[1])
  end)

  it('in another window follows while the end is in view', function()
    local view, transcript = long()
    vim.api.nvim_win_set_cursor(view.win, { #view.lines(), 0 })
    vim.cmd('redraw')
    vim.cmd('vnew')
    said(transcript, view.view, 'msg_b', 'new\nlines')
    view.view:flush()
    assert.equal(#view.lines(), vim.api.nvim_win_get_cursor(view.win)[1])
    vim.cmd('bwipeout!')
  end)
end)

describe('many items', function()
  local function many(count)
    local transcript = running()
    local nobody = { update = function() end }
    for i = 1, count do
      said(transcript, nobody, 'msg_a' .. i, 'answer ' .. i)
    end
    return transcript
  end

  it('are not all in the buffer', function()
    local view = show(many(100), { max_items = 20 })
    assert.equal('▲ 81 earlier; <CR> loads', view.lines()[1])
    assert.equal(20, #view.view.blocks)
    assert.is_nil(view.text():find('answer 80\n', 1, true))
    assert.truthy(view.text():find('answer 81\n', 1, true))
    assert.equal('older', view.view:at(0).kind)
  end)

  it('go at the top as others come, where nobody reads them', function()
    local transcript = many(30)
    local view = show(transcript, { max_items = 20 })
    vim.api.nvim_win_set_cursor(view.win, { #view.lines(), 0 })
    for i = 1, 50 do
      said(transcript, view.view, 'msg_b' .. i, 'more ' .. i)
      view.view:flush()
    end
    assert.equal(20, #view.view.blocks)
    assert.equal('▲ 61 earlier; <CR> loads', view.lines()[1])
    assert.matches('more 50$', view.text())
  end)

  it('are there when they are asked for, and the reader stays', function()
    local view = show(many(100), { max_items = 20 })
    vim.api.nvim_win_set_cursor(view.win, { view.view:row('msg_a85') + 1, 0 })
    view.view:widen(20)
    view.view:flush()
    assert.equal('▲ 61 earlier; <CR> loads', view.lines()[1])
    assert.equal('answer 85', vim.api.nvim_get_current_line())
  end)

  it('that come before the others are put there', function()
    local all = recorded.events('demo')
    local transcript = Reducer.new('ses_000001')
    for i = 21, #all do
      Reducer.apply(transcript, all[i])
    end
    local view = show(transcript)
    vim.api.nvim_win_set_cursor(view.win, { 5, 0 })
    local line = vim.api.nvim_get_current_line()
    view.view:update(Reducer.older(transcript, vim.list_slice(all, 1, 20)))
    view.view:flush()
    assert.equal(line, vim.api.nvim_get_current_line())
    local whole = show(recorded.transcript('demo'))
    assert.equal(whole.text(), view.text())
  end)
end)

describe('folds', function()
  it('close cards that have an output, and stay as they were put', function()
    local transcript = running()
    local view = show(transcript)
    call(transcript, view.view, 'call_1', 'a\nb\nc')
    call(transcript, view.view, 'call_2', 'd\ne')
    view.view:flush()
    local first, second = view.view:row('call_1') + 1, view.view:row('call_2') + 1
    assert.equal(first, vim.fn.foldclosed(first + 3))
    assert.equal(second, vim.fn.foldclosed(second + 1))
    vim.api.nvim_win_set_cursor(view.win, { first, 0 })
    vim.cmd('normal! za')
    assert.equal(-1, vim.fn.foldclosed(first + 1))
    -- All of it is written anew; the fold that was opened is open.
    view.view:reset()
    view.view:flush()
    vim.api.nvim_win_set_cursor(view.win, { 1, 0 })
    assert.equal(-1, vim.fn.foldclosed(first + 1))
    assert.equal(second, vim.fn.foldclosed(second + 1))
    vim.api.nvim_win_set_cursor(view.win, { first, 0 })
    vim.cmd('normal! za')
    assert.equal(first, vim.fn.foldclosed(first + 1))
  end)

  it('are one for each card, however often it was written', function()
    local transcript = running()
    local view = show(transcript)
    call(transcript, view.view, 'call_1', nil)
    for i = 1, 5 do
      view.view:update(assert(Reducer.delta(transcript, {
        turnId = 'trn_1',
        messageId = 'call_1',
        index = i - 1,
        text = 'line\n',
        kind = 'tool_output',
      })))
      view.view:flush()
    end
    tell(
      transcript,
      view.view,
      'tool_result',
      { callId = 'call_1', name = 'x', status = 'ok', text = 'a\nb' }
    )
    view.view:flush()
    local row = view.view:row('call_1') + 1
    assert.equal(1, vim.fn.foldlevel(row))
    assert.equal(row, vim.fn.foldclosed(row))
    assert.equal(row + 2, vim.fn.foldclosedend(row))
  end)

  it('are made in a window that comes later', function()
    local transcript = running()
    local view = show(transcript)
    call(transcript, view.view, 'call_1', 'a\nb')
    view.view:flush()
    vim.cmd('split')
    local win = vim.api.nvim_get_current_win()
    vim.cmd('normal! zE')
    require('callboard.ui.folds').make(view.view, win)
    local row = view.view:row('call_1') + 1
    assert.equal(row, vim.fn.foldclosed(row + 1))
    vim.cmd('close')
  end)
end)

describe('a line', function()
  it('knows what it stands for', function()
    local transcript = running()
    local view = show(transcript)
    call(transcript, view.view, 'call_1', 'a\nb')
    view.view:flush()
    local row = view.view:row('call_1')
    local target, block, offset = view.view:at(row + 1)
    assert.equal('full', target.kind)
    assert.equal('call_1', block.id)
    assert.equal(1, offset - (block.first or 0))
    assert.is_nil(view.view:at(999))
  end)
end)

-- The line above a chat: what is most wanted of it stays when there is little room.
local winbar = require('callboard.ui.winbar')

---@param head table?
---@param width integer
---@return string as it is drawn in so many cells
local function drawn(head, width)
  local text = winbar.text(
    vim.tbl_extend('force', {
      title = 'The test of the shop fails.',
      server = 'ready',
      phase = 'live',
      mode = 'work',
      model = 'scripted//home/ada/a long folder/slow.yaml',
      approvals = 1,
      queued = 0,
    }, head or {}),
    0,
    width
  )
  local shown = vim.api.nvim_eval_statusline(text, { maxwidth = width, use_winbar = true })
  return (shown.str:gsub('%s+$', ''))
end

describe('the window bar', function()
  it('has all where there is room', function()
    assert.equal(
      ' The test of the shop fails.  1 to approve  work · scripted/demo',
      drawn({ model = 'scripted/demo' }, 80)
    )
  end)

  it('shortens the title, and says of a model its name only', function()
    assert.equal(' The test of the s…  1 to approve  work · slow.yaml', drawn(nil, 52))
    assert.equal(
      ' The test of the sh…  1 to approve  work · demo',
      drawn({ model = 'scripted/demo' }, 48)
    )
  end)

  it('has what agents that are programs of their own call their modes and models', function()
    assert.equal(
      ' The test of the shop fails.  1 to approve  work · Code · a/b · codex Large 2/3',
      drawn({ model = 'a/b', agent_mode = 'Code', agent_model = 'codex Large\n2/3' }, 80)
    )
  end)

  it('keeps a distance from what stands at the right', function()
    local usage = { inputTokens = 1200, outputTokens = 34 }
    local line = drawn({ queued = 2, usage = usage, approvals = 0 }, 60)
    assert.equal(' The test of…  idle  work · sl…  2 queued · 1.2k in, 34 out', line)
  end)

  it('cuts nothing at its beginning', function()
    for width = 32, 120 do
      assert.is_nil(drawn(nil, width):find('<', 1, true), 'at ' .. width)
    end
  end)
end)

describe('the bar of the input', function()
  ---@param width integer
  ---@return string
  local function drawn_input(width)
    local note = ':Callboard next answers, <CR> queues, g? helps'
    local bar = winbar.input({ 'prices.py:1-2' }, 'gx', note, width)
    local shown = vim.api.nvim_eval_statusline(bar, { maxwidth = width, use_winbar = true })
    return (vim.trim(shown.str):gsub('%s%s+', '  '))
  end

  it('has all where there is room', function()
    assert.equal(
      '+ prices.py:1-2  (gx removes)  :Callboard next answers, <CR> queues, g? helps',
      drawn_input(100)
    )
  end)

  it('leaves out what is least wanted', function()
    assert.equal('+ prices.py:1-2  :Callboard next answers, <CR> queues, g? helps', drawn_input(66))
    assert.equal('+ prices.py:1-2  :Callboard next answers', drawn_input(48))
  end)
end)

--- Messages that do not fit the command line.
local toast = require('callboard.ui.toast')

---What stands at the top right; nil where nothing does.
local function shown()
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local buf = vim.api.nvim_win_get_buf(win)
    if vim.bo[buf].filetype == 'callboard-message' then
      return vim.api.nvim_buf_get_lines(buf, 0, -1, true), vim.api.nvim_win_get_config(win)
    end
  end
end

local function gone()
  return vim.wait(3000, function()
    return shown() == nil
  end, 5)
end

describe('a message', function()
  local short, byte, long = toast.SHORT_MS, toast.BYTE_MS, toast.LONG_MS

  before_each(function()
    toast.SHORT_MS, toast.BYTE_MS, toast.LONG_MS = 60000, 0, 60000
  end)

  after_each(function()
    toast.SHORT_MS, toast.BYTE_MS, toast.LONG_MS = 1, 0, 1
    toast.show('last\nof all')
    -- Those of before still stand; they are taken away by a look in a far future.
    local now = vim.uv.hrtime
    rawset(vim.uv, 'hrtime', function()
      return now() + 1e15
    end)
    assert.is_true(gone())
    rawset(vim.uv, 'hrtime', now)
    toast.SHORT_MS, toast.BYTE_MS, toast.LONG_MS = short, byte, long
  end)

  it('of several lines stands at the top right, and takes no focus', function()
    local win = vim.api.nvim_get_current_win()
    toast.show('one\ntwo')
    local lines, config = shown()
    assert.same({ 'one', 'two' }, lines)
    assert.is_false(config.focusable)
    assert.equal('NE', config.anchor)
    assert.equal(win, vim.api.nvim_get_current_win())
  end)

  it('that is long is wrapped at words, and no wider than the screen', function()
    toast.show(('word '):rep(100) .. ('全角'):rep(50))
    local lines, config = shown()
    assert.truthy(config.width <= vim.o.columns - 2)
    for _, line in ipairs(lines) do
      assert.truthy(vim.fn.strdisplaywidth(line) <= config.width)
    end
    assert.truthy(vim.endswith(lines[1], 'word '))
    assert.equal(('word '):rep(100) .. ('全角'):rep(50), table.concat(lines))
  end)

  it('without an end is cut, and says where the rest is', function()
    toast.show(('line\n'):rep(100))
    local lines = shown()
    assert.equal(12, #lines)
    assert.truthy(lines[12]:find(':Callboard log', 1, true))
  end)

  it('goes when its time is over, and no timer stays', function()
    toast.SHORT_MS, toast.LONG_MS = 20, 20
    toast.show('one\ntwo')
    assert.truthy(shown())
    assert.is_true(gone())
  end)

  it('joins those that stand there', function()
    toast.show('a\nb')
    toast.show('c\nd', vim.log.levels.ERROR)
    assert.same({ 'a', 'b', 'c', 'd' }, (shown()))
  end)

  it('goes the way that the user has chosen, where there is one', function()
    local told
    local real = vim.notify
    rawset(vim, 'notify', function(...)
      told = { ... }
    end)
    toast.show('one\ntwo', vim.log.levels.WARN)
    rawset(vim, 'notify', real)
    assert.same({ 'one\ntwo', vim.log.levels.WARN, { title = 'Callboard' } }, told)
    assert.is_nil(shown())
  end)

  it('that holds anything can be shown', function()
    toast.show('a\0b\27[2J\255\226\128\174\n')
    assert.same({ 'a<00>b<1B>[2J\239\191\189<U+202E>', '' }, (shown()))
  end)
end)

-- Some lines of a long text.
local excerpt = require('callboard.model.excerpt')

describe('an excerpt', function()
  it('is the first lines, or the last ones, and counts the others', function()
    local raw = table.concat(vim.fn.range(1, 9), '\n') .. '\n\n\n'
    assert.same({ lines = { '1', '2', '3' }, above = 0, below = 6 }, excerpt.of(raw, 3, false))
    assert.same({ lines = { '7', '8', '9' }, above = 6, below = 0 }, excerpt.of(raw, 3, true))
    assert.same({ above = 0, below = 0, lines = { 'x' } }, excerpt.of('x', 3, true))
    assert.same({ above = 0, below = 0, lines = {} }, excerpt.of('\r\n\n', 3, true))
    assert.same({ above = 0, below = 0, lines = {} }, excerpt.of('', 3, false))
    assert.same({ '', '', 'x' }, excerpt.of('\n\nx', 3, false).lines)
  end)

  it('leaves out what is said elsewhere', function()
    local raw = '--- a\n+++ b\n@@\n-x\n+y\n'
    local function skip(line, number)
      return number < 3 and line:find('^[-+]') ~= nil
    end
    assert.same({ lines = { '@@', '-x' }, above = 0, below = 1 }, excerpt.of(raw, 2, false, skip))
    assert.same({ lines = { '+y' }, above = 2, below = 0 }, excerpt.of(raw, 1, true, skip))
  end)

  it('is fit for a buffer', function()
    assert.same({ 'a<1B>b', 'c<0D>d' }, excerpt.of('a\27b\r\nc\rd', 5, false).lines)
    local long = excerpt.of(('€'):rep(100000), 5, false).lines[1]
    assert.equal(excerpt.WIDTH + 2, vim.fn.strchars(long))
    assert.equal(long, require('callboard.model.text').utf8(long))
    local wide = ('€'):rep(300)
    assert.same({ wide }, excerpt.of(wide, 5, false).lines)
  end)

  it('does not look at all of a text again and again', function()
    local raw = ('\n'):rep(200000) .. 'x'
    local begun = vim.uv.hrtime()
    assert.same({ 'x' }, excerpt.of(raw, 1, true).lines)
    assert.is_true(vim.uv.hrtime() - begun < 5e9)
  end)
end)

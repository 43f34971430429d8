--- Unified diffs: what is read, applied and taken back.
local Patch = require('callboard.model.patch')

---@param before string
---@param after string
---@return string
local function diff(before, after)
  return '--- a/file\n+++ b/file\n' .. vim.diff(before, after, { ctxlen = 3 })
end

---@param text string
---@return callboard.Patch
local function parsed(text)
  return assert(Patch.parse(text))
end

---@param text string
---@param patch string
---@return string, callboard.HunkFailure[]
local function applied(text, patch)
  local result = Patch.apply(Patch.text(text), parsed(patch))
  return Patch.content(result.text), result.failed
end

---@param text string
---@param patch string
---@return string, callboard.HunkFailure[]
local function reversed(text, patch)
  local result = Patch.reverse(Patch.text(text), parsed(patch))
  return Patch.content(result.text), result.failed
end

---@param from integer
---@param to integer
---@return string
local function numbered(from, to)
  local lines = {}
  for i = from, to do
    lines[#lines + 1] = ('line %d\n'):format(i)
  end
  return table.concat(lines)
end

describe('a text', function()
  it('is its lines with their ends', function()
    assert.same({}, Patch.text(''))
    assert.same({ '\n' }, Patch.text('\n'))
    assert.same({ 'a\n', 'b' }, Patch.text('a\nb'))
    assert.same({ 'a\r\n', '\r\n' }, Patch.text('a\r\n\r\n'))
    assert.equal('a\n\nb', Patch.content(Patch.text('a\n\nb')))
  end)
end)

describe('reading a diff', function()
  it('takes a span without a count as one line', function()
    local hunk = parsed('@@ -3 +3,2 @@\n-a\n+b\n+c\n').hunks[1]
    assert.same({ 3, 1, 3, 2 }, { hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count })
  end)

  it('goes by the counts, not by what lines look like', function()
    local text = '@@ -1,2 +1,2 @@\n--- a/file\n-@@ -1 +1 @@\n+++ b/file\n+@@ -2 +2 @@\n'
    local lines = parsed(text).hunks[1].lines
    assert.same({ mark = '-', text = '-- a/file\n' }, lines[1])
    assert.same({ mark = '+', text = '@@ -2 +2 @@\n' }, lines[4])
  end)

  it('has no hunks in an empty diff', function()
    assert.same({ hunks = {} }, parsed(''))
    assert.same({ hunks = {} }, parsed('--- a/x\n+++ b/x\n'))
  end)

  for name, text in pairs({
    ['cut in the middle of a hunk'] = '@@ -1,3 +1,3 @@\n a\n-b\n',
    ['cut in the middle of a line'] = '@@ -1 +1 @@\n-abc\n+ab',
    ['with a note where lines were cut out'] = '@@ -1,3 +1,3 @@\n a\n[... 300 lines left out ...]\n c\n',
    ['with something else between its hunks'] = '@@ -1 +1 @@\n-a\n+b\nsomething else\n',
    ['of two files'] = '@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n',
    ['with counts that do not add up'] = '@@ -1,1 +1,2 @@\n-a\n-b\n+c\n+d\n',
    ['with a header that is none'] = '@@ -x +y @@\n a\n',
  }) do
    it('refuses one ' .. name, function()
      local patch, why = Patch.parse(text)
      assert.is_nil(patch)
      assert.is_string(why)
    end)
  end
end)

describe('a hunk', function()
  local before = numbered(1, 30)
  local after = before:gsub('line 15\n', 'line fifteen\nline 15b\n')
  local change = diff(before, after)

  it('is put in at its place', function()
    assert.same({ after, {} }, { applied(before, change) })
    assert.same({ before, {} }, { reversed(after, change) })
  end)

  it('is found where lines came before it', function()
    local text = 'new\nlines\n' .. after
    assert.same({ 'new\nlines\n' .. before, {} }, { reversed(text, change) })
  end)

  it('is found where lines before it have gone', function()
    local text = after:gsub('^line 1\nline 2\nline 3\n', '')
    assert.same({ numbered(4, 30), {} }, { reversed(text, change) })
  end)

  it('is left out, and named, where somebody changed it', function()
    local text = after:gsub('line fifteen', 'line XV')
    local result, failed = reversed(text, change)
    assert.equal(text, result)
    assert.equal(1, #failed)
    assert.equal('changed', failed[1].fault)
    assert.equal('hunk 1 (lines 12 to 19)', Patch.name(failed[1]))
  end)

  it(
    'is left out where it might be in two places, and is in neither of them by its number',
    function()
      local block = 'a\nb\nc\nNEW\nd\ne\nf\n'
      local small = diff('a\nb\nc\nOLD\nd\ne\nf\n', block)
      local text = 'x\n' .. block .. 'y\n' .. block
      local result, failed = reversed(text, small)
      assert.equal(text, result)
      assert.equal('ambiguous', failed[1].fault)
    end
  )

  it('goes by its place where it is in two', function()
    local block = 'a\nb\nc\nNEW\nd\ne\nf\n'
    local small = diff('a\nb\nc\nOLD\nd\ne\nf\n', block)
    assert.same({ 'a\nb\nc\nOLD\nd\ne\nf\n' .. block, {} }, { reversed(block .. block, small) })
  end)

  it('moves with the one before it, where it could be in several places', function()
    local block = 'a\nb\nc\nOLD\nd\ne\nf\n'
    local text = 'first\n' .. numbered(1, 9) .. block .. numbered(20, 29) .. block
    local changed = text:gsub('first', '1st'):gsub('OLD', 'NEW', 1)
    local two = diff(text, changed)
    local grown = 'more\nabove\n' .. changed:gsub('OLD', 'NEW')
    local back = 'more\nabove\n' .. text:gsub('OLD(.*)OLD', 'OLD%1NEW')
    assert.same({ back, {} }, { reversed(grown, two) })
  end)

  it('is not looked for before the one before it', function()
    local text = numbered(1, 40)
    local two = diff(text, (text:gsub('line 10\n', 'ten\n'):gsub('line 30\n', 'thirty\n')))
    local hunk = 'line 27\nline 28\nline 29\nthirty\nline 31\nline 32\nline 33\n'
    local other = hunk .. 'line 7\nline 8\nline 9\nten\nline 11\nline 12\nline 13\nend\n'
    local result, failed = reversed(other, two)
    assert.equal((other:gsub('ten', 'line 10')), result)
    assert.equal(2, failed[1].hunk.index)
  end)

  it('does not keep the others from being put in', function()
    local long = numbered(1, 60)
    local changed =
      long:gsub('line 10\n', 'ten\n'):gsub('line 30\n', 'thirty\nmore\n'):gsub('line 50\n', '')
    local three = diff(long, changed)
    assert.equal(3, #parsed(three).hunks)
    local text = changed:gsub('thirty', '30!')
    local result, failed = reversed(text, three)
    assert.equal(2, failed[1].hunk.index)
    assert.equal(1, #failed)
    assert.equal((long:gsub('line 30\n', '30!\nmore\n')), result)
  end)

  it('is found at the end of a file that was given a last line end meanwhile', function()
    local change_of_end = diff('a\nb', 'a\nc')
    assert.same({ 'a\nb', {} }, { reversed('a\nc\n', change_of_end) })
  end)
end)

describe('ends of lines', function()
  it('are part of what changes', function()
    for _, pair in ipairs({
      { 'a', 'a\n' },
      { 'a\n', 'a' },
      { 'a\r\nb\r\n', 'a\nb\n' },
      { 'a\nb', 'a\nc' },
    }) do
      local change = diff(pair[1], pair[2])
      assert.same({ pair[2], {} }, { applied(pair[1], change) })
      assert.same({ pair[1], {} }, { reversed(pair[2], change) })
    end
  end)
end)

describe('a file that comes or goes', function()
  it('is nothing before, or after', function()
    local made = '--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n'
    assert.same({ 'a\nb\n', {} }, { applied('', made) })
    assert.same({ '', {} }, { reversed('a\nb\n', made) })
    local gone = '--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n'
    assert.same({ '', {} }, { applied('a\nb\n', gone) })
    assert.same({ 'a\nb\n', {} }, { reversed('', gone) })
  end)

  it('is not made over one that has something in it', function()
    local text, failed = applied('something\n', '@@ -0,0 +1 @@\n+a\n')
    assert.equal('something\n', text)
    assert.equal('changed', failed[1].fault)
  end)
end)

describe('random texts and edits', function()
  local state

  ---@param below integer
  ---@return integer 0 to below - 1
  local function random(below)
    state = (state * 1103515245 + 12345) % 2147483648
    return math.floor(state / 65536) % below
  end

  local WORDS = {
    '',
    'a',
    'b',
    '{',
    '}',
    'return',
    ' x',
    '+x',
    '-x',
    '\\ x',
    '@@ -1 +1 @@',
    'ä',
    '\r',
    'end\r',
  }

  ---@param most integer
  ---@return string[]
  local function text(most)
    local lines = {}
    for _ = 1, random(most + 1) do
      lines[#lines + 1] = WORDS[random(#WORDS) + 1]
    end
    return lines
  end

  ---@param lines string[]
  ---@return string[]
  local function edited(lines)
    local out = vim.list_extend({}, lines)
    for _ = 1, random(6) do
      local at = random(#out + 1) + 1
      local kind = random(3)
      if kind == 0 then
        table.insert(out, at, WORDS[random(#WORDS) + 1])
      elseif kind == 1 and out[at] then
        table.remove(out, at)
      elseif out[at] then
        out[at] = WORDS[random(#WORDS) + 1]
      end
    end
    return out
  end

  ---@param lines string[]
  ---@return string
  local function content(lines)
    local joined = table.concat(lines, '\n')
    return joined ~= '' and random(4) > 0 and joined .. '\n' or joined
  end

  it('are turned into each other, and back', function()
    for seed = 1, 600 do
      state = seed
      local lines = text(60)
      local before, after = content(lines), content(edited(lines))
      local change = diff(before, after)
      local there, missed = applied(before, change)
      local back, lost = reversed(after, change)
      assert.same({ seed, after, {} }, { seed, there, missed })
      assert.same({ seed, before, {} }, { seed, back, lost })
    end
  end)

  it('never lose or invent a line where the text is another', function()
    for seed = 1, 300 do
      state = seed
      local lines = text(40)
      local before, after = content(lines), content(edited(lines))
      local other = content(edited(lines))
      local patch = parsed(diff(before, after))
      local result = Patch.apply(Patch.text(other), patch)
      local grown = 0
      local failed = {}
      for _, failure in ipairs(result.failed) do
        failed[failure.hunk.index] = true
      end
      for _, hunk in ipairs(patch.hunks) do
        grown = grown + (failed[hunk.index] and 0 or hunk.new_count - hunk.old_count)
      end
      assert.equal(#Patch.text(other) + grown, #result.text, 'seed ' .. seed)
    end
  end)
end)

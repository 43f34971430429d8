--- Untrusted text: nothing of it acts on whoever shows it.
local text = require('callboard.model.text')

describe('utf8', function()
  it('leaves well-formed text as it is', function()
    for _, good in ipairs({
      '',
      'abc',
      'äöü',
      '全角',
      '🙂',
      '\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}',
    }) do
      assert.equal(good, text.utf8(good))
    end
  end)

  for name, case in pairs({
    ['a lone tail'] = { '\128', '�' },
    ['a lone lead'] = { 'a\195', 'a�' },
    ['a lead before ASCII'] = { '\195b', '�b' },
    ['a cut sequence of three'] = { '\226\130', '��' },
    ['a cut sequence of four'] = { '\240\159\153x', '���x' },
    ['an overlong slash'] = { '\192\175', '��' },
    ['an overlong sequence of three'] = { '\224\128\175', '���' },
    ['a surrogate'] = { '\237\160\128', '���' },
    ['what is beyond Unicode'] = { '\244\144\128\128', '����' },
    ['bytes that are never used'] = { '\254\255', '��' },
    ['good around bad'] = { 'ä\255ö\254ü', 'ä�ö�ü' },
  }) do
    it('replaces ' .. name, function()
      assert.equal(case[2], text.utf8(case[1]))
    end)
  end

  it('makes of any bytes what the wire takes', function()
    math.randomseed(7)
    for _ = 1, 300 do
      local bytes = {}
      for i = 1, math.random(0, 30) do
        bytes[i] = string.char(math.random(4) == 1 and math.random(1, 127) or math.random(128, 255))
      end
      local whole = text.utf8(table.concat(bytes))
      assert.equal(whole, text.utf8(whole))
      -- Neovim says where a character begins; in well-formed text none is of one byte beyond ASCII.
      for _, char in ipairs(vim.fn.split(whole, '\\zs')) do
        assert.is_true(#char > 1 or char:byte() < 128)
      end
    end
  end)
end)

describe('visible', function()
  it('keeps line ends and tabs', function()
    assert.equal('a\tb\nc\nd', text.visible('a\tb\nc\r\nd'))
  end)

  it('spells out whatever acts', function()
    for raw, shown in pairs({
      ['\27[31mred\27[0m'] = '<1B>[31mred<1B>[0m',
      ['a\rb'] = 'a<0D>b',
      ['\0\1\7\8\11\12\31\127'] = '<00><01><07><08><0B><0C><1F><7F>',
      ['\u{9b}31m'] = '<U+009B>31m',
      ['\u{80}\u{9f}\u{a0}'] = '<U+0080><U+009F>\u{a0}',
      ['\u{202e}gpj.exe\u{202c}'] = '<U+202E>gpj.exe<U+202C>',
      ['\u{2066}a\u{2067}b\u{2068}c\u{2069}'] = '<U+2066>a<U+2067>b<U+2068>c<U+2069>',
      ['\u{202a}\u{202b}\u{202d}'] = '<U+202A><U+202B><U+202D>',
      ['\u{200e}\u{200f}\u{61c}'] = '<U+200E><U+200F><U+061C>',
      ['a\u{2028}b\u{2029}c'] = 'a<U+2028>b<U+2029>c',
    }) do
      assert.equal(shown, text.visible(raw))
    end
  end)

  it('leaves all other characters', function()
    for _, kept in ipairs({
      'é',
      '“quoted” – …',
      '؛ ؟',
      '\u{2026}\u{2030}\u{2065}\u{206a}',
      '👩‍💻',
      '%#Error#',
    }) do
      assert.equal(kept, text.visible(kept))
    end
  end)

  it('makes invalid bytes visible, too', function()
    assert.equal('a�<1B>', text.visible('a\255\27'))
  end)
end)

describe('lines', function()
  it('are fit for a buffer', function()
    local buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(buf, 0, -1, true, text.lines('a\nb\r\n\0c\255\n'))
    assert.same({ 'a', 'b', '<00>c�', '' }, vim.api.nvim_buf_get_lines(buf, 0, -1, true))
    vim.api.nvim_buf_delete(buf, { force = true })
  end)
end)

describe('one_line', function()
  it('is one', function()
    assert.equal('a b c d', text.one_line('\n a\tb \r\n\n c\nd \n'))
    assert.equal('', text.one_line(' \n\t '))
  end)

  it('has at most so many characters', function()
    assert.equal('abc', text.one_line('abc', 3))
    assert.equal('ab…', text.one_line('abcd', 3))
    assert.equal('äö…', text.one_line('äöüß', 3))
    assert.equal('äöü', text.one_line('äöü', 3))
    assert.equal('🙂🙂…', text.one_line('🙂🙂🙂🙂', 3))
    assert.equal('…', text.one_line('abc', 1))
    assert.equal('<1B>[…', text.one_line('\27[31m', 6))
  end)

  it('is as long as Neovim counts', function()
    local mixed = ('aä全🙂'):rep(20)
    for width = 1, 81 do
      local shown = text.one_line(mixed, width)
      assert.equal(math.min(width, 80), vim.fn.strchars(shown))
    end
  end)

  it('looks at no more of a long text than it shows', function()
    local visible, seen = text.visible, 0
    text.visible = function(raw)
      seen = #raw
      return visible(raw)
    end
    local shown = text.one_line((' \n'):rep(10) .. ('word '):rep(1024 * 1024), 40)
    text.visible = visible
    assert.equal('word word word word word word word word…', shown)
    assert.is_true(seen < 8192, seen)
  end)

  it('says that there is more when all of it that was looked at is blank', function()
    assert.equal('x…', text.one_line('x' .. (' '):rep(100000) .. 'y', 5))
  end)
end)

describe('bar', function()
  it('means nothing to a statusline', function()
    assert.equal('100%% %%#Error# %%{1+1}', text.bar('100% %#Error# %{1+1}'))
    local shown = vim.api.nvim_eval_statusline(text.bar('%{1+1}%#Error#\n%%'), {}).str
    assert.equal('%{1+1}%#Error# %%', shown)
  end)
end)

describe('words for numbers', function()
  it('tell durations', function()
    for ms, words in pairs({
      [0] = '0 ms',
      [850] = '850 ms',
      [999] = '999 ms',
      [1000] = '1 s',
      [12400] = '12 s',
      [59400] = '59 s',
      [59600] = '1 m 0 s',
      [200000] = '3 m 20 s',
      [3600000] = '1 h 0 m',
      [7500000] = '2 h 5 m',
    }) do
      assert.equal(words, text.duration(ms))
    end
  end)

  it('tell counts', function()
    for count, words in pairs({
      [0] = '0',
      [950] = '950',
      [1000] = '1.0k',
      [1234] = '1.2k',
      [999949] = '999.9k',
      [999950] = '1.0M',
      [3400000] = '3.4M',
    }) do
      assert.equal(words, text.count(count))
    end
  end)
end)

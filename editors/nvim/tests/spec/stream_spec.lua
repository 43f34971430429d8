-- Text that grows is shown as if it had come at once, and no more than the new part of it is looked at.
local stream = require('callboard.ui.stream')

---@param lines string[]
---@param more string[]?
local function append(lines, more)
  for i, piece in ipairs(more or {}) do
    if i == 1 then
      lines[#lines] = lines[#lines] .. piece
    else
      lines[#lines + 1] = piece
    end
  end
end

---@param raw string
---@param cuts integer[] where the pieces end
---@param prefix string
---@return string
local function grown(raw, cuts, prefix)
  local state = stream.new(prefix, nil)
  local lines = { prefix }
  for _, at in ipairs(cuts) do
    append(lines, state:more(raw:sub(1, at), false))
    assert.equal(#lines[#lines], state.width)
  end
  append(lines, state:more(raw, true))
  return table.concat(lines, '\n')
end

---@param raw string
---@param prefix string
---@return string
local function whole(raw, prefix)
  local lines = stream.begin(stream.new(prefix, nil), raw, true)
  return table.concat(
    vim.tbl_map(function(line)
      return line[1][1]
    end, lines),
    '\n'
  )
end

describe('a text that streams', function()
  local TEXTS = {
    'plain',
    'two\nlines',
    '\n\n  indented first line\nand more\n\n\n',
    'crlf\r\nline\r\n\r\nend\r',
    'é€\240\159\152\128 wide \226\128\174bidi\226\128\172 \27[31mred',
    'bad \255\254 bytes \226\128',
    (' '):rep(50) .. 'x' .. ('\n'):rep(50) .. 'y',
    ('x'):rep(9000),
    ('€'):rep(5000) .. '\n' .. ('y'):rep(4001),
    '```lua\nlocal x\n```\nafter',
    '',
    ' \n\t\n',
  }

  it('looks the same, wherever it was cut', function()
    local seed = 7
    local function random(n)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return math.floor(seed / 65536) % n + 1
    end
    for _, text in ipairs(TEXTS) do
      for _, prefix in ipairs({ '', '  │ ' }) do
        for _ = 1, 40 do
          local cuts, at = {}, 0
          while at < #text do
            at = at + random(math.max(2, math.floor(#text / 8)))
            cuts[#cuts + 1] = math.min(at, #text)
          end
          assert.is_true(whole(text, prefix) == grown(text, cuts, prefix), text:sub(1, 20))
        end
        local bytes = #text < 200 and vim.fn.range(1, #text) or {}
        assert.is_true(whole(text, prefix) == grown(text, bytes, prefix), text:sub(1, 20))
      end
    end
  end)

  it('has no line that is too long, and no half characters', function()
    for _, text in ipairs(TEXTS) do
      for _, line in ipairs(vim.split(whole(text, '  '), '\n')) do
        assert.is_true(#line <= stream.MAX_LINE + 8)
        assert.equal(line, require('callboard.model.text').utf8(line))
      end
    end
  end)

  it('knows a text that has grown from another one', function()
    local state = stream.new('', nil)
    state:more('hello wor', false)
    assert.is_true(state:continues('hello world', false))
    assert.is_true(state:continues('hello world', true))
    assert.is_false(state:continues('hello', false))
    assert.is_false(state:continues('HELLO world', true))
    assert.is_false(state:continues('hello WORLD', false))
  end)

  it('is looked at once, however long it gets', function()
    local state = stream.new('', nil)
    local text, looked = require('callboard.model.text'), 0
    local real = text.lines
    text.lines = function(part)
      looked = looked + #part
      return real(part)
    end
    local raw = {}
    for i = 1, 500 do
      raw[i] = 'word ' .. i .. ' '
      state:more(table.concat(raw), false)
    end
    text.lines = real
    assert.is_true(looked <= #table.concat(raw))
  end)
end)

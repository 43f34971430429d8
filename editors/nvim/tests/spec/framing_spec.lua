--- Frames: however the bytes come, whole bodies are given; what is no frame is told.
-- luacheck: globals string table
local framing = require('callboard.rpc.framing')

---@param chunks string[]
---@return string[] bodies
---@return string? fault
local function fed(chunks)
  local reader, all, fault = framing.reader(), {}, nil
  for _, chunk in ipairs(chunks) do
    local bodies
    bodies, fault = reader:feed(chunk)
    vim.list_extend(all, bodies)
  end
  return all, fault
end

local BODIES = { '{}', '', ('ü'):rep(100), 'a\r\n\r\nContent-Length: 5\r\n\r\nb', '\0\1\255' }

---@return string
local function stream()
  return table.concat(vim.tbl_map(framing.frame, BODIES))
end

describe('frames', function()
  it('say how many bytes follow', function()
    assert.equal('Content-Length: 4\r\n\r\nüü', framing.frame('üü'))
    assert.equal('Content-Length: 0\r\n\r\n', framing.frame(''))
  end)

  it('are read when they come at once', function()
    local bodies, fault = fed({ stream() })
    assert.same(BODIES, bodies)
    assert.is_nil(fault)
  end)

  it('are read when they are split in two, anywhere', function()
    local all = stream()
    for cut = 0, #all do
      local bodies, fault = fed({ all:sub(1, cut), all:sub(cut + 1) })
      assert.same(BODIES, bodies, 'cut after ' .. cut)
      assert.is_nil(fault)
    end
  end)

  it('are read byte by byte', function()
    local chunks = {}
    for i = 1, #stream() do
      chunks[i] = stream():sub(i, i)
    end
    assert.same(BODIES, (fed(chunks)))
  end)

  it('are given as soon as they are whole, and once', function()
    local reader = framing.reader()
    assert.same({}, (reader:feed('Content-Length: 3\r\n\r\nab')))
    assert.same({ 'abc' }, (reader:feed('cContent-Le')))
    assert.same({}, (reader:feed('')))
    assert.same({ 'd' }, (reader:feed('ngth: 1\r\n\r\nd')))
  end)

  it('are given at once where nothing follows the header', function()
    local reader = framing.reader()
    assert.same({ '' }, (reader:feed('Content-Length: 0\r\n\r\n')))
    assert.same({ '', 'x' }, (reader:feed('Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\nx')))
  end)

  for name, header in pairs({
    ['in small letters'] = 'content-length: 2\r\n\r\n',
    ['in capital letters'] = 'CONTENT-LENGTH: 2\r\n\r\n',
    ['with \\n line ends'] = 'Content-Length: 2\n\n',
    ['with mixed line ends'] = 'Content-Length: 2\r\n\n',
    ['without a space'] = 'Content-Length:2\r\n\r\n',
    ['with spaces'] = 'Content-Length :  2  \r\n\r\n',
    ['with other headers'] = 'Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\nX-More: 7\r\n\r\n',
  }) do
    it('may have a header ' .. name, function()
      local bodies, fault = fed({ header .. '{}' .. header .. '[]' })
      assert.same({ '{}', '[]' }, bodies)
      assert.is_nil(fault)
    end)
  end
end)

describe('what is no frame', function()
  for name, garbage in pairs({
    ['a traceback'] = 'Traceback (most recent call last):\n  File "x.py", line 1\n',
    ['a greeting'] = 'Hello, world!\n',
    ['JSON without a header'] = '{"jsonrpc":"2.0"}\n',
    ['a bracket and no line end'] = '[',
    ['bytes'] = '\0\1\2\3',
    ['a header without a length'] = 'Content-Type: text/plain\r\n\r\n',
    ['a length that is none'] = 'Content-Length: many\r\n\r\n',
    ['a negative length'] = 'Content-Length: -5\r\n\r\n',
    ['a length of hundreds of gigabytes'] = 'Content-Length: 999999999999\r\n\r\n',
  }) do
    it(('is told at once: %s'):format(name), function()
      local bodies, fault = fed({ garbage })
      assert.same({}, bodies)
      assert.is_string(fault)
      assert.equal(garbage:sub(1, 5):lower(), fault:sub(1, 5):lower())
    end)

    it(('is told after frames: %s'):format(name), function()
      local bodies, fault = fed({ framing.frame('{}') .. framing.frame('[]') .. garbage })
      assert.same({ '{}', '[]' }, bodies)
      assert.is_string(fault)
    end)
  end

  it('ends the stream: nothing after it is read', function()
    local reader = framing.reader()
    local _, fault = reader:feed('garbage!\n')
    local bodies, again = reader:feed(framing.frame('{}'))
    assert.same({}, bodies)
    assert.equal(fault, again)
  end)

  it('is told when a header does not end', function()
    local reader = framing.reader()
    local bodies, fault
    for _ = 1, 10 do
      bodies, fault = reader:feed('X-Pad: ' .. ('x'):rep(1000) .. '\r\n')
      assert.same({}, bodies)
    end
    assert.equal('X-Pad: xxx', fault:sub(1, 10))
    assert.is_true(#fault <= 200)
  end)

  it('may yet become a header: then it is waited for', function()
    for _, begun in ipairs({ 'C', 'Content-Length', 'Content-Length:', 'Content-Length: 2\r' }) do
      local bodies, fault = fed({ begun })
      assert.same({}, bodies)
      assert.is_nil(fault, begun)
    end
  end)
end)

describe('large bodies', function()
  ---What reading costs, told by the work and not by a clock: bytes that were copied to make strings.
  ---@param size integer
  ---@return integer
  local function copied(size)
    local reader = framing.reader()
    local bytes = framing.frame(('x'):rep(size))
    local sub, concat, copies = string.sub, table.concat, 0
    string.sub = function(...)
      local out = sub(...)
      copies = copies + #out
      return out
    end
    table.concat = function(...)
      local out = concat(...)
      copies = copies + #out
      return out
    end
    local given = 0
    for at = 1, #bytes, 65536 do
      for _, body in ipairs((reader:feed(sub(bytes, at, at + 65535)))) do
        given = given + #body
      end
    end
    string.sub, table.concat = sub, concat
    assert.equal(size, given)
    assert.is_true(copies >= size)
    return copies
  end

  it('of 20 MB cost as much a byte as small ones', function()
    assert.is_true(copied(20 * 1024 * 1024) <= 4 * 20 * 1024 * 1024)
  end)

  it('are not copied for each of many small ones in a chunk', function()
    local reader = framing.reader()
    local many = framing.frame('{"a":1}'):rep(10000)
    local sub, copies = string.sub, 0
    string.sub = function(...)
      local out = sub(...)
      copies = copies + #out
      return out
    end
    local bodies = reader:feed(many)
    string.sub = sub
    assert.equal(10000, #bodies)
    assert.is_true(copies < 4 * #many, copies)
  end)
end)

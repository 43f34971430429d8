--- A server process, spoken to; here shell scripts play it.
local Client = require('callboard.rpc.client')
local framing = require('callboard.rpc.framing')
local process = require('callboard.rpc.process')

local SH = vim.fn.exepath('sh')
local PATIENCE = 20000

---@param holds fun(): any
local function until_(holds)
  assert.is_true(vim.wait(PATIENCE, function()
    return holds() and true or false
  end, 5))
end

---@param message table
---@return string as a script prints it
local function printed(message)
  local frame = framing.frame(vim.json.encode(message))
  return "printf '"
    .. frame
      :gsub("[\\%%']", function(char)
        return ('\\%03o'):format(char:byte())
      end)
      :gsub('\r', '\\r')
      :gsub('\n', '\\n')
    .. "'\n"
end

describe('a process', function()
  ---@param script string
  ---@param opts table?
  local function run(script, opts)
    local out = { stdout = '', stderr = '' }
    local started, fault = process.spawn({ SH, '-c', script }, opts or {}, {
      stdout = function(chunk)
        out.stdout = out.stdout .. chunk
      end,
      stderr = function(chunk)
        out.stderr = out.stderr .. chunk
      end,
      exit = function(code, signal)
        out.code, out.signal = code, signal
        out.exits = (out.exits or 0) + 1
      end,
    })
    return out, started, fault
  end

  it('ends with its code, after all that it wrote', function()
    local out = run('printf out; printf err >&2; exit 3')
    until_(function()
      return out.exits
    end)
    assert.same({ stdout = 'out', stderr = 'err', code = 3, signal = 0, exits = 1 }, out)
  end)

  it('that writes much and ends at once is read to its end', function()
    local out = run(
      'i=0; while [ $i -lt 3000 ]; do echo "line $i of what it says" >&2; i=$((i+1)); done; exit 1'
    )
    until_(function()
      return out.exits
    end)
    assert.equal('line 2999 of what it says', out.stderr:match('([^\n]*)\n$'))
  end)

  it('is read to its end, whoever holds its pipes', function()
    local most = process.LINGER_MS
    process.LINGER_MS = PATIENCE
    local out = run('(sleep 0.2; echo late >&2) & exit 3')
    until_(function()
      return out.exits
    end)
    process.LINGER_MS = most
    assert.same({ stdout = '', stderr = 'late\n', code = 3, signal = 0, exits = 1 }, out)
  end)

  it('ends though a grandchild holds its pipes', function()
    local out, started = run('sleep 60 & echo $!; exit 0')
    until_(function()
      return out.exits
    end)
    assert.equal(0, out.code)
    assert.is_true(started.ended)
    vim.uv.kill(tonumber(out.stdout), 'sigkill')
  end)

  it('gets what is written, and hears when that is over', function()
    local out, started = run('cat; echo over')
    started:write('one ')
    started:write('two ')
    started:hang_up()
    started:hang_up()
    started:write('too late')
    until_(function()
      return out.exits
    end)
    assert.equal('one two over\n', out.stdout)
  end)

  it('gets all that was written before it was hung up', function()
    local out, started = run('wc -c')
    started:write(('x'):rep(1024 * 1024))
    started:hang_up()
    until_(function()
      return out.exits
    end)
    assert.equal(1024 * 1024, tonumber(vim.trim(out.stdout)))
  end)

  it('is ended by a signal, and by none after that', function()
    local out, started = run('exec sleep 60')
    started:kill('sigkill')
    until_(function()
      return out.exits
    end)
    assert.equal(9, out.signal)
    started:kill('sigterm')
    started:write('x')
    assert.equal(1, out.exits)
  end)

  it('has the environment of the editor, and what is added', function()
    vim.env.CALLBOARD_SPEC = 'mine'
    vim.env.NVIM_LISTEN_ADDRESS = '/somewhere'
    local out = run('echo "$CALLBOARD_SPEC $ADDED [$NVIM_LISTEN_ADDRESS] $PWD"', {
      env = { ADDED = 7 },
      cwd = '/',
    })
    until_(function()
      return out.exits
    end)
    vim.env.CALLBOARD_SPEC, vim.env.NVIM_LISTEN_ADDRESS = nil, nil
    assert.equal('mine 7 [] /\n', out.stdout)
  end)

  it('that cannot be started says why', function()
    local started, fault = process.spawn({ '/no/such/program' }, {}, {})
    assert.is_nil(started)
    assert.is_truthy(fault:find('ENOENT', 1, true))
  end)

  it('is of a session of its own: a Ctrl-C is not for it', function()
    local out, started = run('ps -o sid= -p $$')
    until_(function()
      return out.exits
    end)
    assert.equal(started.pid, tonumber(vim.trim(out.stdout)))
  end)
end)

describe('a client', function()
  local heard, exits, notes, kept

  before_each(function()
    heard, exits, notes = {}, {}, {}
    kept = package.loaded['callboard.notify'].warn
    package.loaded['callboard.notify'].warn = function(text)
      table.insert(notes, text)
    end
  end)

  after_each(function()
    package.loaded['callboard.notify'].warn = kept
  end)

  ---@param script string
  ---@param more table?
  local function start(script, more)
    return assert(Client.start(
      { SH, '-c', script },
      {},
      vim.tbl_extend('force', {
        notification = function(method, params)
          table.insert(heard, { method, params })
        end,
        request = function(method, params, reply, id)
          table.insert(heard, { method, params, reply, id })
        end,
        exit = function(exit)
          table.insert(exits, exit)
        end,
      }, more or {})
    ))
  end

  local function ended()
    until_(function()
      return exits[1]
    end)
    return exits[1]
  end

  it('hears notifications, in order, and what was said before the end', function()
    local script = ''
    for i = 1, 50 do
      script = script .. printed({ jsonrpc = '2.0', method = 'm', params = { i = i } })
    end
    start(script .. 'exit 4')
    assert.equal(4, ended().code)
    assert.equal(50, #heard)
    for i = 1, 50 do
      assert.same({ 'm', { i = i } }, heard[i])
    end
    assert.is_nil(exits[1].garbage)
  end)

  it('hears of null what it hears of nothing', function()
    start(printed({ method = 'm', params = { a = vim.NIL, b = { vim.NIL, 1 } } }))
    ended()
    assert.is_nil(heard[1][2].a)
    assert.is_nil(heard[1][2].b[1])
  end)

  it('gets answers to what it asked, and errors', function()
    local client = start(
      'head -c 1 >/dev/null\n'
        .. printed({ jsonrpc = '2.0', id = 2, result = { two = 2 } })
        .. printed({ jsonrpc = '2.0', id = 1, error = { code = -1, message = 'no' } })
        .. printed({ jsonrpc = '2.0', id = 77, result = {} })
    )
    local answers = {}
    for i = 1, 2 do
      assert.equal(
        i,
        client:request('m', {}, function(err, result)
          table.insert(answers, { i, err, result })
        end)
      )
    end
    ended()
    assert.same({ { 2, nil, { two = 2 } }, { 1, { code = -1, message = 'no' } } }, answers)
  end)

  it('answers what it is asked, when it can and once', function()
    local client = start(
      printed({ jsonrpc = '2.0', id = 'x', method = 'client/readFile', params = { uri = 'u' } })
        .. 'cat >&2'
    )
    until_(function()
      return heard[1]
    end)
    assert.equal('client/readFile', heard[1][1])
    assert.equal('x', heard[1][4])
    heard[1][3]({ text = 'hello' })
    heard[1][3]({ text = 'again' })
    client.process:hang_up()
    local said = table.concat(ended().stderr, '\n')
    assert.is_truthy(said:find('"text":"hello"', 1, true))
    assert.is_nil(said:find('again', 1, true))
  end)

  it('sends nothing for an empty table that would be a list', function()
    local client = start('cat >&2')
    client:request('server/ping', {}, function() end)
    client:notify('initialized')
    client.process:hang_up()
    local said = table.concat(ended().stderr, '\n')
    local _, count = said:gsub('"params":{}', '')
    assert.equal(2, count)
  end)

  it('says what cannot be sent, and goes on', function()
    local client = start('cat >&2')
    local told
    client:request('m', { f = function() end }, function(err)
      told = err.data.kind
    end)
    until_(function()
      return told
    end)
    assert.equal('invalidParams', told)
    client:notify('after')
    client.process:hang_up()
    assert.is_truthy(table.concat(ended().stderr):find('after', 1, true))
  end)

  for name, garbage in pairs({
    ['a greeting'] = 'echo "Hello, I am a shell"',
    ['a frame that holds no JSON'] = "printf 'Content-Length: 5\\r\\n\\r\\nhello'",
    ['a frame that holds a number'] = "printf 'Content-Length: 1\\r\\n\\r\\n7'",
  }) do
    it('ends a program that prints ' .. name, function()
      start(printed({ method = 'before' }) .. garbage .. '\nexec sleep 60')
      local exit = ended()
      assert.equal(15, exit.signal)
      assert.is_string(exit.garbage)
      assert.equal('before', heard[1][1])
    end)
  end

  for name, close in pairs({ ['closes its stdout'] = 'exec >&-', ['closes its stdin'] = 'exec <&-' }) do
    it('kills one that ' .. name .. ' and lives on', function()
      local patience = process.MUTE_MS
      process.MUTE_MS = 50
      local client = start(printed({ method = 'before' }) .. close .. '\nexec sleep 60')
      until_(function()
        return #heard > 0
      end)
      client:notify('more', { text = ('x'):rep(1000000) })
      until_(function()
        client:notify('more')
        return #exits > 0
      end)
      process.MUTE_MS = patience
      assert.equal(9, exits[1].signal)
    end)
  end

  it('lets one that says more than can be heard wait, and hears all of it', function()
    local room = Client.INBOX
    Client.INBOX = 10
    local frame =
      framing.frame(vim.json.encode({ method = 'm', params = { text = ('x'):rep(1000) } }))
    local path = vim.fn.tempname()
    vim.fn.writefile(vim.split(frame:rep(2000), '\n', { plain = true }), path, 'b')
    start('cat ' .. path)
    ended()
    Client.INBOX = room
    assert.equal(2000, #heard)
  end)

  it('kills a program that prints garbage and does not go', function()
    start("trap '' TERM\necho garbage, and more\nwhile :; do sleep 1; done")
    assert.equal(9, ended().signal)
  end)

  it('keeps the last lines of what is complained about', function()
    start('for i in $(seq 1 30); do echo "line $i" >&2; done; printf "no end" >&2; exit 1')
    local lines = ended().stderr
    assert.equal(20, #lines)
    assert.equal('line 12', lines[1])
    assert.equal('no end', lines[20])
  end)

  it('keeps no line that does not end', function()
    start('head -c 100000 /dev/zero | tr "\\0" x >&2; exit 1')
    for _, line in ipairs(ended().stderr) do
      assert.is_true(#line <= 2000)
    end
  end)

  it('goes on when a handler breaks, and says so once for each', function()
    start(printed({ method = 'one' }) .. printed({ method = 'two' }), {
      notification = function(method)
        table.insert(heard, method)
        error('broken by ' .. method)
      end,
    })
    ended()
    assert.same({ 'one', 'two' }, heard)
    assert.equal(2, #notes)
    assert.is_truthy(notes[1]:find('broken by one', 1, true))
    assert.is_nil(notes[1]:find('traceback', 1, true))
  end)

  for _, bound in ipairs({ { 'SLICE_MS', 0 }, { 'SLICE', 1 } }) do
    it('lets others have their turn while much comes, by its ' .. bound[1], function()
      local slice = { Client.SLICE_MS, Client.SLICE }
      Client.SLICE_MS, Client.SLICE = math.huge, math.huge
      Client[bound[1]] = bound[2]
      local order = {}
      start(printed({ method = 'one' }) .. printed({ method = 'two' }) .. 'sleep 0.2', {
        notification = function(method)
          table.insert(order, method)
          vim.schedule(function()
            table.insert(order, 'somebody else')
          end)
        end,
      })
      ended()
      Client.SLICE_MS, Client.SLICE = slice[1], slice[2]
      assert.same({ 'one', 'somebody else', 'two' }, vim.list_slice(order, 1, 3))
    end)
  end

  it('asks a server to end, and kills one that does not', function()
    local client = start("trap '' TERM\nwhile :; do sleep 1; done")
    client:stop(100)
    assert.equal(9, ended().signal)
    assert.is_false(client:alive())
    client:stop(100)
  end)

  it('does not kill one that has gone', function()
    local client = start(
      'head -c 1 >/dev/null\n'
        .. printed({ jsonrpc = '2.0', id = 1, result = vim.NIL })
        .. 'cat >&2 & sleep 0.1'
    )
    client:stop(60000)
    ended()
    assert.is_nil(client.stopper)
  end)

  it('leaves with a server that goes when it is told to', function()
    local client = start('cat >/dev/null; sleep 0.1; exit 0')
    client:leave(PATIENCE)
    assert.is_true(client.process.ended)
    client:leave(PATIENCE)
    assert.equal(0, ended().signal)
  end)

  it('leaves a server that does not go by killing it', function()
    local client = start("trap '' TERM\nwhile :; do sleep 1; done")
    client:leave(50)
    assert.equal(9, ended().signal)
  end)

  it('that cannot be started says why', function()
    local client, fault = Client.start({ '/no/such/program' }, {}, {})
    assert.is_nil(client)
    assert.is_truthy(fault:find('ENOENT', 1, true))
  end)
end)

--- Which files a session changed, what they were before, and what was said of them.
local Changes = require('callboard.model.changes')
local Patch = require('callboard.model.patch')
local Review = require('callboard.model.review')

local position = 0

---@param session string
---@param seq integer
---@param changes callboard.FileChange[]
---@return callboard.Event
local function result(session, seq, changes)
  position = position + 1
  return {
    type = 'tool_result',
    sessionId = session,
    seq = seq,
    pos = position,
    at = '',
    data = { callId = 'call' .. seq, status = 'ok', changes = changes },
  }
end

---@param path string
---@param before string?
---@param after string?
---@return callboard.FileChange
local function change(path, before, after)
  local operation = not before and 'create' or not after and 'delete' or 'modify'
  local text = vim.diff(before or '', after or '', { ctxlen = 3 })
  local added, removed = 0, 0
  for line in vim.gsplit(text, '\n') do
    added = added + (line:sub(1, 1) == '+' and 1 or 0)
    removed = removed + (line:sub(1, 1) == '-' and 1 or 0)
  end
  return {
    path = path,
    operation = operation,
    diff = '--- a' .. path .. '\n+++ b' .. path .. '\n' .. text,
    added = added,
    removed = removed,
  }
end

---@param events callboard.Event[]
---@return callboard.Changes
local function of(events)
  local changes = Changes.new()
  for _, event in ipairs(events) do
    Changes.add(changes, event)
  end
  return changes
end

---@param changes callboard.Changes
---@param path string
---@return callboard.ChangedFile
local function file(changes, path)
  for _, each in ipairs(Changes.files(changes)) do
    if each.path == path then
      return each
    end
  end
  error('no ' .. path)
end

---@param text callboard.Text?
---@return string?
local function content(text)
  return text and Patch.content(text)
end

describe('the files that a session changed', function()
  it('are told by path, with all that was added and removed', function()
    local changes = of({
      result('s', 3, { change('/b', 'x\n', 'y\n') }),
      result('s', 5, { change('/a', nil, '1\n2\n'), change('/b', 'y\n', 'y\nz\n') }),
    })
    local files = Changes.files(changes)
    assert.same({ '/a', '/b' }, { files[1].path, files[2].path })
    assert.same(
      { 2, 0, 'create', 'new' },
      { files[1].added, files[1].removed, files[1].operation, files[1].state }
    )
    assert.same(
      { 2, 1, 'modify', 2 },
      { files[2].added, files[2].removed, files[2].operation, #files[2].chain }
    )
  end)

  it('are the same whatever order events come in, and however often', function()
    local events = {
      result('s', 3, { change('/b', 'x\n', 'y\n') }),
      result('s', 5, { change('/b', 'y\n', 'z\n') }),
      result('t', 2, { change('/b', 'z\n', 'w\n') }),
    }
    local forward = file(of(events), '/b').chain
    local backward = file(of({ events[3], events[1], events[2], events[1], events[3] }), '/b').chain
    assert.same(forward, backward)
    assert.equal(3, #backward)
  end)

  it('are none where calls changed nothing', function()
    local reading = result('s', 4, nil)
    assert.same(
      {},
      Changes.files(
        of({ reading, { type = 'message', sessionId = 's', seq = 5, pos = 99, data = {} } })
      )
    )
  end)

  for _, case in ipairs({
    { { 'create', 'modify' }, 'create' },
    { { 'create', 'delete' }, 'nothing' },
    { { 'create', 'delete', 'create' }, 'create' },
    { { 'modify', 'modify' }, 'modify' },
    { { 'modify', 'delete' }, 'delete' },
    { { 'delete', 'create' }, 'modify' },
    { { 'delete', 'create', 'delete' }, 'delete' },
  }) do
    it(('come to %s after %s'):format(case[2], table.concat(case[1], ', ')), function()
      local texts = { create = { nil, 'a\n' }, modify = { 'a\n', 'a\n' }, delete = { 'a\n', nil } }
      local events = {}
      for i, operation in ipairs(case[1]) do
        local made = change('/f', texts[operation][1], texts[operation][2])
        made.operation = operation
        events[i] = result('s', i, { made })
      end
      assert.equal(case[2], file(of(events), '/f').operation)
    end)
  end

  it('go along when they are moved', function()
    local moved =
      { path = '/new', oldPath = '/old', operation = 'move', diff = '', added = 0, removed = 0 }
    local changes =
      of({ result('s', 1, { change('/old', 'a\n', 'b\n') }), result('s', 2, { moved }) })
    local files = Changes.files(changes)
    assert.equal(1, #files)
    assert.same(
      { '/new', '/old', 'move', 2 },
      { files[1].path, files[1].old_path, files[1].operation, #files[1].chain }
    )
  end)

  it('say where their diffs do not hold all', function()
    local cut = change('/f', 'a\n', 'b\n')
    cut.truncated = true
    assert.truthy(file(of({ result('s', 1, { cut }) }), '/f').partial:find('cut'))
    local none = { path = '/g', operation = 'modify', diff = '', added = 0, removed = 0 }
    assert.truthy(file(of({ result('s', 2, { none }) }), '/g').partial:find('no diff'))
    assert.is_nil(file(of({ result('s', 3, { change('/h', nil, '') }) }), '/h').partial)
  end)

  it('of a fork are those that it changed itself', function()
    local changes = of({ result('fork', 3, { change('/f', 'a\n', 'b\n') }) })
    Changes.add(
      changes,
      { type = 'session_forked', sessionId = 'fork', seq = 9, pos = 1000, data = {} }
    )
    assert.same({}, Changes.files(changes))
    Changes.add(changes, result('fork', 12, { change('/f', 'b\n', 'c\n') }))
    assert.equal(1, #file(changes, '/f').chain)
  end)
end)

---What a person says of files, once it is kept.
---@param changes callboard.Changes
---@param files callboard.ChangedFile[]
---@param verdict callboard.Verdict
---@return table<string, callboard.Review>
local function settle(changes, files, verdict)
  local reviews = Changes.settle(changes, files, verdict)
  for id, review in pairs(reviews) do
    Changes.settled(changes, id, review)
  end
  return reviews
end

describe('what was said of them', function()
  local events

  before_each(function()
    events = {
      result('s', 3, { change('/a', 'x\n', 'y\n') }),
      result('s', 5, { change('/b', nil, 'one\n') }),
      result('t', 4, { change('/a', 'y\n', 'z\n') }),
    }
  end)

  it('is kept by session, and survives', function()
    local changes = of(events)
    local reviews = settle(changes, { file(changes, '/a') }, 'rejected')
    assert.is_true(reviews.s ~= nil and reviews.t ~= nil and vim.tbl_count(reviews) == 2)
    assert.equal('rejected', file(changes, '/a').state)
    assert.equal('new', file(changes, '/b').state)

    local later = of(events)
    for id, review in pairs(reviews) do
      local kept = vim.json.decode(vim.json.encode(Review.write({ mine = { 1 } }, id, review)))
      assert.same({ 1 }, kept.mine)
      Changes.reviewed(later, id, kept)
    end
    assert.equal('rejected', file(later, '/a').state)
    assert.equal('new', file(later, '/b').state)
  end)

  it('is nothing until it is kept, and meanwhile the files are neither', function()
    local changes = of(events)
    local seen = file(changes, '/a')
    Changes.settling(changes, { seen }, true)
    local reviews = Changes.settle(changes, { seen }, 'accepted')
    assert.equal('settling', file(changes, '/a').state)
    assert.equal('new', file(changes, '/b').state)
    assert.same(seen.chain, file(changes, '/a').chain)
    Changes.add(changes, result('s', 8, { change('/a', 'z\n', 'w\n') }))
    assert.equal('new', file(changes, '/a').state) -- it was changed meanwhile
    Changes.settled(changes, 's', reviews.s)
    Changes.settled(changes, 't', reviews.t)
    Changes.settling(changes, { seen }, false)
    local now = file(changes, '/a')
    assert.same({ 'new', 1, 8 }, { now.state, #now.chain, now.chain[1].seq })
  end)

  it('is nothing when it could not be kept', function()
    local changes = of(events)
    local seen = file(changes, '/a')
    Changes.settling(changes, { seen }, true)
    Changes.settling(changes, { seen }, true)
    Changes.settle(changes, { seen }, 'accepted')
    Changes.settling(changes, { seen }, false)
    assert.equal('settling', file(changes, '/a').state) -- once more
    Changes.settling(changes, { seen }, false)
    assert.same({ 'new', seen.chain }, { file(changes, '/a').state, file(changes, '/a').chain })
  end)

  it('is about what was seen, and not about what came meanwhile', function()
    local changes = of(events)
    local seen = file(changes, '/a')
    Changes.add(changes, result('s', 8, { change('/a', 'z\n', 'w\n') }))
    settle(changes, { seen }, 'accepted')
    local now = file(changes, '/a')
    assert.same({ 'new', 1, 8 }, { now.state, #now.chain, now.chain[1].seq })
  end)

  it('is not unsaid by what another window knew before', function()
    local changes = of(events)
    local old = Review.write(nil, 's', Review.new())
    settle(changes, { file(changes, '/a') }, 'accepted')
    Changes.reviewed(changes, 's', old)
    assert.equal('accepted', file(changes, '/a').state)
  end)

  it('is what was said of the later change, in whatever order it comes', function()
    local review = Review.new()
    Review.note(review, '/a', 5, 'accepted')
    Review.note(review, '/a', 3, 'rejected')
    assert.same({ through = 5, verdict = 'accepted' }, review.files['/a'])
    local other = Review.new()
    Review.note(other, '/a', 7, 'rejected')
    Review.merge(review, other)
    assert.same({ through = 7, verdict = 'rejected' }, review.files['/a'])
  end)

  it('does not hold for a fork, whose events have other numbers', function()
    local changes = of(events)
    local kept = Review.write(nil, 's', settle(changes, Changes.files(changes), 'accepted').s)
    local fork = of({ result('fork', 2, { change('/a', 'x\n', 'y\n') }) })
    Changes.reviewed(fork, 'fork', kept)
    assert.equal('new', file(fork, '/a').state)
  end)

  it('is a single number once all is accepted', function()
    local changes = of(events)
    local reviews = settle(changes, Changes.files(changes), 'accepted')
    assert.same({ through = 5, files = {} }, reviews.s)
    assert.equal('accepted', file(changes, '/b').state)
  end)

  it('stays small, and forgets nothing that waits', function()
    local changes = Changes.new()
    for seq = 1, 500 do
      Changes.add(changes, result('s', seq, { change('/file' .. seq, 'a\n', 'b\n') }))
    end
    local first = file(changes, '/file1')
    local others = vim.tbl_filter(function(each)
      return each.path ~= '/file1'
    end, Changes.files(changes))
    settle(changes, others, 'rejected')
    assert.equal('new', file(changes, '/file1').state)
    assert.equal('rejected', file(changes, '/file2').state)
    local reviews = settle(changes, { first }, 'accepted')
    assert.is_true(vim.tbl_count(reviews.s.files) <= Review.MAX_REJECTED)
    assert.equal('rejected', file(changes, '/file500').state)
    for _, each in ipairs(Changes.files(changes)) do
      assert.not_equal('new', each.state)
    end
  end)

  for name, metadata in pairs({
    ['nothing'] = {},
    ['something else'] = { ['callboard.review'] = 'yes' },
    ['no numbers'] = {
      ['callboard.review'] = {
        sessionId = 's',
        through = 'x',
        files = { ['/a'] = { through = {} } },
      },
    },
    ['a list'] = {
      ['callboard.review'] = { sessionId = 's', through = -3, files = { 1, 2, { through = 9 } } },
    },
    ['what is no table'] = 7,
  }) do
    it('is nothing where the metadata hold ' .. name, function()
      assert.same({ through = 0, files = {} }, Review.read(metadata, 's'))
    end)
  end
end)

describe('the text before', function()
  it('is that before all of a chain, or before what is new of it', function()
    local first, second, third = 'a\nb\nc\n', 'a\nB\nc\n', 'a\nB\nc\nd\n'
    local changes = of({
      result('s', 1, { change('/f', first, second) }),
      result('s', 2, { change('/f', second, third) }),
    })
    local before = Changes.before(Patch.text(third), file(changes, '/f').chain)
    assert.same({ first, 2, {} }, { content(before.text), before.taken, before.failed })
    local seen = file(changes, '/f')
    seen.chain = { seen.chain[1] }
    settle(changes, { seen }, 'accepted')
    assert.equal(second, content(Changes.before(Patch.text(third), file(changes, '/f').chain).text))
  end)

  it('is none for a file that was made', function()
    local changes = of({
      result('s', 1, { change('/f', nil, 'a\n') }),
      result('s', 2, { change('/f', 'a\n', 'b\n') }),
    })
    local before = Changes.before({ 'b\n' }, file(changes, '/f').chain)
    assert.is_nil(before.text)
    assert.same({}, before.failed)
  end)

  it('is none for one that was made empty', function()
    local changes = of({ result('s', 1, { change('/f', nil, '') }) })
    local before = Changes.before({}, file(changes, '/f').chain)
    assert.same({ 1, {} }, { before.taken, before.failed })
    assert.is_nil(before.text)
  end)

  it('says so where a file that was made has more in it now', function()
    local changes = of({ result('s', 1, { change('/f', nil, 'a\n') }) })
    for _, now in ipairs({ 'a\nb\n', 'b\n', '' }) do
      local before = Changes.before(Patch.text(now), file(changes, '/f').chain)
      assert.equal(1, #before.failed, now)
    end
  end)

  it('is all of a file that was deleted', function()
    local changes = of({ result('s', 1, { change('/f', 'a\nb', nil) }) })
    local before = Changes.before(nil, file(changes, '/f').chain)
    assert.same({ 'a\nb', {} }, { content(before.text), before.failed })
    before = Changes.before({ 'new\n' }, file(changes, '/f').chain)
    assert.equal('the file is there again', before.failed[1].why)
  end)

  it('leaves what it cannot take back, and names it', function()
    local cut = change('/f', 'a\n', 'b\n')
    cut.truncated = true
    local changes = of({
      result('s', 1, { change('/f', '1\n2\n3\n', '1\n2\n3\n4\n') }),
      result('s', 2, { cut }),
      result(
        's',
        3,
        { { path = '/f', operation = 'modify', diff = 'no diff at all', added = 1, removed = 0 } }
      ),
    })
    local before = Changes.before(Patch.text('1\n2\n3\n4\n'), file(changes, '/f').chain)
    assert.equal('1\n2\n3\n', content(before.text))
    assert.same(
      { 'its diff is empty', 'its diff was cut' },
      { before.failed[1].why, before.failed[2].why }
    )
  end)

  it('is found again through any number of random changes', function()
    local state = 7
    local function random(below)
      state = (state * 1103515245 + 12345) % 2147483648
      return math.floor(state / 65536) % below
    end
    for _ = 1, 60 do
      local lines = {}
      for i = 1, random(50) do
        lines[i] = ('%d %d'):format(i, random(9))
      end
      local texts = { table.concat(lines, '\n') .. (random(3) > 0 and #lines > 0 and '\n' or '') }
      local events = {}
      for seq = 1, 1 + random(6) do
        for _ = 1, 1 + random(4) do
          local at = random(#lines + 1) + 1
          if random(2) == 0 and lines[at] then
            table.remove(lines, at)
          else
            table.insert(lines, at, ('new %d'):format(random(1000)))
          end
        end
        texts[seq + 1] = table.concat(lines, '\n') .. (random(3) > 0 and #lines > 0 and '\n' or '')
        events[seq] = result('s', seq, { change('/f', texts[seq], texts[seq + 1]) })
      end
      local chain = file(of(events), '/f').chain
      local before = Changes.before(Patch.text(texts[#texts]), chain)
      assert.same({ texts[1], {} }, { content(before.text), before.failed })
    end
  end)
end)

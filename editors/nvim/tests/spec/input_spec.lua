-- The input: nothing that was typed is lost, what was said before comes back.
local Input = require('callboard.ui.input')
local chips = require('callboard.ui.chips')
local config = require('callboard.config')

local input, win

before_each(function()
  vim.cmd('tabnew')
  win = vim.api.nvim_get_current_win()
  input = Input.new('callboard://input/spec')
  vim.api.nvim_win_set_buf(win, input.buf)
end)

after_each(function()
  vim.api.nvim_buf_delete(input.buf, { force = true })
  vim.cmd('silent! tabonly!')
end)

---@param text string
local function type_in(text)
  vim.api.nvim_buf_set_lines(input.buf, 0, -1, false, vim.split(text, '\n'))
  vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(input.buf), 0 })
end

---@param step -1|1
local function recall(step)
  input:recall(step, step < 0 and '<Up>' or '<Down>')
  vim.api.nvim_feedkeys('', 'x', false)
end

describe('what is taken to be sent', function()
  it('is gone from the input, and comes back by undo', function()
    type_in('hello\nthere')
    assert.equal('hello\nthere', input:take())
    assert.is_true(input:is_empty())
    vim.cmd('silent undo')
    assert.equal('hello\nthere', input:text())
  end)

  it('comes back when it could not be sent', function()
    type_in('hello')
    input:give_back(input:take())
    assert.equal('hello', input:text())
  end)

  it('goes to a register where something else was typed meanwhile', function()
    local told
    local real = vim.notify
    vim.notify = function(text) -- luacheck: ignore
      told = text
    end
    type_in('hello')
    local text = input:take()
    type_in('something else')
    input:give_back(text)
    vim.wait(1000, function()
      return told ~= nil
    end)
    vim.notify = real -- luacheck: ignore
    assert.equal('something else', input:text())
    assert.equal('hello', vim.fn.getreg(Input.REGISTER))
    assert.matches('register c', told or '')
  end)
end)

describe('the history', function()
  before_each(function()
    for _, text in ipairs({ 'one', 'two\nlines', 'three' }) do
      type_in(text)
      input:take()
    end
  end)

  it('goes back from the first line, and forth again to what was being typed', function()
    type_in('draft')
    recall(-1)
    assert.equal('three', input:text())
    recall(-1)
    assert.equal('two\nlines', input:text())
    vim.api.nvim_win_set_cursor(win, { 1, 0 })
    recall(-1)
    assert.equal('one', input:text())
    recall(-1)
    assert.equal('one', input:text())
    recall(1)
    vim.api.nvim_win_set_cursor(win, { 2, 0 })
    recall(1)
    assert.equal('three', input:text())
    recall(1)
    assert.equal('draft', input:text())
  end)

  it('leaves the keys alone in the middle of a text', function()
    type_in('a\nb\nc')
    recall(-1)
    assert.equal('a\nb\nc', input:text())
    assert.equal(2, vim.api.nvim_win_get_cursor(win)[1])
  end)

  it('takes what was changed for a new draft', function()
    recall(-1)
    type_in('three, changed')
    recall(-1)
    assert.equal('three', input:text())
    recall(1)
    assert.equal('three, changed', input:text())
  end)
end)

describe('what goes along', function()
  local folder, buf

  before_each(function()
    config.setup({})
    folder = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/chips'
    vim.fn.mkdir(folder, 'p')
    for _, name in ipairs({ 'a.lua', 'b.lua' }) do
      local file = assert(io.open(folder .. '/' .. name, 'w'))
      file:write('one\ntwo\nthree\n')
      file:close()
    end
    buf = vim.fn.bufadd(folder .. '/a.lua')
    vim.fn.bufload(buf)
  end)

  after_each(function()
    config.setup({})
    vim.api.nvim_buf_delete(buf, { force = true })
    vim.fn.delete(folder, 'rf')
  end)

  ---@return callboard.Chips
  local function new()
    return chips.new(function()
      return { folder }
    end)
  end

  ---@param prompt callboard.Prompt
  ---@return string[]
  local function sent(prompt)
    return vim.tbl_map(function(item)
      local name = vim.fs.basename(vim.uri_to_fname(item.uri))
      return item.range
          and ('%s:%d-%d'):format(name, item.range.start.line + 1, item.range['end'].line)
        or name
    end, prompt.context or {})
  end

  it('is the place where the person is, once', function()
    local some = new()
    some:at(buf)
    assert.equal(1, #some:labels())
    assert.same({ 'a.lua' }, sent(some:prompt({ text = 'x' }, folder)))
    some:at(buf)
    assert.same({}, sent(some:prompt({ text = 'x' }, folder)))
    some:at(buf, 2, 3)
    assert.same({ 'a.lua:2-3' }, sent(some:prompt({ text = 'x' }, folder)))
  end)

  it('can be left out', function()
    local some = new()
    some:at(buf)
    assert.is_true(some:remove())
    assert.same({}, some:labels())
    assert.is_false(some:remove())
    config.setup({ context = { selection = false } })
    some = new()
    some:at(buf)
    assert.same({}, some:labels())
  end)

  it('is what was added, what the text names, and nothing twice', function()
    local some = new()
    some:at(buf)
    some:add({ uri = vim.uri_from_fname(folder .. '/b.lua') })
    some:add({ uri = vim.uri_from_fname(folder .. '/b.lua') })
    local prompt = some:prompt({ text = 'see @b.lua, @a.lua. and (@nowhere.lua) me@b.lua' }, folder)
    assert.same({ 'b.lua', 'a.lua' }, sent(prompt))
    assert.same({}, sent(some:prompt({ text = 'x' }, folder)))
  end)

  it('is nothing that the agent may not see', function()
    local elsewhere = chips.new(function()
      return { folder .. '/deeper' }
    end)
    elsewhere:at(buf)
    assert.same({}, elsewhere:labels())
    assert.same({}, sent(elsewhere:prompt({ text = 'see @a.lua' }, folder)))
  end)

  it('says which part of a file matters rather than all of it', function()
    local some = new()
    some:at(buf)
    some:add({
      uri = vim.uri_from_bufnr(buf),
      range = { start = { line = 0, character = 0 }, ['end'] = { line = 2, character = 0 } },
    })
    assert.same({ 'a.lua:1-2' }, sent(some:prompt({ text = 'x' }, folder)))
  end)

  it('comes back with what could not be sent', function()
    local some = new()
    some:at(buf)
    some:add({ uri = vim.uri_from_fname(folder .. '/b.lua') })
    local prompt = some:prompt({ text = 'x' }, folder)
    some:give_back(prompt.context)
    assert.same({ 'b.lua', 'a.lua' }, sent(some:prompt({ text = 'x' }, folder)))
  end)

  it('is the diagnostics of the place, where that is wanted', function()
    config.setup({ context = { diagnostics = true } })
    local space = vim.api.nvim_create_namespace('spec')
    vim.diagnostic.set(space, buf, { { lnum = 1, col = 0, message = 'wrong', severity = 1 } })
    local some = new()
    some:at(buf)
    local content = some:prompt({ text = 'x' }, folder).content
    assert.equal('2:1 error wrong', content[1].text)
    vim.diagnostic.reset(space, buf)
  end)
end)

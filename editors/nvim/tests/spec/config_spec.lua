--- Options: each has a default, takes what it may be, and says so when it may not.
local config = require('callboard.config')

---@param path string
---@param value any
---@return table options
local function with(path, value)
  local group, name = path:match('^(.-)%.(.*)$')
  if not group then
    return { [path] = value }
  end
  return { [group] = { [name] = value } }
end

---@param options callboard.Options
---@param path string
---@return any
local function get(options, path)
  return vim.tbl_get(options, unpack(vim.split(path, '.', { plain = true })))
end

local OPTIONS = {
  ['server.cmd'] = {
    default = nil,
    good = { { 'callboard', 'serve' }, { '/a b/callboard' } },
    bad = { 'callboard serve', {}, { 1 }, { 'a', false }, true },
  },
  ['server.env'] = {
    default = {},
    good = { {}, { CALLBOARD_STORE = '/x' }, { N = 1 } },
    bad = { 'A=1', false, { 'A=1' }, { A = {} }, { A = true } },
  },
  ['server.cwd'] = { default = nil, good = { '/tmp' }, bad = { 1, {}, false } },
  ['window.position'] = {
    default = 'right',
    good = { 'left', 'right', 'bottom', 'tab' },
    bad = { 'top', '', 1 },
  },
  ['window.width'] = {
    default = 0.4,
    good = { 0.1, 0.5, 80 },
    bad = { 0, -1, '40', 0 / 0, math.huge },
  },
  ['window.input_height'] = { default = 6, good = { 1, 12 }, bad = { 0, 2.5, '6', math.huge } },
  ['approvals.float'] = { default = true, good = { true, false }, bad = { 'yes', 1 } },
  ['approvals.bell'] = { default = false, good = { true, false }, bad = { 'yes', 0 } },
  ['render.debounce_ms'] = { default = 80, good = { 0, 250 }, bad = { -1, 0.5, '80' } },
  ['render.fold_lines'] = { default = 25, good = { 1, 1000 }, bad = { 0, 1.5, 'all' } },
  ['render.max_items'] = { default = 200, good = { 20, 5000 }, bad = { 19, 20.5, {} } },
  ['render.icons'] = { default = 'text', good = { 'text', 'nerd' }, bad = { 'emoji', true } },
  ['context.selection'] = { default = true, good = { true, false }, bad = { 'x' } },
  ['context.diagnostics'] = { default = false, good = { true, false }, bad = { 1 } },
  ['diff.layout'] = { default = 'tab', good = { 'tab', 'split' }, bad = { 'vsplit' } },
  ['diff.auto_open'] = { default = false, good = { true, false }, bad = { 'always' } },
  picker = {
    default = 'auto',
    good = { 'auto', 'select', 'telescope', 'fzf_lua', 'mini', 'snacks' },
    bad = { 'fzf', true, {} },
  },
  ['log.level'] = {
    default = 'info',
    good = { 'trace', 'debug', 'info', 'warn', 'error', 'off' },
    bad = { 'verbose', 2 },
  },
}
for _, group in ipairs({ 'chat', 'input', 'approval', 'diff', 'list' }) do
  OPTIONS['keymaps.' .. group] = {
    default = {},
    good = { {}, false, { send = '<C-s>' }, { send = false }, { send = { '<C-s>', '<CR>' } } },
    bad = { true, 'none', { send = true }, { send = 1 }, { send = { 1 } }, { '<C-s>' } },
  }
end

describe('the option', function()
  for path, option in pairs(OPTIONS) do
    it(path .. ' has a default', function()
      local options, warnings = config.resolve(nil)
      assert.same({ option.default }, { get(options, path) })
      assert.same({}, warnings)
    end)

    it(path .. ' takes what it may be', function()
      for _, value in ipairs(option.good) do
        local options, warnings = config.resolve(with(path, value))
        assert.same({}, warnings, vim.inspect(value))
        assert.same({ value }, { get(options, path) })
      end
    end)

    it(path .. ' is left out and told when it may not be so', function()
      for _, value in ipairs(option.bad) do
        local options, warnings = config.resolve(with(path, value))
        assert.same({ option.default }, { get(options, path) }, vim.inspect(value))
        assert.equal(1, #warnings, vim.inspect(value))
        assert.is_truthy(warnings[1]:find('option ' .. path .. ': ', 1, true), warnings[1])
        assert.is_nil(warnings[1]:find('\n', 1, true))
      end
    end)
  end

  it('list here is whole', function()
    local known = {}
    for group, value in pairs(config.defaults()) do
      if type(value) ~= 'table' then
        known[group] = true
      else
        for name in pairs(value) do
          known[group .. '.' .. name] = true
        end
      end
    end
    known['server.cmd'], known['server.cwd'] = true, true -- their default is nothing
    for path in pairs(known) do
      assert.is_table(OPTIONS[path], path)
    end
    assert.equal(vim.tbl_count(known), vim.tbl_count(OPTIONS))
  end)
end)

describe('options', function()
  it('that are unknown are named', function()
    local options, warnings = config.resolve({
      windows = {},
      window = { widht = 3, width = 50 },
      [1] = 'x',
    })
    assert.equal(50, options.window.width)
    table.sort(warnings)
    assert.same(
      { 'unknown option 1', 'unknown option window.widht', 'unknown option windows' },
      warnings
    )
  end)

  it('of a group must be a table', function()
    local options, warnings = config.resolve({ window = 'right' })
    assert.equal('right', options.window.position)
    assert.same({ 'option window: must be a table' }, warnings)
  end)

  it('must be a table', function()
    local options, warnings = config.resolve('right')
    assert.same(config.defaults(), options)
    assert.same({ 'the options must be a table, not a string' }, warnings)
  end)

  it('are told with a value of any length in a line', function()
    local _, warnings = config.resolve({ picker = { a = { 'b', { c = 'd' } } } })
    assert.equal(1, #warnings)
    assert.is_nil(warnings[1]:find('\n', 1, true))
  end)

  it('are not those that were given: changing one does not change the other', function()
    local given = { server = { env = { A = '1' } } }
    local options = config.resolve(given)
    options.server.env.A = '2'
    assert.equal('1', given.server.env.A)
    assert.same({}, config.defaults().server.env)
  end)
end)

describe('setting options', function()
  local warned, notify

  before_each(function()
    warned = {}
    notify = package.loaded['callboard.notify']
    package.loaded['callboard.notify'] = {
      warn = function(text)
        table.insert(warned, text)
      end,
    }
    package.loaded['callboard.config'] = nil
    config = require('callboard.config')
  end)

  after_each(function()
    package.loaded['callboard.notify'] = notify
    package.loaded['callboard.config'] = nil
    vim.g.callboard = nil
  end)

  it('is not needed', function()
    assert.same(config.defaults(), config.get())
    assert.same({}, warned)
  end)

  it('takes those of vim.g.callboard with the first use', function()
    vim.g.callboard = { window = { width = 60 } }
    assert.equal(60, config.get().window.width)
  end)

  it('takes those of setup over those of vim.g.callboard', function()
    vim.g.callboard = { window = { width = 60, position = 'left' }, picker = 'mini' }
    config.setup({ window = { width = 70 } })
    assert.equal(70, config.get().window.width)
    assert.equal('left', config.get().window.position)
    assert.equal('mini', config.get().picker)
  end)

  it('replaces lists, and does not mix them', function()
    vim.g.callboard = { server = { cmd = { 'a', 'b', 'c' } } }
    config.setup({ server = { cmd = { 'd' } } })
    assert.same({ 'd' }, config.get().server.cmd)
  end)

  it('keeps keys that were switched off', function()
    vim.g.callboard = { keymaps = { chat = false, input = { send = '<C-x>' } } }
    config.setup({ keymaps = { input = { send = false } } })
    assert.is_false(config.get().keymaps.chat)
    assert.is_false(config.get().keymaps.input.send)
  end)

  it('warns once, of all that is wrong', function()
    config.setup({ picker = 'x', log = { level = 'y' } })
    assert.equal(1, #warned)
    assert.is_truthy(warned[1]:find('option log.level', 1, true))
    assert.is_truthy(warned[1]:find('option picker', 1, true))
    assert.is_truthy(warned[1]:find(':help callboard-options', 1, true))
    assert.equal(2, #config.warnings())
    config.setup({})
    assert.same({}, config.warnings())
  end)

  it('warns of a vim.g.callboard that is none, and takes the rest', function()
    vim.g.callboard = 'yes'
    config.setup({ window = { width = 70 } })
    assert.equal(70, config.get().window.width)
    assert.same({ 'vim.g.callboard must be a table, not a string' }, config.warnings())
  end)
end)

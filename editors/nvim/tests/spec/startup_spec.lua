-- What started this one, which may be a script around it.
local program = vim.env.CALLBOARD_TESTS_NVIM or vim.v.progpath
local plugin = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))))

---What a Neovim with the plugin says, for a piece of Lua that it runs after it has started.
---@param lua string whose result is said
---@param ... string arguments before it
---@return any
local function in_neovim(lua, ...)
  local code = ('io.stdout:write(vim.json.encode((function() %s end)()))'):format(lua)
  local cmd = { program, '--clean', '--headless', '-n', '--cmd', 'set rtp^=' .. plugin, ... }
  vim.list_extend(cmd, { '-c', 'lua ' .. code, '-c', 'qa!' })
  local done = vim.system(cmd, { text = true }):wait(20000)
  local ok, said = pcall(vim.json.decode, done.stdout)
  assert.is_true(ok, ('it said %s%s'):format(done.stdout, done.stderr))
  return said, done.stderr
end

describe('the start of Neovim', function()
  it('defines the command and loads nothing', function()
    local said = in_neovim([[
      local loaded = {}
      for name in pairs(package.loaded) do
        if name:find('callboard') then
          loaded[#loaded + 1] = name
        end
      end
      return { loaded = #loaded, names = loaded, command = vim.fn.exists(':Callboard') }
    ]])
    assert.equal(0, said.loaded, vim.inspect(said.names))
    assert.equal(2, said.command)
  end)

  it('takes less than 2 ms longer', function()
    -- The quickest of some runs: what the plugin takes, without what else the machine does.
    local ms = in_neovim(([[
      local best = math.huge
      for _ = 1, 20 do
        vim.g.loaded_callboard = nil
        local begun = vim.uv.hrtime()
        dofile('%s/plugin/callboard.lua')
        best = math.min(best, (vim.uv.hrtime() - begun) / 1e6)
      end
      return best
    ]]):format(plugin))
    assert.is_true(ms < 2, ('it takes %.2f ms'):format(ms))
  end)

  it('has little to read', function()
    local lines = vim.fn.readfile(plugin .. '/plugin/callboard.lua')
    assert.is_true(#lines < 50)
  end)

  it('can be kept from it', function()
    local said =
      in_neovim('return vim.fn.exists(":Callboard")', '--cmd', 'let g:loaded_callboard = 1')
    assert.equal(0, said)
  end)

  it('tells of options that do not hold when they are looked at, each by name', function()
    local said = in_neovim(
      [[
        local told
        vim.notify = function(text) told = text end
        require('callboard.config').get()
        vim.wait(2000, function() return told ~= nil end)
        return told
      ]],
      '--cmd',
      "let g:callboard = {'widnow': {}, 'window': {'position': 'middle', 'hight': 3}, 'picker': 'fzf'}"
    )
    for _, part in ipairs({
      'unknown option widnow',
      'unknown option window.hight',
      'option window.position: "middle" is not one of right, left, bottom, tab',
      'option picker: "fzf" is not one of',
      ':help callboard-options',
    }) do
      assert.truthy(said:find(part, 1, true), part .. ' is not in ' .. said)
    end
  end)

  it('needs no setup, and takes one', function()
    assert.equal(
      'bottom',
      in_neovim([[
      require('callboard').setup({ window = { position = 'bottom' } })
      return require('callboard.config').get().window.position
    ]])
    )
    assert.equal('right', in_neovim("return require('callboard.config').get().window.position"))
    assert.equal(
      'left',
      in_neovim(
        "return require('callboard.config').get().window.position",
        '--cmd',
        "let g:callboard = {'window': {'position': 'left'}}"
      )
    )
  end)

  it('has a status that is empty, and starts no server to tell it', function()
    local said = in_neovim([[
      local text = require('callboard').status()
      return { text = text, app = package.loaded['callboard.app'] ~= nil }
    ]])
    assert.same({ text = '', app = false }, said)
  end)

  it('completes without starting a server', function()
    local said = in_neovim([[
      return {
        ids = vim.fn.getcompletion('Callboard open ', 'cmdline'),
        models = vim.fn.getcompletion('Callboard model ', 'cmdline'),
        server = (require('callboard.app').peek() or {}).server ~= nil,
      }
    ]])
    assert.same({ ids = {}, models = {}, server = false }, said)
  end)
end)

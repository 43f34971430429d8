-- The pickers of other plugins are not on the registries: small doubles of what they promise stand for them.
local MODULES = {
  'telescope.pickers',
  'telescope.finders',
  'telescope.config',
  'telescope.actions',
  'telescope.actions.state',
  'telescope.previewers',
  'fzf-lua',
  'fzf-lua.previewer.builtin',
  'mini.pick',
  'snacks',
}

describe('picking', function()
  local config = require('callboard.config')
  local select, notify, told, chosen, acted

  local function settle()
    local done
    vim.schedule(function()
      done = true
    end)
    vim.wait(2000, function()
      return done
    end)
  end

  ---@return callboard.Pick
  local function request(fields)
    return vim.tbl_extend('force', {
      title = 'Which',
      items = { { name = 'one', of = 'first' }, { name = 'two', of = 'second' } },
      format = function(item)
        return 'the ' .. item.name
      end,
      heading = function(item)
        return item.of
      end,
      preview = function(item)
        return { 'about', item.name }
      end,
      on_choice = function(item)
        chosen = item.name
      end,
      actions = {
        rename = {
          key = 'r',
          desc = 'Rename',
          fn = function(item)
            acted = item.name
          end,
        },
      },
    }, fields or {})
  end

  before_each(function()
    select, notify = vim.ui.select, vim.notify
    told, chosen, acted = {}, nil, nil
    vim.notify = function(text)
      table.insert(told, text)
    end
    package.loaded['callboard.pickers'] = nil
  end)

  after_each(function()
    settle()
    vim.ui.select, vim.notify = select, notify
    vim.g.callboard = nil
    config.setup({})
    for _, name in ipairs(MODULES) do
      package.loaded[name] = nil
    end
    _G.MiniPick = nil
    vim.cmd('silent! only! | silent! %bwipeout!')
  end)

  local function pickers()
    return require('callboard.pickers')
  end

  describe('by itself', function()
    it('is a list in a window where there is nothing else', function()
      config.setup({ picker = 'auto' })
      assert.equal('page', pickers().which())
      pickers().pick(request())
      assert.same(
        { 'Which', 'first', '  the one', 'second', '  the two' },
        vim.api.nvim_buf_get_lines(0, 0, -1, false)
      )
      assert.is_false(vim.bo.modifiable)
      assert.same({ 3, 0 }, vim.api.nvim_win_get_cursor(0))
      vim.api.nvim_feedkeys('G\r', 'xt', false)
      assert.equal('two', chosen)
      assert.equal('', vim.bo.filetype)
    end)

    it('does nothing on a heading, and goes with q', function()
      pickers().pick(request())
      vim.api.nvim_feedkeys('gg\r', 'xt', false)
      assert.is_nil(chosen)
      assert.equal('callboard-list', vim.bo.filetype)
      vim.api.nvim_feedkeys('q', 'xt', false)
      assert.equal('', vim.bo.filetype)
    end)

    it('acts on a line by a letter', function()
      pickers().pick(request())
      vim.api.nvim_feedkeys('r', 'xt', false)
      assert.equal('one', acted)
      assert.is_nil(chosen)
    end)

    it('lets one list follow another', function()
      pickers().pick(request({
        on_choice = function()
          pickers().pick(request())
        end,
      }))
      vim.api.nvim_feedkeys('\r', 'xt', false)
      assert.equal('callboard-list', vim.bo.filetype)
      vim.api.nvim_feedkeys('\r', 'xt', false)
      assert.equal('one', chosen)
      assert.equal(1, #vim.api.nvim_tabpage_list_wins(0))
    end)

    it('asks a question with a few answers', function()
      local done
      pickers().ask('Really?', {
        { 'No' },
        {
          'Yes',
          function()
            done = true
          end,
        },
      })
      vim.api.nvim_feedkeys('\r', 'xt', false)
      assert.is_nil(done)
      pickers().ask('Really?', {
        { 'No' },
        {
          'Yes',
          function()
            done = true
          end,
        },
      })
      vim.api.nvim_feedkeys('j\r', 'xt', false)
      assert.is_true(done)
    end)
  end)

  describe('by vim.ui.select', function()
    local given

    before_each(function()
      vim.ui.select = function(items, opts, on_choice)
        given = { items = items, opts = opts, on_choice = on_choice }
      end
    end)

    it('is done where somebody has replaced it', function()
      assert.equal('select', pickers().which())
      pickers().pick(request())
      assert.equal('first   the one', given.opts.format_item(given.items[1]))
      assert.equal('Which', given.opts.prompt)
      given.on_choice(given.items[2])
      assert.equal('two', chosen)
    end)

    it('may end without a choice', function()
      pickers().pick(request())
      given.on_choice(nil)
      assert.is_nil(chosen)
    end)

    it('is done in place of a picker that is not installed, which is told once', function()
      for _, name in ipairs({ 'telescope', 'fzf_lua', 'mini', 'snacks' }) do
        config.setup({ picker = name })
        pickers().pick(request())
        pickers().pick(request())
        settle()
        assert.equal(1, #told)
        assert.truthy(
          told[1]:find(("the option picker is '%s', which is not installed"):format(name), 1, true)
        )
        assert.equal('Which', given.opts.prompt)
        told = {}
      end
    end)

    it('is done when the option says so, whatever else there is', function()
      package.loaded['fzf-lua'] = {}
      config.setup({ picker = 'select' })
      assert.equal('select', pickers().which())
    end)
  end)

  it('takes the first that is there: telescope, fzf-lua, snacks, mini.pick', function()
    _G.MiniPick = {}
    package.loaded['mini.pick'] = _G.MiniPick
    assert.equal('mini', pickers().which())
    package.loaded['snacks'] = { picker = {}, config = { picker = { enabled = true } } }
    assert.equal('snacks', pickers().which())
    package.loaded['fzf-lua'] = {}
    assert.equal('fzf_lua', pickers().which())
    package.loaded['telescope.pickers'] = {}
    assert.equal('telescope', pickers().which())
  end)

  it('leaves those alone that came along and are not switched on', function()
    package.loaded['snacks'] = { picker = {}, config = {} }
    package.loaded['mini.pick'] = {}
    assert.equal('page', pickers().which())
    config.setup({ picker = 'snacks' })
    assert.equal('snacks', pickers().which())
  end)

  it('is done with telescope', function()
    local made, mapped, replaced, closed, selected = nil, {}, nil, nil, nil
    package.loaded['telescope.pickers'] = {
      new = function(_, opts)
        made = opts
        return {
          find = function()
            opts.attach_mappings(7, function(mode, lhs, fn)
              mapped[mode .. lhs] = fn
            end)
          end,
        }
      end,
    }
    package.loaded['telescope.finders'] = {
      new_table = function(opts)
        return vim.tbl_map(opts.entry_maker, opts.results)
      end,
    }
    package.loaded['telescope.config'] = {
      values = {
        generic_sorter = function()
          return 'sorter'
        end,
      },
    }
    package.loaded['telescope.actions'] = {
      close = function(prompt)
        closed = prompt
      end,
      select_default = {
        replace = function(_, fn)
          replaced = fn
        end,
      },
    }
    package.loaded['telescope.actions.state'] = {
      get_selected_entry = function()
        return selected
      end,
    }
    package.loaded['telescope.previewers'] = {
      new_buffer_previewer = function(opts)
        return opts
      end,
    }
    config.setup({ picker = 'telescope' })
    pickers().pick(request())
    assert.equal('Which', made.prompt_title)
    assert.equal('second  the two', made.finder[2].display)
    assert.equal('second  the two', made.finder[2].ordinal)

    selected = made.finder[2]
    replaced()
    settle()
    assert.equal('two', chosen)
    assert.equal(7, closed)
    mapped['i<C-r>']()
    settle()
    assert.equal('two', acted)
    assert.truthy(mapped['n<C-r>'])

    selected, chosen = nil, nil
    replaced()
    settle()
    assert.is_nil(chosen)

    local buf = vim.api.nvim_create_buf(false, true)
    made.previewer.define_preview({ state = { bufnr = buf } }, made.finder[1])
    assert.same({ 'about', 'one' }, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
  end)

  it('is done with fzf-lua', function()
    local lines, opts
    package.loaded['fzf-lua'] = {
      fzf_exec = function(...)
        lines, opts = ...
      end,
    }
    local base = {}
    base.__index = base
    function base:new(...)
      self.made = { ... }
      return self
    end
    function base:extend()
      local class = setmetatable({ super = self }, self)
      class.__index = class
      return class
    end
    package.loaded['fzf-lua.previewer.builtin'] = { base = base }
    config.setup({ picker = 'fzf_lua' })
    pickers().pick(request({
      format = function(item)
        return 'the\t' .. item.name
      end,
    }))
    assert.same({ '1\tfirst   the one', '2\tsecond  the two' }, lines)
    assert.equal('2..', opts.fzf_opts['--with-nth'])
    assert.equal(' Which ', opts.winopts.title)
    opts.actions['default']({ lines[2] })
    settle()
    assert.equal('two', chosen)
    opts.actions['ctrl-r']({ lines[1] })
    settle()
    assert.equal('one', acted)
    chosen = nil
    opts.actions['default']({})
    opts.actions['default'](nil)
    settle()
    assert.is_nil(chosen)

    local buf = vim.api.nvim_create_buf(false, true)
    local preview = opts.previewer:new({}, {})
    function preview:get_tmp_buffer()
      return buf
    end
    function preview:set_preview_buf(shown)
      self.shown = shown
    end
    preview:populate_preview_buf(lines[2])
    assert.equal(buf, preview.shown)
    assert.same({ 'about', 'two' }, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
  end)

  it('is done with mini.pick, after it has gone', function()
    local opts, current, choose
    _G.MiniPick = {
      start = function(given)
        opts = given
        if choose then
          given.source.choose(current)
        elseif current then
          assert.is_true(given.mappings.callboard_rename.func())
        end
        assert.is_nil(chosen)
        assert.is_nil(acted)
      end,
      get_picker_matches = function()
        return { current = current }
      end,
    }
    package.loaded['mini.pick'] = _G.MiniPick
    config.setup({ picker = 'mini' })
    pickers().pick(request())
    settle()
    assert.is_nil(chosen)
    assert.equal('Which', opts.source.name)
    assert.equal('second  the two', opts.source.items[2].text)
    assert.equal('<C-r>', opts.mappings.callboard_rename.char)

    current, choose = opts.source.items[2], true
    pickers().pick(request())
    settle()
    assert.equal('two', chosen)

    choose, chosen = false, nil
    pickers().pick(request())
    settle()
    assert.equal('two', acted)

    local buf = vim.api.nvim_create_buf(false, true)
    opts.source.preview(buf, opts.source.items[1])
    assert.same({ 'about', 'one' }, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
  end)

  it('is done with snacks', function()
    local opts
    package.loaded['snacks'] = {
      picker = {
        pick = function(given)
          opts = given
        end,
      },
    }
    config.setup({ picker = 'snacks' })
    pickers().pick(request())
    assert.equal('Which', opts.title)
    assert.same({ { 'second  the two' } }, opts.format(opts.items[2]))
    assert.equal('about\ntwo', opts.items[2].preview.text)
    local closed = 0
    local picker = {
      close = function()
        closed = closed + 1
      end,
    }
    opts.confirm(picker, opts.items[2])
    settle()
    assert.equal('two', chosen)
    local key = opts.win.input.keys['<c-r>']
    opts.actions[key[1]](picker, opts.items[1])
    settle()
    assert.equal('one', acted)
    opts.confirm(picker, nil)
    settle()
    assert.equal('two', chosen)
    assert.equal(3, closed)
  end)
end)

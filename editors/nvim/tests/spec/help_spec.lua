-- The help tells what there is: each command, option, mapping, event and highlight, with what it really is.
local plugin = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))))
local lines = vim.fn.readfile(plugin .. '/doc/callboard.txt')
local text = table.concat(lines, '\n') .. '\n'

---@type table<string, integer>
local tags = {}
for _, line in ipairs(lines) do
  for tag in line:gmatch('%*([^%s*|]+)%*') do
    tags[tag] = (tags[tag] or 0) + 1
  end
end

---@param tag string
---@param next_tag string?
---@return string
local function section(tag, next_tag)
  local from = assert(text:find('*' .. tag .. '*', 1, true), tag)
  local to = next_tag and text:find('*' .. next_tag .. '*', from, true)
    or text:find('\n====', from, true)
  return text:sub(from, to)
end

---@param path string
---@return string
local function read(path)
  return table.concat(vim.fn.readfile(path), '\n')
end

describe('the help', function()
  it('has tags for Neovim, each once', function()
    local folder = vim.fn.tempname()
    vim.fn.mkdir(folder, 'p')
    vim.fn.writefile(lines, folder .. '/callboard.txt')
    vim.cmd.helptags(folder)
    local made = vim.fn.readfile(folder .. '/tags')
    assert.is_true(#made > 100)
    for tag, count in pairs(tags) do
      assert.equal(1, count, tag)
    end
    vim.fn.delete(folder, 'rf')
  end)

  it('begins and ends as help does, and fits a narrow window', function()
    assert.truthy(lines[1]:find('^%*callboard%.txt%*\t'))
    assert.truthy(lines[#lines]:find('^ ?vim:.*ft=help'))
    for number, line in ipairs(lines) do
      assert.is_true(vim.fn.strdisplaywidth(line) <= 78, ('line %d: %s'):format(number, line))
      assert.is_nil(line:find('%s$'), ('line %d ends with space'):format(number))
    end
  end)

  it('leads nowhere that is not there', function()
    for link in text:gmatch('|([^%s|]+)|') do
      if link:find('callboard', 1, true) or link:find('Callboard', 1, true) then
        assert.truthy(tags[link], link)
      else
        assert.is_true(#vim.fn.getcompletion(link, 'help') > 0, link)
      end
    end
  end)

  it('has its code closed, and its code can be read', function()
    local open, code, kind
    for number, line in ipairs(lines) do
      if open and line:find('^%S') then
        if kind == 'lua' then
          local chunk = code:match('^%s*{') and 'return ' .. code or code
          if not code:match('^%s*%a[%w_.]* = ') or code:match('^%s*vim%.') then
            assert.truthy(loadstring(chunk), ('line %d: %s'):format(open, code))
          else
            assert.truthy(loadstring('return {' .. code .. '}'), ('line %d: %s'):format(open, code))
          end
        end
        assert.truthy(line:find('^<'), ('the code before line %d has no end'):format(number))
        open = nil
      elseif open then
        code = code .. line .. '\n'
      end
      kind = line:match('^>(%a*)$') or line:match(' >(%a*)$')
      if kind and not open then
        open, code = number, ''
      elseif open then
        kind = kind or lines[open]:match('>(%a*)$')
      end
    end
  end)

  it('tells every sub-command', function()
    local documented = section('callboard-commands', 'callboard-chat')
    for _, name in ipairs(require('callboard.commands').names()) do
      assert.truthy(tags[':Callboard-' .. name], name)
      assert.truthy(documented:find('Callboard%S* ' .. name), name)
    end
    for tag in pairs(tags) do
      local name = tag:match('^:Callboard%-(.+)$')
      assert.truthy(not name or require('callboard.commands').commands[name], tag)
    end
  end)

  it('tells every option, with the default that it has', function()
    local said =
      section('callboard-options', 'callboard-server.cmd'):match('\n\t({\n\t  server.-\n\t})\n<')
    local documented = assert(loadstring('return ' .. said))()
    assert.same(require('callboard.config').defaults(), documented)
    local function each(value, path)
      if type(value) == 'table' and next(value) ~= nil then
        for name, inner in pairs(value) do
          each(inner, path and path .. '.' .. name or name)
        end
      else
        assert.truthy(tags['callboard-' .. path], path)
      end
    end
    each(require('callboard.config').defaults())
    assert.truthy(tags['callboard-server.cmd'])
    assert.truthy(tags['callboard-server.cwd'])
  end)

  it('names no option that there is not', function()
    for line in section('callboard-server.cmd', 'callboard-statusline'):gmatch('[^\n]+') do
      local path = line:match('^(%l+%.[%l_]+)\t')
      if path then
        local value = vim.tbl_get(
          { server = { cmd = '', cwd = '' } },
          unpack(vim.split(path, '.', { plain = true }))
        )
        assert.truthy(value ~= nil or require('callboard.config').default_of(path) ~= nil, path)
      end
    end
  end)

  it('tells every User autocommand', function()
    local source = read(plugin .. '/lua/callboard/events.lua')
    local documented, count = section('callboard-events'), 0
    for name, data in source:gmatch("| '(Callboard%a+)' data: ([^\n]*)") do
      count = count + 1
      assert.truthy(tags[name], name)
      local at = assert(documented:find('*' .. name .. '*', 1, true))
      local told = documented:sub(at)
      told = told:sub(1, told:find('\n%u', 2) or #told)
      for field in data:gmatch('%f[%w]%l+%u?%l*%f[^%w]') do
        if field ~= 'the' and field ~= 'approval' then
          assert.truthy(told:find(field, 1, true), ('%s of %s'):format(field, name))
        end
      end
    end
    assert.is_true(count >= 9)
    assert.truthy(tags.CallboardStatus)
  end)

  it('tells every highlight group, and what it is a link to', function()
    require('callboard.ui.highlights').define()
    local documented = section('callboard-highlights')
    for name, group in pairs(vim.api.nvim_get_hl(0, {})) do
      if name:find('^Callboard') then
        assert.truthy(tags['hl-' .. name], name)
        assert.truthy(documented:find(('\n%s +%s '):format(name, group.link)), name)
      end
    end
    for tag in pairs(tags) do
      local name = tag:match('^hl%-(.+)$')
      assert.truthy(not name or next(vim.api.nvim_get_hl(0, { name = name })), tag)
    end
  end)

  it('tells every mapping by its name', function()
    local documented = section('callboard-mappings')
    local missing = {}
    for _, path in ipairs(vim.fn.globpath(plugin .. '/lua/callboard', '**/*.lua', true, true)) do
      local source = read(path)
      local names = {}
      for name in source:gmatch("action = '([%l_]+)'") do
        names[#names + 1] = name
      end
      for name in source:gmatch("\n    key%('([%l_]+)', ") do
        names[#names + 1] = name
      end
      if path:find('ui/tasks.lua$') then
        for name in source:gmatch("\n    {%s+'([%l_]+)',%s") do
          names[#names + 1] = name
        end
      end
      for _, name in ipairs(names) do
        if name ~= 'option' and not documented:find('\n' .. name .. '[%s.]') then
          missing[#missing + 1] = name .. ' of ' .. vim.fs.basename(path)
        end
      end
    end
    assert.same({}, missing)
  end)

  it('tells every <Plug> mapping', function()
    local plugs = read(plugin .. '/plugin/callboard.lua'):match('\nlocal plugs = (%b{})')
    for name in plugs:gmatch("\n  (%l+) = '") do
      assert.truthy(text:find(('\n<Plug>(callboard-%s)'):format(name), 1, true), name)
    end
    assert.truthy(text:find('\n<Plug>(callboard-send)', 1, true))
  end)

  it('tells every function of the module', function()
    for name in pairs(require('callboard')) do
      assert.truthy(tags[('callboard.%s()'):format(name)], name)
    end
  end)
end)

--- With what a session works, where its agents are programs of their own.
local options = require('callboard.model.options')

describe('options of agents', function()
  local function option(profile, category, value)
    return {
      profile = profile,
      optionId = category,
      name = category,
      value = value,
      values = { { value = 'l', name = 'Large' } },
      category = category,
    }
  end

  local both = { option('codex', 'model', 'l'), option('codex', 'mode', 'yolo') }

  it('are told in the place of the model, and beside the mode', function()
    assert.same(
      { mode = 'work', agent_mode = 'yolo', agent_model = 'Large' },
      options.works_with({ options = both }, 'work', 'a/b')
    )
  end)

  it('tell no mode of theirs while the one of the session comes first', function()
    for _, mode in ipairs({ 'ask', 'plan' }) do
      assert.same(
        { mode = mode, agent_model = 'Large' },
        options.works_with({ options = both }, mode)
      )
    end
  end)

  it('say in a room whose they are, beside the model of the others', function()
    local room = { members = { 'codex', 'goose' }, options = vim.list_slice(both) }
    table.insert(room.options, option('goose', 'model', 'm'))
    assert.same({
      mode = 'work',
      model = 'a/b',
      agent_mode = 'codex yolo',
      agent_model = 'codex Large, goose m',
    }, options.works_with(room, 'work', 'a/b'))
  end)

  it('are none where there are none, or what is sent is no list', function()
    for _, session in ipairs({ {}, { options = {} }, { options = 'all' }, { options = { 1 } } }) do
      assert.same({ mode = 'work', model = 'm' }, options.works_with(session, 'work', 'm'))
      assert.same({}, options.modes(session))
    end
    assert.same({}, options.others(nil))
  end)
end)

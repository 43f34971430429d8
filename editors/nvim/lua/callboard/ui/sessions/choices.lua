-- The model and the mode of a session: set by name, or picked from what there is. With them are offered the options of
-- its agents that are programs of their own, each of which leads to its values.
local notify = require('callboard.notify')
local options = require('callboard.model.options')
local text = require('callboard.model.text')

local M = {}

---@return callboard.App
local function app()
  return require('callboard.app').get()
end

---Models of the last listing, for completion.
---@type callboard.ModelInfo[]
local known_models = {}

---@param done fun(models: callboard.ModelInfo[])
local function list_models(done)
  local all = {}
  local function page(cursor)
    app():request('model/list', { cursor = cursor }, function(err, got)
      if err then
        return notify.failed('list the models', err)
      end
      vim.list_extend(all, got.data)
      if got.nextCursor then
        return page(got.nextCursor)
      end
      known_models = all
      done(all)
    end)
  end
  page()
end

---@param id string
---@param model string
local function set_model(id, model)
  app():change(
    'session/update',
    { sessionId = id, model = model },
    'change the model',
    function(result)
      app():put_session(result.session)
      notify.info(
        ('%s answers from the next turn on'):format(
          text.one_line(result.session.model or model, 80)
        )
      )
    end
  )
end

---@param model callboard.ModelInfo
---@param current string?
---@return string
local function model_line(model, current)
  local parts = { (model.modelId == current and '* ' or '  ') .. text.one_line(model.modelId, 100) }
  if not model.available then
    parts[#parts + 1] = 'not available: '
      .. text.one_line(model.reason or 'no reason was given', 80)
  elseif model.contextWindow then
    parts[#parts + 1] = text.count(model.contextWindow) .. ' tokens of context'
  end
  return table.concat(parts, '  ')
end

---@param option callboard.SessionOption
---@return string as in "Model of codex"
local function whose(option)
  return ('%s of %s'):format(text.one_line(option.name, 60), text.one_line(option.profile, 40))
end

---@param line string
---@param description string?
---@return string
local function described(line, description)
  return description and line .. '  ' .. text.one_line(description, 100) or line
end

---@param option callboard.SessionOption
---@return string
local function option_line(option)
  local value = text.one_line(options.value(option), 60)
  return described(('  %s: %s'):format(whose(option), value), option.description)
end

---@param id string
---@param option callboard.SessionOption
---@param value callboard.OptionValue
local function set_option(id, option, value)
  local name = whose(option)
  app():change(
    'session/update',
    { sessionId = id, options = { [option.profile .. '/' .. option.optionId] = value.value } },
    'change the ' .. name,
    function(result)
      app():put_session(result.session)
      notify.info(('%s is %s from the next prompt on'):format(name, text.one_line(value.name, 80)))
    end
  )
end

---@param id string
---@param option callboard.SessionOption
local function pick_value(id, option)
  require('callboard.pickers').pick({
    title = ('%s in %s'):format(whose(option), require('callboard.ui.sessions').called(id)),
    items = option.values,
    format = function(value)
      local mark = value.value == option.value and '* ' or '  '
      return described(mark .. text.one_line(value.name, 100), value.description)
    end,
    on_choice = function(value)
      set_option(id, option, value)
    end,
  })
end

---@param id string
---@param name string? picked from those there are without it
function M.model(id, name)
  if name then
    return set_model(id, name)
  end
  list_models(function(models)
    local session = app().sessions.by_id[id]
    local offered = options.others(session)
    if #models + #offered == 0 then
      return notify.warn('no model was found. :checkhealth callboard says what is looked for.')
    end
    local current, usable, rest = session and session.model, {}, {}
    for _, model in ipairs(models) do
      table.insert(model.available and usable or rest, model)
      -- One that was not set is the one that new sessions get.
      current = current or (model.selected and model.modelId) or nil
    end
    require('callboard.pickers').pick({
      title = 'Model of ' .. require('callboard.ui.sessions').called(id),
      items = vim.iter({ offered, usable, rest }):flatten():totable(),
      format = function(item)
        return item.optionId and option_line(item) or model_line(item, current)
      end,
      on_choice = function(model)
        if model.optionId then
          pick_value(id, model)
        elseif model.available then
          set_model(id, model.modelId)
        else
          notify.warn(
            ('%s cannot be used: %s'):format(model.modelId, model.reason or 'no reason was given')
          )
        end
      end,
    })
  end)
end

local MODES = {
  { 'ask', 'reads and answers; changes nothing' },
  { 'plan', 'reads and makes a plan; changes nothing' },
  { 'work', 'changes files and runs commands, as far as it is allowed' },
}

---@param id string
---@param mode string? picked without it
function M.mode(id, mode)
  if mode then
    return app():change(
      'session/update',
      { sessionId = id, mode = mode },
      'change the mode',
      function(result)
        app():put_session(result.session)
        notify.info(('the mode is %s now'):format(result.session.mode))
      end
    )
  end
  local session = app().sessions.by_id[id]
  require('callboard.pickers').pick({
    title = 'Mode of ' .. require('callboard.ui.sessions').called(id),
    items = vim.list_extend(vim.list_slice(MODES), options.modes(session)),
    format = function(item)
      if item.optionId then
        return option_line(item)
      end
      return ('%s%-5s %s'):format(
        session and session.mode == item[1] and '* ' or '  ',
        item[1],
        item[2]
      )
    end,
    on_choice = function(item)
      if item.optionId then
        pick_value(id, item)
      else
        M.mode(id, item[1])
      end
    end,
  })
end

---Models that can be used, for completion. What is not known yet is asked for, and is there the next time.
---@return string[]
function M.models()
  local known = require('callboard.app').peek()
  if known and #known_models == 0 and known.server.state == 'ready' then
    list_models(function() end)
  end
  local names = {}
  for _, model in ipairs(known_models) do
    if model.available then
      names[#names + 1] = model.modelId
    end
  end
  return names
end

return M

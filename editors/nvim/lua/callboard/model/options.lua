-- What the agents of a session that are programs of their own let it be set to: their models, modes and other
-- options, as they have told. Pure.
local M = {}

---@param session callboard.Session?
---@param wanted fun(category: string?): boolean
---@return callboard.SessionOption[]
local function where(session, wanted)
  local options = session and session.options
  return vim.tbl_filter(function(option)
    return type(option) == 'table' and wanted(option.category)
  end, type(options) == 'table' and options or {})
end

---Those that are modes.
---@param session callboard.Session?
---@return callboard.SessionOption[]
function M.modes(session)
  return where(session, function(category)
    return category == 'mode'
  end)
end

---All others: models, how much is thought, and whatever else there is.
---@param session callboard.Session?
---@return callboard.SessionOption[]
function M.others(session)
  return where(session, function(category)
    return category ~= 'mode'
  end)
end

---What the value that an option has is called.
---@param option callboard.SessionOption
---@return string
function M.value(option)
  for _, each in ipairs(option.values) do
    if each.value == option.value then
      return each.name
    end
  end
  return option.value
end

---@param session callboard.Session
---@return boolean
local function is_room(session)
  return type(session.members) == 'table' and #session.members > 0
end

---The values of a category, for a line about the session; with their agents where there are several.
---@param session callboard.Session?
---@param category 'model'|'mode'
---@return string? words untrusted
local function told(session, category)
  local found = vim.tbl_map(
    function(option)
      return is_room(session) and option.profile .. ' ' .. M.value(option) or M.value(option)
    end,
    where(session, function(other)
      return other == category
    end)
  )
  return #found > 0 and table.concat(found, ', ') or nil
end

---With what a session works. Callboard's own mode comes first: one of an agent counts while that is `work`. An agent
---that has a model of its own does not use the session's, which in a room others may.
---@param session callboard.Session?
---@param mode string?
---@param model string?
---@return { mode: string?, model: string?, agent_mode: string?, agent_model: string? }
function M.works_with(session, mode, model)
  local own = told(session, 'model')
  return {
    mode = mode,
    model = (own == nil or is_room(session)) and model or nil,
    agent_mode = mode == 'work' and told(session, 'mode') or nil,
    agent_model = own,
  }
end

return M

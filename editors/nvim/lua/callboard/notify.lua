-- What a person is told: one message that names the thing and the way out.
local text = require('callboard.model.text')

local M = {}

---@param message string
---@param level integer?
local function say(message, level)
  vim.schedule(function()
    require('callboard.ui.toast').show('Callboard: ' .. text.visible(message), level)
  end)
end

---@param message string
function M.info(message)
  say(message, vim.log.levels.INFO)
end

---@param message string
function M.warn(message)
  say(message, vim.log.levels.WARN)
end

---@param message string
function M.error(message)
  require('callboard.log').error('%s', message)
  say(message, vim.log.levels.ERROR)
end

---Ways out of errors, by the kind that the server tells; where its own words have none.
local WAYS = {
  sessionNotFound = 'It was deleted, or is in another store. :Callboard sessions shows those that are there.',
  sessionClosed = 'Begin another one with :Callboard new.',
  sessionArchived = 'Bring it back from :Callboard sessions.',
  storeBusy = 'Another program holds the store; try again in a moment.',
  storeVersion = 'Update Callboard: the store was written by a newer one.',
  storeCorrupt = 'See `callboard store check`, and `callboard store restore` for a backup.',
  storeFull = 'The disk is full: make room, then try again.',
  authRequired = 'Set the key of the model; :checkhealth callboard says what is found.',
  modelUnavailable = ':Callboard model picks another one.',
  featureDisabled = 'It is switched off in the configuration of Callboard.',
}

---@param err { code: integer, message: string, data?: { kind?: string } }
---@return string
function M.explain(err)
  local way = err.data and WAYS[err.data.kind]
  local message = vim.trim(tostring(err.message or 'the server gave no reason'))
  if way and not message:find(way, 1, true) then
    return ('%s\n%s'):format(message, way)
  end
  return message
end

---Tells of a request that failed.
---@param doing string what was asked for, as in "rename the session"
---@param err table
function M.failed(doing, err)
  M.error(('could not %s: %s'):format(doing, M.explain(err)))
end

return M

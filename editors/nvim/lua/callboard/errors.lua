-- What an error of the server means to a person: its words, and the way out. Pure.
local M = {}

---Ways out, by the kind that the server tells; where its own words have none.
local WAYS = {
  sessionNotFound = 'It was deleted, or is in another store. :Callboard sessions shows those that are there.',
  sessionClosed = 'Begin another one with :Callboard new.',
  sessionArchived = 'Bring it back from :Callboard sessions.',
  authRequired = 'Set the key of the model; :checkhealth callboard says what is found.',
  modelUnavailable = ':Callboard model picks another one.',
  featureDisabled = 'It is switched off in the configuration of Callboard.',
}

---@param err { code: integer?, message: string?, data?: { kind?: string } }
---@return string
function M.explain(err)
  local way = err.data and WAYS[err.data.kind]
  local message = vim.trim(tostring(err.message or 'the server gave no reason'))
  if way and not message:find(way, 1, true) then
    return ('%s\n%s'):format(message, way)
  end
  return message
end

---@param err { data?: { kind?: string } }?
---@return string?
function M.kind(err)
  return err and err.data and err.data.kind or nil
end

return M

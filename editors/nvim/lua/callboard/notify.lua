-- What a person is told: one message that names the thing and the way out.
local text = require('callboard.model.text')

local M = {}

---Whether messages go to Neovim's own last line, and not to a plugin that has room for them.
---@return boolean
local function plain()
  return debug.getinfo(vim.notify, 'S').source:find('vim/_editor.lua', 1, true) ~= nil
end

---A line in pieces of at most `room` columns, broken between words where there are some.
---@param line string
---@param room integer
---@return string[]
local function pieces(line, room)
  local list, from = {}, ''
  for _, word in ipairs(vim.split(line, ' ', { plain = true })) do
    local longer = from == '' and word or (from .. ' ' .. word)
    if from ~= '' and vim.fn.strdisplaywidth(longer) > room then
      list[#list + 1], longer = from, word
    end
    while vim.fn.strdisplaywidth(longer) > room do
      local head = vim.fn.strcharpart(longer, 0, math.floor(room / 2))
      list[#list + 1], longer = head, longer:sub(#head + 1)
    end
    from = longer
  end
  list[#list + 1] = from
  return list
end

---Neovim asks for Enter after a message that is longer than its last line, and takes no other key until then.
---So `:messages` gets it in pieces, and the line shows what fits.
---@param message string
---@param level integer?
local function in_a_line(message, level)
  local room = math.max(20, vim.o.columns * math.max(vim.o.cmdheight, 1) - 14)
  local colors = { [vim.log.levels.ERROR] = 'ErrorMsg', [vim.log.levels.WARN] = 'WarningMsg' }
  local function echo(line, history)
    vim.cmd('redraw') -- else it would come below what was said just now, and that is more than a line
    vim.api.nvim_echo({ { line, colors[level] } }, history, {})
  end
  local list = {}
  for _, line in ipairs(vim.split(message, '\n', { plain = true })) do
    vim.list_extend(list, pieces(line, room))
  end
  for _, piece in ipairs(list) do
    echo(piece, true)
  end
  if #list > 1 then
    local rest = '… (:messages)'
    echo(text.one_line(message, room - vim.fn.strdisplaywidth(rest)) .. rest, false)
  end
end

---@param message string
---@param level integer?
local function say(message, level)
  vim.schedule(function()
    local told = 'Callboard: ' .. text.visible(message)
    if plain() then
      in_a_line(told, level)
    else
      vim.notify(told, level, { title = 'Callboard' })
    end
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

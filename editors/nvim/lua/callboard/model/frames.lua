-- What another agent, or another session, has said stands in a frame that its reader's model needs and a person
-- does not: here it is taken off. Pure.
local M = {}

---What each frame is called to a person.
local KINDS = {
  ['agent-report'] = 'report',
  ['agent-question'] = 'question',
  ['agent-update'] = 'news',
  ['agent-reply'] = 'reply',
  ['agent-message'] = 'message',
  ['group-message'] = 'message to the group',
  ['agent-interrupt'] = 'interrupt',
  ['external-context'] = 'message',
}

local ENTITIES =
  { ['&lt;'] = '<', ['&gt;'] = '>', ['&quot;'] = '"', ['&#x27;'] = "'", ['&amp;'] = '&' }

---@param text string
---@return string
local function unescape(text)
  return (text:gsub('&#?%w+;', ENTITIES))
end

---@class callboard.Framed
---@field body string
---@field kind string
---@field attributes table<string, string>

---What stands in the frame of a text; nil where it has none. What the server says of the frame, in the paragraph
---that follows it, is for the model.
---@param text string
---@return callboard.Framed?
function M.open(text)
  local tag, given, from = text:match('^<(%l[%l%-]*)([^>\n]*)>\n()')
  if not tag or not KINDS[tag] then
    return nil
  end
  local last, after = text:find('\n</' .. tag .. '>', from - 1, true)
  if not last then
    return nil
  end
  local attributes = {}
  for name, value in given:gmatch('([%l%-]+)="([^"]*)"') do
    attributes[name] = unescape(value)
  end
  local body = unescape(text:sub(from, last - 1))
  local more = text:match('\n\n(.*)$', after + 1)
  if more and more:find('%S') then
    body = body .. '\n\n' .. more
  end
  return { body = body, kind = KINDS[tag], attributes = attributes }
end

return M

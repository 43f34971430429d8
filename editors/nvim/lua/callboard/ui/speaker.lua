-- Who speaks in an item of the transcript, and the line above it that says so.
local frames = require('callboard.model.frames')
local text = require('callboard.model.text')

local M = {}

local SPEAKING = { prompt = true, answer = true, thought = true, tool = true }

---The frame around what others said.
---@param item callboard.Item
---@return callboard.Framed?
function M.framed(item)
  local frame = item.kind == 'prompt' and frames.open(item.text) or nil
  local mine = not item.author or item.author.kind == 'person'
  return frame and (not mine or frame.kind == 'interrupt') and frame or nil
end

---@param name string?
---@return string
local function called(name)
  return text.one_line((not name or name == 'default') and 'Agent' or name, 40)
end

---Who has written a prompt.
---@param item callboard.Item
---@param look callboard.Look
---@return string
local function writer(item, look)
  local author = item.author
  if not author or author.kind == 'person' then
    return 'You'
  elseif author.kind == 'agent' then
    return author.id ~= nil and author.id == look.parent and 'From its parent'
      or 'From ' .. called(author.name)
  end
  local name = text.one_line(author.name, 40)
  return name == author.kind and ('From the %s'):format(name)
    or ('From %s %s'):format(text.one_line(author.kind, 20), name)
end

---Who speaks: what a heading would say. Nil for what nobody says.
---@param item callboard.Item
---@param look callboard.Look
---@return string?
function M.of(item, look)
  if not SPEAKING[item.kind] then
    return nil
  elseif item.kind == 'prompt' then
    return writer(item, look)
  elseif look.room then
    return called(
      item.author and item.author.name or (look.speakers or {})[item.turn_id or ''] or look.agent
    )
  end
  return called(look.agent)
end

---@param item callboard.Item
---@param look callboard.Look
---@return callboard.Line
function M.heading(item, look)
  local said = M.of(item, look)
  local frame = M.framed(item)
  local notes = { item.steer and 'steered' or nil }
  if frame then
    notes[#notes + 1] = frame.kind == 'interrupt' and text.one_line(frame.attributes.kind or '', 20)
      or frame.kind
    notes[#notes + 1] = frame.attributes.status and text.one_line(frame.attributes.status, 20)
  end
  local note = #notes > 0 and (' (%s)'):format(table.concat(notes, ', ')) or ''
  return {
    {
      ('── %s%s ──'):format(said, note),
      said == 'You' and 'CallboardUser' or 'CallboardAgent',
    },
  }
end

return M

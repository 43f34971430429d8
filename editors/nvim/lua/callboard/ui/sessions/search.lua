-- Search over all that was said and printed; a hit opens its session where it stands.
local Rows = require('callboard.model.rows')
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

M.PAGE = 50

local KINDS = {
  message = 'said',
  prompt_updated = 'said',
  directive = 'told',
  tool_result = 'printed',
  summary = 'summary',
  notice = 'notice',
}

---@param transcript callboard.Transcript
---@param seq integer
---@return callboard.Item? the last one that begins there or before
local function item_at(transcript, seq)
  local found
  for _, item in ipairs(transcript.items) do
    if item.seq > 0 and item.seq <= seq and (not found or item.seq >= found.seq) then
      found = item
    end
  end
  return found
end

---Opens a session at an event, which may stand on a page that is not loaded.
---@param session_id string
---@param seq integer
function M.open_at(session_id, seq)
  local app = require('callboard.app').get()
  local session = app:use(session_id)
  local off
  local function finish(item)
    if off then
      off()
      off = nil
    end
    require('callboard.ui.chat').open(session_id, item and { item = item.id } or nil)
    app:release(session_id)
  end
  local function look()
    if session.phase == 'lost' then
      return finish(nil)
    elseif session.phase ~= 'live' then
      return
    end
    local transcript = session.transcript
    if session.at_start or (transcript.first_seq and transcript.first_seq <= seq) then
      return finish(item_at(transcript, seq))
    end
    session:load_older(function(loaded)
      if not loaded then
        finish(nil)
      else
        look()
      end
    end)
  end
  if session.phase == 'loading' then
    off = session:listen(function(update)
      if off and update.phase and update.phase ~= 'loading' then
        off()
        off = nil
        look()
      end
    end)
  else
    look()
  end
end

---@param words string
---@param hits callboard.SearchHit[]
---@param cursor string?
local function show(words, hits, cursor)
  local items = vim.list_slice(hits)
  if cursor then
    items[#items + 1] = { more = cursor }
  end
  local now = os.time()
  require('callboard.pickers').pick({
    title = ('Found for «%s»'):format(text.one_line(words, 40)),
    items = items,
    format = function(hit)
      if hit.more then
        return 'older ones'
      end
      return ('%s  %s: %s'):format(
        Rows.age(hit.at, now),
        KINDS[hit.type] or text.one_line(hit.type, 20),
        text.one_line(hit.snippet, 160)
      )
    end,
    heading = function(hit)
      return hit.more and 'More' or text.one_line(require('callboard.model.store').name(hit), 60)
    end,
    preview = function(hit)
      return hit.more and { 'older ones' } or text.lines(hit.snippet)
    end,
    on_choice = function(hit)
      if hit.more then
        M.run(words, hits, hit.more)
      else
        M.open_at(hit.sessionId, hit.seq)
      end
    end,
  })
end

---@param words string
---@param before callboard.SearchHit[]? hits of the pages before
---@param cursor string?
function M.run(words, before, cursor)
  local params = { query = text.utf8(words), limit = M.PAGE, cursor = cursor }
  require('callboard.app').get():request('session/search', params, function(err, page)
    if err then
      return notify.failed(('search for %s'):format(text.one_line(words, 40)), err)
    end
    local hits = vim.list_extend(vim.list_slice(before or {}), page.data)
    if #hits == 0 and not page.nextCursor then
      return notify.info(
        ('nothing was said with %s. Every word must occur; a word that ends in * may go on.'):format(
          text.one_line(words, 40)
        )
      )
    end
    show(words, hits, page.nextCursor)
  end)
end

return M

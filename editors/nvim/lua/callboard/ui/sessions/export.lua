-- A session as Markdown, in a buffer that can be written wherever it is wanted.
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---A name for the file, made of the title.
---@param session callboard.Session?
---@param id string
---@return string
function M.file_name(session, id)
  local name = session and session.title or ''
  name = text
    .utf8(name)
    :gsub('[%z\1-\31\127/\\:*?"<>|%s%%#`$!&\';{}~]+', '-')
    :gsub('^[%-%.]+', '')
    :gsub('[%-%.]+$', '')
  name = vim.fn.strcharpart(name, 0, 60)
  return (name ~= '' and name or 'session-' .. id:sub(-6)) .. '.md'
end

---@param id string
---@param markdown string
local function show(id, markdown)
  local session = require('callboard.app').get().sessions.by_id[id]
  vim.cmd.tabnew()
  local buf = vim.api.nvim_get_current_buf()
  -- Written by nobody unasked: it has no name yet.
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].swapfile = false
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, text.lines(markdown))
  vim.bo[buf].filetype = 'markdown'
  vim.bo[buf].modified = false
  notify.info(('write it with :saveas %s'):format(M.file_name(session, id)))
end

---@param id string
function M.run(id)
  local parts = {}
  local function page(cursor)
    local params = { sessionId = id, format = 'markdown', cursor = cursor }
    require('callboard.app').get():request('session/export', params, function(err, result)
      if err then
        return notify.failed('export the session', err)
      end
      parts[#parts + 1] = result.text
      if result.nextCursor then
        return page(result.nextCursor)
      end
      show(id, (table.concat(parts):gsub('\n$', '')))
    end)
  end
  page()
end

return M

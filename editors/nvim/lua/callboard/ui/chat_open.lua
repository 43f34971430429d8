-- What a line of a chat leads to: a file, a diff, all of a card, what was before.
local buffers = require('callboard.ui.buffers')
local files = require('callboard.files')
local notify = require('callboard.notify')

local M = {}

---What is under the cursor.
---@param chat callboard.Conversation
---@return callboard.Target?
---@return callboard.Item?
function M.under(chat)
  local target, block = chat.view:at(vim.api.nvim_win_get_cursor(0)[1] - 1)
  return target, block and chat.view.transcript.by_id[block.id] or nil
end

---@param path string
---@param line integer?
function M.open_file(path, line)
  if not vim.uv.fs_stat(path) then
    return notify.warn(('there is no file %s any more'):format(path))
  end
  vim.api.nvim_set_current_win(buffers.file_window())
  local opened, fault = pcall(vim.cmd.edit, vim.fn.fnameescape(path))
  -- A modeline, or an autocommand, may fail in a file that was opened all the same.
  if not opened and files.buffer(path) ~= vim.api.nvim_get_current_buf() then
    notify.warn(('%s cannot be opened: %s'):format(path, tostring(fault):match('E%d+:.*') or fault))
  elseif line then
    pcall(vim.api.nvim_win_set_cursor, 0, { line, 0 })
  end
end

---A file that the text under the cursor, or its item, names.
---@param chat callboard.Conversation
---@return string? path
---@return integer? line
local function file_here(chat)
  local target, item = M.under(chat)
  if target and target.kind == 'file' then
    return target.path, target.line
  end
  local cwd = chat.cwd
  local record = chat.app.sessions.by_id[chat.id or '']
  cwd = record and record.cwd or cwd
  local word = vim.fn.expand('<cWORD>'):gsub('^[%[%(`"\'@<]+', ''):gsub('[%]%)`"\',;>%.:!?]+$', '')
  local path, line = word:match('^(.-):(%d+)')
  path = path or word
  if path ~= '' then
    local full = path:sub(1, 1) == '/' and path or vim.fs.joinpath(cwd, path)
    local stat = vim.uv.fs_stat(full)
    if stat and stat.type == 'file' then
      return full, tonumber(line)
    end
  end
  if item and item.kind == 'tool' then
    local change = item.result and (item.result.changes or {})[1]
    local place = (item.result and (item.result.locations or {})[1])
      or (item.call and (item.call.locations or {})[1])
    if place then
      return place.path, place.line
    elseif change then
      return change.path
    end
  end
end

---@param chat callboard.Conversation
function M.file(chat)
  local path, line = file_here(chat)
  if path then
    return M.open_file(path, line)
  end
  notify.info('there is no file under the cursor')
end

---@param chat callboard.Conversation
function M.diff(chat)
  local target, item = M.under(chat)
  local waits = item and require('callboard.ui.card').waits(item) and item.approval
  if target and target.kind == 'approval' or waits then
    return require('callboard.ui.diff').show_approval(target and target.approval or waits)
  end
  local change = item and item.result and (item.result.changes or {})[1]
  local path = target and target.kind == 'change' and target.path or change and change.path
  if chat.id and path then
    return require('callboard.ui.changes').diff(chat.id, path)
  end
  local waiting = chat:approval_here()
  if waiting and waiting.subject.type == 'fileChange' then
    return require('callboard.ui.diff').show_approval(waiting)
  end
  notify.info('nothing was changed here. :Callboard changes lists what the session changed')
end

---@param chat callboard.Conversation
function M.open(chat)
  local target, item = M.under(chat)
  local kind = target and target.kind
  if kind == 'older' then
    chat:older()
  elseif kind == 'file' then
    M.open_file(target.path, target.line)
  elseif kind == 'change' then
    M.diff(chat)
  elseif kind == 'queued' or kind == 'outgoing' then
    require('callboard.ui.queue').edit(chat, target)
  elseif kind == 'approval' then
    require('callboard.ui.full').approval(target.approval)
  elseif item and (item.kind == 'tool' or item.blobs) then
    require('callboard.ui.full').item(chat, item)
  else
    local path, line = file_here(chat)
    if path then
      M.open_file(path, line)
    end
  end
end

return M

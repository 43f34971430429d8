-- Ways through a chat: to messages, to approvals, to what waits, to a call that somebody names.
local buffers = require('callboard.ui.buffers')
local notify = require('callboard.notify')

local M = {}

---@param chat callboard.Conversation
---@param step -1|1
---@param wanted fun(item: callboard.Item): boolean
---@return boolean moved
function M.to(chat, step, wanted)
  local row = vim.api.nvim_win_get_cursor(0)[1]
  local best
  for _, block in ipairs(chat.view.blocks) do
    local item = chat.view.transcript.by_id[block.id]
    if item and wanted(item) then
      local at = chat.view:row(block.id, true) + 1
      if step > 0 and at > row then
        best = at
        break
      elseif step < 0 and at < row then
        best = at
      end
    end
  end
  if not best and step > 0 then
    local count = vim.api.nvim_buf_line_count(chat.buf)
    best = row < count and count or nil
  end
  if best then
    vim.cmd("normal! m'")
    vim.api.nvim_win_set_cursor(0, { best, 0 })
  end
  return best ~= nil
end

---@param item callboard.Item
---@return boolean
function M.is_message(item)
  return item.kind == 'prompt' or item.kind == 'answer'
end

---@param chat callboard.Conversation
---@param step -1|1
function M.to_approval(chat, step)
  local rows = {}
  local count = vim.api.nvim_buf_line_count(chat.buf)
  local seen
  for row = 0, count - 1 do
    local target = chat.view:at(row)
    local id = target and target.kind == 'approval' and target.approval.approvalId or nil
    if id and id ~= seen then
      rows[#rows + 1] = row + 1
    end
    seen = id
  end
  if #rows == 0 then
    return notify.info(
      'nothing waits for an answer here. :Callboard next goes to what waits elsewhere'
    )
  end
  local here = vim.api.nvim_win_get_cursor(0)[1]
  local best = step > 0 and rows[1] or rows[#rows]
  for i = step > 0 and 1 or #rows, step > 0 and #rows or 1, step do
    if (step > 0 and rows[i] > here) or (step < 0 and rows[i] < here) then
      best = rows[i]
      break
    end
  end
  vim.api.nvim_win_set_cursor(0, { best, 0 })
end

---Goes to the first thing that waits to be read.
---@param session_id string
function M.to_queue(session_id)
  local chat = require('callboard.ui.chat').of_session(session_id)
  local win = chat and buffers.window(chat.buf)
  if not chat or not win then
    return
  end
  chat.view:flush()
  for row = 0, vim.api.nvim_buf_line_count(chat.buf) - 1 do
    local target = chat.view:at(row)
    if target and (target.kind == 'queued' or target.kind == 'outgoing') then
      vim.api.nvim_set_current_win(win)
      vim.api.nvim_win_set_cursor(win, { row + 1, 0 })
      return
    end
  end
  notify.info('nothing waits in this session')
end

---@param chat callboard.Conversation
---@param approval_id string?
---@return integer? row 0-based
local function row_of_approval(chat, approval_id)
  if not approval_id then
    return nil
  end
  for row = 0, vim.api.nvim_buf_line_count(chat.buf) - 1 do
    local target = chat.view:at(row)
    if target and target.kind == 'approval' and target.approval.approvalId == approval_id then
      return row
    end
  end
end

---@param chat callboard.Conversation
---@param approval_id string?
---@return boolean it is an agent's, whose call stands in another session
local function is_of_agent(chat, approval_id)
  local approval = approval_id
    and require('callboard.model.approvals').get(chat.app.approvals, approval_id)
  return approval ~= nil and approval.sessionId ~= chat.id
end

---How often it is looked again for what is not there yet: pages that are loaded, changes that come.
local TRIES = 20

---Goes to an item, loading what was before until it is there; or to an approval that is in view. What waits may
---be known before the call that it is about: that comes in a moment.
---@param chat callboard.Conversation
---@param id string?
---@param approval_id string?
---@param tries integer?
function M.go_to(chat, id, approval_id, tries)
  chat.view:flush()
  local win, session = buffers.window(chat.buf), chat.session
  if not win or not session then
    return
  end
  local row = row_of_approval(chat, approval_id) or (id and chat.view:row(id))
  if row then
    vim.api.nvim_win_set_cursor(win, { row + 1, 0 })
    return
  end
  tries = (tries or 0) + 1
  local function again()
    vim.schedule(function()
      M.go_to(chat, id, approval_id, tries)
    end)
  end
  if tries > TRIES then
    notify.warn('it is too far back in this session. <CR> on the first line of the chat loads more')
  elseif id and session.transcript.by_id[id] then
    chat.view:widen(#session.transcript.items)
    again()
  elseif
    session.phase == 'live'
    and not session.at_start
    and not is_of_agent(chat, approval_id)
  then
    session:load_older(function(loaded)
      if loaded then
        again()
      end
    end)
  elseif session.phase ~= 'lost' then
    local off
    off = session:listen(function()
      off()
      again()
    end)
  end
end

return M

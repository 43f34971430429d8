-- What the keys of a chat and of its input do.
local buffers = require('callboard.ui.buffers')
local keys = require('callboard.keys')
local notify = require('callboard.notify')

local M = {}

---@param chat callboard.Conversation
---@return callboard.Target?
---@return callboard.Item?
local function under(chat)
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
  vim.cmd.edit(vim.fn.fnameescape(path))
  if line then
    pcall(vim.api.nvim_win_set_cursor, 0, { line, 0 })
  end
end

---A file that the text under the cursor, or its item, names.
---@param chat callboard.Conversation
---@return string? path
---@return integer? line
local function file_here(chat)
  local target, item = under(chat)
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
local function go_file(chat)
  local path, line = file_here(chat)
  if path then
    return M.open_file(path, line)
  end
  notify.info('there is no file under the cursor')
end

---@param chat callboard.Conversation
local function go_diff(chat)
  local target, item = under(chat)
  local waits = item and require('callboard.ui.card').waits(item) and item.approval
  if target and target.kind == 'approval' or waits then
    return require('callboard.ui.diff').show_approval(target and target.approval or waits)
  end
  local change = item and item.result and (item.result.changes or {})[1]
  local path = target and target.kind == 'change' and target.path or change and change.path
  if chat.id and path then
    return require('callboard.ui.changes').diff(chat.id, path)
  end
  notify.info('nothing was changed here. :Callboard changes lists what the session changed')
end

---@param chat callboard.Conversation
local function open(chat)
  local target, item = under(chat)
  local kind = target and target.kind
  if kind == 'older' then
    chat:older()
  elseif kind == 'file' then
    M.open_file(target.path, target.line)
  elseif kind == 'change' then
    go_diff(chat)
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

---@param chat callboard.Conversation
---@param step -1|1
---@param wanted fun(item: callboard.Item): boolean
---@return boolean moved
local function move(chat, step, wanted)
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
local function is_message(item)
  return item.kind == 'prompt' or item.kind == 'answer'
end

---@param chat callboard.Conversation
---@param step -1|1
local function to_approval(chat, step)
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

---@param chat callboard.Conversation
---@param delivery callboard.Delivery?
local function send(chat, delivery)
  if chat.input:is_empty() then
    return notify.info('the input is empty')
  end
  chat:say({ text = chat.input:take(), delivery = delivery })
end

---@param chat callboard.Conversation
---@param insert boolean
local function to_input(chat, insert)
  require('callboard.ui.chat').focus()
  if insert then
    vim.cmd.startinsert({ bang = true })
  end
  local _ = chat
end

---@param chat callboard.Conversation
local function interrupt(chat)
  if not chat.id then
    return notify.info('nothing runs here')
  end
  require('callboard.ui.interrupt').run(chat.id, 'turn')
end

---@param chat callboard.Conversation
function M.set(chat)
  local function with(fn, ...)
    local arguments = { ... }
    return function()
      fn(chat, unpack(arguments))
    end
  end
  local function hide()
    require('callboard.ui.chat').hide()
  end
  local function on_queue(name)
    return function()
      local target = under(chat)
      if not target or (target.kind ~= 'queued' and target.kind ~= 'outgoing') then
        return notify.info('go to a line of what waits first; it stands at the end of the chat')
      end
      require('callboard.ui.queue')[name](chat, target)
    end
  end
  local help = { action = 'help', lhs = 'g?', desc = 'Tell what the keys do', fn = keys.help }
  keys.set(chat.buf, 'chat', {
    {
      action = 'open',
      lhs = '<CR>',
      desc = 'Open the card, the file or what was before',
      fn = with(open),
    },
    { action = 'input', lhs = { 'i', 'a' }, desc = 'Write', fn = with(to_input, true) },
    { action = 'next_message', lhs = ']]', desc = 'Next message', fn = with(move, 1, is_message) },
    {
      action = 'previous_message',
      lhs = '[[',
      desc = 'Previous message',
      fn = with(move, -1, is_message),
    },
    { action = 'next_approval', lhs = ']a', desc = 'Next approval', fn = with(to_approval, 1) },
    {
      action = 'previous_approval',
      lhs = '[a',
      desc = 'Previous approval',
      fn = with(to_approval, -1),
    },
    { action = 'diff', lhs = 'gd', desc = 'Show the change as a diff', fn = with(go_diff) },
    { action = 'file', lhs = 'gf', desc = 'Open the file', fn = with(go_file) },
    { action = 'interrupt', lhs = '<C-c>', desc = 'Stop the turn', fn = with(interrupt) },
    {
      action = 'steer',
      lhs = 'gm',
      desc = 'Steer: tell the running agent what the input holds',
      fn = with(send, 'steer'),
    },
    { action = 'edit', lhs = 'e', desc = 'Change what waits', fn = on_queue('edit') },
    { action = 'drop', lhs = 'x', desc = 'Drop what waits', fn = on_queue('drop') },
    { action = 'now', lhs = 's', desc = 'Send what waits now, as a steer', fn = on_queue('now') },
    help,
    { action = 'hide', lhs = 'q', desc = 'Hide the chat', fn = hide },
  })
  local function recall(step, key)
    return function()
      chat.input:recall(step, key)
    end
  end
  keys.set(chat.input.buf, 'input', {
    { action = 'send', lhs = '<CR>', desc = 'Send, or queue while a turn runs', fn = with(send) },
    {
      action = 'send_insert',
      lhs = '<C-s>',
      mode = { 'n', 'i' },
      desc = 'Send, or queue while a turn runs',
      fn = with(send),
    },
    {
      action = 'steer',
      lhs = 'gm',
      desc = 'Steer: tell the running agent at its next step',
      fn = with(send, 'steer'),
    },
    {
      action = 'steer_insert',
      lhs = '<C-g>',
      mode = { 'n', 'i' },
      desc = 'Steer',
      fn = with(send, 'steer'),
    },
    {
      action = 'older',
      lhs = '<Up>',
      mode = { 'n', 'i' },
      desc = 'What was said before, on the first line',
      fn = recall(-1, '<Up>'),
    },
    {
      action = 'newer',
      lhs = '<Down>',
      mode = { 'n', 'i' },
      desc = 'What was said after it, on the last line',
      fn = recall(1, '<Down>'),
    },
    {
      action = 'remove_context',
      lhs = 'gx',
      desc = 'Do not send the last file along',
      fn = function()
        chat.chips:remove()
        chat:draw_bars()
      end,
    },
    {
      action = 'complete',
      lhs = '@',
      mode = 'i',
      expr = true,
      desc = 'Name a file or a member',
      fn = function()
        return require('callboard.ui.complete').trigger()
      end,
    },
    { action = 'interrupt', lhs = '<C-c>', desc = 'Stop the turn', fn = with(interrupt) },
    help,
    { action = 'hide', lhs = 'q', desc = 'Hide the chat; what was typed stays', fn = hide },
  })
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

---Goes to an item, loading what was before until it is there; or to an approval that is in view.
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
  tries = tries or 0
  local function again()
    vim.schedule(function()
      M.go_to(chat, id, approval_id, tries + 1)
    end)
  end
  if session.phase == 'loading' then
    local off
    off = session:listen(function(update)
      if update.phase and update.phase ~= 'loading' then
        off()
        again()
      end
    end)
  elseif tries > 12 then
    notify.warn('it is too far back in this session. <CR> on the first line of the chat loads more')
  elseif id and session.transcript.by_id[id] then
    chat.view:widen(#session.transcript.items)
    again()
  elseif id and not session.at_start then
    session:load_older(function(loaded)
      if loaded then
        again()
      end
    end)
  end
end

return M

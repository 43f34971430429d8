-- What the keys of a chat and of its input do.
local keys = require('callboard.keys')
local moves = require('callboard.ui.chat_moves')
local notify = require('callboard.notify')
local opening = require('callboard.ui.chat_open')

local M = {}

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
      local target = opening.under(chat)
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
      fn = with(opening.open),
    },
    { action = 'input', lhs = { 'i', 'a' }, desc = 'Write', fn = with(to_input, true) },
    {
      action = 'next_message',
      lhs = ']]',
      desc = 'Next message',
      fn = with(moves.to, 1, moves.is_message),
    },
    {
      action = 'previous_message',
      lhs = '[[',
      desc = 'Previous message',
      fn = with(moves.to, -1, moves.is_message),
    },
    {
      action = 'next_approval',
      lhs = ']a',
      desc = 'Next approval',
      fn = with(moves.to_approval, 1),
    },
    {
      action = 'previous_approval',
      lhs = '[a',
      desc = 'Previous approval',
      fn = with(moves.to_approval, -1),
    },
    { action = 'diff', lhs = 'gd', desc = 'Show the change as a diff', fn = with(opening.diff) },
    { action = 'file', lhs = 'gf', desc = 'Open the file', fn = with(opening.file) },
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
        chat.bars:draw()
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

return M

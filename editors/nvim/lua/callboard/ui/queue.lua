-- What waits to be read by the agent: it can be changed, dropped, or told the agent now.
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---Those who wait have been read by now, or are gone: what was to be changed is not there any more.
local GONE = { promptTaken = true, promptNotFound = true }

---@param chat callboard.Conversation
---@param target callboard.Target
---@return callboard.Item?
local function waiting(chat, target)
  if target.kind == 'outgoing' then
    notify.info('it is on its way to the server; it can be changed as soon as it is there')
    return nil
  end
  for _, item in ipairs(chat.session and chat.session.transcript.queue or {}) do
    if item.seq == target.item.seq then
      if item.author and item.author.kind ~= 'person' then
        notify.info('no person has said it; it can only wait')
        return nil
      end
      return item
    end
  end
  notify.info('it does not wait any more: the agent has it, or somebody dropped it')
end

---@param err table
---@param doing string
local function failed(err, doing)
  if GONE[err.data and err.data.kind] then
    return notify.info('it does not wait any more: the agent has it, or somebody dropped it')
  end
  notify.failed(doing, err)
end

---@param chat callboard.Conversation
---@param item callboard.Item
---@param done fun(err: table?)
local function remove(chat, item, done)
  local app = require('callboard.app').get()
  app:request('session/queueRemove', {
    sessionId = chat.id,
    eventSeq = item.seq,
    idempotencyKey = app:new_key(),
  }, done)
end

---What a prompt that waits holds besides its text: files and images that go along.
---@param chat callboard.Conversation
---@param seq integer
---@param done fun(err: table?, blocks: callboard.Content[]?)
local function besides(chat, seq, done)
  local function find(cursor)
    local params = { sessionId = chat.id, cursor = cursor }
    require('callboard.app').get():request('session/queue', params, function(err, page)
      if err then
        return done(err)
      end
      for _, prompt in ipairs(page.data) do
        if prompt.eventSeq == seq then
          return done(
            nil,
            vim.tbl_filter(function(block)
              return block.type ~= 'text'
            end, prompt.content)
          )
        end
      end
      if page.nextCursor then
        return find(page.nextCursor)
      end
      done({ code = 0, message = 'it does not wait any more', data = { kind = 'promptNotFound' } })
    end)
  end
  find()
end

---Gives a prompt that waits another text. What else it holds stays.
---@param chat callboard.Conversation
---@param seq integer
---@param words string
---@param done fun(err: table?)
local function update(chat, seq, words, done)
  local app = require('callboard.app').get()
  besides(chat, seq, function(err, blocks)
    if err then
      return done(err)
    end
    app:request('session/queueUpdate', {
      sessionId = chat.id,
      eventSeq = seq,
      content = vim.list_extend({ { type = 'text', text = text.utf8(words) } }, blocks),
      idempotencyKey = app:new_key(),
    }, done)
  end)
end

---Changes what waits, in a window of its own: `:w` puts it back, `q` or `:q!` leaves it as it was.
---@param chat callboard.Conversation
---@param target callboard.Target
function M.edit(chat, target)
  local item = waiting(chat, target)
  if not item then
    return
  end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].buftype = 'acwrite'
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].swapfile = false
  vim.b[buf].callboard = true
  pcall(vim.api.nvim_buf_set_name, buf, ('callboard://queue/%s/%d'):format(chat.id, item.seq))
  vim.bo[buf].undolevels = -1
  vim.api.nvim_buf_set_lines(
    buf,
    0,
    -1,
    false,
    vim.split(text.utf8(item.text), '\n', { plain = true })
  )
  vim.bo[buf].undolevels = -123456
  vim.bo[buf].modified = false
  vim.bo[buf].filetype = 'callboard-input'
  local width = math.max(40, math.min(100, vim.o.columns - 8))
  local height = math.max(3, math.min(vim.api.nvim_buf_line_count(buf) + 2, vim.o.lines - 8))
  local win = vim.api.nvim_open_win(buf, true, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = width,
    height = height,
    style = 'minimal',
    border = 'rounded',
    title = ' What waits: :w puts it back, q leaves it ',
  })
  vim.wo[win].wrap = true
  local function close()
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
  end
  vim.keymap.set(
    'n',
    'q',
    close,
    { buffer = buf, nowait = true, desc = 'Callboard: Leave it as it was' }
  )
  vim.api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buf,
    callback = function()
      local words = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
      if vim.trim(words) == '' then
        return notify.warn('it is empty. q leaves it as it was; x on its line in the chat drops it')
      end
      vim.bo[buf].modified = false
      close()
      update(chat, item.seq, words, function(err)
        if err then
          failed(err, 'change what waits')
          chat.input:give_back(words)
        end
      end)
    end,
  })
end

---@param chat callboard.Conversation
---@param target callboard.Target
function M.drop(chat, target)
  local item = waiting(chat, target)
  if not item then
    return
  end
  remove(chat, item, function(err)
    if err then
      return failed(err, 'drop what waits')
    end
    require('callboard.model.queue').remember(chat.input.history, item.text)
    notify.info('dropped; <Up> in the input brings it back')
  end)
end

---Tells the running agent at its next step what would have waited for the end of the turn.
---@param chat callboard.Conversation
---@param target callboard.Target
function M.now(chat, target)
  local item = waiting(chat, target)
  if not item then
    return
  elseif item.steer then
    return notify.info('it is told at the next step of the agent')
  elseif not chat.session.transcript.turn then
    return notify.info('no turn runs that could be steered; it is read next')
  end
  besides(chat, item.seq, function(err, blocks)
    if err then
      return failed(err, 'send it now')
    end
    remove(chat, item, function(fault)
      if fault then
        return failed(fault, 'send it now')
      end
      chat:say({ text = item.text, delivery = 'steer', alone = blocks })
    end)
  end)
end

---Goes to what waits in the chat of a session.
---@param session_id string
function M.open(session_id)
  local chat = require('callboard.ui.chat')
  chat.open(session_id, { focus = false })
  require('callboard.ui.chat_moves').to_queue(session_id)
end

return M

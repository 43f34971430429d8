-- Which chats there are and which one is in view; what `:Callboard` does with them.
local buffers = require('callboard.ui.buffers')
local context = require('callboard.context')
local layout = require('callboard.ui.layout')
local notify = require('callboard.notify')

local M = {}

---@type table<string, callboard.Conversation> by session
local by_id = {}
---@type callboard.Conversation[] those that have no session yet
local begun = {}
---@type callboard.Conversation? the one that was in view last
local last
---@type string? its session, when its buffers were wiped out
local last_id

---@return callboard.App
local function app()
  return require('callboard.app').get()
end

---@return callboard.Conversation[]
local function all()
  return vim.list_extend(vim.tbl_values(by_id), begun)
end

---@param buf integer
---@return callboard.Conversation?
function M.of(buf)
  for _, each in ipairs(all()) do
    if each.buf == buf or each.input.buf == buf then
      return each
    end
  end
end

---The one in view in this tab page.
---@return callboard.Conversation?
local function in_view()
  local here = M.of(vim.api.nvim_get_current_buf())
  if here then
    return here
  end
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local found = M.of(vim.api.nvim_win_get_buf(win))
    if found then
      return found
    end
  end
end

---@return callboard.Conversation?
local function present()
  return in_view() or last
end

---The session whose chat is in view, or was last.
---@return string?
function M.current()
  local chat = present()
  if chat then
    return chat.id
  end
  local running = require('callboard.app').peek()
  return running and last_id and running.sessions.by_id[last_id] and last_id or nil
end

---Whether the chat of a session is in view in this tab page.
---@param session_id string
---@return boolean
function M.visible(session_id)
  local chat = by_id[session_id]
  return chat ~= nil and buffers.visible(chat.buf)
end

---@param session_id string
---@return callboard.Conversation?
function M.of_session(session_id)
  return by_id[session_id]
end

---@param chat callboard.Conversation
local function forget(chat)
  if chat.id then
    by_id[chat.id] = nil
  end
  begun = vim.tbl_filter(function(other)
    return other ~= chat
  end, begun)
  if last == chat then
    last, last_id = nil, chat.id
  end
  chat:close()
end

---@param opts { id: string?, title: string? }
---@return callboard.Conversation
local function create(opts)
  local chat = require('callboard.ui.conversation').new(app(), opts)
  if opts.id then
    by_id[opts.id] = chat
  else
    begun[#begun + 1] = chat
  end
  require('callboard.ui.chat_events').watch(chat, function()
    forget(chat)
  end)
  return chat
end

---A chat has got its session.
---@param chat callboard.Conversation
function M.began(chat)
  begun = vim.tbl_filter(function(other)
    return other ~= chat
  end, begun)
  by_id[chat.id] = chat
  buffers.rename(chat.buf, 'callboard://chat/' .. chat.id)
  buffers.rename(chat.input.buf, 'callboard://input/' .. chat.id)
  require('callboard.status').refresh()
end

---Brings back the chats whose windows were restored, as from `:mksession`: they have names, and nothing else.
---Lists that were shown have no more than that, and go.
function M.restore()
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    local name = vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win))
    local kind, id = name:match('^callboard://(%a+)/(ses_[%w_]+)$')
    if (kind == 'chat' or kind == 'input') and not by_id[id] then
      require('callboard.ui.chat_events').dress(create({ id = id }))
    end
  end
  vim.schedule(function() -- not in an autocommand: their windows go, too
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      local ours = vim.startswith(vim.api.nvim_buf_get_name(buf), 'callboard://')
      if ours and not vim.b[buf].callboard then
        pcall(vim.api.nvim_buf_delete, buf, { force = true })
      end
    end
  end)
end

---The file that the person is at, and the lines that they have selected.
---@return { buf: integer, first: integer?, last: integer? }?
local function place()
  local buf = vim.api.nvim_get_current_buf()
  if not context.is_file(buf) then
    return nil
  end
  if vim.fn.mode():match('^[vV\22]') then
    local one, two = vim.fn.line('v'), vim.fn.line('.')
    return { buf = buf, first = math.min(one, two), last = math.max(one, two) }
  end
  return { buf = buf }
end

---@param chat callboard.Conversation
---@param go 'input'|'chat'|nil where the cursor goes
local function show(chat, go)
  local from = place()
  if from then
    chat.chips:at(from.buf, from.first, from.last)
  end
  local before = last
  last = chat
  if chat.id then
    chat:attach()
  end
  chat:renew()
  local win = layout.transcript(chat.buf)
  local input = layout.input(chat.input.buf, win)
  require('callboard.ui.folds').make(chat.view, win)
  if go then
    if vim.fn.mode():match('^[vV\22]') then
      vim.cmd('normal! \27')
    end
    vim.api.nvim_set_current_win(go == 'input' and input or win)
  end
  chat.bars:draw()
  if before and before ~= chat and #vim.fn.win_findbuf(before.buf) == 0 then
    before:rest()
  end
  require('callboard.status').refresh()
end

---@return callboard.Conversation the one in view, the last one, or a new one
local function some()
  return present() or begun[1] or create({ id = M.current() })
end

---Shows the chat of a session.
---@param id string
---@param opts { item: string?, approval: string?, focus: boolean? }? `item`, or else `approval`: goes there
function M.open(id, opts)
  opts = opts or {}
  local chat = by_id[id] or create({ id = id })
  local there = opts.item or opts.approval
  show(chat, opts.focus ~= false and (there and 'chat' or 'input') or nil)
  if there then
    require('callboard.ui.chat_moves').go_to(chat, opts.item, opts.approval)
  end
end

---Begins a session in the folder of the editor.
---@param opts { title: string? }?
function M.new(opts)
  local chat = create({ title = opts and opts.title })
  show(chat, 'input')
  chat:begin()
end

---Shows the chat and goes to its input.
function M.focus()
  show(some(), 'input')
end

---Takes the chat of this tab page out of view. What was typed stays.
function M.hide()
  local wins = {}
  for _, kind in ipairs({ 'input', 'chat' }) do
    wins[#wins + 1] = layout.find(kind)
  end
  layout.close(wins)
end

function M.toggle()
  if in_view() then
    M.hide()
  else
    M.focus()
  end
end

---@param range { first: integer, last: integer }
---@return string
local function text_of(range)
  return table.concat(vim.api.nvim_buf_get_lines(0, range.first - 1, range.last, false), '\n')
end

---Sends a text, the lines of a range, or else what stands in the input.
---@param opts { text: string?, range: { first: integer, last: integer }?, delivery: callboard.Delivery? }
function M.send(opts)
  local words, lines = vim.trim(opts.text or ''), opts.range and text_of(opts.range) or ''
  local chat = some()
  chat:renew()
  local text = words ~= '' and lines ~= '' and words .. '\n\n' .. lines or words .. lines
  if vim.trim(text) == '' then
    if chat.input:is_empty() then
      return notify.warn(
        'there is nothing to send: write something into the input, or after the command'
      )
    end
    text = chat.input:take()
  end
  if not in_view() then
    show(chat)
  end
  chat:say({ text = text, delivery = opts.delivery })
end

---@param range { first: integer, last: integer }?
---@param path string?
---@return callboard.ContextItem?
local function wanted(range, path)
  if path then
    local full = vim.fn.fnamemodify(vim.fn.expand(path), ':p')
    if not vim.uv.fs_stat(full) then
      notify.warn(('there is no file %s'):format(path))
      return nil
    end
    return { uri = vim.uri_from_fname(full) }
  end
  local item =
    context.item(vim.api.nvim_get_current_buf(), range and range.first, range and range.last)
  if not item then
    notify.warn('this buffer is no file: send its lines with :%Callboard send, or name a file')
  end
  return item
end

---Adds a file, or lines of it, to the next prompt.
---@param opts { range: { first: integer, last: integer }?, path: string? }
function M.add(opts)
  local item = wanted(opts.range, opts.path)
  if item then
    local chat = some()
    if chat:may_see(item) then
      chat.chips:add(item)
    end
    show(chat)
  end
end

---Asks about this file, or lines of it; without words the input waits for them.
---@param opts { text: string?, range: { first: integer, last: integer }? }
function M.ask(opts)
  local item = wanted(opts.range)
  if not item then
    return
  end
  local chat = some()
  if not chat:may_see(item) then
    return
  elseif opts.text then
    show(chat)
    chat:say({ text = opts.text, context = { item } })
  else
    chat.chips:add(item)
    show(chat, 'input')
  end
end

return M

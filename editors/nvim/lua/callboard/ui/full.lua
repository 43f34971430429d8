-- All of a text that the chat shows only in part: in a buffer of its own that nobody writes. What the log keeps
-- apart because it is large is read a piece at a time.
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---@param name string
---@param filetype string?
---@return integer buf
local function show(name, filetype)
  vim.api.nvim_set_current_win(require('callboard.ui.buffers').file_window())
  vim.cmd('belowright split')
  local buf = require('callboard.ui.buffers').create('callboard://text/' .. name, 'callboard-text')
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].modifiable = false
  vim.api.nvim_win_set_buf(0, buf)
  require('callboard.ui.buffers').window_options(
    0,
    { wrap = false, spell = false, list = false, winbar = '' }
  )
  if filetype then
    vim.bo[buf].syntax = filetype
  end
  vim.keymap.set(
    'n',
    'q',
    '<Cmd>bwipeout<CR>',
    { buffer = buf, nowait = true, desc = 'Callboard: Close' }
  )
  return buf
end

---@param buf integer
---@param first integer
---@param last integer
---@param lines string[]
local function set(buf, first, last, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, first, last, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
end

---Appends a large value, piece by piece, as long as somebody looks.
---@param buf integer
---@param ref callboard.BlobRef
---@param done fun()
local function append(buf, ref, done)
  local app = require('callboard.app').get()
  local offset, rest = 0, ''
  local function piece()
    app:request('blob/read', { blobId = ref.blobId, offset = offset }, function(err, got)
      if not vim.api.nvim_buf_is_valid(buf) then
        return
      elseif err then
        return notify.failed('read all of it', err)
      end
      local bytes = vim.base64.decode(got.dataBase64)
      offset = offset + #bytes
      local chunk = rest .. bytes
      local over = got.eof or #bytes == 0
      local cut = over and #chunk or (chunk:match('^.*()\n') or 0)
      rest = chunk:sub(cut + 1)
      if cut > 0 then
        local count = vim.api.nvim_buf_line_count(buf)
        set(buf, count, count, text.lines((chunk:sub(1, cut):gsub('\n$', ''))))
      end
      if over then
        done()
      else
        piece()
      end
    end)
  end
  piece()
end

---@param buf integer
---@param refs callboard.BlobRef[]
local function append_all(buf, refs)
  local ref = table.remove(refs, 1)
  if ref then
    append(buf, ref, function()
      append_all(buf, refs)
    end)
  end
end

---@param arguments table
---@param indent string
---@return string[]
local function arguments_of(arguments, indent)
  local names = vim.tbl_keys(arguments)
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  local shown = {}
  for _, name in ipairs(names) do
    local value = arguments[name]
    if type(value) == 'table' then
      shown[#shown + 1] = ('%s%s:'):format(indent, text.one_line(tostring(name)))
      vim.list_extend(shown, arguments_of(value, indent .. '  '))
    else
      local lines = text.lines(tostring(value))
      if #lines == 1 then
        shown[#shown + 1] = ('%s%s: %s'):format(indent, text.one_line(tostring(name)), lines[1])
      else
        shown[#shown + 1] = ('%s%s:'):format(indent, text.one_line(tostring(name)))
        for _, line in ipairs(lines) do
          shown[#shown + 1] = indent .. '  ' .. line
        end
      end
    end
  end
  return shown
end

---All of an item: of a call, what it was asked and what it gave.
---@param item callboard.Item
function M.item(_, item)
  local shown = {}
  local diff
  if item.call then
    shown = { text.one_line(item.call.title) }
    vim.list_extend(shown, arguments_of(item.call.arguments or {}, '  '))
    if item.call.rawArguments then
      vim.list_extend(shown, text.lines(item.call.rawArguments))
    end
    shown[#shown + 1] = ''
  end
  local refs = {}
  for pointer, ref in vim.spairs(item.blobs or {}) do
    if pointer == '/text' or pointer:match('^/content/%d+/text$') then
      refs[#refs + 1] = ref
    end
  end
  if #refs == 0 and item.result and item.result.blob then
    refs = { item.result.blob }
  end
  for _, change in ipairs(item.result and item.result.changes or {}) do
    diff = true
    vim.list_extend(shown, text.lines((change.diff:gsub('\n$', ''))))
  end
  if #refs == 0 then
    vim.list_extend(shown, text.lines((item.text:gsub('\n$', ''))))
  end
  local buf = show(item.id, diff and 'diff' or nil)
  set(buf, 0, -1, shown)
  append_all(buf, refs)
end

---All of what an approval is about.
---@param approval callboard.Approval
function M.approval(approval)
  local subject = approval.subject or {}
  local shown = { text.one_line(approval.title), '' }
  if approval.reason then
    vim.list_extend(shown, text.lines(approval.reason))
    shown[#shown + 1] = ''
  end
  if subject.command then
    shown[#shown + 1] = 'in ' .. text.one_line(subject.cwd or '')
    vim.list_extend(shown, text.lines(subject.command))
  end
  for _, change in ipairs(subject.changes or {}) do
    vim.list_extend(shown, text.lines((change.diff:gsub('\n$', ''))))
  end
  if subject.arguments then
    vim.list_extend(shown, arguments_of(subject.arguments, ''))
  end
  if subject.message then
    vim.list_extend(shown, text.lines(subject.message))
  end
  set(show(approval.approvalId, subject.changes and 'diff' or nil), 0, -1, shown)
end

return M

-- What files hold, in buffers and on disk. Texts are as in `model/patch`; they are decoded as the server does
-- it, so that its diffs fit.
local Patch = require('callboard.model.patch')
local text = require('callboard.model.text')

local M = {}

---Larger files are not read at once; neither does the server.
M.MAX_BYTES = 16 * 1024 * 1024
local SNIFF = 8192
---No system has longer paths (bytes).
local LONGEST = 4096

---How a text is spelled as bytes.
---@class callboard.Form
---@field encoding string
---@field mark string its byte order mark

---@class callboard.FileNow
---@field text callboard.Text? nil: there is no such file
---@field buf integer? the loaded buffer that it was taken from
---@field form callboard.Form? of what is on disk
---@field fault string? why it cannot be told

-- The longest first: the mark of UTF-32 begins with that of UTF-16.
local MARKS = {
  { '\255\254\0\0', 'utf-32le' },
  { '\0\0\254\255', 'utf-32be' },
  { '\239\187\191', 'utf-8' },
  { '\255\254', 'utf-16le' },
  { '\254\255', 'utf-16be' },
}

---@param data string
---@return string? decoded
---@return callboard.Form?
local function decode(data)
  for _, mark in ipairs(MARKS) do
    if vim.startswith(data, mark[1]) then
      local rest = data:sub(#mark[1] + 1)
      local decoded = mark[2] == 'utf-8' and rest or vim.iconv(rest, mark[2], 'utf-8')
      if decoded and text.utf8(decoded) == decoded then
        return decoded, { encoding = mark[2], mark = mark[1] }
      end
      break
    end
  end
  if data:sub(1, SNIFF):find('\0', 1, true) then
    return nil
  elseif text.utf8(data) == data then
    return data, { encoding = 'utf-8', mark = '' }
  end
  return vim.iconv(data, 'latin1', 'utf-8'), { encoding = 'latin1', mark = '' }
end

---What is on disk.
---@param path string
---@return callboard.FileNow
function M.on_disk(path)
  local stat = vim.uv.fs_stat(path)
  if not stat then
    return {}
  elseif stat.type ~= 'file' then
    return { fault = 'it is not a file but a ' .. stat.type }
  elseif stat.size > M.MAX_BYTES then
    return { fault = ('it has more than %d MiB'):format(M.MAX_BYTES / 1024 / 1024) }
  end
  local file, fault = io.open(path, 'rb')
  local data = file and file:read('*a')
  if file then
    file:close()
  end
  if not data then
    return { fault = fault or 'it cannot be read' }
  end
  local decoded, form = decode(data)
  if not decoded then
    return { fault = 'it is not text' }
  end
  return { text = Patch.text(decoded), form = form }
end

---The loaded buffer of a file, by its name or by whatever else leads to the same file.
---@param path string
---@return integer?
function M.buffer(path)
  local real = vim.uv.fs_realpath(path) or path
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' then
      local name = vim.api.nvim_buf_get_name(buf)
      if name == path or (name ~= '' and (vim.uv.fs_realpath(name) or name) == real) then
        return buf
      end
    end
  end
end

local ENDS = { unix = '\n', dos = '\r\n', mac = '\r' }

---The text of a buffer, as it would be written.
---@param buf integer
---@return callboard.Text
function M.of_buffer(buf)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local count = vim.api.nvim_buf_call(buf, vim.fn.wordcount)
  if count.bytes == 0 then
    return {}
  end
  local line_end = ENDS[vim.bo[buf].fileformat]
  for i, line in ipairs(lines) do
    lines[i] = line:gsub('\n', '\0')
  end
  local mended = vim.bo[buf].modified and vim.bo[buf].fixendofline and not vim.bo[buf].binary
  local ended = vim.bo[buf].endofline or mended
  return Patch.text(table.concat(lines, line_end) .. (ended and line_end or ''))
end

---What a file holds: in its buffer, if it is loaded, else on disk.
---@param path string
---@return callboard.FileNow
function M.now(path)
  local buf = M.buffer(path)
  if buf then
    return { text = M.of_buffer(buf), buf = buf }
  end
  return M.on_disk(path)
end

---@param path string
---@return string real with all links resolved, as far as it exists
local function resolved(path)
  local rest, here = '', vim.fs.normalize(path, { expand_env = false })
  while true do
    local real = vim.uv.fs_realpath(here)
    if real then
      return rest == '' and real or (real:gsub('/$', '') .. rest)
    end
    local parent = vim.fs.dirname(here)
    if parent == here then
      return path
    end
    rest, here = '/' .. vim.fs.basename(here) .. rest, parent
  end
end

---Where a path leads to, if that is in one of the folders.
---@param path string
---@param folders string[]
---@return string? real
function M.inside(path, folders)
  if
    path:find('\0', 1, true)
    or #path > LONGEST
    or path:find('/%.%./')
    or path:sub(1, 1) ~= '/' and not path:match('^%a:')
  then
    return nil
  end
  if vim.uv.fs_lstat(path) and not vim.uv.fs_stat(path) then
    return nil -- a link to what is not there: whatever is written goes where nobody looked
  end
  local real = resolved(path)
  for _, folder in ipairs(folders) do
    local root = vim.uv.fs_realpath(folder)
    if root and (vim.startswith(real, root:gsub('/$', '') .. '/')) then
      return real
    end
  end
end

---Whether Neovim may read a file anew into its buffer without asking.
---@param buf integer
---@return boolean
function M.may_reload(buf)
  return not vim.bo[buf].modified
    and vim.api.nvim_buf_call(buf, function()
      return vim.o.autoread
    end)
end

---Reads the file of a buffer anew, if it is another on disk, and nothing in the buffer would be lost.
---@param buf integer
function M.refresh(buf)
  if M.may_reload(buf) then
    vim.cmd(('silent! checktime %d'):format(buf))
  end
end

---Whether a buffer has what its file has.
---@param buf integer
---@return boolean
function M.in_step(buf)
  local disk = M.on_disk(vim.api.nvim_buf_get_name(buf))
  return disk.text ~= nil and Patch.content(disk.text) == Patch.content(M.of_buffer(buf))
end

return M

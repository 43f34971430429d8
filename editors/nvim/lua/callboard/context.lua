-- What the editor knows and an agent may see: files, selections, diagnostics, buffers that are not written.
local text = require('callboard.model.text')

local M = {}

---@param buf integer
---@return boolean an ordinary file of this machine
local function is_file(buf)
  return vim.api.nvim_buf_is_valid(buf)
    and vim.bo[buf].buftype == ''
    and vim.api.nvim_buf_get_name(buf) ~= ''
    and not vim.api.nvim_buf_get_name(buf):match('^%w+://')
end

---A file, or lines of it, for a prompt.
---@param buf integer
---@param first integer? 1-based
---@param last integer?
---@return callboard.ContextItem?
function M.item(buf, first, last)
  if not is_file(buf) then
    return nil
  end
  local range
  if first and last then
    range = {
      start = { line = first - 1, character = 0 },
      ['end'] = { line = last, character = 0 },
    }
  end
  return { uri = vim.uri_from_bufnr(buf), range = range }
end

---@param item callboard.ContextItem
---@return string as lua/x.lua:3-9
function M.label(item)
  local path = vim.fn.fnamemodify(vim.uri_to_fname(item.uri), ':~:.')
  if item.range then
    return ('%s:%d-%d'):format(path, item.range.start.line + 1, item.range['end'].line)
  end
  return path
end

---The diagnostics of a buffer as a text that is sent along; nil where there are none.
---@param buf integer
---@return callboard.EmbeddedResource?
function M.diagnostics(buf)
  if not is_file(buf) then
    return nil
  end
  local lines = {}
  for _, diagnostic in ipairs(vim.diagnostic.get(buf)) do
    local severity = vim.diagnostic.severity[diagnostic.severity] or 'INFO'
    lines[#lines + 1] = ('%d:%d %s %s'):format(
      diagnostic.lnum + 1,
      diagnostic.col + 1,
      severity:lower(),
      text.one_line(diagnostic.message, 300)
    )
    if #lines == 100 then
      break
    end
  end
  if #lines == 0 then
    return nil
  end
  return {
    type = 'resource',
    uri = vim.uri_from_bufnr(buf) .. '#diagnostics',
    mimeType = 'text/plain',
    text = table.concat(lines, '\n'),
  }
end

---The buffer that holds a file, whatever its path is written like.
---@param path string
---@return integer?
local function buffer_of(path)
  local real = vim.uv.fs_realpath(path)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and is_file(buf) then
      local name = vim.api.nvim_buf_get_name(buf)
      if name == path or (real ~= nil and vim.uv.fs_realpath(name) == real) then
        return buf
      end
    end
  end
end

local ENDS = { unix = '\n', dos = '\r\n', mac = '\r' }

---The text of a buffer as it would be written.
---@param buf integer
---@return string
local function text_of(buf)
  local ending = ENDS[vim.bo[buf].fileformat] or '\n'
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local whole = table.concat(lines, ending)
  if whole == '' and #lines <= 1 then
    return ''
  end
  local ends = vim.bo[buf].endofline or (vim.bo[buf].fixendofline and not vim.bo[buf].binary)
  return ends and whole .. ending or whole
end

---The beginning of a line, in characters as LSP counts them; whole characters only.
---@param line string
---@param units integer of UTF-16
---@return string
local function up_to(line, units)
  local at = 1
  while at <= #line do
    local byte = line:byte(at)
    units = units - (byte >= 0xF0 and 2 or 1)
    if units < 0 then
      break
    end
    at = at + (byte < 0x80 and 1 or byte < 0xE0 and 2 or byte < 0xF0 and 3 or 4)
  end
  return line:sub(1, at - 1)
end

---The part of a text from `start` up to but without `end`, and never beyond it.
---@param whole string well-formed
---@param range callboard.Range
---@return string
function M.cut(whole, range)
  local first, last = range.start, range['end']
  if last.line < first.line or (last.line == first.line and last.character <= first.character) then
    return ''
  end
  local picked, number = {}, 0
  for line, ending in whole:gmatch('([^\r\n]*)(\r?\n?)') do
    if number > last.line or line .. ending == '' then
      break
    end
    local cut = line .. ending
    if number == last.line then
      cut = up_to(cut, last.character)
    end
    if number == first.line then
      cut = cut:sub(#up_to(cut, first.character) + 1)
    end
    if number >= first.line then
      picked[#picked + 1] = cut
    end
    number = number + 1
  end
  return table.concat(picked)
end

---Answers `client/readFile`: the text of a buffer as it is, written or not.
---@param params callboard.ReadFileParams
---@param reply fun(result: callboard.ReadFileResult?, err: table?)
function M.read(params, reply)
  local ok, path = pcall(vim.uri_to_fname, params.uri)
  local buf = ok and buffer_of(path)
  if not buf then
    return reply(nil, {
      code = -31702,
      message = ('no buffer of this editor holds %s'):format(tostring(params.uri)),
      data = { kind = 'pathNotFound', retryable = false },
    })
  end
  local whole = text.utf8(text_of(buf))
  reply({
    text = params.range and M.cut(whole, params.range) or whole,
    version = vim.api.nvim_buf_get_changedtick(buf),
  })
end

M.is_file = is_file

return M

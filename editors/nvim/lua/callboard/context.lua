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

---Answers `client/readFile`: the text of a buffer as it is, written or not.
---@param params callboard.ReadFileParams
---@param reply fun(result: callboard.ReadFileResult?, err: table?)
function M.read(params, reply)
  local ok, path = pcall(vim.uri_to_fname, params.uri)
  local buf = ok and vim.fn.bufnr('^' .. vim.fn.escape(path, '*?[]{}\\,^$') .. '$') or -1
  if buf == -1 or not vim.api.nvim_buf_is_loaded(buf) or not is_file(buf) then
    return reply(nil, {
      code = -31702,
      message = ('no buffer of this editor holds %s'):format(tostring(params.uri)),
    })
  end
  local first, last = 0, -1
  if params.range then
    first = params.range.start.line
    last = params.range['end'].line + (params.range['end'].character > 0 and 1 or 0)
  end
  local content = vim.api.nvim_buf_get_lines(buf, first, last, false)
  local joined = table.concat(content, '\n')
  if last == -1 and vim.bo[buf].endofline then
    joined = joined .. '\n'
  end
  reply({ text = text.utf8(joined), version = vim.api.nvim_buf_get_changedtick(buf) })
end

M.is_file = is_file

return M

-- How a text gets into a buffer, or into a file that no buffer holds.
local Patch = require('callboard.model.patch')

local M = {}

---The lines of a text as a buffer has them: without line ends.
---@param content callboard.Text
---@param drop_cr boolean
---@return string[]
local function lines_of(content, drop_cr)
  return vim.tbl_map(function(line)
    line = line:gsub('\n$', '')
    if drop_cr then
      line = line:gsub('\r$', '')
    end
    return (line:gsub('%z', '\n'))
  end, content)
end

---@param content callboard.Text
---@return boolean
local function all_dos(content)
  for _, line in ipairs(content) do
    if line:sub(-1) == '\n' and line:sub(-2) ~= '\r\n' then
      return false
    end
  end
  return true
end

---Lines for a buffer that only shows a text.
---@param content callboard.Text
---@return string[]
function M.shown(content)
  return lines_of(content, #content > 0 and all_dos(content))
end

---@param content callboard.Text
---@return string[]
local function mac_lines(content)
  local data = Patch.content(content):gsub('\r$', '')
  return vim.split(data, '\r', { plain = true })
end

---@param buf integer
---@param content callboard.Text
local function put(buf, content)
  local dos = vim.bo[buf].fileformat == 'dos'
  if dos and not all_dos(content) then
    vim.bo[buf].fileformat = 'unix'
    local kept = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
    for i, line in ipairs(kept) do
      kept[i] = line .. '\r'
    end
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, kept)
    dos = false
  end
  local mac = vim.bo[buf].fileformat == 'mac'
  local new = mac and mac_lines(content) or lines_of(content, dos)
  local old = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local function joined(lines)
    local whole = vim.tbl_map(function(line)
      return (line:gsub('\n', '\0'))
    end, lines)
    return table.concat(whole, '\n') .. '\n'
  end
  if #new == 0 then
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, {})
  else
    local hunks = vim.diff(joined(old), joined(new), { result_type = 'indices' })
    for i = #hunks, 1, -1 do
      local from, count, new_from, new_count = unpack(hunks[i])
      local first = count == 0 and from or from - 1
      local piece = vim.list_slice(new, new_from, new_from + new_count - 1)
      vim.api.nvim_buf_set_lines(buf, first, first + count, false, piece)
    end
    local ended = content[#content]:sub(-1) == (mac and '\r' or '\n')
    vim.bo[buf].endofline = ended
    if not ended then
      vim.bo[buf].fixendofline = false
    end
  end
end

---Puts a text into a buffer: as one change that can be undone, and only where lines differ, so that marks and
---cursors stay. Raises what Neovim raises, as for a buffer that is not modifiable.
---@param buf integer
---@param content callboard.Text
function M.put(buf, content)
  local readonly = vim.bo[buf].readonly
  vim.bo[buf].readonly = false -- or Neovim would warn, and wait for a second
  local ok, fault = pcall(put, buf, content)
  vim.bo[buf].readonly = readonly
  if not ok then
    error(fault, 0)
  end
end

---Writes a text to a file that no buffer holds, beside it first: there is never half of it.
---@param path string with all links resolved
---@param content callboard.Text
---@param form callboard.Form?
---@return string? fault
function M.write(path, content, form)
  local data = Patch.content(content)
  if form and form.encoding ~= 'utf-8' then
    local encoded = vim.iconv(data, 'utf-8', form.encoding)
    if not encoded then
      return ('it cannot be spelled in %s'):format(form.encoding)
    end
    data = encoded
  end
  data = (form and form.mark or '') .. data
  local stat = vim.uv.fs_stat(path)
  local made, unmade = pcall(vim.fn.mkdir, vim.fs.dirname(path), 'p')
  if not made then
    return (tostring(unmade):gsub('^.-:(E%d+:)', '%1'))
  end
  local beside = ('%s.callboard-%d'):format(path, vim.uv.hrtime() % 1e9)
  local fd, fault = vim.uv.fs_open(beside, 'wx', stat and stat.mode % 4096 or 420)
  if not fd then
    return fault
  end
  local written, why = vim.uv.fs_write(fd, data, 0)
  if stat then
    vim.uv.fs_fchmod(fd, stat.mode % 4096)
  end
  vim.uv.fs_close(fd)
  local moved
  if written == #data then
    moved, why = vim.uv.fs_rename(beside, path)
  end
  if not moved then
    vim.uv.fs_unlink(beside)
    return why or 'the disk took only a part of it'
  end
end

---Writes a buffer without asking anything, and without what would change the text on its way.
---@param buf integer
---@return string? fault
function M.save(buf)
  if vim.bo[buf].readonly then
    return 'it is read-only'
  end
  local ignored = vim.o.eventignore
  vim.o.eventignore = (ignored == '' and '' or ignored .. ',') .. 'BufWritePre,FileWritePre'
  local ok, fault = pcall(vim.api.nvim_buf_call, buf, function()
    vim.cmd('silent keepjumps lockmarks write!')
  end)
  vim.o.eventignore = ignored
  if not ok then
    return (tostring(fault):gsub('^.-:(E%d+:)', '%1'))
  end
end

return M

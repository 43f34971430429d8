-- What a file was before a session changed it, and how that is put back: into its buffer, so that it can be
-- undone, or on disk, and never where the session had no business.
local Changes = require('callboard.model.changes')
local files = require('callboard.files')
local text = require('callboard.model.text')
local writing = require('callboard.writing')

local M = {}

---@class callboard.Comparison
---@field now callboard.FileNow what the change was looked for in: a buffer's text, or the disk's
---@field before callboard.Before
---@field aside boolean? the change is on disk, and not in the buffer, which has changes of its own

---@param a callboard.Before
---@param b callboard.Before
---@return boolean
local function better(a, b)
  return #a.failed < #b.failed or a.taken > b.taken
end

---@param file callboard.ChangedFile
---@return callboard.Comparison
function M.compare(file)
  local buf = files.buffer(file.path)
  if buf then
    files.refresh(buf)
    local now = { text = files.of_buffer(buf), buf = buf }
    local before = Changes.before(now.text, file.chain)
    if #before.failed == 0 then
      return { now = now, before = before }
    end
    local disk = files.on_disk(file.path)
    local other = not disk.fault and Changes.before(disk.text, file.chain)
    if other and better(other, before) then
      return { now = disk, before = other, aside = true }
    end
    return { now = now, before = before }
  end
  local now = files.on_disk(file.path)
  if now.fault then
    return { now = now, before = { failed = {}, taken = 0 } }
  end
  return { now = now, before = Changes.before(now.text, file.chain) }
end

---Writes a file, and has its buffer take it in if it may.
---@param file callboard.ChangedFile
---@param real string
---@param content callboard.Text
---@param form callboard.Form?
---@return string? fault
local function write(file, real, content, form)
  local fault = writing.write(real, content, form)
  local buf = not fault and files.buffer(file.path)
  if buf then
    files.refresh(buf)
  end
  return fault
end

---What could not be taken back.
---@param comparison callboard.Comparison
---@return string? as "hunk 2 (lines 4 to 9) was changed since"
function M.missed(comparison)
  local failed = comparison.before.failed
  if comparison.now.fault then
    return comparison.now.fault
  elseif #failed == 0 then
    return nil
  elseif #failed > 2 then
    return ('%s, and %d more'):format(failed[1].why, #failed - 1)
  end
  return table.concat(
    vim.tbl_map(function(untaken)
      return untaken.why
    end, failed),
    ', '
  )
end

---Nobody needs the buffer of a file that is no more, unless they look at it.
---@param buf integer?
local function drop(buf)
  if buf and not vim.bo[buf].modified and #vim.fn.win_findbuf(buf) == 0 then
    pcall(vim.api.nvim_buf_delete, buf, {})
  end
end

---@param file callboard.ChangedFile
---@param comparison callboard.Comparison
---@param real string
---@return string? fault
local function remove(file, comparison, real)
  local buf = files.buffer(file.path)
  if comparison.now.text == nil then
    return nil
  elseif #comparison.before.failed > 0 then
    return 'it was changed since it was made, so it stays'
  elseif comparison.aside or (buf and vim.bo[buf].modified) then
    return 'its buffer has changes that are not written, so it stays'
  end
  local gone, fault = vim.uv.fs_unlink(real)
  if not gone then
    return fault
  end
  drop(buf)
end

---@param comparison callboard.Comparison
---@return string? fault
---@return string? note
local function into_buffer(comparison)
  local buf = assert(comparison.now.buf)
  local kept = vim.bo[buf].modified
  local in_step = not kept and files.in_step(buf)
  local ok, fault = pcall(writing.put, buf, comparison.before.text)
  if not ok then
    return (tostring(fault):gsub('^.-:(E%d+:)', '%1'))
  elseif kept then
    return nil, 'the buffer had changes that were not written, so it was not written'
  elseif not in_step then
    return nil, 'the file on disk is another than the buffer was, so it was not written'
  end
  local unwritten = writing.save(buf)
  return nil, unwritten and ('it was not written: ' .. unwritten)
end

---@param file callboard.ChangedFile
---@param comparison callboard.Comparison
---@param real string
---@return string? fault
---@return string? note
local function put(file, comparison, real)
  local before = comparison.before
  if before.text == nil then
    return remove(file, comparison, real)
  elseif comparison.now.text == nil then
    return write(file, real, before.text)
  elseif before.taken == 0 then
    return M.missed(comparison) or 'nothing of the change is in it any more'
  elseif comparison.now.buf then
    return into_buffer(comparison)
  end
  local fault = write(file, real, before.text, comparison.now.form)
  if fault then
    return fault
  end
  if comparison.aside then
    return nil, 'that is on disk; your buffer has changes of its own and was left alone'
  end
end

---A file that was moved goes back to its name.
---@param file callboard.ChangedFile
---@param comparison callboard.Comparison
---@param real string
---@param folders string[]
---@return string? fault
local function move_back(file, comparison, real, folders)
  local old = files.inside(file.old_path, folders)
  if not old then
    return ('%s is not in a folder of the session'):format(text.one_line(file.old_path, 80))
  elseif vim.uv.fs_stat(old) then
    return ('there is another %s now'):format(text.one_line(file.old_path, 80))
  elseif #comparison.before.failed > 0 or comparison.now.text == nil then
    return M.missed(comparison) or 'the file is not there any more'
  end
  local fault = writing.write(old, comparison.before.text, comparison.now.form)
  if fault then
    return fault
  end
  local gone, why = vim.uv.fs_unlink(real)
  return not gone and why or nil
end

---Puts back what a file was before. What cannot be put back stays as it is.
---@param tracked callboard.Tracked
---@param file callboard.ChangedFile with its diffs whole
---@return string? fault nothing was done
---@return string? note what was done is not all
function M.put_back(tracked, file)
  if file.state == 'rejected' then
    return 'it was put back already'
  elseif file.operation == 'nothing' then
    return nil
  end
  local folders = tracked:folders_of(file)
  local real = files.inside(file.path, folders)
  if not real then
    return 'it is not in a folder of the session, or a link leads out of it'
  end
  local comparison = M.compare(file)
  if comparison.now.fault then
    return comparison.now.fault
  elseif file.old_path then
    return move_back(file, comparison, real, folders)
  end
  local missed = M.missed(comparison)
  local fault, note = put(file, comparison, real)
  if fault then
    return fault
  end
  missed = missed and 'not taken back: ' .. missed
  return nil, missed and note and (missed .. '; ' .. note) or missed or note
end

return M

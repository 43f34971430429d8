-- Our buffers: scratch ones with names of their own, that nothing writes, swaps or takes for a file.
local M = {}

---Has a buffer of ours that is unloaded wiped out: `:bdelete` takes its options and mappings, and what came back
---by its name would be a file that nobody can write.
---@param buf integer
function M.wipe_unloaded(buf)
  vim.api.nvim_create_autocmd('BufUnload', {
    buffer = buf,
    callback = function()
      vim.schedule(function()
        if vim.api.nvim_buf_is_valid(buf) and not vim.api.nvim_buf_is_loaded(buf) then
          pcall(vim.api.nvim_buf_delete, buf, { force = true })
        end
      end)
    end,
  })
end

---A buffer of that name. Where another one has it (as after `:mksession`, which brings names back without what
---is behind them), that one is taken over, unless somebody uses it: then the name gets a number.
---@param name string as callboard://chat/ID
---@param filetype string
---@return integer
function M.create(name, filetype)
  local buf
  local taken = vim.fn.bufnr('^' .. vim.fn.escape(name, '*?[]{}\\,^$') .. '$')
  if taken ~= -1 and not vim.b[taken].callboard then
    buf = taken
  else
    buf = vim.api.nvim_create_buf(false, true)
    local free, number = name, 2
    while not pcall(vim.api.nvim_buf_set_name, buf, free) do
      free, number = ('%s#%d'):format(name, number), number + 1
      if number > 100 then
        break
      end
    end
  end
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].swapfile = false
  vim.bo[buf].buflisted = false
  vim.bo[buf].undolevels = -1
  vim.b[buf].callboard = true
  vim.bo[buf].filetype = filetype
  M.wipe_unloaded(buf)
  return buf
end

---Gives a buffer of ours another name, and leaves nothing behind that has the old one.
---@param buf integer
---@param name string
function M.rename(buf, name)
  local old = vim.api.nvim_buf_get_name(buf)
  if not pcall(vim.api.nvim_buf_set_name, buf, name) then
    return
  end
  local left = vim.fn.bufnr('^' .. vim.fn.escape(old, '*?[]{}\\,^$') .. '$')
  if left ~= -1 and left ~= buf then
    vim.api.nvim_buf_delete(left, { force = true })
  end
end

---The window of this tab page that shows the buffer.
---@param buf integer
---@return integer?
function M.window(buf)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_win_get_buf(win) == buf then
      return win
    end
  end
end

---Whether the buffer is in view, in the tab page that is.
---@param buf integer
---@return boolean
function M.visible(buf)
  return M.window(buf) ~= nil
end

---A window for files: the last one that shows an ordinary buffer, or a new one.
---@return integer
function M.file_window()
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  local candidates = vim.api.nvim_tabpage_list_wins(0)
  table.insert(candidates, 1, previous)
  for _, win in ipairs(candidates) do
    if win ~= 0 and vim.api.nvim_win_is_valid(win) then
      local buf = vim.api.nvim_win_get_buf(win)
      if
        vim.api.nvim_win_get_config(win).relative == ''
        and not vim.b[buf].callboard
        and vim.bo[buf].buftype == ''
      then
        return win
      end
    end
  end
  vim.cmd('topleft vnew')
  return vim.api.nvim_get_current_win()
end

---Sets options of a window that shows one of our buffers, for that window alone.
---@param win integer
---@param options table<string, any>
function M.window_options(win, options)
  for name, value in pairs(options) do
    vim.api.nvim_set_option_value(name, value, { win = win, scope = 'local' })
  end
end

return M

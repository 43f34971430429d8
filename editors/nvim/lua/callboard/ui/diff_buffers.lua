-- The buffers of a diff: scratch ones that show a version of a file, and those of files, which come into a window
-- without a question.
local buffers = require('callboard.ui.buffers')
local text = require('callboard.model.text')

local M = {}

---The scratch buffer of that name, if a diff shows it.
---@param name string
---@return integer?
local function own(name)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.b[buf].callboard_diff and vim.api.nvim_buf_get_name(buf) == name then
      return buf
    end
  end
end

---A scratch buffer that shows a text.
---@param name string
---@param content string[] lines
---@param like string? path of the file that it is a version of
---@return integer
function M.scratch(name, content, like)
  name = text.one_line(name)
  local buf = own(name) or buffers.create(name, 'callboard-diff')
  vim.b[buf].callboard_diff = true
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].readonly = false
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, content)
  vim.bo[buf].modified = false
  vim.bo[buf].modifiable = false
  vim.bo[buf].readonly = true
  local filetype = like and vim.filetype.match({ filename = like, contents = content })
  if filetype then
    vim.bo[buf].syntax = filetype
  end
  return buf
end

---Shows a buffer in a window. If it is loaded with that, nothing asks what to do about a swap file, and an
---autocommand of somebody that fails is no reason not to show it.
---@param win integer
---@param buf integer
function M.load(win, buf)
  local autocmd = vim.api.nvim_create_autocmd('SwapExists', {
    callback = function()
      if vim.v.swapchoice == '' then
        vim.v.swapchoice = 'o'
        local name = text.one_line(vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ':~:.'), 60)
        require('callboard.notify').warn(
          ('%s has a swap file: it is read-only here. :edit it to recover.'):format(name)
        )
      end
    end,
  })
  -- `nvim_win_set_buf` would show what there is to say about a swap file, and ask nobody.
  local ok, fault = pcall(vim.api.nvim_win_call, win, function()
    vim.cmd(('silent keepalt hide buffer %d'):format(buf))
  end)
  vim.api.nvim_del_autocmd(autocmd)
  if not ok then
    if vim.api.nvim_win_get_buf(win) ~= buf then
      error(fault, 0)
    end
    require('callboard.log').warn('%s', tostring(fault))
  end
end

---Has a version of a file in the colors of the file.
---@param version integer
---@param file integer
function M.color(version, file)
  if vim.treesitter.highlighter.active[file] then
    local language = vim.treesitter.language.get_lang(vim.bo[file].filetype)
    pcall(vim.treesitter.start, version, language)
  elseif vim.bo[file].syntax ~= '' then
    vim.bo[version].syntax = vim.bo[file].syntax
  end
end

return M

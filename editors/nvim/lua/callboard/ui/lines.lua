-- Lines as chunks of text with highlights, and how they get into a buffer.
local M = {}

---A chunk is a text and the highlight group that it has.
---@alias callboard.Chunk { [1]: string, [2]: string? }
---@class callboard.Line: callboard.Chunk[]
---@field target any? what the line stands for, for keys that act on it

M.namespace = vim.api.nvim_create_namespace('callboard')

---@param line callboard.Line
---@return string
function M.text(line)
  local parts = {}
  for i, chunk in ipairs(line) do
    parts[i] = chunk[1]
  end
  -- The texts come from everywhere: no line of a buffer may hold a line end.
  return (table.concat(parts):gsub('\n', ' '))
end

---Plain lines with one highlight.
---@param text string untrusted
---@param hl string?
---@param indent string?
---@return callboard.Line[]
function M.of(text, hl, indent)
  return vim.tbl_map(function(line)
    return { { (indent or '') .. line, hl } }
  end, require('callboard.model.text').lines(text))
end

---Puts lines in place of those from `first` up to but without `last` (0-based, as in the API). The buffer need
---not be modifiable.
---@param buf integer
---@param first integer
---@param last integer
---@param lines callboard.Line[]
function M.set(buf, first, last, lines)
  local modifiable = vim.bo[buf].modifiable
  vim.bo[buf].modifiable = true
  if last ~= first then
    vim.api.nvim_buf_clear_namespace(buf, M.namespace, first, last == -1 and -1 or last)
  end
  vim.api.nvim_buf_set_lines(buf, first, last, false, vim.tbl_map(M.text, lines))
  vim.bo[buf].modifiable = modifiable
  vim.bo[buf].modified = false
  M.color(buf, first, lines)
end

---@param buf integer
---@param first integer
---@param lines callboard.Line[]
function M.color(buf, first, lines)
  for i, line in ipairs(lines) do
    local column = 0
    for _, chunk in ipairs(line) do
      if chunk[2] and #chunk[1] > 0 then
        vim.api.nvim_buf_set_extmark(buf, M.namespace, first + i - 1, column, {
          end_col = column + #chunk[1],
          hl_group = chunk[2],
          strict = false,
        })
      end
      column = column + #chunk[1]
    end
  end
end

return M

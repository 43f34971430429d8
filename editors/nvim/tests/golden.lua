-- Texts as they were agreed on. CALLBOARD_GOLDEN=write writes what is there now: read the difference.
local M = {}

local folder = vim.fs.joinpath(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)), 'golden')

---@param name string
---@param text string
---@return string wanted
function M.check(name, text)
  local path = vim.fs.joinpath(folder, name .. '.txt')
  if vim.env.CALLBOARD_GOLDEN == 'write' then
    vim.fn.mkdir(folder, 'p')
    local file = assert(io.open(path, 'w'))
    file:write(text, '\n')
    file:close()
    return text
  end
  local file = assert(io.open(path), 'there is no ' .. path .. '; CALLBOARD_GOLDEN=write makes it')
  local wanted = file:read('*a'):gsub('\n$', '')
  file:close()
  return wanted
end

return M

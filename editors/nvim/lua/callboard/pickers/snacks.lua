local M = {}
function M.installed() return false end
return M

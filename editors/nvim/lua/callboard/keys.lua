-- Mappings of our buffers: by action, as the user has set them, and told by `g?`.
local M = {}

---@class callboard.Key
---@field action string its name in `keymaps`
---@field lhs string|string[] the default; several do the same
---@field desc string
---@field fn function
---@field mode? string|string[] normal unless given
---@field expr? boolean

---The option that makes a mapping a buffer's own; its name changes with 0.12.
local BUFFER = vim.fn.has('nvim-0.12') == 1 and 'buf' or 'buffer'

---@class callboard.ToldKey
---@field lhs string
---@field desc string
---@field modes string[]
---@field hidden table<string, table> by mode: the mapping that stood there before, and comes back

---Mappings by buffer and group, for `g?`.
---@type table<integer, { group: string, keys: callboard.ToldKey[] }[]>
local told = {}

---@param group 'chat'|'input'|'approval'|'diff'|'list'
---@param key callboard.Key
---@return string[] none where it is disabled
function M.lhs_of(group, key)
  local set = require('callboard.config').get().keymaps[group]
  if set == false then
    return {}
  end
  local lhs = set[key.action]
  if lhs == false then
    return {}
  end
  lhs = lhs or key.lhs
  return type(lhs) == 'table' and lhs or { lhs }
end

---@param buf integer
---@param mode string
---@param lhs string
---@return table? as of `maparg`, of the buffer's own mapping
local function mapping_of(buf, mode, lhs)
  local found = vim.api.nvim_buf_call(buf, function()
    return vim.fn.maparg(lhs, mode, false, true)
  end)
  return found.buffer == 1 and found or nil
end

---@param desc string
---@return string
local function described(desc)
  return 'Callboard: ' .. desc
end

---What a key does; a fault in it is told in a line.
---@param key callboard.Key
---@return function
local function guarded(key)
  return function()
    local ok, result = require('callboard.notify').guard(key.fn)
    return ok and result or ''
  end
end

---Sets the keys of a group, in place of those that it had. What others had mapped in this buffer, as for a
---language server, comes back with `unset`.
---@param buf integer
---@param group 'chat'|'input'|'approval'|'diff'|'list'
---@param keys callboard.Key[]
function M.set(buf, group, keys)
  M.unset(buf, group)
  local listed = {}
  for _, key in ipairs(keys) do
    local modes = type(key.mode) == 'table' and key.mode or { key.mode or 'n' }
    for _, lhs in ipairs(M.lhs_of(group, key)) do
      local hidden = {}
      for _, mode in ipairs(modes) do
        hidden[mode] = mapping_of(buf, mode, lhs)
      end
      vim.keymap.set(modes, lhs, guarded(key), {
        [BUFFER] = buf,
        desc = described(key.desc),
        expr = key.expr,
        nowait = true, -- there are global ones that begin like ours: `gr` and `grn`
        silent = true,
      })
      listed[#listed + 1] = { lhs = lhs, desc = key.desc, modes = modes, hidden = hidden }
    end
  end
  told[buf] = told[buf] or {}
  table.insert(told[buf], { group = group, keys = listed })
end

---@param buf integer
---@param group string
function M.unset(buf, group)
  for i, entry in ipairs(told[buf] or {}) do
    if entry.group == group then
      for _, key in ipairs(entry.keys) do
        for _, mode in ipairs(key.modes) do
          local there = mapping_of(buf, mode, key.lhs)
          if there and there.desc == described(key.desc) then
            vim.keymap.del(mode, key.lhs, { [BUFFER] = buf })
            if key.hidden[mode] then
              vim.api.nvim_buf_call(buf, function()
                vim.fn.mapset(mode, false, key.hidden[mode])
              end)
            end
          end
        end
      end
      table.remove(told[buf], i)
      return
    end
  end
end

---What the mappings of a buffer do, for its help.
---@param buf integer
---@return string[]
function M.lines(buf)
  local lines, width = {}, 8
  for _, entry in ipairs(told[buf] or {}) do
    for _, key in ipairs(entry.keys) do
      width = math.max(width, vim.fn.strdisplaywidth(key.lhs))
    end
  end
  for _, entry in ipairs(told[buf] or {}) do
    if #lines > 0 then
      lines[#lines + 1] = ''
    end
    for _, key in ipairs(entry.keys) do
      local modes = table.concat(key.modes)
      local mode = modes == 'n' and '' or (' (%s)'):format(modes)
      lines[#lines + 1] = (' %-' .. width .. 's  %s%s'):format(key.lhs, key.desc, mode)
    end
  end
  return lines
end

---@param buf integer
function M.forget(buf)
  told[buf] = nil
end

---Shows what the mappings of the current buffer do, in a float that any of `q`, `<Esc>` and `g?` closes.
function M.help()
  local buf = vim.api.nvim_get_current_buf()
  local lines = M.lines(buf)
  lines[#lines + 1] = ''
  lines[#lines + 1] = ' :help callboard has the rest.'
  local shown = vim.tbl_map(function(line)
    return { { line } }
  end, lines)
  local win = require('callboard.ui.float').open('Keys', shown, 'callboard-help')
  vim.keymap.set('n', 'g?', function()
    vim.api.nvim_win_close(win, true)
  end, { [BUFFER] = vim.api.nvim_win_get_buf(win), nowait = true })
end

return M

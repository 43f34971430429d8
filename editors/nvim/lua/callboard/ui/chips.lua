-- What goes along with the next prompt: files, or lines of them. One of them follows the person: the file that
-- they were at; the others they added.
local config = require('callboard.config')
local context = require('callboard.context')

local M = {}

---@class callboard.Chips
---@field private roots fun(): string[] folders that the agent may see
---@field private added callboard.ContextItem[]
---@field private here callboard.ContextItem? where the person is
---@field private here_buf integer?
---@field private told string? label of the place that was sent, or sent away, last
local Chips = {}
Chips.__index = Chips

---@param roots fun(): string[] folders that the agent may see; what is elsewhere is not offered
---@return callboard.Chips
function M.new(roots)
  return setmetatable({ roots = roots, added = {} }, Chips)
end

---@param path string
---@return string
local function real(path)
  -- Of a file that is not written yet, the folder is.
  local folder = vim.uv.fs_realpath(vim.fs.dirname(path))
  return vim.uv.fs_realpath(path)
    or (folder and vim.fs.joinpath(folder, vim.fs.basename(path)))
    or path
end

---@param path string
---@return boolean
function Chips:is_seen(path)
  path = real(path)
  return vim.iter(self.roots()):any(function(root)
    return vim.startswith(path, (real(root):gsub('/$', '')) .. '/')
  end)
end

---@param a callboard.ContextItem
---@param b callboard.ContextItem
---@return boolean
local function same(a, b)
  return a.uri == b.uri and vim.deep_equal(a.range, b.range)
end

---The person is, or was just now, at a place of a buffer.
---@param buf integer
---@param first integer?
---@param last integer?
function Chips:at(buf, first, last)
  if not config.get().context.selection then
    return
  end
  local item = context.item(buf, first, last)
  if item then
    self.here, self.here_buf = item, buf
  end
end

---The person comes from a buffer to the input.
---@param buf integer
---@return boolean that is another place than before
function Chips:come_from(buf)
  if buf == self.here_buf then
    return false -- what they had selected there is known
  end
  self:at(buf)
  return buf == self.here_buf
end

---@param item callboard.ContextItem
function Chips:add(item)
  for _, other in ipairs(self.added) do
    if same(other, item) then
      return
    end
  end
  table.insert(self.added, item)
end

---@private
---@return callboard.ContextItem? the place, unless it was told already
function Chips:place()
  local here = self.here
  if not here or context.label(here) == self.told then
    return nil
  elseif not self:is_seen(vim.uri_to_fname(here.uri)) then
    return nil -- the server would refuse all of the prompt
  end
  for _, other in ipairs(self.added) do
    if other.uri == here.uri then
      return nil -- the person has said which part of it matters
    end
  end
  return here
end

---@return callboard.ContextItem[]
function Chips:items()
  local items = vim.list_extend({}, self.added)
  items[#items + 1] = self:place()
  return items
end

---@return string[]
function Chips:labels()
  return vim.tbl_map(context.label, self:items())
end

---Takes away the last one.
---@return boolean there was one
function Chips:remove()
  if self:place() then
    self.told = context.label(self.here)
    return true
  end
  return table.remove(self.added) ~= nil
end

---@param items callboard.ContextItem[]?
function Chips:give_back(items)
  self.told = nil
  for _, item in ipairs(items or {}) do
    if not (self.here and same(item, self.here)) then
      self:add(item)
    end
  end
end

---Files that a text names with @, where they are there.
---@private
---@param said string
---@param cwd string
---@return callboard.ContextItem[]
function Chips:named(said, cwd)
  local found = {}
  for path in (' ' .. said):gmatch('[%s%(%["\']@([^%s]+)') do
    path = path:gsub('[%.,;:!%?%)%]"\']+$', '')
    if path ~= '' then
      local whole = path:sub(1, 1) == '/' and path or vim.fs.joinpath(cwd, path)
      local full = vim.fs.normalize(whole, { expand_env = false })
      local stat = vim.uv.fs_stat(full)
      if stat and stat.type == 'file' and self:is_seen(full) then
        found[#found + 1] = { uri = vim.uri_from_fname(full) }
      end
    end
  end
  return found
end

---What is sent for what was said; the chips are used up by it.
---@param said callboard.Said
---@param cwd string where the session works
---@return callboard.Prompt
function Chips:prompt(said, cwd)
  local items = vim.list_extend({}, said.context or {})
  local function add(item)
    for _, other in ipairs(items) do
      if same(other, item) then
        return
      end
    end
    items[#items + 1] = item
  end
  for _, item in ipairs(self:items()) do
    add(item)
  end
  for _, item in ipairs(self:named(said.text, cwd)) do
    add(item)
  end
  local content
  if
    config.get().context.diagnostics
    and self.here_buf
    and vim.api.nvim_buf_is_valid(self.here_buf)
  then
    content = { context.diagnostics(self.here_buf) }
  end
  self.told = self.here and context.label(self.here) or nil
  self.added = {}
  return {
    text = said.text,
    delivery = said.delivery,
    context = #items > 0 and items or nil,
    content = content,
  }
end

return M

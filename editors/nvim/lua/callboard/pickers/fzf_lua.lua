-- Picks by fzf-lua.
local M = {}

---@return boolean
function M.installed()
  return (pcall(require, 'fzf-lua'))
end

---A line of fzf begins with its number, which is not shown.
---@param line string?
---@return integer?
local function number_of(line)
  return tonumber((line or ''):match('^(%d+)\t'))
end

---fzf runs in a terminal, whose mode is left only after its window has gone; whatever opens next may want to
---be in insert mode.
---@param fn fun()
local function after_terminal(fn)
  if vim.api.nvim_get_mode().mode ~= 't' then
    return vim.schedule(fn)
  end
  vim.api.nvim_create_autocmd(
    'ModeChanged',
    { pattern = 't:*', once = true, callback = vim.schedule_wrap(fn) }
  )
end

---@param opts callboard.Pick
---@return table?
local function previewer(opts)
  if not opts.preview then
    return nil
  end
  local Previewer = require('fzf-lua.previewer.builtin').base:extend()
  function Previewer:new(o, ...)
    Previewer.super.new(self, o, ...)
    return setmetatable(self, Previewer)
  end
  function Previewer:populate_preview_buf(line)
    local buf = self:get_tmp_buffer()
    local item = opts.items[number_of(line)]
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, item and opts.preview(item) or {})
    self:set_preview_buf(buf)
  end
  return Previewer
end

---@param opts callboard.Pick
function M.pick(opts)
  local lines = {}
  for i, line in ipairs(require('callboard.pickers').lines(opts)) do
    lines[i] = ('%d\t%s'):format(i, (line:gsub('\t', ' ')))
  end
  local function with_selected(fn)
    return function(selected)
      local item = selected and opts.items[number_of(selected[1])]
      if item then
        after_terminal(function()
          fn(item)
        end)
      end
    end
  end
  local actions = { ['default'] = with_selected(opts.on_choice) }
  for _, action in pairs(opts.actions or {}) do
    actions['ctrl-' .. action.key] = with_selected(action.fn)
  end
  require('fzf-lua').fzf_exec(lines, {
    prompt = '> ',
    winopts = { title = (' %s '):format(opts.title) },
    previewer = previewer(opts),
    fzf_opts = { ['--delimiter'] = '\t', ['--with-nth'] = '2..', ['--no-multi'] = true },
    actions = actions,
  })
end

return M

-- Picks by telescope.nvim.
local M = {}

---@return boolean
function M.installed()
  return (pcall(require, 'telescope.pickers'))
end

---@param opts callboard.Pick
---@return table?
local function previewer(opts)
  if not opts.preview then
    return nil
  end
  return require('telescope.previewers').new_buffer_previewer({
    title = 'More of it',
    define_preview = function(self, entry)
      vim.api.nvim_buf_set_lines(self.state.bufnr, 0, -1, false, opts.preview(entry.value))
    end,
  })
end

---@param opts callboard.Pick
function M.pick(opts)
  local actions = require('telescope.actions')
  local state = require('telescope.actions.state')
  local lines = require('callboard.pickers').lines(opts)
  local entries = {}
  for i, item in ipairs(opts.items) do
    entries[i] = { item = item, line = lines[i] }
  end
  require('telescope.pickers')
    .new({}, {
      prompt_title = opts.title,
      finder = require('telescope.finders').new_table({
        results = entries,
        entry_maker = function(entry)
          return { value = entry.item, display = entry.line, ordinal = entry.line }
        end,
      }),
      sorter = require('telescope.config').values.generic_sorter({}),
      previewer = previewer(opts),
      attach_mappings = function(prompt, map)
        local function with_selected(fn)
          return function()
            local entry = state.get_selected_entry()
            actions.close(prompt)
            if entry then
              -- It leaves insert mode as it closes; whatever opens now may want to be in it.
              vim.schedule(function()
                fn(entry.value)
              end)
            end
          end
        end
        actions.select_default:replace(with_selected(opts.on_choice))
        for _, action in pairs(opts.actions or {}) do
          for _, mode in ipairs({ 'i', 'n' }) do
            map(
              mode,
              ('<C-%s>'):format(action.key),
              with_selected(action.fn),
              { desc = action.desc, nowait = true }
            )
          end
        end
        return true
      end,
    })
    :find()
end

return M

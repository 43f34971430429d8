-- Defines the command and the <Plug> mappings, and loads nothing: the rest comes with the first use.
if vim.g.loaded_callboard then
  return
end
vim.g.loaded_callboard = 1

vim.api.nvim_create_user_command('Callboard', function(call)
  require('callboard.commands').run(call)
end, {
  nargs = '*',
  range = true,
  bang = true,
  desc = 'Agents in the editor: sessions, chat, approvals, changes',
  complete = function(...)
    return require('callboard.commands').complete(...)
  end,
})

-- The windows of a chat, brought back by `:mksession`.
vim.api.nvim_create_autocmd('SessionLoadPost', {
  callback = function()
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_get_name(buf):find('^callboard://') then
        return require('callboard.ui.chat').restore()
      end
    end
  end,
})

local plugs = {
  toggle = 'Show or hide the chat',
  new = 'Begin a session',
  sessions = 'Pick a session',
  next = 'Go to the next approval',
  agents = 'Show the agents of this session',
  tasks = 'Show the task board of this session',
  changes = 'Show the files that this session changed',
  interrupt = 'Stop what runs here',
}
for name, desc in pairs(plugs) do
  vim.keymap.set('n', ('<Plug>(callboard-%s)'):format(name), function()
    require('callboard.commands').invoke(name)
  end, { desc = 'Callboard: ' .. desc })
end

-- An operator in normal mode, the selection in visual mode.
vim.keymap.set({ 'n', 'x' }, '<Plug>(callboard-send)', function()
  return require('callboard.commands').operator()
end, { expr = true, desc = 'Callboard: send text to the chat' })

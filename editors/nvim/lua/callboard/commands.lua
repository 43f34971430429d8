-- `:Callboard {sub}`: what each does, and what completes it. Each loads what it needs when it is used.
local M = {}

---@class callboard.Call
---@field args string[]
---@field rest string all arguments as they were written
---@field range { first: integer, last: integer }? 1-based lines
---@field bang boolean

---@class callboard.Command
---@field desc string
---@field run fun(call: callboard.Call)
---@field complete (fun(lead: string): string[])?

local function chat()
  return require('callboard.ui.chat')
end

local function sessions()
  return require('callboard.ui.sessions')
end

local function approval()
  return require('callboard.ui.approval')
end

---@param name string
---@return fun(lead: string): string[]
local function from(name)
  return function()
    return sessions()[name]()
  end
end

---@param values string[]
---@return fun(): string[]
local function one_of(values)
  return function()
    return values
  end
end

---The session that a command is about: the one whose chat is in view, or was last.
---@param fn fun(session_id: string)
local function with_session(fn)
  local id = chat().current()
  if id then
    return fn(id)
  end
  require('callboard.notify').warn(
    'no session is open. :Callboard new begins one, :Callboard sessions shows those there are.'
  )
end

---@type table<string, callboard.Command>
M.commands = {
  new = {
    desc = 'Begin a session in this folder',
    run = function(call)
      chat().new({ title = call.rest ~= '' and call.rest or nil })
    end,
  },
  open = {
    desc = 'Open a session by its id, or the beginning of it',
    run = function(call)
      sessions().open(call.args[1])
    end,
    complete = from('ids'),
  },
  sessions = {
    desc = 'Pick a session; with words, search what was said',
    run = function(call)
      if call.rest ~= '' then
        sessions().search(call.rest)
      else
        sessions().pick()
      end
    end,
  },
  resume = {
    desc = 'Open the newest session of this folder',
    run = function()
      sessions().resume()
    end,
  },
  rename = {
    desc = 'Give the session another title',
    run = function(call)
      with_session(function(id)
        sessions().rename(id, call.rest ~= '' and call.rest or nil)
      end)
    end,
  },
  archive = {
    desc = 'Hide the session from lists; with !, show it again',
    run = function(call)
      with_session(function(id)
        sessions().archive(id, not call.bang)
      end)
    end,
  },
  delete = {
    desc = 'Delete the session for good, after asking',
    run = function(call)
      with_session(function(id)
        sessions().delete(id, call.bang)
      end)
    end,
  },
  fork = {
    desc = 'A new session with the history of this one, or with that up to the turn of an id',
    run = function(call)
      with_session(function(id)
        sessions().fork(id, call.args[1])
      end)
    end,
  },
  undo = {
    desc = 'Go back to before the last turn; files stay as they are',
    run = function()
      with_session(function(id)
        sessions().rewind(id)
      end)
    end,
  },
  export = {
    desc = 'Show the session as Markdown, in a buffer to be written where you like',
    run = function()
      with_session(function(id)
        sessions().export(id)
      end)
    end,
  },
  chat = {
    desc = 'Show the chat and go to its input',
    run = function()
      chat().focus()
    end,
  },
  toggle = {
    desc = 'Show or hide the chat',
    run = function()
      chat().toggle()
    end,
  },
  send = {
    desc = 'Send the range, or the words that follow',
    run = function(call)
      chat().send({ text = call.rest, range = call.range })
    end,
  },
  add = {
    desc = 'Add this file, or the range of it, to the next prompt',
    run = function(call)
      chat().add({ range = call.range, path = call.rest ~= '' and call.rest or nil })
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'file')
    end,
  },
  ask = {
    desc = 'Ask about this file, or the range of it',
    run = function(call)
      chat().ask({ text = call.rest ~= '' and call.rest or nil, range = call.range })
    end,
  },
  steer = {
    desc = 'Tell the agent something at its next step, while it works',
    run = function(call)
      with_session(function()
        chat().send({ text = call.rest, delivery = 'steer' })
      end)
    end,
  },
  queue = {
    desc = 'Show what waits for the end of the turn, to change or drop it',
    run = function()
      with_session(function(id)
        require('callboard.ui.queue').open(id)
      end)
    end,
  },
  interrupt = {
    desc = 'Stop the turn; `queue` drops what waits, `tree` stops its agents, too',
    run = function(call)
      with_session(function(id)
        require('callboard.ui.interrupt').run(id, call.args[1] or 'turn')
      end)
    end,
    complete = one_of({ 'turn', 'queue', 'tree' }),
  },
  stop = {
    desc = 'Stop the turn and all agents below it',
    run = function()
      with_session(function(id)
        require('callboard.ui.interrupt').run(id, 'tree')
      end)
    end,
  },
  approve = {
    desc = 'Allow what waits: once, for the session, or always',
    run = function(call)
      local number = ({ once = 1, session = 2, always = 3 })[call.args[1] or 'once']
      if not number then
        return require('callboard.notify').warn('approve takes once, session or always')
      end
      approval().answer_current(number)
    end,
    complete = one_of({ 'once', 'session', 'always' }),
  },
  deny = {
    desc = 'Deny what waits; words that follow tell the agent why',
    run = function(call)
      approval().answer_current(call.rest ~= '' and 5 or 4, call.rest ~= '' and call.rest or nil)
    end,
  },
  next = {
    desc = 'Go to the next approval that waits',
    run = function()
      approval().next()
    end,
  },
  changes = {
    desc = 'List the files that the session changed',
    run = function()
      with_session(function(id)
        require('callboard.ui.changes').open(id)
      end)
    end,
  },
  diff = {
    desc = 'Show how a file was changed, this one unless named',
    run = function(call)
      with_session(function(id)
        require('callboard.ui.changes').diff(id, call.rest ~= '' and call.rest or nil)
      end)
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'file')
    end,
  },
  accept = {
    desc = 'Accept the change of the file that is shown; with !, all of them',
    run = function(call)
      require('callboard.ui.diff').accept(call.bang)
    end,
  },
  reject = {
    desc = 'Put back what the file that is shown was before; with !, all of them',
    run = function(call)
      require('callboard.ui.diff').reject(call.bang)
    end,
  },
  agents = {
    desc = 'Show the agents of the session',
    run = function()
      with_session(function(id)
        require('callboard.ui.agents').open(id)
      end)
    end,
  },
  tasks = {
    desc = 'Show the task board of the session',
    run = function()
      with_session(function(id)
        require('callboard.ui.tasks').open(id)
      end)
    end,
  },
  group = {
    desc = 'Write to the members of the group',
    run = function(call)
      with_session(function(id)
        require('callboard.ui.tasks').say(id, call.rest ~= '' and call.rest or nil)
      end)
    end,
  },
  model = {
    desc = 'Pick the model of the session',
    run = function(call)
      with_session(function(id)
        sessions().model(id, call.args[1])
      end)
    end,
    complete = from('models'),
  },
  mode = {
    desc = 'What the agent may do: ask, plan or work',
    run = function(call)
      with_session(function(id)
        sessions().mode(id, call.args[1])
      end)
    end,
    complete = one_of({ 'ask', 'plan', 'work' }),
  },
  usage = {
    desc = 'Tokens and cost of the session and its agents',
    run = function()
      with_session(function(id)
        sessions().usage(id)
      end)
    end,
  },
  log = {
    desc = "Show the plugin's log",
    run = function()
      vim.cmd.tabedit(vim.fn.fnameescape(require('callboard.log').path()))
      vim.bo.readonly = true
    end,
  },
  restart = {
    desc = 'End the server and start it again',
    run = function()
      require('callboard.app').get().server:restart()
    end,
  },
  health = {
    desc = 'Look at what Callboard needs',
    run = function()
      vim.cmd.checkhealth('callboard')
    end,
  },
  help = {
    desc = 'Show the help',
    run = function()
      if pcall(vim.cmd.help, 'callboard.txt') then
        return
      end
      -- Where nobody has made tags of it, the page itself is there.
      local page = vim.api.nvim_get_runtime_file('doc/callboard.txt', false)[1]
      if not page then
        return require('callboard.notify').warn('the help page is missing; install the plugin anew')
      end
      vim.cmd('split ' .. vim.fn.fnameescape(page))
      vim.bo.filetype, vim.bo.readonly, vim.bo.modifiable = 'help', true, false
    end,
  },
}

---@return string[]
function M.names()
  local names = vim.tbl_keys(M.commands)
  table.sort(names)
  return names
end

---@param name string
---@param call callboard.Call
local function dispatch(name, call)
  local command = M.commands[name]
  if not command then
    local near = vim.tbl_filter(function(other)
      return vim.startswith(other, name:sub(1, 2))
    end, M.names())
    local hint = #near > 0 and (' Do you mean %s?'):format(table.concat(near, ', ')) or ''
    return require('callboard.notify').warn(('there is no :Callboard %s.%s'):format(name, hint))
  end
  require('callboard.notify').guard(command.run, call)
end

---@param name string
---@param args string[]?
function M.invoke(name, args)
  args = args or {}
  dispatch(name, { args = args, rest = table.concat(args, ' '), bang = false })
end

---What the command does.
---@param call table as `nvim_create_user_command` gives it
function M.run(call)
  -- `:Callboard accept!` is what one types when one thinks of a command of its own.
  local name, bang = (call.fargs[1] or 'toggle'):match('^(.-)(!?)$')
  dispatch(name, {
    args = vim.list_slice(call.fargs, 2),
    rest = vim.trim((call.args:gsub('^%s*%S+', '', 1))),
    range = call.range > 0 and { first = call.line1, last = call.line2 } or nil,
    bang = call.bang or bang == '!',
  })
end

---@param lead string
---@param line string
---@param column integer? of the cursor
---@return string[]
function M.complete(lead, line, column)
  -- A command may be abbreviated, and have a range before it.
  local typed = line:sub(1, column or #line):match('%u%a*!?%s+(.*)$')
  local words = vim.split(vim.trim(typed or ''), '%s+')
  local candidates
  if #words < 1 or (#words == 1 and (lead ~= '' or words[1] == '')) then
    candidates = M.names()
  else
    local command = M.commands[words[1]]
    candidates = command and command.complete and command.complete(lead) or {}
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

---For `<Plug>(callboard-send)`: what a motion covers, or what is selected, is sent.
---@return string keys
function M.operator()
  vim.o.operatorfunc = "v:lua.require'callboard.commands'.operate"
  return 'g@'
end

---What `operator` has Vim call.
function M.operate()
  local first, last = vim.fn.line("'["), vim.fn.line("']")
  dispatch('send', { args = {}, rest = '', range = { first = first, last = last }, bang = false })
end

return M

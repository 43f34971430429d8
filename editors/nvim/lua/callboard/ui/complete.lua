-- What completes after `@` in the input: members of the room, buffers, files. Files are listed beside the
-- editor; until the list is there, folders are looked at one by one.
local M = {}

---Files of a folder that are kept for completion, and for how long (ms).
local LIMIT, FRESH_MS = 20000, 30000
---Candidates at a time; of more than so many that fit, the shortest is not looked for.
local SHOWN, SORTED = 200, 2000

---@class callboard.Listing
---@field files string[]
---@field at integer
---@field busy boolean

---@type table<string, callboard.Listing> by folder
local listings = {}

---Lists the files of a folder as git sees them; nothing waits for it.
---@param cwd string
---@return callboard.Listing
function M.list(cwd)
  local listing = listings[cwd]
  if not listing then
    listing = { files = {}, at = -math.huge, busy = false }
    listings[cwd] = listing
  end
  if listing.busy or vim.uv.now() - listing.at < FRESH_MS then
    return listing
  end
  listing.busy = true
  local started = pcall(
    vim.system,
    { 'git', 'ls-files', '-co', '--exclude-standard', '-z' },
    { cwd = cwd, timeout = 10000 },
    function(got)
      local files = {}
      if got.code == 0 then
        for path in (got.stdout or ''):gmatch('[^%z]+') do
          files[#files + 1] = path
          if #files == LIMIT then
            break
          end
        end
      end
      listing.files, listing.busy, listing.at = files, false, vim.uv.now()
    end
  )
  if not started then
    listing.busy, listing.at = false, vim.uv.now()
  end
  return listing
end

---What was listed of a folder is not true any more.
---@param cwd string
function M.forget(cwd)
  listings[cwd] = nil
end

---@param path string
---@return boolean fit to stand in a text
local function is_plain(path)
  return not path:find('[%c%s]')
end

---@param cwd string
---@return string[] names of buffers that are files, from `cwd`
local function buffer_names(cwd)
  local names = {}
  for _, info in ipairs(vim.fn.getbufinfo({ buflisted = 1 })) do
    if info.name ~= '' and vim.bo[info.bufnr].buftype == '' then
      local path = vim.startswith(info.name, cwd .. '/') and info.name:sub(#cwd + 2) or info.name
      if is_plain(path) then
        names[#names + 1] = path
      end
    end
  end
  return names
end

---Those that fit what was typed, the best first: it begins the name, or the path, or is in it.
---@param candidates string[]
---@param typed string
---@param limit integer
---@return string[]
function M.match(candidates, typed, limit)
  if typed == '' then
    return vim.list_slice(candidates, 1, limit)
  end
  local wanted = typed:lower()
  local best = { {}, {}, {} }
  for _, candidate in ipairs(candidates) do
    local lower = candidate:lower()
    local at = lower:find(wanted, 1, true)
    if at then
      local name = lower:match('[^/]*$')
      local rank = vim.startswith(name, wanted) and 1 or at == 1 and 2 or 3
      table.insert(best[rank], candidate)
    end
  end
  local found = {}
  for _, list in ipairs(best) do
    if #list <= SORTED then
      table.sort(list, function(a, b)
        return #a ~= #b and #a < #b or #a == #b and a < b
      end)
    end
    for _, candidate in ipairs(list) do
      if #found == limit then
        return found
      end
      found[#found + 1] = candidate
    end
  end
  return found
end

---@param buf integer the input
---@return string cwd
---@return string[] members
local function session_of(buf)
  local id = vim.b[buf].callboard_session
  local app = require('callboard.app').peek()
  local session = app and id and app.sessions.by_id[id] or nil
  return session and session.cwd or vim.uv.cwd() or '.', session and session.members or {}
end

---@param cwd string
---@param typed string
---@return string[]
local function folder(cwd, typed)
  local base = typed:match('^(.*/)') or ''
  local full = base:sub(1, 1) == '/' and base or vim.fs.joinpath(cwd, base)
  local found = {}
  local ok, entries = pcall(vim.fs.dir, full)
  if not ok then
    return found
  end
  for name, kind in entries do
    if is_plain(name) then
      found[#found + 1] = base .. name .. (kind == 'directory' and '/' or '')
    end
    if #found == 1000 then
      break
    end
  end
  table.sort(found)
  return found
end

---As Vim calls it: where the word begins, and then what completes it.
---@param findstart integer
---@param base string
---@return integer|table
function M.omnifunc(findstart, base)
  if findstart == 1 then
    local column = vim.api.nvim_win_get_cursor(0)[2]
    local before = vim.api.nvim_get_current_line():sub(1, column)
    local at = before:match('()@[^%s@]*$')
    return at and at - 1 or -3
  end
  local typed = base:gsub('^@', '')
  local cwd, members = session_of(vim.api.nvim_get_current_buf())
  local words, seen = {}, {}
  local function add(candidates, menu)
    for _, candidate in ipairs(M.match(candidates, typed, SHOWN)) do
      if not seen[candidate] and #words < SHOWN then
        seen[candidate] = true
        words[#words + 1] = { word = '@' .. candidate, menu = menu, dup = 0 }
      end
    end
  end
  add(vim.tbl_filter(is_plain, members), 'member')
  add(buffer_names(cwd), 'buffer')
  local listing = M.list(cwd)
  if #listing.files > 0 then
    add(vim.tbl_filter(is_plain, listing.files), 'file')
  else
    add(folder(cwd, typed), 'file')
  end
  return { words = words, refresh = 'always' }
end

---Makes the menu of a buffer show up also for one candidate, and choose nothing by itself, where Neovim has the
---option for one buffer (0.11).
---@param buf integer
function M.set_up(buf)
  vim.bo[buf].omnifunc = "v:lua.require'callboard.ui.complete'.omnifunc"
  if vim.fn.has('nvim-0.11') == 1 then
    vim.bo[buf].completeopt = 'menuone,noselect'
  end
end

---For the key `@`: itself, and what can follow it. Nothing is chosen before the person does.
---@return string keys
function M.trigger()
  local column = vim.api.nvim_win_get_cursor(0)[2]
  local before = vim.api.nvim_get_current_line():sub(1, column)
  if before ~= '' and not before:match('[%s%(%["\']$') then
    return '@' -- as in an address
  end
  local options = vim.api.nvim_get_option_value('completeopt', {})
  if options:find('noselect', 1, true) or options:find('noinsert', 1, true) then
    return '@<C-x><C-o>'
  end
  return '@<C-x><C-o><C-p>' -- back to what was typed
end

return M

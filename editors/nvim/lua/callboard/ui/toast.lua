-- Messages that do not fit the command line: there, Neovim would stop and wait for Enter. They stand at the top
-- right for a while instead, take no focus, and are in the log.
local text = require('callboard.model.text')

local M = {}

---@class callboard.Toast
---@field lines callboard.Line[]
---@field ends number ms

---@type callboard.Toast[]
local toasts = {}
---@type integer?
local buf
---@type integer?
local win
---@type uv.uv_timer_t?
local timer
---When the last message went to the command line (ms).
local echoed = -math.huge

---How long one stands there (ms): so long, and more for each byte.
M.SHORT_MS, M.BYTE_MS, M.LONG_MS = 4000, 40, 20000
---Two messages within so long (ms) are too many for the command line.
M.APART_MS = 200
---Lines of one message, and of all.
local LINES, ALL = 12, 24

local HIGHLIGHTS = {
  [vim.log.levels.ERROR] = 'CallboardError',
  [vim.log.levels.WARN] = 'CallboardApproval',
}

---@return number ms
local function now()
  return vim.uv.hrtime() / 1e6
end

---@param message string
---@return boolean
local function fits(message)
  return vim.o.cmdheight > 0
    and not message:find('\n', 1, true)
    and vim.fn.strdisplaywidth(message) <= vim.v.echospace
    and now() - echoed > M.APART_MS
end

---Whether the user, or a plugin, shows messages in a way of its own.
---@return boolean
local function overridden()
  local source = debug.getinfo(vim.notify, 'S').source or ''
  return not source:find('vim[/\\]_editor%.lua$')
end

local function close()
  if win and vim.api.nvim_win_is_valid(win) then
    vim.api.nvim_win_close(win, true)
  end
  win = nil
end

---@return callboard.Line[]
local function all()
  local lines = {}
  for i = #toasts, 1, -1 do
    for at = #toasts[i].lines, 1, -1 do
      if #lines == ALL then
        return lines
      end
      table.insert(lines, 1, toasts[i].lines[at])
    end
  end
  return lines
end

local function draw()
  local lines = all()
  if #lines == 0 then
    return close()
  end
  local width = 1
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line[1][1]))
  end
  if not (buf and vim.api.nvim_buf_is_valid(buf)) then
    require('callboard.ui.highlights').setup()
    buf = vim.api.nvim_create_buf(false, true)
    vim.bo[buf].filetype = 'callboard-message'
    vim.bo[buf].modifiable = false
  end
  require('callboard.ui.lines').set(buf, 0, -1, lines)
  local tabline = vim.o.showtabline == 2
    or (vim.o.showtabline == 1 and #vim.api.nvim_list_tabpages() > 1)
  local config = {
    relative = 'editor',
    anchor = 'NE',
    row = tabline and 1 or 0,
    col = vim.o.columns,
    width = math.min(width, math.max(1, vim.o.columns - 2)),
    height = math.max(1, math.min(#lines, vim.o.lines - vim.o.cmdheight - 4)),
    focusable = false,
    zindex = 60,
    style = 'minimal',
    border = 'rounded',
  }
  if
    win
    and vim.api.nvim_win_is_valid(win)
    and vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage()
  then
    return vim.api.nvim_win_set_config(win, config)
  end
  close()
  config.noautocmd = true
  win = vim.api.nvim_open_win(buf, false, config)
  require('callboard.ui.buffers').window_options(
    win,
    { winhighlight = 'NormalFloat:Normal,FloatBorder:CallboardDim', wrap = false }
  )
end

---Takes away those whose time is over, and looks again when the next one's is.
local function expire()
  if timer then
    timer:close()
    timer = nil
  end
  local time, first = now(), nil
  toasts = vim.tbl_filter(function(toast)
    return toast.ends > time
  end, toasts)
  for _, toast in ipairs(toasts) do
    first = math.min(first or toast.ends, toast.ends)
  end
  if vim.fn.getcmdwintype() ~= '' then
    first = time + M.APART_MS -- no window may come or go now
  else
    draw()
  end
  if first then
    timer = assert(vim.uv.new_timer())
    timer:start(math.max(1, math.ceil(first - time)), 0, vim.schedule_wrap(expire))
  end
end

---@param line string
---@param width integer
---@return string[]
local function wrapped(line, width)
  local shown, rest = {}, line
  while vim.fn.strdisplaywidth(rest) > width do
    local count = width
    local head = vim.fn.strcharpart(rest, 0, count)
    while vim.fn.strdisplaywidth(head) > width do
      count = count - 1
      head = vim.fn.strcharpart(rest, 0, count)
    end
    local space = head:match('^.*() ')
    head = space and space > #head / 2 and head:sub(1, space) or head
    shown[#shown + 1] = head
    rest = rest:sub(#head + 1)
  end
  shown[#shown + 1] = rest
  return shown
end

---Shows a message without stopping the editor.
---@param message string
---@param level integer?
function M.show(message, level)
  if overridden() or fits(message) then
    echoed = now()
    return vim.notify(message, level, { title = 'Callboard' })
  end
  if level ~= vim.log.levels.ERROR then -- those are in the log already
    require('callboard.log').info('%s', message)
  end
  local width = math.max(10, math.min(80, vim.o.columns - 4))
  local lines = {}
  for _, line in ipairs(text.lines(message)) do
    for _, part in ipairs(wrapped(line, width)) do
      lines[#lines + 1] = { { part, HIGHLIGHTS[level] } }
    end
  end
  if #lines > LINES then
    lines = vim.list_slice(lines, 1, LINES)
    lines[LINES] = { { '… :Callboard log has all of it', 'CallboardDim' } }
  end
  local stays = math.min(M.LONG_MS, M.SHORT_MS + M.BYTE_MS * #message)
  toasts[#toasts + 1] = { lines = lines, ends = now() + stays }
  expire()
end

return M

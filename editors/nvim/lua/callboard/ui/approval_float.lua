-- A line in the corner of the screen while something waits for an answer that is not in view. It takes no
-- focus and no key, and goes with the answer, wherever that was given.
local answers = require('callboard.model.answers')
local text = require('callboard.model.text')

local M = {}

---@type callboard.Approval[]
local pending = {}
---@type integer?
local buf
---@type integer?
local win
local watching = false
local scheduled = false

local NEXT = ':Callboard next'

---Whether its chat is in view, in the tab page that is, or what it would change.
---@param approval callboard.Approval
---@return boolean
function M.in_view(approval)
  local diff = package.loaded['callboard.ui.diff_approval']
  if diff and diff.shows(approval.approvalId) then
    return true
  end
  local chat = package.loaded['callboard.ui.chat']
  return chat ~= nil and (chat.visible(approval.sessionId) or chat.visible(approval.rootId))
end

local function close()
  if win and vim.api.nvim_win_is_valid(win) then
    vim.api.nvim_win_close(win, true)
  end
  win = nil
end

---What stands there, in at most `width` cells.
---@param unseen callboard.Approval[]
---@param count integer
---@param width integer
---@return callboard.Line
function M.line(unseen, count, width)
  local first = unseen[1]
  local who = answers.who(first)
  local head = ('%d to approve'):format(count)
  local left = width - #head - #NEXT - 6
  local title = text.one_line(first.title)
  if who then
    who = text.one_line(who, math.max(8, math.floor(left / 3)))
    left = left - vim.fn.strdisplaywidth(who) - 3
  end
  local line = { { head, 'CallboardApproval' } }
  if left >= 8 then
    if vim.fn.strdisplaywidth(title) > left then
      while vim.fn.strdisplaywidth(title) > left - 1 do
        title = vim.fn.strcharpart(title, 0, vim.fn.strchars(title) - 1)
      end
      title = title .. '…'
    end
    vim.list_extend(line, { { ' · ', 'CallboardDim' }, { title } })
    if who then
      vim.list_extend(line, { { ' · ', 'CallboardDim' }, { who, 'CallboardAgent' } })
    end
  end
  return vim.list_extend(line, { { ' · ', 'CallboardDim' }, { NEXT, 'CallboardApprovalKey' } })
end

---@return integer row of the line above which it stands: the status line, or the command line
local function floor()
  local row = vim.o.lines - vim.o.cmdheight
  local status = vim.o.laststatus
  if status == 1 then
    local wins = vim.tbl_filter(function(each)
      return vim.api.nvim_win_get_config(each).relative == ''
    end, vim.api.nvim_tabpage_list_wins(0))
    status = #wins > 1 and 2 or 0
  end
  return status > 0 and row - 1 or row
end

local function draw()
  if vim.fn.getcmdwintype() ~= '' then
    return -- no window may come or go now; it is drawn when that one has gone
  end
  local unseen = vim.tbl_filter(function(approval)
    return not M.in_view(approval)
  end, pending)
  local width = math.min(vim.o.columns - 4, 100)
  if #unseen == 0 or not require('callboard.config').get().approvals.float or width < 20 then
    return close()
  end
  local lines = require('callboard.ui.lines')
  if not (buf and vim.api.nvim_buf_is_valid(buf)) then
    require('callboard.ui.highlights').setup()
    buf = vim.api.nvim_create_buf(false, true)
    vim.bo[buf].modifiable = false
    vim.bo[buf].filetype = 'callboard-approvals'
  end
  local line = M.line(unseen, #pending, width)
  lines.set(buf, 0, -1, { line })
  local config = {
    relative = 'editor',
    anchor = 'SE',
    row = floor(),
    col = vim.o.columns,
    width = math.min(width, vim.fn.strdisplaywidth(lines.text(line))),
    height = 1,
    focusable = false,
    zindex = 40,
    style = 'minimal',
    border = 'rounded',
  }
  if
    win
    and vim.api.nvim_win_is_valid(win)
    and vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage()
  then
    vim.api.nvim_win_set_config(win, config)
    return
  end
  close()
  config.noautocmd = true
  win = vim.api.nvim_open_win(buf, false, config)
  require('callboard.ui.buffers').window_options(win, {
    winhighlight = 'NormalFloat:Normal,FloatBorder:CallboardApproval',
    wrap = false,
  })
end

---Draws it again soon: windows are in the middle of a change while autocommands run.
local function later()
  if scheduled or (#pending == 0 and not win) then
    return
  end
  scheduled = true
  vim.schedule(function()
    scheduled = false
    draw()
  end)
end

local function watch()
  if watching then
    return
  end
  watching = true
  local group = vim.api.nvim_create_augroup('callboard-approval-float', {})
  vim.api.nvim_create_autocmd(
    { 'WinEnter', 'WinClosed', 'TabEnter', 'VimResized', 'CmdwinLeave' },
    { group = group, callback = later }
  )
  vim.api.nvim_create_autocmd(
    { 'BufWinEnter', 'BufWinLeave' },
    { group = group, pattern = 'callboard://*', callback = later }
  )
  vim.api.nvim_create_autocmd(
    'OptionSet',
    { group = group, pattern = { 'cmdheight', 'laststatus' }, callback = later }
  )
end

---@param approvals callboard.Approval[] all that wait
function M.update(approvals)
  pending = vim.list_slice(approvals)
  if #pending > 0 then
    watch()
  end
  later()
end

return M

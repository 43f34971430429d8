-- The windows of a chat: the transcript, and the input below it. A tab page has one pair at the most.
local buffers = require('callboard.ui.buffers')

local M = {}

---On a screen with fewer lines, no height is set: Neovim aborts where windows have no room.
M.ROOM = 20

local TRANSCRIPT = {
  wrap = true,
  linebreak = true,
  breakindent = true,
  number = false,
  relativenumber = false,
  signcolumn = 'no',
  foldcolumn = '0',
  foldmethod = 'manual',
  foldenable = true,
  foldtext = '',
  fillchars = 'fold: ,eob: ',
  conceallevel = 0,
  list = false,
  spell = false,
  colorcolumn = '',
  cursorline = false,
  winfixwidth = true,
  smoothscroll = true, -- a paragraph that is higher than the window could not be read to its end
}

local INPUT = {
  wrap = true,
  linebreak = true,
  number = false,
  relativenumber = false,
  signcolumn = 'no',
  foldcolumn = '0',
  foldenable = false,
  list = false,
  colorcolumn = '',
  cursorline = false,
  fillchars = 'eob: ',
}

---@return integer columns
local function width()
  local wanted = require('callboard.config').get().window.width
  local columns = wanted < 1 and math.floor(vim.o.columns * wanted) or math.floor(wanted)
  return math.max(20, math.min(columns, vim.o.columns - 10))
end

---A window of this tab page that shows a buffer of that kind.
---@param kind 'chat'|'input'
---@return integer?
function M.find(kind)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.b[vim.api.nvim_win_get_buf(win)].callboard_kind == kind then
      return win
    end
  end
end

---@param position callboard.WindowOptions.position
---@return integer win
local function split(position)
  if position == 'tab' then
    vim.cmd('tab split')
  elseif position == 'bottom' then
    vim.cmd(('botright %dsplit'):format(math.max(8, math.floor(vim.o.lines * 0.5))))
  else
    vim.cmd(('%s %dvsplit'):format(position == 'left' and 'topleft' or 'botright', width()))
  end
  return vim.api.nvim_get_current_win()
end

---Where nobody has set what a status line shows, the name of the buffer would stand there: an id.
---@param win integer
---@param words string
function M.plain_status(win, words)
  local set = vim.go.statusline
  if set == '' then
    buffers.window_options(win, { statusline = ' ' .. words })
  end
end

---Gives a window what its buffer needs.
---@param win integer
---@param kind 'chat'|'input'
function M.dress(win, kind)
  buffers.window_options(win, kind == 'chat' and TRANSCRIPT or INPUT)
  M.plain_status(win, kind == 'chat' and 'Callboard%=%P ' or 'Write to the agent')
end

---Shows a transcript: in the window that shows another one, or in a new one.
---@param buf integer
---@return integer win
function M.transcript(buf)
  local win = buffers.window(buf) or M.find('chat')
  if not win then
    local from = vim.api.nvim_get_current_win()
    win = split(require('callboard.config').get().window.position)
    if vim.api.nvim_win_is_valid(from) then
      vim.api.nvim_set_current_win(from)
    end
  end
  if vim.api.nvim_win_get_buf(win) ~= buf then
    vim.api.nvim_win_set_buf(win, buf)
  end
  M.dress(win, 'chat')
  return win
end

---@param tab integer
---@return integer[] windows that do not float
local function ordinary(tab)
  return vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_config(win).relative == ''
  end, vim.api.nvim_tabpage_list_wins(tab))
end

---The input has its height again when a window has gone: Neovim takes lines from it for one that comes, and gives
---it all of those of one that goes. Where windows stay, the person has chosen its height.
---@param win integer
local function keep_height(win)
  local kept = vim.w[win].callboard_height
  if not kept or vim.fn.getcmdwintype() ~= '' then
    return
  end
  local tab = vim.api.nvim_win_get_tabpage(win)
  local height, count = vim.api.nvim_win_get_height(win), #ordinary(tab)
  if count == kept.windows and vim.o.lines == kept.lines and height ~= kept.height then
    kept.wanted = height
  elseif count < kept.windows and vim.o.lines >= M.ROOM then
    local chat = vim.iter(vim.api.nvim_tabpage_list_wins(tab)):find(function(other)
      return vim.b[vim.api.nvim_win_get_buf(other)].callboard_kind == 'chat'
    end)
    -- Without a chat above it the lines would go to the command line.
    if chat then
      local room = height + vim.api.nvim_win_get_height(chat)
      vim.api.nvim_win_set_height(win, math.max(1, math.min(kept.wanted, room - 3)))
    end
  end
  vim.w[win].callboard_height = {
    wanted = kept.wanted,
    height = vim.api.nvim_win_get_height(win),
    windows = count,
    lines = vim.o.lines,
  }
end

---@param win integer
local function watch_height(win)
  local height = vim.api.nvim_win_get_height(win)
  vim.w[win].callboard_height = {
    wanted = height,
    height = height,
    windows = #ordinary(vim.api.nvim_win_get_tabpage(win)),
    lines = vim.o.lines,
  }
  vim.api.nvim_create_autocmd('WinResized', {
    group = vim.api.nvim_create_augroup('callboard-layout', {}),
    callback = function()
      for _, each in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
        keep_height(each)
      end
    end,
  })
end

---Shows an input below its transcript.
---@param buf integer
---@param below integer the window of the transcript
---@return integer win
function M.input(buf, below)
  local win = buffers.window(buf) or M.find('input')
  if not win then
    local height = require('callboard.config').get().window.input_height
    height = math.max(1, math.min(math.floor(height), vim.api.nvim_win_get_height(below) - 3))
    -- Not by nvim_open_win: in 0.10 it splits another window than the one that it is told.
    local from = vim.api.nvim_get_current_win()
    vim.api.nvim_set_current_win(below)
    vim.cmd(('belowright %dsplit'):format(height))
    win = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(win, buf)
    vim.api.nvim_set_current_win(from)
    watch_height(win)
  elseif vim.api.nvim_win_get_buf(win) ~= buf then
    vim.api.nvim_win_set_buf(win, buf)
  end
  M.dress(win, 'input')
  return win
end

---Puts the transcript above an input that has this tab page for itself.
---@param input integer
---@param transcript integer
---@return boolean done
function M.rejoin(input, transcript)
  local wins = ordinary(0)
  if #wins ~= 1 or vim.api.nvim_win_get_buf(wins[1]) ~= input then
    return false
  end
  vim.cmd('aboveleft split')
  vim.api.nvim_win_set_buf(0, transcript)
  vim.api.nvim_set_current_win(wins[1])
  vim.api.nvim_win_set_height(
    wins[1],
    math.floor(require('callboard.config').get().window.input_height)
  )
  return true
end

---Takes windows off the screen; the last one of a tab page shows something else instead.
---@param wins integer[]
function M.close(wins)
  for _, win in ipairs(wins) do
    if vim.api.nvim_win_is_valid(win) then
      local others = #ordinary(vim.api.nvim_win_get_tabpage(win)) - 1
      if others > 0 or #vim.api.nvim_list_tabpages() > 1 then
        vim.api.nvim_win_close(win, true)
      else
        vim.api.nvim_win_call(win, function()
          local alternate = vim.fn.bufnr('#')
          if alternate > 0 and vim.fn.buflisted(alternate) == 1 then
            vim.cmd.buffer(alternate)
          else
            vim.cmd.enew()
          end
        end)
      end
    end
  end
end

---An input without its transcript goes, too.
---@param input integer
---@param transcript integer
function M.close_lonely(input, transcript)
  local lonely = vim.tbl_filter(function(win)
    local tab = vim.api.nvim_win_get_tabpage(win)
    return not vim.iter(vim.api.nvim_tabpage_list_wins(tab)):any(function(other)
      return vim.api.nvim_win_get_buf(other) == transcript
    end)
  end, vim.fn.win_findbuf(input))
  M.close(lonely)
end

return M

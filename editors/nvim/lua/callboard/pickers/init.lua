-- One way to have something picked, over whichever picker there is.
local M = {}

---@alias callboard.PickerName 'page'|'select'|'telescope'|'fzf_lua'|'mini'|'snacks'

---@class callboard.PickAction
---@field key string a letter: by itself in a list, with Ctrl where letters search
---@field desc string
---@field fn fun(item: any)

---@class callboard.Pick
---@field title string
---@field items any[]
---@field format fun(item: any): string one line
---@field preview (fun(item: any): string[])? lines that tell more of it
---@field heading (fun(item: any): string?)? of the group that it is in, where lists have headings
---@field on_choice fun(item: any) not called when nothing was chosen
---@field actions table<string, callboard.PickAction>? what else can be done with one

---@class callboard.Picker
---@field installed fun(): boolean
---@field preferred (fun(): boolean)? whether it is somebody's picker, not only there; as installed without it
---@field pick fun(opts: callboard.Pick)

---Which come first where several are there.
local ORDER = { 'telescope', 'fzf_lua', 'snacks', 'mini' }

---@param name callboard.PickerName
---@return callboard.Picker
local function load(name)
  return require('callboard.pickers.' .. name)
end

local warned = {}

---Which picker is used: the one of the option, else the first one that is there. Where there is none, what
---somebody has put in the place of `vim.ui.select`; Neovim's own would keep the editor while it asks, so then
---it is a list in a window.
---@return callboard.PickerName name
---@return string? missing the one that the option names, where it is not installed
function M.which()
  local wanted = require('callboard.config').get().picker
  if wanted == 'select' then
    return 'select'
  elseif wanted ~= 'auto' then
    if load(wanted).installed() then
      return wanted
    end
    return 'select', wanted
  end
  for _, name in ipairs(ORDER) do
    local picker = load(name)
    if (picker.preferred or picker.installed)() then
      return name
    end
  end
  return load('select').replaced() and 'select' or 'page'
end

---The items as lines for pickers that have no headings: each with its own, if they have any.
---@param opts callboard.Pick
---@return string[]
function M.lines(opts)
  local headings, width = {}, 0
  for i, item in ipairs(opts.items) do
    headings[i] = opts.heading and opts.heading(item) or ''
    width = math.max(width, vim.fn.strdisplaywidth(headings[i]))
  end
  local lines = {}
  for i, item in ipairs(opts.items) do
    local space = (' '):rep(width - vim.fn.strdisplaywidth(headings[i]))
    lines[i] = (width > 0 and headings[i] .. space .. '  ' or '') .. opts.format(item)
  end
  return lines
end

---@param opts callboard.Pick
function M.pick(opts)
  local name, missing = M.which()
  if missing and not warned[missing] then
    warned[missing] = true
    require('callboard.notify').warn(
      ("the option picker is '%s', which is not installed; vim.ui.select is used. "):format(missing)
        .. "Install it, or set picker = 'auto'."
    )
  end
  load(name).pick(opts)
end

---A question with a few answers.
---@param title string
---@param answers { [1]: string, [2]: fun()? }[] what each says, and does
function M.ask(title, answers)
  M.pick({
    title = title,
    items = answers,
    format = function(answer)
      return answer[1]
    end,
    on_choice = function(answer)
      if answer[2] then
        answer[2]()
      end
    end,
  })
end

return M

-- Markdown in colour, where Neovim has its parser. Each message is parsed by itself, in pieces, and only what is
-- in view: so a message that streams costs no more the longer it gets, and code that nobody closes does not
-- colour all that follows.
local M = {}

---A piece is cut at a blank line when it has so many bytes; longer than the second it is left as it is.
M.PIECE, M.LONGEST = 1024, 8192
---How long (ms) one drawing may parse; the rest of it gets its colours with the next one.
M.BUDGET_MS = 12

local namespace = vim.api.nvim_create_namespace('callboard-markdown')
local nudges = vim.api.nvim_create_namespace('callboard-markdown-nudge')

---@class callboard.Mark
---@field from integer byte
---@field to integer byte, -1 for the end of the line
---@field hl string

---@class callboard.Piece
---@field first integer line of the text, 0-based
---@field last integer without it
---@field marks table<integer, callboard.Mark[]>? by line of the piece; nil: not parsed yet
---@field part boolean? a language is still to be read

---@class callboard.Pieces How far a text is divided.
---@field list callboard.Piece[]
---@field upto integer lines that are in pieces
---@field open string? the marks of the code that is open there

---@type table<integer, callboard.View> by buffer
local views = {}
local started = false
---Queries by language; false where there is none. Reading one takes as long as a whole drawing may.
---@type table<string, vim.treesitter.Query|false>
local queries = {}
---@type table<string, boolean>
local wanted = {}

---Draws what is in view of a buffer anew.
---@param buf integer
local function nudge(buf)
  if vim.api.nvim_buf_is_loaded(buf) then
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      local info = vim.fn.getwininfo(win)[1]
      pcall(vim.api.nvim_buf_set_extmark, buf, nudges, info.topline - 1, 0, {
        id = win,
        end_row = info.botline,
        hl_group = 'CallboardProse',
        priority = 0,
        strict = false,
      })
      pcall(vim.api.nvim_buf_del_extmark, buf, nudges, win)
    end
  end
end

---@param language string
---@return vim.treesitter.Query|false|nil nil: it is not read yet
local function query_of(language)
  if queries[language] == nil and not wanted[language] then
    wanted[language] = true
    vim.schedule(function()
      local parsed = pcall(vim.treesitter.get_string_parser, '', language)
      local ok, query = pcall(vim.treesitter.query.get, language, 'highlights')
      queries[language] = parsed and ok and query or false
      wanted[language] = nil
      for buf in pairs(views) do
        nudge(buf)
      end
    end)
  end
  return queries[language]
end

local SILENT = { spell = true, nospell = true, none = true, conceal = true }

---@param lines string[]
---@return table<integer, callboard.Mark[]> by line, 0-based
---@return boolean whole all languages of it were there
local function parse(lines)
  local source = table.concat(lines, '\n') .. '\n'
  local marks = {}
  local function mark(row, from, to, hl)
    marks[row] = marks[row] or {}
    table.insert(marks[row], { from = from, to = to, hl = hl })
  end
  local whole = true
  local parser = vim.treesitter.get_string_parser(source, 'markdown')
  parser:parse(true)
  parser:for_each_tree(function(tree, of)
    local language = of:lang()
    local query = query_of(language)
    if not query then
      whole = whole and query == false
      return
    end
    for id, node in query:iter_captures(tree:root(), source, 0, -1) do
      local name = query.captures[id]
      if not SILENT[name] and name:sub(1, 1) ~= '_' then
        local hl = ('@%s.%s'):format(name, language)
        local row, from, last, to = node:range()
        for each = row, math.min(last, #lines - 1) do
          local starts, ends = each == row and from or 0, each == last and to or -1
          if ends ~= 0 and starts ~= ends then
            mark(each, starts, ends, hl)
          end
        end
      end
    end
  end)
  return marks, whole
end

---@param lines string[]
---@return table<integer, callboard.Mark[]>
---@return boolean whole
local function marks_of(lines)
  local ok, marks, whole = pcall(parse, lines)
  if not ok then
    require('callboard.log').debug('markdown: %s', marks)
    return {}, true
  end
  return marks, whole
end

---What is open below a line: the marks of a fence, or nil.
---@param line string
---@param open string?
---@return string?
local function fence(line, open)
  local marks, rest = line:match('^ ? ? ?(```+)(.*)$')
  if not marks then
    marks, rest = line:match('^ ? ? ?(~~~+)(.*)$')
  end
  if not marks then
    return open
  elseif not open then
    return (marks:byte() ~= 96 or not rest:find('`', 1, true)) and marks or nil
  elseif marks:byte() == open:byte() and #marks >= #open and not rest:find('%S') then
    return nil
  end
  return open
end

---Divides what is there of a text and is not divided yet. What comes after the last cut is the rest.
---@param pieces callboard.Pieces
---@param lines string[] from `pieces.upto` on
---@param over boolean no more comes
function M.divide(pieces, lines, over)
  local start, bytes, open = 1, 0, pieces.open
  local function cut(last)
    table.insert(pieces.list, {
      first = pieces.upto,
      last = pieces.upto + last - start + 1,
      -- What is too long is not parsed, nor what begins in the middle of code.
      marks = (bytes > M.LONGEST or pieces.open) and {} or nil,
    })
    pieces.upto, pieces.open = pieces.upto + last - start + 1, open
    start, bytes = last + 1, 0
  end
  for i, line in ipairs(lines) do
    bytes = bytes + #line + 1
    open = fence(line, open)
    local next_line = lines[i + 1]
    local blank = not open and line == '' and next_line ~= nil and not next_line:find('^%s')
    if bytes >= M.PIECE and (blank or bytes > M.LONGEST) and i < #lines then
      cut(i)
    end
  end
  if over and start <= #lines then
    cut(#lines)
  end
end

---@class callboard.Canvas What is drawn at the moment.
---@field buf integer
---@field top integer
---@field bottom integer
---@field marks table<integer, callboard.Mark[]> by row
---@field ends number when no more is parsed (ms)
---@field left boolean something was left for the next drawing

---@param canvas callboard.Canvas
---@param row integer of the text
---@param piece callboard.Piece
local function add(canvas, row, piece)
  local first, last = row + piece.first, row + piece.last
  if first > canvas.bottom or last <= canvas.top then
    return
  end
  if not piece.marks or piece.part then
    if vim.uv.hrtime() / 1e6 > canvas.ends then
      canvas.left = true
    else
      local whole
      piece.marks, whole = marks_of(vim.api.nvim_buf_get_lines(canvas.buf, first, last, false))
      piece.part = not whole or nil
    end
  end
  for line, marks in pairs(piece.marks or {}) do
    canvas.marks[first + line] = marks
  end
end

---Marks of a block's text, for the lines that are in view.
---@param canvas callboard.Canvas
---@param block callboard.Drawn
---@param row integer of its text
local function add_block(canvas, block, row)
  local prose = block.prose
  local count = prose.lines or (block.height - block.first)
  prose.pieces = prose.pieces or { list = {}, upto = 0 }
  local pieces = prose.pieces
  if pieces.upto < count then
    local lines = vim.api.nvim_buf_get_lines(canvas.buf, row + pieces.upto, row + count, false)
    M.divide(pieces, lines, prose.lines ~= nil)
  end
  for _, piece in ipairs(pieces.list) do
    add(canvas, row, piece)
  end
  if pieces.upto < count then
    -- The end of what streams: parsed again and again while it is short, and then when it is cut.
    local lines = vim.api.nvim_buf_get_lines(canvas.buf, row + pieces.upto, row + count, false)
    local text = table.concat(lines, '\n')
    if #text <= 2 * M.PIECE then
      if prose.rest ~= text then
        prose.rest, prose.end_piece = text, nil
      end
      prose.end_piece = prose.end_piece or { first = pieces.upto, last = count }
      add(canvas, row, prose.end_piece)
    end
  end
end

---@type table<integer, callboard.Mark[]>
local in_view = {}

---@param buf integer
---@param top integer
---@param bottom integer
---@return boolean
local function on_win(_, _, buf, top, bottom)
  local view = views[buf]
  if not view or not query_of('markdown') or query_of('markdown_inline') == nil then
    return false
  end
  local canvas = {
    buf = buf,
    top = top,
    bottom = bottom,
    marks = {},
    ends = vim.uv.hrtime() / 1e6 + M.BUDGET_MS,
    left = false,
  }
  local row = view.top.height
  for _, block in ipairs(view.blocks) do
    if row > bottom then
      break
    elseif block.prose and row + block.height > top then
      add_block(canvas, block, row + block.first)
    end
    row = row + block.height
  end
  if canvas.left then
    vim.schedule(function()
      nudge(buf)
    end)
  end
  in_view = canvas.marks
  return next(in_view) ~= nil
end

---@param buf integer
---@param row integer
local function on_line(_, _, buf, row)
  for _, mark in ipairs(in_view[row] or {}) do
    pcall(vim.api.nvim_buf_set_extmark, buf, namespace, row, mark.from, {
      end_row = mark.to == -1 and row + 1 or row,
      end_col = mark.to == -1 and 0 or mark.to,
      hl_group = mark.hl,
      ephemeral = true,
      priority = 100,
      strict = false,
    })
  end
end

---Colours what a view shows, from now on.
---@param view callboard.View
function M.paint(view)
  views[view.buf] = view
  if not started then
    started = true
    vim.api.nvim_set_decoration_provider(namespace, { on_win = on_win, on_line = on_line })
  end
end

---@param view callboard.View
function M.forget(view)
  if views[view.buf] == view then
    views[view.buf] = nil
  end
end

return M

-- What an item of the transcript looks like, as lines. It only looks at what it is given.
local card = require('callboard.ui.card')
local speaker = require('callboard.ui.speaker')
local stream = require('callboard.ui.stream')
local text = require('callboard.model.text')

local M = {}

---@class callboard.Look How things are shown.
---@field icons 'text'|'nerd'
---@field fold_lines integer longer outputs are cut to so many lines
---@field agent string what the agent is called
---@field parent string? the session that its agent was started by
---@field room boolean? several agents speak here
---@field speakers table<string, string>? who of them, by turn
---@field cwd string? paths below it are shown from there

---@class callboard.Block An item as lines.
---@field lines callboard.Line[]
---@field fold { first: integer, last: integer }? offsets of lines that are folded at first
---@field stream callboard.StreamState? its text ends the block, and more can be appended
---@field first integer? offset of the line below the heading
---@field heading boolean? it has one
---@field prose callboard.Prose? the lines below the heading are markdown

---@class callboard.Prose
---@field lines integer? so many; nil while more of them come
---@field pieces callboard.Pieces? how it is coloured, once it is seen
---@field rest string? the end that streams, as it was coloured last
---@field end_piece callboard.Piece?

---@alias callboard.Target
---| { kind: 'file', path: string, line: integer? }
---| { kind: 'full', item: callboard.Item }
---| { kind: 'change', path: string }
---| { kind: 'approval', approval: callboard.Approval }
---| { kind: 'older' }
---| { kind: 'queued', item: callboard.Item }
---| { kind: 'outgoing', outgoing: callboard.Outgoing }

---A path as it is named where the agent works.
---@param path string
---@param look callboard.Look
---@return string
function M.path(path, look)
  if look.cwd and vim.startswith(path, look.cwd .. '/') then
    path = path:sub(#look.cwd + 2)
  end
  return text.one_line(path, 120)
end

---@param attachment string a name, or a URI
---@param look callboard.Look
---@return callboard.Line
local function attached(attachment, look)
  local target
  local shown = attachment
  if vim.startswith(attachment, 'file://') then
    local ok, path = pcall(vim.uri_to_fname, (attachment:gsub('#.*$', '')))
    if ok then
      shown, target = M.path(path, look), { kind = 'file', path = path }
      shown = shown
        .. text.one_line(
          attachment:match('#(.*)$') and ' (' .. attachment:match('#(.*)$') .. ')' or ''
        )
    end
  end
  return { { '  + ' .. text.one_line(shown, 120), 'CallboardPath' }, target = target }
end

local kinds = {}

---@param item callboard.Item
---@param look callboard.Look
---@return callboard.Block
function kinds.prompt(item, look)
  local frame = speaker.framed(item)
  local block = { lines = stream.whole(frame and frame.body or item.text) }
  block.prose = { lines = #block.lines }
  for _, attachment in ipairs(item.attachments or {}) do
    table.insert(block.lines, attached(attachment, look))
  end
  if item.blobs then
    table.insert(block.lines, card.more(item))
  end
  return block
end

---@param item callboard.Item
---@return callboard.Block
function kinds.answer(item)
  local state = stream.new('', nil)
  local block = { lines = stream.begin(state, item.text, not item.streaming), stream = state }
  block.prose = { lines = not item.streaming and #block.lines or nil }
  if not item.streaming then
    vim.list_extend(block.lines, M.ending(item))
  end
  return block
end

---@param item callboard.Item
---@return callboard.Block
function kinds.thought(item)
  local state = stream.new(card.BAR, 'CallboardThought')
  local block = { lines = { { { '  Thought', 'CallboardThought' } } }, stream = state }
  vim.list_extend(block.lines, stream.begin(state, item.text, not item.streaming))
  if not item.streaming then
    vim.list_extend(block.lines, M.ending(item))
    block.fold = { first = 0, last = #block.lines - 1 }
  end
  return block
end

---What stands below an answer when no more of it comes.
---@param item callboard.Item
---@return callboard.Line[]
function M.ending(item)
  local ending = {}
  if item.partial then
    local bar = item.kind == 'thought' and card.BAR or ''
    ending[#ending + 1] = { { bar .. '(cut off here)', 'CallboardDim' } }
  end
  if item.blobs then
    ending[#ending + 1] = card.more(item)
  end
  return ending
end

function kinds.tool(item, look)
  return card.block(item, look)
end

local SEVERITIES = {
  info = { 'i Note: ', 'CallboardNoticeInfo' },
  warning = { '! Warning: ', 'CallboardNoticeWarning' },
  error = { '✗ Error: ', 'CallboardNoticeError' },
}

---A severity that nobody knows here is taken for a warning, so that it is not overlooked.
---@param item callboard.Item
---@return callboard.Line[]
local function severe(item)
  local mark = SEVERITIES[item.severity] or SEVERITIES.warning
  local shown = {}
  for i, line in ipairs(text.lines(item.text)) do
    shown[i] = { i == 1 and mark or { '  ' }, { line, mark[2] } }
  end
  local description = vim.trim(item.description or '')
  if description ~= '' then
    for _, line in ipairs(text.lines(description)) do
      shown[#shown + 1] = { { '  ' .. line, 'CallboardDim' } }
    end
  end
  return shown
end

---@param item callboard.Item
---@return callboard.Block
function kinds.notice(item)
  if item.severity then
    return { lines = severe(item) }
  end
  local block = { lines = {} }
  for i, line in ipairs(text.lines(item.text)) do
    block.lines[i] = { { (i == 1 and '· ' or '  ') .. line, 'CallboardDim' } }
  end
  return block
end

---@param failure callboard.Failure
---@param words string?
---@return callboard.Line[]
local function failed(failure, words)
  local said = require('callboard.notify').explain({
    code = 0,
    message = words and words ~= '' and words or failure.message,
    data = { kind = failure.kind },
  })
  local shown = {}
  for i, line in ipairs(text.lines(said)) do
    shown[i] = { { (i == 1 and '✗ ' or '  ') .. line, 'CallboardError' } }
  end
  local about = { failure.kind }
  about[#about + 1] = failure.provider
  about[#about + 1] = failure.httpStatus and ('HTTP %d'):format(failure.httpStatus)
  table.insert(shown, { { '  ' .. text.one_line(table.concat(about, ', '), 120), 'CallboardDim' } })
  return shown
end

---@param item callboard.Item
---@return callboard.Block
function kinds.error(item)
  return { lines = failed(item.failure, item.text) }
end

---@param usage callboard.Usage?
---@return string[]
function M.usage(usage)
  local told = {}
  if usage and (usage.inputTokens or usage.outputTokens) then
    local into = usage.inputTokens and text.count(usage.inputTokens) or '?'
    local out = usage.outputTokens and text.count(usage.outputTokens) or '?'
    told[#told + 1] = ('%s in, %s out'):format(into, out)
  end
  if usage and usage.cost then
    local currency = text.one_line(usage.currency or 'USD', 8)
    told[#told + 1] = currency == 'USD' and ('$%.4g'):format(usage.cost)
      or ('%.4g %s'):format(usage.cost, currency)
  end
  return told
end

local OUTCOMES = {
  completed = 'done',
  failed = 'failed',
  cancelled = 'stopped',
  interrupted = 'interrupted',
  timed_out = 'timed out',
}

---@param item callboard.Item
---@param before callboard.Item?
---@return callboard.Block
function kinds.turn(item, _, before)
  local outcome = text.one_line(OUTCOMES[item.outcome] or item.outcome or 'ended', 40)
  local told = { outcome }
  if item.duration_ms then
    told[#told + 1] = text.duration(item.duration_ms)
  end
  vim.list_extend(told, M.usage(item.usage))
  local hl = item.outcome == 'failed' and 'CallboardError' or 'CallboardDim'
  local block = { lines = {} }
  if item.failure and not (before and before.kind == 'error') then
    block.lines = failed(item.failure)
  end
  table.insert(block.lines, { { ('── %s ──'):format(table.concat(told, ' · ')), hl } })
  return block
end

---@param item callboard.Item
---@param before callboard.Item?
---@param look callboard.Look
---@return callboard.Block
local function block_of(item, before, look)
  local block = (kinds[item.kind] or kinds.notice)(item, look, before)
  local above = {}
  local both_cards = before
    and before.kind == item.kind
    and (item.kind == 'tool' or item.kind == 'notice')
  local closes = item.kind == 'turn' and before and before.kind == 'error'
  if before and not both_cards and not closes then
    above[#above + 1] = { { '' } }
  end
  local said = speaker.of(item, look)
  if said and (item.kind == 'prompt' or not before or speaker.of(before, look) ~= said) then
    above[#above + 1] = speaker.heading(item, look)
    block.heading = true
  end
  block.first = #above
  if block.fold then
    block.fold.first, block.fold.last = block.fold.first + #above, block.fold.last + #above
  end
  block.lines = vim.list_extend(above, block.lines)
  return block
end

---The lines of an item below the one before it: with a heading where another one begins to speak.
---@param item callboard.Item
---@param before callboard.Item?
---@param look callboard.Look
---@return callboard.Block
function M.block(item, before, look)
  local drawn, block = pcall(block_of, item, before, look)
  if drawn then
    return block
  end
  -- One that holds what nobody thought of must not keep the others from being seen.
  require('callboard.log').error('%s cannot be shown: %s', tostring(item.id), tostring(block))
  local words = ('✗ a %s that cannot be shown; :Callboard log says why'):format(item.kind)
  return { lines = { { { words, 'CallboardError' } } }, first = 0 }
end

return M

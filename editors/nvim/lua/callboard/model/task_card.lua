-- One task of a board as lines, with all that is known of it. Pure.
local board = require('callboard.model.tasks')
local text = require('callboard.model.text')

local M = {}

---All that is known of a task, for a float.
---@param view callboard.BoardView
---@param task callboard.GroupTask
---@return callboard.Line[]
function M.lines(view, task)
  local shown = { { { text.one_line(task.title), 'CallboardHeading' } } }
  local function fact(name, value, hl)
    if value == nil or vim.trim(value) == '' then
      return
    end
    for i, line in ipairs(text.lines((value:gsub('%s+$', '')))) do
      shown[#shown + 1] =
        { { ('%-10s'):format(i == 1 and name or ''), 'CallboardDim' }, { line, hl } }
    end
  end
  local function facts(name, values, hl)
    for i, value in ipairs(values or {}) do
      fact(i == 1 and name or '', value, hl)
    end
  end
  local section = board.section(task)
  local status = text.one_line(task.status):gsub('_', ' ')
  if section == 'ready' or section == 'waiting' then
    status = section
  end
  fact('status', status, 'CallboardState')
  fact('owner', task.assignee and board.member(view, task.assignee) or 'nobody', 'CallboardAgent')
  fact('required', task.required == false and 'no: the work is complete without it, too' or 'yes')
  fact('about', task.description)
  facts(
    'after',
    vim.tbl_map(function(id)
      local other = board.task(view, id)
      return other
          and ('%s (%s)'):format(text.one_line(other.title, 80), other.status:gsub('_', ' '))
        or id
    end, task.dependencies or {})
  )
  for _, detail in ipairs(board.details(view, task)) do
    if section == 'waiting' or section == 'active' then
      fact('', detail[1], detail[2])
    end
  end
  facts('expects', task.expectedPaths, 'CallboardPath')
  fact('reason', task.reason, 'CallboardError')
  fact('summary', task.summary)
  facts('finding', task.findings)
  facts('changed', task.touchedFiles, 'CallboardPath')
  fact(
    'created',
    ('%s by %s'):format(task.createdAt, board.member(view, task.createdBy)),
    'CallboardDim'
  )
  fact('id', task.taskId, 'CallboardDim')
  return shown
end

return M

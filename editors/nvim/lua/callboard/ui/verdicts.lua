-- What a person says of changed files: that they accept them, or that what was before is put back.
local notify = require('callboard.notify')
local reverting = require('callboard.reverting')
local text = require('callboard.model.text')

local M = {}

---@param count integer
---@return string
function M.counted(count)
  return require('callboard.ui.changes_page').counted(count, 'file')
end

---@param tracked callboard.Tracked
---@param file callboard.ChangedFile
---@return string
function M.name(tracked, file)
  return text.one_line(tracked:short(file.path), 60)
end

---Those that may be settled: of the others it was said already, and is not kept yet.
---@param tracked callboard.Tracked
---@param list callboard.ChangedFile[]
---@return callboard.ChangedFile[]? nil when there is none, which is told
local function open_ones(tracked, list)
  local open = vim.tbl_filter(function(file)
    return not tracked:settling(file)
  end, list)
  if #open > 0 then
    return open
  end
  notify.info(#list == 0 and 'nothing is new' or 'it is being settled already')
end

---Notes that files, as they are shown, are accepted.
---@param tracked callboard.Tracked
---@param list callboard.ChangedFile[]
---@param done fun() not called when nothing was settled
function M.accept(tracked, list, done)
  local open = open_ones(tracked, list)
  if not open then
    return
  end
  tracked:settle(open, 'accepted', function()
    notify.info(
      #open == 1 and ('accepted %s'):format(M.name(tracked, open[1]))
        or ('accepted %s'):format(M.counted(#open))
    )
    done()
  end)
end

---Puts back what files were before, as far as that can be done, and says what could not.
---@param tracked callboard.Tracked
---@param list callboard.ChangedFile[]
---@param done fun() not called when nothing was settled
function M.reject(tracked, list, done)
  local open = open_ones(tracked, list)
  if not open then
    return
  end
  tracked:whole(open, function(err)
    if err then
      return notify.failed('read the diffs', err)
    end
    local settled, notes = {}, {}
    for _, file in ipairs(open) do
      local fault, note = reverting.put_back(tracked, file)
      if fault or note then
        notes[#notes + 1] = ('%s: %s'):format(M.name(tracked, file), fault or note)
      end
      if not fault then
        settled[#settled + 1] = file
      end
    end
    local what = #settled == 1 and M.name(tracked, settled[1]) or M.counted(#settled)
    if #notes > 0 then
      notify.warn(
        ('put back %s. %s'):format(#settled == 0 and 'nothing' or what, table.concat(notes, '\n'))
      )
    end
    if #settled > 0 then
      tracked:settle(settled, 'rejected', function()
        if #notes == 0 then
          notify.info(('put back %s'):format(what))
        end
        done()
      end)
    end
  end)
end

---Puts back all that is new, after asking.
---@param tracked callboard.Tracked
function M.ask_reject(tracked)
  local list = tracked:pending()
  if #list == 0 then
    return notify.info('nothing is new')
  end
  local title = ('Put back %s? Type yes'):format(M.counted(#list))
  require('callboard.ui.ask').line({ title = title }, function(answer)
    if answer and vim.trim(answer):lower() == 'yes' then
      M.reject(tracked, list, function() end)
    elseif answer then
      notify.info('nothing was put back')
    end
  end)
end

return M

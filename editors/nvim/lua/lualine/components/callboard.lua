-- What Callboard does, as a component of lualine: `lualine_x = { 'callboard' }`. Yellow while somebody has to
-- answer, red when there is no server; `color` and all else that components take works as ever.
local Component = require('lualine.component'):extend()

---Highlight groups by what is the matter.
local GROUPS = { approvals = 'DiagnosticWarn', failed = 'DiagnosticError' }

function Component:init(options)
  Component.super.init(self, options)
  self.callboard_highlights = {}
  -- A colour that the user has set holds for all.
  if not self.options.color then
    for what, group in pairs(GROUPS) do
      self.callboard_highlights[what] = self:create_hl(group, 'callboard_' .. what)
    end
  end
end

---@return string
function Component:update_status()
  local shown = require('callboard').status()
  if shown == '' then
    return ''
  end
  local status = require('callboard').status_table()
  local what = status.server == 'failed' and 'failed'
    or (status.approvals > 0 and 'approvals' or nil)
  local highlight = what and self.callboard_highlights[what]
  return highlight and self:format_hl(highlight) .. shown or shown
end

return Component

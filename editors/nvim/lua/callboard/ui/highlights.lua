-- Highlight groups: links that a colour scheme, or the user, may set otherwise.
local M = {}

local LINKS = {
  CallboardUser = 'Title',
  CallboardAgent = 'Identifier',
  CallboardThought = 'Comment',
  CallboardTool = 'Function',
  CallboardToolOk = 'DiagnosticOk',
  CallboardToolFailed = 'DiagnosticError',
  CallboardToolRunning = 'DiagnosticInfo',
  CallboardApproval = 'DiagnosticWarn',
  CallboardApprovalKey = 'Special',
  CallboardRisk = 'DiagnosticError',
  CallboardAdded = 'Added',
  CallboardRemoved = 'Removed',
  CallboardError = 'DiagnosticError',
  CallboardDim = 'Comment',
  CallboardNoticeInfo = 'DiagnosticInfo',
  CallboardNoticeWarning = 'DiagnosticWarn',
  CallboardNoticeError = 'DiagnosticError',
  CallboardHeading = 'Title',
  CallboardQueued = 'DiagnosticHint',
  CallboardState = 'Type',
  CallboardPath = 'Directory',
  CallboardCommand = 'String',
}

function M.define()
  for name, link in pairs(LINKS) do
    vim.api.nvim_set_hl(0, name, { link = link, default = true })
  end
end

---Defines them once, and again after a colour scheme has cleared them.
function M.setup()
  M.define()
  vim.api.nvim_create_autocmd('ColorScheme', {
    group = vim.api.nvim_create_augroup('callboard-highlights', {}),
    callback = M.define,
  })
end

return M

-- Pages about trees of sessions: one for each root, kept up to date while it is in view.
local M = {}

---@class callboard.TreePage
---@field app callboard.App
---@field root string
---@field page callboard.Page
---@field live callboard.Live
---@field fetch fun(self: any, done: fun(err: table?)) asks for all that is shown; keeps it
---@field lines fun(self: any): callboard.Line[]
---@field runs (fun(self: any): boolean)? whether something shown grows with time
local TreePage = {}

---Shows it as it is known now, below what is wrong with that.
function TreePage:draw()
  local notice = self.live and self.live:notice()
  local lines = notice and require('callboard.ui.lines').of(notice, 'CallboardApproval') or {}
  self.page:draw(vim.list_extend(lines, self:lines()))
end

---@class callboard.TreePageOptions
---@field name string as in `callboard://NAME/ROOT`
---@field types string[] events after which it may look different
---@field keys fun(page: any): callboard.Key[]

---A class of pages: what it says is up to its `fetch`, `lines` and `runs`.
---@return table
function M.class()
  local class = setmetatable({}, { __index = TreePage })
  class.__index = class
  return class
end

---@param class table of `class`
---@param opts callboard.TreePageOptions
---@return fun(session_id: string) open shows the page about the tree that a session is part of
function M.opener(class, opts)
  ---@type table<string, callboard.TreePage> by root
  local pages = {}

  local function build(app, root)
    local self = setmetatable({ app = app, root = root }, class)
    self.page = require('callboard.ui.page').new({
      name = ('callboard://%s/%s'):format(opts.name, root),
      filetype = 'callboard-' .. opts.name,
      same = function(target)
        return target.id
      end,
      keys = function()
        return opts.keys(self)
      end,
      closed = function()
        pages[root] = nil
      end,
    })
    self.live = require('callboard.ui.live').new({
      app = app,
      buf = self.page.buf,
      root = root,
      types = opts.types,
      fetch = function(done)
        self:fetch(done)
      end,
      draw = function()
        self:draw()
      end,
      ticks = self.runs and function()
        return self:runs()
      end,
    })
    return self
  end

  return function(session_id)
    local app = require('callboard.app').get()
    local live = require('callboard.ui.live')
    live.root_of(app, session_id, 'show the ' .. opts.name, function(root)
      local self = pages[root]
      if not self or not self.page:alive() then
        self = build(app, root)
        pages[root] = self
      end
      self.page:show()
      live.wrap(self.page.buf)
      self.live:attach()
    end)
  end
end

return M

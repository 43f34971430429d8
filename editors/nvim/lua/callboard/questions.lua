-- What the server asks this editor: to answer approvals, and what its buffers hold.
local catalog = require('callboard.catalog')

local M = {}

---@class callboard.Questions
---@field private app callboard.App
---@field private open table<string, { reply: fun(result: table?, err: table?), id: any }> by approval
local Questions = {}
Questions.__index = Questions

---@param app callboard.App
---@return callboard.Questions
function M.new(app)
  return setmetatable({ app = app, open = {} }, Questions)
end

---@param method string
---@param params table
---@param reply fun(result: table?, err: table?)
---@param id any
function Questions:asked(method, params, reply, id)
  if method == 'approval/request' then
    -- Held open while the person thinks: so the server knows that somebody is there. The answer itself goes
    -- by `approval/answer`, which tells who was first.
    self.open[params.approval.approvalId] = { reply = reply, id = id }
    catalog.asked(self.app, params.approval)
  elseif method == 'client/readFile' then
    require('callboard.context').read(params, reply)
  else
    reply(nil, { code = -32601, message = ('the client has no method %s'):format(method) })
  end
end

---The server does not wait for an answer any more.
---@param id any of the request
function Questions:cancelled(id)
  for approval_id, question in pairs(self.open) do
    if question.id == id then
      self:withdraw(approval_id)
      return
    end
  end
end

---Leaves an approval to others, or to `approval/answer`.
---@param approval_id string
function Questions:withdraw(approval_id)
  local question = self.open[approval_id]
  if question then
    self.open[approval_id] = nil
    question.reply({ defer = true })
  end
end

---Who asked is gone.
function Questions:forget()
  self.open = {}
end

return M

-- What was asked and not answered yet, whichever server it is asked of in the end.
local M = {}

---@class callboard.rpc.Pending
---@field method string
---@field params table?
---@field callback fun(err: table?, result: any)
---@field id integer? of the request that is under way
---@field once boolean? is not asked again of another server
---@field dropped boolean? nobody wants to know any more

---@class callboard.rpc.Requests
---@field private guard fun(fn: function, ...: any)
---@field private queue callboard.rpc.Pending[] not asked yet
---@field private asked table<callboard.rpc.Pending, true> and not answered
local Requests = {}
Requests.__index = Requests

---@param guard fun(fn: function, ...: any) calls it; what it throws keeps nothing else from happening
---@return callboard.rpc.Requests
function M.new(guard)
  return setmetatable({ guard = guard, queue = {}, asked = {} }, Requests)
end

---Keeps it for the next server.
---@param pending callboard.rpc.Pending
function Requests:wait(pending)
  self.queue[#self.queue + 1] = pending
end

---Those that wait for a server, in order; they wait no more.
---@return callboard.rpc.Pending[]
function Requests:waiting()
  local queue = self.queue
  self.queue = {}
  return queue
end

---@param pending callboard.rpc.Pending
---@param client callboard.rpc.Client
function Requests:ask(pending, client)
  if pending.dropped then
    return
  end
  self.asked[pending] = true
  pending.id = client:request(pending.method, pending.params, function(err, result)
    self.asked[pending] = nil
    if not pending.dropped then
      pending.callback(err, result)
    end
  end)
end

---Nobody wants the answer any more.
---@param pending callboard.rpc.Pending
---@param client callboard.rpc.Client?
function Requests:drop(pending, client)
  pending.dropped = true
  if pending.id and self.asked[pending] and client then
    client:cancel(pending.id)
  end
end

---What was asked of a server that is gone is asked of the next one, before all that came later.
---@return callboard.rpc.Pending[] once those that are not
function Requests:take_back()
  local asked = vim.tbl_keys(self.asked)
  self.asked = {}
  table.sort(asked, function(a, b)
    return a.id < b.id
  end)
  local again, once = {}, {}
  for _, pending in ipairs(asked) do
    pending.id = nil
    table.insert(pending.once and once or again, pending)
  end
  self.queue = vim.list_extend(again, self.queue)
  return once
end

---Tells that no server will answer.
---@param refused callboard.rpc.Pending[]
---@param message string
---@param data table
function Requests:refuse(refused, message, data)
  for _, pending in ipairs(refused) do
    if not pending.dropped then
      self.guard(pending.callback, { code = 0, message = message, data = data })
    end
  end
end

return M

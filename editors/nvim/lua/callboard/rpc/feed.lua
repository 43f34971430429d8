-- Subscriptions that outlive servers: each goes on from its cursor at the next one, so that whoever follows
-- sees every event once and in order.
local log = require('callboard.log')

local M = {}

---@class callboard.rpc.Following
---@field scope callboard.Scope
---@field cursor string 'now', 'start' or the cursor that was reached
---@field types string[]?
---@field deltas boolean?
---@field on_events fun(events: callboard.Event[], batch: callboard.EventBatch)
---@field on_delta fun(delta: callboard.EventDelta)?
---@field on_live fun()? what was asked for is there, at the beginning and after each new start
---@field on_lost fun(err: table)? nothing more comes: the cursor is of no use any more, or there is nothing to follow
---@field private id string? of the subscription
---@field private closed boolean?
---@field private generation integer

---@class callboard.rpc.Feed
---@field private server callboard.rpc.Supervisor
---@field private all callboard.rpc.Following[]
---@field private by_id table<string, callboard.rpc.Following>
---@field private early table<string, { method: string, params: table }[]> what came before the answer to
---  `event/subscribe` was handled
---@field private over table<string, true> subscriptions that have ended
local Feed = {}
Feed.__index = Feed

---Batches of a subscription that nobody knows (yet) are kept, up to so many: the server sends no more without
---an acknowledgement.
local EARLY = 1000

---@param server callboard.rpc.Supervisor
---@return callboard.rpc.Feed
function M.new(server)
  return setmetatable({ server = server, all = {}, by_id = {}, early = {}, over = {} }, Feed)
end

---@private
---@param following callboard.rpc.Following
function Feed:forget(following)
  following.closed = true
  self.all = vim.tbl_filter(function(other)
    return other ~= following
  end, self.all)
end

---@private
---@param id string
function Feed:unsubscribe(id)
  self.by_id[id], self.early[id] = nil, nil
  self.over[id] = true
  self.server:request('event/unsubscribe', { subscriptionId = id }, function() end, { once = true })
end

---@private
---@param following callboard.rpc.Following
function Feed:subscribe(following)
  following.generation = following.generation + 1
  local generation = following.generation
  self.server:request('event/subscribe', {
    scope = following.scope,
    from = following.cursor,
    types = following.types,
    deltas = following.deltas == true,
  }, function(err, result)
    if following.closed or generation ~= following.generation then
      if result then
        self:unsubscribe(result.subscriptionId)
      end
    elseif err then
      self:refused(following, err)
    elseif
      type(result) ~= 'table'
      or type(result.subscriptionId) ~= 'string'
      or type(result.cursor) ~= 'string'
    then
      self:refused(following, { message = 'the server gave no subscription that can be read' })
    else
      self:subscribed(following, result)
    end
  end, { once = true })
end

---@private
---@param following callboard.rpc.Following
---@param err table
function Feed:refused(following, err)
  local kind = err.data and err.data.kind
  if kind == 'noServer' or kind == 'serverGone' then
    return -- the next server is asked
  end
  log.warn('subscription of %s: %s', following.scope.kind, err.message)
  self:forget(following)
  if following.on_lost then
    following.on_lost(err)
  end
end

---@private
---@param following callboard.rpc.Following
---@param result callboard.SubscribeResult
function Feed:subscribed(following, result)
  local id = result.subscriptionId
  following.id, following.cursor = id, result.cursor
  self.by_id[id] = following
  if following.on_live then
    following.on_live()
  end
  local early = self.early[id] or {}
  self.early[id] = nil
  for _, message in ipairs(early) do
    self:notification(message.method, message.params)
  end
end

---Follows a scope from a cursor on ('now': from here on), as soon as there is a server.
---@param following { scope: callboard.Scope, cursor: string, types: string[]?, deltas: boolean?, on_events: function, on_delta: function?, on_live: function?, on_lost: function? }
---@return fun() close
function Feed:follow(following)
  following.generation = 0
  self.all[#self.all + 1] = following
  if self.server.state == 'ready' then
    self:subscribe(following)
  end
  return function()
    if not following.closed then
      self:forget(following)
      local id = following.id
      following.id = nil
      if id then
        self:unsubscribe(id)
      end
    end
  end
end

---A new server is there: everybody goes on from where they were.
function Feed:resume()
  self.by_id, self.early, self.over = {}, {}, {}
  for _, following in ipairs(self.all) do
    following.id = nil
    self:subscribe(following)
  end
end

---@private
---@param method string
---@param params table
function Feed:keep(method, params)
  local early = self.early[params.subscriptionId] or {}
  self.early[params.subscriptionId] = early
  if method ~= 'event/delta' and #early < EARLY then
    early[#early + 1] = { method = method, params = params }
  end
end

---@private
---@param following callboard.rpc.Following
---@param batch callboard.EventBatch
function Feed:batch(following, batch)
  following.cursor = batch.cursor
  local ok, fault = xpcall(following.on_events, debug.traceback, batch.events, batch)
  -- Also when that has failed: it would not go better the next time, and without it nothing more comes.
  if following.id == batch.subscriptionId then
    self.server:notify('event/ack', { subscriptionId = following.id, cursor = batch.cursor })
  end
  if not ok then
    error(fault, 0)
  end
end

---@private
---@param following callboard.rpc.Following
---@param params callboard.EventReset
function Feed:reset(following, params)
  log.info('subscription of %s was reset: %s', following.scope.kind, params.reason)
  self.by_id[following.id] = nil
  self.over[following.id] = true
  following.id, following.cursor = nil, params.resumeFrom
  -- After a shutdown the next server is asked.
  if params.reason ~= 'shutdown' then
    self:subscribe(following)
  end
end

---@param method string
---@param params table
---@return boolean mine
function Feed:notification(method, params)
  if method ~= 'event/batch' and method ~= 'event/delta' and method ~= 'event/reset' then
    return false
  end
  local id = params.subscriptionId
  local following = self.by_id[id or '']
  if not id or self.over[id] then
    return true
  elseif not following then
    self:keep(method, params)
  elseif method == 'event/batch' then
    self:batch(following, params)
  elseif method == 'event/reset' then
    self:reset(following, params)
  elseif following.on_delta then
    following.on_delta(params)
  end
  return true
end

return M

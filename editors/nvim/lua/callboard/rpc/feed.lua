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
---@field on_lost fun(err: table)? the cursor is of no use any more, or there is nothing to follow
---@field private id string? of the subscription
---@field private closed boolean?
---@field private generation integer

---@class callboard.rpc.Feed
---@field private server callboard.rpc.Supervisor
---@field private by_id table<string, callboard.rpc.Following>
---@field private all table<callboard.rpc.Following, true>
---@field private early table<string, table[]> what came before the answer to `event/subscribe` was handled
---@field private over table<string, true> subscriptions that have ended
local Feed = {}
Feed.__index = Feed

---@param server callboard.rpc.Supervisor
---@return callboard.rpc.Feed
function M.new(server)
  return setmetatable({ server = server, by_id = {}, all = {}, early = {}, over = {} }, Feed)
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
    deltas = following.deltas or nil,
  }, function(err, result)
    if following.closed or generation ~= following.generation then
      if result then
        self.over[result.subscriptionId] = true
        self.server:request(
          'event/unsubscribe',
          { subscriptionId = result.subscriptionId },
          function() end,
          { once = true }
        )
      end
      return
    end
    if err then
      local kind = err.data and err.data.kind
      if kind ~= 'noServer' and kind ~= 'serverGone' then
        log.warn('subscription of %s: %s', following.scope.kind, err.message)
        if following.on_lost then
          following.on_lost(err)
        end
      end
      return
    end
    following.id = result.subscriptionId
    following.cursor = result.cursor
    self.by_id[following.id] = following
    if following.on_live then
      following.on_live()
    end
    local early = self.early[following.id]
    self.early[following.id] = nil
    for _, message in ipairs(early or {}) do
      self:notification(message.method, message.params)
    end
  end, { once = true })
end

---Follows a scope from a cursor on ('now': from here on).
---@param following { scope: callboard.Scope, cursor: string, types: string[]?, deltas: boolean?, on_events: function, on_delta: function?, on_live: function?, on_lost: function? }
---@return fun() close
function Feed:follow(following)
  following.generation = 0
  self.all[following] = true
  self:subscribe(following)
  return function()
    if following.closed then
      return
    end
    following.closed = true
    self.all[following] = nil
    if following.id then
      self.by_id[following.id] = nil
      self.over[following.id] = true
      self.server:request(
        'event/unsubscribe',
        { subscriptionId = following.id },
        function() end,
        { once = true }
      )
    end
  end
end

---A new server is there: everybody goes on from where they were.
function Feed:resume()
  self.by_id, self.early, self.over = {}, {}, {}
  for following in pairs(self.all) do
    following.id = nil
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
  local following = self.by_id[params.subscriptionId]
  if self.over[params.subscriptionId] then
    return true
  elseif not following then
    local early = self.early[params.subscriptionId] or {}
    self.early[params.subscriptionId] = early
    if #early < 100 then
      early[#early + 1] = { method = method, params = params }
    end
    return true
  end
  if method == 'event/batch' then
    following.cursor = params.cursor
    following.on_events(params.events, params)
    self.server:notify('event/ack', { subscriptionId = following.id, cursor = params.cursor })
  elseif method == 'event/delta' then
    if following.on_delta then
      following.on_delta(params)
    end
  else
    log.info('subscription of %s was reset: %s', following.scope.kind, params.reason)
    self.by_id[following.id] = nil
    self.over[following.id] = true
    following.id = nil
    following.cursor = params.resumeFrom
    if params.reason ~= 'shutdown' then
      self:subscribe(following)
    end
  end
  return true
end

return M

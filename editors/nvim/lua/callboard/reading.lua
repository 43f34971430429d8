-- The log of a session that is open here, page by page: the newest first, and those before it as they are wanted.
local Reducer = require('callboard.model.reducer')
local notify = require('callboard.notify')

local M = {}

---Events of a page.
local PAGE = 200

---The plan may have been made before the newest page.
---@param self callboard.OpenSession
local function last_plan(self)
  local epoch = self.epoch
  self.app:request('event/list', {
    scope = { kind = 'session', id = self.id },
    types = { 'plan_updated' },
    before = self.oldest,
    limit = 1,
  }, function(err, page)
    local event = not err and page.data[#page.data] or nil
    if event and epoch == self.epoch then
      self:changed(Reducer.earlier_plan(self.transcript, event))
    end
  end)
end

---Reads the newest page, and has it followed from there.
---@param self callboard.OpenSession
---@param session callboard.Session
---@param failed fun(err: table)
function M.newest(self, session, failed)
  local epoch = self.epoch
  self.app:request('event/list', {
    scope = { kind = 'session', id = self.id },
    before = 'now',
    limit = PAGE,
  }, function(err, page)
    if err then
      return failed(err)
    elseif epoch ~= self.epoch then
      return
    end
    local transcript = Reducer.new(self.id)
    local read = notify.guard(function()
      for _, event in ipairs(page.data) do
        self:apply(transcript, event)
      end
      Reducer.seed(transcript, session)
    end)
    if not read then
      return failed({ message = 'what the server sent of this session cannot be read.' })
    end
    self.transcript = transcript
    self.oldest, self.at_start = page.nextCursor, page.nextCursor == nil
    self.phase, self.fault = 'live', nil
    self:tell({
      phase = 'live',
      change = { items = {}, events = {}, reset = true, queue = true, head = true },
    })
    self:begun_with(page.data)
    self:follow(page.cursor, epoch)
    if not Reducer.has_plan(transcript) and not self.at_start then
      last_plan(self)
    end
  end)
end

---Reads the page before what is there.
---@param self callboard.OpenSession
---@param done fun(loaded: boolean)
function M.older(self, done)
  if self.at_start or self.loading_older or not self.oldest then
    return done(false)
  end
  self.loading_older = true
  local epoch = self.epoch
  self.app:request('event/list', {
    scope = { kind = 'session', id = self.id },
    before = self.oldest,
    limit = PAGE,
  }, function(err, page)
    if epoch ~= self.epoch then
      return done(false)
    end
    self.loading_older = false
    if err then
      notify.failed('load what came before', err)
      return done(false)
    end
    self.oldest, self.at_start = page.nextCursor, page.nextCursor == nil
    local read = notify.guard(function()
      self:tell({ change = Reducer.older(self.transcript, page.data) })
    end)
    done(read)
  end)
end

return M

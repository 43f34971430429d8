-- The changes of a session and of its agents, read from the log and followed, while somebody looks at them; and
-- what is said of them, kept in the metadata of the sessions that made them.
local Changes = require('callboard.model.changes')
local Review = require('callboard.model.review')
local errors = require('callboard.errors')
local log = require('callboard.log')
local notify = require('callboard.notify')

local M = {}

---@class callboard.Tracked
---@field id string of the session
---@field model callboard.Changes
---@field loaded boolean all that there is has been read
---@field fault string? why it is not followed any more
---@field title string?
---@field folders table<string, string[]> by session: where it may change files, the first is where it works
---@field names table<string, string> of agents, by session
---@field private app callboard.App
---@field private users integer
---@field private listeners table<fun(), true>
---@field private waiting fun()[]
---@field private close_feed fun()
---@field private cached callboard.ChangedFile[]?
local Tracked = {}
Tracked.__index = Tracked

---So often what was said is written, while others write to the same metadata. Each time one of them is done.
local MAX_TRIES = 20

local TYPES = {
  'session_created',
  'agent_spawned',
  'session_forked',
  'session_updated',
  'session_deleted',
  'tool_result',
}

---@type table<string, callboard.Tracked>
local open = {}

---@param app callboard.App
---@param id string
---@return callboard.Tracked
local function track(app, id)
  local self = setmetatable({
    id = id,
    app = app,
    model = Changes.new(),
    loaded = false,
    folders = {},
    names = {},
    users = 0,
    listeners = {},
    waiting = {},
  }, Tracked)
  local known = app.sessions.by_id[id]
  self.close_feed = app.feed:follow({
    scope = { kind = known and known.parentId and 'session' or 'tree', id = id },
    cursor = 'start',
    types = TYPES,
    on_events = function(events, batch)
      self:events(events, batch)
    end,
    on_lost = function(err)
      self.fault = notify.explain(err)
      self:tell()
    end,
  })
  return self
end

---The changes of a session. Each `use` wants its `release`.
---@param id string
---@return callboard.Tracked
function M.use(id)
  open[id] = open[id] or track(require('callboard.app').get(), id)
  open[id].users = open[id].users + 1
  return open[id]
end

---Tells buffers when a session, or another of its tree, writes their files.
---@param app callboard.App
---@param id string
---@return fun() close
function M.watch(app, id)
  return app.feed:follow({
    scope = { kind = 'tree', id = id },
    cursor = 'now',
    types = { 'tool_result' },
    on_events = function(events)
      local paths = {}
      for _, event in ipairs(events) do
        for _, change in ipairs(event.data.changes or {}) do
          vim.list_extend(paths, { change.path, change.oldPath })
        end
      end
      require('callboard.ui.changes').touched(paths)
    end,
  })
end

function Tracked:release()
  self.users = self.users - 1
  if self.users == 0 then
    open[self.id] = nil
    self.close_feed()
    self.listeners = {}
  end
end

---@private
---@param session_id string
---@param created callboard.SessionCreated
function Tracked:created(session_id, created)
  local folders = { created.cwd }
  self.folders[session_id] = vim.list_extend(folders, created.additionalDirectories or {})
  Changes.reviewed(self.model, session_id, created.metadata)
  if session_id == self.id then
    self.title = created.title
  end
end

---@private
---@param events callboard.Event[]
---@param batch callboard.EventBatch
function Tracked:events(events, batch)
  local touched = {}
  for _, event in ipairs(events) do
    local id, data = event.sessionId, event.data
    if event.type == 'session_created' then
      self:created(id, data)
    elseif event.type == 'agent_spawned' then
      self:created(id, data.session)
      self.names[id] = data.name
    elseif event.type == 'session_updated' then
      if id == self.id and data.changes.title ~= nil then
        self.title = data.changes.title
      end
      Changes.reviewed(self.model, id, data.changes.metadata)
    elseif event.type == 'session_deleted' then
      if id == self.id then
        self.fault = 'this session was deleted'
      end
    end
    vim.list_extend(touched, Changes.add(self.model, event))
  end
  local was_loaded = self.loaded
  self.loaded = self.loaded or batch.caughtUp == true
  if was_loaded and #touched > 0 then
    require('callboard.ui.changes').touched(touched)
  end
  if #events > 0 or self.loaded ~= was_loaded then
    self:tell()
  end
end

---@private
function Tracked:tell()
  self.cached = nil
  for _, listener in ipairs(vim.tbl_keys(self.listeners)) do
    local ok, fault = xpcall(listener, debug.traceback)
    if not ok then
      log.error('%s', fault)
    end
  end
  if self.loaded or self.fault then
    local waiting = self.waiting
    self.waiting = {}
    for _, fn in ipairs(waiting) do
      fn()
    end
  end
end

---@param listener fun()
---@return fun() off
function Tracked:listen(listener)
  self.listeners[listener] = true
  return function()
    self.listeners[listener] = nil
  end
end

---Calls when all has been read, or cannot be.
---@param fn fun()
function Tracked:when_loaded(fn)
  if self.loaded or self.fault then
    return fn()
  end
  table.insert(self.waiting, fn)
end

---The changed files, by path.
---@return callboard.ChangedFile[]
function Tracked:files()
  self.cached = self.cached or Changes.files(self.model)
  return self.cached
end

---@param path string
---@return callboard.ChangedFile?
function Tracked:file(path)
  for _, file in ipairs(self:files()) do
    if file.path == path then
      return file
    end
  end
end

---Those that nobody has accepted or rejected yet.
---@return callboard.ChangedFile[]
function Tracked:pending()
  return vim.tbl_filter(function(file)
    return file.state == 'new'
  end, self:files())
end

---Where the sessions that changed a file may do so.
---@param file callboard.ChangedFile
---@return string[]
function Tracked:folders_of(file)
  local folders = {}
  for _, step in ipairs(file.chain) do
    vim.list_extend(folders, self.folders[step.session_id] or {})
  end
  return folders
end

---The path as it is told: from where the session works.
---@param path string
---@return string
function Tracked:short(path)
  local cwd = (self.folders[self.id] or {})[1]
  if cwd and vim.startswith(path, cwd .. '/') then
    return path:sub(#cwd + 2)
  end
  return path
end

---@param step callboard.Step
---@param done fun(err: table?)
function Tracked:fetch(step, done)
  local parts, offset = {}, 0
  local function piece()
    self.app:request('blob/read', { blobId = step.blob.blobId, offset = offset }, function(err, got)
      if err then
        return done(err)
      end
      local data = vim.base64.decode(got.dataBase64)
      parts[#parts + 1], offset = data, offset + #data
      if not got.eof and #data > 0 then
        return piece()
      end
      step.change.diff, step.blob = table.concat(parts), nil
      done()
    end)
  end
  piece()
end

---Has the diffs of files whole: events hold only a part of what is large.
---@param files callboard.ChangedFile[]
---@param done fun(err: table?)
function Tracked:whole(files, done)
  for _, file in ipairs(files) do
    for _, step in ipairs(file.chain) do
      if step.blob then
        return self:fetch(step, function(err)
          if err then
            return done(err)
          end
          self:whole(files, done)
        end)
      end
    end
  end
  done()
end

---@private
---Writes what was said of a session's changes, beside whatever else its metadata hold. When another editor
---writes between the reading and the writing, both are done anew, so that nothing it said is lost.
---@param session_id string
---@param review callboard.Review
---@param done fun(err: table?)
---@param tries integer? so often it was written already
function Tracked:keep(session_id, review, done, tries)
  tries = (tries or 0) + 1
  self.app:request('session/get', { sessionId = session_id }, function(err, got)
    if err then
      return done(err)
    end
    local metadata = got.session.metadata
    Review.merge(review, Review.read(metadata, session_id))
    self.app:request('session/update', {
      sessionId = session_id,
      metadata = Review.write(metadata, session_id, review),
      ifUnchangedSince = got.session.headSeq,
      idempotencyKey = self.app:new_key(),
    }, function(fault)
      if errors.kind(fault) == 'sessionChanged' and tries < MAX_TRIES then
        self:keep(session_id, review, done, tries)
      else
        done(fault)
      end
    end)
  end)
end

---Notes that a person accepted or rejected files, as they are shown. Until it is kept they are neither.
---@param files callboard.ChangedFile[]
---@param verdict callboard.Verdict
---@param done fun()? not called when it could not be kept, which is told
function Tracked:settle(files, verdict, done)
  local reviews = Changes.settle(self.model, files, verdict)
  local left, fault = vim.tbl_count(reviews), nil
  Changes.settling(self.model, files, true)
  self:tell()
  for session_id, review in pairs(reviews) do
    self:keep(session_id, review, function(err)
      left, fault = left - 1, fault or err
      if not err then
        Changes.settled(self.model, session_id, review)
      end
      if left > 0 then
        return
      end
      Changes.settling(self.model, files, false)
      self:tell()
      if fault then
        notify.failed('remember what was said of the changes', fault)
      elseif done then
        done()
      end
    end)
  end
end

---Whether a file is being settled just now.
---@param file callboard.ChangedFile
---@return boolean
function Tracked:settling(file)
  local now = self:file(file.path)
  return now ~= nil and now.state == 'settling'
end

return M

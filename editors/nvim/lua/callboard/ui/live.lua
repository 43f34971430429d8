-- Keeps a page about a tree of sessions up to date: asks anew after events that matter, several of them with
-- one request, and only while the page is in a window. Hidden, it follows nothing.
local M = {}

---@class callboard.LiveOptions
---@field app callboard.App
---@field buf integer
---@field root string
---@field types string[] of the events that matter
---@field fetch fun(done: fun(err: table?)) asks for all that is shown; keeps it
---@field draw fun()
---@field ticks (fun(): boolean)? whether something shown grows with time

---@class callboard.Live
---@field fault string? why what is shown may be old
---@field loaded boolean
---@field private opts callboard.LiveOptions
---@field private attached boolean
---@field private close_feed fun()?
---@field private offs fun()[]
---@field private fetching boolean?
---@field private again boolean?
---@field private fetched number? when it was asked last (ms)
---@field private waiting boolean?
---@field private timer uv.uv_timer_t?
---@field private over boolean?
local Live = {}
Live.__index = Live

---Events that come within so long (ms) after the first are one request, and requests are at least so far apart.
M.GATHER_MS, M.APART_MS = 120, 400
M.TICK_MS = 1000

---@param opts callboard.LiveOptions
---@return callboard.Live
function M.new(opts)
  local self = setmetatable({ opts = opts, offs = {}, loaded = false, attached = false }, Live)
  local group = vim.api.nvim_create_augroup(('callboard-live-%d'):format(opts.buf), {})
  local function on(event, fn)
    vim.api.nvim_create_autocmd(event, { group = group, buffer = opts.buf, callback = fn })
  end
  on('BufWinEnter', function()
    self:attach()
  end)
  on('BufHidden', function()
    self:detach()
  end)
  on('BufWipeout', function()
    self.over = true
    self:detach()
    vim.schedule(function()
      pcall(vim.api.nvim_del_augroup_by_id, group)
    end)
  end)
  vim.api.nvim_create_autocmd('TabEnter', {
    group = group,
    callback = function()
      self:time()
    end,
  })
  return self
end

---Begins to follow, if it does not yet.
function Live:attach()
  if self.attached or self.over then
    return
  end
  self.attached = true
  local app = self.opts.app
  self.close_feed = app.feed:follow({
    scope = { kind = 'tree', id = self.opts.root },
    cursor = 'now',
    types = self.opts.types,
    on_events = function()
      self:wish()
    end,
    on_live = function()
      self:fetch()
    end,
    on_lost = function(err)
      self:told(err)
    end,
  })
  for _, topic in ipairs({ 'server', 'approvals' }) do
    self.offs[#self.offs + 1] = app:on(topic, function()
      self:draw()
    end)
  end
  self:draw()
end

---Follows no more; what is shown stays as it is.
function Live:detach()
  self.attached = false
  if self.close_feed then
    self.close_feed()
    self.close_feed = nil
  end
  for _, off in ipairs(self.offs) do
    off()
  end
  self.offs = {}
  self:time()
end

---@private
---@param err table?
function Live:told(err)
  self.fault = err and require('callboard.notify').explain(err) or nil
  if not err then
    self.loaded = true
  end
  self:draw()
end

---@private
---Asks soon, together with what else comes meanwhile.
function Live:wish()
  if self.waiting then
    return
  end
  self.waiting = true
  local since = vim.uv.hrtime() / 1e6 - (self.fetched or 0)
  vim.defer_fn(function()
    self.waiting = false
    self:fetch()
  end, math.ceil(math.max(M.GATHER_MS, M.APART_MS - since)))
end

---Asks now; while an answer is awaited, once more after it.
function Live:fetch()
  if not self.attached then
    return
  elseif self.fetching then
    self.again = true
    return
  end
  self.fetching, self.fetched = true, vim.uv.hrtime() / 1e6
  self.opts.fetch(function(err)
    self.fetching = false
    if self.over then
      return
    end
    self:told(err)
    if self.again then
      self.again = false
      self:wish()
    end
  end)
end

---What to say above all else: why it may be old, or that nothing is there yet.
---@return string?
function Live:notice()
  local server = self.opts.app.server
  if server.state == 'failed' then
    return ('No server: %s'):format(
      server.failure and server.failure.message or 'see :Callboard log'
    )
  elseif server.state == 'waiting' then
    return 'The server has ended; it is started again…'
  elseif self.fault then
    return ('This may be old: %s'):format(self.fault)
  elseif not self.loaded then
    return 'Loading…'
  end
end

---@private
function Live:draw()
  if not self.over and vim.api.nvim_buf_is_valid(self.opts.buf) then
    self.opts.draw()
    self:time()
  end
end

---@private
---Has the page drawn each second while it is in view and something on it grows with time.
function Live:time()
  local wanted = self.attached
    and not self.over
    and self.opts.ticks ~= nil
    and require('callboard.ui.buffers').visible(self.opts.buf)
    and self.opts.ticks()
  if wanted and not self.timer then
    self.timer = assert(vim.uv.new_timer())
    self.timer:start(
      M.TICK_MS,
      M.TICK_MS,
      vim.schedule_wrap(function()
        if self.timer then
          require('callboard.notify').guard(self.draw, self)
        end
      end)
    )
  elseif not wanted and self.timer then
    self.timer:stop()
    self.timer:close()
    self.timer = nil
  end
end

---The root of the tree that a session is part of: known, or asked for.
---@param app callboard.App
---@param session_id string
---@param doing string for the message when it cannot be told
---@param done fun(root: string)
function M.root_of(app, session_id, doing, done)
  local known = app.sessions.by_id[session_id]
  if known then
    return done(known.rootId)
  end
  app:request('session/get', { sessionId = session_id }, function(err, got)
    if err then
      return require('callboard.notify').failed(doing, err)
    end
    app:put_session(got.session)
    done(got.session.rootId)
  end)
end

---Has a page's long lines go on below, further in.
---@param buf integer
function M.wrap(buf)
  local buffers = require('callboard.ui.buffers')
  local win = buffers.window(buf)
  if win then
    buffers.window_options(
      win,
      { wrap = true, linebreak = true, breakindent = true, breakindentopt = 'shift:6' }
    )
  end
end

---@return boolean a timer runs
function Live:ticking()
  return self.timer ~= nil
end

return M

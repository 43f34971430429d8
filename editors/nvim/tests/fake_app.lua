-- An app without a server, for specs of what asks one: each request is answered by what the spec says, and kept.
local M = {}

---@class callboard.tests.FakeApp
---@field asked { method: string, params: table }[]
---@field answers table<string, any> a result, or fun(params): result, err; by method
---@field messages { text: string, level: integer? }[] what the person was told
---@field opened { [1]: string, [2]: table? }[] chats
---@field open table<string, table> sessions that are followed

---Puts it in the place of the real one until `restore`.
---@return callboard.tests.FakeApp
function M.install()
  local app = {
    sessions = require('callboard.model.store').new(),
    approvals = require('callboard.model.approvals').new(),
    server = { state = 'ready' },
    asked = {},
    answers = {},
    messages = {},
    opened = {},
    open = {},
  }
  function app:request(method, params, callback)
    table.insert(self.asked, { method = method, params = vim.deepcopy(params) })
    local answer = self.answers[method]
    assert(answer ~= nil, 'nobody said what the answer to ' .. method .. ' is')
    local result, err = answer, nil
    if type(answer) == 'function' then
      result, err = answer(params)
    end
    callback(err, result)
    return function() end
  end
  function app:new_key()
    return 'key ' .. #self.asked
  end
  function app:change(method, params, doing, done)
    self:request(method, params, function(err, result)
      if err then
        require('callboard.notify').failed(doing, err)
      elseif done then
        done(result)
      end
    end)
  end
  function app:put_session(session)
    require('callboard.model.store').put(self.sessions, session)
  end
  function app:tell() end
  function app:refresh() end
  function app:feature()
    return false
  end
  function app:methods()
    return vim.tbl_map(function(request)
      return request.method
    end, self.asked)
  end

  local kept = {
    app = package.loaded['callboard.app'],
    chat = package.loaded['callboard.ui.chat'],
    notify = vim.notify,
  }
  package.loaded['callboard.app'] = {
    get = function()
      return app
    end,
    peek = function()
      return app
    end,
  }
  package.loaded['callboard.ui.chat'] = {
    current = function() end,
    open = function(id, opts)
      table.insert(app.opened, { id, opts })
    end,
  }
  vim.notify = function(text, level)
    table.insert(app.messages, { text = text, level = level })
  end
  ---Lets all happen that was scheduled so far.
  function app:settle()
    local done
    vim.schedule(function()
      done = true
    end)
    vim.wait(2000, function()
      return done
    end)
  end
  function app:restore()
    self:settle()
    package.loaded['callboard.app'] = kept.app
    package.loaded['callboard.ui.chat'] = kept.chat
    vim.notify = kept.notify
  end
  ---The newest message.
  ---@return string
  function app:told()
    self:settle()
    local last = self.messages[#self.messages]
    return last and last.text or ''
  end
  return app
end

local count = 0

---@param fields table?
---@return callboard.Session
function M.session(fields)
  count = count + 1
  local id = fields and fields.sessionId or ('ses_%04d'):format(count)
  return vim.tbl_extend('force', {
    sessionId = id,
    rootId = id,
    cwd = '/home/ada/project',
    profile = 'default',
    mode = 'work',
    status = 'idle',
    lastOutcome = 'completed',
    createdAt = '2024-05-01T10:00:00.000Z',
    updatedAt = '2024-05-01T10:00:00.000Z',
    headSeq = 9,
    queueLength = 0,
    pendingApprovals = 0,
  }, fields or {})
end

return M

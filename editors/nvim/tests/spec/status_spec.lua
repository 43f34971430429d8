describe('the statusline', function()
  local app, status, events, group

  before_each(function()
    package.loaded['callboard.status'] = nil
    status = require('callboard.status')
    app = {
      listeners = {},
      server = { state = 'stopped' },
      sessions = require('callboard.model.store').new(),
      approvals = require('callboard.model.approvals').new(),
    }
    function app:on(topic, fn)
      self.listeners[topic] = fn
    end
    function app:tell(topic)
      self.listeners[topic]()
    end
    status.watch(app)
    events = {}
    group = vim.api.nvim_create_augroup('callboard-status-spec', {})
    vim.api.nvim_create_autocmd('User', {
      group = group,
      pattern = 'CallboardStatus',
      callback = function(event)
        table.insert(events, event.data)
      end,
    })
  end)

  after_each(function()
    vim.api.nvim_del_augroup_by_id(group)
    package.loaded['callboard.status'] = nil
    package.loaded['callboard'] = nil
  end)

  local function put(fields)
    require('callboard.model.store').put(
      app.sessions,
      vim.tbl_extend('force', { sessionId = 'ses_1', updatedAt = '' }, fields)
    )
    app:tell('sessions')
  end

  it('is empty while nothing was started', function()
    assert.equal('', status.text())
    assert.same({ server = 'stopped', running = 0, approvals = 0 }, status.get())
  end)

  it('tells what happens with the server', function()
    for state, text in pairs({
      starting = 'callboard: starting',
      waiting = 'callboard: reconnecting',
      failed = 'callboard: no server',
      ready = 'callboard: ready',
      stopped = '',
    }) do
      app.server.state = state
      app:tell('server')
      assert.equal(text, status.text())
      assert.equal(state, status.get().server)
    end
  end)

  it('counts what runs and what waits for an answer', function()
    app.server.state = 'ready'
    put({ status = 'running' })
    assert.equal('callboard: 1 running', status.text())
    require('callboard.model.approvals').add(
      app.approvals,
      { approvalId = 'apr_1', sessionId = 'ses_1', createdAt = '' }
    )
    app:tell('approvals')
    assert.equal('callboard: 1 to approve, 1 running', status.text())
  end)

  it('tells that it has changed, and only then', function()
    app.server.state = 'ready'
    app:tell('server')
    app:tell('server')
    put({ status = 'idle' })
    assert.equal(1, #events)
    assert.equal('ready', events[1].server)
    put({ status = 'running' })
    assert.equal(2, #events)
    assert.equal(1, events[2].running)
  end)

  it('gives away nothing that could be changed', function()
    status.get().running = 99
    assert.equal(0, status.get().running)
  end)

  it('is asked for in no time', function()
    app.server.state = 'ready'
    app:tell('server')
    local first = status.text()
    app.sessions, app.approvals = nil, nil -- nothing of the app is looked at
    assert.equal(first, status.text())
  end)

  describe('of lualine', function()
    local component

    before_each(function()
      local base = { super = nil }
      base.__index = base
      function base:extend()
        local class = setmetatable({ super = self }, self)
        class.__index = class
        return class
      end
      function base:init(options)
        self.options = options
      end
      function base:create_hl(color, name)
        return { color = color, name = name }
      end
      function base:format_hl(highlight)
        return ('%%#%s#'):format(highlight.color)
      end
      package.loaded['lualine.component'] = base
      package.loaded['lualine.components.callboard'] = nil
    end)

    after_each(function()
      package.loaded['lualine.component'] = nil
      package.loaded['lualine.components.callboard'] = nil
    end)

    local function shown(options)
      component = setmetatable({}, require('lualine.components.callboard'))
      component:init(options or {})
      return component:update_status()
    end

    it('shows nothing while there is nothing', function()
      assert.equal('', shown())
    end)

    it('shows the line in the colours of the section', function()
      app.server.state = 'ready'
      app:tell('server')
      assert.equal('callboard: ready', shown())
    end)

    it('stands out when somebody has to answer, or there is no server', function()
      app.server.state = 'ready'
      require('callboard.model.approvals').add(
        app.approvals,
        { approvalId = 'apr_1', sessionId = 'ses_1', createdAt = '' }
      )
      app:tell('approvals')
      assert.equal('%#DiagnosticWarn#callboard: 1 to approve', shown())
      app.server.state = 'failed'
      app:tell('server')
      assert.equal('%#DiagnosticError#callboard: no server', shown())
    end)

    it('has the colour that the user has set', function()
      app.server.state = 'failed'
      app:tell('server')
      assert.equal('callboard: no server', shown({ color = 'Title' }))
    end)
  end)
end)

describe('a User autocommand', function()
  local events = require('callboard.events')
  local group

  before_each(function()
    group = vim.api.nvim_create_augroup('callboard-events-spec', {})
  end)

  after_each(function()
    vim.api.nvim_del_augroup_by_id(group)
  end)

  local function on(pattern, fn)
    vim.api.nvim_create_autocmd('User', { group = group, pattern = pattern, callback = fn })
  end

  it('gets what it is about', function()
    local got
    on('CallboardTurnEnded', function(event)
      got = event.data
    end)
    events.emit(
      'CallboardTurnEnded',
      { sessionId = 'ses_1', turnId = 'trn_1', outcome = 'completed' }
    )
    assert.same({ sessionId = 'ses_1', turnId = 'trn_1', outcome = 'completed' }, got)
  end)

  describe('is told of', function()
    local app, got

    ---@param name string
    local function collect(name)
      on(name, function(event)
        table.insert(got, { name, event.data })
      end)
    end

    before_each(function()
      got = {}
      local function nothing() end
      app = {
        sessions = require('callboard.model.store').new(),
        approvals = require('callboard.model.approvals').new(),
        questions = { withdraw = nothing },
        refresh = nothing,
        tell = nothing,
        feed = { scopes = {} },
      }
      function app.feed:follow(following)
        self.scopes[following.scope.kind] = following.on_events
      end
      require('callboard.catalog').follow(app)
    end)

    it('a session that begins, and turns that end', function()
      collect('CallboardSessionStarted')
      collect('CallboardTurnEnded')
      app.feed.scopes.catalog({ { type = 'session_created', sessionId = 'ses_1', data = {} } })
      app.feed.scopes.catalog({
        {
          type = 'turn_finished',
          sessionId = 'ses_1',
          data = { turnId = 'trn_1', outcome = 'failed' },
        },
      })
      assert.same({
        { 'CallboardSessionStarted', { sessionId = 'ses_1' } },
        { 'CallboardTurnEnded', { sessionId = 'ses_1', turnId = 'trn_1', outcome = 'failed' } },
      }, got)
    end)

    it('turns and tools of a session that is open', function()
      collect('CallboardTurnStarted')
      collect('CallboardToolStarted')
      collect('CallboardToolEnded')
      require('callboard.catalog').seen(
        app,
        { type = 'turn_started', sessionId = 'ses_1', data = { turnId = 'trn_1' } }
      )
      require('callboard.catalog').seen(app, {
        type = 'tool_call',
        sessionId = 'ses_1',
        data = { callId = 'c1', name = 'shell', title = 'Run make' },
      })
      require('callboard.catalog').seen(app, {
        type = 'tool_result',
        sessionId = 'ses_1',
        data = { callId = 'c1', name = 'shell', status = 'ok' },
      })
      assert.same({
        { 'CallboardTurnStarted', { sessionId = 'ses_1', turnId = 'trn_1' } },
        {
          'CallboardToolStarted',
          { sessionId = 'ses_1', callId = 'c1', name = 'shell', title = 'Run make' },
        },
        {
          'CallboardToolEnded',
          { sessionId = 'ses_1', callId = 'c1', name = 'shell', status = 'ok' },
        },
      }, got)
    end)

    it(
      'approvals, once when they are asked for and once when they are answered, whoever did it',
      function()
        collect('CallboardApprovalRequested')
        collect('CallboardApprovalResolved')
        local approval =
          { approvalId = 'apr_1', sessionId = 'ses_1', title = 'Run make', createdAt = '' }
        app.feed.scopes.approvals({
          { type = 'approval_request', sessionId = 'ses_1', data = { approval = approval } },
        })
        app.feed.scopes.approvals({
          { type = 'approval_request', sessionId = 'ses_1', data = { approval = approval } },
        })
        -- as when this editor has answered: it waits no more before the event comes
        require('callboard.model.approvals').remove(app.approvals, 'apr_1')
        app.feed.scopes.approvals({
          {
            type = 'approval_decision',
            sessionId = 'ses_1',
            data = { approvalId = 'apr_1', resolution = { outcome = 'allowed' } },
          },
        })
        assert.same({
          { 'CallboardApprovalRequested', approval },
          { 'CallboardApprovalResolved', { approvalId = 'apr_1', outcome = 'allowed' } },
        }, got)
      end
    )
  end)
end)

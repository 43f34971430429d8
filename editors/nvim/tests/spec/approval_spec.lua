--- Approvals: which keys answer which one, where `next` goes, and what stands in the corner.
local Approvals = require('callboard.model.approvals')
local answers = require('callboard.model.answers')
local approval = require('callboard.ui.approval')
local config = require('callboard.config')
local float = require('callboard.ui.approval_float')

local KINDS = { 'allow_once', 'allow_session', 'allow_always', 'reject_once', 'reject_always' }

local function make(id, fields)
  return vim.tbl_extend('force', {
    approvalId = 'apr_' .. id,
    sessionId = 'ses_1',
    rootId = 'ses_1',
    callId = 'call_' .. id,
    kind = 'permission',
    title = 'Run ' .. id,
    tool = 'run',
    subject = { type = 'command', command = id, cwd = '/w' },
    options = vim.tbl_map(function(kind)
      return { optionId = kind, name = kind, kind = kind }
    end, KINDS),
    createdAt = '2026-01-01T00:00:0' .. id,
  }, fields or {})
end

---An app with approvals, a chat that is said to be in view, and what became of both.
local function new_stage()
  local it = { sent = {}, told = {}, opened = {}, in_view = {}, listeners = {} }
  it.app = { approvals = Approvals.new(), server = { state = 'ready' } }
  function it.app:on(topic, fn)
    it.listeners[topic] = fn
    return function() end
  end
  function it.app:answer(of, option, feedback, done)
    table.insert(it.sent, { of.approvalId, option.optionId, feedback })
    it.done = done
  end
  function it.set(...)
    it.app.approvals = Approvals.new()
    for _, each in ipairs({ ... }) do
      Approvals.add(it.app.approvals, each)
    end
    it.listeners.approvals()
  end
  ---Lets what was held be free.
  function it.pass()
    it.time = it.time + answers.HOLD_MS
  end
  return it
end

describe('approvals', function()
  local stage, real_notify, real_hrtime, buf

  before_each(function()
    config.setup({})
    stage = new_stage()
    real_notify, real_hrtime = vim.notify, vim.uv.hrtime
    stage.time = 1e6
    rawset(vim.uv, 'hrtime', function()
      return stage.time * 1e6
    end)
    rawset(vim, 'notify', function(message)
      table.insert(stage.told, message)
    end)
    package.loaded['callboard.ui.chat'] = {
      visible = function(id)
        return stage.in_view[id] == true
      end,
      current = function()
        return stage.current
      end,
      open = function(id, opts)
        table.insert(stage.opened, { id, opts.item })
      end,
    }
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_set_current_buf(buf)
    approval.watch(stage.app)
  end)

  after_each(function()
    stage.set()
    rawset(vim, 'notify', real_notify)
    rawset(vim.uv, 'hrtime', real_hrtime)
    package.loaded['callboard.ui.chat'] = nil
    approval.unmap(buf)
    vim.api.nvim_buf_delete(buf, { force = true })
  end)

  local function press(key)
    vim.api.nvim_feedkeys(key, 'mx', false)
  end

  ---What was told since the last look.
  local function told()
    vim.wait(200, function()
      return #stage.told > 0
    end, 2)
    local all = table.concat(stage.told, '\n')
    stage.told = {}
    return all
  end

  local function here(of)
    approval.map(buf, function()
      return of
    end)
  end

  describe('keys', function()
    it('answer with what they stand for', function()
      local first = make(1)
      stage.set(first)
      here(first)
      stage.pass()
      for key, option in ipairs({ 'allow_once', 'allow_session', 'allow_always', 'reject_once' }) do
        press(tostring(key))
        assert.same({ 'apr_1', option }, stage.sent[key])
        stage.done()
      end
      press('6')
      assert.same({ 'apr_1', 'reject_always' }, stage.sent[5])
    end)

    it('do nothing else: Enter never answers', function()
      local first = make(1)
      stage.set(first)
      here(first)
      stage.pass()
      press('\r')
      press(' ')
      press('y')
      assert.same({}, stage.sent)
    end)

    it('answer once, however often they are pressed', function()
      local first = make(1)
      stage.set(first)
      here(first)
      stage.pass()
      press('1')
      press('1')
      press('4')
      assert.same({ { 'apr_1', 'allow_once' } }, stage.sent)
      assert.truthy(told():find('the answer to "Run 1" is on its way', 1, true))
      stage.done({})
      press('4') -- it failed, so another try counts
      assert.same({ 'apr_1', 'reject_once' }, stage.sent[2])
    end)

    it('do not answer what has only just come', function()
      local first = make(1)
      stage.set(first)
      here(first)
      press('1')
      assert.same({}, stage.sent)
      assert.truthy(told():find('only just come', 1, true))
      stage.pass()
      press('1')
      assert.equal(1, #stage.sent)
    end)

    it('do not answer what has just taken the place of another', function()
      local first, second = make(1), make(2)
      stage.set(first, second)
      local target = first
      approval.map(buf, function()
        return target
      end)
      stage.pass()
      stage.set(second)
      target = second
      press('1')
      assert.same({}, stage.sent)
      assert.truthy(told():find('"Run 1" has just ended', 1, true))
      stage.pass()
      press('1')
      assert.same({ { 'apr_2', 'allow_once' } }, stage.sent)
    end)

    it('do not answer what has ended', function()
      local first, second = make(1), make(2)
      stage.set(first, second)
      here(first)
      stage.set(second)
      stage.pass()
      press('1')
      assert.same({}, stage.sent)
      assert.truthy(told():find('"Run 1" does not wait for an answer any more', 1, true))
    end)

    it('say what is offered instead', function()
      local first = make(1)
      first.options = { first.options[1], first.options[4] }
      stage.set(first)
      here(first)
      stage.pass()
      press('3')
      assert.same({}, stage.sent)
      assert.truthy(
        told():find(
          '"Run 1" has no answer 3. It has: 1 allow_once; 4 Deny; 5 Deny, and say why',
          1,
          true
        )
      )
    end)

    it('of a disabled or another mapping are not taken', function()
      config.setup({ keymaps = { approval = { once = 'ga', deny = false } } })
      local first = make(1)
      stage.set(first)
      here(first)
      stage.pass()
      press('1')
      press('4')
      assert.same({}, stage.sent)
      press('ga')
      assert.same({ { 'apr_1', 'allow_once' } }, stage.sent)
    end)

    it('go with the approval', function()
      here(make(1))
      assert.equal('Callboard: allow_once', vim.fn.maparg('1', 'n', false, true).desc)
      approval.unmap(buf)
      assert.same({}, vim.fn.maparg('1', 'n', false, true))
    end)
  end)

  describe('next', function()
    it('goes to each, the oldest first, and around', function()
      stage.set(make(2), make(1), make(3, { sessionId = 'ses_kid', rootId = 'ses_9' }))
      for _ = 1, 4 do
        approval.next()
      end
      assert.same({
        { 'ses_1', 'call_1' },
        { 'ses_1', 'call_2' },
        { 'ses_9', 'call_3' },
        { 'ses_1', 'call_1' },
      }, stage.opened)
    end)

    it("goes to the agent's own chat where that is in view", function()
      stage.in_view.ses_kid = true
      stage.set(make(3, { sessionId = 'ses_kid', rootId = 'ses_9' }))
      approval.next()
      assert.same({ { 'ses_kid', 'call_3' } }, stage.opened)
    end)

    it('says so where nothing waits', function()
      stage.set()
      approval.next()
      assert.truthy(told():find('nothing waits', 1, true))
    end)

    it('waits until it is known what waits', function()
      approval.next()
      assert.same({}, stage.opened)
      stage.set(make(1))
      assert.same({ { 'ses_1', 'call_1' } }, stage.opened)
    end)
  end)

  describe('a command', function()
    it('answers what the chat in view asks', function()
      stage.current, stage.in_view.ses_2 = 'ses_2', true
      stage.set(make(1), make(2, { sessionId = 'ses_2', rootId = 'ses_2' }))
      stage.pass()
      approval.answer_current(1)
      assert.same({ { 'apr_2', 'allow_once' } }, stage.sent)
    end)

    it('answers the only one there is, and passes on what is said with it', function()
      stage.set(make(1))
      stage.pass()
      approval.answer_current(5, 'Use make instead.')
      assert.same({ { 'apr_1', 'reject_once', 'Use make instead.' } }, stage.sent)
    end)

    it('goes by the cursor in the chat alone, not in another window', function()
      local first, second = make(1), make(2)
      stage.set(first, second)
      stage.pass()
      here(second)
      vim.cmd('new')
      approval.answer_current(1)
      assert.same({}, stage.sent)
      assert.truthy(told():find('2 wait', 1, true))
      vim.cmd('close')
      vim.api.nvim_set_current_buf(buf)
      approval.answer_current(1)
      assert.same({ { 'apr_2', 'allow_once' } }, stage.sent)
    end)

    it('answers the only one elsewhere, where the chat in view asks nothing', function()
      stage.current, stage.in_view.ses_9 = 'ses_9', true
      stage.set(make(1))
      stage.pass()
      approval.answer_current(4)
      assert.same({ { 'apr_1', 'reject_once' } }, stage.sent)
    end)

    it('answers nothing where it is not clear what', function()
      stage.current, stage.in_view.ses_1 = 'ses_1', true
      stage.set(make(1), make(2), make(3, { sessionId = 'ses_2', rootId = 'ses_2' }))
      stage.pass()
      approval.answer_current(1)
      assert.same({}, stage.sent)
      local said = told()
      assert.truthy(said:find('3 wait', 1, true))
      assert.truthy(said:find('Run 1\nRun 2\nRun 3', 1, true))
    end)
  end)

  describe('the corner', function()
    ---The float's text, when all that was scheduled is done; nil where there is none.
    local function corner()
      local found
      local settled = false
      vim.schedule(function()
        vim.schedule(function()
          settled = true
        end)
      end)
      vim.wait(1000, function()
        return settled
      end, 2)
      for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
        if vim.api.nvim_win_get_config(win).relative ~= '' then
          found = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false)[1]
          assert.is_false(vim.api.nvim_win_get_config(win).focusable)
        end
      end
      return found
    end

    it('tells what waits while its chat is not in view', function()
      local path =
        { { sessionId = 'ses_1', name = 'default' }, { sessionId = 'ses_k', name = 'docs' } }
      stage.set(make(1, { sessionId = 'ses_k', path = path }), make(2))
      assert.equal('2 to approve · Run 1 · docs · :Callboard next', corner())
      stage.in_view.ses_1 = true
      vim.api.nvim_exec_autocmds('WinEnter', {})
      assert.is_nil(corner())
      stage.in_view.ses_1 = false
      vim.api.nvim_exec_autocmds('WinEnter', {})
      assert.truthy(corner())
      stage.set()
      assert.is_nil(corner())
    end)

    it('takes no focus, and no window of an ordinary kind', function()
      local win = vim.api.nvim_get_current_win()
      stage.set(make(1))
      assert.truthy(corner())
      assert.equal(win, vim.api.nvim_get_current_win())
      vim.cmd('wincmd w')
      assert.equal(win, vim.api.nvim_get_current_win())
    end)

    it('goes along to another tab page', function()
      stage.set(make(1))
      assert.truthy(corner())
      vim.cmd('tabnew')
      assert.truthy(corner())
      vim.cmd('tabclose')
      assert.truthy(corner())
    end)

    it('comes again when somebody closes it, and is there once', function()
      stage.set(make(1))
      assert.truthy(corner())
      vim.cmd('fclose')
      assert.truthy(corner())
      stage.set(make(1), make(2))
      assert.equal('2 to approve · Run 1 · :Callboard next', corner())
    end)

    it('is not there where it is switched off: a message tells it, once', function()
      config.setup({ approvals = { float = false } })
      stage.set(make(1))
      assert.is_nil(corner())
      assert.equal('Callboard: Run 1 waits for your answer. :Callboard next shows it', told())
      stage.set(make(1))
      corner()
      assert.same({}, stage.told)
    end)

    it('fits whatever width there is, and says how to go there', function()
      local nasty = make(1, {
        title = 'a\nb\27[2J%f' .. ('全角'):rep(100),
        path = { { name = 'r' }, { name = ('名'):rep(80) .. '\n' } },
      })
      for _, width in ipairs({ 30, 40, 60, 76, 196 }) do
        local text = require('callboard.ui.lines').text(float.line({ nasty }, 12, width))
        assert.truthy(vim.fn.strdisplaywidth(text) <= math.max(width, 36), text)
        assert.truthy(vim.endswith(text, ':Callboard next'), text)
        assert.truthy(vim.startswith(text, '12 to approve'), text)
        assert.is_nil(text:find('[\n\27]'))
      end
    end)
  end)
end)

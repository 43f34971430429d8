-- What the keys of the tree of agents do.
local notify = require('callboard.notify')
local text = require('callboard.model.text')

local M = {}

---How long (ms) a first `D` counts.
M.CLOSING_MS = 5000

---The agent under the cursor; says so where there is none.
---@param page callboard.AgentsPage
---@return callboard.Agent?
local function here(page)
  local target = page.page:target()
  if not target then
    notify.info('there is no agent on this line')
  elseif not target.agent then
    notify.info('this is the session itself: <CR> opens its chat, where you write to it or stop it')
  end
  return target and target.agent
end

---Asks for a line, then does something with it. A blank one does nothing.
---@param title string
---@param fn fun(said: string)
local function with_line(title, fn)
  require('callboard.ui.ask').line({ title = title }, function(said)
    said = said and vim.trim(said) or ''
    if said ~= '' then
      fn(said)
    end
  end)
end

---@param page callboard.AgentsPage
local function open_chat(page)
  local target = page.page:target()
  if target then
    require('callboard.ui.chat').open(target.id)
  end
end

---@param page callboard.AgentsPage
---@param method 'agent/send'|'agent/continue'
local function say(page, method)
  local agent = here(page)
  if not agent then
    return
  end
  local name = text.one_line(agent.name, 40)
  local continues = method == 'agent/continue'
  with_line(
    continues and ('What should %s go on with?'):format(name) or ('Message to %s'):format(name),
    function(said)
      local doing = (continues and 'continue %s' or 'write to %s'):format(name)
      page.app:change(method, { agentId = agent.agentId, text = said }, doing, function(result)
        if continues then
          notify.info(
            result.turnId and ('%s goes on'):format(name)
              or ('%s reads it at its next step'):format(name)
          )
        else
          notify.info(
            ('left for %s: it is read at the next step, or when it is continued (c)'):format(name)
          )
        end
      end)
    end
  )
end

local OUTCOMES = {
  delivered = '%s is told at its next step',
  ignored = '%s winds down already; this was not passed on',
  aborted = '%s is being stopped',
  already_finished = 'no turn of %s runs',
}

---@param page callboard.AgentsPage
---@param kind callboard.InterruptKind
---@param title string? what is asked for; nil asks for nothing
local function interrupt(page, kind, title)
  local agent = here(page)
  if not agent then
    return
  end
  if
    kind ~= 'abort'
    and page.app.server.handshake
    and not page.app:feature('agents.interrupts')
  then
    return notify.warn(
      ('this server cannot %s agents: features = ["agents.interrupts"] in its config.toml switches that on. X stops one at once.'):format(
        kind
      )
    )
  end
  local name = text.one_line(agent.name, 40)
  local function go(reason)
    local params = { agentId = agent.agentId, kind = kind, reason = reason }
    page.app:change('agent/interrupt', params, ('%s %s'):format(kind, name), function(result)
      notify.info(
        (OUTCOMES[result.outcome] or '%s: ' .. text.one_line(result.outcome)):format(name)
      )
    end)
  end
  if title then
    with_line(title:format(name), go)
  else
    go()
  end
end

---@param page callboard.AgentsPage
local function forget_closing(page)
  if page.closing then
    page.closing = nil
    page:draw()
  end
end

---@param page callboard.AgentsPage
local function close(page)
  local agent = here(page)
  if not agent then
    return
  end
  if agent.status == 'closed' then
    return notify.info(('%s is closed already'):format(text.one_line(agent.name, 40)))
  end
  if not (page:is_closing() and page.closing.id == agent.agentId) then
    local closing = { id = agent.agentId, at = vim.uv.hrtime() / 1e6 }
    page.closing = closing
    page:draw()
    vim.defer_fn(function()
      if page.closing == closing then
        forget_closing(page)
      end
    end, M.CLOSING_MS)
    return
  end
  forget_closing(page)
  page.app:change(
    'agent/close',
    { agentId = agent.agentId },
    'close ' .. text.one_line(agent.name, 40)
  )
end

---@param page callboard.AgentsPage
local function reply(page)
  local agent = here(page)
  local question = agent and agent.question
  if agent and not question then
    return notify.info(('%s asks nothing'):format(text.one_line(agent.name, 40)))
  elseif question then
    local name = text.one_line(agent.name, 40)
    with_line(('%s asks: %s'):format(name, text.one_line(question.text, 300)), function(said)
      page.app:change('agent/reply', { askId = question.askId, text = said }, 'reply to ' .. name)
    end)
  end
end

---@param page callboard.AgentsPage
local function approve(page)
  local target = page.page:target()
  if not target then
    return
  end
  local first = vim.iter(page.app.approvals.pending):find(function(approval)
    return approval.sessionId == target.id
  end)
  if first then
    require('callboard.ui.approval').show(first)
  else
    notify.info('nothing of it waits for approval')
  end
end

---What acts on the agent under the cursor.
---@param page callboard.AgentsPage
---@return callboard.Key[]
function M.keys(page)
  local function key(action, lhs, desc, fn)
    return {
      action = action,
      lhs = lhs,
      desc = desc,
      fn = function()
        if action ~= 'close_agent' then
          forget_closing(page)
        end
        fn()
      end,
    }
  end
  return {
    key('open', '<CR>', "Open the agent's chat", function()
      open_chat(page)
    end),
    key('message', 'm', 'Leave it a message for its next step', function()
      say(page, 'agent/send')
    end),
    key('continue', 'c', 'Give it more to do: it goes on with its own memory', function()
      say(page, 'agent/continue')
    end),
    key('steer', 's', 'Correct it at its next step; its work stays', function()
      interrupt(page, 'steer', 'What should %s do instead?')
    end),
    key('cancel', 'x', 'Have it wind down, and say why', function()
      interrupt(page, 'cancel', 'Why should %s stop?')
    end),
    key('abort', 'X', 'Stop its turn at once', function()
      interrupt(page, 'abort')
    end),
    key('close_agent', 'D', 'Close it, and those below it, for good; twice', function()
      close(page)
    end),
    key('reply', 'r', 'Reply to its question', function()
      reply(page)
    end),
    key('approval', 'a', 'Go to what it wants to be allowed', function()
      approve(page)
    end),
    key('refresh', 'gr', 'Ask for it all again', function()
      page.live:fetch()
    end),
  }
end

return M

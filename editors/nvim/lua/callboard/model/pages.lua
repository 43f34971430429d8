-- Pages from before what is loaded, put in front of it: the result is as if all had been read in order. Pure.
local handlers = require('callboard.model.handlers')
local items = require('callboard.model.items')

local M = {}

---What the later events say of an item that they did not find.
---@param item callboard.Item
---@param known callboard.Known
local function catch_up(item, known)
  local approval = item.approval
  local resolution = approval and known.decided[approval.approvalId]
  if resolution then
    handlers.decide(approval, resolution)
  end
end

---Items that both know are tool calls: the earlier one has the call, the later one what came of it.
---@param earlier callboard.Item
---@param later callboard.Item
local function join(earlier, later)
  later.call = later.call or earlier.call
  later.approval = later.approval or earlier.approval
  later.seq, later.placed, later.at = earlier.seq, earlier.placed, earlier.at
  later.turn_id = later.turn_id or earlier.turn_id
end

---Puts a prompt where a later event took it in.
---@param list callboard.Item[]
---@param item callboard.Item
---@param known callboard.Known
local function admit(list, item, known)
  local admitted = known.admitted[item.seq]
  item.turn_id, item.placed = admitted.turn_id, admitted.at
  for i, other in ipairs(list) do
    if other.placed > item.placed or (other.placed == item.placed and other.seq > item.seq) then
      return table.insert(list, i, item)
    end
  end
  list[#list + 1] = item
end

---@param t callboard.Transcript
---@param before callboard.Transcript
local function queue(t, before)
  local known, waiting = t.known, {}
  for _, item in ipairs(before.queue) do
    local content = known.updated[item.seq]
    if content then
      local text, _, attached = items.parts(content)
      item.text, item.attachments = text, attached
    end
    if known.admitted[item.seq] then
      if item.trigger ~= 'mention' then
        admit(t.items, item, known)
      end
    elseif not known.dropped[item.seq] then
      waiting[#waiting + 1] = item
    end
  end
  t.queue = vim.list_extend(waiting, t.queue)
end

---@param t callboard.Transcript
---@param before callboard.Transcript
local function turn(t, before)
  local earlier, later = before.turn, t.turn
  if t.known.turn or not earlier or (later and (later.id or earlier.id) ~= earlier.id) then
    t.known.turn = t.known.turn or before.known.turn
    return
  end
  t.turn, t.known.turn = earlier, before.known.turn
  if later then
    earlier.cancelling = earlier.cancelling or later.cancelling
    if later.parked ~= nil then
      earlier.parked = later.parked
    end
  end
  handlers.look(t, items.nothing())
end

---@param t callboard.Transcript
---@param before callboard.Transcript
local function know(t, before)
  local now, then_ = t.known, before.known
  for _, name in ipairs({ 'title', 'mode', 'model' }) do
    if not now[name] then
      t[name], now[name] = before[name], then_[name]
    end
  end
  for _, name in ipairs({ 'admitted', 'dropped', 'updated', 'decided', 'gone_prompts' }) do
    now[name] = vim.tbl_extend('keep', now[name], then_[name])
  end
  vim.list_extend(now.gone, then_.gone)
  for approval_id in pairs(before.asking) do
    if not now.decided[approval_id] then
      t.asking[approval_id] = true
    end
  end
end

---Puts what was before in front.
---@param t callboard.Transcript
---@param before callboard.Transcript made of all events up to those of `t`
---@return callboard.Change
function M.put(t, before)
  local change = items.nothing()
  handlers.forget(before, t.known)
  local all, seen = {}, {}
  for _, item in ipairs(before.items) do
    catch_up(item, t.known)
    local later = t.by_id[item.id]
    if later then
      join(item, later)
      seen[later.id] = true
    end
    all[#all + 1] = later or item
  end
  t.items = vim.tbl_filter(function(item)
    return not seen[item.id]
  end, t.items)
  queue(t, before)
  t.items = vim.list_extend(all, t.items)
  items.index(t)
  t.plans = vim.list_extend(before.plans, t.plans)
  local plan = t.plans[#t.plans]
  t.plan = plan and plan.entries or {}
  know(t, before)
  turn(t, before)
  t.speakers = vim.tbl_extend('keep', t.speakers, before.speakers)
  t.said = vim.tbl_extend('keep', t.said, before.said)
  t.ended = vim.tbl_extend('keep', t.ended, before.ended)
  t.first_seq = before.first_seq
  change.reset, change.queue, change.head = true, true, true
  return change
end

return M

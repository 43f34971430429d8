-- name: agent
SELECT agent_id, root_id, parent_id, name, agent_type, depth_left, message_allow, status, report,
       interrupted, pending, winding, deadline_at, closing
FROM agents WHERE agent_id = ?;

-- name: children
SELECT agent_id, root_id, parent_id, name, agent_type, depth_left, message_allow, status, report,
       interrupted, pending, winding, deadline_at, closing
FROM agents WHERE parent_id = ? ORDER BY name, agent_id;

-- What a wait looks at: the children that are meant (?2, their ids as JSON), or (where that is null) all that
-- are not closed. They are as `agent` has them, but for their reports: only whether the last one waits for
-- the parent. And whether a turn of theirs is asked for.
-- name: awaited
SELECT a.agent_id, a.root_id, a.parent_id, a.name, a.agent_type, a.depth_left, a.message_allow, a.status, NULL,
       a.interrupted, a.pending, a.winding, a.deadline_at, a.closing,
       EXISTS (SELECT 1 FROM inbox r WHERE r.session_id = a.parent_id
                 AND r.delivery_id = json_extract(a.report, '$.reportId')),
       EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = a.agent_id AND i.wake = 'asked')
         OR EXISTS (SELECT 1 FROM triggers t WHERE t.session_id = a.agent_id AND t.state = 'pending'
                      AND t.seq > max(h.imported_through, h.held_through))
FROM (SELECT value AS agent_id FROM json_each(?2)
      UNION ALL
      SELECT agent_id FROM agents WHERE ?2 IS NULL AND parent_id = ?1 AND status <> 'closed') w
CROSS JOIN agents a ON a.agent_id = w.agent_id
LEFT JOIN heads h ON h.session_id = a.agent_id
WHERE a.parent_id = ?1 ORDER BY a.name, a.agent_id;

-- name: keep
INSERT INTO agents (agent_id, root_id, parent_id, name, agent_type, depth_left, message_allow, status,
                    report, interrupted, pending, winding, deadline_at, closing, spawned_pos)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
ON CONFLICT (agent_id) DO UPDATE SET
  status = excluded.status, report = excluded.report, interrupted = excluded.interrupted,
  pending = excluded.pending, winding = excluded.winding, deadline_at = excluded.deadline_at,
  closing = excluded.closing;

-- An agent that is told something, or was and winds down for it. Most sessions are none.
-- name: interrupted_agent
SELECT agent_id, root_id, parent_id, name, agent_type, depth_left, message_allow, status, report,
       interrupted, pending, winding, deadline_at, closing
FROM agents WHERE agent_id = ?
  AND (pending IS NOT NULL OR winding IS NOT NULL);

-- name: open_of_name
SELECT agent_id FROM agents WHERE parent_id = ? AND name = ? AND status <> 'closed';

-- name: of_name
SELECT agent_id FROM agents WHERE parent_id = ? AND name = ?
ORDER BY status = 'closed', spawned_pos DESC LIMIT 1;

-- name: count_open
SELECT count(*) FROM agents WHERE parent_id = ? AND status <> 'closed';

-- name: count_running
SELECT count(*) FROM agents a JOIN owners o ON o.session_id = a.agent_id
WHERE a.parent_id = ? AND a.agent_id <> ? AND o.fence IS NOT NULL AND o.kind = 'run';

-- Those that were spawned before an agent and are yet to begin, under a host that lives: it is their turn.
-- name: count_ahead
SELECT count(*) FROM agents me JOIN agents a ON a.parent_id = me.parent_id
JOIN heads h ON h.session_id = a.agent_id
LEFT JOIN owners o ON o.session_id = a.agent_id
WHERE me.agent_id = ?1 AND me.status = 'starting' AND a.spawned_pos < me.spawned_pos
  AND a.status = 'starting' AND a.closing = 0 AND o.fence IS NULL
  AND EXISTS (SELECT 1 FROM triggers t WHERE t.session_id = a.agent_id AND t.state = 'pending'
                AND t.host_id IN (SELECT host_id FROM hosts)
                AND t.seq > max(h.imported_through, h.held_through));

-- Children (of ?1, or of whomever) for which something waits that this host is to run, the one that was
-- spawned first first.
-- name: waiting_children
SELECT a.agent_id FROM (
  SELECT t.session_id FROM triggers t
  JOIN heads h ON h.session_id = t.session_id AND t.seq > max(h.imported_through, h.held_through)
  WHERE t.state = 'pending' AND t.host_id = ?2
  UNION SELECT i.session_id FROM inbox i WHERE i.wake = 'asked' AND i.host_id = ?2) w
CROSS JOIN agents a ON a.agent_id = w.session_id
LEFT JOIN owners o ON o.session_id = a.agent_id
WHERE (?1 IS NULL OR a.parent_id = ?1) AND a.status <> 'closed' AND o.fence IS NULL
ORDER BY a.spawned_pos;

-- name: parents
SELECT a.agent_id, a.parent_id FROM json_each(?) j CROSS JOIN agents a ON a.agent_id = j.value;

-- Agents that have not begun, whose host is gone.
-- name: never_begun
SELECT a.agent_id FROM agents a JOIN heads h ON h.session_id = a.agent_id
WHERE a.status = 'starting' AND h.imported_through = 0
  AND EXISTS (SELECT 1 FROM triggers t WHERE t.session_id = a.agent_id AND t.state = 'pending'
                AND t.host_id IS NOT NULL AND t.host_id NOT IN (SELECT host_id FROM hosts))
ORDER BY a.agent_id;

-- Agents whose rows say that they run, or will, and that nobody runs: they came from a file.
-- name: adrift
SELECT a.agent_id FROM agents a JOIN heads h ON h.session_id = a.agent_id
LEFT JOIN owners o ON o.session_id = a.agent_id
WHERE o.fence IS NULL
  AND ((a.status = 'starting' AND h.imported_through > 0)
    OR (a.status = 'running' AND NOT EXISTS (
          SELECT 1 FROM turns t WHERE t.session_id = a.agent_id AND t.state = 'parked')))
ORDER BY a.agent_id;

-- Agents that were to be closed by a host that is gone.
-- name: half_closed
SELECT a.agent_id FROM agents a LEFT JOIN owners o ON o.session_id = a.agent_id
WHERE a.closing = 1 AND a.status <> 'closed' AND o.fence IS NULL ORDER BY a.spawned_pos;

-- name: hold
UPDATE heads SET held_through = seq WHERE session_id = ?;

-- name: undelivered
SELECT delivery_id, kind FROM inbox WHERE session_id = ? AND kind IN ('report', 'question', 'update');

-- name: count_undelivered
SELECT kind, count(*) FROM inbox WHERE session_id = ? AND kind IN ('report', 'question', 'update') GROUP BY kind;

-- name: delivery
SELECT delivery_id, generation, digest, kind FROM inbox WHERE session_id = ? AND delivery_id = ?;

-- name: taker
SELECT turn_id FROM inbox WHERE session_id = ?1 AND delivery_id = ?2 AND turn_id IS NOT NULL
UNION ALL
SELECT e.turn_id FROM receipts r JOIN events e ON e.session_id = r.session_id AND e.seq = r.seq
WHERE r.session_id = ?1 AND r.delivery_id = ?2 AND e.turn_id IS NOT NULL;

-- name: first_turn
SELECT turn_id, ended_at, final_text FROM turns WHERE session_id = ? AND idx = 0;

-- name: outcome_of_turn
SELECT type, data FROM events
WHERE session_id = ? AND turn_id = ? AND type IN ('agent_report_created', 'agent_interrupted') ORDER BY seq;

-- What a turn should not be kept from by a wait: a message to go on with, and being told to stop or to change.
-- name: is_called
SELECT 1 FROM inbox i JOIN inboxes n ON n.session_id = i.session_id
WHERE i.session_id = ?1 AND i.policy = 'interrupt_wait' AND i.generation <= n.activated
UNION ALL
SELECT 1 FROM agents WHERE agent_id = ?1 AND json_extract(pending, '$.kind') IN ('steer', 'cancel')
LIMIT 1;

-- name: said_last
SELECT data FROM events
WHERE session_id = ?1 AND turn_id = ?2 AND type = 'message'
  AND seq >= (SELECT started_seq FROM turns WHERE turn_id = ?2)
ORDER BY seq DESC LIMIT 8;

-- name: cancelled_with_tree
SELECT 1 FROM events WHERE session_id = ? AND turn_id = ? AND type = 'cancel_requested'
  AND json_extract(data, '$.scope') = 'tree' LIMIT 1;

-- name: touched
SELECT DISTINCT json_extract(c.value, '$.path') FROM events e, json_each(e.data, '$.changes') c
WHERE e.session_id = ?1 AND e.turn_id = ?2 AND e.type = 'tool_result'
  AND e.seq >= (SELECT started_seq FROM turns WHERE turn_id = ?2) LIMIT 200;

-- name: last_plan
SELECT data FROM events WHERE session_id = ? AND type = 'plan_updated' ORDER BY seq DESC LIMIT 1;

-- name: parent_rests
SELECT s.last_outcome FROM sessions s LEFT JOIN owners o ON o.session_id = s.session_id
WHERE s.session_id = ?1 AND s.closed = 0 AND s.archived = 0 AND o.fence IS NULL
  AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = ?1 AND t.state = 'parked');

-- name: requests_since
SELECT count(DISTINCT json_extract(data, '$.messageId')) FROM events
WHERE session_id = ?1 AND turn_id = ?2 AND type IN ('tool_call', 'message')
  AND json_extract(data, '$.delivered') IS NULL
  AND seq > coalesce((SELECT max(seq) FROM events WHERE session_id = ?1 AND turn_id = ?2
                        AND seq >= (SELECT started_seq FROM turns WHERE turn_id = ?2)
                        AND type = 'agent_interrupt_consumed'
                        AND json_extract(data, '$.interruptId') = ?3), 0);

-- What the clock looks at. A session that has no head is not there yet: it is being imported.

-- name: next_deadline
SELECT min(at) FROM (
  SELECT min(a.deadline_at) AS at FROM agents a CROSS JOIN heads h ON h.session_id = a.agent_id
  WHERE a.deadline_at IS NOT NULL
  UNION ALL
  SELECT min(k.expires_at) FROM asks k CROSS JOIN heads h ON h.session_id = k.agent_id
  WHERE k.outcome IS NULL AND k.expires_at IS NOT NULL);

-- name: overdue
SELECT a.agent_id FROM agents a CROSS JOIN heads h ON h.session_id = a.agent_id
WHERE a.deadline_at IS NOT NULL AND a.deadline_at <= ? ORDER BY a.deadline_at, a.agent_id;

-- name: overdue_asks
SELECT k.ask_id, k.agent_id FROM asks k CROSS JOIN heads h ON h.session_id = k.agent_id
WHERE k.outcome IS NULL AND k.expires_at IS NOT NULL AND k.expires_at <= ? ORDER BY k.ask_id;

-- The live tree: everything of a tree, or (where ?2 is no null) of one of its agents.

-- Agents behind the place (?3, ?4) in the order, as `agent` has them, then what their sessions, their last
-- turns and what waits for them say.
-- name: tree
SELECT a.agent_id, a.root_id, a.parent_id, a.name, a.agent_type, a.depth_left, a.message_allow, a.status,
       a.report, a.interrupted, a.pending, a.winding, a.deadline_at, a.closing,
       s.profile, s.model, s.depth, s.created_at, s.usage,
       t.turn_id, t.model, t.started_at, t.ended_at,
       (SELECT count(*) FROM inbox i WHERE i.session_id = a.agent_id)
         + (SELECT count(*) FROM triggers g WHERE g.session_id = a.agent_id AND g.state = 'pending'
              AND g.kind <> 'directive'),
       a.status <> 'closed' AND o.fence IS NULL
         AND NOT EXISTS (SELECT 1 FROM turns p WHERE p.session_id = a.agent_id AND p.state = 'parked')
         AND (EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = a.agent_id AND i.wake = 'asked')
           OR EXISTS (SELECT 1 FROM triggers g WHERE g.session_id = a.agent_id AND g.state = 'pending'
                        AND g.seq > max(h.imported_through, h.held_through)))
FROM agents a JOIN sessions s ON s.session_id = a.agent_id JOIN heads h ON h.session_id = a.agent_id
LEFT JOIN owners o ON o.session_id = a.agent_id
LEFT JOIN turns t ON t.session_id = a.agent_id
  AND t.idx = (SELECT l.idx FROM turns l WHERE l.session_id = a.agent_id AND l.rewound = 0
               ORDER BY l.idx DESC LIMIT 1)
WHERE a.root_id = ?1 AND (?2 IS NULL OR a.agent_id = ?2)
  AND (?3 IS NULL OR (a.name, a.agent_id) > (?3, ?4))
ORDER BY a.name, a.agent_id LIMIT ?5;

-- name: tree_places
SELECT s.session_id, s.parent_id, s.mode, a.name FROM sessions s
LEFT JOIN agents a ON a.agent_id = s.session_id WHERE s.root_id = ?;

-- name: tree_running
SELECT a.parent_id, count(*) FROM agents a JOIN owners o ON o.session_id = a.agent_id
WHERE a.root_id = ? AND o.fence IS NOT NULL AND o.kind = 'run' GROUP BY a.parent_id;

-- name: tree_calls
SELECT c.session_id, c.call_id, c.name, json_extract(e.data, '$.title'), e.at
FROM agents a JOIN open_calls c ON c.session_id = a.agent_id
JOIN events e ON e.session_id = c.session_id AND e.seq = c.seq
WHERE a.root_id = ?1 AND (?2 IS NULL OR a.agent_id = ?2) ORDER BY c.session_id, c.seq;

-- name: tree_approvals
SELECT p.session_id, p.approval_id, json_extract(p.request, '$.title')
FROM approvals p JOIN agents a ON a.agent_id = p.session_id
WHERE p.root_id = ?1 AND p.state = 'pending' AND (?2 IS NULL OR a.agent_id = ?2)
ORDER BY p.session_id, p.pos;

-- name: tree_asks
SELECT k.agent_id, k.ask_id, k.text, k.asked_at, k.expires_at, a.name
FROM asks k JOIN agents a ON a.agent_id = k.agent_id
WHERE a.root_id = ?1 AND k.outcome IS NULL AND k.expects_reply = 1
  AND (?2 IS NULL OR a.agent_id = ?2) ORDER BY k.agent_id, k.asked_at, k.ask_id;

-- Questions.

-- name: insert_ask
INSERT INTO asks (ask_id, agent_id, parent_id, text, asked_at, expires_at, expects_reply, turn_id, call_id)
SELECT ?1, ?2, a.parent_id, ?3, ?4, ?5, ?6, ?7, ?8 FROM agents a WHERE a.agent_id = ?2
ON CONFLICT (ask_id) DO NOTHING;

-- name: settle_ask
UPDATE asks SET outcome = ?, reply = ?, replied_by = ? WHERE ask_id = ? AND agent_id = ? AND outcome IS NULL;

-- name: ask
SELECT agent_id, parent_id, expects_reply, turn_id, outcome, reply, replied_by FROM asks WHERE ask_id = ?;

-- name: open_asks_of
SELECT ask_id, turn_id FROM asks WHERE agent_id = ? AND outcome IS NULL AND expects_reply = 1;

-- name: open_asks_to
SELECT k.ask_id, k.agent_id, a.name, k.text, k.asked_at, k.expires_at
FROM asks k JOIN agents a ON a.agent_id = k.agent_id
WHERE k.parent_id = ? AND k.outcome IS NULL AND k.expects_reply = 1 ORDER BY k.asked_at, k.ask_id;

-- name: replies_in_turn
SELECT ask_id, call_id, reply, replied_by FROM asks
WHERE agent_id = ? AND turn_id = ? AND outcome = 'replied' AND call_id IS NOT NULL
  AND replied_by IS NOT NULL ORDER BY ask_id;

-- name: count_asks
SELECT count(*) FROM asks WHERE agent_id = ?;

-- name: parent_is_there
SELECT 1 FROM sessions WHERE session_id = ? AND closed = 0;

-- Messages between siblings.

-- name: insert_sibling_message
INSERT INTO sibling_messages (recipient_id, seq, sender_id, root_id, digest) VALUES (?, ?, ?, ?, ?);

-- name: elsewhere_in_tree
SELECT 1 FROM agents WHERE root_id = ?1 AND name = ?2 AND parent_id <> ?3 LIMIT 1;

-- name: count_said_in_tree
SELECT count(*) FROM sibling_messages WHERE root_id = ?;

-- name: count_said_by
SELECT count(*) FROM sibling_messages WHERE sender_id = ?;

-- name: said_lately
SELECT 1 FROM (SELECT sender_id, digest FROM sibling_messages WHERE recipient_id = ?1
               ORDER BY seq DESC LIMIT ?4)
WHERE sender_id = ?2 AND digest = ?3 LIMIT 1;

-- name: count_queued
SELECT count(*) FROM inbox WHERE session_id = ? AND kind = 'sibling';

-- name: count_waiting
SELECT count(*) FROM inbox i JOIN inboxes n ON n.session_id = i.session_id
WHERE i.session_id = ? AND i.generation <= n.activated;

-- name: forget_sibling_messages
DELETE FROM sibling_messages WHERE recipient_id = ?;

-- name: forget_agent
DELETE FROM agents WHERE agent_id = ?;

-- name: forget_asks
DELETE FROM asks WHERE agent_id = ?;

-- Groups.

-- name: root_of
SELECT root_id FROM heads WHERE session_id = ?;

-- name: group
SELECT group_id, name, created_at FROM agent_groups WHERE root_id = ?;

-- name: insert_group
INSERT INTO agent_groups (root_id, group_id, name, created_at) VALUES (?, ?, ?, ?)
ON CONFLICT (root_id) DO NOTHING;

-- name: insert_member
INSERT INTO group_members (root_id, agent_id, joined_pos)
SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM agent_groups WHERE root_id = ?1)
ON CONFLICT (root_id, agent_id) DO NOTHING;

-- Only agents of the tree: the log of an imported copy names those of the tree that it copies.
-- name: is_member
SELECT 1 FROM group_members m JOIN agents a ON a.agent_id = m.agent_id AND a.root_id = m.root_id
WHERE m.root_id = ? AND m.agent_id = ?;

-- name: members
SELECT agent_id FROM group_members WHERE root_id = ? ORDER BY joined_pos;

-- The members that can still read something.
-- name: open_members
SELECT m.agent_id FROM group_members m
JOIN agents a ON a.agent_id = m.agent_id AND a.root_id = m.root_id
JOIN sessions s ON s.session_id = m.agent_id
WHERE m.root_id = ? AND s.closed = 0 ORDER BY m.joined_pos;

-- name: named_members
SELECT m.agent_id, a.name, a.status FROM group_members m
LEFT JOIN agents a ON a.agent_id = m.agent_id AND a.root_id = m.root_id WHERE m.root_id = ? ORDER BY m.joined_pos;

-- name: name_of
SELECT name FROM agents WHERE agent_id = ? AND root_id = ?;

-- Tasks.

-- name: task
SELECT task_id, group_id, title, status, created_by, created_at, updated_at, description, dependencies,
       required, expected_paths, assignee, summary, reason, findings, touched_files
FROM group_tasks WHERE root_id = ? AND task_id = ?;

-- Those in some states (JSON) behind a place in the order of lists, a page of them.
-- name: tasks_behind
SELECT task_id, group_id, title, status, created_by, created_at, updated_at, description, dependencies,
       required, expected_paths, assignee, summary, reason, findings, touched_files
FROM group_tasks WHERE root_id = ?1 AND (created_at, task_id) > (?2, ?3)
  AND status IN (SELECT value FROM json_each(?4))
ORDER BY created_at, task_id LIMIT ?5;

-- name: tasks
SELECT task_id, group_id, title, status, created_by, created_at, updated_at, description, dependencies,
       required, expected_paths, assignee, summary, reason, findings, touched_files
FROM group_tasks WHERE root_id = ? ORDER BY created_at, task_id;

-- name: completed_ids
SELECT task_id FROM group_tasks WHERE root_id = ? AND status = 'completed';

-- Those that a list of ids (JSON) names.
-- name: tasks_of
SELECT t.task_id, t.group_id, t.title, t.status, t.created_by, t.created_at, t.updated_at, t.description,
       t.dependencies, t.required, t.expected_paths, t.assignee, t.summary, t.reason, t.findings,
       t.touched_files
FROM json_each(?2) j CROSS JOIN group_tasks t ON t.root_id = ?1 AND t.task_id = j.value;

-- All that the tasks of a list of ids (JSON) depend on, near and far, and they themselves: each with its own
-- dependencies. The texts of what may be a whole board stay where they are.
-- name: tasks_below
WITH RECURSIVE below (task_id) AS (
  SELECT value FROM json_each(?2)
  UNION
  SELECT d.value FROM below b JOIN group_tasks t ON t.root_id = ?1 AND t.task_id = b.task_id
  JOIN json_each(t.dependencies) d)
SELECT t.task_id, t.dependencies FROM below b CROSS JOIN group_tasks t
  ON t.root_id = ?1 AND t.task_id = b.task_id;

-- name: count_tasks
SELECT count(*) FROM group_tasks WHERE root_id = ?;

-- What keeps the root's work from being complete.
-- name: gate
SELECT g.name, t.title, t.status FROM agent_groups g JOIN group_tasks t ON t.root_id = g.root_id
WHERE g.root_id = ? AND t.required = 1 AND t.status NOT IN ('completed', 'cancelled')
ORDER BY t.created_at, t.task_id;

-- name: insert_task
INSERT INTO group_tasks (root_id, task_id, group_id, title, status, created_by, created_at, updated_at,
                         description, dependencies, required, expected_paths, assignee, summary, reason,
                         findings, touched_files)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17
WHERE EXISTS (SELECT 1 FROM agent_groups WHERE root_id = ?1)
ON CONFLICT (root_id, task_id) DO NOTHING;

-- name: own_task
UPDATE group_tasks SET status = ?, updated_at = ?, assignee = ? WHERE root_id = ? AND task_id = ?;

-- What is null stays as it is.
-- name: update_task
UPDATE group_tasks SET status = ?, updated_at = ?, assignee = coalesce(?, assignee),
                       summary = coalesce(?, summary), reason = coalesce(?, reason),
                       findings = coalesce(?, findings), touched_files = coalesce(?, touched_files)
WHERE root_id = ? AND task_id = ?;

-- Messages.

-- name: insert_message
INSERT INTO group_messages (root_id, message_id, pos, sender, target, text, at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE EXISTS (SELECT 1 FROM agent_groups WHERE root_id = ?1)
ON CONFLICT (root_id, message_id) DO NOTHING;

-- Not to a session of another tree, which an imported log may name.
-- name: insert_delivery
INSERT INTO group_message_deliveries (recipient_id, pos, root_id, message_id)
SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM group_messages WHERE root_id = ?3 AND message_id = ?4
                                      AND pos = ?2)
  AND NOT EXISTS (SELECT 1 FROM heads WHERE session_id = ?1 AND root_id <> ?3)
ON CONFLICT (recipient_id, pos) DO NOTHING;

-- name: mark_delivered
UPDATE group_message_deliveries SET delivered_seq = ?
WHERE root_id = ? AND message_id = ? AND recipient_id = ? AND delivered_seq IS NULL;

-- name: something_waits
SELECT 1 FROM group_message_deliveries d
JOIN heads h ON h.session_id = d.recipient_id AND h.root_id = d.root_id
WHERE d.recipient_id = ? AND d.delivered_seq IS NULL LIMIT 1;

-- What waits for a recipient, the oldest first.
-- name: waiting
SELECT d.message_id, m.sender, m.target, m.text, g.group_id, g.name
FROM group_message_deliveries d
JOIN group_messages m ON m.root_id = d.root_id AND m.message_id = d.message_id
JOIN agent_groups g ON g.root_id = d.root_id
JOIN heads h ON h.session_id = d.recipient_id AND h.root_id = d.root_id
WHERE d.recipient_id = ? AND d.delivered_seq IS NULL ORDER BY d.pos LIMIT ?;

-- The newest first, before a place.
-- name: inbox
SELECT d.pos, m.message_id, m.sender, m.target, m.text, m.at, d.delivered_seq IS NOT NULL
FROM group_message_deliveries d
JOIN group_messages m ON m.root_id = d.root_id AND m.message_id = d.message_id
WHERE d.recipient_id = ?1 AND d.root_id = ?2 AND d.pos < ?3 ORDER BY d.pos DESC LIMIT ?4;

-- name: count_messages
SELECT count(*) FROM group_messages WHERE root_id = ?;

-- The rebuild with which a host begins.

-- name: roots
SELECT DISTINCT session_id FROM events WHERE type = 'agent_group_created'
  AND type IN (
  'agent_group_created', 'agent_group_member_joined', 'group_task_created', 'group_task_claimed',
  'group_task_released', 'group_task_status_changed', 'group_message_queued', 'group_message_delivered')
UNION SELECT root_id FROM agent_groups;

-- name: events_of_root
SELECT pos, session_id, seq, event_id, type, at, actor, turn_id, fence, data FROM events
WHERE session_id = ? AND seq > ? AND type IN (
  'agent_group_created', 'agent_group_member_joined', 'group_task_created', 'group_task_claimed',
  'group_task_released', 'group_task_status_changed', 'group_message_queued', 'group_message_delivered')
ORDER BY seq LIMIT ?;

-- name: deliveries_of_root
SELECT e.pos, e.session_id, e.seq, e.event_id, e.type, e.at, e.actor, e.turn_id, e.fence, e.data
FROM heads h CROSS JOIN events e ON e.session_id = h.session_id
WHERE h.root_id = ?1 AND h.session_id <> ?1 AND e.type = 'group_message_delivered' AND e.type IN (
  'agent_group_created', 'agent_group_member_joined', 'group_task_created', 'group_task_claimed',
  'group_task_released', 'group_task_status_changed', 'group_message_queued', 'group_message_delivered')
ORDER BY e.pos;

-- The root of a recipient's tree, and where it was last deleted: of one that came back the tombstone stands
-- apart, at a seq below zero.
-- name: recipient
SELECT h.root_id, CASE WHEN h.session_id IS NULL
  THEN (SELECT max(e.pos) FROM events e WHERE e.session_id = r.session_id AND e.type = 'session_deleted')
  ELSE (SELECT max(e.pos) FROM events e WHERE e.session_id = r.session_id AND e.seq < 0
          AND e.type = 'session_deleted') END
FROM (SELECT ? AS session_id) r LEFT JOIN heads h ON h.session_id = r.session_id;

-- name: all_group
SELECT root_id, group_id, name, created_at FROM agent_groups WHERE root_id = ?;

-- name: all_members
SELECT root_id, agent_id, joined_pos FROM group_members WHERE root_id = ?;

-- name: all_tasks
SELECT root_id, task_id, group_id, title, status, created_by, created_at, updated_at, description,
       dependencies, required, expected_paths, assignee, summary, reason, findings, touched_files
FROM group_tasks WHERE root_id = ?;

-- name: all_messages
SELECT root_id, message_id, pos, sender, target, text, at FROM group_messages WHERE root_id = ?;

-- name: all_deliveries
SELECT recipient_id, pos, root_id, message_id, delivered_seq FROM group_message_deliveries WHERE root_id = ?;

-- name: put_group
INSERT INTO agent_groups (root_id, group_id, name, created_at) VALUES (?, ?, ?, ?);

-- name: put_members
INSERT INTO group_members (root_id, agent_id, joined_pos) VALUES (?, ?, ?);

-- name: put_tasks
INSERT INTO group_tasks (root_id, task_id, group_id, title, status, created_by, created_at, updated_at,
                         description, dependencies, required, expected_paths, assignee, summary, reason,
                         findings, touched_files)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_messages
INSERT INTO group_messages (root_id, message_id, pos, sender, target, text, at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- A row of another root in its place is none that an event has made.
-- name: put_deliveries
INSERT OR REPLACE INTO group_message_deliveries (recipient_id, pos, root_id, message_id, delivered_seq)
VALUES (?, ?, ?, ?, ?);

-- What is gone.

-- name: forget_group
DELETE FROM agent_groups WHERE root_id = ?;

-- name: forget_members
DELETE FROM group_members WHERE root_id = ?;

-- name: forget_tasks
DELETE FROM group_tasks WHERE root_id = ?;

-- name: forget_messages
DELETE FROM group_messages WHERE root_id = ?;

-- name: forget_deliveries
DELETE FROM group_message_deliveries WHERE root_id = ?;

-- name: forget_recipient
DELETE FROM group_message_deliveries WHERE recipient_id = ?;

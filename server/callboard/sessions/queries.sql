-- name: insert_session
INSERT INTO sessions (session_id, root_id, parent_id, depth, cwd, directories, profile, mode, model,
                      title, metadata, created_at, updated_at, updated_pos, forked_from, agent_name,
                      members, room_host, burst_budget)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: room
SELECT members, room_host, burst_budget, profile FROM sessions WHERE session_id = ?;

-- name: set_room
UPDATE sessions SET members = ?, room_host = ?, burst_budget = ? WHERE session_id = ?;

-- name: touch
UPDATE sessions SET updated_at = ?, updated_pos = ? WHERE session_id = ?;

-- name: set_title
UPDATE sessions SET title = ? WHERE session_id = ?;

-- name: title_if_none
UPDATE sessions SET title = ? WHERE session_id = ? AND title IS NULL;

-- name: set_pinned
UPDATE sessions SET pinned = ? WHERE session_id = ?;

-- name: set_metadata
UPDATE sessions SET metadata = ? WHERE session_id = ?;

-- name: set_mode
UPDATE sessions SET mode = ? WHERE session_id = ?;

-- name: set_model
UPDATE sessions SET model = ? WHERE session_id = ?;

-- name: set_archived
UPDATE sessions SET archived = ? WHERE session_id = ?;

-- name: set_closed
UPDATE sessions SET closed = 1 WHERE session_id = ?;

-- name: count_turn
UPDATE sessions SET turns = turns + 1 WHERE session_id = ?;

-- name: finish
UPDATE sessions SET last_outcome = ?, answered_through = ? WHERE session_id = ?;

-- name: rewound_to
UPDATE sessions SET last_outcome = (
  SELECT t.state FROM turns t WHERE t.session_id = ?1 AND t.rewound = 0 ORDER BY t.idx DESC LIMIT 1)
WHERE session_id = ?1;

-- name: last_turn_usage
SELECT usage FROM turns WHERE session_id = ? AND rewound = 0 ORDER BY idx DESC LIMIT 1;

-- name: first_of_turn
SELECT min(seq) FROM events WHERE session_id = ? AND turn_id = ?;

-- name: last_of_turn
SELECT max(seq) FROM events WHERE session_id = ? AND turn_id = ?;

-- name: fork_source
SELECT h.seq, h.birth, h.folders_claimed,
       (SELECT t.turn_id FROM turns t WHERE t.session_id = h.session_id AND t.ended_at IS NULL LIMIT 1)
FROM heads h WHERE h.session_id = ?;

-- name: birth
SELECT birth FROM heads WHERE session_id = ?;

-- name: admitted_within
SELECT e.seq, a.value FROM events e, json_each(e.data, '$.admits') a
WHERE e.session_id = ? AND e.seq BETWEEN ? AND ? AND e.type = 'ack';

-- name: answered_within
SELECT seq, json_extract(data, '$.callId') FROM events
WHERE session_id = ? AND seq BETWEEN ? AND ? AND type = 'tool_result';

-- name: turns_within
SELECT min(seq), turn_id FROM events
WHERE session_id = ? AND seq BETWEEN ? AND ? AND turn_id IS NOT NULL GROUP BY turn_id;

-- name: prompts_from_before
SELECT DISTINCT a.value FROM events e, json_each(e.data, '$.admits') a
WHERE e.session_id = ?1 AND e.seq BETWEEN ?2 AND ?3 AND e.type = 'ack' AND a.value < ?2
ORDER BY a.value;

-- name: changed_within
SELECT e.seq, json_extract(c.value, '$.path') FROM events e, json_each(e.data, '$.changes') c
WHERE e.session_id = ? AND e.seq BETWEEN ? AND ? AND e.type = 'tool_result' ORDER BY e.seq;

-- name: commands_within
SELECT r.seq FROM events r
WHERE r.session_id = ?1 AND r.seq BETWEEN ?2 AND ?3 AND r.type = 'tool_result'
  AND json_extract(r.data, '$.status') NOT IN ('denied', 'superseded')
  AND json_extract(r.data, '$.callId') IN (
    SELECT json_extract(c.data, '$.callId') FROM events c
    WHERE c.session_id = ?1 AND c.seq BETWEEN ?2 AND ?3 AND c.type = 'tool_call'
      AND json_extract(c.data, '$.effect') = 'execute');

-- name: rules_within
SELECT json_extract(data, '$.resolution.ruleId') FROM events
WHERE session_id = ? AND seq BETWEEN ? AND ? AND type = 'approval_decision'
  AND json_extract(data, '$.resolution.ruleId') IS NOT NULL;

-- name: set_usage
UPDATE sessions SET usage = ? WHERE session_id = ?;

-- name: usage
SELECT usage FROM sessions WHERE session_id = ?;

-- name: forget
DELETE FROM sessions WHERE session_id = ?;

-- name: descendants
WITH RECURSIVE below (session_id) AS (
  SELECT session_id FROM sessions WHERE parent_id = ?
  UNION SELECT s.session_id FROM sessions s JOIN below b ON s.parent_id = b.session_id
)
SELECT session_id FROM below WHERE session_id IN (SELECT session_id FROM heads);

-- name: path_to
WITH RECURSIVE up (session_id, parent_id, name, above) AS (
  SELECT session_id, parent_id, coalesce(agent_name, profile), 0 FROM sessions WHERE session_id = ?
  UNION ALL SELECT s.session_id, s.parent_id, coalesce(s.agent_name, s.profile), u.above + 1
  FROM sessions s JOIN up u ON s.session_id = u.parent_id WHERE u.above < 64
)
SELECT session_id, name FROM up ORDER BY above DESC;

-- name: flags
SELECT closed, archived FROM sessions WHERE session_id = ?;

-- name: updated_after
SELECT seq FROM events WHERE session_id = ? AND seq > ? AND type = 'session_updated' LIMIT 1;

-- name: with_pending_triggers
SELECT DISTINCT t.session_id FROM triggers t
JOIN sessions s ON s.session_id = t.session_id
JOIN heads h ON h.session_id = t.session_id AND t.seq > max(h.imported_through, h.held_through)
LEFT JOIN owners o ON o.session_id = t.session_id
WHERE t.state = 'pending' AND s.closed = 0 AND o.fence IS NULL;

-- name: session
SELECT s.session_id, s.root_id, s.parent_id, s.depth, s.cwd, s.directories, s.profile, s.mode,
       s.model, s.title, s.metadata, s.archived, s.pinned, s.closed, s.created_at, s.updated_at,
       s.updated_pos, s.last_outcome, s.usage, h.seq, o.fence, o.host_id, o.turn_id, o.kind,
       (SELECT count(*) FROM triggers t WHERE t.session_id = s.session_id AND t.state = 'pending'),
       (SELECT count(*) FROM approvals a
        WHERE a.state = 'pending' AND (a.session_id = s.session_id OR a.root_id = s.session_id)),
       (SELECT count(*) FROM approvals a
        WHERE a.state = 'pending' AND a.session_id = s.session_id),
       (SELECT 1 FROM turns p WHERE p.session_id = s.session_id AND p.state = 'parked'),
       s.forked_from, s.members
FROM sessions s JOIN heads h ON h.session_id = s.session_id
LEFT JOIN owners o ON o.session_id = s.session_id
WHERE s.session_id = ?;

-- name: titles
SELECT session_id, title FROM sessions
WHERE session_id IN (SELECT h.session_id FROM heads h JOIN json_each(?) j ON h.session_id = j.value)
  AND (? IS NULL OR cwd = ?);

-- name: sessions
SELECT * FROM (
SELECT s.session_id, s.root_id, s.parent_id, s.depth, s.cwd, s.directories, s.profile, s.mode,
       s.model, s.title, s.metadata, s.archived, s.pinned, s.closed, s.created_at, s.updated_at,
       s.updated_pos, s.last_outcome, s.usage, h.seq, o.fence, o.host_id, o.turn_id, o.kind,
       (SELECT count(*) FROM triggers t WHERE t.session_id = s.session_id AND t.state = 'pending'),
       (SELECT count(*) FROM approvals a
        WHERE a.state = 'pending' AND (a.session_id = s.session_id OR a.root_id = s.session_id)),
       (SELECT count(*) FROM approvals a
        WHERE a.state = 'pending' AND a.session_id = s.session_id) AS own_approvals,
       (SELECT 1 FROM turns p WHERE p.session_id = s.session_id AND p.state = 'parked') AS parked,
       s.forked_from, s.members
FROM sessions s JOIN heads h ON h.session_id = s.session_id
LEFT JOIN owners o ON o.session_id = s.session_id
WHERE s.updated_pos < :before
  AND (:cwd IS NULL OR s.cwd = :cwd)
  AND (:archived IS NULL OR s.archived = :archived)
  AND (:parent IS NOT NULL OR s.parent_id IS NULL)
  AND (:parent IS NULL OR s.parent_id = :parent)
  AND (NOT :begun OR s.title IS NOT NULL
       OR EXISTS (SELECT 1 FROM turns p WHERE p.session_id = s.session_id)
       OR EXISTS (SELECT 1 FROM sessions c WHERE c.parent_id = s.session_id))
  AND (:query IS NULL OR s.title LIKE :query ESCAPE '\' OR s.session_id LIKE :query ESCAPE '\')
  AND (:status IS NULL OR :status = CASE
        WHEN s.closed THEN 'closed'
        WHEN o.kind = 'run' AND EXISTS (SELECT 1 FROM approvals a
             WHERE a.state = 'pending' AND a.session_id = s.session_id) THEN 'waiting_approval'
        WHEN o.kind = 'run' THEN 'running'
        WHEN EXISTS (SELECT 1 FROM turns p
             WHERE p.session_id = s.session_id AND p.state = 'parked') THEN 'parked'
        ELSE 'idle' END)
ORDER BY s.updated_pos DESC LIMIT :limit);

-- name: register_host
INSERT INTO hosts (host_id, pid, process_born, started_at, heartbeat_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (host_id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at;

-- name: forget_host
DELETE FROM hosts WHERE host_id = ?;

-- name: heartbeat
SELECT heartbeat_at FROM hosts WHERE host_id = ?;

-- name: hosts
SELECT host_id, pid, process_born, heartbeat_at FROM hosts;

-- name: hosts_of_owners
SELECT DISTINCT host_id FROM owners WHERE fence IS NOT NULL;

-- name: insert_run_to_tell
INSERT OR IGNORE INTO runs_to_tell (listener, turn_id, session_id, host_id) VALUES (?, ?, ?, ?);

-- name: runs_to_tell
SELECT id, listener, turn_id FROM runs_to_tell WHERE session_id = ? AND host_id = ? ORDER BY id;

-- name: adopt_runs_to_tell
UPDATE runs_to_tell SET host_id = ?1
WHERE host_id <> ?1 AND host_id NOT IN (SELECT host_id FROM hosts) RETURNING session_id;

-- name: delete_run_to_tell
DELETE FROM runs_to_tell WHERE id = ?;

-- name: forget_runs_to_tell
DELETE FROM runs_to_tell WHERE session_id = ?;

-- name: folders_only_claimed
SELECT 1 FROM sessions s JOIN heads h ON h.session_id = s.session_id
WHERE s.session_id = ?1 AND h.folders_claimed = 1 AND NOT EXISTS (
  SELECT 1 FROM sessions o JOIN heads oh ON oh.session_id = o.session_id
  WHERE o.cwd = s.cwd AND o.directories = s.directories AND oh.folders_claimed = 0);

-- name: runs_page
SELECT turn_id, idx, state, model, started_at, usage FROM turns
WHERE session_id = ? AND idx > ? ORDER BY idx LIMIT ?;

-- name: used_by
SELECT s.session_id, s.parent_id, s.title, s.usage FROM sessions s
JOIN json_each(?) j ON s.session_id = j.value ORDER BY j.key;

-- name: usage_parts
WITH used (session_id, model, usage, is_run) AS (
  SELECT t.session_id, t.model, t.usage, 1 FROM turns t
  WHERE t.session_id IN (SELECT value FROM json_each(?1))
  UNION ALL
  SELECT e.session_id, json_extract(e.data, '$.model'), json_extract(e.data, '$.usage'), 0 FROM events e
  WHERE e.type = 'summary' AND e.session_id IN (SELECT value FROM json_each(?1))
    AND json_extract(e.data, '$.usage') IS NOT NULL
), part AS (
  SELECT session_id, model, is_run, usage,
         coalesce(json_extract(usage, '$.requests'), 0) AS requests,
         json_extract(usage, '$.inputTokens') AS input,
         json_extract(usage, '$.outputTokens') AS output,
         json_extract(usage, '$.cacheReadTokens') AS cache_read,
         json_extract(usage, '$.cacheWriteTokens') AS cache_write,
         json_extract(usage, '$.reasoningTokens') AS reasoning,
         json_extract(usage, '$.cost') AS cost,
         json_extract(usage, '$.currency') AS currency,
         coalesce(json_extract(usage, '$.partial'), 0) AS partial
  FROM used
)
SELECT session_id, model, currency, sum(is_run), sum(1 - is_run), sum(requests), sum(input),
       sum(output), sum(cache_read), sum(cache_write), sum(reasoning), sum(cost),
       sum(usage IS NULL OR partial OR (requests > 0 AND (input IS NULL OR output IS NULL))),
       sum(usage IS NULL OR partial OR (requests > 0 AND cost IS NULL)), max(partial)
FROM part GROUP BY session_id, model, currency ORDER BY session_id, model, currency;

-- name: session_place
SELECT closed, archived, root_id, depth FROM sessions WHERE session_id = ?;

-- What whoever runs a turn is called: by a parent, or else by the profile.
-- name: speaker_of_turn
SELECT coalesce(s.agent_name, json_extract(e.data, '$.profile'), s.profile) FROM turns t
JOIN sessions s ON s.session_id = t.session_id
JOIN events e ON e.session_id = t.session_id AND e.seq = t.started_seq
WHERE t.turn_id = ?;

-- Who runs a turn: as its beginning says, else the session's own.
-- name: profile_of_turn
SELECT coalesce(json_extract(e.data, '$.profile'), s.profile) FROM turns t
JOIN sessions s ON s.session_id = t.session_id
JOIN events e ON e.session_id = t.session_id AND e.seq = t.started_seq
WHERE t.turn_id = ?;

-- name: external_session
SELECT agent_session_id, through FROM external_sessions WHERE session_id = ? AND profile = ?;

-- name: set_external_session
INSERT INTO external_sessions (session_id, profile, agent_session_id, through) VALUES (?, ?, ?, ?)
ON CONFLICT (session_id, profile) DO UPDATE
SET agent_session_id = excluded.agent_session_id, through = excluded.through;

-- name: rewind_external
DELETE FROM external_sessions WHERE session_id = ? AND through >= ?;

-- name: forget_external
DELETE FROM external_sessions WHERE session_id = ?;

-- name: insert_session
INSERT INTO sessions (session_id, root_id, parent_id, depth, cwd, directories, profile, mode, model,
                      title, metadata, created_at, updated_at, updated_pos)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

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
SELECT session_id FROM below;

-- name: flags
SELECT closed, archived FROM sessions WHERE session_id = ?;

-- name: with_pending_triggers
SELECT DISTINCT t.session_id FROM triggers t
JOIN sessions s ON s.session_id = t.session_id
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
       (SELECT 1 FROM turns p WHERE p.session_id = s.session_id AND p.state = 'parked')
FROM sessions s JOIN heads h ON h.session_id = s.session_id
LEFT JOIN owners o ON o.session_id = s.session_id
WHERE s.session_id = ?;

-- name: titles
SELECT session_id, title FROM sessions
WHERE session_id IN (SELECT value FROM json_each(?)) AND (? IS NULL OR cwd = ?);

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
       (SELECT 1 FROM turns p WHERE p.session_id = s.session_id AND p.state = 'parked') AS parked
FROM sessions s JOIN heads h ON h.session_id = s.session_id
LEFT JOIN owners o ON o.session_id = s.session_id
WHERE s.updated_pos < :before
  AND (:cwd IS NULL OR s.cwd = :cwd)
  AND (:archived IS NULL OR s.archived = :archived)
  AND (:parent IS NOT NULL OR s.parent_id IS NULL)
  AND (:parent IS NULL OR s.parent_id = :parent)
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

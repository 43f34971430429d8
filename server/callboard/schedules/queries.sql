-- Schedules.

-- name: schedule
SELECT schedule_id, profile, name, trigger, prompt, session_id, cwd, enabled, created_at, updated_at, misfire,
       overlap, max_fires, expires_at, max_failures, fire_count, skip_count, failures, next_at, last_fired_at,
       last_error, disabled_reason, created_by, anchor_at, revision
FROM schedules WHERE schedule_id = ?;

-- name: schedule_by_name
SELECT schedule_id, profile, name, trigger, prompt, session_id, cwd, enabled, created_at, updated_at, misfire,
       overlap, max_fires, expires_at, max_failures, fire_count, skip_count, failures, next_at, last_fired_at,
       last_error, disabled_reason, created_by, anchor_at, revision
FROM schedules WHERE profile = ? AND name = ?;

-- name: schedules_page
SELECT schedule_id, profile, name, trigger, prompt, session_id, cwd, enabled, created_at, updated_at, misfire,
       overlap, max_fires, expires_at, max_failures, fire_count, skip_count, failures, next_at, last_fired_at,
       last_error, disabled_reason, created_by, anchor_at, revision
FROM schedules
WHERE (profile, name) > (?1, ?2) AND (?3 IS NULL OR profile = ?3) AND (?4 IS NULL OR session_id = ?4)
  AND (?5 IS NULL OR enabled = ?5)
ORDER BY profile, name LIMIT ?6;

-- Those that the agent of a session has made, the newest first.
-- name: schedules_of_agent
SELECT schedule_id, profile, name, trigger, prompt, session_id, cwd, enabled, created_at, updated_at, misfire,
       overlap, max_fires, expires_at, max_failures, fire_count, skip_count, failures, next_at, last_fired_at,
       last_error, disabled_reason, created_by, anchor_at, revision
FROM schedules WHERE created_by = ? ORDER BY created_at DESC, schedule_id DESC;

-- Those that are switched on and run in a session, or that its agent has made.
-- name: enabled_around
SELECT schedule_id, profile, name, trigger, prompt, session_id, cwd, enabled, created_at, updated_at, misfire,
       overlap, max_fires, expires_at, max_failures, fire_count, skip_count, failures, next_at, last_fired_at,
       last_error, disabled_reason, created_by, anchor_at, revision
FROM schedules WHERE session_id = ?1 AND enabled = 1
UNION
SELECT schedule_id, profile, name, trigger, prompt, session_id, cwd, enabled, created_at, updated_at, misfire,
       overlap, max_fires, expires_at, max_failures, fire_count, skip_count, failures, next_at, last_fired_at,
       last_error, disabled_reason, created_by, anchor_at, revision
FROM schedules WHERE created_by = ?1 AND enabled = 1;

-- name: put_schedule
INSERT INTO schedules (schedule_id, profile, name, trigger, prompt, session_id, cwd, enabled, created_at,
                       updated_at, misfire, overlap, max_fires, expires_at, max_failures, fire_count, skip_count,
                       failures, next_at, last_fired_at, last_error, disabled_reason, created_by, anchor_at,
                       revision)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (schedule_id) DO UPDATE SET
  name = excluded.name, trigger = excluded.trigger, prompt = excluded.prompt, session_id = excluded.session_id,
  cwd = excluded.cwd, enabled = excluded.enabled, updated_at = excluded.updated_at, misfire = excluded.misfire,
  overlap = excluded.overlap, max_fires = excluded.max_fires, expires_at = excluded.expires_at,
  max_failures = excluded.max_failures, failures = excluded.failures, next_at = excluded.next_at,
  last_error = excluded.last_error, disabled_reason = excluded.disabled_reason, anchor_at = excluded.anchor_at,
  revision = excluded.revision;

-- name: set_standing
UPDATE schedules SET enabled = ?, fire_count = ?, skip_count = ?, failures = ?, next_at = ?, last_fired_at = ?,
                     last_error = ?, disabled_reason = ?
WHERE schedule_id = ?;

-- name: is_taken
SELECT 1 FROM schedules WHERE profile = ? AND name = ? AND schedule_id <> ?;

-- name: count_schedules
SELECT count(*) FROM schedules;

-- Those that are switched on, and those that were switched off by hand: what is over has a reason.
-- name: count_of_agent
SELECT count(*) FROM schedules WHERE created_by = ? AND (enabled = 1 OR disabled_reason IS NULL);

-- What an agent has made that is over, but for the newest: nobody else would ever take it away.
-- name: finished_of_agent
SELECT schedule_id FROM schedules
WHERE created_by = ?1 AND enabled = 0 AND disabled_reason IS NOT NULL
  AND schedule_id NOT IN (SELECT schedule_id FROM schedule_fires f
                          WHERE f.schedule_id = schedules.schedule_id AND f.outcome IN ('queued', 'running'))
ORDER BY created_at DESC, schedule_id DESC LIMIT -1 OFFSET ?2;

-- name: delete_schedule
DELETE FROM schedules WHERE schedule_id = ?;

-- The engine.

-- name: earliest
SELECT next_at FROM schedules WHERE enabled = 1 AND next_at IS NOT NULL ORDER BY next_at LIMIT 1;

-- name: due
SELECT schedule_id, profile, name, trigger, prompt, session_id, cwd, enabled, created_at, updated_at, misfire,
       overlap, max_fires, expires_at, max_failures, fire_count, skip_count, failures, next_at, last_fired_at,
       last_error, disabled_reason, created_by, anchor_at, revision
FROM schedules WHERE enabled = 1 AND next_at IS NOT NULL AND next_at <= ? ORDER BY next_at LIMIT ?;

-- Fires.

-- name: insert_fire
INSERT INTO schedule_fires (fire_id, schedule_id, due_at, outcome, fired_at, fresh, session_id, seq, reason,
                            times, asked)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: forget_old_fires
DELETE FROM schedule_fires
WHERE schedule_id = ?1 AND outcome NOT IN ('queued', 'running')
  AND place <= (SELECT place FROM schedule_fires WHERE schedule_id = ?1 ORDER BY place DESC LIMIT 1 OFFSET 1000);

-- name: fires_page
SELECT place, fire_id, schedule_id, due_at, outcome, fired_at, fresh, session_id, turn_id, usage, reason, times
FROM schedule_fires WHERE schedule_id = ? AND place < ? ORDER BY place DESC LIMIT ?;

-- name: fire
SELECT place, fire_id, schedule_id, due_at, outcome, fired_at, fresh, session_id, turn_id, usage, reason, times
FROM schedule_fires WHERE fire_id = ?;

-- Where the fires of a schedule are that have not ended.
-- name: open_fires
SELECT fire_id, session_id, seq, outcome FROM schedule_fires
WHERE schedule_id = ? AND outcome IN ('queued', 'running') ORDER BY place;

-- name: fire_began
UPDATE schedule_fires SET outcome = 'running', turn_id = ?1
WHERE session_id = ?2 AND outcome IN ('queued', 'running') AND outcome = 'queued'
  AND seq = (SELECT json_extract(trigger, '$.seqs[0]') FROM turns
             WHERE turn_id = ?1 AND json_extract(trigger, '$.kind') = 'schedule');

-- name: fire_of_turn
SELECT fire_id, schedule_id FROM schedule_fires WHERE turn_id = ? AND outcome = 'running';

-- name: end_fire
UPDATE schedule_fires SET outcome = ?, usage = ?, reason = ? WHERE fire_id = ?;

-- name: fire_dropped
UPDATE schedule_fires SET outcome = 'cancelled', reason = ?3
WHERE session_id = ?1 AND seq = ?2 AND outcome IN ('queued', 'running') AND outcome = 'queued';

-- The session is gone; should one of this id ever come back, it is another.
-- name: fires_of_gone
UPDATE schedule_fires SET outcome = 'cancelled', reason = 'its session was deleted'
WHERE session_id = ? AND outcome IN ('queued', 'running');

-- name: forget_fires
DELETE FROM schedule_fires WHERE schedule_id = ?;

-- The session in which the next fire of a schedule waits for that of another one, in `session_id`, to end.
-- name: waits_behind
SELECT n.session_id FROM schedule_fires d
JOIN schedule_fires n ON n.schedule_id = d.schedule_id AND n.place > d.place AND n.fresh = 1
  AND n.outcome IN ('queued', 'running') AND n.outcome = 'queued'
WHERE d.session_id = ? AND d.fresh = 1;

-- Whether what a fresh session was made for has to wait: an earlier fire of its schedule is still at work.
-- name: must_wait
SELECT 1 FROM schedule_fires n
JOIN schedule_fires d ON d.schedule_id = n.schedule_id AND d.place < n.place AND d.fresh = 1
  AND d.outcome IN ('queued', 'running')
WHERE n.session_id = ?1 AND n.fresh = 1 AND n.asked = 0
  AND n.outcome IN ('queued', 'running') AND n.outcome = 'queued' LIMIT 1;

-- name: waiting
SELECT session_id FROM schedule_fires
WHERE outcome IN ('queued', 'running') AND outcome = 'queued' AND fresh = 1;

-- What waits in a session and wakes nobody: the next turn would take it along, whoever begins it.
-- name: held_back
SELECT 1 FROM triggers t JOIN heads h ON h.session_id = t.session_id
WHERE t.session_id = ? AND t.state = 'pending' AND t.seq <= max(h.imported_through, h.held_through) LIMIT 1;

-- name: owner
SELECT next_fence, fence, kind, turn_id, host_id, state FROM owners WHERE session_id = ?;

-- name: take
INSERT INTO owners (session_id, next_fence, fence, kind, turn_id, host_id, state)
VALUES (?, ?, ?, ?, ?, ?, 'reserved')
ON CONFLICT (session_id) DO UPDATE SET
  next_fence = excluded.next_fence, fence = excluded.fence, kind = excluded.kind,
  turn_id = excluded.turn_id, host_id = excluded.host_id, state = excluded.state;

-- name: set_state
UPDATE owners SET state = ? WHERE session_id = ? AND fence = ?;

-- name: holds
SELECT 1 FROM owners WHERE session_id = ? AND fence = ?;

-- name: release
UPDATE owners SET fence = NULL, kind = NULL, turn_id = NULL, host_id = NULL, state = NULL
WHERE session_id = ? AND fence = ?;

-- name: owners_of_host
SELECT session_id, fence, kind, turn_id FROM owners WHERE host_id = ? AND fence IS NOT NULL;

-- name: live_owners
SELECT session_id, fence, kind, turn_id, host_id FROM owners WHERE fence IS NOT NULL;

-- name: delete_owner
DELETE FROM owners WHERE session_id = ?;

-- name: insert_turn
INSERT INTO turns (turn_id, session_id, idx, state, trigger, model, started_at)
VALUES (?, ?, ?, 'running', ?, ?, ?);

-- name: set_turn_state
UPDATE turns SET state = ? WHERE turn_id = ?;

-- name: end_turn
UPDATE turns SET state = ?, ended_at = ?, usage = ?, error = ?, final_text = ?, stop_reason = ?
WHERE turn_id = ?;

-- name: next_index
SELECT coalesce(max(idx), -1) + 1 FROM turns WHERE session_id = ?;

-- name: turn
SELECT turn_id, session_id, idx, state, trigger, model, started_at, ended_at, usage, error,
       final_text, stop_reason
FROM turns WHERE turn_id = ?;

-- name: turns_page
SELECT turn_id, session_id, idx, state, trigger, model, started_at, ended_at, usage, error,
       final_text, stop_reason
FROM turns WHERE session_id = ? AND idx > ? ORDER BY idx LIMIT ?;

-- name: last_turn
SELECT turn_id, session_id, idx, state, trigger, model, started_at, ended_at, usage, error,
       final_text, stop_reason
FROM turns WHERE session_id = ? ORDER BY idx DESC LIMIT 1;

-- name: open_call
INSERT INTO open_calls (call_id, session_id, turn_id, name, seq) VALUES (?, ?, ?, ?, ?);

-- name: close_call
DELETE FROM open_calls WHERE call_id = ?;

-- name: open_calls_of_turn
SELECT call_id, name FROM open_calls WHERE turn_id = ? ORDER BY seq;

-- name: insert_trigger
INSERT INTO triggers (session_id, seq, kind, delivery, client_message_id) VALUES (?, ?, ?, ?, ?);

-- name: admit_trigger
UPDATE triggers SET state = 'admitted', turn_id = ? WHERE session_id = ? AND seq = ?;

-- name: drop_trigger
UPDATE triggers SET state = 'dropped' WHERE session_id = ? AND seq = ?;

-- name: pending_triggers
SELECT seq, kind, delivery FROM triggers WHERE session_id = ? AND state = 'pending' ORDER BY seq;

-- name: pending_steers
SELECT seq FROM triggers
WHERE session_id = ? AND state = 'pending' AND delivery = 'steer' ORDER BY seq;

-- name: trigger
SELECT delivery, turn_id FROM triggers WHERE session_id = ? AND seq = ?;

-- name: trigger_by_client_message
SELECT seq, state, turn_id FROM triggers WHERE session_id = ? AND client_message_id = ?;

-- name: answered_through
SELECT coalesce(
  (SELECT min(seq) - 1 FROM triggers WHERE session_id = ?1 AND state = 'pending'),
  (SELECT max(seq) FROM triggers WHERE session_id = ?1), 0);

-- name: message_of_turn
SELECT 1 FROM events
WHERE session_id = ?1 AND turn_id = ?2 AND type = 'message'
  AND seq > (SELECT coalesce(max(seq), 0) FROM triggers WHERE session_id = ?1 AND turn_id = ?2)
  AND json_extract(data, '$.messageId') = ?3;

-- name: last_seq
SELECT seq FROM heads WHERE session_id = ?;

-- name: forget_turns
DELETE FROM turns WHERE session_id = ?;

-- name: forget_open_calls
DELETE FROM open_calls WHERE session_id = ?;

-- name: forget_triggers
DELETE FROM triggers WHERE session_id = ?;

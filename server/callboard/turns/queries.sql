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

-- name: end_preparation
UPDATE owners SET fence = NULL, kind = NULL, turn_id = NULL, host_id = NULL, state = NULL
WHERE session_id = ? AND kind = 'prepare';

-- name: owners_of_host
SELECT session_id, fence, kind, turn_id FROM owners WHERE host_id = ? AND fence IS NOT NULL;

-- name: live_owners
SELECT session_id, fence, kind, turn_id, host_id FROM owners WHERE fence IS NOT NULL;

-- name: seize
UPDATE owners SET next_fence = next_fence + 1, fence = next_fence, host_id = ?
WHERE session_id = ? AND fence = ? RETURNING fence;

-- name: disown
UPDATE owners SET fence = NULL, kind = NULL, turn_id = NULL, host_id = NULL, state = NULL
WHERE session_id = ?;

-- name: insert_turn
INSERT INTO turns (turn_id, session_id, idx, state, trigger, model, started_at, started_seq)
VALUES (?, ?, ?, 'running', ?, ?, ?, ?);

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
FROM turns WHERE session_id = ? AND idx > ? AND rewound = 0 ORDER BY idx LIMIT ?;

-- name: last_turn
SELECT turn_id, session_id, idx, state, trigger, model, started_at, ended_at, usage, error,
       final_text, stop_reason
FROM turns WHERE session_id = ? AND rewound = 0 ORDER BY idx DESC LIMIT 1;

-- name: rewind_turns
UPDATE turns SET rewound = 1 WHERE session_id = ?1
  AND idx >= coalesce((SELECT idx FROM turns WHERE turn_id = ?2 AND session_id = ?1), 0);

-- name: open_call
INSERT INTO open_calls (call_id, session_id, turn_id, name, seq, effect) VALUES (?, ?, ?, ?, ?, ?);

-- name: close_call
DELETE FROM open_calls WHERE call_id = ?;

-- name: is_open
SELECT 1 FROM open_calls WHERE call_id = ?;

-- name: started_seq
SELECT started_seq FROM turns WHERE turn_id = ?;

-- name: open_calls_of_turn
SELECT call_id, name FROM open_calls WHERE turn_id = ? ORDER BY seq;

-- name: open_calls_with_approvals
SELECT c.call_id, c.effect, a.approval_id, a.state, json_extract(a.request, '$.kind') FROM open_calls c
LEFT JOIN approvals a ON a.call_id = c.call_id
WHERE c.turn_id = ? ORDER BY c.seq;

-- name: effects_of_answer
SELECT json_extract(e.data, '$.effect') FROM events e
WHERE e.session_id = ?1 AND e.turn_id = ?2 AND e.type = 'tool_call'
  AND json_extract(e.data, '$.messageId') = (
    SELECT json_extract(l.data, '$.messageId') FROM events l
    WHERE l.session_id = ?1 AND l.turn_id = ?2 AND l.type = 'tool_call'
    ORDER BY l.seq DESC LIMIT 1);

-- name: parked_turn
SELECT turn_id FROM turns WHERE session_id = ? AND state = 'parked';

-- name: answered_of_turn
SELECT 1 FROM open_calls c JOIN approvals a ON a.call_id = c.call_id
WHERE c.turn_id = ? AND a.state <> 'pending';

-- name: parked_and_answered
SELECT DISTINCT t.session_id FROM turns t
JOIN open_calls c ON c.turn_id = t.turn_id JOIN approvals a ON a.call_id = c.call_id
LEFT JOIN owners o ON o.session_id = t.session_id
WHERE t.state = 'parked' AND a.state <> 'pending' AND o.fence IS NULL;

-- name: open_call_records
SELECT e.pos, e.session_id, e.seq, e.event_id, e.type, e.at, e.actor, e.turn_id, e.fence, e.data
FROM events e JOIN open_calls c ON c.session_id = e.session_id AND c.seq = e.seq
WHERE c.turn_id = ? ORDER BY e.seq;

-- name: usages_of_turn
SELECT json_extract(data, '$.usage') FROM events
WHERE session_id = ? AND turn_id = ? AND type = 'message'
  AND json_extract(data, '$.usage') IS NOT NULL ORDER BY seq;

-- name: insert_trigger
INSERT INTO triggers (session_id, seq, kind, delivery, client_message_id, host_id)
VALUES (?, ?, ?, ?, ?, ?);

-- name: ours_wait
SELECT 1 FROM triggers WHERE session_id = ?1 AND state = 'pending'
  AND (host_id IS NULL OR host_id = ?2 OR (?3 AND host_id NOT IN (SELECT host_id FROM hosts)))
  AND seq > (SELECT max(h.imported_through, h.held_through) FROM heads h WHERE h.session_id = ?1) LIMIT 1;

-- name: own_left
SELECT DISTINCT t.session_id FROM triggers t
JOIN sessions s ON s.session_id = t.session_id
JOIN heads h ON h.session_id = t.session_id AND t.seq > max(h.imported_through, h.held_through)
LEFT JOIN owners o ON o.session_id = t.session_id
WHERE t.state = 'pending' AND t.host_id = ? AND s.closed = 0 AND o.fence IS NULL
  AND NOT EXISTS (SELECT 1 FROM turns p WHERE p.session_id = t.session_id AND p.state = 'parked');

-- name: own_wait
SELECT 1 FROM triggers t JOIN heads h ON h.session_id = t.session_id AND t.seq > max(h.imported_through, h.held_through)
WHERE t.session_id = ? AND t.state = 'pending' AND t.host_id = ? LIMIT 1;

-- name: goes_on
SELECT 1 FROM owners WHERE session_id = ?1 AND fence IS NOT NULL AND kind = 'run'
UNION ALL
SELECT 1 FROM triggers t JOIN heads h ON h.session_id = t.session_id AND t.seq > max(h.imported_through, h.held_through)
WHERE t.session_id = ?1 AND t.state = 'pending' LIMIT 1;

-- name: update_trigger
UPDATE triggers SET updated_seq = ? WHERE session_id = ? AND seq = ?;

-- name: trigger_state
SELECT kind, state, turn_id FROM triggers WHERE session_id = ? AND seq = ?;

-- name: queue_page
SELECT seq, kind, delivery, updated_seq FROM triggers
WHERE session_id = ? AND state = 'pending' AND seq > ? ORDER BY seq LIMIT ?;

-- name: last_position
SELECT max(pos) FROM events;

-- name: records_at
SELECT pos, session_id, seq, event_id, type, at, actor, turn_id, fence, data FROM events
WHERE session_id = ? AND seq IN (SELECT value FROM json_each(?));

-- name: admit_trigger
UPDATE triggers SET state = 'admitted', turn_id = ? WHERE session_id = ? AND seq = ?;

-- name: admitted_by
SELECT seq FROM triggers WHERE session_id = ? AND turn_id = ? ORDER BY seq;

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

-- name: cancel_wish
SELECT pos, session_id, seq, event_id, type, at, actor, turn_id, fence, data FROM events
WHERE session_id = ?1 AND turn_id = ?2 AND type = 'cancel_requested'
  AND seq > (SELECT coalesce(min(seq), 0) FROM triggers WHERE session_id = ?1 AND turn_id = ?2)
ORDER BY seq LIMIT 1;

-- name: message_of_turn
SELECT 1 FROM events
WHERE session_id = ?1 AND turn_id = ?2 AND type = 'message'
  AND seq > (SELECT coalesce(min(seq), 0) FROM triggers WHERE session_id = ?1 AND turn_id = ?2)
  AND json_extract(data, '$.messageId') = ?3;

-- name: last_seq
SELECT seq FROM heads WHERE session_id = ?;

-- name: forget_turns
DELETE FROM turns WHERE session_id = ?;

-- name: forget_open_calls
DELETE FROM open_calls WHERE session_id = ?;

-- name: forget_triggers
DELETE FROM triggers WHERE session_id = ?;

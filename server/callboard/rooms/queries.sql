-- name: burst
SELECT said FROM bursts WHERE session_id = ?;

-- name: set_burst
INSERT INTO bursts (session_id, said) VALUES (?, ?)
ON CONFLICT (session_id) DO UPDATE SET said = excluded.said;

-- name: forget_burst
DELETE FROM bursts WHERE session_id = ?;

-- What a burst can depend on.
-- name: telling
SELECT pos, session_id, seq, event_id, type, at, actor, turn_id, fence, data FROM events
WHERE session_id = ? AND seq <= ?
  AND type IN ('session_created', 'member_added', 'member_removed', 'message', 'directive', 'session_rewound')
ORDER BY seq;

-- name: updated_by
SELECT updated_seq FROM triggers WHERE session_id = ? AND seq = ?;

-- name: final_message
SELECT e.pos, e.session_id, e.seq, e.event_id, e.type, e.at, e.actor, e.turn_id, e.fence, e.data
FROM events e JOIN turns t ON t.turn_id = ?2
WHERE e.session_id = ?1 AND e.seq > t.started_seq AND e.turn_id = ?2 AND e.type = 'message'
  AND json_extract(e.data, '$.final')
ORDER BY e.seq DESC LIMIT 1;

-- What producers do.

-- How far an inbox has come, and what one of its deliveries does to a turn that runs.
-- name: watermarks
SELECT n.delivered, n.interrupts, n.activated, i.policy FROM inboxes n
LEFT JOIN inbox i ON i.session_id = n.session_id AND i.generation = ?2
WHERE n.session_id = ?1;

-- name: open_inbox
INSERT INTO inboxes (session_id, delivered)
VALUES (?1, 1 + (SELECT coalesce(max(generation), 0) FROM receipts WHERE session_id = ?1))
RETURNING delivered;

-- name: next_generation
UPDATE inboxes SET delivered = delivered + 1 WHERE session_id = ? RETURNING delivered;

-- name: set_watermarks
UPDATE inboxes SET interrupts = max(interrupts, ?), activated = max(activated, ?)
WHERE session_id = ?;

-- name: known
SELECT generation, digest FROM inbox WHERE session_id = ?1 AND delivery_id = ?2
UNION ALL SELECT generation, digest FROM receipts WHERE session_id = ?1 AND delivery_id = ?2;

-- name: pending
SELECT count(*) FROM inbox WHERE session_id = ?;

-- name: insert
INSERT INTO inbox (session_id, generation, delivery_id, digest, kind, policy, body, actor,
                   delivered_at, host_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: waits
SELECT 1 FROM inbox WHERE session_id = ? AND generation = ?;

-- How far turns may take things in, and, while it waits, how often a delivery was tried, and whether it is now.
-- name: asked_of
SELECT n.activated, i.attempts, coalesce(i.turn_id = o.turn_id, 0) FROM inboxes n
LEFT JOIN inbox i ON i.session_id = n.session_id AND i.generation = ?2
LEFT JOIN owners o ON o.session_id = n.session_id
WHERE n.session_id = ?1;

-- name: taker
SELECT o.turn_id, o.kind, o.state, coalesce(n.selected_by = o.turn_id AND n.selected <> ?2, 0)
FROM owners o LEFT JOIN inboxes n ON n.session_id = o.session_id
WHERE o.session_id = ?1 AND o.fence IS NOT NULL;

-- name: ask
UPDATE inbox SET wake = 'asked', host_id = ? WHERE session_id = ? AND generation = ?;

-- name: leave
UPDATE inbox SET wake = 'muted' WHERE session_id = ? AND generation = ? AND wake = 'none';

-- name: mute
UPDATE inbox SET wake = 'muted' WHERE session_id = ? AND wake = 'asked';

-- name: all_of
SELECT delivery_id, generation, digest, kind FROM inbox WHERE session_id = ? ORDER BY generation;

-- What turns do.

-- name: due
SELECT kind FROM inbox i
WHERE session_id = ?1 AND wake = 'asked' AND attempts < ?4
  AND (host_id = ?2 OR (?5 AND host_id NOT IN (SELECT host_id FROM hosts)))
  AND generation < coalesce((SELECT min(b.generation) FROM inbox b
                             WHERE b.session_id = ?1 AND b.claim_expires > ?3), 1 << 62)
ORDER BY generation LIMIT 1;

-- name: due_sessions
SELECT DISTINCT i.session_id FROM inbox i
JOIN sessions s ON s.session_id = i.session_id
LEFT JOIN owners o ON o.session_id = i.session_id
WHERE i.wake = 'asked' AND i.attempts < ?3 AND s.closed = 0 AND o.fence IS NULL
  AND (i.host_id = ?1 OR (?4 AND i.host_id NOT IN (SELECT host_id FROM hosts)))
  AND NOT EXISTS (SELECT 1 FROM turns p WHERE p.session_id = i.session_id AND p.state = 'parked')
  AND i.generation < coalesce((SELECT min(b.generation) FROM inbox b
                               WHERE b.session_id = i.session_id AND b.claim_expires > ?2), 1 << 62);

-- name: is_asked
SELECT 1 FROM inbox WHERE session_id = ? AND wake = 'asked' LIMIT 1;

-- name: tried
UPDATE inbox SET turn_id = ?1, host_id = ?2, attempts = attempts + 1
WHERE session_id = ?3 AND wake = 'asked'
  AND generation < coalesce((SELECT min(b.generation) FROM inbox b
                             WHERE b.session_id = ?3 AND b.claim_expires > ?4), 1 << 62);

-- name: try_selected
UPDATE inbox SET turn_id = ?, host_id = ?, attempts = attempts + 1
WHERE session_id = ? AND generation = ?;

-- name: hold_back
UPDATE inbox SET wake = 'none' WHERE session_id = ? AND wake = 'asked';

-- name: select
UPDATE inboxes SET selected = ?, selected_by = ? WHERE session_id = ?;

-- name: spent
UPDATE inbox SET wake = 'none' WHERE session_id = ? AND wake = 'asked' AND turn_id = ?;

-- name: reach
SELECT activated, interrupts, CASE WHEN selected_by = ?2 THEN selected END
FROM inboxes WHERE session_id = ?1;

-- name: admissible
SELECT generation FROM inbox
WHERE session_id = ?1 AND generation <= ?2
  AND generation < coalesce((SELECT min(b.generation) FROM inbox b
                             WHERE b.session_id = ?1 AND b.claim_expires > ?3), 1 << 62)
  AND instr(?5, ',' || kind || ',') = 0
ORDER BY generation LIMIT ?4;

-- name: selectable
SELECT kind FROM inbox
WHERE session_id = ?1 AND generation = ?2 AND NOT coalesce(claim_expires > ?3, 0);

-- name: selected
SELECT generation FROM inbox
WHERE session_id = ?1 AND generation = ?2 AND NOT coalesce(claim_expires > ?3, 0);

-- name: envelope
SELECT delivery_id, generation, digest, kind, body, actor FROM inbox
WHERE session_id = ? AND generation = ?;

-- name: exhausted
SELECT delivery_id, generation, digest, kind FROM inbox
WHERE session_id = ?1 AND attempts >= ?2
  AND NOT coalesce(turn_id = (SELECT turn_id FROM owners WHERE session_id = ?1), 0)
ORDER BY generation;

-- name: forgotten
SELECT DISTINCT i.session_id FROM inbox i
JOIN inboxes n ON n.session_id = i.session_id AND i.generation <= n.activated
JOIN sessions s ON s.session_id = i.session_id AND s.closed = 0
WHERE i.host_id NOT IN (SELECT host_id FROM hosts)
  AND (i.wake = 'none' OR (i.wake = 'asked' AND i.attempts >= ?));

-- name: ask_again
UPDATE inbox SET wake = 'asked', host_id = ?1
WHERE session_id = ?2 AND wake = 'none'
  AND host_id NOT IN (SELECT host_id FROM hosts)
  AND generation <= (SELECT activated FROM inboxes WHERE session_id = ?2);

-- Receipts.

-- name: settle
INSERT INTO receipts (session_id, delivery_id, generation, digest, state, seq)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (session_id, delivery_id) DO NOTHING;

-- name: take_out
DELETE FROM inbox WHERE session_id = ? AND delivery_id = ?;

-- name: receipt
SELECT generation, digest, state, seq FROM receipts WHERE session_id = ? AND delivery_id = ?;

-- Claims.

-- name: claimable
SELECT generation, delivery_id, claim_owner, claim_epoch, claim_incarnation, claim_expires
FROM inbox
WHERE session_id = ?1
  AND generation <= coalesce((SELECT activated FROM inboxes WHERE session_id = ?1), 0)
  AND NOT coalesce(turn_id = (SELECT turn_id FROM owners WHERE session_id = ?1), 0)
ORDER BY generation LIMIT ?2;

-- name: held
SELECT claim_owner, claim_epoch, claim_incarnation, claim_expires FROM inbox
WHERE session_id = ? AND delivery_id = ?;

-- name: hold
UPDATE inbox SET claim_owner = ?, claim_epoch = ?, claim_incarnation = ?, claim_expires = ?
WHERE session_id = ? AND delivery_id = ?;

-- name: settle_claim
INSERT INTO settled_claims (session_id, delivery_id, owner, epoch, incarnation)
VALUES (?, ?, ?, ?, ?);

-- name: settled
SELECT 1 FROM settled_claims
WHERE session_id = ? AND delivery_id = ? AND owner = ? AND epoch = ? AND incarnation = ?;

-- A session that is gone.

-- name: forget_inbox
DELETE FROM inbox WHERE session_id = ?;

-- name: forget_watermarks
DELETE FROM inboxes WHERE session_id = ?;

-- name: forget_receipts
DELETE FROM receipts WHERE session_id = ?;

-- name: forget_claims
DELETE FROM settled_claims WHERE session_id = ?;

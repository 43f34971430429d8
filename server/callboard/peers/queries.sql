-- name: standing
SELECT closed, archived, parent_id IS NULL, title FROM sessions WHERE session_id = ?;

-- Invitations. One that was made long after now was so by a clock that has been put back since, and is none.

-- name: count_invitations
SELECT count(*) FROM peer_tokens
WHERE inviter_id = ? AND accepted_by IS NULL AND expires_at >= ? AND created_at <= ?;

-- name: insert_token
INSERT INTO peer_tokens (token_hash, inviter_id, created_at, expires_at) VALUES (?, ?, ?, ?);

-- Of all who try at once, one succeeds; whoever has invited does not.
-- name: take_token
UPDATE peer_tokens SET accepted_by = ?1, accepted_at = ?2
WHERE token_hash = ?3 AND accepted_by IS NULL AND expires_at >= ?2 AND created_at <= ?4 AND inviter_id <> ?1
RETURNING inviter_id;

-- name: own_token
SELECT 1 FROM peer_tokens
WHERE token_hash = ? AND inviter_id = ? AND accepted_by IS NULL AND expires_at >= ? AND created_at <= ?;

-- Consent.

-- name: link
INSERT INTO peer_links (session_id, peer_id, since) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: unlink
DELETE FROM peer_links
WHERE (session_id = ?1 AND peer_id = ?2) OR (session_id = ?2 AND peer_id = ?1);

-- name: may_write
SELECT 1 FROM peer_links WHERE session_id = ? AND peer_id = ?;

-- name: count_links
SELECT count(*) FROM (
  SELECT peer_id FROM peer_links WHERE session_id = ?1
  UNION SELECT session_id FROM peer_links WHERE peer_id = ?1);

-- Whom a session has to do with: since when it may write to them, since when they may write to it, and how many of
-- its messages they have not read.
-- name: peers
SELECT p.peer_id, s.title, o.since, i.since,
       (SELECT count(*) FROM peer_inbox b
        WHERE b.sender_id = ?1 AND b.recipient_id = p.peer_id AND b.dead IS NULL)
FROM (SELECT peer_id FROM peer_links WHERE session_id = ?1
      UNION SELECT session_id FROM peer_links WHERE peer_id = ?1) p
LEFT JOIN peer_links o ON o.session_id = ?1 AND o.peer_id = p.peer_id
LEFT JOIN peer_links i ON i.session_id = p.peer_id AND i.peer_id = ?1
LEFT JOIN sessions s ON s.session_id = p.peer_id
ORDER BY coalesce(o.since, i.since), p.peer_id;

-- name: any_links
SELECT 1 FROM json_each(?) j
WHERE EXISTS (SELECT 1 FROM peer_links l WHERE l.session_id = j.value OR l.peer_id = j.value) LIMIT 1;

-- Sending.

-- name: said_lately
SELECT message_id FROM peer_sent
WHERE sender_id = ? AND recipient_id = ? AND digest = ? AND at BETWEEN ? AND ? ORDER BY at LIMIT 1;

-- name: sent_since
SELECT count(*), min(at) FROM peer_sent WHERE sender_id = ? AND at > ?;

-- name: count_undelivered
SELECT count(*) FROM peer_inbox WHERE recipient_id = ? AND dead IS NULL;

-- name: insert_sent
INSERT INTO peer_sent (message_id, sender_id, recipient_id, digest, at) VALUES (?, ?, ?, ?, ?);

-- What is long gone, and what is long after now, by a clock that has been put back since.
-- name: prune_sent
DELETE FROM peer_sent WHERE sender_id = ? AND (at <= ? OR at > ?);

-- What was never delivered may be said again. It was sent, and counts for that, all the same.
-- name: forget_digest
UPDATE peer_sent SET digest = '' WHERE message_id = ?;

-- name: insert_message
INSERT INTO peer_inbox (message_id, recipient_id, sender_id, capsule, created_at)
VALUES (?, ?, ?, ?, ?);

-- Receiving.

-- name: something_waits
SELECT 1 FROM peer_inbox WHERE recipient_id = ? AND dead IS NULL LIMIT 1;

-- name: waiting
SELECT b.arrival, b.message_id, b.sender_id, b.capsule, b.created_at,
       EXISTS (SELECT 1 FROM peer_links l WHERE l.session_id = b.sender_id AND l.peer_id = b.recipient_id)
FROM peer_inbox b WHERE b.recipient_id = ? AND b.dead IS NULL ORDER BY b.arrival LIMIT ?;

-- name: delivered
DELETE FROM peer_inbox WHERE arrival = ?;

-- name: bury
UPDATE peer_inbox SET dead = ? WHERE arrival = ?;

-- name: drop_waiting
DELETE FROM peer_inbox WHERE recipient_id = ? AND sender_id = ? AND dead IS NULL RETURNING message_id, arrival;

-- What a link has brought into a session, and no turn has taken in.
-- name: pending_of_peer
SELECT t.seq, json_extract(e.data, '$.messageId') FROM triggers t
JOIN events e ON e.session_id = t.session_id AND e.seq = t.seq
WHERE t.session_id = ? AND t.state = 'pending' AND t.kind = 'peer'
  AND json_extract(e.data, '$.author.id') = ? ORDER BY t.seq;

-- Open, owned by nobody, no turn of it waits for an approval, and nothing lies there that wakes nobody since it was
-- imported: a turn would take that along, whoever begins it, and what a peer says is nobody's leave for it.
-- name: is_idle
SELECT 1 FROM sessions s LEFT JOIN owners o ON o.session_id = s.session_id
WHERE s.session_id = ? AND s.closed = 0 AND s.archived = 0 AND o.fence IS NULL
  AND NOT EXISTS (SELECT 1 FROM turns p WHERE p.session_id = s.session_id AND p.state = 'parked')
  AND NOT EXISTS (SELECT 1 FROM triggers t JOIN heads h ON h.session_id = t.session_id
                  WHERE t.session_id = s.session_id AND t.state = 'pending'
                    AND t.seq <= max(h.imported_through, h.held_through));

-- Of these sessions, those that are so and for which something waits.
-- name: to_wake
SELECT s.session_id FROM json_each(?) j JOIN sessions s ON s.session_id = j.value
LEFT JOIN owners o ON o.session_id = s.session_id
WHERE s.closed = 0 AND s.archived = 0 AND o.fence IS NULL
  AND EXISTS (SELECT 1 FROM peer_inbox b WHERE b.recipient_id = s.session_id AND b.dead IS NULL)
  AND NOT EXISTS (SELECT 1 FROM turns p WHERE p.session_id = s.session_id AND p.state = 'parked')
  AND NOT EXISTS (SELECT 1 FROM triggers t JOIN heads h ON h.session_id = t.session_id
                  WHERE t.session_id = s.session_id AND t.state = 'pending'
                    AND t.seq <= max(h.imported_through, h.held_through));

-- What nobody needs any more.

-- name: is_tidy
SELECT NOT EXISTS (SELECT 1 FROM peer_tokens WHERE expires_at < ?1)
   AND NOT EXISTS (SELECT 1 FROM peer_sent WHERE at <= ?2)
   AND NOT EXISTS (SELECT 1 FROM peer_inbox WHERE dead IS NOT NULL AND created_at < ?3)
   AND NOT EXISTS (SELECT 1 FROM peer_inbox WHERE recipient_id NOT IN (SELECT session_id FROM sessions))
   AND NOT EXISTS (SELECT 1 FROM peer_links WHERE session_id NOT IN (SELECT session_id FROM sessions)
                                               OR peer_id NOT IN (SELECT session_id FROM sessions))
   AND NOT EXISTS (SELECT 1 FROM peer_tokens WHERE inviter_id NOT IN (SELECT session_id FROM sessions));

-- name: tidy_tokens
DELETE FROM peer_tokens
WHERE expires_at < ? OR inviter_id NOT IN (SELECT session_id FROM sessions);

-- name: tidy_sent
DELETE FROM peer_sent WHERE at <= ?;

-- name: tidy_inbox
DELETE FROM peer_inbox
WHERE (dead IS NOT NULL AND created_at < ?)
   OR recipient_id NOT IN (SELECT session_id FROM sessions);

-- name: tidy_links
DELETE FROM peer_links
WHERE session_id NOT IN (SELECT session_id FROM sessions) OR peer_id NOT IN (SELECT session_id FROM sessions);

-- name: forget_inbox
DELETE FROM peer_inbox WHERE recipient_id = ?;

-- name: forget_links
DELETE FROM peer_links WHERE session_id = ?1 OR peer_id = ?1;

-- name: forget_tokens
DELETE FROM peer_tokens WHERE inviter_id = ?;

-- name: next_seq
UPDATE heads SET seq = seq + 1 WHERE session_id = ? RETURNING seq, root_id;

-- name: insert_event
INSERT INTO events (session_id, seq, event_id, type, at, actor, turn_id, fence, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_head
INSERT INTO heads (session_id, seq, birth, root_id) VALUES (?, 0, ?, ?);

-- name: put_blob
INSERT INTO blobs (blob_id, mime_type, size, data) VALUES (?, ?, ?, ?)
ON CONFLICT (blob_id) DO NOTHING;

-- name: refer_to_blob
INSERT INTO blob_refs (blob_id, session_id) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: share_blob
INSERT INTO blob_refs (blob_id, session_id) SELECT blob_id, ?1 FROM blobs WHERE blob_id = ?2
ON CONFLICT DO NOTHING;

-- name: read_blob
SELECT substr(data, ? + 1, ?), size, mime_type FROM blobs WHERE blob_id = ?;

-- name: delete_blob_refs
DELETE FROM blob_refs WHERE session_id = ?;

-- name: delete_unreferenced_blobs
DELETE FROM blobs WHERE blob_id NOT IN (SELECT blob_id FROM blob_refs);

-- name: delete_search_rows
DELETE FROM search WHERE rowid IN (SELECT pos FROM events WHERE session_id = ?);

-- name: delete_events
DELETE FROM events WHERE session_id = ?;

-- name: delete_head
DELETE FROM heads WHERE session_id = ? RETURNING seq, root_id;

-- name: delete_drafts
DELETE FROM drafts WHERE session_id = ?;

-- name: insert_deletion
INSERT INTO deletions (session_id, at, head_pos)
VALUES (?, ?, (SELECT coalesce(max(pos), 0) FROM events));

-- name: write_draft
INSERT INTO drafts (turn_id, session_id, message_id, answer, thought, next_index, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (turn_id) DO UPDATE SET
  message_id = excluded.message_id, answer = excluded.answer, thought = excluded.thought,
  next_index = excluded.next_index, updated_at = excluded.updated_at;

-- name: delete_draft
DELETE FROM drafts WHERE turn_id = ?;

-- name: read_draft
SELECT message_id, answer, thought, next_index FROM drafts WHERE turn_id = ?;

-- name: prune_idempotency
DELETE FROM idempotency WHERE at < ?;

-- name: read_answer
SELECT digest, answer FROM idempotency WHERE method = ? AND scope = ? AND key = ?;

-- name: keep_answer
INSERT INTO idempotency (method, scope, key, digest, answer, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (method, scope, key) DO UPDATE SET answer = excluded.answer;

-- name: to_index
SELECT pos, type, data FROM events WHERE pos > ? ORDER BY pos LIMIT ?;

-- name: insert_search_row
INSERT INTO search (rowid, text) VALUES (?, ?);

-- name: indexed_through
SELECT through FROM search_progress WHERE id = 1;

-- name: set_indexed_through
UPDATE search_progress SET through = ? WHERE id = 1;

-- name: search
SELECT e.pos
FROM search JOIN events e ON e.pos = search.rowid
WHERE search.text MATCH ? AND search.rowid < ?
ORDER BY search.rowid DESC LIMIT ?;

-- name: search_session
SELECT e.pos
FROM search JOIN events e ON e.pos = search.rowid
WHERE search.text MATCH ? AND search.rowid < ? AND e.session_id = ?
ORDER BY search.rowid DESC LIMIT ?;

-- name: records_between
SELECT e.pos, e.session_id, e.seq, e.event_id, e.type, e.at, e.actor, e.turn_id, e.fence, e.data,
       coalesce(h.root_id, e.session_id)
FROM events e LEFT JOIN heads h ON h.session_id = e.session_id
WHERE e.pos > ? AND e.pos <= ? ORDER BY e.pos LIMIT 500;

-- name: begin_import
INSERT INTO imports (session_id, import_id, host_id, began_at) VALUES (?, ?, ?, ?);

-- name: import_of
SELECT import_id, host_id FROM imports WHERE session_id = ?;

-- name: set_import_id
UPDATE imports SET import_id = ? WHERE session_id = ?;

-- name: end_import
DELETE FROM imports WHERE session_id = ?;

-- name: left_imports
SELECT session_id, import_id, host_id FROM imports;

-- name: set_tombstones_apart
UPDATE events SET seq = -pos WHERE session_id = ? AND type = 'session_deleted';

-- name: insert_imported_head
INSERT INTO heads (session_id, seq, birth, root_id, imported_through, folders_claimed)
VALUES (?, ?, ?, ?, ?, ?);

-- name: forget_deletion
DELETE FROM deletions WHERE session_id = ?;

-- name: newest_of_import
SELECT pos FROM events WHERE session_id = ? AND seq > 0 ORDER BY seq DESC LIMIT ?;

-- name: delete_search_row
DELETE FROM search WHERE rowid = ?;

-- name: delete_event
DELETE FROM events WHERE pos = ?;

-- name: blobs_of_session_alone
SELECT r.blob_id FROM blob_refs r WHERE r.session_id = ?1
  AND NOT EXISTS (SELECT 1 FROM blob_refs o WHERE o.blob_id = r.blob_id AND o.session_id <> ?1);

-- name: delete_blob
DELETE FROM blobs WHERE blob_id = ?;

-- name: scratch_events
SELECT seq, event_id, type, at, actor, turn_id, data FROM events WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: scratch_blobs
SELECT blob_id, mime_type, data FROM blobs WHERE blob_id > ? ORDER BY blob_id LIMIT 1;

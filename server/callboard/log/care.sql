-- What is looked at, and cleaned up, when a store is cared for.

-- name: sessions_with_gaps
SELECT h.session_id, h.seq, count(e.seq), coalesce(min(e.seq), 0), coalesce(max(e.seq), 0)
FROM heads h LEFT JOIN events e ON e.session_id = h.session_id AND e.seq > 0
GROUP BY h.session_id
HAVING h.seq <> count(e.seq) OR coalesce(max(e.seq), 0) <> count(e.seq) OR coalesce(min(e.seq), 0) <> 1;

-- name: events_without_session
SELECT DISTINCT e.session_id FROM events e
WHERE e.session_id NOT IN (SELECT session_id FROM heads UNION ALL SELECT session_id FROM imports)
  AND NOT (e.type = 'session_deleted' AND e.session_id IN (SELECT session_id FROM deletions));

-- name: events_that_are_no_objects
SELECT pos FROM events
WHERE CASE WHEN json_valid(data) AND json_valid(actor)
  THEN json_type(data) <> 'object' OR json_type(actor) <> 'object' ELSE 1 END
LIMIT 20;

-- name: positions
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0),
       coalesce((SELECT max(pos) FROM events), 0);

-- name: wrong_blob_sizes
SELECT blob_id FROM blobs WHERE size <> length(data);

-- name: each_blob
SELECT blob_id, data FROM blobs;

-- name: events_with_blobs
SELECT pos, session_id, data FROM events
WHERE data LIKE '%"_blobs"%' OR (type = 'tool_result' AND data LIKE '%"blob"%');

-- name: blob_is_referred_to
SELECT EXISTS (SELECT 1 FROM blobs WHERE blob_id = ?1),
       EXISTS (SELECT 1 FROM blob_refs WHERE blob_id = ?1 AND session_id = ?2);

-- name: refs_without_session
SELECT count(*) FROM blob_refs WHERE session_id NOT IN (SELECT session_id FROM heads);

-- name: unreferenced_blobs
SELECT count(*), coalesce(sum(size), 0) FROM blobs
WHERE blob_id NOT IN (SELECT blob_id FROM blob_refs);

-- name: search_of_events
SELECT e.pos, e.type, e.data, s.text FROM events e LEFT JOIN search s ON s.rowid = e.pos
WHERE e.pos <= ? AND e.type IN (SELECT value FROM json_each(?));

-- name: search_of_nothing
SELECT count(*) FROM search WHERE rowid NOT IN (
  SELECT pos FROM events WHERE pos <= ? AND type IN (SELECT value FROM json_each(?)));

-- name: rebuild_search
INSERT INTO search (search) VALUES ('rebuild');

-- name: clear_search
DELETE FROM search;

-- name: merge_search
INSERT INTO search (search) VALUES ('optimize');

-- name: counts
SELECT (SELECT count(*) FROM heads), (SELECT count(*) FROM events), (SELECT count(*) FROM blobs),
       (SELECT coalesce(sum(size), 0) FROM blobs),
       (SELECT coalesce(max(pos), 0) FROM events), (SELECT through FROM search_progress);

-- name: events_to_project
SELECT e.pos, e.session_id, e.seq, e.event_id, e.type, e.at, e.actor, e.turn_id, e.fence, e.data,
       coalesce(h.root_id, e.session_id)
FROM events e LEFT JOIN heads h ON h.session_id = e.session_id ORDER BY e.pos;

-- name: tables_beside_the_log
SELECT name FROM store.sqlite_master
WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'search%'
  AND name NOT IN ('meta', 'events', 'heads', 'deletions', 'blobs', 'blob_refs');

-- name: schema_of_table
SELECT sql FROM store.sqlite_master
WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY type = 'index';

-- name: delete_idle_drafts
DELETE FROM drafts WHERE turn_id NOT IN (SELECT turn_id FROM turns WHERE state = 'running');

-- What the care of a store asks of its sessions and their runs.

-- name: hosts
SELECT host_id, pid, process_born FROM hosts ORDER BY started_at;

-- name: open_calls_that_nobody_runs
SELECT c.call_id FROM open_calls c
LEFT JOIN turns t ON t.turn_id = c.turn_id
LEFT JOIN owners o ON o.session_id = c.session_id
WHERE t.state IS NULL OR t.state NOT IN ('running', 'parked')
   OR (t.state = 'running' AND (o.fence IS NULL OR o.turn_id IS NOT c.turn_id));

-- name: turns_that_nobody_runs
SELECT t.turn_id FROM turns t LEFT JOIN owners o ON o.session_id = t.session_id
WHERE t.state = 'running' AND (o.fence IS NULL OR o.turn_id IS NOT t.turn_id);

-- name: approvals_of_ended_turns
SELECT a.approval_id FROM approvals a LEFT JOIN turns t ON t.turn_id = a.turn_id
WHERE a.state = 'pending' AND (t.state IS NULL OR t.state NOT IN ('running', 'parked'));

-- name: owners
SELECT o.session_id, o.host_id, h.pid, h.process_born FROM owners o
LEFT JOIN hosts h ON h.host_id = o.host_id
WHERE o.fence IS NOT NULL;

-- name: owners_of_nothing
SELECT session_id FROM owners
WHERE fence IS NOT NULL AND session_id NOT IN (SELECT session_id FROM heads);

-- name: fences_behind
SELECT session_id FROM owners WHERE fence >= next_fence;

-- name: out_of_date
SELECT s.session_id FROM sessions s
WHERE s.parent_id IS NULL AND (s.archived = 1 OR s.closed = 1) AND s.updated_at < ?1
  AND NOT EXISTS (
    SELECT 1 FROM sessions b LEFT JOIN owners o ON o.session_id = b.session_id
    WHERE b.root_id = s.session_id AND (
      b.pinned = 1 OR b.updated_at >= ?1 OR o.fence IS NOT NULL
      OR EXISTS (SELECT 1 FROM triggers t WHERE t.session_id = b.session_id AND t.state = 'pending')
      OR EXISTS (SELECT 1 FROM turns p WHERE p.session_id = b.session_id AND p.ended_at IS NULL)
      OR EXISTS (SELECT 1 FROM inbox i WHERE i.session_id = b.session_id)))
  AND (?2 IS NULL OR s.session_id = ?2)
ORDER BY s.updated_at LIMIT ?3;

-- name: tree
SELECT session_id FROM sessions WHERE root_id = ? ORDER BY depth DESC;

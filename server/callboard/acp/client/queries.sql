-- name: insert_process
INSERT INTO external_processes (mark, host_id) VALUES (?, ?);

-- name: identify_process
UPDATE external_processes SET pid = ?, identity = ? WHERE mark = ?;

-- name: delete_process
DELETE FROM external_processes WHERE mark = ?;

-- What hosts have left that are gone.
-- name: left_behind
SELECT mark, pid, identity FROM external_processes
WHERE host_id NOT IN (SELECT host_id FROM hosts);

-- name: approval_of_call
SELECT approval_id FROM approvals WHERE call_id = ? ORDER BY pos DESC LIMIT 1;

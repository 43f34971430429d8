-- name: insert_approval
INSERT INTO approvals (approval_id, session_id, root_id, turn_id, call_id, state, request, pos, expires_at)
VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, ?);

-- name: resolve_approval
UPDATE approvals SET state = ?, resolution = ? WHERE approval_id = ? AND state = 'pending';

-- name: approval
SELECT state, request, resolution, session_id, turn_id, expires_at FROM approvals WHERE approval_id = ?;

-- name: pending_of_turn
SELECT approval_id FROM approvals WHERE turn_id = ? AND state = 'pending' ORDER BY pos;

-- name: waiting_calls_of_turn
SELECT call_id FROM approvals WHERE turn_id = ? AND state = 'pending' AND call_id IS NOT NULL;

-- name: due
SELECT state, request, resolution FROM approvals
WHERE state = 'pending' AND expires_at IS NOT NULL AND expires_at <= ?1
  AND session_id IN (SELECT session_id FROM heads)
  AND (?2 IS NULL OR turn_id IN (SELECT turn_id FROM owners WHERE host_id = ?2));

-- name: next_expiry
SELECT min(expires_at) FROM approvals WHERE state = 'pending' AND expires_at IS NOT NULL
  AND session_id IN (SELECT session_id FROM heads)
  AND (?1 IS NULL OR turn_id IN (SELECT turn_id FROM owners WHERE host_id = ?1));

-- name: list_approvals
SELECT pos, state, request, resolution FROM approvals
WHERE pos > ? AND (? IS NULL OR state = ?) AND (? IS NULL OR session_id = ? OR root_id = ?)
  AND session_id IN (SELECT session_id FROM heads)
ORDER BY pos LIMIT ?;

-- name: forget_approvals
DELETE FROM approvals WHERE session_id = ?;

-- name: forget_rules
DELETE FROM rules WHERE session_id = ?;

-- name: insert_rule
INSERT INTO rules (rule_id, scope, session_id, workspace, tool, pattern, effect, created_at, created_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: delete_rule
DELETE FROM rules WHERE rule_id = ?;

-- name: revoke_of_session
DELETE FROM rules WHERE rule_id = ? AND scope = 'session' RETURNING rule_id;

-- name: rule
SELECT rule_id, scope, session_id, workspace, tool, pattern, effect, created_at, created_by
FROM rules WHERE rule_id = ?;

-- name: rules
SELECT rule_id, scope, session_id, workspace, tool, pattern, effect, created_at, created_by
FROM rules WHERE rule_id > ? AND (? IS NULL OR scope = ?) AND (? IS NULL OR session_id = ?)
ORDER BY rule_id LIMIT ?;

-- name: rules_for
SELECT rule_id, scope, session_id, workspace, tool, pattern, effect, created_at, created_by
FROM rules WHERE scope = 'global'
  OR (scope = 'session' AND session_id IN (SELECT value FROM json_each(?)))
  OR (scope = 'workspace' AND workspace = ?)
ORDER BY rule_id;

-- name: folders
SELECT cwd, directories FROM sessions WHERE session_id = ?;

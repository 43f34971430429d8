-- Groups (coordination 8). Projections: they follow the log, as `groups/state.py` reduces it. All of them are
-- kept by the root session in whose log the group is, since an imported copy has the ids of what it copies.

CREATE TABLE agent_groups (
  root_id     TEXT PRIMARY KEY,
  group_id    TEXT NOT NULL,
  name        TEXT NOT NULL,
  created_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE group_members (
  root_id     TEXT    NOT NULL,
  agent_id    TEXT    NOT NULL,
  joined_pos  INTEGER NOT NULL,
  PRIMARY KEY (root_id, agent_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE group_tasks (
  root_id         TEXT    NOT NULL,
  task_id         TEXT    NOT NULL,
  group_id        TEXT    NOT NULL,
  title           TEXT    NOT NULL,
  status          TEXT    NOT NULL,
  created_by      TEXT    NOT NULL,
  created_at      TEXT    NOT NULL,
  updated_at      TEXT    NOT NULL,
  description     TEXT    NOT NULL,
  dependencies    TEXT    NOT NULL,
  required        INTEGER NOT NULL,
  expected_paths  TEXT    NOT NULL,
  assignee        TEXT,
  summary         TEXT,
  reason          TEXT,
  findings        TEXT    NOT NULL,
  touched_files   TEXT    NOT NULL,
  PRIMARY KEY (root_id, task_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_tasks_in_order ON group_tasks (root_id, created_at, task_id);
CREATE INDEX group_tasks_required ON group_tasks (root_id)
  WHERE required = 1 AND status NOT IN ('completed', 'cancelled');

CREATE TABLE group_messages (
  root_id     TEXT    NOT NULL,
  message_id  TEXT    NOT NULL,
  pos         INTEGER NOT NULL,
  sender      TEXT    NOT NULL,
  target      TEXT    NOT NULL,
  text        TEXT    NOT NULL,
  at          TEXT    NOT NULL,
  PRIMARY KEY (root_id, message_id)
) STRICT, WITHOUT ROWID;

-- To count them without reading their texts, which every sender does in its transaction.
CREATE INDEX group_messages_in_order ON group_messages (root_id, pos);

-- Who gets a message, and where in their session they have got it.
CREATE TABLE group_message_deliveries (
  recipient_id   TEXT    NOT NULL,
  pos            INTEGER NOT NULL,
  root_id        TEXT    NOT NULL,
  message_id     TEXT    NOT NULL,
  delivered_seq  INTEGER,
  PRIMARY KEY (recipient_id, pos)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_message_deliveries_pending ON group_message_deliveries (recipient_id, pos)
  WHERE delivered_seq IS NULL;
CREATE INDEX group_message_deliveries_by_message ON group_message_deliveries (root_id, message_id);

-- The events of groups among all others, for the rebuild with which every host begins.
CREATE INDEX events_groups ON events (session_id, seq) WHERE type IN (
  'agent_group_created', 'agent_group_member_joined', 'group_task_created', 'group_task_claimed',
  'group_task_released', 'group_task_status_changed', 'group_message_queued', 'group_message_delivered');

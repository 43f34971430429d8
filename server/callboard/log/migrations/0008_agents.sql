-- Child agents (seed 001). A projection: it follows the log, as `agents/state.py` reduces it.

CREATE TABLE agents (
  agent_id      TEXT PRIMARY KEY,
  root_id       TEXT    NOT NULL,
  parent_id     TEXT    NOT NULL,
  name          TEXT    NOT NULL,
  agent_type    TEXT,
  depth_left    INTEGER NOT NULL,
  message_allow TEXT    NOT NULL,
  status        TEXT    NOT NULL,
  report        TEXT,
  interrupted   TEXT,
  pending       TEXT,
  winding       TEXT,
  deadline_at   TEXT,
  closing       INTEGER NOT NULL DEFAULT 0,
  spawned_pos   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_by_parent ON agents (parent_id, name);
CREATE INDEX agents_open ON agents (parent_id, name) WHERE status <> 'closed';
CREATE INDEX agents_by_root ON agents (root_id, name, agent_id);
CREATE INDEX agents_due ON agents (deadline_at) WHERE deadline_at IS NOT NULL;

-- Questions of agents to their parents; a projection, too.
CREATE TABLE asks (
  ask_id          TEXT PRIMARY KEY,
  agent_id        TEXT    NOT NULL,
  parent_id       TEXT    NOT NULL,
  text            TEXT    NOT NULL,
  asked_at        TEXT    NOT NULL,
  expires_at      TEXT,
  expects_reply   INTEGER NOT NULL,
  turn_id         TEXT,
  call_id         TEXT,
  outcome         TEXT,
  reply           TEXT,
  replied_by      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX asks_by_agent ON asks (agent_id);
CREATE INDEX asks_due ON asks (expires_at) WHERE outcome IS NULL AND expires_at IS NOT NULL;
CREATE INDEX asks_open ON asks (parent_id) WHERE outcome IS NULL AND expects_reply = 1;

-- What agents were told by those beside them; a projection, too. It is kept when it has been read, since
-- how much one may say is counted over its whole life.
CREATE TABLE sibling_messages (
  recipient_id  TEXT    NOT NULL,
  seq           INTEGER NOT NULL,
  sender_id     TEXT    NOT NULL,
  root_id       TEXT    NOT NULL,
  digest        TEXT    NOT NULL,
  PRIMARY KEY (recipient_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX sibling_messages_by_sender ON sibling_messages (sender_id);
CREATE INDEX sibling_messages_by_root ON sibling_messages (root_id);

-- What a child is called by its parent; a root has no such name.
ALTER TABLE sessions ADD COLUMN agent_name TEXT;

-- Up to which seq what waits in a session wakes nobody: its server died before it began, and nothing
-- reruns by itself. What comes next takes it along.
ALTER TABLE heads ADD COLUMN held_through INTEGER NOT NULL DEFAULT 0;

-- Where a turn begins in its session, so that what it did is found without a look at all that was before;
-- and the plans among all events of a session, of which there are few.
ALTER TABLE turns ADD COLUMN started_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX events_plans ON events (session_id, seq) WHERE type = 'plan_updated';

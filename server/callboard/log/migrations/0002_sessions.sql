-- Projections: rebuilt from the log, and checked against it in tests.

CREATE TABLE sessions (
  session_id   TEXT PRIMARY KEY,
  root_id      TEXT    NOT NULL,
  parent_id    TEXT,
  depth        INTEGER NOT NULL,
  cwd          TEXT    NOT NULL,
  directories  TEXT    NOT NULL,
  profile      TEXT    NOT NULL,
  mode         TEXT    NOT NULL,
  model        TEXT,
  title        TEXT,
  metadata     TEXT,
  archived     INTEGER NOT NULL DEFAULT 0,
  pinned       INTEGER NOT NULL DEFAULT 0,
  closed       INTEGER NOT NULL DEFAULT 0,
  created_at   TEXT    NOT NULL,
  updated_at   TEXT    NOT NULL,
  updated_pos  INTEGER NOT NULL,
  last_outcome TEXT,
  answered_through INTEGER NOT NULL DEFAULT 0,
  turns        INTEGER NOT NULL DEFAULT 0,
  usage        TEXT
) STRICT;
CREATE INDEX sessions_by_update ON sessions (updated_pos DESC);
CREATE INDEX sessions_by_parent ON sessions (parent_id);
CREATE INDEX sessions_by_root ON sessions (root_id);

-- Trigger events, and the turn whose context has taken each in (by an ack). `state` is pending,
-- admitted or dropped.
CREATE TABLE triggers (
  session_id TEXT    NOT NULL,
  seq        INTEGER NOT NULL,
  kind       TEXT    NOT NULL,
  delivery   TEXT    NOT NULL,
  client_message_id TEXT,
  state      TEXT    NOT NULL DEFAULT 'pending',
  turn_id    TEXT,
  PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX triggers_pending ON triggers (session_id, seq) WHERE state = 'pending';
CREATE UNIQUE INDEX triggers_by_client_message ON triggers (session_id, client_message_id)
  WHERE client_message_id IS NOT NULL;

CREATE TABLE turns (
  turn_id     TEXT PRIMARY KEY,
  session_id  TEXT    NOT NULL,
  idx         INTEGER NOT NULL,
  state       TEXT    NOT NULL,
  trigger     TEXT    NOT NULL,
  model       TEXT,
  started_at  TEXT    NOT NULL,
  ended_at    TEXT,
  usage       TEXT,
  error       TEXT,
  final_text  TEXT,
  stop_reason TEXT,
  UNIQUE (session_id, idx)
) STRICT;

-- Tool calls that have no result yet.
CREATE TABLE open_calls (
  call_id    TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  turn_id    TEXT NOT NULL,
  name       TEXT NOT NULL,
  seq        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX open_calls_by_session ON open_calls (session_id, seq);

CREATE TABLE approvals (
  approval_id TEXT PRIMARY KEY,
  session_id  TEXT NOT NULL,
  root_id     TEXT NOT NULL,
  turn_id     TEXT NOT NULL,
  call_id     TEXT NOT NULL,
  state       TEXT NOT NULL,
  request     TEXT NOT NULL,
  resolution  TEXT,
  pos         INTEGER NOT NULL,
  expires_at  TEXT
) STRICT;
CREATE INDEX approvals_by_session ON approvals (session_id, pos);
CREATE INDEX approvals_by_state ON approvals (state, pos);
CREATE INDEX approvals_by_root ON approvals (root_id, state);

-- Not a projection: who runs what now. Slot, logical owner and fence are this one row
-- (specs/execution.md 6). `next_fence` outlives the owner, so that fences only ever rise.
CREATE TABLE owners (
  session_id    TEXT PRIMARY KEY,
  next_fence    INTEGER NOT NULL,
  fence         INTEGER,
  kind          TEXT,
  turn_id       TEXT,
  host_id       TEXT,
  state         TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX owners_live ON owners (host_id) WHERE fence IS NOT NULL;

CREATE TABLE hosts (
  host_id      TEXT PRIMARY KEY,
  pid          INTEGER NOT NULL,
  process_born TEXT    NOT NULL,
  started_at   TEXT    NOT NULL,
  heartbeat_at TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Standing answers that people gave. Their own table: a rule may outlive the session it came from.
CREATE TABLE rules (
  rule_id    TEXT PRIMARY KEY,
  scope      TEXT NOT NULL,
  session_id TEXT,
  workspace  TEXT,
  tool       TEXT NOT NULL,
  pattern    TEXT,
  effect     TEXT NOT NULL,
  created_at TEXT NOT NULL,
  created_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

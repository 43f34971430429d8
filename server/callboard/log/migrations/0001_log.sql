-- The log itself, and what every feature needs from the store.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Events are never changed, and deleted only with their whole session. `pos` is the cursor.
CREATE TABLE events (
  pos        INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT    NOT NULL,
  seq        INTEGER NOT NULL,
  event_id   TEXT    NOT NULL,
  type       TEXT    NOT NULL,
  at         TEXT    NOT NULL,
  actor      TEXT    NOT NULL,
  turn_id    TEXT,
  fence      INTEGER NOT NULL DEFAULT 0,
  data       TEXT    NOT NULL,
  UNIQUE (session_id, seq)
) STRICT;

-- The last seq of each session, so that an append need not look for it. Part of the log, not a
-- projection: it is written with the event, in its transaction.
CREATE TABLE heads (
  session_id TEXT PRIMARY KEY,
  seq        INTEGER NOT NULL,
  birth      TEXT    NOT NULL,
  root_id    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX heads_by_root ON heads (root_id);

-- Sessions that are gone, so that a cursor from before the deletion is told apart from a wrong one.
CREATE TABLE deletions (
  session_id TEXT PRIMARY KEY,
  at         TEXT    NOT NULL,
  head_pos   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
  blob_id   TEXT PRIMARY KEY,
  mime_type TEXT    NOT NULL,
  size      INTEGER NOT NULL,
  data      BLOB    NOT NULL
) STRICT;

CREATE TABLE blob_refs (
  blob_id    TEXT NOT NULL REFERENCES blobs (blob_id),
  session_id TEXT NOT NULL,
  PRIMARY KEY (blob_id, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_by_session ON blob_refs (session_id);

-- Text that streams and is not an event yet: one row per turn, gone with the message's commit.
CREATE TABLE drafts (
  turn_id    TEXT PRIMARY KEY,
  session_id TEXT    NOT NULL,
  message_id TEXT    NOT NULL,
  answer     TEXT    NOT NULL,
  thought    TEXT    NOT NULL,
  next_index TEXT    NOT NULL,
  updated_at TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  method  TEXT NOT NULL,
  scope   TEXT NOT NULL,
  key     TEXT NOT NULL,
  digest  TEXT NOT NULL,
  answer  TEXT NOT NULL,
  at      TEXT NOT NULL,
  PRIMARY KEY (method, scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (at);

-- What a person said, an agent answered and a tool printed. The indexer follows the log.
CREATE VIRTUAL TABLE search USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE search_progress (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  through INTEGER NOT NULL
) STRICT;
INSERT INTO search_progress VALUES (1, 0);

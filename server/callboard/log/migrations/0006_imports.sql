-- Sessions that are being brought in from a file just now, piece by piece. Such a session has no head, and
-- so is found by nobody and appended to by nobody; what there is of it goes when its host is gone.
CREATE TABLE imports (
  session_id TEXT PRIMARY KEY,
  import_id  TEXT NOT NULL,
  host_id    TEXT NOT NULL,
  began_at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What this store knows of a session that its log does not tell: up to which seq it came from a file
-- (prompts that wait there wake nobody), and whether its folders are only what the file says.
ALTER TABLE heads ADD COLUMN imported_through INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heads ADD COLUMN folders_claimed INTEGER NOT NULL DEFAULT 0;

-- What summaries have used is looked up among all events of a session; there are few of them.
CREATE INDEX events_summaries ON events (session_id) WHERE type = 'summary';

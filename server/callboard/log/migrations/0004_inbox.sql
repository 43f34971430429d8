-- The inbox of sessions (specs/execution.md 4): what was delivered and no turn has taken in yet. Not a
-- projection: a delivery is in the log from the moment at which a turn admits it, not before. `wake` says
-- whether it was asked that a turn takes it in: none, asked, or muted by a cancel. `turn_id` is the last
-- turn that was begun to do so, `host_id` the host that is to begin it, while it lives.

CREATE TABLE inbox (
  session_id   TEXT    NOT NULL,
  generation   INTEGER NOT NULL,
  delivery_id  TEXT    NOT NULL,
  digest       TEXT    NOT NULL,
  kind         TEXT    NOT NULL,
  policy       TEXT    NOT NULL,
  body         TEXT    NOT NULL,
  actor        TEXT    NOT NULL,
  delivered_at TEXT    NOT NULL,
  host_id      TEXT    NOT NULL,
  wake         TEXT    NOT NULL DEFAULT 'none',
  attempts     INTEGER NOT NULL DEFAULT 0,
  turn_id      TEXT,
  claim_owner       TEXT,
  claim_epoch       INTEGER NOT NULL DEFAULT 0,
  claim_incarnation TEXT,
  claim_expires     TEXT,
  PRIMARY KEY (session_id, generation),
  UNIQUE (session_id, delivery_id)
) STRICT;
CREATE INDEX inbox_asked ON inbox (session_id, generation) WHERE wake = 'asked';
CREATE INDEX inbox_claimed ON inbox (session_id, generation) WHERE claim_expires IS NOT NULL;

-- How far each inbox has come. The three only rise. `selected` is the one delivery that the turn
-- `selected_by` may take in.
CREATE TABLE inboxes (
  session_id  TEXT PRIMARY KEY,
  delivered   INTEGER NOT NULL,
  interrupts  INTEGER NOT NULL DEFAULT 0,
  activated   INTEGER NOT NULL DEFAULT 0,
  selected    INTEGER,
  selected_by TEXT
) STRICT, WITHOUT ROWID;

-- A projection: what became of every delivery that is not in an inbox any more. The event at `seq` is the
-- proof.
CREATE TABLE receipts (
  session_id  TEXT    NOT NULL,
  delivery_id TEXT    NOT NULL,
  generation  INTEGER NOT NULL,
  digest      TEXT    NOT NULL,
  state       TEXT    NOT NULL,
  seq         INTEGER NOT NULL,
  PRIMARY KEY (session_id, delivery_id)
) STRICT, WITHOUT ROWID;

-- Claims that were acknowledged, so that the very same acknowledgement can be repeated.
CREATE TABLE settled_claims (
  session_id  TEXT    NOT NULL,
  delivery_id TEXT    NOT NULL,
  owner       TEXT    NOT NULL,
  epoch       INTEGER NOT NULL,
  incarnation TEXT    NOT NULL,
  PRIMARY KEY (session_id, delivery_id)
) STRICT, WITHOUT ROWID;

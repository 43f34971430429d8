-- Links between unrelated sessions (interrupts-and-peers 4). These tables are the truth, and follow no log:
-- what an imported or forked history says of a link grants nothing.

-- Invitations. The token itself is told once, and known by its SHA-256 alone.
CREATE TABLE peer_tokens (
  token_hash   TEXT PRIMARY KEY,
  inviter_id   TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  expires_at   TEXT NOT NULL,
  accepted_by  TEXT,
  accepted_at  TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX peer_tokens_of_inviter ON peer_tokens (inviter_id);

-- Consent: the first may write to the second.
CREATE TABLE peer_links (
  session_id  TEXT NOT NULL,
  peer_id     TEXT NOT NULL,
  since       TEXT NOT NULL,
  PRIMARY KEY (session_id, peer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX peer_links_to ON peer_links (peer_id);

-- Messages on their way, in the order in which they were committed. `dead`: why one will never be read.
CREATE TABLE peer_inbox (
  arrival       INTEGER PRIMARY KEY,
  message_id    TEXT NOT NULL UNIQUE,
  recipient_id  TEXT NOT NULL,
  sender_id     TEXT NOT NULL,
  capsule       TEXT NOT NULL,
  created_at    TEXT NOT NULL,
  dead          TEXT
) STRICT;
CREATE INDEX peer_inbox_waiting ON peer_inbox (recipient_id, arrival) WHERE dead IS NULL;
CREATE INDEX peer_inbox_of_sender ON peer_inbox (sender_id, recipient_id);

-- What was sent lately: for the hourly limit, and so that a repetition is none.
CREATE TABLE peer_sent (
  message_id    TEXT PRIMARY KEY,
  sender_id     TEXT NOT NULL,
  recipient_id  TEXT NOT NULL,
  digest        TEXT NOT NULL,
  at            TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX peer_sent_lately ON peer_sent (sender_id, at);

-- Rooms: who takes part in a session. Follows the log, as the rest of the row does (session-messaging 9).

ALTER TABLE sessions ADD COLUMN members TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sessions ADD COLUMN room_host TEXT;
ALTER TABLE sessions ADD COLUMN burst_budget INTEGER;

-- How many messages of agents have followed one another, in sessions with members.
CREATE TABLE bursts (
  session_id TEXT PRIMARY KEY,
  said       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

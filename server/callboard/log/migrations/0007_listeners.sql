-- Runs whose end somebody has yet to be told of: written with the end, gone once that was told. `host_id`
-- is the host that will tell; another takes it over when that one is gone.

CREATE TABLE runs_to_tell (
  id         INTEGER PRIMARY KEY,
  listener   TEXT NOT NULL,
  turn_id    TEXT NOT NULL,
  session_id TEXT NOT NULL,
  host_id    TEXT NOT NULL,
  UNIQUE (listener, turn_id)
) STRICT;
CREATE INDEX runs_to_tell_by_session ON runs_to_tell (session_id);
CREATE INDEX runs_to_tell_by_host ON runs_to_tell (host_id);

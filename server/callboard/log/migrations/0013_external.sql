-- Agents that are programs of their own: which session of theirs goes with one of ours, for each agent that takes
-- part in it, and through which event it was told. Follows the log.
CREATE TABLE external_sessions (
  session_id        TEXT    NOT NULL,
  profile           TEXT    NOT NULL,
  agent_session_id  TEXT    NOT NULL,
  through           INTEGER NOT NULL,
  PRIMARY KEY (session_id, profile)
) STRICT, WITHOUT ROWID;

-- Their processes, and the terminals that they had opened. No projection: a row is there before its process, and goes
-- when that has ended; what is left of a host that is gone is ended by whoever comes next. `mark` is in its
-- environment, `pid` and `identity` tell it from others.
CREATE TABLE external_processes (
  mark      TEXT    PRIMARY KEY,
  host_id   TEXT    NOT NULL,
  pid       INTEGER,
  identity  TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX external_processes_of ON external_processes (host_id);

-- Schedules (session-messaging 8). Like rules, they are no projection: the rows are the truth, and what they fire
-- is an event of the session in which it runs. `next_at` is what the engine goes by, and what two hosts that see a
-- schedule due agree on: the transaction that fires moves it. `anchor_at` is what an interval is counted from;
-- `revision` rises with every change of what a schedule is, and not with what it does.
CREATE TABLE schedules (
  schedule_id      TEXT    PRIMARY KEY,
  profile          TEXT    NOT NULL,
  name             TEXT    NOT NULL,
  trigger          TEXT    NOT NULL,
  prompt           TEXT    NOT NULL,
  session_id       TEXT,
  cwd              TEXT,
  enabled          INTEGER NOT NULL,
  created_at       TEXT    NOT NULL,
  updated_at       TEXT    NOT NULL,
  misfire          TEXT    NOT NULL,
  overlap          TEXT    NOT NULL,
  max_fires        INTEGER,
  expires_at       TEXT,
  max_failures     INTEGER NOT NULL,
  fire_count       INTEGER NOT NULL,
  skip_count       INTEGER NOT NULL,
  failures         INTEGER NOT NULL,
  next_at          TEXT,
  last_fired_at    TEXT,
  last_error       TEXT,
  disabled_reason  TEXT,
  created_by       TEXT,
  anchor_at        TEXT    NOT NULL,
  revision         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedules_by_name ON schedules (profile, name);
CREATE INDEX schedules_due ON schedules (next_at) WHERE enabled = 1 AND next_at IS NOT NULL;
CREATE INDEX schedules_of_session ON schedules (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX schedules_of_agent ON schedules (created_by) WHERE created_by IS NOT NULL;

-- What became of each time at which a schedule was due. `seq` is the event's in its session; `asked`: somebody
-- wanted it now, whatever the times are.
CREATE TABLE schedule_fires (
  place        INTEGER PRIMARY KEY AUTOINCREMENT,
  fire_id      TEXT    NOT NULL UNIQUE,
  schedule_id  TEXT    NOT NULL,
  due_at       TEXT    NOT NULL,
  outcome      TEXT    NOT NULL,
  fired_at     TEXT    NOT NULL,
  fresh        INTEGER NOT NULL,
  session_id   TEXT,
  seq          INTEGER,
  turn_id      TEXT,
  usage        TEXT,
  reason       TEXT,
  times        INTEGER NOT NULL,
  asked        INTEGER NOT NULL
) STRICT;
CREATE INDEX schedule_fires_in_order ON schedule_fires (schedule_id, place);
CREATE INDEX schedule_fires_of_turn ON schedule_fires (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX schedule_fires_open ON schedule_fires (session_id, seq) WHERE outcome IN ('queued', 'running');
CREATE INDEX schedule_fires_open_of ON schedule_fires (schedule_id, place)
  WHERE outcome IN ('queued', 'running');
CREATE INDEX schedule_fires_fresh ON schedule_fires (session_id) WHERE fresh = 1;

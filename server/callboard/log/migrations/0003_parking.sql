-- What a call would do, so that it is known which calls cannot have begun (DESIGN 4, parked turns).
-- Calls from before count as commands: they may have begun.

ALTER TABLE open_calls ADD COLUMN effect TEXT NOT NULL DEFAULT 'execute';

-- The host that accepted a trigger runs it while it lives; nobody's is everybody's.
ALTER TABLE triggers ADD COLUMN host_id TEXT;

CREATE INDEX turns_parked ON turns (session_id) WHERE state = 'parked';

-- Turns that were rewound, prompts that were changed while they waited, and where a fork comes from.

ALTER TABLE turns ADD COLUMN rewound INTEGER NOT NULL DEFAULT 0;
ALTER TABLE triggers ADD COLUMN updated_seq INTEGER;
ALTER TABLE sessions ADD COLUMN forked_from TEXT;

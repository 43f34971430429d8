-- Notices are found by a search, too: from the first one on, all is indexed once more.
DELETE FROM search WHERE rowid >= (SELECT min(pos) FROM events WHERE type = 'notice');
UPDATE search_progress
SET through = min(through, (SELECT coalesce(min(pos) - 1, through) FROM events WHERE type = 'notice'));

-- Why the last turn of the conversation ended. It counts as long as the conversation has this version: an older version of
-- the program, which does not know these columns, leaves them behind when it writes.
ALTER TABLE conversation ADD COLUMN end_reason TEXT;
ALTER TABLE conversation ADD COLUMN end_version INTEGER;

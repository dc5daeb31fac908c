-- How long the wait of an unsealed turn was decided to be, in milliseconds: null when it does not wait. Format 1 had it
-- in the turn's JSON only, where it cannot be listed for many turns at once.
ALTER TABLE conversation ADD COLUMN wait_ms INTEGER;

UPDATE conversation SET wait_ms = coalesce(json_extract(turn, '$.phase.decidedMs'), 0) WHERE wake_at IS NOT NULL;

-- The turns that wait are listed from the index alone.
DROP INDEX unsealed;
CREATE INDEX unsealed ON conversation (wake_at, id, wait_ms) WHERE turn IS NOT NULL;

-- The chunk from which on a chunk replaces what came before it, for the model: null for nearly all.
ALTER TABLE chunk ADD COLUMN supersedes INTEGER;

-- What defines an unsealed turn beside its state, as JSON. Most turns have the same: each is kept once.
CREATE TABLE definition (
    key INTEGER PRIMARY KEY,
    json TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO definition (json) SELECT DISTINCT json_patch(json_object('model', coalesce(model, '')),
    json_object('reasoningEffort', reasoning_effort)) FROM conversation WHERE turn IS NOT NULL;
ALTER TABLE conversation ADD COLUMN definition INTEGER;
UPDATE conversation SET definition = (SELECT key FROM definition WHERE json =
    json_patch(json_object('model', coalesce(model, '')), json_object('reasoningEffort', reasoning_effort)))
    WHERE turn IS NOT NULL;
ALTER TABLE conversation DROP COLUMN reasoning_effort;

-- Whether an unsealed turn waits for a person: then only until wake_at, if at all. Such a turn without a moment is never
-- due, and in no index.
ALTER TABLE conversation ADD COLUMN for_person INTEGER NOT NULL DEFAULT 0;
DROP INDEX unsealed;
CREATE INDEX unsealed ON conversation (wake_at, id, wait_ms, for_person)
    WHERE turn IS NOT NULL AND (for_person = 0 OR wake_at IS NOT NULL);

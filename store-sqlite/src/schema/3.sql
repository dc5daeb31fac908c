-- The chunk from which on a chunk replaces what came before it, for the model: null for nearly all.
ALTER TABLE chunk ADD COLUMN supersedes INTEGER;

-- What defines an unsealed turn beside its state, as JSON. It takes the place of one of its parts.
ALTER TABLE conversation ADD COLUMN definition TEXT;
UPDATE conversation SET definition = json_patch(json_object('model', coalesce(model, '')),
    json_object('reasoningEffort', reasoning_effort)) WHERE turn IS NOT NULL;
ALTER TABLE conversation DROP COLUMN reasoning_effort;

-- What appends add: chunks, runs of events, and the figures of sealed turns. They are in the order in which they came, so
-- that an append writes to one place of the file and to one of the index, whatever it adds.
CREATE TABLE entry (
    key INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    -- 0 = a chunk, 1 = a run of events, 2 = a sealed turn.
    kind INTEGER NOT NULL,
    -- Of a chunk its `seq`, of a run where it ends, of a sealed turn its number.
    place INTEGER NOT NULL,
    -- Of a sealed turn.
    sealed_at INTEGER,
    ends INTEGER,
    -- Of a run, and how many events it has.
    begins INTEGER,
    events INTEGER,
    -- Of a chunk.
    role INTEGER,
    supersedes INTEGER,
    -- A chunk's JSON, which events may refer to: it is never changed. A run as src/run.rs writes it. Figures as JSON.
    text TEXT NOT NULL
) STRICT;

INSERT INTO entry (conversation, kind, place, role, supersedes, text)
    SELECT conversation, 0, seq, role, supersedes, chunk FROM chunk ORDER BY rowid;
INSERT INTO entry (conversation, kind, place, begins, events, text)
    SELECT conversation, 1, ends, begins, 1, printf('%s%d,%d:%s%s', char(10), ends - begins, octet_length(json), json, char(10))
    FROM event ORDER BY rowid;
INSERT INTO entry (conversation, kind, place, sealed_at, ends, text)
    SELECT conversation, 2, number, sealed_at, ends, figures FROM sealed;
DROP TABLE chunk;
DROP TABLE event;
DROP TABLE sealed;
CREATE UNIQUE INDEX place ON entry (conversation, kind, place);

-- Unsealed turns that do not wait. Those that wait are in the row of their conversation. A row counts as long as its
-- conversation has this version: the seal of a turn leaves it, and it is removed when others are written.
CREATE TABLE running (
    conversation INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    turn TEXT NOT NULL,
    turn_begins INTEGER NOT NULL,
    turn_seq INTEGER NOT NULL,
    definition INTEGER NOT NULL
) STRICT;
INSERT INTO running SELECT key, version, turn, coalesce(turn_begins, 0), coalesce(turn_seq, 0), coalesce(definition, 0)
    FROM conversation WHERE turn IS NOT NULL AND wake_at IS NULL AND for_person = 0;
UPDATE conversation SET turn = NULL, turn_begins = NULL, turn_seq = NULL, definition = NULL
    WHERE turn IS NOT NULL AND wake_at IS NULL AND for_person = 0;

DROP INDEX unsealed;
CREATE INDEX waiting ON conversation (wake_at, id, wait_ms, for_person) WHERE wake_at IS NOT NULL;

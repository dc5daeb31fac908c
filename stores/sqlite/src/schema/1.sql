-- "EvTn": tells our files from those of other programs.
PRAGMA application_id = 1165382766;

-- Head columns are null until the first head is written; turn columns are null unless a turn is unsealed.
CREATE TABLE conversation (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    created_at INTEGER,
    last_activity_at INTEGER,
    title TEXT,
    status INTEGER,
    model TEXT,
    ends INTEGER,
    last_seq INTEGER,
    wake_at INTEGER,
    turn_begins INTEGER,
    turn_seq INTEGER,
    reasoning_effort TEXT,
    turn TEXT
) STRICT;

CREATE INDEX unsealed ON conversation (wake_at) WHERE turn IS NOT NULL;

-- Chunks and events may be long. In a table without rowid, each of more than 1 kB would take a page more for itself.
CREATE TABLE chunk (
    conversation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    role INTEGER NOT NULL,
    chunk TEXT NOT NULL,
    PRIMARY KEY (conversation, seq)
) STRICT;

CREATE TABLE event (
    conversation INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    begins INTEGER NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (conversation, ends)
) STRICT;

-- Sealed turns: their figures, and where their events end.
CREATE TABLE sealed (
    conversation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    sealed_at INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    figures TEXT NOT NULL,
    PRIMARY KEY (conversation, number)
) STRICT, WITHOUT ROWID;

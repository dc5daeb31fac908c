-- What this schema holds. One row.
CREATE TABLE format (
    -- The number of the last migration.
    version bigint NOT NULL,
    -- Raised by each server that takes the database: one that was replaced can then no longer write.
    epoch bigint NOT NULL
);
INSERT INTO format VALUES (1, 0);

-- Ids are compared byte by byte, as the program does. Titles, models and reasons are escaped: see src/text.rs.
CREATE TABLE conversation (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    version bigint NOT NULL,
    -- The last append. Tells whether one whose answer was lost was stored.
    append bigint NOT NULL,
    created_at bigint NOT NULL,
    last_activity_at bigint NOT NULL,
    title text NOT NULL,
    status smallint NOT NULL,
    end_reason text,
    model text,
    ends bigint NOT NULL,
    last_seq bigint NOT NULL,
    -- The unsealed turn; null if there is none. wake_at is null if it runs, or waits for a person without a deadline.
    turn text,
    turn_begins bigint,
    turn_seq bigint,
    definition bigint,
    wake_at bigint,
    wait_ms bigint,
    for_person boolean NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX activity ON conversation (last_activity_at DESC, id) WHERE id NOT LIKE 'ephemeral:%';
CREATE INDEX ephemeral ON conversation (last_activity_at) WHERE id LIKE 'ephemeral:%';
CREATE INDEX unsealed ON conversation (wake_at NULLS FIRST, id) INCLUDE (wait_ms, for_person) WHERE turn IS NOT NULL;

-- What appends add: chunks, runs of events, and the figures of sealed turns. Never changed.
CREATE TABLE entry (
    conversation bigint NOT NULL,
    -- 0 = a chunk, 1 = a run of events, 2 = a sealed turn.
    kind smallint NOT NULL,
    -- Of a chunk its seq, of a run where it ends, of a sealed turn the version of the append that sealed it.
    place bigint NOT NULL,
    -- Of a run, and how many events it has.
    begins bigint,
    events bigint,
    -- Of a chunk.
    role smallint,
    supersedes bigint,
    -- Of a sealed turn: when, and where its last run ends.
    sealed_at bigint,
    ends bigint,
    -- A chunk or figures as JSON, or a run as everturn-store-rows writes it.
    text text NOT NULL,
    PRIMARY KEY (conversation, kind, place)
);

-- What defines unsealed turns beside their state, as JSON. Most turns have the same: each is kept once.
CREATE TABLE definition (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    json text NOT NULL
);

-- What all conversations share, as JSON by name.
CREATE TABLE state (
    name text COLLATE "C" PRIMARY KEY,
    json text NOT NULL
);

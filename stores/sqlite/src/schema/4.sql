-- What all conversations share, as JSON by name.
CREATE TABLE state (
    name TEXT PRIMARY KEY,
    json TEXT NOT NULL
) STRICT, WITHOUT ROWID;

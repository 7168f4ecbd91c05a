-- Spans, log records and metric points as they arrived together, zstd. owner is a session's num, or trace:ID or
-- service:NAME for what named no session. hash is of the content: the same export again is the same row.
CREATE TABLE telemetry_chunks (
    owner TEXT NOT NULL,
    kind  INTEGER NOT NULL,
    hash  BLOB NOT NULL,
    data  BLOB NOT NULL,
    PRIMARY KEY (owner, kind, hash)
) STRICT;

-- Where the bytes of each recording are: place is dir, spool or s3, folder the id of the folder with the bytes or with a
-- copy not removed yet. dropped is 1 when no session refers to the recording any more. next_at is when there is something
-- to do about it, 0 never: upload, delete, remove what was left. The row goes when the bytes are gone.
CREATE TABLE recordings (
    key       TEXT COLLATE "C" PRIMARY KEY,
    size      BIGINT NOT NULL,
    sha256    TEXT NOT NULL,
    place     TEXT NOT NULL,
    folder    TEXT NOT NULL,
    stored_at BIGINT NOT NULL,
    dropped   INTEGER NOT NULL,
    attempts  INTEGER NOT NULL,
    next_at   BIGINT NOT NULL
);
CREATE INDEX recordings_due ON recordings (next_at) WHERE next_at > 0;
CREATE INDEX sessions_recording ON sessions (recording_key) WHERE recording_key > '';

INSERT INTO recordings (key, size, sha256, place, folder, stored_at, dropped, attempts, next_at)
SELECT recording_key, recording_size, recording_sha256, 'dir', '', created_at, 0, 0, 0 FROM sessions WHERE recording_key > '';

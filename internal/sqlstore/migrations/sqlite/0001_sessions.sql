-- Times are microseconds since the Unix epoch, UTC; 0 and '' mean unknown. num is ours and never leaves the database.
CREATE TABLE sessions (
    num                INTEGER PRIMARY KEY AUTOINCREMENT,
    id                 TEXT NOT NULL UNIQUE,
    job_key            TEXT NOT NULL,
    job_id             TEXT NOT NULL,
    room_name          TEXT NOT NULL,
    account_id         TEXT NOT NULL,
    agent_id           TEXT NOT NULL,
    agent_name         TEXT NOT NULL,
    transport          TEXT NOT NULL,
    started_at         INTEGER NOT NULL,
    ended_at           INTEGER NOT NULL,
    list_at            INTEGER NOT NULL,
    audio_started_at   INTEGER NOT NULL,
    duration_ms        INTEGER,
    turn_count         INTEGER NOT NULL,
    interruption_count INTEGER NOT NULL,
    tool_call_count    INTEGER NOT NULL,
    p95_perceived_ms   INTEGER,
    has_stt            INTEGER NOT NULL,
    has_llm            INTEGER NOT NULL,
    has_tts            INTEGER NOT NULL,
    outcome            TEXT NOT NULL,
    outcome_at         INTEGER NOT NULL,
    eval_pass_count    INTEGER NOT NULL,
    eval_fail_count    INTEGER NOT NULL,
    cost_usd           REAL,
    sdk_version        TEXT NOT NULL,
    recording_key      TEXT NOT NULL,
    recording_size     INTEGER NOT NULL,
    recording_sha256   TEXT NOT NULL,
    created_at         INTEGER NOT NULL,
    first_signal_at    INTEGER NOT NULL,
    last_signal_at     INTEGER NOT NULL,
    signals            TEXT NOT NULL,
    incomplete         TEXT NOT NULL,
    assistant_turns    INTEGER NOT NULL,
    interrupted_turns  INTEGER NOT NULL,
    perceived          TEXT NOT NULL,
    ttft               TEXT NOT NULL,
    ttfb               TEXT NOT NULL,
    stt                TEXT NOT NULL,
    verdicts           TEXT NOT NULL,
    verdict_at         INTEGER NOT NULL,
    change             INTEGER NOT NULL
) STRICT;
-- Lists walk these newest end first; list_at of an active session lies after every possible end.
CREATE INDEX sessions_list ON sessions (list_at, num);
CREATE INDEX sessions_account ON sessions (account_id, list_at, num);
CREATE INDEX sessions_agent ON sessions (agent_id, list_at, num);
CREATE INDEX sessions_agent_name ON sessions (agent_name, list_at, num);
CREATE INDEX sessions_transport ON sessions (transport, list_at, num);
CREATE INDEX sessions_by_outcome ON sessions (outcome, list_at, num);
CREATE INDEX sessions_started ON sessions (started_at, list_at, num);
CREATE INDEX sessions_recorded ON sessions (list_at, num) WHERE recording_key > '';
CREATE INDEX sessions_failed ON sessions (list_at, num) WHERE eval_fail_count > 0;
CREATE INDEX sessions_change ON sessions (change);
CREATE INDEX sessions_verdict ON sessions (verdict_at) WHERE verdict_at > 0;
CREATE INDEX sessions_outcome ON sessions (outcome_at) WHERE outcome_at > 0;

-- The documents of a session, zstd. id is num * 8 + kind: one small key, and the documents of a session lie together.
CREATE TABLE session_docs (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;

-- Words come tokenised and folded from the program; 'ascii' leaves them as they are. Nothing but the index is stored.
CREATE VIRTUAL TABLE session_search USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');

-- Deleted sessions, so that what is kept in memory about them can go too. change orders all changes: dialect.changeMark.
CREATE TABLE session_deletions (num INTEGER PRIMARY KEY, change INTEGER NOT NULL) STRICT;
CREATE INDEX session_deletions_change ON session_deletions (change);

-- Words that are stored but not indexed yet: an index of words is cheap to extend by many sessions at once and dear by one.
CREATE TABLE search_queue (num INTEGER PRIMARY KEY, words TEXT NOT NULL) STRICT;
-- Every transaction that indexes leaves a segment. Merging more of them at a time reads and writes each word fewer times.
INSERT INTO session_search (session_search, rank) VALUES ('automerge', 16);

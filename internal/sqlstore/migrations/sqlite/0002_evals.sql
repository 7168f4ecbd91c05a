-- Times are microseconds since the Unix epoch, UTC; 0 and '' mean unknown. num is ours and never leaves the database.
-- status is as the posts said; a run without a post for an hour reads as completed: eval.StaleCutoff.
CREATE TABLE eval_runs (
    num                       INTEGER PRIMARY KEY AUTOINCREMENT,
    id                        TEXT NOT NULL UNIQUE,
    name                      TEXT NOT NULL,
    account_id                TEXT NOT NULL,
    agent_id                  TEXT NOT NULL,
    agent_name                TEXT NOT NULL,
    framework                 TEXT NOT NULL,
    framework_version         TEXT NOT NULL,
    testing_framework         TEXT NOT NULL,
    testing_framework_version TEXT NOT NULL,
    started_at                INTEGER NOT NULL,
    finished_at               INTEGER NOT NULL,
    status                    TEXT NOT NULL,
    ci                        TEXT NOT NULL,
    last_activity_at          INTEGER NOT NULL,
    created_at                INTEGER NOT NULL,
    total                     INTEGER NOT NULL,
    passed                    INTEGER NOT NULL,
    failed                    INTEGER NOT NULL,
    errored                   INTEGER NOT NULL,
    skipped                   INTEGER NOT NULL,
    ttft_p50_ms               INTEGER,
    ttft_p95_ms               INTEGER,
    ttft_avg_ms               INTEGER,
    ttfb_p50_ms               INTEGER,
    ttfb_p95_ms               INTEGER,
    ttfb_avg_ms               INTEGER,
    turn_count                INTEGER NOT NULL,
    tool_call_count           INTEGER NOT NULL,
    interruption_count        INTEGER NOT NULL,
    agent_handoff_count       INTEGER NOT NULL,
    ttft_sample_count         INTEGER NOT NULL,
    prompt_tokens             INTEGER NOT NULL,
    completion_tokens         INTEGER NOT NULL,
    total_tokens              INTEGER NOT NULL,
    cached_prompt_tokens      INTEGER NOT NULL,
    cost_usd                  REAL
) STRICT;
-- Lists walk these, newest start first.
CREATE INDEX eval_runs_list ON eval_runs (started_at DESC, id);
CREATE INDEX eval_runs_account ON eval_runs (account_id, started_at DESC, id);
CREATE INDEX eval_runs_agent ON eval_runs (agent_id, started_at DESC, id);
CREATE INDEX eval_runs_activity ON eval_runs (last_activity_at);

-- num is run_num * 2^20 + n for the n-th case of the run, so that the cases of a run lie together. details is what the
-- page of a run shows beside the columns: user input, judgments and failure, zstd. verdicts is for alert rules, as in
-- sessions: [[judge, verdict, arrival]], and verdict_at is that arrival, 0 without verdicts. change orders all changes of
-- what rules count: dialect.changeMark.
CREATE TABLE eval_cases (
    num                  INTEGER PRIMARY KEY,
    run_num              INTEGER NOT NULL,
    case_id              TEXT NOT NULL,
    rank                 TEXT NOT NULL,
    change               INTEGER NOT NULL,
    created_at           INTEGER NOT NULL,
    position             INTEGER NOT NULL,
    name                 TEXT NOT NULL,
    file                 TEXT NOT NULL,
    status               TEXT NOT NULL,
    judge_failed         INTEGER NOT NULL,
    started_at           INTEGER NOT NULL,
    finished_at          INTEGER NOT NULL,
    duration_ms          INTEGER,
    ttft                 TEXT NOT NULL,
    ttfb                 TEXT NOT NULL,
    turn_count           INTEGER NOT NULL,
    tool_call_count      INTEGER NOT NULL,
    interruption_count   INTEGER NOT NULL,
    agent_handoff_count  INTEGER NOT NULL,
    prompt_tokens        INTEGER NOT NULL,
    completion_tokens    INTEGER NOT NULL,
    total_tokens         INTEGER NOT NULL,
    cached_prompt_tokens INTEGER NOT NULL,
    cost_usd             REAL,
    verdicts             TEXT NOT NULL,
    verdict_at           INTEGER NOT NULL,
    details              BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX eval_cases_id ON eval_cases (run_num, case_id);
CREATE INDEX eval_cases_change ON eval_cases (change);
CREATE INDEX eval_cases_verdict ON eval_cases (verdict_at) WHERE verdict_at > 0;

-- The events of a case, zstd, by the num of the case: large, and read with one case or when asked for. A case without a
-- row has none.
CREATE TABLE eval_events (num INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;

-- Deleted runs, so that what is kept in memory about their verdicts can go too.
CREATE TABLE eval_deletions (num INTEGER PRIMARY KEY, change INTEGER NOT NULL) STRICT;
CREATE INDEX eval_deletions_change ON eval_deletions (change);

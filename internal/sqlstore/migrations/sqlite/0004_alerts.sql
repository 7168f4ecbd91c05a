-- Times are microseconds since the Unix epoch, UTC; 0 and '' mean unknown, null or none.
-- updated_at also tells the versions of a rule apart: it grows with every change by a client, and only with that.
-- last_fired_at is the stamp that suppresses the rule for one window. headers is a JSON object.
CREATE TABLE alert_rules (
    id              TEXT NOT NULL PRIMARY KEY,
    name            TEXT NOT NULL,
    enabled         INTEGER NOT NULL,
    metric          TEXT NOT NULL,
    threshold_value REAL NOT NULL,
    window_minutes  INTEGER NOT NULL,
    min_samples     INTEGER NOT NULL,
    agent_id        TEXT NOT NULL,
    account_id      TEXT NOT NULL,
    judge_name      TEXT NOT NULL,
    eval_source     TEXT NOT NULL,
    webhook_url     TEXT NOT NULL,
    http_method     TEXT NOT NULL,
    secret          TEXT NOT NULL,
    headers         TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    last_fired_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX alert_rules_list ON alert_rules (created_at DESC, id);

-- What the last tick found out about each rule. Every tick writes most rows, so they are kept apart from the rules.
CREATE TABLE alert_rule_status (
    rule_id      TEXT NOT NULL PRIMARY KEY REFERENCES alert_rules (id) ON DELETE CASCADE,
    value        REAL,
    samples      INTEGER NOT NULL,
    reason       TEXT NOT NULL,
    evaluated_at INTEGER NOT NULL
) STRICT;

-- Firings with the state of their delivery. payload is the exact body of every attempt, sample_session_ids a JSON array.
-- next_attempt_at is 0 unless the delivery is pending; a claim moves it ahead by a lease.
CREATE TABLE alert_firings (
    id                 TEXT NOT NULL PRIMARY KEY,
    rule_id            TEXT NOT NULL REFERENCES alert_rules (id) ON DELETE CASCADE,
    window_start       INTEGER NOT NULL,
    window_end         INTEGER NOT NULL,
    matched_count      INTEGER NOT NULL,
    total_count        INTEGER,
    observed_value     REAL NOT NULL,
    sample_session_ids TEXT NOT NULL,
    payload            BLOB NOT NULL,
    status             TEXT NOT NULL,
    attempt_count      INTEGER NOT NULL,
    attempt_base       INTEGER NOT NULL,
    next_attempt_at    INTEGER NOT NULL,
    last_attempt_at    INTEGER NOT NULL,
    response_status    INTEGER NOT NULL,
    last_error         TEXT NOT NULL,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL
) STRICT;
CREATE INDEX alert_firings_rule ON alert_firings (rule_id, created_at DESC, id);
CREATE INDEX alert_firings_due ON alert_firings (next_attempt_at, id) WHERE status = 'pending';

-- Every delivery attempt; firing_id is '' for a test. Firings go only with their rule, and so do attempts.
CREATE TABLE alert_webhook_attempts (
    id              TEXT NOT NULL PRIMARY KEY,
    rule_id         TEXT NOT NULL REFERENCES alert_rules (id) ON DELETE CASCADE,
    rule_name       TEXT NOT NULL,
    firing_id       TEXT NOT NULL,
    kind            TEXT NOT NULL,
    url             TEXT NOT NULL,
    http_method     TEXT NOT NULL,
    attempt_number  INTEGER NOT NULL,
    ok              INTEGER NOT NULL,
    response_status INTEGER NOT NULL,
    error           TEXT NOT NULL,
    duration_us     INTEGER NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX alert_webhook_attempts_time ON alert_webhook_attempts (created_at DESC, id);
CREATE INDEX alert_webhook_attempts_rule ON alert_webhook_attempts (rule_id, created_at DESC, id);
CREATE INDEX alert_webhook_attempts_firing ON alert_webhook_attempts (firing_id, created_at DESC, id) WHERE firing_id > '';

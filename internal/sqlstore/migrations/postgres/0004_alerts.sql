-- Times are microseconds since the Unix epoch, UTC; 0 and '' mean unknown, null or none.
-- updated_at also tells the versions of a rule apart: it grows with every change by a client, and only with that.
-- last_fired_at is the stamp that suppresses the rule for one window. headers is a JSON object.
CREATE TABLE alert_rules (
    id              TEXT COLLATE "C" PRIMARY KEY,
    name            TEXT NOT NULL,
    enabled         INTEGER NOT NULL,
    metric          TEXT NOT NULL,
    threshold_value DOUBLE PRECISION NOT NULL,
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
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    last_fired_at   BIGINT NOT NULL
);
CREATE INDEX alert_rules_list ON alert_rules (created_at DESC, id);

-- What the last tick found out about each rule. Every tick writes most rows, so they are kept apart from the rules.
CREATE TABLE alert_rule_status (
    rule_id      TEXT COLLATE "C" PRIMARY KEY REFERENCES alert_rules (id) ON DELETE CASCADE,
    value        DOUBLE PRECISION,
    samples      BIGINT NOT NULL,
    reason       TEXT NOT NULL,
    evaluated_at BIGINT NOT NULL
) WITH (fillfactor = 50);

-- Firings with the state of their delivery. payload is the exact body of every attempt, sample_session_ids a JSON array.
-- next_attempt_at is 0 unless the delivery is pending; a claim moves it ahead by a lease.
CREATE TABLE alert_firings (
    id                 TEXT COLLATE "C" PRIMARY KEY,
    rule_id            TEXT COLLATE "C" NOT NULL REFERENCES alert_rules (id) ON DELETE CASCADE,
    window_start       BIGINT NOT NULL,
    window_end         BIGINT NOT NULL,
    matched_count      BIGINT NOT NULL,
    total_count        BIGINT,
    observed_value     DOUBLE PRECISION NOT NULL,
    sample_session_ids TEXT NOT NULL,
    payload            BYTEA NOT NULL,
    status             TEXT NOT NULL,
    attempt_count      INTEGER NOT NULL,
    attempt_base       INTEGER NOT NULL,
    next_attempt_at    BIGINT NOT NULL,
    last_attempt_at    BIGINT NOT NULL,
    response_status    INTEGER NOT NULL,
    last_error         TEXT NOT NULL,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL
);
CREATE INDEX alert_firings_rule ON alert_firings (rule_id, created_at DESC, id);
CREATE INDEX alert_firings_due ON alert_firings (next_attempt_at, id) WHERE status = 'pending';

-- Every delivery attempt; firing_id is '' for a test. Firings go only with their rule, and so do attempts.
CREATE TABLE alert_webhook_attempts (
    id              TEXT COLLATE "C" PRIMARY KEY,
    rule_id         TEXT COLLATE "C" NOT NULL REFERENCES alert_rules (id) ON DELETE CASCADE,
    rule_name       TEXT NOT NULL,
    firing_id       TEXT COLLATE "C" NOT NULL,
    kind            TEXT NOT NULL,
    url             TEXT NOT NULL,
    http_method     TEXT NOT NULL,
    attempt_number  INTEGER NOT NULL,
    ok              INTEGER NOT NULL,
    response_status INTEGER NOT NULL,
    error           TEXT NOT NULL,
    duration_us     BIGINT NOT NULL,
    created_at      BIGINT NOT NULL
);
CREATE INDEX alert_webhook_attempts_time ON alert_webhook_attempts (created_at DESC, id);
CREATE INDEX alert_webhook_attempts_rule ON alert_webhook_attempts (rule_id, created_at DESC, id);
CREATE INDEX alert_webhook_attempts_firing ON alert_webhook_attempts (firing_id, created_at DESC, id) WHERE firing_id > '';

-- For people who query by hand.
CREATE VIEW alert_rules_readable AS
SELECT r.id, r.name, r.enabled, r.metric, r.threshold_value, r.window_minutes, r.min_samples, r.agent_id, r.account_id, r.judge_name,
       r.eval_source, r.webhook_url, r.http_method, to_timestamp(NULLIF(r.last_fired_at, 0) / 1e6) AS last_fired_at,
       s.value AS last_value, s.samples AS last_samples, s.reason AS last_reason,
       to_timestamp(NULLIF(s.evaluated_at, 0) / 1e6) AS last_evaluated_at, to_timestamp(r.created_at / 1e6) AS created_at,
       to_timestamp(r.updated_at / 1e6) AS updated_at
FROM alert_rules r LEFT JOIN alert_rule_status s ON s.rule_id = r.id;
CREATE VIEW alert_firings_readable AS
SELECT id, rule_id, to_timestamp(window_start / 1e6) AS window_start, to_timestamp(window_end / 1e6) AS window_end, matched_count,
       total_count, observed_value, sample_session_ids, convert_from(payload, 'UTF8') AS payload, status, attempt_count,
       to_timestamp(NULLIF(next_attempt_at, 0) / 1e6) AS next_attempt_at, to_timestamp(NULLIF(last_attempt_at, 0) / 1e6) AS last_attempt_at,
       response_status, last_error, to_timestamp(created_at / 1e6) AS created_at
FROM alert_firings;
CREATE VIEW alert_webhook_attempts_readable AS
SELECT id, rule_id, rule_name, firing_id, kind, url, http_method, attempt_number, ok, response_status, error, duration_us / 1e3 AS duration_ms,
       to_timestamp(created_at / 1e6) AS created_at
FROM alert_webhook_attempts;

package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/webhook"
)

// attemptColumns are all columns of alert_webhook_attempts in the order of attemptRow and scanAttempt.
var attemptColumns = strings.Fields(`id rule_id rule_name firing_id kind url http_method attempt_number ok response_status error
	duration_us created_at`)

func attemptRow(a *webhook.Attempt) []any {
	return []any{a.ID, a.RuleID, a.RuleName, a.FiringID, string(a.Kind), a.URL, a.Method, a.Number, bit(a.OK), a.ResponseStatus, a.Error,
		a.Duration.Microseconds(), micros(a.CreatedAt)}
}

func scanAttempt(r *sql.Rows, a *webhook.Attempt) error {
	var ok int
	var duration, created int64
	err := r.Scan(&a.ID, &a.RuleID, &a.RuleName, &a.FiringID, &a.Kind, &a.URL, &a.Method, &a.Number, &ok, &a.ResponseStatus, &a.Error,
		&duration, &created)
	a.OK, a.Duration, a.CreatedAt = ok != 0, time.Duration(duration)*time.Microsecond, fromMicros(created)
	return err
}

const (
	candidates = `SELECT f.id, r.webhook_url FROM alert_firings f JOIN alert_rules r ON r.id = f.rule_id
		WHERE f.status = 'pending' AND f.next_attempt_at <= $1 ORDER BY f.next_attempt_at, f.id`
	nextDue     = `SELECT coalesce(min(next_attempt_at), 0) FROM alert_firings WHERE status = 'pending' AND next_attempt_at > $1`
	attemptSums = `SELECT g.start, g.rule_id, r.name, g.n, g.accepted, g.took FROM (
		SELECT created_at - created_at % $2 AS start, rule_id, count(*) AS n, sum(ok) AS accepted, CAST(sum(duration_us) AS BIGINT) AS took
		FROM alert_webhook_attempts WHERE created_at >= $1 GROUP BY 1, 2) AS g JOIN alert_rules r ON r.id = g.rule_id ORDER BY g.start, g.rule_id`
)

// ClaimDue implements webhook.Store. Candidates are read without a lock; that a candidate is still free is decided by
// the update that claims it.
func (a Alerts) ClaimDue(ctx context.Context, now, until time.Time, take func(url string) bool) ([]webhook.Delivery, error) {
	rows, err := a.s.r.QueryContext(ctx, candidates, micros(now))
	if err != nil {
		return nil, a.s.fail(err)
	}
	var wanted []any
	err = each(rows, func(r *sql.Rows) error {
		var id, url string
		if err := r.Scan(&id, &url); err != nil {
			return err
		}
		if take(url) {
			wanted = append(wanted, id)
		}
		return nil
	})
	if err != nil || len(wanted) == 0 {
		return nil, a.s.fail(err)
	}
	var out []webhook.Delivery
	err = a.s.inTx(ctx, func(tx *sql.Tx) error {
		out = nil
		for ids := range slices.Chunk(wanted, maxClaimed) {
			claimed, err := a.claim(ctx, tx, ids, now, until)
			if err != nil {
				return err
			}
			out = append(out, claimed...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// maxClaimed bounds the ids that one statement names.
const maxClaimed = 512

// claim takes those of the firings that nobody has taken meanwhile. Firings that another transaction holds at this very
// moment are left out: it claims them itself, or they will be due a moment later still.
func (a Alerts) claim(ctx context.Context, tx *sql.Tx, ids []any, now, until time.Time) ([]webhook.Delivery, error) {
	args := append([]any{micros(now), micros(until)}, ids...)
	rows, err := tx.QueryContext(ctx, `UPDATE alert_firings SET next_attempt_at = $2, updated_at = $1 WHERE id IN (SELECT id FROM alert_firings
		WHERE id IN (`+placeholders(3, len(ids))+`) AND status = 'pending' AND next_attempt_at <= $1 ORDER BY id`+a.s.d.takeRows+`) RETURNING id`, args...)
	if err != nil {
		return nil, err
	}
	var won []any
	err = each(rows, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		won = append(won, id)
		return err
	})
	if err != nil || len(won) == 0 {
		return nil, err
	}
	rows, err = tx.QueryContext(ctx, `SELECT f.id, f.rule_id, r.name, f.payload, r.webhook_url, r.http_method, r.secret, r.headers,
		f.attempt_count, f.attempt_base FROM alert_firings f JOIN alert_rules r ON r.id = f.rule_id
		WHERE f.id IN (`+placeholders(1, len(won))+`)`, won...)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]webhook.Delivery, len(won))
	err = each(rows, func(r *sql.Rows) error {
		d := webhook.Delivery{Lease: fromMicros(micros(until))}
		var headers string
		if err := r.Scan(&d.FiringID, &d.RuleID, &d.RuleName, &d.Body, &d.Target.URL, &d.Target.Method, &d.Target.Secret, &headers,
			&d.Attempts, &d.Base); err != nil {
			return err
		}
		var err error
		d.Target.Headers, err = unpackHeaders(headers)
		byID[d.FiringID] = d
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]webhook.Delivery, 0, len(byID))
	for _, id := range ids { // earliest first, as they came
		if d, ok := byID[id.(string)]; ok {
			out = append(out, d)
		}
	}
	return out, nil
}

// NextDue implements webhook.Store.
func (a Alerts) NextDue(ctx context.Context, after time.Time) (time.Time, error) {
	var next int64
	err := a.s.r.QueryRowContext(ctx, nextDue, micros(after)).Scan(&next)
	return fromMicros(next), a.s.fail(err)
}

// deliveryState is what Record has to know of a firing and what it makes of it.
type deliveryState struct {
	status  webhook.Status
	next    int64 // µs
	count   int
	changed []any // the row to write, nil when no outcome held its lease
}

// Record implements webhook.Store. Attempts that are recorded already stay as they are, so that an answer which got lost
// on the way can be followed by the same call again.
func (a Alerts) Record(ctx context.Context, outcomes []webhook.Outcome) ([]bool, error) {
	var held []bool
	err := a.s.inTx(ctx, func(tx *sql.Tx) error {
		var rules, firings []any
		for _, o := range outcomes {
			rules, firings = append(rules, o.Attempt.RuleID), append(firings, o.Attempt.FiringID)
		}
		// First the rules, then their firings: whoever deletes a rule takes the same way.
		if err := a.keepRules(ctx, tx, rules); err != nil {
			return err
		}
		states, err := a.lockFirings(ctx, tx, firings)
		if err != nil {
			return err
		}
		held = make([]bool, len(outcomes))
		var attempts [][]any
		for i, o := range outcomes {
			st := states[o.Attempt.FiringID]
			if st == nil {
				continue // deleted meanwhile
			}
			attempts = append(attempts, attemptRow(&o.Attempt))
			if held[i] = st.status == webhook.Pending && st.next == micros(o.Lease); held[i] {
				st.status, st.next = o.Status, micros(o.Next)
				st.count++
				st.changed = []any{o.Attempt.FiringID, string(o.Status), st.next, st.count, micros(o.Attempt.CreatedAt), o.Attempt.ResponseStatus,
					o.Attempt.Error, micros(o.At)}
			}
		}
		if err := a.s.insertRows(ctx, tx, "alert_webhook_attempts", attemptColumns, "ON CONFLICT (id) DO NOTHING", attempts, nil); err != nil {
			return err
		}
		var changed [][]any
		for _, st := range states {
			if st.changed != nil {
				changed = append(changed, st.changed)
			}
		}
		return a.s.withValues(ctx, tx, "firing_id TEXT, status TEXT, next_at BIGINT, n BIGINT, last_at BIGINT, response BIGINT, error TEXT, at BIGINT", changed,
			`UPDATE alert_firings SET status = v.status, next_attempt_at = v.next_at, attempt_count = v.n, last_attempt_at = v.last_at,
			response_status = v.response, last_error = v.error, updated_at = v.at FROM v WHERE alert_firings.id = v.firing_id`, nil)
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// keepRules keeps rules from being deleted until the transaction ends.
func (a Alerts) keepRules(ctx context.Context, tx *sql.Tx, ids []any) error {
	if a.s.d.keepRows == "" || len(ids) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `SELECT id FROM alert_rules WHERE id IN (`+placeholders(1, len(ids))+`) ORDER BY id`+a.s.d.keepRows, ids...)
	return err
}

// lockFirings reads the state of those firings that are there and keeps it until the transaction ends.
func (a Alerts) lockFirings(ctx context.Context, tx *sql.Tx, ids []any) (map[string]*deliveryState, error) {
	states := make(map[string]*deliveryState, len(ids))
	if len(ids) == 0 {
		return states, nil
	}
	rows, err := tx.QueryContext(ctx, `SELECT id, status, next_attempt_at, attempt_count FROM alert_firings WHERE id IN (`+
		placeholders(1, len(ids))+`) ORDER BY id`+a.s.d.lockRows, ids...)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r *sql.Rows) error {
		var id string
		st := &deliveryState{}
		err := r.Scan(&id, &st.status, &st.next, &st.count)
		states[id] = st
		return err
	})
	return states, err
}

// RecordAttempt implements webhook.Store. NotFound when the rule was deleted meanwhile.
func (a Alerts) RecordAttempt(ctx context.Context, at webhook.Attempt) error {
	return a.s.inTx(ctx, func(tx *sql.Tx) error {
		var id string
		err := tx.QueryRowContext(ctx, `SELECT id FROM alert_rules WHERE id = $1`+a.s.d.keepRows, at.RuleID).Scan(&id)
		if err == sql.ErrNoRows {
			return noSuchRule()
		}
		if err != nil {
			return err
		}
		return a.s.insertRows(ctx, tx, "alert_webhook_attempts", attemptColumns, "ON CONFLICT (id) DO NOTHING", [][]any{attemptRow(&at)}, nil)
	})
}

// Attempts implements alert.Store.
func (a Alerts) Attempts(ctx context.Context, f alert.AttemptFilter, p alert.Page) ([]webhook.Attempt, int, error) {
	w := &where{}
	if f.RuleID != "" {
		w.add("rule_id = %s", f.RuleID)
	}
	if f.FiringID != "" {
		w.add("firing_id = %s", f.FiringID)
		w.conds = append(w.conds, "firing_id > ''") // as the index says
	}
	if f.OK != nil {
		w.add("ok = %s", bit(*f.OK))
	}
	if f.Kind != "" {
		w.add("kind = %s", string(f.Kind))
	}
	return listed(ctx, a.s, "SELECT "+strings.Join(attemptColumns, ", ")+" FROM alert_webhook_attempts", "alert_webhook_attempts", w,
		"created_at DESC, id", p, scanAttempt)
}

// AttemptStats implements alert.Store, in one pass over the attempts of the range.
func (a Alerts) AttemptStats(ctx context.Context, from time.Time, bucket time.Duration) (alert.AttemptStats, error) {
	rows, err := a.s.r.QueryContext(ctx, attemptSums, micros(from), bucket.Microseconds())
	if err != nil {
		return alert.AttemptStats{}, a.s.fail(err)
	}
	var out alert.AttemptStats
	byRule := map[string]*alert.RuleAttempts{}
	var took int64
	err = each(rows, func(r *sql.Rows) error {
		var start, us int64
		var id, name string
		var n alert.AttemptCount
		if err := r.Scan(&start, &id, &name, &n.Attempts, &n.Accepted, &us); err != nil {
			return err
		}
		took += us
		add(&out.AttemptCount, n)
		if last := len(out.Buckets) - 1; last < 0 || micros(out.Buckets[last].Start) != start {
			out.Buckets = append(out.Buckets, alert.BucketAttempts{Start: fromMicros(start)})
		}
		add(&out.Buckets[len(out.Buckets)-1].AttemptCount, n)
		if byRule[id] == nil {
			byRule[id] = &alert.RuleAttempts{RuleID: id, RuleName: name}
		}
		add(&byRule[id].AttemptCount, n)
		return nil
	})
	if err != nil {
		return alert.AttemptStats{}, a.s.fail(err)
	}
	if out.Attempts > 0 {
		out.AvgDuration = time.Duration(took/int64(out.Attempts)) * time.Microsecond
	}
	for _, r := range byRule {
		out.Rules = append(out.Rules, *r)
	}
	slices.SortFunc(out.Rules, func(a, b alert.RuleAttempts) int {
		if a.Attempts != b.Attempts {
			return b.Attempts - a.Attempts
		}
		return strings.Compare(a.RuleID, b.RuleID)
	})
	return out, nil
}

func add(to *alert.AttemptCount, n alert.AttemptCount) {
	to.Attempts += n.Attempts
	to.Accepted += n.Accepted
}

package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/errs"
	"sidetone/internal/webhook"
)

// firingColumns are all columns of alert_firings in the order of firingRow and scanFiring.
var firingColumns = strings.Fields(`id rule_id window_start window_end matched_count total_count observed_value sample_session_ids payload
	status attempt_count attempt_base next_attempt_at last_attempt_at response_status last_error created_at updated_at`)

var firingSelect = "SELECT " + strings.Join(firingColumns, ", ") + " FROM alert_firings"

func firingRow(f *alert.Firing) ([]any, error) {
	samples := f.SampleSessionIDs
	if samples == nil {
		samples = []string{}
	}
	ids, err := json.Marshal(samples)
	return []any{f.ID, f.RuleID, micros(f.WindowStart), micros(f.WindowEnd), f.MatchedCount, nullInt(f.TotalCount), f.ObservedValue,
		string(ids), f.Payload, string(f.Status), f.AttemptCount, f.AttemptBase, micros(f.NextAttemptAt), micros(f.LastAttemptAt),
		f.ResponseStatus, f.LastError, micros(f.CreatedAt), micros(f.UpdatedAt)}, err
}

func scanFiring(r *sql.Rows, f *alert.Firing) error {
	var start, end, next, last, created, updated int64
	var samples string
	err := r.Scan(&f.ID, &f.RuleID, &start, &end, &f.MatchedCount, &f.TotalCount, &f.ObservedValue, &samples, &f.Payload, &f.Status,
		&f.AttemptCount, &f.AttemptBase, &next, &last, &f.ResponseStatus, &f.LastError, &created, &updated)
	if err != nil {
		return err
	}
	f.WindowStart, f.WindowEnd, f.NextAttemptAt = fromMicros(start), fromMicros(end), fromMicros(next)
	f.LastAttemptAt, f.CreatedAt, f.UpdatedAt = fromMicros(last), fromMicros(created), fromMicros(updated)
	if err := json.Unmarshal([]byte(samples), &f.SampleSessionIDs); err != nil {
		return fmt.Errorf("the stored sample sessions of a firing are damaged: %w", err)
	}
	return nil
}

// Fire implements alert.SweepStore.
func (a Alerts) Fire(ctx context.Context, fires []alert.Fire, now time.Time) ([]bool, error) {
	versions := make([][]any, len(fires))
	rows := make([][]any, len(fires))
	for i, f := range fires {
		var err error
		versions[i] = []any{f.Rule.ID, micros(f.Rule.UpdatedAt)}
		if rows[i], err = firingRow(&f.Firing); err != nil {
			return nil, a.s.fail(err)
		}
	}
	var won []bool
	err := a.s.inTx(ctx, func(tx *sql.Tx) error {
		// Two sweepers would lock the rules of a statement in different orders and wait for each other.
		if err := a.s.lock(ctx, tx, []int64{lockKey("alert", "fire")}); err != nil {
			return err
		}
		stamped := make(map[string]bool, len(fires))
		err := a.s.withValues(ctx, tx, "rule_id TEXT, version BIGINT", versions,
			`UPDATE alert_rules SET last_fired_at = $1 FROM v WHERE alert_rules.id = v.rule_id AND alert_rules.updated_at = v.version
			AND enabled = 1 AND (last_fired_at = 0 OR last_fired_at + CAST(window_minutes AS BIGINT) * $2 <= $1) RETURNING alert_rules.id`,
			func(r *sql.Rows) error {
				var id string
				err := r.Scan(&id)
				stamped[id] = true
				return err
			}, micros(now), time.Minute.Microseconds())
		if err != nil {
			return err
		}
		won = make([]bool, len(fires))
		var winners [][]any
		for i, f := range fires {
			if won[i] = stamped[f.Rule.ID]; won[i] {
				winners = append(winners, rows[i])
				stamped[f.Rule.ID] = false // one firing per stamp
			}
		}
		return a.s.insertRows(ctx, tx, "alert_firings", firingColumns, "", winners, nil)
	})
	if err != nil {
		return nil, err
	}
	return won, nil
}

// Firings implements alert.Store.
func (a Alerts) Firings(ctx context.Context, ruleID string, p alert.Page) ([]alert.Firing, int, error) {
	if _, err := a.Rule(ctx, ruleID); err != nil {
		return nil, 0, err
	}
	w := &where{}
	w.add("rule_id = %s", ruleID)
	return listed(ctx, a.s, firingSelect, "alert_firings", w, "created_at DESC, id", p, scanFiring)
}

// Redeliver implements alert.Store.
func (a Alerts) Redeliver(ctx context.Context, firingID string, now time.Time) (alert.Firing, error) {
	var f alert.Firing
	err := a.s.inTx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, firingSelect+" WHERE id = $1"+a.s.d.lockRows, firingID)
		if err != nil {
			return err
		}
		f = alert.Firing{}
		if err := each(rows, func(r *sql.Rows) error { return scanFiring(r, &f) }); err != nil {
			return err
		}
		if f.ID == "" {
			return errs.New(errs.NotFound, "no such firing")
		}
		if f.Status == webhook.Pending {
			return nil
		}
		at := fromMicros(micros(now))
		f.Status, f.NextAttemptAt, f.AttemptBase, f.UpdatedAt = webhook.Pending, at, f.AttemptCount, at
		_, err = tx.ExecContext(ctx, `UPDATE alert_firings SET status = $2, next_attempt_at = $3, attempt_base = $4, updated_at = $3 WHERE id = $1`,
			f.ID, string(f.Status), micros(now), f.AttemptBase)
		return err
	})
	if err != nil {
		return alert.Firing{}, err
	}
	return f, nil
}

// Queue implements alert.Store. A claimed delivery is due again only when its lease ends.
func (a Alerts) Queue(ctx context.Context, now time.Time) (alert.Queue, error) {
	var q alert.Queue
	var oldest int64
	err := a.s.r.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE attempt_count > attempt_base),
		coalesce(min(next_attempt_at) FILTER (WHERE next_attempt_at <= $1), 0) FROM alert_firings WHERE status = 'pending'`, micros(now)).
		Scan(&q.Pending, &q.Retrying, &oldest)
	q.OldestDue = fromMicros(oldest)
	return q, a.s.fail(err)
}

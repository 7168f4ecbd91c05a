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
)

// Alerts is the store as the domains of alerting and of webhooks know it.
type Alerts struct{ s *Store }

// Alerts gives the part of the store that keeps alert rules, firings and delivery attempts, and that reads what rules
// count.
func (s *Store) Alerts() Alerts { return Alerts{s} }

var _ alert.Store = Alerts{}

// ruleColumns are the columns of alert_rules in the order of ruleRow; a client can set those from setColumns on, but for the
// last one, the stamp.
var ruleColumns = strings.Fields(`id created_at updated_at name enabled metric threshold_value window_minutes min_samples agent_id account_id
	judge_name eval_source webhook_url http_method secret headers last_fired_at`)

const setColumns = 2

// ruleSelect reads rules with their status, in the order of scanRule.
var ruleSelect = "SELECT r." + strings.Join(ruleColumns, ", r.") + `, s.value, coalesce(s.samples, 0), coalesce(s.reason, ''),
	coalesce(s.evaluated_at, 0) FROM alert_rules r LEFT JOIN alert_rule_status s ON s.rule_id = r.id`

// updateRule writes what PATCH may change: $1 is the id.
var updateRule = func() string {
	var set []string
	for i, c := range ruleColumns[setColumns : len(ruleColumns)-1] {
		set = append(set, fmt.Sprintf("%s = $%d", c, i+2))
	}
	return "UPDATE alert_rules SET " + strings.Join(set, ", ") + " WHERE id = $1"
}()

func ruleRow(r *alert.Rule) ([]any, error) {
	headers := ""
	if len(r.Headers) > 0 {
		b, err := json.Marshal(r.Headers)
		if err != nil {
			return nil, err
		}
		headers = string(b)
	}
	return []any{r.ID, micros(r.CreatedAt), micros(r.UpdatedAt), r.Name, bit(r.Enabled), string(r.Metric), r.Threshold, r.WindowMinutes,
		r.MinSamples, r.AgentID, r.AccountID, r.JudgeName, r.EvalSource, r.WebhookURL, r.HTTPMethod, r.Secret, headers,
		micros(r.LastFiredAt)}, nil
}

func scanRule(rows *sql.Rows, r *alert.Rule) error {
	var created, updated, fired, evaluated int64
	var enabled int
	var headers string
	err := rows.Scan(&r.ID, &created, &updated, &r.Name, &enabled, &r.Metric, &r.Threshold, &r.WindowMinutes, &r.MinSamples,
		&r.AgentID, &r.AccountID, &r.JudgeName, &r.EvalSource, &r.WebhookURL, &r.HTTPMethod, &r.Secret, &headers, &fired,
		&r.Status.Value, &r.Status.Samples, &r.Status.Reason, &evaluated)
	if err != nil {
		return err
	}
	r.CreatedAt, r.UpdatedAt, r.LastFiredAt = fromMicros(created), fromMicros(updated), fromMicros(fired)
	r.Enabled, r.Status.RuleID, r.Status.EvaluatedAt = enabled != 0, r.ID, fromMicros(evaluated)
	r.Headers, err = unpackHeaders(headers)
	return err
}

func unpackHeaders(text string) (headers map[string]string, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &headers); err != nil {
		return nil, fmt.Errorf("the stored headers of a rule are damaged: %w", err)
	}
	return headers, nil
}

// CreateRule implements alert.Store.
func (a Alerts) CreateRule(ctx context.Context, r alert.Rule) error {
	row, err := ruleRow(&r)
	if err != nil {
		return a.s.fail(err)
	}
	return a.s.inTx(ctx, func(tx *sql.Tx) error {
		if err := a.s.insertRows(ctx, tx, "alert_rules", ruleColumns, "", [][]any{row}, nil); err != nil {
			return err
		}
		// The row of the status is there from the start, so that ticks only ever update it.
		return a.s.insertRows(ctx, tx, "alert_rule_status", []string{"rule_id", "value", "samples", "reason", "evaluated_at"}, "",
			[][]any{{r.ID, nullFloat(r.Status.Value), r.Status.Samples, string(r.Status.Reason), micros(r.Status.EvaluatedAt)}}, nil)
	})
}

// Rule implements alert.Store.
func (a Alerts) Rule(ctx context.Context, id string) (alert.Rule, error) {
	rows, err := a.s.r.QueryContext(ctx, ruleSelect+" WHERE r.id = $1", id)
	if err != nil {
		return alert.Rule{}, a.s.fail(err)
	}
	r, err := oneRule(rows)
	return r, a.s.fail(err)
}

func oneRule(rows *sql.Rows) (alert.Rule, error) {
	var r alert.Rule
	if err := each(rows, func(rows *sql.Rows) error { return scanRule(rows, &r) }); err != nil {
		return alert.Rule{}, err
	}
	if r.ID == "" {
		return r, noSuchRule()
	}
	return r, nil
}

func noSuchRule() error { return errs.New(errs.NotFound, "no such alert rule") }

// Rules implements alert.Store.
func (a Alerts) Rules(ctx context.Context, f alert.RuleFilter, p alert.Page) ([]alert.Rule, int, error) {
	w := &where{}
	if f.AgentID != "" {
		w.add("r.agent_id = %s", f.AgentID)
	}
	if f.AccountID != "" {
		w.add("r.account_id = %s", f.AccountID)
	}
	if f.Enabled != nil {
		w.add("r.enabled = %s", bit(*f.Enabled))
	}
	if f.Metric != "" {
		w.add("r.metric = %s", string(f.Metric))
	}
	return listed(ctx, a.s, ruleSelect, "alert_rules r", w, "r.created_at DESC, r.id", p, scanRule)
}

// listed reads one page of a list and counts all of it.
func listed[T any](ctx context.Context, s *Store, sel, table string, w *where, order string, p alert.Page,
	scan func(*sql.Rows, *T) error) (out []T, total int, err error) {
	if total, err = s.count(ctx, "SELECT count(*) FROM "+table+w.String(), w.args); err != nil {
		return nil, 0, s.fail(err)
	}
	if p.Offset >= total {
		return nil, total, nil
	}
	query := sel + w.String() + " ORDER BY " + order
	rows, err := s.r.QueryContext(ctx, query+" LIMIT "+w.arg(p.Limit)+" OFFSET "+w.arg(p.Offset), w.args...)
	if err != nil {
		return nil, 0, s.fail(err)
	}
	err = each(rows, func(r *sql.Rows) error {
		var v T
		err := scan(r, &v)
		out = append(out, v)
		return err
	})
	if err != nil {
		return nil, 0, s.fail(err)
	}
	return out, total, nil
}

// UpdateRule implements alert.Store. The stored UpdatedAt is later than the one before even when edit's is not: it tells
// the versions of a rule apart.
func (a Alerts) UpdateRule(ctx context.Context, id string, edit func(alert.Rule) (alert.Rule, error)) (alert.Rule, error) {
	var updated alert.Rule
	var refused error
	err := a.s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `SELECT id FROM alert_rules WHERE id = $1`+a.s.d.lockRows, id); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, ruleSelect+" WHERE r.id = $1", id)
		if err != nil {
			return err
		}
		stored, err := oneRule(rows)
		if err != nil {
			return err
		}
		if updated, refused = edit(stored); refused != nil {
			return refused
		}
		updated.ID, updated.CreatedAt, updated.LastFiredAt, updated.Status = stored.ID, stored.CreatedAt, stored.LastFiredAt, stored.Status
		if least := stored.UpdatedAt.Add(time.Microsecond); updated.UpdatedAt.Before(least) {
			updated.UpdatedAt = least
		}
		row, err := ruleRow(&updated)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, updateRule, append([]any{id}, row[setColumns:len(row)-1]...)...)
		return err
	})
	if refused != nil {
		return alert.Rule{}, refused
	}
	if err != nil {
		return alert.Rule{}, err
	}
	return updated, nil
}

// DeleteRule implements alert.Store. Status, firings and attempts go by their foreign keys.
func (a Alerts) DeleteRule(ctx context.Context, id string) error {
	return a.s.inTx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM alert_rules WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return orElse(err, noSuchRule())
		}
		return nil
	})
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// SweepRules implements alert.SweepStore. It leaves out what only deliveries need, so that a damaged header costs no rule.
func (a Alerts) SweepRules(ctx context.Context) ([]alert.Rule, error) {
	rows, err := a.s.r.QueryContext(ctx, `SELECT r.id, r.name, r.enabled, r.metric, r.threshold_value, r.window_minutes, r.min_samples,
		r.agent_id, r.account_id, r.judge_name, r.eval_source, r.created_at, r.updated_at, r.last_fired_at, s.value,
		coalesce(s.samples, 0), coalesce(s.reason, ''), coalesce(s.evaluated_at, 0)
		FROM alert_rules r LEFT JOIN alert_rule_status s ON s.rule_id = r.id ORDER BY r.id`)
	if err != nil {
		return nil, a.s.fail(err)
	}
	var out []alert.Rule
	err = each(rows, func(rows *sql.Rows) error {
		var r alert.Rule
		var created, updated, fired, evaluated int64
		var enabled int
		err := rows.Scan(&r.ID, &r.Name, &enabled, &r.Metric, &r.Threshold, &r.WindowMinutes, &r.MinSamples, &r.AgentID, &r.AccountID,
			&r.JudgeName, &r.EvalSource, &created, &updated, &fired, &r.Status.Value, &r.Status.Samples, &r.Status.Reason, &evaluated)
		r.CreatedAt, r.UpdatedAt, r.LastFiredAt = fromMicros(created), fromMicros(updated), fromMicros(fired)
		r.Enabled, r.Status.RuleID, r.Status.EvaluatedAt = enabled != 0, r.ID, fromMicros(evaluated)
		out = append(out, r)
		return err
	})
	if err != nil {
		return nil, a.s.fail(err)
	}
	return out, nil
}

// SaveStatuses implements alert.SweepStore. The last writer wins: any tick's view is as good as another's.
func (a Alerts) SaveStatuses(ctx context.Context, statuses []alert.Status) error {
	rows := make([][]any, len(statuses))
	for i, st := range statuses {
		rows[i] = []any{st.RuleID, nullFloat(st.Value), st.Samples, string(st.Reason), micros(st.EvaluatedAt)}
	}
	return a.s.inTx(ctx, func(tx *sql.Tx) error {
		// Two sweepers would lock the rows of a statement in different orders and wait for each other.
		if err := a.s.lock(ctx, tx, []int64{lockKey("alert", "statuses")}); err != nil {
			return err
		}
		return a.s.withValues(ctx, tx, "rule_id TEXT, value DOUBLE PRECISION, samples BIGINT, reason TEXT, evaluated_at BIGINT", rows,
			`UPDATE alert_rule_status SET value = v.value, samples = v.samples, reason = v.reason, evaluated_at = v.evaluated_at
			FROM v WHERE alert_rule_status.rule_id = v.rule_id`, nil)
	})
}

// withValues runs a statement for rows that it finds in a table expression v, as often as the engine likes. columns are
// the names and types of v; the fixed arguments of the statement come first. returning, when not nil, is called for each
// row that the statement yields.
func (s *Store) withValues(ctx context.Context, tx *sql.Tx, columns string, rows [][]any, statement string, returning func(*sql.Rows) error,
	fixed ...any) error {
	query, size := "", 0
	for len(rows) > 0 {
		n := min(len(rows), s.d.rowsPerInsert)
		if n != size {
			query, size = valuesText(columns, len(fixed)+1, n)+statement, n
		}
		args := append([]any(nil), fixed...)
		for _, row := range rows[:n] {
			args = append(args, row...)
		}
		rows = rows[n:]
		if returning == nil {
			if _, err := s.exec(ctx, tx, query, args...); err != nil {
				return err
			}
			continue
		}
		got, err := s.query(ctx, tx, query, args...)
		if err != nil {
			return err
		}
		if err := each(got, returning); err != nil {
			return err
		}
	}
	return nil
}

// valuesText writes a table expression v of n rows with parameters from $first on. The casts tell PostgreSQL the types.
func valuesText(columns string, first, n int) string {
	var names, types []string
	for _, c := range strings.Split(columns, ", ") {
		name, kind, _ := strings.Cut(c, " ")
		names, types = append(names, name), append(types, kind)
	}
	rows := make([]string, n)
	for i := range rows {
		row := make([]string, len(types))
		for j, kind := range types {
			row[j] = fmt.Sprintf("CAST($%d AS %s)", first+i*len(types)+j, kind)
		}
		rows[i] = "(" + strings.Join(row, ", ") + ")"
	}
	return "WITH v (" + strings.Join(names, ", ") + ") AS (VALUES " + strings.Join(rows, ", ") + ") "
}

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"sidetone/internal/alert"
	"sidetone/internal/errs"
)

// Facts are read either by window, on the index of their time, or by mark, on the index of changes. A read by mark takes
// what carries a mark from since up to limit, both as of before the read: what is marked later comes with the next read,
// which starts no later than limit. Rows and deletions are read by one statement, so that they belong to one snapshot.

// marks are where a read ends and where the next one has to start.
type marks struct {
	next  alert.Mark
	limit int64
}

func (a Alerts) marks(ctx context.Context, q alert.FactQuery) (m marks, err error) {
	d := a.s.d
	if err := a.s.r.QueryRowContext(ctx, "SELECT ("+d.changeHorizon+"), ("+d.changeLimit+")").Scan(&m.next, &m.limit); err != nil {
		return marks{}, err
	}
	if int64(q.Since) > m.limit {
		return marks{}, errs.New(errs.Unavailable, "the database is older than at the last read: was a backup restored?")
	}
	return m, nil
}

// readFacts runs the query of a window or of a range of marks, whichever q asks for, and calls scan for each row.
func (a Alerts) readFacts(ctx context.Context, q alert.FactQuery, window string, between []any, changes string,
	scan func(*sql.Rows) error) (alert.Mark, error) {
	m, err := a.marks(ctx, q)
	if err != nil {
		return 0, a.s.fail(err)
	}
	query, args := window, between
	if q.Since != 0 {
		query, args = changes, []any{int64(q.Since), m.limit}
	}
	rows, err := a.s.r.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, a.s.fail(err)
	}
	if err := each(rows, scan); err != nil {
		return 0, a.s.fail(err)
	}
	return m.next, nil
}

// changedBetween is the condition on rows that a read by mark takes.
const changedBetween = ` WHERE change >= $1 AND change < $2`

const (
	sessionFactColumns = `SELECT num, id, ended_at, agent_id, account_id, assistant_turns, interrupted_turns, perceived, ttft, ttfb, stt FROM sessions`
	sessionFactWindow  = sessionFactColumns + ` WHERE list_at > $1 AND list_at <= $2`
	sessionFactChanges = sessionFactColumns + changedBetween +
		` UNION ALL SELECT num, '', 0, '', '', 0, 0, '', '', '', '' FROM session_deletions` + changedBetween
)

// SessionFacts implements alert.FactStore.
func (a Alerts) SessionFacts(ctx context.Context, q alert.FactQuery, put func(alert.SessionFacts)) (alert.Mark, error) {
	var f alert.SessionFacts
	var packed [4]string
	lists := [4]*[]float64{&f.Perceived, &f.TTFT, &f.TTFB, &f.STT}
	until := min(q.Until, activeListAt-1) // sessions that go on have a list_at, but no window holds them
	return a.readFacts(ctx, q, sessionFactWindow, []any{q.After, until}, sessionFactChanges, func(r *sql.Rows) error {
		err := r.Scan(&f.Num, &f.SessionID, &f.EndedAt, &f.Agent, &f.Account, &f.AssistantTurns, &f.InterruptedTurns,
			&packed[0], &packed[1], &packed[2], &packed[3])
		if err != nil {
			return err
		}
		for i, list := range lists {
			if *list, err = appendSamples((*list)[:0], packed[i]); err != nil {
				return fmt.Errorf("session %s: %w", f.SessionID, err)
			}
		}
		put(f)
		return nil
	})
}

// A session that goes on counts nowhere yet, so a read by mark gives its verdicts and its outcome as none.
const (
	sessionVerdictColumns = `SELECT 0, num, CASE WHEN ended_at = 0 THEN '' ELSE verdicts END, agent_id, account_id FROM sessions`
	runVerdictColumns     = `SELECT 1, c.num, c.verdicts, r.agent_id, r.account_id FROM eval_cases c JOIN eval_runs r ON r.num = c.run_num`

	// verdict_at is the latest arrival of each row.
	verdictWindow = sessionVerdictColumns + ` WHERE verdict_at > $1 AND verdict_at > 0 AND ended_at <> 0
		UNION ALL ` + runVerdictColumns + ` WHERE c.verdict_at > $1 AND c.verdict_at > 0`
	verdictChanges = sessionVerdictColumns + changedBetween +
		` UNION ALL SELECT 0, num, '', '', '' FROM session_deletions` + changedBetween +
		` UNION ALL ` + runVerdictColumns + changedBetween +
		` UNION ALL SELECT 2, num, '', '', '' FROM eval_deletions` + changedBetween
)

// VerdictFacts implements alert.FactStore.
func (a Alerts) VerdictFacts(ctx context.Context, q alert.FactQuery, put func(alert.VerdictFacts)) (alert.Mark, error) {
	return a.readFacts(ctx, q, verdictWindow, []any{q.After}, verdictChanges, func(r *sql.Rows) error {
		var f alert.VerdictFacts
		var kind int
		var packed string
		if err := r.Scan(&kind, &f.Owner, &packed, &f.Agent, &f.Account); err != nil {
			return err
		}
		switch kind {
		case 0:
			f.Source = alert.SourceSessions
		case 1:
			f.Source = alert.SourceRuns
		default: // a deleted run
			f.Source = alert.SourceRuns
			f.Owner, f.LastOwner = caseRange(f.Owner)
		}
		any := false
		err := eachVerdict(packed, func(judge, verdict string, at int64) {
			if verdict == "" || q.Since == 0 && (at <= q.After || at > q.Until) {
				return
			}
			any = true
			f.At, f.Judge, f.Verdict = at, judge, verdict
			put(f)
		})
		if err != nil {
			return fmt.Errorf("%s %d: %w", f.Source, f.Owner, err)
		}
		if !any && q.Since != 0 {
			put(f)
		}
		return nil
	})
}

const (
	outcomeWindow = `SELECT num, outcome_at, outcome, agent_id, account_id FROM sessions
		WHERE outcome_at > $1 AND outcome_at <= $2 AND outcome_at > 0 AND outcome <> '' AND ended_at <> 0`
	outcomeChanges = `SELECT num, outcome_at, CASE WHEN outcome_at = 0 OR ended_at = 0 THEN '' ELSE outcome END, agent_id, account_id FROM sessions` +
		changedBetween + ` UNION ALL SELECT num, 0, '', '', '' FROM session_deletions` + changedBetween
)

// OutcomeFacts implements alert.FactStore.
func (a Alerts) OutcomeFacts(ctx context.Context, q alert.FactQuery, put func(alert.OutcomeFacts)) (alert.Mark, error) {
	var f alert.OutcomeFacts
	return a.readFacts(ctx, q, outcomeWindow, []any{q.After, q.Until}, outcomeChanges, func(r *sql.Rows) error {
		if err := r.Scan(&f.Num, &f.At, &f.Outcome, &f.Agent, &f.Account); err != nil {
			return err
		}
		put(f)
		return nil
	})
}

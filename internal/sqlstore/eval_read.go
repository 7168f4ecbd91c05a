package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/eval"
	"sidetone/internal/stat"
)

// Evals is the store as the domain of eval runs knows it.
type Evals struct{ s *Store }

// Evals gives the part of the store that keeps eval runs.
func (s *Store) Evals() Evals { return Evals{s} }

var _ eval.Store = Evals{}

// noObjects is an empty list as documents have it.
const noObjects = "[]"

// runSelect are the columns that scanRun reads.
var runSelect = "num, " + strings.Join(runColumns, ", ")

func scanRun(r *sql.Rows, num *int64, out *eval.Run) error {
	var started, finished, activity, created int64
	var ci string
	err := r.Scan(num, &out.ID, &out.Name, &out.AccountID, &out.AgentID, &out.AgentName, &out.Framework, &out.FrameworkVersion,
		&out.TestingFramework, &out.TestingFrameworkVersion, &started, &finished, &out.Status, &ci, &activity, &created,
		&out.Total, &out.Passed, &out.Failed, &out.Errored, &out.Skipped, &out.TTFTP50MS, &out.TTFTP95MS, &out.TTFTAvgMS,
		&out.TTFBP50MS, &out.TTFBP95MS, &out.TTFBAvgMS, &out.TurnCount, &out.ToolCallCount, &out.InterruptionCount,
		&out.AgentHandoffCount, &out.TTFTSampleCount, &out.PromptTokens, &out.CompletionTokens, &out.TotalTokens,
		&out.CachedPromptTokens, &out.EstimatedCostUSD)
	if err != nil {
		return err
	}
	out.StartedAt, out.FinishedAt = fromMicros(started), fromMicros(finished)
	out.LastActivityAt, out.CreatedAt = fromMicros(activity), fromMicros(created)
	if ci != "" {
		out.CI = json.RawMessage(ci)
	}
	if rate, ok := stat.Rate(out.Passed, out.Total-out.Skipped); ok {
		out.PassRate = &rate
	}
	return nil
}

// summarySelect are the columns that scanSummary reads, behind those that its caller asks for.
const summarySelect = `case_id, name, file, status, judge_failed, duration_ms, ttft, ttfb, turn_count, tool_call_count,
	interruption_count, agent_handoff_count, prompt_tokens, completion_tokens, total_tokens, cached_prompt_tokens, cost_usd`

func scanSummary(r *sql.Rows, c *eval.CaseSummary, before ...any) error {
	var failed int
	var ttft, ttfb string
	err := r.Scan(append(before, &c.ID, &c.Name, &c.File, &c.Status, &failed, &c.DurationMS, &ttft, &ttfb, &c.TurnCount,
		&c.ToolCallCount, &c.InterruptionCount, &c.AgentHandoffCount, &c.Tokens.Prompt, &c.Tokens.Completion, &c.Tokens.Total,
		&c.Tokens.Cached, &c.CostUSD)...)
	if err != nil {
		return err
	}
	c.JudgeFailed = failed != 0
	if c.TTFT, err = unpackSamples(ttft); err != nil {
		return err
	}
	c.TTFB, err = unpackSamples(ttfb)
	return err
}

// caseSelect are the columns of a case, aliased c, that scanCase reads; events is an expression for its events.
func caseSelect(events string) string {
	return "c.created_at, c.position, c.rank, c.started_at, c.finished_at, c.details, " + events + ", " + summarySelect
}

const (
	withEvents    = "(SELECT data FROM eval_events e WHERE e.num = c.num)"
	withoutEvents = "NULL"
)

// scanCase reads a case; without events, Events stays nil.
func scanCase(r *sql.Rows, c *eval.Case, events bool) error {
	var created, started, finished int64
	var details, data []byte
	err := scanSummary(r, &c.CaseSummary, &created, &c.Position, &c.Rank, &started, &finished, &details, &data)
	if err != nil {
		return err
	}
	c.CreatedAt, c.StartedAt, c.FinishedAt = fromMicros(created), fromMicros(started), fromMicros(finished)
	if details, err = decompress(details); err != nil {
		return err
	}
	if err := unpackDetails(details, c); err != nil || !events {
		return err
	}
	if data == nil {
		c.Events = json.RawMessage(noObjects)
		return nil
	}
	c.Events, err = decompress(data)
	return err
}

// packDetails joins what the page of a run shows beside the columns, exactly as it was sent: user input, judgments and
// failure, each behind its length.
func packDetails(c *eval.Case) []byte {
	b := make([]byte, 0, len(c.UserInput)+len(c.Judgments)+len(c.Failure)+3*binary.MaxVarintLen32)
	b = append(binary.AppendUvarint(b, uint64(len(c.UserInput))), c.UserInput...)
	b = append(binary.AppendUvarint(b, uint64(len(c.Judgments))), c.Judgments...)
	return append(binary.AppendUvarint(b, uint64(len(c.Failure))), c.Failure...)
}

func unpackDetails(b []byte, c *eval.Case) error {
	var parts [3][]byte
	for i := range parts {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return errors.New("the stored details of a case are damaged")
		}
		end := size + int(n)
		parts[i], b = b[size:end:end], b[end:]
	}
	c.UserInput = string(parts[0])
	c.Judgments = parts[1]
	if len(parts[2]) > 0 {
		c.Failure = parts[2]
	}
	return nil
}

func runWhere(f eval.Filter, cutoff time.Time) *where {
	w := &where{}
	w.anyOf("account_id", f.AccountIDs)
	w.anyOf("agent_id", f.AgentIDs)
	w.anyOf("framework", f.Frameworks)
	w.anyOf("testing_framework", f.TestingFrameworks)
	if !f.StartedFrom.IsZero() {
		w.add("started_at >= %s", micros(f.StartedFrom))
	}
	if !f.StartedTo.IsZero() {
		w.add("started_at <= %s", micros(f.StartedTo))
	}
	var any []string
	for _, status := range f.Statuses {
		cond := "status = " + w.arg(status)
		switch status {
		case eval.StatusCompleted:
			cond += fmt.Sprintf(" OR status IN ('%s', '%s') AND last_activity_at <= %s", eval.StatusQueued, eval.StatusRunning, w.arg(micros(cutoff)))
		case eval.StatusQueued, eval.StatusRunning:
			cond = "(" + cond + " AND last_activity_at > " + w.arg(micros(cutoff)) + ")"
		}
		any = append(any, cond)
	}
	if len(any) > 0 {
		w.conds = append(w.conds, "("+strings.Join(any, " OR ")+")")
	}
	return w
}

// countRuns counts what a list matches. A count that depends on the time is not worth remembering.
func (e Evals) countRuns(ctx context.Context, f eval.Filter, w *where) (n int, err error) {
	query := "SELECT count(*) FROM eval_runs" + w.String()
	if len(f.Statuses) == 0 {
		return e.s.count(ctx, query, w.args)
	}
	err = e.s.r.QueryRowContext(ctx, query, w.args...).Scan(&n)
	return n, err
}

// List implements eval.Store.
func (e Evals) List(ctx context.Context, f eval.Filter, p eval.Page, now time.Time) ([]eval.Run, int, error) {
	w := runWhere(f, eval.StaleCutoff(now))
	total, err := e.countRuns(ctx, f, w)
	if err != nil {
		return nil, 0, e.s.fail(err)
	}
	if p.Offset >= total {
		return nil, total, nil
	}
	// A deep page is reached from the nearer end: skipping costs as many index steps as rows.
	limit, offset, order, reversed := min(p.Limit, total-p.Offset), p.Offset, "started_at DESC, id", false
	if offset > total/2 {
		offset, order, reversed = total-p.Offset-limit, "started_at, id DESC", true
	}
	page := fmt.Sprintf("SELECT num FROM eval_runs%s ORDER BY %s LIMIT %s OFFSET %s", w, order, w.arg(limit), w.arg(offset))
	rows, err := e.s.r.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM eval_runs WHERE num IN (%s) ORDER BY %s", runSelect, page, order), w.args...)
	if err != nil {
		return nil, 0, e.s.fail(err)
	}
	out := make([]eval.Run, 0, limit)
	err = each(rows, func(r *sql.Rows) error {
		var num int64
		var run eval.Run
		err := scanRun(r, &num, &run)
		out = append(out, run)
		return err
	})
	if err != nil {
		return nil, 0, e.s.fail(err)
	}
	if reversed {
		slices.Reverse(out)
	}
	return out, total, nil
}

// find reads a run and its num.
func (e Evals) find(ctx context.Context, runID string) (int64, *eval.Run, error) {
	rows, err := e.s.r.QueryContext(ctx, "SELECT "+runSelect+" FROM eval_runs WHERE id = $1", runID)
	if err != nil {
		return 0, nil, e.s.fail(err)
	}
	var num int64
	var run eval.Run
	if err := each(rows, func(r *sql.Rows) error { return scanRun(r, &num, &run) }); err != nil {
		return 0, nil, e.s.fail(err)
	}
	if num == 0 {
		return 0, nil, errs.New(errs.NotFound, "there is no eval run with this id")
	}
	return num, &run, nil
}

// Get implements eval.Store.
func (e Evals) Get(ctx context.Context, runID string) (*eval.Run, error) {
	_, run, err := e.find(ctx, runID)
	return run, err
}

// Cases implements eval.Store.
func (e Evals) Cases(ctx context.Context, runID string, events bool) ([]eval.Case, error) {
	num, _, err := e.find(ctx, runID)
	if err != nil {
		return nil, err
	}
	source := withoutEvents
	if events {
		source = withEvents
	}
	first, last := caseRange(num)
	rows, err := e.s.r.QueryContext(ctx, "SELECT "+caseSelect(source)+" FROM eval_cases c WHERE num BETWEEN $1 AND $2", first, last)
	if err != nil {
		return nil, e.s.fail(err)
	}
	var out []eval.Case
	err = each(rows, func(r *sql.Rows) error {
		c := eval.Case{RunID: runID}
		err := scanCase(r, &c, events)
		out = append(out, c)
		return err
	})
	if err != nil {
		return nil, e.s.fail(err)
	}
	slices.SortFunc(out, func(a, b eval.Case) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// Summaries implements eval.Store.
func (e Evals) Summaries(ctx context.Context, runID string) ([]eval.CaseSummary, error) {
	num, _, err := e.find(ctx, runID)
	if err != nil {
		return nil, err
	}
	first, last := caseRange(num)
	rows, err := e.s.r.QueryContext(ctx, "SELECT "+summarySelect+" FROM eval_cases WHERE num BETWEEN $1 AND $2 ORDER BY created_at, position, case_id", first, last)
	if err != nil {
		return nil, e.s.fail(err)
	}
	var out []eval.CaseSummary
	err = each(rows, func(r *sql.Rows) error {
		var c eval.CaseSummary
		err := scanSummary(r, &c)
		out = append(out, c)
		return err
	})
	return out, e.s.fail(err)
}

// Case implements eval.Store.
func (e Evals) Case(ctx context.Context, runID, caseID string) (*eval.Case, error) {
	rows, err := e.s.r.QueryContext(ctx, "SELECT "+caseSelect(withEvents)+` FROM eval_cases c
		WHERE run_num = (SELECT num FROM eval_runs WHERE id = $1) AND case_id = $2`, runID, caseID)
	if err != nil {
		return nil, e.s.fail(err)
	}
	var out *eval.Case
	err = each(rows, func(r *sql.Rows) error {
		out = &eval.Case{RunID: runID}
		return scanCase(r, out, true)
	})
	if err != nil {
		return nil, e.s.fail(err)
	}
	if out == nil {
		return nil, errs.New(errs.NotFound, "there is no eval case with this id")
	}
	return out, nil
}

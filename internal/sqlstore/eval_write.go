package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/eval"
	"sidetone/internal/session"
)

const (
	// maxEvalBatch is how many posts one transaction of the group commit carries at most.
	maxEvalBatch = 64

	// aloneFrom is how many cases make a post big: it goes into a transaction of its own, because its flush to disk is
	// shared by cases enough, and because others should not wait for it. bigEvalTimeout bounds that transaction: 5,000
	// cases take half a second on the machine this was written on, and slower ones exist.
	aloneFrom      = 200
	bigEvalTimeout = 60 * time.Second

	// caseBits is how many bits of a case's num tell the cases of a run apart: see the migration.
	caseBits = 20

	// maxRunCases bounds a run: its cases are read whole, to compute its figures and to show it. It is twenty times what
	// one payload may hold, and far below what caseBits can number.
	maxRunCases = 100_000
)

// runColumns are all columns of eval_runs but num, in the order in which they are written and read.
var runColumns = strings.Fields(`id name account_id agent_id agent_name framework framework_version testing_framework
	testing_framework_version started_at finished_at status ci last_activity_at created_at total passed failed errored skipped
	ttft_p50_ms ttft_p95_ms ttft_avg_ms ttfb_p50_ms ttfb_p95_ms ttfb_avg_ms turn_count tool_call_count interruption_count
	agent_handoff_count ttft_sample_count prompt_tokens completion_tokens total_tokens cached_prompt_tokens cost_usd`)

// caseColumns are all columns of eval_cases in the order in which they are written. The first placeColumns say where
// the case belongs, which is known only in the transaction.
var caseColumns = strings.Fields(`num run_num change created_at position case_id rank name file status judge_failed started_at
	finished_at duration_ms ttft ttfb turn_count tool_call_count interruption_count agent_handoff_count prompt_tokens
	completion_tokens total_tokens cached_prompt_tokens cost_usd verdicts verdict_at details`)

const placeColumns = 5

var (
	upsertRun   = onConflict("id", runColumns[1:]) + " RETURNING id, num"
	upsertCase  = onConflict("num", caseColumns[1:])
	upsertEvent = onConflict("num", []string{"data"})
)

// onConflict replaces columns of a row whose key is there already.
func onConflict(key string, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = excluded." + c
	}
	return "ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// evalWrite is one post on its way through the group commit. Its cases are encoded before it is queued, by the caller
// and not by the only writer.
type evalWrite struct {
	post  *eval.Payload
	cases []encodedCase // as in post
}

type encodedCase struct {
	row    []any  // caseColumns from placeColumns on
	events []byte // zstd, nil when the case has none
}

// Upsert implements eval.Store. It returns when the post is durable. More cases than one run may have is TooLarge.
func (e Evals) Upsert(ctx context.Context, post *eval.Payload) error {
	w := &evalWrite{post: post, cases: make([]encodedCase, len(post.Cases))}
	for i := range post.Cases {
		var err error
		if w.cases[i], err = encodeCase(&post.Cases[i], &post.Run); err != nil {
			return e.s.fail(err)
		}
	}
	if len(w.cases) >= aloneFrom {
		return e.s.bigEvals.do(ctx, w)
	}
	return e.s.evals.do(ctx, w)
}

func encodeCase(c *eval.Case, run *eval.Run) (encodedCase, error) {
	var verdicts []session.Verdict
	for _, v := range c.Verdicts() {
		verdicts = append(verdicts, session.Verdict{Judge: v.Judge, Verdict: v.Verdict, At: run.LastActivityAt})
	}
	packed, err := packVerdicts(verdicts)
	if err != nil {
		return encodedCase{}, err
	}
	verdictAt := int64(0)
	if len(verdicts) > 0 {
		verdictAt = micros(run.LastActivityAt)
	}
	e := encodedCase{row: []any{c.ID, c.Rank, c.Name, c.File, c.Status, bit(c.JudgeFailed), micros(c.StartedAt), micros(c.FinishedAt),
		nullInt(c.DurationMS), packSamples(c.TTFT), packSamples(c.TTFB), c.TurnCount, c.ToolCallCount, c.InterruptionCount,
		c.AgentHandoffCount, c.Tokens.Prompt, c.Tokens.Completion, c.Tokens.Total, c.Tokens.Cached, nullFloat(c.CostUSD),
		packed, verdictAt, compress(packDetails(c))}}
	if string(c.Events) != noObjects {
		e.events = compress(c.Events)
	}
	return e, nil
}

func runRow(r *eval.Run) []any {
	return []any{r.ID, r.Name, r.AccountID, r.AgentID, r.AgentName, r.Framework, r.FrameworkVersion, r.TestingFramework,
		r.TestingFrameworkVersion, micros(r.StartedAt), micros(r.FinishedAt), r.Status, string(r.CI), micros(r.LastActivityAt),
		micros(r.CreatedAt), r.Total, r.Passed, r.Failed, r.Errored, r.Skipped, nullInt(r.TTFTP50MS), nullInt(r.TTFTP95MS),
		nullInt(r.TTFTAvgMS), nullInt(r.TTFBP50MS), nullInt(r.TTFBP95MS), nullInt(r.TTFBAvgMS), r.TurnCount, r.ToolCallCount,
		r.InterruptionCount, r.AgentHandoffCount, r.TTFTSampleCount, r.PromptTokens, r.CompletionTokens, r.TotalTokens,
		r.CachedPromptTokens, nullFloat(r.EstimatedCostUSD)}
}

// flushEvals writes a group of posts in one transaction. Posts of the same run are applied in order, each seeing the
// one before.
func (s *Store) flushEvals(ctx context.Context, group []*evalWrite) error {
	return s.commit(ctx, func(tx *sql.Tx) error {
		ids := make([]string, len(group))
		for i, w := range group {
			ids[i] = w.post.Run.ID
		}
		if err := s.lockRuns(ctx, tx, ids); err != nil {
			return err
		}
		for rest := group; len(rest) > 0; {
			n := distinctRuns(rest)
			if err := s.writeRuns(ctx, tx, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
}

// lockRuns keeps other processes from changing the same runs until this transaction ends.
func (s *Store) lockRuns(ctx context.Context, tx *sql.Tx, ids []string) error {
	keys := make([]int64, len(ids))
	for i, id := range ids {
		keys[i] = lockKey("eval", id)
	}
	return s.lock(ctx, tx, keys)
}

// distinctRuns is the length of the longest prefix in which no run occurs twice.
func distinctRuns(group []*evalWrite) int {
	seen := make(map[string]bool, len(group))
	for i, w := range group {
		if seen[w.post.Run.ID] {
			return i
		}
		seen[w.post.Run.ID] = true
	}
	return len(group)
}

// storedRun is a run as the database holds it.
type storedRun struct {
	num int64
	run eval.Run
}

// placedCase is a case of a post that has to be written, and where.
type placedCase struct {
	n         int64 // of the run: see caseBits
	createdAt int64 // µs, receipt of the first post that had the case
	position  int
	replaces  bool
	*encodedCase
}

// writeRuns writes posts of different runs.
func (s *Store) writeRuns(ctx context.Context, tx *sql.Tx, group []*evalWrite) error {
	stored, err := s.findRuns(ctx, tx, group)
	if err != nil {
		return err
	}
	mark, err := s.changeMark(ctx, tx)
	if err != nil {
		return err
	}
	rows := make([][]any, len(group))
	placed := make([][]placedCase, len(group))
	for i, w := range group {
		old, known := stored[w.post.Run.ID]
		var run eval.Run
		if known {
			run = eval.MergeRun(&old.run, w.post.Run)
			if placed[i], err = s.mergeCases(ctx, tx, w, old.num, &run); err != nil {
				return err
			}
			if run.AccountID != old.run.AccountID || run.AgentID != old.run.AgentID {
				if err := s.markVerdicts(ctx, tx, old.num, mark); err != nil {
					return err
				}
			}
		} else {
			run = eval.MergeRun(nil, w.post.Run)
			placed[i] = newCases(w, &run)
		}
		rows[i] = runRow(&run)
	}
	nums := make(map[string]int64, len(group))
	err = s.insertRows(ctx, tx, "eval_runs", runColumns, upsertRun, rows, func(r *sql.Rows) error {
		var id string
		var num int64
		err := r.Scan(&id, &num)
		nums[id] = num
		return err
	})
	if err != nil {
		return err
	}
	var cases, events [][]any
	for i, w := range group {
		runNum := nums[w.post.Run.ID]
		for _, p := range placed[i] {
			num := runNum<<caseBits + p.n
			cases = append(cases, append([]any{num, runNum, mark, p.createdAt, p.position}, p.row...))
			data := p.encodedCase.events
			if data == nil && p.replaces {
				data = compress([]byte(noObjects)) // over the events of the version before
			}
			if data != nil {
				events = append(events, []any{num, data})
			}
		}
	}
	if err := s.insertRows(ctx, tx, "eval_cases", caseColumns, upsertCase, cases, nil); err != nil {
		return err
	}
	return s.insertRows(ctx, tx, "eval_events", []string{"num", "data"}, upsertEvent, events, nil)
}

// findRuns reads the runs that the group changes, by id.
func (s *Store) findRuns(ctx context.Context, tx *sql.Tx, group []*evalWrite) (map[string]storedRun, error) {
	ids := make([]any, len(group))
	for i, w := range group {
		ids[i] = w.post.Run.ID
	}
	rows, err := s.query(ctx, tx, "SELECT "+runSelect+" FROM eval_runs WHERE id IN ("+placeholders(1, len(ids))+")", ids...)
	if err != nil {
		return nil, err
	}
	out := make(map[string]storedRun)
	err = each(rows, func(r *sql.Rows) error {
		var st storedRun
		if err := scanRun(r, &st.num, &st.run); err != nil {
			return err
		}
		out[st.run.ID] = st
		return nil
	})
	return out, err
}

// newCases places the cases of a run that is not stored yet.
func newCases(w *evalWrite, run *eval.Run) []placedCase {
	placed := make([]placedCase, len(w.cases))
	summaries := make([]eval.CaseSummary, len(w.cases))
	for i := range w.cases {
		c := &w.post.Cases[i]
		placed[i] = placedCase{n: int64(i), createdAt: micros(c.CreatedAt), position: c.Position, encodedCase: &w.cases[i]}
		summaries[i] = c.CaseSummary
	}
	run.RunAggregate = eval.Aggregate(summaries)
	return placed
}

// mergeCases finds out which cases of a post are new or replace a version of lesser rank, and recomputes the run from
// all its cases when there are any.
func (s *Store) mergeCases(ctx context.Context, tx *sql.Tx, w *evalWrite, runNum int64, run *eval.Run) ([]placedCase, error) {
	if len(w.cases) == 0 {
		return nil, nil
	}
	first, last := caseRange(runNum)
	rows, err := s.query(ctx, tx, "SELECT num, rank, created_at, position, "+summarySelect+" FROM eval_cases WHERE num BETWEEN $1 AND $2", first, last)
	if err != nil {
		return nil, err
	}
	type version struct {
		placedCase
		rank string
		at   int // in summaries
	}
	known := make(map[string]version)
	var summaries []eval.CaseSummary
	next := int64(0)
	err = each(rows, func(r *sql.Rows) error {
		var v version
		var sum eval.CaseSummary
		if err := scanSummary(r, &sum, &v.n, &v.rank, &v.createdAt, &v.position); err != nil {
			return err
		}
		v.n -= first
		v.at, v.replaces = len(summaries), true
		next = max(next, v.n+1)
		known[sum.ID], summaries = v, append(summaries, sum)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var placed []placedCase
	for i := range w.cases {
		c := &w.post.Cases[i]
		v, replaces := known[c.ID]
		switch {
		case !replaces:
			v.placedCase = placedCase{n: next, createdAt: micros(c.CreatedAt), position: c.Position}
			next++
			summaries = append(summaries, c.CaseSummary)
		case c.Rank <= v.rank:
			continue
		default:
			summaries[v.at] = c.CaseSummary
		}
		v.encodedCase = &w.cases[i]
		placed = append(placed, v.placedCase)
	}
	if len(summaries) > s.maxRunCases {
		return nil, errs.New(errs.TooLarge, "a run holds at most %d cases", s.maxRunCases)
	}
	if len(placed) > 0 {
		run.RunAggregate = eval.Aggregate(summaries)
	}
	return placed, nil
}

// caseRange is the first and the last num that cases of a run can have.
func caseRange(runNum int64) (first, last int64) {
	return runNum << caseBits, runNum<<caseBits + 1<<caseBits - 1
}

// markVerdicts marks the verdicts of a run as changed: rules count them by the agent and account of the run.
func (s *Store) markVerdicts(ctx context.Context, tx *sql.Tx, runNum, mark int64) error {
	first, last := caseRange(runNum)
	_, err := s.exec(ctx, tx, `UPDATE eval_cases SET change = $1 WHERE num BETWEEN $2 AND $3 AND verdict_at > 0`, mark, first, last)
	return err
}

// Delete implements eval.Store.
func (e Evals) Delete(ctx context.Context, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	s := e.s
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	var nums []int64
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		nums = nil
		if err := s.lockRuns(ctx, tx, ids); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "DELETE FROM eval_runs WHERE id IN ("+placeholders(1, len(args))+") RETURNING num", args...)
		if err != nil {
			return err
		}
		err = each(rows, func(r *sql.Rows) error {
			var num int64
			err := r.Scan(&num)
			nums = append(nums, num)
			return err
		})
		if err != nil || len(nums) == 0 {
			return err
		}
		mark, err := s.changeMark(ctx, tx)
		if err != nil {
			return err
		}
		slices.Sort(nums)
		for _, num := range nums {
			first, last := caseRange(num)
			for _, q := range []string{`DELETE FROM eval_cases WHERE num BETWEEN $1 AND $2`, `DELETE FROM eval_events WHERE num BETWEEN $1 AND $2`} {
				if _, err := tx.ExecContext(ctx, q, first, last); err != nil {
					return err
				}
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO eval_deletions (num, change) VALUES ($1, $2)`, num, mark); err != nil {
				return err
			}
		}
		return nil
	})
	return len(nums), err
}

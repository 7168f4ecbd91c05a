package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// sessionSelect are the columns that scanSession reads.
const sessionSelect = `num, id, job_key, job_id, room_name, account_id, agent_id, agent_name, transport, started_at, ended_at,
	audio_started_at, duration_ms, turn_count, interruption_count, tool_call_count, p95_perceived_ms, has_stt, has_llm, has_tts,
	outcome, eval_pass_count, eval_fail_count, cost_usd, sdk_version, recording_key, recording_size, recording_sha256,
	created_at, first_signal_at, last_signal_at, signals, incomplete`

func scanSession(r *sql.Rows, num *int64, job *string, s *session.Session) error {
	var started, ended, audio, created, first, last int64
	var duration, p95 sql.NullInt64
	var stt, llm, tts int
	var cost sql.NullFloat64
	var rec session.Recording
	var signals, incomplete string
	err := r.Scan(num, &s.ID, job, &s.JobID, &s.RoomName, &s.AccountID, &s.AgentID, &s.AgentName, &s.Transport, &started, &ended,
		&audio, &duration, &s.TurnCount, &s.InterruptionCount, &s.ToolCallCount, &p95, &stt, &llm, &tts, &s.Outcome,
		&s.EvalPassCount, &s.EvalFailCount, &cost, &s.SDKVersion, &rec.Key, &rec.Size, &rec.SHA256, &created, &first, &last,
		&signals, &incomplete)
	if err != nil {
		return err
	}
	s.StartedAt, s.EndedAt, s.AudioStartedAt = fromMicros(started), fromMicros(ended), fromMicros(audio)
	s.CreatedAt, s.FirstSignalAt, s.LastSignalAt = fromMicros(created), fromMicros(first), fromMicros(last)
	s.HasSTT, s.HasLLM, s.HasTTS = stt != 0, llm != 0, tts != 0
	if duration.Valid {
		s.DurationMS = &duration.Int64
	}
	if p95.Valid {
		s.P95UserPerceivedMS = &p95.Int64
	}
	if cost.Valid {
		s.EstimatedCostUSD = &cost.Float64
	}
	if rec.Key != "" {
		s.Recording = &rec
	}
	if s.Signals, err = unpackSignals(signals); err != nil {
		return err
	}
	if incomplete != "" {
		if err := json.Unmarshal([]byte(incomplete), &s.Incomplete); err != nil {
			return fmt.Errorf("stored reasons are damaged: %w", err)
		}
	}
	return nil
}

// where collects conditions and their arguments.
type where struct {
	conds []string
	args  []any
}

// arg adds an argument and returns its placeholder.
func (w *where) arg(v any) string {
	w.args = append(w.args, v)
	return fmt.Sprintf("$%d", len(w.args))
}

// add adds a condition; each %s stands for one argument.
func (w *where) add(format string, args ...any) {
	ps := make([]any, len(args))
	for i, a := range args {
		ps[i] = w.arg(a)
	}
	w.conds = append(w.conds, fmt.Sprintf(format, ps...))
}

// anyOf adds "column is one of values"; no values, no condition.
func (w *where) anyOf(column string, values []string) {
	if len(values) == 0 {
		return
	}
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !storable(v) })
	switch len(values) {
	case 0:
		w.conds = append(w.conds, "1 = 0")
		return
	case 1:
		w.add(column+" = %s", values[0])
		return
	}
	ps := make([]string, len(values))
	for i, v := range values {
		ps[i] = w.arg(v)
	}
	w.conds = append(w.conds, column+" IN ("+strings.Join(ps, ", ")+")")
}

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

// sessionWhere is the condition of a list. started is how it names the column started_at.
func (s *Store) sessionWhere(f session.Filter, started string) *where {
	w := &where{}
	w.anyOf("account_id", f.AccountIDs)
	w.anyOf("agent_id", f.AgentIDs)
	w.anyOf("agent_name", f.AgentNames)
	w.anyOf("transport", f.Transports)
	w.anyOf("outcome", f.Outcomes)
	if !f.StartedFrom.IsZero() {
		w.add(started+" >= %s", micros(f.StartedFrom))
	}
	if !f.StartedTo.IsZero() {
		w.add(started+" <= %s", micros(f.StartedTo))
	}
	if !f.StartedFrom.IsZero() || !f.StartedTo.IsZero() {
		w.conds = append(w.conds, started+" <> 0") // unknown
	}
	switch f.State {
	case session.StateActive:
		w.conds = append(w.conds, fmt.Sprintf("list_at >= %d", activeListAt))
	case session.StateEnded:
		w.conds = append(w.conds, fmt.Sprintf("list_at < %d", activeListAt))
	}
	flag := func(v *bool, yes, no string) {
		if v != nil && *v {
			w.conds = append(w.conds, yes)
		} else if v != nil {
			w.conds = append(w.conds, no)
		}
	}
	flag(f.HasRecording, "recording_key > ''", "recording_key = ''")
	flag(f.HasFailedEval, "eval_fail_count > 0", "eval_fail_count = 0")
	if f.MinDurationMS != nil {
		w.add("duration_ms >= %s", *f.MinDurationMS)
	}
	if f.MaxDurationMS != nil {
		w.add("duration_ms <= %s", *f.MaxDurationMS)
	}
	if q := f.Search; len(q.Must) > 0 {
		w.conds = append(w.conds, "num IN (SELECT "+s.d.searchKey+" FROM session_search WHERE "+s.d.searchMatch(q.Must, q.Not, w.arg)+")")
	} else if len(q.Not) > 0 {
		w.conds = append(w.conds, "num NOT IN (SELECT "+s.d.searchKey+" FROM session_search WHERE "+s.d.searchMatch(nil, q.Not, w.arg)+")")
	}
	return w
}

var errNoSession = errs.New(errs.NotFound, "there is no session with this id")

// wideRange is how many sessions a list may have to be sorted. A longer one is walked in its order until the page is
// full; what forbids the engines to begin with an index of started_at instead is the plus sign before the column.
const wideRange = 2000

// List implements session.Store.
func (s *Store) List(ctx context.Context, f session.Filter, p session.Page) ([]session.Listed, int, error) {
	if s.d.takeQueued != "" && !f.Search.Empty() {
		if err := s.indexQueued(ctx); err != nil {
			return nil, 0, err
		}
	}
	w := s.sessionWhere(f, "started_at")
	total, err := s.count(ctx, "SELECT count(*) FROM sessions"+w.String(), w.args)
	if err != nil {
		return nil, 0, s.fail(err)
	}
	if p.Offset >= total {
		return nil, total, nil
	}
	if total > s.wideRange {
		w = s.sessionWhere(f, "+started_at")
	}
	// A deep page is reached from the nearer end: skipping costs as many index steps as rows.
	limit, offset, inner, reversed := min(p.Limit, total-p.Offset), p.Offset, "DESC", false
	if offset > total/2 {
		offset, inner, reversed = total-p.Offset-limit, "ASC", true
	}
	query := fmt.Sprintf(`SELECT %s FROM sessions WHERE num IN (SELECT num FROM sessions%s ORDER BY list_at %s, num %s LIMIT %d OFFSET %d)
		ORDER BY list_at %s, num %s`, sessionSelect, w, inner, inner, limit, offset, inner, inner)
	rows, err := s.r.QueryContext(ctx, query, w.args...)
	if err != nil {
		return nil, 0, s.fail(err)
	}
	var out []session.Listed
	var nums []int64
	err = each(rows, func(r *sql.Rows) error {
		var num int64
		var job string
		var l session.Listed
		if err := scanSession(r, &num, &job, &l.Session); err != nil {
			return err
		}
		nums, out = append(nums, num), append(out, l)
		return nil
	})
	if err != nil {
		return nil, 0, s.fail(err)
	}
	if reversed {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j], nums[i], nums[j] = out[j], out[i], nums[j], nums[i]
		}
	}
	if len(f.Search.Must) > 0 {
		docs, err := s.readDocs(ctx, nums)
		if err != nil {
			return nil, 0, s.fail(err)
		}
		for i, num := range nums {
			out[i].Docs = docs[num]
		}
	}
	return out, total, nil
}

// readDocs reads the documents of sessions, by num.
func (s *Store) readDocs(ctx context.Context, nums []int64) (map[int64]map[session.DocKind][]byte, error) {
	w := &where{}
	ids := make([]string, 0, 3*len(nums))
	for _, num := range nums {
		for _, kind := range []session.DocKind{session.DocReport, session.DocLog, session.DocTrace} {
			ids = append(ids, w.arg(docID(num, kind)))
		}
	}
	rows, err := s.r.QueryContext(ctx, `SELECT id, data FROM session_docs WHERE id IN (`+strings.Join(ids, ", ")+`)`, w.args...)
	if err != nil {
		return nil, err
	}
	docs := make(map[int64]map[session.DocKind][]byte, len(nums))
	err = each(rows, func(r *sql.Rows) error {
		var id int64
		var data []byte
		if err := r.Scan(&id, &data); err != nil {
			return err
		}
		doc, err := decompress(data)
		num := id / 8
		if docs[num] == nil {
			docs[num] = make(map[session.DocKind][]byte, 3)
		}
		docs[num][session.DocKind(id%8)] = doc
		return err
	})
	return docs, err
}

// Get implements session.Store.
func (s *Store) Get(ctx context.Context, id string) (*session.Stored, error) {
	if !storable(id) {
		return nil, errNoSession
	}
	rows, err := s.r.QueryContext(ctx, `SELECT `+sessionSelect+` FROM sessions WHERE id = $1`, id)
	if err != nil {
		return nil, s.fail(err)
	}
	var num int64
	var st session.Stored
	err = each(rows, func(r *sql.Rows) error { return scanSession(r, &num, &st.JobKey, &st.Session) })
	if err != nil {
		return nil, s.fail(err)
	}
	if num == 0 {
		return nil, errNoSession
	}
	docs, err := s.readDocs(ctx, []int64{num})
	if err != nil {
		return nil, s.fail(err)
	}
	st.Docs = docs[num]
	return &st, nil
}

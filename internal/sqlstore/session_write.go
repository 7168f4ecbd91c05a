package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"hash/fnv"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"sidetone/internal/session"
)

// maxSessionBatch is how many changes one transaction of the group commit carries at most.
const maxSessionBatch = 64

// activeListAt puts active sessions before all ended ones in a list, newest first signal first. It is larger than any
// time in microseconds and leaves room for one to be added.
const activeListAt = int64(1) << 60

// sessionWrite is one change on its way through the group commit. What a new session needs is encoded before it is
// queued, by the caller and not by the only writer.
type sessionWrite struct {
	change  session.Change
	fresh   *encodedSession
	chunks  []storedChunk
	applied session.Applied
}

// encodedSession is a record in the form of its columns.
type encodedSession struct {
	row    []any // in the order of sessionColumns, without id and change
	words  string
	docs   map[session.DocKind][]byte
	record *session.Record
}

// sessionColumns are all columns but num, in the order in which they are written.
var sessionColumns = []string{"id", "change", "job_key", "job_id", "room_name", "account_id", "agent_id", "agent_name", "transport",
	"started_at", "ended_at", "list_at", "audio_started_at", "duration_ms", "turn_count", "interruption_count", "tool_call_count",
	"p95_perceived_ms", "has_stt", "has_llm", "has_tts", "outcome", "outcome_at", "eval_pass_count", "eval_fail_count", "cost_usd",
	"sdk_version", "recording_key", "recording_size", "recording_sha256", "created_at", "first_signal_at", "last_signal_at",
	"signals", "incomplete", "assistant_turns", "interrupted_turns", "perceived", "ttft", "ttfb", "stt", "verdicts", "verdict_at"}

// upsertSession replaces every column of a session that is there already.
var upsertSession = func() string {
	text := "ON CONFLICT (id) DO UPDATE SET "
	for i, c := range sessionColumns[1:] {
		if i > 0 {
			text += ", "
		}
		text += c + " = excluded." + c
	}
	return text + " RETURNING id, num"
}()

// Apply implements session.Store. It returns when the change is durable.
func (s *Store) Apply(ctx context.Context, c session.Change) (session.Applied, error) {
	w := &sessionWrite{change: c, chunks: encodeChunks(c.Chunks)}
	if !c.OnlyExisting {
		var err error
		if w.fresh, err = s.encodeSession(c.Fresh); err != nil {
			return session.Applied{}, err
		}
	}
	if err := s.sessions.do(ctx, w); err != nil {
		return session.Applied{}, err
	}
	s.index.added(s.d.indexEvery)
	return w.applied, nil
}

func (s *Store) encodeSession(r *session.Record) (*encodedSession, error) {
	signals, err := packSignals(r.Session.Signals)
	if err != nil {
		return nil, err
	}
	verdicts, err := packVerdicts(r.Verdicts)
	if err != nil {
		return nil, err
	}
	incomplete := ""
	if len(r.Session.Incomplete) > 0 {
		b, err := json.Marshal(r.Session.Incomplete)
		if err != nil {
			return nil, err
		}
		incomplete = string(b)
	}
	var verdictAt int64
	for _, v := range r.Verdicts {
		verdictAt = max(verdictAt, micros(v.At))
	}
	ss := &r.Session
	listAt := micros(ss.EndedAt)
	if listAt == 0 {
		listAt = activeListAt + micros(ss.FirstSignalAt)
	}
	rec := ss.Recording
	if rec == nil {
		rec = &session.Recording{}
	}
	e := &encodedSession{record: r, docs: make(map[session.DocKind][]byte, len(r.Docs)), words: r.Words}
	e.row = []any{r.JobKey, ss.JobID, ss.RoomName, ss.AccountID, ss.AgentID, ss.AgentName, ss.Transport,
		micros(ss.StartedAt), micros(ss.EndedAt), listAt, micros(ss.AudioStartedAt), nullInt(ss.DurationMS),
		ss.TurnCount, ss.InterruptionCount, ss.ToolCallCount, nullInt(ss.P95UserPerceivedMS), bit(ss.HasSTT), bit(ss.HasLLM),
		bit(ss.HasTTS), ss.Outcome, micros(r.OutcomeAt), ss.EvalPassCount, ss.EvalFailCount, nullFloat(ss.EstimatedCostUSD),
		ss.SDKVersion, rec.Key, rec.Size, rec.SHA256, micros(ss.CreatedAt), micros(ss.FirstSignalAt), micros(ss.LastSignalAt),
		signals, incomplete, r.Facts.AssistantTurns, r.Facts.InterruptedTurns, packSamples(r.Facts.Perceived),
		packSamples(r.Facts.TTFT), packSamples(r.Facts.TTFB), packSamples(r.Facts.STT), verdicts, verdictAt}
	for kind, doc := range r.Docs {
		e.docs[kind] = compress(doc)
	}
	return e, nil
}

// found is what the database holds under an id.
type found struct {
	num int64
	row session.Session
	job string
}

// flushSessions writes a group of changes in one transaction. Changes to the same session are applied in order, each
// seeing the one before.
func (s *Store) flushSessions(ctx context.Context, group []*sessionWrite) error {
	return s.commit(ctx, func(tx *sql.Tx) error {
		ids := make([]string, 0, 2*len(group))
		for _, w := range group {
			ids = append(ids, possibleIDs(w.change.Key)...)
		}
		if err := s.lockSessions(ctx, tx, ids); err != nil {
			return err
		}
		for rest := group; len(rest) > 0; {
			n := distinctSessions(rest)
			if err := s.writeSessions(ctx, tx, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
}

// possibleIDs are the sessions that a key may turn out to name. A session of a second job has two names: the job of its
// room, and its own id.
func possibleIDs(k session.Key) []string {
	if k.Job == "" || k.Exact {
		return []string{k.Room}
	}
	return []string{k.Room, k.Room + ":" + k.Job}
}

// distinctSessions is the length of the longest prefix in which no session can occur twice.
func distinctSessions(group []*sessionWrite) int {
	seen := make(map[string]bool, 2*len(group))
	for i, w := range group {
		ids := possibleIDs(w.change.Key)
		for _, id := range ids {
			if seen[id] {
				return i
			}
		}
		for _, id := range ids {
			seen[id] = true
		}
	}
	return len(group)
}

// writeSessions writes changes to different sessions.
func (s *Store) writeSessions(ctx context.Context, tx *sql.Tx, group []*sessionWrite) error {
	existing, err := s.findSessions(ctx, tx, group)
	if err != nil {
		return err
	}
	mark, err := s.changeMark(ctx, tx)
	if err != nil {
		return err
	}
	rows := make([][]any, 0, len(group))
	encoded := make(map[string]*encodedSession, len(group))
	for _, w := range group {
		room, ok := existing[w.change.Key.Room]
		id := w.change.Key.Resolve(room.job, ok)
		e := w.fresh
		w.applied = session.Applied{ID: id}
		if old, ok := existing[id]; ok {
			if e, err = s.mergeSession(ctx, tx, w, old); err != nil {
				return err
			}
		}
		if e == nil {
			continue // it was to change only if it is there
		}
		rows = append(rows, append([]any{id, mark}, e.row...))
		encoded[id] = e
	}
	nums := make(map[string]int64, len(group))
	err = s.insertRows(ctx, tx, "sessions", sessionColumns, upsertSession, rows, func(r *sql.Rows) error {
		var id string
		var num int64
		err := r.Scan(&id, &num)
		nums[id] = num
		return err
	})
	if err != nil {
		return err
	}
	var chunks [][]any
	for _, w := range group {
		if num, ok := nums[w.applied.ID]; ok {
			chunks = appendChunkRows(chunks, sessionOwner(num), w.chunks)
		}
	}
	if err := s.insertChunks(ctx, tx, chunks); err != nil {
		return err
	}
	var dropped []session.Recording
	for _, w := range group {
		if w.applied.Dropped != nil {
			dropped = append(dropped, *w.applied.Dropped)
		}
	}
	if err := s.dropRecordings(ctx, tx, dropped); err != nil {
		return err
	}
	if err := s.addRecordings(ctx, tx, encoded); err != nil {
		return err
	}
	return s.writeSessionParts(ctx, tx, nums, encoded)
}

// writeSessionParts writes the documents of sessions whose rows are written, and indexes their words or queues them for it.
func (s *Store) writeSessionParts(ctx context.Context, tx *sql.Tx, nums map[string]int64, encoded map[string]*encodedSession) error {
	ids := make([]string, 0, len(encoded))
	for id := range encoded {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return nums[ids[i]] < nums[ids[j]] })
	var docs, words [][]any
	for _, id := range ids {
		e, num := encoded[id], nums[id]
		for kind, data := range e.docs {
			docs = append(docs, []any{docID(num, kind), data})
		}
		if !e.record.SameWords {
			words = append(words, []any{num, e.words})
		}
	}
	if err := s.insertRows(ctx, tx, "session_docs", []string{"id", "data"},
		"ON CONFLICT (id) DO UPDATE SET data = excluded.data", docs, nil); err != nil {
		return err
	}
	table := "session_search"
	if s.d.takeQueued != "" {
		table = "search_queue"
	}
	return s.insertRows(ctx, tx, table, []string{"num", "words"},
		"ON CONFLICT (num) DO UPDATE SET words = excluded.words", words, nil)
}

// lockSessions keeps other transactions from changing the same sessions until this one ends.
func (s *Store) lockSessions(ctx context.Context, tx *sql.Tx, ids []string) error {
	keys := make([]int64, len(ids))
	for i, id := range ids {
		keys[i] = lockKey("session", id)
	}
	return s.lock(ctx, tx, keys)
}

// lock takes the locks of the keys in ascending order, so that two transactions cannot wait for each other.
func (s *Store) lock(ctx context.Context, tx *sql.Tx, keys []int64) error {
	if s.d.lockKeys == "" {
		return nil
	}
	slices.Sort(keys)
	_, err := tx.ExecContext(ctx, s.d.lockKeys, slices.Compact(keys))
	return err
}

func lockKey(kind, name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(kind))
	h.Write([]byte{0})
	h.Write([]byte(name))
	return int64(h.Sum64())
}

func (s *Store) changeMark(ctx context.Context, tx *sql.Tx) (int64, error) {
	rows, err := s.query(ctx, tx, s.d.changeMark)
	if err != nil {
		return 0, err
	}
	var mark int64
	err = each(rows, func(r *sql.Rows) error { return r.Scan(&mark) })
	return mark, err
}

// findSessions reads the sessions that the group may change, by id.
func (s *Store) findSessions(ctx context.Context, tx *sql.Tx, group []*sessionWrite) (map[string]found, error) {
	ids := make([]any, 0, 2*len(group))
	for _, w := range group {
		for _, id := range possibleIDs(w.change.Key) {
			ids = append(ids, id)
		}
	}
	out := make(map[string]found)
	for len(ids) > 0 {
		n := min(len(ids), maxSessionBatch)
		query := "SELECT " + sessionSelect + " FROM sessions WHERE id IN (" + placeholders(1, n) + ")"
		rows, err := s.query(ctx, tx, query, ids[:n]...)
		if err != nil {
			return nil, err
		}
		err = each(rows, func(r *sql.Rows) error {
			var f found
			if err := scanSession(r, &f.num, &f.job, &f.row); err != nil {
				return err
			}
			out[f.row.ID] = f
			return nil
		})
		if err != nil {
			return nil, err
		}
		ids = ids[n:]
	}
	return out, nil
}

// mergeSession computes what a session that is there becomes.
func (s *Store) mergeSession(ctx context.Context, tx *sql.Tx, w *sessionWrite, old found) (*encodedSession, error) {
	rec, err := w.change.Merge(session.Prior{Session: old.row, JobKey: old.job,
		Doc: func(k session.DocKind) ([]byte, error) { return s.readDoc(ctx, tx, docID(old.num, k)) }})
	if err != nil {
		return nil, err
	}
	if was, is := old.row.Recording, rec.Session.Recording; was != nil && (is == nil || is.Key != was.Key) {
		w.applied.Dropped = was
	}
	return s.encodeSession(rec)
}

func (s *Store) readDoc(ctx context.Context, tx *sql.Tx, id int64) ([]byte, error) {
	rows, err := s.query(ctx, tx, `SELECT data FROM session_docs WHERE id = $1`, id)
	if err != nil {
		return nil, err
	}
	var data []byte
	if err := each(rows, func(r *sql.Rows) error { return r.Scan(&data) }); err != nil || data == nil {
		return nil, err
	}
	return decompress(data)
}

// Delete implements session.Store.
func (s *Store) Delete(ctx context.Context, ids []string) (deleted int, recordings []session.Recording, err error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !storable(id) })
	if len(ids) == 0 {
		return 0, nil, nil
	}
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		deleted, recordings = 0, nil
		if err := s.lockSessions(ctx, tx, ids); err != nil {
			return err
		}
		args := make([]any, len(ids))
		for i, id := range ids {
			args[i] = id
		}
		rows, err := tx.QueryContext(ctx, `SELECT num, recording_key, recording_size, recording_sha256 FROM sessions WHERE id IN (`+
			placeholders(1, len(args))+`) ORDER BY num`, args...)
		if err != nil {
			return err
		}
		var nums []int64
		err = each(rows, func(r *sql.Rows) error {
			var num int64
			var rec session.Recording
			if err := r.Scan(&num, &rec.Key, &rec.Size, &rec.SHA256); err != nil {
				return err
			}
			nums = append(nums, num)
			if rec.Key != "" {
				recordings = append(recordings, rec)
			}
			return nil
		})
		if err != nil {
			return err
		}
		deleted = len(nums)
		if err := s.dropRecordings(ctx, tx, recordings); err != nil {
			return err
		}
		return s.deleteSessionParts(ctx, tx, nums)
	})
	return deleted, recordings, err
}

// storable tells whether a text can be in the database at all: PostgreSQL takes neither NUL nor anything but UTF-8, so
// what has either is not there.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

func (s *Store) deleteSessionParts(ctx context.Context, tx *sql.Tx, nums []int64) error {
	mark, err := s.changeMark(ctx, tx)
	if err != nil {
		return err
	}
	// First the queue: whoever indexes holds a queued row before it looks at the session, and in the other order the two
	// would wait for each other.
	for _, num := range nums {
		if _, err := tx.ExecContext(ctx, `DELETE FROM search_queue WHERE num = $1`, num); err != nil {
			return err
		}
	}
	for _, num := range nums {
		for _, q := range []string{s.d.searchDelete, `DELETE FROM sessions WHERE num = $1`, `DELETE FROM session_docs WHERE id BETWEEN $1 * 8 AND $1 * 8 + 7`} {
			if _, err := tx.ExecContext(ctx, q, num); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM telemetry_chunks WHERE owner = $1`, sessionOwner(num)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO session_deletions (num, change) VALUES ($1, $2)`, num, mark); err != nil {
			return err
		}
	}
	return nil
}

// docID is the key of one document: see the migration.
func docID(num int64, kind session.DocKind) int64 { return num*8 + int64(kind) }

func nullInt(v *int64) any {
	if v == nil {
		return nil
	}
	return *v
}

func nullFloat(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

package storetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// RunSessions checks a store of sessions. database gives an empty, migrated database; each call of what it returns opens
// a store on it, as another process would.
func RunSessions(t *testing.T, database func(t *testing.T) (open func() session.Store)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s sessionStore)
	}{
		{"EveryFieldRoundTrips", everySessionField},
		{"UnknownStaysUnknown", unknownStaysUnknown},
		{"NotFound", sessionNotFound},
		{"WhoseSessionItIs", whoseSession},
		{"FirstJobsOfOneRoomAtOnce", firstJobsAtOnce},
		{"ReplacedRecording", replacedRecording},
		{"DocumentsStayUnlessGiven", documentsStay},
		{"OnlyExisting", onlyExisting},
		{"AwkwardText", awkwardText},
		{"LargeDocumentsAndManyWords", largeSessions},
		{"Delete", deleteSessions},
		{"DeleteWhileOthersWrite", deleteWhileWriting},
		{"FailedMerge", failedMerge},
		{"ManyChangesOfOneSessionAtOnce", oneSessionAtOnce},
		{"ManySessionsAtOnce", manySessionsAtOnce},
		{"OneIDByTwoNamesAtOnce", twoNamesAtOnce},
		{"ListOrderAndPages", sessionPages},
		{"ListFilters", sessionFilters},
		{"StartedEdges", startedEdges},
		{"CountsAreNeverStale", freshCounts},
		{"SearchMeansWhatTheDomainSays", searchOracle},
		{"SearchSeesWhatWasAcknowledged", searchIsCurrent},
		{"SearchOfLongCalls", searchLongCalls},
		{"Chunks", chunks},
		{"Silent", silent},
	} {
		t.Run(test.name, func(t *testing.T) {
			open := database(t)
			test.run(t, sessionStore{t, open(), open})
		})
	}
}

type sessionStore struct {
	t *testing.T
	session.Store
	again func() session.Store // another store on the same database
}

var sessionNoon = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)

// exactly is the key of a session that the client named itself.
func exactly(id string) session.Key { return session.Key{Room: id, Exact: true} }

// newRecord is a session that ended at noon.
func newRecord(edit func(*session.Record)) *session.Record {
	r := &session.Record{Docs: map[session.DocKind][]byte{}}
	r.Session.EndedAt, r.Session.CreatedAt, r.Session.FirstSignalAt, r.Session.LastSignalAt = sessionNoon, sessionNoon, sessionNoon, sessionNoon
	if edit != nil {
		edit(r)
	}
	return r
}

// replacing stores a record whatever is there.
func replacing(key session.Key, r *session.Record) session.Change {
	return session.Change{Key: key, Fresh: r, Merge: func(session.Prior) (*session.Record, error) { return r, nil }}
}

func (s sessionStore) apply(c session.Change) session.Applied {
	s.t.Helper()
	a, err := s.Apply(context.Background(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s sessionStore) put(id string, edit func(*session.Record)) session.Applied {
	s.t.Helper()
	return s.apply(replacing(exactly(id), newRecord(edit)))
}

func (s sessionStore) get(id string) *session.Stored {
	s.t.Helper()
	st, err := s.Get(s.t.Context(), id)
	if err != nil {
		s.t.Fatalf("get %q: %v", id, err)
	}
	return st
}

func (s sessionStore) list(f session.Filter, p session.Page) ([]session.Listed, int) {
	s.t.Helper()
	rows, total, err := s.List(s.t.Context(), f, p)
	if err != nil {
		s.t.Fatal(err)
	}
	return rows, total
}

// ids are the ids of all sessions that a filter selects.
func (s sessionStore) ids(f session.Filter) []string {
	s.t.Helper()
	rows, total := s.list(f, session.Page{Limit: 100000})
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.Session.ID
	}
	if total != len(ids) {
		s.t.Fatalf("total %d for %d rows", total, len(ids))
	}
	return ids
}

// fill sets every field of a struct to something that is not its zero value and not like any other field, so that a
// field added to the domain and forgotten by a store shows.
func fill(t *testing.T, v reflect.Value, path string, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(sessionNoon.Add(time.Duration(*n) * time.Second)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s %d ü→返金 '\"\\%%", path, *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n)*7 + 1<<30)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.123456789)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), path, n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Field(i).Name, n)
		}
	default:
		t.Fatalf("%s: the test cannot fill a %s", path, v.Type())
	}
}

func everySessionField(t *testing.T, s sessionStore) {
	rec := newRecord(nil)
	n := 0
	fill(t, reflect.ValueOf(&rec.Session).Elem(), "session", &n)
	// counts are INTEGER columns of 32 bits on one engine
	for _, c := range []*int{&rec.Session.TurnCount, &rec.Session.InterruptionCount, &rec.Session.ToolCallCount, &rec.Session.EvalPassCount, &rec.Session.EvalFailCount} {
		*c -= 1 << 29
	}
	rec.Session.ID = "call: 1/ü?&"
	rec.Session.Recording.Taken = nil // not kept with the session
	rec.JobKey = "job key"
	rec.Words = "token"
	for _, k := range []session.DocKind{session.DocReport, session.DocLog, session.DocTrace} {
		rec.Docs[k] = []byte(fmt.Sprintf("document %d \x00\xff", k))
	}
	var prior session.Prior
	docs := map[session.DocKind][]byte{}
	change := replacing(exactly(rec.Session.ID), rec)
	if a := s.apply(change); a.ID != rec.Session.ID || a.Dropped != nil {
		t.Errorf("applied %+v", a)
	}
	check := func(how string) {
		t.Helper()
		st := s.get(rec.Session.ID)
		same(t, how+": session", st.Session, rec.Session)
		same(t, how+": documents", st.Docs, rec.Docs)
		if st.JobKey != rec.JobKey {
			t.Errorf("%s: job key %q", how, st.JobKey)
		}
		rows, total := s.list(session.Filter{}, session.Page{Limit: 20})
		if total != 1 || len(rows) != 1 {
			t.Fatalf("%s: %d of %d rows", how, len(rows), total)
		}
		same(t, how+": row", rows[0].Session, rec.Session)
	}
	check("new")

	change.Merge = func(p session.Prior) (*session.Record, error) {
		prior = p
		for k := range rec.Docs {
			d, err := p.Doc(k)
			if err != nil {
				return nil, err
			}
			docs[k] = d
		}
		return rec, nil
	}
	s.apply(change)
	same(t, "prior session", prior.Session, rec.Session)
	same(t, "prior documents", docs, rec.Docs)
	if prior.JobKey != rec.JobKey {
		t.Errorf("prior job key %q", prior.JobKey)
	}
	check("written over itself")

	// And every field changes when it is written over.
	fill(t, reflect.ValueOf(&rec.Session).Elem(), "other", &n)
	rec.Session.ID = "call: 1/ü?&"
	rec.Session.Recording.Taken = nil
	for _, c := range []*int{&rec.Session.TurnCount, &rec.Session.InterruptionCount, &rec.Session.ToolCallCount, &rec.Session.EvalPassCount, &rec.Session.EvalFailCount} {
		*c -= 1 << 29
	}
	rec.Session.HasSTT, rec.Session.HasLLM, rec.Session.HasTTS = false, false, false
	rec.JobKey = "another job key"
	rec.Docs = map[session.DocKind][]byte{session.DocReport: []byte("r"), session.DocLog: []byte("l"), session.DocTrace: {}}
	s.apply(replacing(exactly(rec.Session.ID), rec))
	check("replaced")
}

func unknownStaysUnknown(t *testing.T, s sessionStore) {
	rec := &session.Record{}
	s.apply(replacing(exactly("x"), rec))
	st := s.get("x")
	same(t, "session", st.Session, session.Session{ID: "x"})
	if len(st.Docs) != 0 || st.JobKey != "" {
		t.Errorf("documents %v, job %q", st.Docs, st.JobKey)
	}
	// Zero is not unknown.
	zero, none := int64(0), 0.0
	s.put("x", func(r *session.Record) {
		r.Session.DurationMS, r.Session.P95UserPerceivedMS, r.Session.EstimatedCostUSD = &zero, &zero, &none
	})
	got := s.get("x").Session
	if got.DurationMS == nil || *got.DurationMS != 0 || got.P95UserPerceivedMS == nil || got.EstimatedCostUSD == nil || *got.EstimatedCostUSD != 0 {
		t.Errorf("zero became %+v", got)
	}
	err := s.t.Context().Err()
	if doc, e := s.priorDoc("x", session.DocLog); doc != nil || e != nil || err != nil {
		t.Errorf("a document that never came: %v, %v", doc, e)
	}
}

// priorDoc reads a document as a merge sees it.
func (s sessionStore) priorDoc(id string, k session.DocKind) (doc []byte, err error) {
	s.apply(session.Change{Key: exactly(id), OnlyExisting: true, Merge: func(p session.Prior) (*session.Record, error) {
		doc, err = p.Doc(k)
		return &session.Record{Session: p.Session, JobKey: p.JobKey, SameWords: true}, nil
	}})
	return doc, err
}

func sessionNotFound(t *testing.T, s sessionStore) {
	s.put("there", nil)
	for _, id := range []string{"", "nothing", "there:job", "THERE", "there\x00", "\x00", "\xff\xfe", strings.Repeat("x", 10000), "'; DROP TABLE sessions; --"} {
		if st, err := s.Get(t.Context(), id); !errs.Is(err, errs.NotFound) || st != nil {
			t.Errorf("get %.20q: %v, %v", id, st, err)
		}
		if c, err := s.Chunks(t.Context(), id, session.ChunkSpans); !errs.Is(err, errs.NotFound) || c != nil {
			t.Errorf("chunks of %.20q: %v, %v", id, c, err)
		}
		if n, recs, err := s.Delete(t.Context(), []string{id}); n != 0 || recs != nil || err != nil {
			t.Errorf("delete %.20q: %d, %v, %v", id, n, recs, err)
		}
		if rows, total := s.list(session.Filter{AccountIDs: []string{id + "?"}}, session.Page{Limit: 20}); len(rows) != 0 || total != 0 {
			t.Errorf("account %.20q has %d sessions", id, total)
		}
	}
	if n, recs, err := s.Delete(t.Context(), nil); n != 0 || recs != nil || err != nil {
		t.Errorf("delete nothing: %d, %v, %v", n, recs, err)
	}
	s.get("there")
	same(t, "those that are left", s.ids(session.Filter{}), []string{"there"})
}

func whoseSession(t *testing.T, s sessionStore) {
	merged := 0
	signal := func(k session.Key, wantID string, wantMerged bool) {
		t.Helper()
		before := merged
		c := session.Change{Key: k, Fresh: newRecord(func(r *session.Record) { r.JobKey = k.Job }), Merge: func(p session.Prior) (*session.Record, error) {
			merged++
			rec := newRecord(nil)
			rec.JobKey = p.JobKey
			if rec.JobKey == "" {
				rec.JobKey = k.Job
			}
			return rec, nil
		}}
		if a := s.apply(c); a.ID != wantID || (merged > before) != wantMerged {
			t.Errorf("%+v went to %q (merged %v), want %q (%v)", k, a.ID, merged > before, wantID, wantMerged)
		}
	}
	signal(session.Key{Room: "R"}, "R", false)
	signal(session.Key{Room: "R", Job: "A"}, "R", true) // the first job takes the room over
	signal(session.Key{Room: "R", Job: "B"}, "R:B", false)
	signal(session.Key{Room: "R", Job: "C"}, "R:C", false)
	signal(session.Key{Room: "R", Job: "A"}, "R", true)
	signal(session.Key{Room: "R", Job: "B"}, "R:B", true)
	signal(session.Key{Room: "R"}, "R", true)                        // no job: the room's own
	signal(session.Key{Room: "R", Job: "D", Exact: true}, "R", true) // the client said which
	signal(session.Key{Room: "R:B", Exact: true}, "R:B", true)
	signal(session.Key{Room: "Q", Job: "B"}, "Q", false)
	signal(session.Key{Room: "Q", Job: "A"}, "Q:A", false)
	got := s.ids(session.Filter{})
	slices.Sort(got)
	same(t, "sessions", got, []string{"Q", "Q:A", "R", "R:B", "R:C"})
	if j := s.get("R").JobKey; j != "A" {
		t.Errorf("R belongs to %q", j)
	}
}

func replacedRecording(t *testing.T, s sessionStore) {
	with := func(key string) func(*session.Record) {
		return func(r *session.Record) {
			if key != "" {
				r.Session.Recording = &session.Recording{Key: key, Size: int64(len(key)), SHA256: "sum of " + key}
			}
		}
	}
	for _, step := range []struct{ key, dropped string }{{"", ""}, {"a", ""}, {"a", ""}, {"b", "a"}, {"", "b"}, {"c", ""}} {
		a := s.put("x", with(step.key))
		switch {
		case step.dropped == "" && a.Dropped != nil:
			t.Errorf("%q: dropped %+v", step.key, a.Dropped)
		case step.dropped != "" && (a.Dropped == nil || *a.Dropped != session.Recording{Key: step.dropped, Size: 1, SHA256: "sum of " + step.dropped}):
			t.Errorf("%q: dropped %+v, want %s", step.key, a.Dropped, step.dropped)
		}
	}
	if r := s.get("x").Session.Recording; r == nil || r.Key != "c" {
		t.Errorf("the recording is %+v", r)
	}
}

func documentsStay(t *testing.T, s sessionStore) {
	doc := func(k session.DocKind, text string) func(*session.Record) {
		return func(r *session.Record) { r.Docs[k] = []byte(text) }
	}
	s.put("x", doc(session.DocReport, "one"))
	s.put("x", doc(session.DocLog, "two"))
	s.put("y", doc(session.DocLog, "of y"))
	s.put("x", doc(session.DocReport, "three"))
	same(t, "documents of x", s.get("x").Docs, map[session.DocKind][]byte{session.DocReport: []byte("three"), session.DocLog: []byte("two")})
	same(t, "documents of y", s.get("y").Docs, map[session.DocKind][]byte{session.DocLog: []byte("of y")})
	if d, err := s.priorDoc("x", session.DocLog); err != nil || string(d) != "two" {
		t.Errorf("a merge sees %q, %v", d, err)
	}
}

func onlyExisting(t *testing.T, s sessionStore) {
	calls := 0
	c := session.Change{Key: exactly("x"), OnlyExisting: true, Merge: func(p session.Prior) (*session.Record, error) {
		calls++
		return &session.Record{Session: session.Session{AccountID: "acme", EndedAt: sessionNoon}, SameWords: true}, nil
	}}
	s.apply(c)
	if _, err := s.Get(t.Context(), "x"); calls != 0 || !errs.Is(err, errs.NotFound) {
		t.Errorf("%d merges and %v of a session that is not there", calls, err)
	}
	s.put("x", func(r *session.Record) { r.Words = "kept" })
	s.apply(c)
	if calls == 0 || s.get("x").Session.AccountID != "acme" {
		t.Error("a session that is there did not change")
	}
	same(t, "with the words it had", s.ids(session.Filter{Search: session.ParseQuery("kept")}), []string{"x"})
}

func awkwardText(t *testing.T, s sessionStore) {
	for i, text := range []string{"ü", "返金する", "مرحبا", "👩‍👩‍👧", "e\u0301", "\u202eRTL", "a\nb\tc", `"quoted' \ $1 ? %s`, "\u2028", strings.Repeat("長", 300)} {
		id := fmt.Sprintf("%d %s", i, text)
		s.put(id, func(r *session.Record) { r.Session.AccountID, r.Session.AgentName = text, text })
		if got := s.get(id).Session; got.ID != id || got.AccountID != text || got.AgentName != text {
			t.Errorf("%q became %+v", text, got)
		}
		same(t, text, s.ids(session.Filter{AccountIDs: []string{text}, AgentNames: []string{text, "other"}}), []string{id})
	}
	for _, bad := range []string{"\x00", "a\x00b", "\xff", "a\xc3"} {
		if ids := s.ids(session.Filter{AccountIDs: []string{bad}}); len(ids) != 0 {
			t.Errorf("account %q has %v", bad, ids)
		}
	}
}

func largeSessions(t *testing.T, s sessionStore) {
	big := make([]byte, 5<<20)
	for i := range big {
		big[i] = byte(i * i >> 7)
	}
	var words []string
	for i := range session.MaxTokens {
		words = append(words, fmt.Sprintf("w%d", i))
	}
	s.put("big", func(r *session.Record) {
		r.Docs[session.DocReport] = big
		r.Words = strings.Join(words, " ")
		r.Session.RoomName = strings.Repeat("long ", 100000)
		r.Session.Incomplete = []string{strings.Repeat("x", 100000)}
		for i := range 10000 {
			r.Facts.Perceived = append(r.Facts.Perceived, float64(i)+0.125)
			r.Verdicts = append(r.Verdicts, session.Verdict{Judge: "j", Verdict: "pass", At: sessionNoon})
		}
		r.Facts.AssistantTurns = 10000
	})
	st := s.get("big")
	if string(st.Docs[session.DocReport]) != string(big) || len(st.Session.RoomName) != 500000 || len(st.Session.Incomplete[0]) != 100000 {
		t.Error("a large session came back changed")
	}
	for _, q := range []string{"w0", `"w99998 w99999"`, "w7 -nothing"} {
		same(t, q, s.ids(session.Filter{Search: session.ParseQuery(q)}), []string{"big"})
	}
}

func deleteSessions(t *testing.T, s sessionStore) {
	for i := range 5 {
		id := fmt.Sprintf("s%d", i)
		s.apply(session.Change{Key: exactly(id), Chunks: []session.Chunk{{Kind: session.ChunkSpans, Data: []byte("[" + id + "]")}},
			Fresh: newRecord(func(r *session.Record) {
				r.Words = "word " + id
				r.Docs[session.DocReport], r.Docs[session.DocTrace] = []byte("r"+id), []byte("t"+id)
				if i%2 == 0 {
					r.Session.Recording = &session.Recording{Key: "k" + id, Size: 3, SHA256: "h"}
				}
			})})
		if i == 2 { // some are indexed, some only queued
			s.ids(session.Filter{Search: session.ParseQuery("word")})
		}
	}
	n, recs, err := s.Delete(t.Context(), []string{"s0", "s1", "s0", "gone", "s4"})
	if err != nil || n != 3 {
		t.Errorf("deleted %d, %v", n, err)
	}
	slices.SortFunc(recs, func(a, b session.Recording) int { return strings.Compare(a.Key, b.Key) })
	same(t, "recordings", recs, []session.Recording{{Key: "ks0", Size: 3, SHA256: "h"}, {Key: "ks4", Size: 3, SHA256: "h"}})
	left := s.ids(session.Filter{})
	slices.Sort(left)
	same(t, "left", left, []string{"s2", "s3"})
	found := s.ids(session.Filter{Search: session.ParseQuery("word")})
	slices.Sort(found)
	same(t, "found", found, []string{"s2", "s3"})
	if _, err := s.Chunks(t.Context(), "s0", session.ChunkSpans); !errs.Is(err, errs.NotFound) {
		t.Errorf("chunks of a deleted session: %v", err)
	}
	// Under the same id begins another session, which finds nothing of the old one.
	s.put("s0", nil)
	if st := s.get("s0"); len(st.Docs) != 0 || st.Session.Recording != nil {
		t.Errorf("what was deleted came back: %+v", st)
	}
	if c, err := s.Chunks(t.Context(), "s0", session.ChunkSpans); err != nil || len(c) != 0 {
		t.Errorf("old chunks: %v, %v", c, err)
	}
	same(t, "found again", s.ids(session.Filter{Search: session.ParseQuery("s0")}), []string{})
}

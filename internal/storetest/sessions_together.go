package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// together runs f n times at once, each time on one of two stores of the same database.
func (s sessionStore) together(n int, f func(store session.Store, i int) error) {
	s.t.Helper()
	stores := []session.Store{s.Store, s.again()}
	failed := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { failed[i] = f(stores[i%2], i) })
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		s.t.Fatal(err)
	}
}

func firstJobsAtOnce(t *testing.T, s sessionStore) {
	const jobs, posts = 6, 4
	ids := make([]string, jobs*posts)
	s.together(jobs*posts, func(store session.Store, i int) error {
		job := fmt.Sprintf("J%d", i%jobs)
		a, err := store.Apply(context.Background(), session.Change{Key: session.Key{Room: "R", Job: job},
			Fresh: newRecord(func(r *session.Record) { r.JobKey, r.Session.AccountID = job, job }),
			Merge: func(p session.Prior) (*session.Record, error) {
				if p.JobKey != job {
					return nil, fmt.Errorf("%s was given the session of %q", job, p.JobKey)
				}
				return newRecord(func(r *session.Record) { r.JobKey, r.Session.AccountID = job, job }), nil
			}})
		ids[i] = a.ID
		return err
	})
	stored := s.ids(session.Filter{})
	if len(stored) != jobs || !slices.Contains(stored, "R") {
		t.Errorf("%d jobs made %v", jobs, stored)
	}
	owner := s.get("R").JobKey
	for i, id := range ids {
		job, want := fmt.Sprintf("J%d", i%jobs), "R"
		if job != owner {
			want = "R:" + job
		}
		if id != want {
			t.Errorf("%s was answered %q, want %q", job, id, want)
		}
	}
}

// counting is a change that adds one to a session's turns; together they show when one did not see another.
func counting(key session.Key, by string) session.Change {
	return session.Change{Key: key,
		Fresh: newRecord(func(r *session.Record) { r.Session.TurnCount, r.Docs[session.DocLog] = 1, []byte(by) }),
		Merge: func(p session.Prior) (*session.Record, error) {
			doc, err := p.Doc(session.DocLog)
			if err != nil {
				return nil, err
			}
			return newRecord(func(r *session.Record) {
				r.JobKey, r.Session.TurnCount = p.JobKey, p.Session.TurnCount+1
				r.Docs[session.DocLog] = append(append([]byte(nil), doc...), by...)
			}), nil
		}}
}

func oneSessionAtOnce(t *testing.T, s sessionStore) {
	const n = 48
	s.together(n, func(store session.Store, i int) error {
		_, err := store.Apply(context.Background(), counting(exactly("x"), "+"))
		return err
	})
	if st := s.get("x"); st.Session.TurnCount != n || len(st.Docs[session.DocLog]) != n {
		t.Errorf("%d changes left %d turns and %q", n, st.Session.TurnCount, st.Docs[session.DocLog])
	}
}

func manySessionsAtOnce(t *testing.T, s sessionStore) {
	const sessions, changes = 40, 8
	s.together(8, func(store session.Store, g int) error {
		for i := range sessions {
			id := fmt.Sprintf("s%d", (i*7+g)%sessions)
			if _, err := store.Apply(context.Background(), counting(exactly(id), fmt.Sprint(g))); err != nil {
				return err
			}
		}
		return nil
	})
	if n := len(s.ids(session.Filter{})); n != sessions {
		t.Errorf("%d sessions", n)
	}
	for i := range sessions {
		st := s.get(fmt.Sprintf("s%d", i))
		by := strings.Split(string(st.Docs[session.DocLog]), "")
		slices.Sort(by)
		if st.Session.TurnCount != changes || strings.Join(by, "") != "01234567" {
			t.Errorf("s%d: %d turns by %v", i, st.Session.TurnCount, by)
		}
	}
}

// twoNamesAtOnce changes one session as a job of its room and by its own id, as the end of silent sessions does.
func twoNamesAtOnce(t *testing.T, s sessionStore) {
	s.apply(counting(session.Key{Room: "R"}, "-"))
	s.apply(session.Change{Key: session.Key{Room: "R"}, Merge: func(p session.Prior) (*session.Record, error) {
		return newRecord(func(r *session.Record) { r.JobKey = "A" }), nil
	}, Fresh: newRecord(nil)})
	keys := []session.Key{{Room: "R", Job: "B"}, exactly("R:B")}
	s.apply(counting(keys[0], "-"))
	const n = 60
	s.together(n, func(store session.Store, i int) error {
		_, err := store.Apply(context.Background(), counting(keys[i/2%2], "+"))
		return err
	})
	if got := s.get("R:B").Session.TurnCount; got != n+1 {
		t.Errorf("%d changes left %d turns", n+1, got)
	}
}

func failedMerge(t *testing.T, s sessionStore) {
	s.put("bad", func(r *session.Record) { r.Session.AccountID = "before" })
	const n = 24
	results := make([]error, n)
	s.together(n, func(store session.Store, i int) error {
		c := counting(exactly(fmt.Sprintf("good%d", i)), "+")
		if i%6 == 0 {
			c = session.Change{Key: exactly("bad"), Fresh: newRecord(nil), Chunks: []session.Chunk{{Kind: session.ChunkLogs, Data: []byte("[]")}},
				Merge: func(session.Prior) (*session.Record, error) {
					return nil, errs.New(errs.Invalid, "this one cannot be merged")
				}}
		}
		_, results[i] = store.Apply(context.Background(), c)
		return nil
	})
	for i, err := range results {
		if bad := i%6 == 0; bad != errs.Is(err, errs.Invalid) || !bad && err != nil {
			t.Errorf("change %d: %v", i, err)
		}
	}
	if got := s.ids(session.Filter{}); len(got) != n-n/6+1 {
		t.Errorf("%d sessions", len(got))
	}
	if c, err := s.Chunks(t.Context(), "bad", session.ChunkLogs); err != nil || len(c) != 0 || s.get("bad").Session.AccountID != "before" {
		t.Errorf("the failed change left traces: %d chunks, %v", len(c), err)
	}
}

// deleteWhileWriting deletes sessions while others write, index and read them: nobody fails, and nothing is half there.
func deleteWhileWriting(t *testing.T, s sessionStore) {
	const rounds = 15
	s.together(6, func(store session.Store, g int) error {
		for i := range rounds {
			id := fmt.Sprintf("s%d", i%4)
			var err error
			switch {
			case g < 3:
				_, err = store.Apply(context.Background(), session.Change{Key: exactly(id), Chunks: []session.Chunk{{Kind: session.ChunkSpans, Data: []byte(`[1]`)}},
					Fresh: newRecord(func(r *session.Record) { r.Words, r.Docs[session.DocLog] = "word", []byte("fresh") }),
					Merge: func(p session.Prior) (*session.Record, error) {
						doc, err := p.Doc(session.DocLog)
						if err == nil && doc == nil {
							err = errors.New("a session without its document")
						}
						return newRecord(func(r *session.Record) { r.Words = "word" }), err
					}})
			case g < 5:
				_, _, err = store.Delete(context.Background(), []string{id, "s0"})
			default:
				_, _, err = store.List(context.Background(), session.Filter{Search: session.ParseQuery("word")}, session.Page{Limit: 20})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, id := range s.ids(session.Filter{}) {
		if string(s.get(id).Docs[session.DocLog]) != "fresh" {
			t.Errorf("%s lost its document", id)
		}
	}
	all, found := s.ids(session.Filter{}), s.ids(session.Filter{Search: session.ParseQuery("word")})
	same(t, "found", found, all)
}

func chunks(t *testing.T, s sessionStore) {
	ctx := t.Context()
	chunk := func(kind session.ChunkKind, data string) session.Chunk {
		return session.Chunk{Kind: kind, Data: []byte(data)}
	}
	with := func(id string, cs ...session.Chunk) {
		t.Helper()
		c := replacing(exactly(id), newRecord(nil))
		c.Chunks = cs
		s.apply(c)
	}
	read := func(get func() ([][]byte, error)) []string {
		t.Helper()
		data, err := get()
		if err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, d := range data {
			out = append(out, string(d))
		}
		slices.Sort(out)
		return out
	}
	of := func(id string, kind session.ChunkKind) []string {
		t.Helper()
		return read(func() ([][]byte, error) { return s.Chunks(ctx, id, kind) })
	}
	with("x", chunk(session.ChunkSpans, "[1]"), chunk(session.ChunkLogs, "[1]"))
	with("x", chunk(session.ChunkSpans, "[2]"), chunk(session.ChunkSpans, "[2]"))
	with("x", chunk(session.ChunkSpans, "[1]"), chunk(session.ChunkSpans, "[3]"), chunk(session.ChunkMetrics, strings.Repeat("m", 3<<20)))
	with("y", chunk(session.ChunkSpans, "[1]"))
	same(t, "spans of x, each once", of("x", session.ChunkSpans), []string{"[1]", "[2]", "[3]"})
	same(t, "logs of x", of("x", session.ChunkLogs), []string{"[1]"})
	same(t, "spans of y", of("y", session.ChunkSpans), []string{"[1]"})
	same(t, "logs of y", of("y", session.ChunkLogs), []string{})
	if m := of("x", session.ChunkMetrics); len(m) != 1 || len(m[0]) != 3<<20 {
		t.Error("a large chunk came back changed")
	}

	// Without a session, from several processes at once.
	s.together(12, func(store session.Store, i int) error {
		owner := session.TraceOwner([]string{"aa", "bb"}[i%2])
		return store.AppendChunks(context.Background(), owner, []session.Chunk{chunk(session.ChunkSpans, fmt.Sprintf("[%d]", i/4))})
	})
	if err := s.AppendChunks(ctx, "service:shop", []session.Chunk{chunk(session.ChunkMetrics, "[]")}); err != nil {
		t.Error(err)
	}
	if err := s.AppendChunks(ctx, session.TraceOwner("cc"), nil); err != nil {
		t.Error(err)
	}
	traces := func(ids ...string) []string {
		t.Helper()
		return read(func() ([][]byte, error) { return s.TraceChunks(ctx, ids, session.ChunkSpans) })
	}
	same(t, "one trace", traces("aa"), []string{"[0]", "[1]", "[2]"})
	same(t, "two traces", traces("aa", "bb", "cc"), []string{"[0]", "[0]", "[1]", "[1]", "[2]", "[2]"})
	same(t, "no such trace", traces("dd"), []string{})
	same(t, "no trace", traces(), []string{})
	same(t, "logs of a trace", read(func() ([][]byte, error) { return s.TraceChunks(ctx, []string{"aa"}, session.ChunkLogs) }), []string{})
	if _, _, err := s.Delete(ctx, []string{"x"}); err != nil {
		t.Fatal(err)
	}
	same(t, "spans of y after x was deleted", of("y", session.ChunkSpans), []string{"[1]"})
	same(t, "spans of a trace after x was deleted", traces("bb"), []string{"[0]", "[1]", "[2]"})
}

func silent(t *testing.T, s sessionStore) {
	active := func(id string, last time.Duration) {
		s.put(id, func(r *session.Record) {
			r.Session.EndedAt = time.Time{}
			r.Session.FirstSignalAt, r.Session.LastSignalAt = sessionNoon.Add(last-time.Hour), sessionNoon.Add(last)
		})
	}
	active("old", 0)
	active("R:J", time.Second)
	active("young", 2*time.Second)
	s.put("ended", func(r *session.Record) { r.Session.LastSignalAt = sessionNoon.Add(-time.Hour) })
	find := func(notAfter time.Duration, limit int, want ...string) {
		t.Helper()
		keys, err := s.Silent(t.Context(), sessionNoon.Add(notAfter), limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range keys {
			if k != exactly(k.Room) {
				t.Errorf("%+v does not name a session exactly", k)
			}
			got = append(got, k.Room)
		}
		slices.Sort(got)
		if len(want) > limit {
			if len(got) != limit {
				t.Errorf("%d of at most %d", len(got), limit)
			}
			return
		}
		same(t, fmt.Sprint("silent since ", notAfter), got, want)
	}
	find(-time.Microsecond, 10)
	find(0, 10, "old")
	find(time.Second-time.Microsecond, 10, "old")
	find(time.Second, 10, "R:J", "old")
	find(time.Hour, 10, "R:J", "old", "young")
	find(time.Hour, 2, "R:J", "old", "young")
	s.put("old", nil)
	find(time.Second, 10, "R:J")
}

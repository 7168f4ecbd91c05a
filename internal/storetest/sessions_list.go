package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sidetone/internal/session"
)

// randomSession draws from few values, so that there are many ties.
func randomSession(r *rand.Rand) *session.Record {
	pick := func(ss ...string) string { return ss[r.IntN(len(ss))] }
	return newRecord(func(rec *session.Record) {
		ss := &rec.Session
		ss.AccountID, ss.AgentID, ss.AgentName = pick("", "a1", "a2", "a3"), pick("", "g1", "g2"), pick("", "Ann", "ann")
		ss.Transport, ss.Outcome = pick("", "sip", "webrtc"), pick("", "success", "fail")
		ss.StartedAt = sessionNoon.Add(time.Duration(r.IntN(5)) * time.Second)
		if r.IntN(6) == 0 {
			ss.StartedAt = time.Time{}
		}
		ss.FirstSignalAt = sessionNoon.Add(time.Duration(r.IntN(4)) * time.Minute)
		ss.EndedAt = sessionNoon.Add(time.Duration(r.IntN(6)) * time.Hour)
		if r.IntN(5) == 0 {
			ss.EndedAt = time.Time{}
		}
		if r.IntN(4) > 0 {
			ms := int64(r.IntN(4) * 1000)
			ss.DurationMS = &ms
		}
		if r.IntN(2) == 0 {
			ss.Recording = &session.Recording{Key: "k", Size: 1, SHA256: "s"}
		}
		ss.EvalFailCount = max(0, r.IntN(4)-1)
		for range r.IntN(4) {
			rec.Words = strings.TrimSpace(rec.Words + " " + pick("refund", "order", "返", "金"))
		}
	})
}

// fillRandomly stores n random sessions and returns what they are, in the order in which they were stored.
func (s sessionStore) fillRandomly(r *rand.Rand, n int) []*session.Record {
	s.t.Helper()
	out := make([]*session.Record, n)
	for i := range out {
		out[i] = randomSession(r)
		out[i].Session.ID = fmt.Sprintf("s%04d", i)
		s.apply(replacing(exactly(out[i].Session.ID), out[i]))
	}
	return out
}

// listOrder is newest end first, active sessions before all, those by their first signal.
func listOrder(a, b *session.Session) int {
	active := func(s *session.Session) int {
		if s.EndedAt.IsZero() {
			return 0
		}
		return 1
	}
	at := func(s *session.Session) time.Time {
		if s.EndedAt.IsZero() {
			return s.FirstSignalAt
		}
		return s.EndedAt
	}
	return cmp.Or(active(a)-active(b), at(b).Compare(at(a)))
}

func sessionPages(t *testing.T, s sessionStore) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 97
	s.fillRandomly(r, n)
	for _, f := range []session.Filter{{}, {AccountIDs: []string{"a1", "a2"}}, {State: session.StateEnded}, {Search: session.ParseQuery("refund")}, {AgentIDs: []string{"none"}}} {
		all, total := s.list(f, session.Page{Limit: 1000})
		if total != len(all) {
			t.Errorf("%+v: total %d, rows %d", f, total, len(all))
		}
		for i := 1; i < len(all); i++ {
			if listOrder(&all[i-1].Session, &all[i].Session) > 0 {
				t.Errorf("%s (%v) comes before %s (%v)", all[i-1].Session.ID, all[i-1].Session.EndedAt, all[i].Session.ID, all[i].Session.EndedAt)
			}
		}
		for _, limit := range []int{1, 7, 20, 48, 49, n} {
			var paged []string
			for offset := 0; offset < total+2*limit; offset += limit {
				rows, got := s.list(f, session.Page{Limit: limit, Offset: offset})
				if got != total || len(rows) > limit || len(rows) < min(limit, total-offset) {
					t.Fatalf("offset %d limit %d: %d rows of %d", offset, limit, len(rows), got)
				}
				for _, row := range rows {
					paged = append(paged, row.Session.ID)
				}
			}
			for i := range all {
				if i >= len(paged) || paged[i] != all[i].Session.ID {
					t.Fatalf("pages of %d: row %d differs", limit, i)
				}
			}
			if len(paged) != total {
				t.Errorf("pages of %d hold %d rows of %d", limit, len(paged), total)
			}
		}
		// Any window agrees with the whole, whichever end it is reached from.
		for range 60 {
			p := session.Page{Limit: 1 + r.IntN(20), Offset: r.IntN(total + 3)}
			rows, _ := s.list(f, p)
			for i, row := range rows {
				if row.Session.ID != all[p.Offset+i].Session.ID {
					t.Fatalf("%+v: row %d is %s, want %s", p, i, row.Session.ID, all[p.Offset+i].Session.ID)
				}
			}
		}
	}
	if rows, total := s.list(session.Filter{}, session.Page{Limit: 20, Offset: 1 << 62}); len(rows) != 0 || total != n {
		t.Errorf("far behind the end: %d rows of %d", len(rows), total)
	}
}

// selects is the meaning of a filter.
func selects(f *session.Filter, rec *session.Record) bool {
	ss := &rec.Session
	anyOf := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	ok := anyOf(f.AccountIDs, ss.AccountID) && anyOf(f.AgentIDs, ss.AgentID) && anyOf(f.AgentNames, ss.AgentName) &&
		anyOf(f.Transports, ss.Transport) && anyOf(f.Outcomes, ss.Outcome)
	if !f.StartedFrom.IsZero() {
		ok = ok && !ss.StartedAt.IsZero() && !ss.StartedAt.Before(f.StartedFrom)
	}
	if !f.StartedTo.IsZero() {
		ok = ok && !ss.StartedAt.IsZero() && !ss.StartedAt.After(f.StartedTo)
	}
	ok = ok && (f.State == "" || f.State == ss.State())
	ok = ok && (f.HasRecording == nil || *f.HasRecording == (ss.Recording != nil))
	ok = ok && (f.HasFailedEval == nil || *f.HasFailedEval == (ss.EvalFailCount > 0))
	ok = ok && (f.MinDurationMS == nil || ss.DurationMS != nil && *ss.DurationMS >= *f.MinDurationMS)
	ok = ok && (f.MaxDurationMS == nil || ss.DurationMS != nil && *ss.DurationMS <= *f.MaxDurationMS)
	return ok && f.Search.Matches(rec.Words)
}

// filterParts are the ways in which a filter can be narrowed, one at a time.
func filterParts(r *rand.Rand) []func(*session.Filter) {
	some := func(ss ...string) []string {
		n := 1 + r.IntN(len(ss))
		r.Shuffle(len(ss), func(i, j int) { ss[i], ss[j] = ss[j], ss[i] })
		return ss[:n]
	}
	flag := func() *bool { b := r.IntN(2) == 0; return &b }
	ms := func() *int64 { v := int64(r.IntN(5)*1000 - r.IntN(2)); return &v }
	at := func() time.Time { return sessionNoon.Add(time.Duration(r.IntN(6)) * time.Second) }
	return []func(*session.Filter){
		func(f *session.Filter) { f.AccountIDs = some("a1", "a2", "nobody") },
		func(f *session.Filter) { f.AgentIDs = some("g1", "g2", "nobody") },
		func(f *session.Filter) { f.AgentNames = some("Ann", "ann") },
		func(f *session.Filter) { f.Transports = some("sip", "webrtc") },
		func(f *session.Filter) { f.Outcomes = some("success", "fail") },
		func(f *session.Filter) { f.StartedFrom = at() },
		func(f *session.Filter) { f.StartedTo = at() },
		func(f *session.Filter) { f.State = some(session.StateActive, session.StateEnded)[0] },
		func(f *session.Filter) { f.HasRecording = flag() },
		func(f *session.Filter) { f.HasFailedEval = flag() },
		func(f *session.Filter) { f.MinDurationMS = ms() },
		func(f *session.Filter) { f.MaxDurationMS = ms() },
		func(f *session.Filter) {
			f.Search = session.ParseQuery(some("refund", "-refund", "返金", `"order refund"`, "ord*", "-返", "refund -order")[0])
		},
	}
}

func sessionFilters(t *testing.T, s sessionStore) {
	r := rand.New(rand.NewPCG(3, 4))
	stored := s.fillRandomly(r, 150)
	// Equal keys of the order come newest first, as they do without a filter.
	order := map[string]int{}
	for i, id := range s.ids(session.Filter{}) {
		order[id] = i
	}
	check := func(f session.Filter) {
		t.Helper()
		want := []string{}
		for _, rec := range stored {
			if selects(&f, rec) {
				want = append(want, rec.Session.ID)
			}
		}
		slices.SortFunc(want, func(a, b string) int { return order[a] - order[b] })
		if got := s.ids(f); !slices.Equal(got, want) {
			t.Errorf("%+v selects %v, want %v", f, got, want)
		}
	}
	for range 8 {
		for _, part := range filterParts(r) {
			var f session.Filter
			part(&f)
			check(f)
		}
	}
	for range 150 {
		var f session.Filter
		parts := filterParts(r)
		for range 2 + r.IntN(3) {
			parts[r.IntN(len(parts))](&f)
		}
		check(f)
	}
}

func startedEdges(t *testing.T, s sessionStore) {
	at := sessionNoon
	s.put("known", func(r *session.Record) { r.Session.StartedAt = at })
	s.put("unknown", nil)
	for _, c := range []struct {
		name string
		f    session.Filter
		want bool
	}{
		{"from its start", session.Filter{StartedFrom: at}, true},
		{"from just after", session.Filter{StartedFrom: at.Add(time.Microsecond)}, false},
		{"to its start", session.Filter{StartedTo: at}, true},
		{"to just before", session.Filter{StartedTo: at.Add(-time.Microsecond)}, false},
		{"exactly", session.Filter{StartedFrom: at, StartedTo: at}, true},
		{"in another zone", session.Filter{StartedFrom: at.In(time.FixedZone("", 3600))}, true},
		{"from before 1970", session.Filter{StartedFrom: time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)}, true},
		{"to the year 9999", session.Filter{StartedTo: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}, true},
		{"to the year 1", session.Filter{StartedTo: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)}, false},
	} {
		want := []string{}
		if c.want {
			want = []string{"known"}
		}
		same(t, c.name, s.ids(c.f), want)
	}
}

// freshCounts lists and writes in turns, through two stores: a remembered count must never outlive a commit.
func freshCounts(t *testing.T, s sessionStore) {
	stores := []sessionStore{s, {t, s.again(), s.again}}
	filters := []session.Filter{{}, {AccountIDs: []string{"a"}}, {Search: session.ParseQuery("word")}}
	for i := range 12 {
		id := fmt.Sprintf("s%d", i)
		for _, reader := range stores { // remembers
			for _, f := range filters {
				reader.ids(f)
			}
		}
		stores[i%2].put(id, func(r *session.Record) { r.Session.AccountID, r.Words = "a", "word" })
		for k, reader := range stores {
			for _, f := range filters {
				if n := len(reader.ids(f)); n != i+1 {
					t.Fatalf("store %d counts %d of %d after store %d wrote", k, n, i+1, i%2)
				}
			}
		}
	}
	if _, _, err := stores[0].Delete(t.Context(), []string{"s3", "s4"}); err != nil {
		t.Fatal(err)
	}
	for k, reader := range stores {
		if n := len(reader.ids(filters[1])); n != 10 {
			t.Errorf("store %d counts %d after two of twelve were deleted", k, n)
		}
	}
}

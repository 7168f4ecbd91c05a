package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/eval"
	"sidetone/internal/session"
)

// putSession stores a session that ended at noon, whatever is there.
func (s AlertStores) putSession(id string, edit func(*session.Record)) error {
	r := &session.Record{Docs: map[session.DocKind][]byte{}}
	r.Session.EndedAt, r.Session.CreatedAt, r.Session.FirstSignalAt, r.Session.LastSignalAt = alertNoon, alertNoon, alertNoon, alertNoon
	edit(r)
	_, err := s.Sessions.Apply(context.Background(), session.Change{Key: session.Key{Room: id, Exact: true}, Fresh: r,
		Merge: func(session.Prior) (*session.Record, error) { return r, nil }})
	return err
}

func (s alertStore) put(id string, edit func(*session.Record)) {
	s.t.Helper()
	if err := s.putSession(id, edit); err != nil {
		s.t.Fatal(err)
	}
}

func (s AlertStores) post(at time.Time, body string) error {
	_, err := eval.NewService(s.Evals, evalPrice).Ingest(context.Background(), []byte(body), at)
	return err
}

// facts is what a follower of the facts knows.
type facts struct {
	sessions map[int64]alert.SessionFacts
	verdicts map[string][]alert.VerdictFacts // by owner
	outcomes map[int64]alert.OutcomeFacts
	marks    [3]alert.Mark
}

func newFacts() *facts {
	return &facts{sessions: map[int64]alert.SessionFacts{}, verdicts: map[string][]alert.VerdictFacts{}, outcomes: map[int64]alert.OutcomeFacts{}}
}

func owner(source string, num int64) string { return fmt.Sprintf("%s %020d", source, num) }

// read takes in what the window of q holds, or, when since is set, what changed since the last read.
func (f *facts) read(ctx context.Context, s alert.FactStore, q alert.FactQuery, since bool) (err error) {
	of := func(i int) alert.FactQuery {
		if since {
			return alert.FactQuery{Since: f.marks[i]}
		}
		return q
	}
	active := false
	f.marks[0], err = s.SessionFacts(ctx, of(0), func(v alert.SessionFacts) {
		for _, list := range []*[]float64{&v.Perceived, &v.TTFT, &v.TTFB, &v.STT} {
			*list = append([]float64(nil), *list...) // the store may use it again
		}
		if f.sessions[v.Num] = v; v.EndedAt == 0 {
			delete(f.sessions, v.Num)
			active = true
		}
	})
	if err != nil {
		return err
	}
	if active && !since {
		return errors.New("a window holds a session that goes on")
	}
	replaced := map[string]bool{}
	f.marks[1], err = s.VerdictFacts(ctx, of(1), func(v alert.VerdictFacts) {
		if v.LastOwner > v.Owner {
			for key := range f.verdicts {
				if key >= owner(v.Source, v.Owner) && key <= owner(v.Source, v.LastOwner) {
					delete(f.verdicts, key)
				}
			}
			return
		}
		key := owner(v.Source, v.Owner)
		if !replaced[key] {
			delete(f.verdicts, key)
			replaced[key] = true
		}
		if v.Verdict != "" {
			f.verdicts[key] = append(f.verdicts[key], v)
		}
	})
	if err != nil {
		return err
	}
	f.marks[2], err = s.OutcomeFacts(ctx, of(2), func(v alert.OutcomeFacts) {
		if f.outcomes[v.Num] = v; v.Outcome == "" {
			delete(f.outcomes, v.Num)
		}
	})
	return err
}

// everythingSince is a window without an end.
func everythingSince(us int64) alert.FactQuery {
	return alert.FactQuery{After: us, Until: math.MaxInt64}
}

func (s alertStore) facts(q alert.FactQuery) *facts {
	s.t.Helper()
	f := newFacts()
	if err := f.read(s.t.Context(), s.Alerts, q, false); err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s alertStore) follow(f *facts) {
	s.t.Helper()
	if err := f.read(s.t.Context(), s.Alerts, alert.FactQuery{}, true); err != nil {
		s.t.Fatal(err)
	}
}

// bySession are the session facts without our numbers, in order of id.
func (f *facts) bySession() []alert.SessionFacts {
	var out []alert.SessionFacts
	for _, v := range f.sessions {
		v.Num = 0
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b alert.SessionFacts) int { return cmp.Compare(a.SessionID, b.SessionID) })
	return out
}

// text is the verdicts without our numbers, each as "source agent account judge verdict", with seconds after noon.
func (f *facts) text() []string {
	var out []string
	for _, list := range f.verdicts {
		for _, v := range list {
			out = append(out, fmt.Sprintf("%s %s %s %s %s %v", v.Source, v.Agent, v.Account, v.Judge, v.Verdict, time.UnixMicro(v.At).Sub(alertNoon)))
		}
	}
	for _, v := range f.outcomes {
		out = append(out, fmt.Sprintf("outcome %s %s %s %v", v.Agent, v.Account, v.Outcome, time.UnixMicro(v.At).Sub(alertNoon)))
	}
	slices.Sort(out)
	return out
}

func sessionFacts(t *testing.T, s alertStore) {
	s.put("full ü", func(r *session.Record) {
		r.Session.AgentID, r.Session.AccountID = "agent ü", "account"
		r.Facts = session.TurnFacts{AssistantTurns: 7, InterruptedTurns: 2, Perceived: []float64{800.4, 1}, TTFT: []float64{0.001}, TTFB: []float64{3, 4, 5}, STT: []float64{86400000}}
	})
	s.put("plain", func(r *session.Record) { r.Session.EndedAt = alertNoon.Add(time.Second) })
	active := func(r *session.Record) { r.Session.EndedAt, r.Facts.Perceived = time.Time{}, []float64{9} }
	s.put("active", active)
	want := []alert.SessionFacts{{Num: 1, SessionID: "full ü", EndedAt: alertNoon.UnixMicro(), Agent: "agent ü", Account: "account", AssistantTurns: 7, InterruptedTurns: 2,
		Perceived: []float64{800.4, 1}, TTFT: []float64{0.001}, TTFB: []float64{3, 4, 5}, STT: []float64{86400000}}}
	noZero(t, want[0])
	want[0].Num = 0
	want = append(want, alert.SessionFacts{SessionID: "plain", EndedAt: alertNoon.Add(time.Second).UnixMicro()})
	f := s.facts(everythingSince(0))
	same(t, "read", f.bySession(), want)
	s.follow(f)
	same(t, "nothing changed", f.bySession(), want)

	// The active one ends, an ended one goes on.
	s.put("active", func(r *session.Record) { r.Facts.Perceived = []float64{9} })
	s.put("full ü", active)
	want = []alert.SessionFacts{{SessionID: "active", EndedAt: alertNoon.UnixMicro(), Perceived: []float64{9}}, want[1]}
	s.follow(f)
	same(t, "followed", f.bySession(), want)
	same(t, "read again", s.facts(everythingSince(0)).bySession(), want)
}

func verdictFacts(t *testing.T, s alertStore) {
	at := func(sec int) time.Time { return alertNoon.Add(time.Duration(sec) * time.Second) }
	judged := func(ended bool, vs ...session.Verdict) func(*session.Record) {
		return func(r *session.Record) {
			r.Session.AgentID, r.Session.AccountID, r.Verdicts = "a", "x", vs
			if !ended {
				r.Session.EndedAt = time.Time{}
			}
		}
	}
	s.put("s", judged(true, session.Verdict{Judge: `J "ü" \ </>`, Verdict: "fail", At: at(1)}, session.Verdict{Verdict: "päss", At: at(2)}, session.Verdict{Judge: "none", At: at(3)}))
	s.put("active", judged(false, session.Verdict{Judge: "j", Verdict: "fail", At: at(1)}))
	s.put("without", func(*session.Record) {})
	post := func(sec int, body string) {
		t.Helper()
		if err := s.post(at(sec), body); err != nil {
			t.Fatal(err)
		}
	}
	post(4, evalBody(1, `"status":"running"`, evalCase(1, "passed", `"judgments":[{"judge_name":"Tone","verdict":"fail"},{"verdict":"pass"}]`), evalCase(2, "passed", "")))
	f := s.facts(everythingSince(0))
	same(t, "read", f.text(), []string{"runs    pass 4s", "runs   Tone fail 4s", `sessions a x  päss 2s`, `sessions a x J "ü" \ </> fail 1s`})
	post(5, evalBody(1, `"status":"running","agent_id":"b","account_id":"y"`, evalCase(2, "failed", `"finished_at":9,"judgments":[{"name":"n","verdict":"fail"}]`)))
	s.put("active", judged(true, session.Verdict{Judge: "j", Verdict: "fail", At: at(1)}))
	s.put("s", judged(true, session.Verdict{Judge: "only", Verdict: "pass", At: at(6)}))
	want := []string{"runs b y  pass 4s", "runs b y Tone fail 4s", "runs b y n fail 5s", "sessions a x j fail 1s", "sessions a x only pass 6s"}
	s.follow(f)
	same(t, "followed", f.text(), want)
	same(t, "read again", s.facts(everythingSince(0)).text(), want)
	post(7, evalBody(1, `"status":"running"`, evalCase(2, "passed", `"finished_at":10`)))
	s.put("s", judged(true))
	want = []string{"runs b y  pass 4s", "runs b y Tone fail 4s", "sessions a x j fail 1s"}
	s.follow(f)
	same(t, "taken back", f.text(), want)
}

func outcomeFacts(t *testing.T, s alertStore) {
	ended := func(outcome string, at time.Time) func(*session.Record) {
		return func(r *session.Record) {
			r.Session.AgentID, r.Session.AccountID, r.Session.Outcome, r.OutcomeAt = "a", "x", outcome, at
		}
	}
	s.put("s", ended("lk.fail", alertNoon))
	s.put("without", func(*session.Record) {})
	s.put("active", func(r *session.Record) { ended("fail", alertNoon)(r); r.Session.EndedAt = time.Time{} })
	f := s.facts(everythingSince(0))
	same(t, "read", f.text(), []string{"outcome a x lk.fail 0s"})
	s.put("active", ended("fail", alertNoon))
	s.put("s", ended("ünknown", alertNoon.Add(time.Second)))
	want := []string{"outcome a x fail 0s", "outcome a x ünknown 1s"}
	s.follow(f)
	same(t, "followed", f.text(), want)
	same(t, "read again", s.facts(everythingSince(0)).text(), want)
	s.put("s", ended("", time.Time{}))
	s.follow(f)
	same(t, "taken back", f.text(), want[:1])
}

// factEdges checks > start and <= end, by the time that each kind of fact goes by.
func factEdges(t *testing.T, s alertStore) {
	start, end := alertNoon.Add(-time.Hour), alertNoon
	moments := []time.Time{start.Add(-time.Microsecond), start, start.Add(time.Microsecond), end, end.Add(time.Microsecond)}
	for i, at := range moments {
		s.put(fmt.Sprint("s", i), func(r *session.Record) {
			r.Session.EndedAt, r.OutcomeAt, r.Session.Outcome = at, moments[4-i], "fail"
			r.Verdicts = []session.Verdict{{Judge: "all", Verdict: "pass", At: at}, {Judge: "late", Verdict: "fail", At: end.Add(time.Hour)}}
		})
		if err := s.post(at, evalBody(i, "", evalCase(i, "passed", `"judgments":[{"judge_name":"j","verdict":"pass"}]`))); err != nil {
			t.Fatal(err)
		}
	}
	inWindow := func(us int64) bool { return us > start.UnixMicro() && us <= end.UnixMicro() }
	f := s.facts(alert.FactQuery{After: start.UnixMicro(), Until: end.UnixMicro()})
	n := [4]int{}
	for _, v := range f.sessions {
		if inWindow(v.EndedAt) {
			n[0]++
		}
	}
	for _, list := range f.verdicts {
		for _, v := range list {
			if inWindow(v.At) && v.Source == alert.SourceSessions {
				n[1]++
			} else if inWindow(v.At) {
				n[2]++
			}
		}
	}
	for _, v := range f.outcomes {
		if inWindow(v.At) {
			n[3]++
		}
	}
	if n != [4]int{2, 2, 2, 2} {
		t.Errorf("in the window are %v sessions, verdicts of sessions, of runs, outcomes; want two of each", n)
	}
}

func deletedFacts(t *testing.T, s alertStore) {
	for _, id := range []string{"kept", "first", "second"} {
		s.put(id, func(r *session.Record) {
			r.OutcomeAt, r.Session.Outcome, r.Verdicts = alertNoon, "fail", []session.Verdict{{Judge: id, Verdict: "pass", At: alertNoon}}
		})
	}
	for n := range 3 {
		if err := s.post(alertNoon, evalBody(n, "", evalCase(n, "passed", `"judgments":[{"judge_name":"j","verdict":"pass"}]`))); err != nil {
			t.Fatal(err)
		}
	}
	f := s.facts(everythingSince(0))
	check := func(sessions, verdicts int) {
		t.Helper()
		s.follow(f)
		if len(f.sessions) != sessions || len(f.outcomes) != sessions || len(f.verdicts) != verdicts {
			t.Errorf("%d sessions, %d outcomes, %d with verdicts; want %d and %d", len(f.sessions), len(f.outcomes), len(f.verdicts), sessions, verdicts)
		}
	}
	// The newest go first: no mark may come twice because its row is gone.
	for i, step := range []func() error{
		func() error { _, err := s.Evals.Delete(t.Context(), []string{evalID(2)}); return err },
		func() error { _, err := s.Evals.Delete(t.Context(), []string{evalID(1)}); return err },
		func() error { _, _, err := s.Sessions.Delete(t.Context(), []string{"second"}); return err },
		func() error { _, _, err := s.Sessions.Delete(t.Context(), []string{"first"}); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		check(3-max(0, i-1), 5-i)
	}
	s.put("first", func(*session.Record) {})
	check2 := s.facts(everythingSince(0))
	s.follow(f)
	same(t, "come again", f, withMarks(check2, f))
}

// withMarks is f with the marks of another: they need not agree.
func withMarks(f, of *facts) *facts {
	f.marks = of.marks
	return f
}

// followFacts reads changes while several writers on two stores change and delete, and ends up with what a fresh read
// gives.
func followFacts(t *testing.T, s alertStore) {
	const writers, changes = 6, 40
	f := s.facts(everythingSince(0))
	other := newFacts()
	if err := other.read(t.Context(), s.Alerts, everythingSince(0), false); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	read := make(chan error)
	reads := 0
	go func() {
		for {
			reads++
			if err := f.read(context.Background(), s.Alerts, alert.FactQuery{}, true); err != nil {
				read <- err
				return
			}
			select {
			case <-done:
				read <- nil
				return
			default:
			}
		}
	}()
	s.together(writers, func(store AlertStores, g int) error {
		rnd := rand.New(rand.NewPCG(uint64(g), 7))
		for range changes {
			id, n := fmt.Sprint("s", rnd.IntN(12)), rnd.IntN(6)
			var err error
			switch rnd.IntN(12) {
			case 0:
				_, _, err = store.Sessions.Delete(context.Background(), []string{id, fmt.Sprint("s", rnd.IntN(12))})
			case 1:
				_, err = store.Evals.Delete(context.Background(), []string{evalID(n)})
			case 2, 3, 4, 5:
				err = store.post(alertNoon.Add(time.Duration(rnd.IntN(1000))*time.Second), evalBody(n, fmt.Sprintf(`"agent_id":"a%d"`, rnd.IntN(3)),
					evalCase(rnd.IntN(4), "passed", fmt.Sprintf(`"finished_at":%d,"judgments":[{"judge_name":"j%d","verdict":"pass"}]`, rnd.IntN(1000), rnd.IntN(3)))))
			default:
				err = store.putSession(id, func(r *session.Record) {
					r.Session.AgentID, r.Facts.Perceived = fmt.Sprint("a", rnd.IntN(3)), []float64{float64(rnd.IntN(1000))}
					r.Session.EndedAt = alertNoon.Add(time.Duration(rnd.IntN(1000)) * time.Second)
					if rnd.IntN(4) == 0 {
						r.Session.EndedAt = time.Time{}
					}
					if rnd.IntN(2) == 0 {
						r.Session.Outcome, r.OutcomeAt = fmt.Sprint("o", rnd.IntN(9)), alertNoon
						r.Verdicts = []session.Verdict{{Judge: fmt.Sprint("j", rnd.IntN(9)), Verdict: "fail", At: alertNoon}}
					}
				})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	close(done)
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	want := s.facts(everythingSince(0))
	s.follow(f)
	same(t, "followed", f, withMarks(want, f))
	s.follow(other)
	same(t, "followed in one step", other, withMarks(want, other))
	if reads < 2 || len(want.sessions) == 0 || len(want.verdicts) == 0 || len(want.outcomes) == 0 {
		t.Errorf("%d reads while writing, %d sessions, %d with verdicts, %d outcomes", reads, len(want.sessions), len(want.verdicts), len(want.outcomes))
	}
}

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/errs"
	"sidetone/internal/pgtest"
	"sidetone/internal/session"
	"sidetone/internal/storetest"
	"sidetone/internal/webhook"
)

func TestAlertStore(t *testing.T) {
	for engine, database := range evalEngines {
		t.Run(engine, func(t *testing.T) {
			storetest.RunAlerts(t, func(t *testing.T) func() storetest.AlertStores {
				open := database(t)
				return func() storetest.AlertStores {
					s := open()
					return storetest.AlertStores{Alerts: s.Alerts(), Sessions: s, Evals: s.Evals()}
				}
			})
		})
	}
}

// endedSession is a change that stores a session which ended at evalStart; merge is called inside the transaction.
func endedSession(id string, merge func()) session.Change {
	rec := &session.Record{Docs: map[session.DocKind][]byte{}}
	rec.Session.EndedAt, rec.Session.CreatedAt, rec.Session.FirstSignalAt = evalStart, evalStart, evalStart
	rec.Session.Outcome, rec.OutcomeAt = "fail", evalStart
	rec.Verdicts = []session.Verdict{{Judge: "j", Verdict: "fail", At: evalStart}}
	return session.Change{Key: session.Key{Room: id, Exact: true}, Fresh: rec,
		Merge: func(session.Prior) (*session.Record, error) { merge(); return rec, nil }}
}

// Transactions commit out of order on PostgreSQL: what began before a read and commits after it must come with the next
// one, whatever committed and was read in between.
func TestFactsOfTransactionsThatCommitLate(t *testing.T) {
	open := func(url string) *Store { return openForTest(t, "postgres", "", url) }
	url := pgtest.URL(t)
	slow, quick := open(url), open(url)
	ctx := t.Context()
	apply := func(s *Store, id string, merge func()) {
		t.Helper()
		if _, err := s.Apply(ctx, endedSession(id, merge)); err != nil {
			t.Fatal(err)
		}
	}
	apply(slow, "changed late", func() {})
	apply(quick, "deleted", func() {})

	seen := map[string]bool{}
	reads := []struct {
		kind string
		read func(q alert.FactQuery) (alert.Mark, error)
		mark alert.Mark
	}{
		{"session", func(q alert.FactQuery) (alert.Mark, error) {
			return quick.Alerts().SessionFacts(ctx, q, func(f alert.SessionFacts) { seen[fmt.Sprint("session ", f.Num, f.EndedAt != 0)] = true })
		}, 0},
		{"verdict", func(q alert.FactQuery) (alert.Mark, error) {
			return quick.Alerts().VerdictFacts(ctx, q, func(f alert.VerdictFacts) { seen[fmt.Sprint("verdict ", f.Owner, f.Verdict != "")] = true })
		}, 0},
		{"outcome", func(q alert.FactQuery) (alert.Mark, error) {
			return quick.Alerts().OutcomeFacts(ctx, q, func(f alert.OutcomeFacts) { seen[fmt.Sprint("outcome ", f.Num, f.Outcome != "")] = true })
		}, 0},
	}
	read := func(since bool, want ...string) {
		t.Helper()
		clear(seen)
		for i := range reads {
			q := alert.FactQuery{Until: 1 << 60}
			if since {
				q = alert.FactQuery{Since: reads[i].mark}
			}
			mark, err := reads[i].read(q)
			if err != nil || mark < reads[i].mark {
				t.Fatalf("%s: mark %d after %d, %v", reads[i].kind, mark, reads[i].mark, err)
			}
			reads[i].mark = mark
			for _, w := range want {
				if w = reads[i].kind + " " + w; !seen[w] {
					t.Errorf("%s is missing among %v", w, seen)
				}
			}
		}
	}
	num := func(id string) (n int64) {
		t.Helper()
		if err := quick.r.QueryRow(`SELECT num FROM sessions WHERE id = $1`, id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	late, gone := fmt.Sprint(num("changed late")), fmt.Sprint(num("deleted"))
	read(false, late+" true", gone+" true")

	inside, release, committed := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := slow.Apply(ctx, endedSession("changed late", func() { close(inside); <-release }))
		committed <- err
	}()
	<-inside // the transaction has its mark
	apply(quick, "between", func() {})
	between := fmt.Sprint(num("between"))
	read(true, between+" true")
	if seen["session "+late+" true"] {
		t.Error("the change that has not committed was read")
	}
	if _, _, err := quick.Delete(ctx, []string{"deleted"}); err != nil {
		t.Fatal(err)
	}
	read(true, gone+" false")
	close(release)
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	read(true, late+" true")
	read(true)
	for what := range seen {
		t.Errorf("%s came again though nothing is left open", what)
	}
}

// Rows of a dump carry marks of the database that was dumped. They are read by window, not again at every tick.
func TestFactsOfAnotherDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *Store) {
		s := migrated(t, open())
		if _, err := s.Apply(t.Context(), endedSession("s", nil)); err != nil {
			t.Fatal(err)
		}
		n := 0
		read := func(q alert.FactQuery) alert.Mark {
			t.Helper()
			n = 0
			mark, err := s.Alerts().SessionFacts(t.Context(), q, func(alert.SessionFacts) { n++ })
			if err != nil {
				t.Fatal(err)
			}
			return mark
		}
		mark := read(alert.FactQuery{Until: 1 << 60})
		if s.d.changeHorizon != s.d.changeLimit { // where marks come from elsewhere than the rows
			if _, err := s.w.Exec(`UPDATE sessions SET change = change + 1000000`); err != nil {
				t.Fatal(err)
			}
		}
		if read(alert.FactQuery{Until: 1 << 60}); n != 1 {
			t.Errorf("%d by window", n)
		}
		if mark = read(alert.FactQuery{Since: mark}); n != 0 {
			t.Errorf("%d by mark", n)
		}
		if _, err := s.Apply(t.Context(), endedSession("s", func() {})); err != nil {
			t.Fatal(err)
		}
		if read(alert.FactQuery{Since: mark}); n != 1 {
			t.Errorf("%d by mark after a change", n)
		}
		if _, err := s.Alerts().SessionFacts(t.Context(), alert.FactQuery{Since: mark + 1<<40}, func(alert.SessionFacts) {}); !errs.Is(err, errs.Unavailable) {
			t.Errorf("a mark of the future: %v", err)
		}
	})
}

// Every query of a tick and of deliveries must find its rows by an index.
func TestAlertQueriesUseIndexes(t *testing.T) {
	s := openForTest(t, "sqlite", t.TempDir()+"/x.db", "")
	for query, index := range map[string]string{
		sessionFactWindow:               "sessions_list",
		sessionFactChanges:              "sessions_change session_deletions_change",
		verdictWindow:                   "sessions_verdict eval_cases_verdict",
		verdictChanges:                  "sessions_change session_deletions_change eval_cases_change eval_deletions_change",
		outcomeWindow:                   "sessions_outcome",
		outcomeChanges:                  "sessions_change session_deletions_change",
		candidates:                      "alert_firings_due",
		nextDue:                         "alert_firings_due",
		attemptSums:                     "alert_webhook_attempts_time",
		ruleSelect + " WHERE r.id = $1": "sqlite_autoindex_alert_rules_1",
		firingSelect + " WHERE rule_id = $1 ORDER BY created_at DESC, id LIMIT 5": "alert_firings_rule",
	} {
		rows, err := s.r.Query("EXPLAIN QUERY PLAN "+query, 1, 2)
		if err != nil {
			t.Fatal(query, err)
		}
		var plan []string
		err = each(rows, func(r *sql.Rows) error {
			var id, parent, unused int
			var detail string
			err := r.Scan(&id, &parent, &unused, &detail)
			plan = append(plan, detail)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		for _, name := range strings.Fields(index) {
			if !strings.Contains(text, "INDEX "+name) {
				t.Errorf("%s\ndoes not use %s:\n%s", query, name, text)
			}
		}
		if strings.Contains(text, "SCAN sessions") || strings.Contains(text, "SCAN c") || strings.Contains(text, "SCAN alert_firings") && !strings.Contains(text, "USING") {
			t.Errorf("%s\nscans a table:\n%s", query, text)
		}
	}
}

// TestAlertsOfAClosedDatabase: whatever is asked of a store whose database is away, the answer is "try again".
func TestAlertsOfAClosedDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *Store) {
		s := migrated(t, open())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		a, ctx, page := s.Alerts(), t.Context(), alert.Page{Limit: 1}
		for name, ask := range map[string]func() error{
			"CreateRule": func() error { return a.CreateRule(ctx, alert.Rule{ID: "r"}) },
			"Rule":       func() error { _, err := a.Rule(ctx, "r"); return err },
			"Rules":      func() error { _, _, err := a.Rules(ctx, alert.RuleFilter{}, page); return err },
			"UpdateRule": func() error {
				_, err := a.UpdateRule(ctx, "r", func(r alert.Rule) (alert.Rule, error) { return r, nil })
				return err
			},
			"DeleteRule":    func() error { return a.DeleteRule(ctx, "r") },
			"SweepRules":    func() error { _, err := a.SweepRules(ctx); return err },
			"SaveStatuses":  func() error { return a.SaveStatuses(ctx, []alert.Status{{RuleID: "r"}}) },
			"Fire":          func() error { _, err := a.Fire(ctx, []alert.Fire{{Rule: &alert.Rule{ID: "r"}}}, testNow); return err },
			"Firings":       func() error { _, _, err := a.Firings(ctx, "r", page); return err },
			"Redeliver":     func() error { _, err := a.Redeliver(ctx, "f", testNow); return err },
			"Queue":         func() error { _, err := a.Queue(ctx, testNow); return err },
			"ClaimDue":      func() error { _, err := a.ClaimDue(ctx, testNow, testNow, nil); return err },
			"NextDue":       func() error { _, err := a.NextDue(ctx, testNow); return err },
			"Record":        func() error { _, err := a.Record(ctx, []webhook.Outcome{{}}); return err },
			"RecordAttempt": func() error { return a.RecordAttempt(ctx, webhook.Attempt{}) },
			"Attempts":      func() error { _, _, err := a.Attempts(ctx, alert.AttemptFilter{}, page); return err },
			"AttemptStats":  func() error { _, err := a.AttemptStats(ctx, testNow, time.Hour); return err },
			"SessionFacts":  func() error { _, err := a.SessionFacts(ctx, alert.FactQuery{}, nil); return err },
			"VerdictFacts":  func() error { _, err := a.VerdictFacts(ctx, alert.FactQuery{}, nil); return err },
			"OutcomeFacts":  func() error { _, err := a.OutcomeFacts(ctx, alert.FactQuery{Since: 1}, nil); return err },
		} {
			if err := ask(); !errs.Is(err, errs.Unavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestPackedVerdictsRoundTrip(t *testing.T) {
	at := time.UnixMicro(1795262400000001)
	for _, vs := range [][]session.Verdict{nil, {{At: at}}, {{Judge: `a "b" \ <ü> ],[`, Verdict: "fäil\n", At: at}, {Judge: "x", Verdict: "]", At: at.Add(time.Second)}}} {
		packed, err := packVerdicts(vs)
		if err != nil {
			t.Fatal(err)
		}
		var got []session.Verdict
		if err := eachVerdict(packed, func(judge, verdict string, us int64) {
			got = append(got, session.Verdict{Judge: judge, Verdict: verdict, At: time.UnixMicro(us)})
		}); err != nil || fmt.Sprint(got) != fmt.Sprint(vs) {
			t.Errorf("%q is read as %v, %v", packed, got, err)
		}
	}
	for _, bad := range []string{"[", "]", "[]x", "[[]]", `["a"]`, `[["a"]]`, `[["a","b"]]`, `[["a","b",]]`, `[["a","b",1]`, `[["a","b",1.5]]`, `[["a\`, `[["a\x","b",1]]`, `[[1,"b",1]]`, "x"} {
		if err := eachVerdict(bad, func(string, string, int64) {}); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestParseSampleIsExact(t *testing.T) {
	texts := []string{"0", "0.001", "800.4", "999999999999999", "9007199254740993", "99999999999.999", "123456789012345.678", "1e3", "-1", "-0.5", "1.", ".5", "1.2345",
		"", ".", "1.2.3", "x", "1x", "x1", "NaN", "1,2"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		texts = append(texts, strconv.FormatFloat(float64(rnd.Int64N(1<<rnd.IntN(52)+1))/1000, 'f', -1, 64))
	}
	for _, text := range texts {
		want, err := strconv.ParseFloat(text, 64)
		if got, ok := parseSample(text); ok != (err == nil) || got != want && got == got {
			t.Errorf("%q is read as %v, %v; want %v, %v", text, got, ok, want, err)
		}
	}
}

// A rule whose stored headers are damaged is evaluated all the same, and its delivery fails with what is wrong.
func TestDamagedRule(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *Store) {
		s := migrated(t, open())
		if err := s.Alerts().CreateRule(t.Context(), alert.Rule{ID: "r", Enabled: true, WindowMinutes: 15, CreatedAt: testNow, UpdatedAt: testNow}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.w.Exec(`UPDATE alert_rules SET headers = '{'`); err != nil {
			t.Fatal(err)
		}
		rules, err := s.Alerts().SweepRules(t.Context())
		if err != nil || len(rules) != 1 || rules[0].WindowMinutes != 15 {
			t.Errorf("%+v, %v", rules, err)
		}
		if _, err := s.Alerts().Rule(t.Context(), "r"); err == nil || errs.KindOf(err) != errs.Internal {
			t.Errorf("read whole: %v", err)
		}
	})
}

// A row that cannot be read fails the whole read: half of the facts would be a wrong measurement.
func TestDamagedFacts(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *Store) {
		s := migrated(t, open())
		for _, id := range []string{"a", "b"} {
			if _, err := s.Apply(context.Background(), endedSession(id, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.w.Exec(`UPDATE sessions SET ttft = '[x]', verdicts = '[[' WHERE id = 'b'`); err != nil {
			t.Fatal(err)
		}
		q := alert.FactQuery{Until: 1 << 60}
		_, e1 := s.Alerts().SessionFacts(t.Context(), q, func(alert.SessionFacts) {})
		_, e2 := s.Alerts().VerdictFacts(t.Context(), q, func(alert.VerdictFacts) {})
		if e1 == nil || e2 == nil {
			t.Errorf("%v, %v", e1, e2)
		}
	})
}

// BenchmarkAlertWrites does what a tick and the deliveries write when 1,000 rules fire at once.
func BenchmarkAlertWrites(b *testing.B) {
	const n = 1000
	for _, engine := range []string{"sqlite", "postgres"} {
		path, url := filepath.Join(b.TempDir(), "writes.db"), ""
		if engine == "postgres" {
			path, url = "", pgtest.URL(b)
		}
		s, err := Open(engine, path, url, Observer{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Migrate(b.Context(), evalStart); err != nil {
			b.Fatal(err)
		}
		a, ctx, now := s.Alerts(), b.Context(), evalStart
		rules, statuses := make([]alert.Rule, n), make([]alert.Status, n)
		value := 0.5
		for i := range rules {
			id := webhook.NewID()
			rules[i] = alert.Rule{ID: id, Name: "rule", Enabled: true, WindowMinutes: 15, WebhookURL: "http://example.com", HTTPMethod: "POST", CreatedAt: now, UpdatedAt: now}
			statuses[i] = alert.Status{RuleID: id, Value: &value, Samples: 12, EvaluatedAt: now}
			if err := a.CreateRule(ctx, rules[i]); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(engine+"/statuses", func(b *testing.B) {
			for b.Loop() {
				if err := a.SaveStatuses(ctx, statuses); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(engine+"/firings", func(b *testing.B) {
			for b.Loop() {
				now = now.Add(time.Hour)
				var fires []alert.Fire
				for i := range rules {
					fires = append(fires, alert.Fire{Rule: &rules[i], Firing: alert.Firing{ID: webhook.NewID(), RuleID: rules[i].ID, Payload: make([]byte, 600),
						Status: webhook.Pending, NextAttemptAt: now, CreatedAt: now, UpdatedAt: now}})
				}
				for chunk := range slices.Chunk(fires, 100) {
					if won, err := a.Fire(ctx, chunk, now); err != nil || slices.Contains(won, false) {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(engine+"/claimed and delivered", func(b *testing.B) {
			for b.Loop() {
				now = now.Add(time.Hour)
				took := 0
				claimed, err := a.ClaimDue(ctx, now, now.Add(time.Minute), func(string) bool { took++; return took <= n })
				if err != nil || len(claimed) != n {
					b.Fatal(len(claimed), err)
				}
				var outcomes []webhook.Outcome
				for _, d := range claimed {
					outcomes = append(outcomes, webhook.Outcome{Lease: d.Lease, Status: webhook.Pending, Next: now.Add(time.Minute), At: now,
						Attempt: webhook.Attempt{ID: webhook.NewID(), RuleID: d.RuleID, FiringID: d.FiringID, Kind: webhook.KindFiring, URL: d.Target.URL, Number: 1, CreatedAt: now}})
				}
				for chunk := range slices.Chunk(outcomes, 200) {
					if held, err := a.Record(ctx, chunk); err != nil || slices.Contains(held, false) {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkFacts reads 33,334 sessions of twelve turns: all of them, and those that changed since, which is none.
func BenchmarkFacts(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		path, url := filepath.Join(b.TempDir(), "facts.db"), ""
		if engine == "postgres" {
			path, url = "", pgtest.URL(b)
		}
		s, err := Open(engine, path, url, Observer{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Migrate(b.Context(), evalStart); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Apply(b.Context(), endedSession("0", nil)); err != nil {
			b.Fatal(err)
		}
		list := "[" + strings.Repeat("812.345,", 11) + "1300]"
		if _, err := s.w.Exec(`UPDATE sessions SET perceived = $1, ttft = $1, ttfb = $1, stt = $1, assistant_turns = 12`, list); err != nil {
			b.Fatal(err)
		}
		var columns []string
		for _, c := range sessionColumns {
			switch c {
			case "id":
				c = "id || '-' || i"
			case "ended_at", "list_at", "outcome_at", "verdict_at":
				c += " + i"
			}
			columns = append(columns, c)
		}
		if _, err := s.w.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 33333)
			INSERT INTO sessions (%s) SELECT %s FROM sessions, n`, strings.Join(sessionColumns, ","), strings.Join(columns, ","))); err != nil {
			b.Fatal(err)
		}
		q := alert.FactQuery{Until: 1 << 60}
		a := s.Alerts()
		for name, read := range map[string]func(alert.FactQuery) (alert.Mark, int, error){
			"sessions": func(q alert.FactQuery) (m alert.Mark, n int, err error) {
				m, err = a.SessionFacts(b.Context(), q, func(alert.SessionFacts) { n++ })
				return m, n, err
			},
			"verdicts": func(q alert.FactQuery) (m alert.Mark, n int, err error) {
				m, err = a.VerdictFacts(b.Context(), q, func(alert.VerdictFacts) { n++ })
				return m, n, err
			},
			"outcomes": func(q alert.FactQuery) (m alert.Mark, n int, err error) {
				m, err = a.OutcomeFacts(b.Context(), q, func(alert.OutcomeFacts) { n++ })
				return m, n, err
			},
		} {
			var mark alert.Mark
			b.Run(engine+"/"+name+"/all", func(b *testing.B) {
				for b.Loop() {
					m, n, err := read(q)
					if mark = m; err != nil || n != 33_334 {
						b.Fatal(n, err)
					}
				}
			})
			b.Run(engine+"/"+name+"/changed", func(b *testing.B) {
				for b.Loop() {
					if _, n, err := read(alert.FactQuery{Since: mark}); err != nil || n != 0 {
						b.Fatal(n, err)
					}
				}
			})
		}
	}
}

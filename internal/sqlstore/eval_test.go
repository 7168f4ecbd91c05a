package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/eval"
	"sidetone/internal/pgtest"
	"sidetone/internal/storetest"
)

// evalEngines opens an empty, migrated database, and again what is in it, as another process would.
var evalEngines = map[string]func(t *testing.T) (open func() *Store){
	"sqlite": func(t *testing.T) func() *Store {
		path := filepath.Join(t.TempDir(), "test.db")
		return func() *Store { return openForTest(t, "sqlite", path, "") }
	},
	"postgres": func(t *testing.T) func() *Store {
		url := pgtest.URL(t)
		return func() *Store { return openForTest(t, "postgres", "", url) }
	},
}

func openForTest(t *testing.T, engine, path, url string) *Store {
	t.Helper()
	s, err := Open(engine, path, url, Observer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if _, err := s.Migrate(t.Context(), evalStart); err != nil {
		t.Fatal(err)
	}
	return s
}

var evalStart = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestEvalStore(t *testing.T) {
	for engine, database := range evalEngines {
		t.Run(engine, func(t *testing.T) {
			storetest.RunEvals(t, func(t *testing.T) eval.Store { return database(t)().Evals() })
		})
	}
}

func postEval(t *testing.T, s *Store, at time.Time, run, cases string) error {
	t.Helper()
	body := `{"version":"v0","run":{"run_id":"00000000-0000-4000-8000-000000000001","testing_framework":"pytest","started_at":1000` + run + `},"cases":[` + cases + `]}`
	_, err := eval.NewService(s.Evals(), nil).Ingest(context.Background(), []byte(body), at)
	return err
}

func evalCaseJSON(n int, rest string) string {
	return fmt.Sprintf(`{"case_id":"00000000-0000-4000-8000-%012x","name":"n","status":"passed"%s}`, n, rest)
}

// Alert rules read verdicts from these columns, and what changed by its mark.
func TestEvalVerdictsForAlerts(t *testing.T) {
	for engine, database := range evalEngines {
		t.Run(engine, func(t *testing.T) {
			s := database(t)()
			mark := func() int64 {
				t.Helper()
				var m int64
				if err := s.r.QueryRow(s.d.changeHorizon).Scan(&m); err != nil {
					t.Fatal(err)
				}
				return m
			}
			changed := func(since int64) string {
				t.Helper()
				rows, err := s.r.Query(`SELECT c.case_id, c.verdicts, c.verdict_at, r.agent_id FROM eval_cases c JOIN eval_runs r ON r.num = c.run_num WHERE c.change >= $1 ORDER BY c.num`, since)
				if err != nil {
					t.Fatal(err)
				}
				var out []string
				if err := each(rows, func(r *sql.Rows) error {
					var id, verdicts, agent string
					var at int64
					err := r.Scan(&id, &verdicts, &at, &agent)
					if at > 0 {
						at = (at - micros(evalStart)) / 1e6
					}
					out = append(out, fmt.Sprintf("%s %s %d %s", id[35:], strings.ReplaceAll(verdicts, fmt.Sprint(micros(evalStart)/1e9), "T"), at, agent))
					return err
				}); err != nil {
					t.Fatal(err)
				}
				return strings.Join(out, "; ")
			}
			check := func(what string, since int64, want string) {
				t.Helper()
				if got := changed(since); got != want {
					t.Errorf("%s\n got %s\nwant %s", what, got, want)
				}
			}
			post := func(after int, run, cases string) {
				t.Helper()
				if err := postEval(t, s, evalStart.Add(time.Duration(after)*time.Second), run, cases); err != nil {
					t.Fatal(err)
				}
			}
			judged := evalCaseJSON(1, `,"judgments":[{"judge_name":"Tone","verdict":"FAIL"},{"name":"facts","verdict":"pass"},{"intent":"x","verdict":" maybe"},{"reasoning":"none"}]`)
			m := mark()
			post(1, `,"status":"running"`, judged+","+evalCaseJSON(2, ""))
			check("two new cases", m, `1 [["Tone","fail",T401000000],["facts","pass",T401000000],["x","maybe",T401000000]] 1 ; 2  0 `)

			m = mark()
			post(2, `,"status":"running"`, judged+","+evalCaseJSON(2, ""))
			check("a repeat", m, "")
			post(3, `,"status":"running"`, evalCaseJSON(2, `,"judgments":[{"verdict":"pass"}]`))
			check("a new version arrives when it arrives", m, `2 [["","pass",T403000000]] 3 `)

			m = mark()
			post(4, `,"agent_id":"a"`, "")
			check("the run's agent became known", m, `1 [["Tone","fail",T401000000],["facts","pass",T401000000],["x","maybe",T401000000]] 1 a; 2 [["","pass",T403000000]] 3 a`)

			m = mark()
			post(5, `,"agent_id":"a"`, evalCaseJSON(1, `,"finished_at":2000`))
			check("a version without verdicts", m, `1  0 a`)

			m = mark()
			if _, err := s.Evals().Delete(t.Context(), []string{"00000000-0000-4000-8000-000000000001"}); err != nil {
				t.Fatal(err)
			}
			var gone, left int
			if err := s.r.QueryRow(`SELECT (SELECT count(*) FROM eval_deletions WHERE change >= $1), (SELECT count(*) FROM eval_cases) + (SELECT count(*) FROM eval_events) + (SELECT count(*) FROM eval_runs)`, m).Scan(&gone, &left); err != nil {
				t.Fatal(err)
			}
			if gone != 1 || left != 0 {
				t.Errorf("%d deletions recorded, %d rows left", gone, left)
			}
		})
	}
}

// Several processes post the same run at once, while another deletes it again and again: no row is lost or orphaned.
func TestEvalPostsFromSeveralProcesses(t *testing.T) {
	for engine, database := range evalEngines {
		t.Run(engine, func(t *testing.T) {
			open := database(t)
			stores := []*Store{open(), open(), open()}
			write := func(withDelete bool) {
				var wg sync.WaitGroup
				for client := range 8 {
					s := stores[client%len(stores)]
					wg.Go(func() {
						for n := range 6 {
							if err := postEval(t, s, evalStart, `,"status":"running"`, evalCaseJSON(client*100+n, `,"events":[{"type":"function_call"}]`)+","+evalCaseJSON(9999, "")); err != nil {
								t.Error(err)
							}
							if withDelete && client == 7 {
								if _, err := s.Evals().Delete(context.Background(), []string{"00000000-0000-4000-8000-000000000001"}); err != nil {
									t.Error(err)
								}
							}
						}
					})
				}
				wg.Wait()
			}
			write(true)
			var orphans, runs int
			const count = `SELECT (SELECT count(*) FROM eval_cases WHERE run_num NOT IN (SELECT num FROM eval_runs)) +
				(SELECT count(*) FROM eval_events WHERE num NOT IN (SELECT num FROM eval_cases)), (SELECT count(*) FROM eval_runs)`
			if err := stores[0].r.QueryRow(count).Scan(&orphans, &runs); err != nil || orphans != 0 || runs > 1 {
				t.Fatalf("%d orphans, %d runs, %v", orphans, runs, err)
			}
			write(false)
			run, err := stores[1].Evals().Get(t.Context(), "00000000-0000-4000-8000-000000000001")
			if err != nil || run.Total != 8*6+1 || run.ToolCallCount != 8*6 {
				t.Errorf("%+v %v", run, err)
			}
		})
	}
}

// A run cannot grow without bound; a post that would make it so fails alone.
func TestEvalRunIsBounded(t *testing.T) {
	for engine, database := range evalEngines {
		t.Run(engine, func(t *testing.T) {
			s := database(t)()
			s.maxRunCases = 3
			for n := range 3 {
				if err := postEval(t, s, evalStart, "", evalCaseJSON(n, "")); err != nil {
					t.Fatal(err)
				}
			}
			if err := postEval(t, s, evalStart, "", evalCaseJSON(3, "")); !errs.Is(err, errs.TooLarge) {
				t.Errorf("one case too many: %v", err)
			}
			if err := postEval(t, s, evalStart, "", evalCaseJSON(1, `,"finished_at":2000`)); err != nil {
				t.Errorf("a new version of a case: %v", err)
			}
			if run, err := s.Evals().Get(t.Context(), "00000000-0000-4000-8000-000000000001"); err != nil || run.Total != 3 {
				t.Errorf("%+v %v", run, err)
			}
		})
	}
}

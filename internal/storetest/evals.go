// Package storetest is what a store must do, whatever it is made of: sqlstore passes it on each engine.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/eval"
)

// RunEvals checks a store of eval runs. open gives an empty one that is closed when its test ends. Fixtures are read
// relative to the folder of a package under internal.
func RunEvals(t *testing.T, open func(t *testing.T) eval.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s evalStore)
	}{
		{"EveryFieldRoundTrips", everyEvalField},
		{"NullNeverErasesAndNothingReopens", nullNeverErases},
		{"FixturesInAnyOrderAndRepeated", evalFixtures},
		{"FixtureNumbers", evalFixtureNumbers},
		{"CasesOfGreaterRankReplace", caseVersions},
		{"CasesBelongToTheirRun", casesBelongToTheirRun},
		{"NotFound", evalNotFound},
		{"Delete", deleteEvals},
		{"ListOrderAndPages", evalPages},
		{"ListFilters", evalFilters},
		{"StatusFilterAndStaleRuns", staleRuns},
		{"ManyPostsOfOneRunAtOnce", concurrentPosts},
		{"AgreesWithTheDomain", evalModel},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := open(t)
			test.run(t, evalStore{t, store, eval.NewService(store, evalPrice)})
		})
	}
}

// evalNoon is when the posts of these tests begin to arrive.
var evalNoon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// evalPrice knows one model.
func evalPrice(_, model string, input, cached, output int64) (float64, bool) {
	return float64(input-cached)/1e6 + float64(output)/1e5, model == "gpt-4.1-mini"
}

type evalStore struct {
	t *testing.T
	eval.Store
	service *eval.Service
}

// post stores a body that must be accepted.
func (s evalStore) post(body string, at time.Time) {
	s.t.Helper()
	if _, err := s.service.Ingest(context.Background(), []byte(body), at); err != nil {
		s.t.Fatal(err)
	}
}

func (s evalStore) get(runID string) (*eval.Run, []eval.Case) {
	s.t.Helper()
	run, cases, err := s.service.Get(s.t.Context(), runID, true)
	if err != nil {
		s.t.Fatal(err)
	}
	return run, cases
}

func evalID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// evalBody is a post; the fields of the run are written as JSON members, each case as a JSON object.
func evalBody(run int, fields string, cases ...string) string {
	if fields != "" {
		fields = "," + fields
	}
	started := ""
	if !strings.Contains(fields, `"started_at"`) {
		started = `,"started_at":1795262400`
	}
	return fmt.Sprintf(`{"version":"v0","run":{"run_id":%q,"testing_framework":"pytest"%s%s},"cases":[%s]}`, evalID(run), started, fields, strings.Join(cases, ","))
}

func evalCase(n int, status, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"case_id":%q,"name":"case %d","status":%q%s}`, evalID(n), n, status, fields)
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../testdata/fixtures/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// same compares two values by their fields; times must be equal instants in UTC.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		t.Fatalf("%s\n got %s\nwant %s", what, g, w)
	}
}

const everything = `{"version":"v0","run":{"run_id":"00000000-0000-4000-8000-000000000001","name":"nächtlich 🌙","account_id":"Ünïcode","agent_id":"a,b","agent_name":"名前",
	"framework":"pipecat-ai","framework_version":"1","testing_framework":"vitest","testing_framework_version":"3","started_at":1795262400.123456,
	"finished_at":1795262460.5,"status":"failed","ci":{ "git_sha":"\u0000", "unknown" : [1.50, {"x":null}] }},"cases":[
	{"case_id":"00000000-0000-4000-8000-000000000002","name":"a > b","file":"t.py","status":"passed","started_at":1795262401,"finished_at":1795262402.25,"duration_ms":7,"user_input":"hé\u0000 \ud83d\ude00",
	 "events":[ {"type":"message","role":"assistant","interrupted":true,"metrics":{"llm_node_ttft":0.6124,"tts_node_ttfb":0.25},"odd\ud800": "\u0000"},
	 {"type":"function_call"},{"type":"agent_handoff"},{"type":"usage","model":"gpt-4.1-mini","input_tokens":1000,"input_cached_tokens":200,"output_tokens":10} ],
	 "judgments":[ {"judge_name":"Tone","verdict":" FAIL ","extra":1.0} , {"intent":"polite","verdict":"pass"} ],"failure":{ "kind":"x","dup":1,"dup":2 }},
	{"case_id":"00000000-0000-4000-8000-000000000003","name":"bare","status":"skipped"}]}`

func everyEvalField(t *testing.T, s evalStore) {
	s.post(everything, evalNoon)
	run, cases := s.get(evalID(1))
	if run.FinishedAt.IsZero() || run.Total != 2 || run.EstimatedCostUSD == nil || run.TTFBAvgMS == nil || !cases[0].JudgeFailed {
		t.Fatalf("the figures are missing: %+v", run)
	}
	// What was parsed, with what the service adds, is what must come back.
	want, err := eval.Parse([]byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	want.Run.CreatedAt, want.Run.LastActivityAt = evalNoon, evalNoon
	summaries := []eval.CaseSummary{}
	for i := range want.Cases {
		c := &want.Cases[i]
		c.CreatedAt = evalNoon
		c.Price(evalPrice)
		summaries = append(summaries, c.CaseSummary)
	}
	want.Run.RunAggregate = eval.Aggregate(summaries)
	if string(run.CI) != string(want.Run.CI) {
		t.Errorf("ci is not as sent: %s", run.CI)
	}
	same(t, "run", *run, want.Run)
	for i, c := range cases {
		w := want.Cases[i]
		for _, doc := range []struct{ what, got, want string }{
			{"events", string(c.Events), string(w.Events)}, {"judgments", string(c.Judgments), string(w.Judgments)},
			{"failure", string(c.Failure), string(w.Failure)}, {"user input", c.UserInput, w.UserInput},
		} {
			if doc.got != doc.want {
				t.Errorf("%s of case %d\n got %q\nwant %q", doc.what, i, doc.got, doc.want)
			}
		}
		same(t, "verdicts", c.Verdicts(), w.Verdicts())
		one, err := s.Case(t.Context(), run.ID, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "a case alone", *one, c)
		same(t, "summary", c.CaseSummary, w.CaseSummary)
		if c.RunID != w.RunID || c.Rank != w.Rank || c.Position != w.Position || !c.CreatedAt.Equal(evalNoon) ||
			!c.StartedAt.Equal(w.StartedAt) || !c.FinishedAt.Equal(w.FinishedAt) || (c.Failure == nil) != (w.Failure == nil) {
			t.Errorf("case %d: %+v", i, c)
		}
	}
	plain, err := s.Cases(t.Context(), run.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plain {
		if plain[i].Events != nil {
			t.Error("events came although they were not asked for")
		}
		plain[i].Events = cases[i].Events
	}
	same(t, "cases without events", plain, cases)
	got, err := s.Summaries(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "summaries", got, summaries)
	list, total, err := s.List(t.Context(), eval.Filter{}, eval.Page{Limit: 20}, evalNoon)
	if err != nil || total != 1 {
		t.Fatalf("%d %v", total, err)
	}
	same(t, "the run in a list", list[0], *run)
}

func nullNeverErases(t *testing.T, s evalStore) {
	full := `"name":"n","account_id":"acc","agent_id":"ag","agent_name":"an","framework":"livekit","framework_version":"1","testing_framework_version":"8","ci":{"git_sha":"1"},"status":"failed","finished_at":1795262500`
	nulls := `"name":null,"account_id":null,"agent_id":null,"agent_name":null,"framework":null,"framework_version":null,"testing_framework_version":null,"ci":null,"finished_at":null`
	s.post(evalBody(1, full, evalCase(1, "passed", "")), evalNoon)
	want, _ := s.get(evalID(1))
	for i, late := range []string{`"status":"running",` + nulls, `"status":"queued",` + nulls, nulls} {
		at := evalNoon.Add(time.Duration(i+1) * time.Minute)
		s.post(evalBody(1, late), at)
		want.LastActivityAt = at
		got, cases := s.get(evalID(1))
		same(t, "after nulls", *got, *want)
		if len(cases) != 1 {
			t.Fatalf("%d cases", len(cases))
		}
	}
	// The other way round: what was null is filled.
	s.post(evalBody(2, `"status":"running",`+nulls), evalNoon)
	s.post(evalBody(2, full), evalNoon.Add(time.Minute))
	got, _ := s.get(evalID(2))
	if got.Name != "n" || got.AccountID != "acc" || got.Status != "failed" || string(got.CI) != `{"git_sha":"1"}` || got.FinishedAt.IsZero() || !got.CreatedAt.Equal(evalNoon) {
		t.Errorf("%+v", got)
	}
}

func evalFixtures(t *testing.T, s evalStore) {
	const id = "5c305e5a-7029-475d-92cd-8fa1073e77f7"
	posts := []string{fixture(t, "pytest-evals/1-running.json"), fixture(t, "pytest-evals/2-one-case.json"), fixture(t, "pytest-evals/3-finished.json")}
	var first *eval.Run
	var firstCases []eval.Case
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {0, 0, 1, 1, 2, 2}, {2, 2, 1, 0, 2}, {1, 0, 2}, {1, 2, 0}, {0, 1, 2, 0, 1, 2}} {
		if _, err := s.Delete(t.Context(), []string{id}); err != nil {
			t.Fatal(err)
		}
		for i, n := range order {
			s.post(posts[n], evalNoon.Add(time.Duration(i)*time.Second))
		}
		run, cases := s.get(id)
		if !run.CreatedAt.Equal(evalNoon) || !run.LastActivityAt.Equal(evalNoon.Add(time.Duration(len(order)-1)*time.Second)) {
			t.Errorf("%v: created %v, last activity %v", order, run.CreatedAt, run.LastActivityAt)
		}
		if run.Status != "completed" || run.Total != 4 || run.Passed != 1 || run.Failed+run.Errored != 2 || run.Skipped != 1 {
			t.Errorf("%v: %s %+v", order, run.Status, run.Tally)
		}
		// What depends on when posts came is compared apart.
		run.CreatedAt, run.LastActivityAt = time.Time{}, time.Time{}
		for i := range cases {
			cases[i].CreatedAt, cases[i].Position = time.Time{}, 0
		}
		slices.SortFunc(cases, func(a, b eval.Case) int { return strings.Compare(a.ID, b.ID) })
		if first == nil {
			first, firstCases = run, cases
		}
		same(t, fmt.Sprint("run after ", order), *run, *first)
		same(t, fmt.Sprint("cases after ", order), cases, firstCases)
	}
}

func evalFixtureNumbers(t *testing.T, s evalStore) {
	s.post(fixture(t, "vitest-evals/run.json"), evalNoon)
	run, cases := s.get("7a0d4b61-52c1-4a57-9a5e-0c7b3b1f6f10")
	if run.Total != 4 || run.Passed != 1 || run.Failed != 2 || run.Skipped != 1 || run.Errored != 0 || *run.PassRate != 1.0/3 ||
		*run.TTFTP50MS != 612 || *run.TTFTP95MS != 1204 || run.ToolCallCount != 1 || run.InterruptionCount != 1 || run.AgentHandoffCount != 1 {
		t.Errorf("%+v", run)
	}
	judged := 0
	var tokens int64
	for _, c := range cases {
		if c.Status == "passed" && c.JudgeFailed {
			judged++
		}
		tokens += c.Tokens.Total
	}
	if judged != 1 || tokens != run.TotalTokens || tokens == 0 {
		t.Errorf("%d judged failed; %d tokens in the cases, %d in the run", judged, tokens, run.TotalTokens)
	}
	s.post(fixture(t, "vitest-evals/legacy-run.json"), evalNoon)
	runs, _, err := s.List(t.Context(), eval.Filter{TestingFrameworks: []string{"pytest"}}, eval.Page{Limit: 20}, evalNoon)
	if err != nil || len(runs) != 1 || runs[0].Framework != "livekit" {
		t.Errorf("legacy: %+v %v", runs, err)
	}
}

func caseVersions(t *testing.T, s evalStore) {
	first := evalCase(1, "passed", `"finished_at":100,"events":[{"type":"function_call"}],"judgments":[{"verdict":"pass"}]`)
	better := evalCase(1, "failed", `"finished_at":200,"failure":{"kind":"error"}`)
	s.post(evalBody(1, `"status":"running"`, evalCase(9, "passed", ""), first), evalNoon)
	s.post(evalBody(1, `"status":"running"`, better, evalCase(2, "passed", "")), evalNoon.Add(time.Second))
	for range 2 { // a straggler of lesser rank changes nothing, and neither does a repeat
		run, cases := s.get(evalID(1))
		if len(cases) != 3 || run.Total != 3 || run.Passed != 2 || run.Failed != 1 || run.ToolCallCount != 0 {
			t.Fatalf("%+v", run.Tally)
		}
		c := cases[1]
		if c.ID != evalID(1) || c.Status != "failed" || string(c.Events) != "[]" || string(c.Judgments) != "[]" || string(c.Failure) != `{"kind":"error"}` ||
			!c.CreatedAt.Equal(evalNoon) || c.Position != 1 {
			t.Fatalf("%+v", c)
		}
		if cases[0].ID != evalID(9) || cases[2].ID != evalID(2) {
			t.Fatalf("cases in the order %s %s %s", cases[0].ID, cases[1].ID, cases[2].ID)
		}
		s.post(evalBody(1, `"status":"running"`, first, better), evalNoon.Add(time.Minute))
	}
}

func casesBelongToTheirRun(t *testing.T, s evalStore) {
	s.post(evalBody(1, "", evalCase(1, "passed", "")), evalNoon)
	s.post(evalBody(2, "", evalCase(1, "failed", `"finished_at":100`), evalCase(2, "failed", "")), evalNoon)
	if _, cases := s.get(evalID(1)); len(cases) != 1 || cases[0].Status != "passed" || cases[0].RunID != evalID(1) {
		t.Errorf("%+v", cases)
	}
	if _, err := s.Case(t.Context(), evalID(1), evalID(2)); !errs.Is(err, errs.NotFound) {
		t.Errorf("a case of another run: %v", err)
	}
}

func evalNotFound(t *testing.T, s evalStore) {
	s.post(evalBody(1, ""), evalNoon)
	if run, cases := s.get(evalID(1)); run.Total != 0 || run.PassRate != nil || len(cases) != 0 {
		t.Errorf("a run without cases: %+v %v", run, cases)
	}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Get":       func() error { _, err := s.Get(ctx, evalID(2)); return err },
		"Cases":     func() error { _, err := s.Cases(ctx, evalID(2), true); return err },
		"Summaries": func() error { _, err := s.Summaries(ctx, evalID(2)); return err },
		"Case":      func() error { _, err := s.Case(ctx, evalID(1), evalID(1)); return err },
		"Case of a run that is not there": func() error {
			_, err := s.Case(ctx, evalID(2), evalID(1))
			return err
		},
	} {
		if err := call(); !errs.Is(err, errs.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func deleteEvals(t *testing.T, s evalStore) {
	ctx := t.Context()
	for n := range 5 {
		s.post(evalBody(n, "", evalCase(1, "passed", `"events":[{"type":"function_call"}]`)), evalNoon)
	}
	if n, err := s.Delete(ctx, []string{evalID(0), evalID(3), evalID(77), evalID(3)}); n != 2 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	if n, err := s.Delete(ctx, []string{evalID(0), evalID(3)}); n != 0 || err != nil {
		t.Fatalf("again: %d %v", n, err)
	}
	for n := range 5 {
		_, err := s.Case(ctx, evalID(n), evalID(1))
		if gone := n == 0 || n == 3; gone != errs.Is(err, errs.NotFound) || !gone && err != nil {
			t.Errorf("case of run %d: %v", n, err)
		}
	}
	if _, total, err := s.List(ctx, eval.Filter{}, eval.Page{Limit: 20}, evalNoon); total != 3 || err != nil {
		t.Errorf("%d runs left, %v", total, err)
	}
	// A run that comes again starts anew, with nothing of the deleted one.
	s.post(evalBody(3, "", evalCase(2, "failed", "")), evalNoon.Add(time.Hour))
	run, cases := s.get(evalID(3))
	if run.Total != 1 || run.Failed != 1 || !run.CreatedAt.Equal(evalNoon.Add(time.Hour)) || len(cases) != 1 || string(cases[0].Events) != "[]" {
		t.Errorf("%+v %+v", run, cases)
	}
}

// concurrentPosts has 8 clients post the same run at once: each its own cases, and all of them one case in turn better.
func concurrentPosts(t *testing.T, s evalStore) {
	const clients, posts = 8, 5
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for n := range posts {
				finished := client*posts + n + 1
				body := evalBody(1, `"status":"running"`, evalCase(1, "failed", fmt.Sprintf(`"finished_at":%d`, finished)),
					evalCase(100+finished, "passed", `"events":[{"type":"function_call"},{"type":"message","role":"assistant","metrics":{"llm_node_ttft":0.1}}]`))
				if _, err := s.service.Ingest(context.Background(), []byte(body), evalNoon.Add(time.Duration(finished)*time.Millisecond)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	run, cases := s.get(evalID(1))
	const all = clients * posts
	if len(cases) != all+1 || run.Total != all+1 || run.Passed != all || run.Failed != 1 || run.ToolCallCount != all || run.TTFTSampleCount != all {
		t.Errorf("%d cases, %+v", len(cases), run)
	}
	if c, err := s.Case(t.Context(), evalID(1), evalID(1)); err != nil || c.FinishedAt.Unix() != all {
		t.Errorf("the contested case ended %v, %v", c, err)
	}
	if !run.LastActivityAt.Equal(evalNoon.Add(all * time.Millisecond)) {
		t.Errorf("last activity %v", run.LastActivityAt)
	}
}

// evalModel posts at random and compares with what the domain says should come of it.
func evalModel(t *testing.T, s evalStore) {
	rnd := rand.New(rand.NewPCG(3, 4))
	pick := func(values ...string) string { return values[rnd.IntN(len(values))] }
	runs := map[string]*eval.Run{}
	cases := map[string]map[string]eval.Case{}
	for i := range 150 {
		var list []string
		for range rnd.IntN(4) {
			list = append(list, evalCase(rnd.IntN(5), pick("passed", "failed", "errored", "skipped"), `"finished_at":`+pick("null", "15", "16")+
				`,"judgments":[`+pick("", `{"verdict":"fail"}`, `{"verdict":"pass"}`)+`],"events":[`+pick("", `{"type":"function_call"}`)+`],"failure":`+pick("null", "{}")))
		}
		body := evalBody(rnd.IntN(4), `"started_at":`+pick("10", "11", "12")+`,"finished_at":`+pick("null", "20", "30")+`,"status":"`+pick(eval.RunStatuses...)+
			`","name":`+pick("null", `"nightly"`)+`,"account_id":`+pick("null", `"x"`, `"y"`), list...)
		at := evalNoon.Add(time.Duration(i) * time.Second)
		s.post(body, at)
		p, err := eval.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		p.Run.CreatedAt, p.Run.LastActivityAt = at, at
		run := eval.MergeRun(runs[p.Run.ID], p.Run)
		runs[run.ID] = &run
		if cases[run.ID] == nil {
			cases[run.ID] = map[string]eval.Case{}
		}
		for _, c := range p.Cases {
			c.CreatedAt = at
			if old, ok := cases[run.ID][c.ID]; ok {
				c = eval.MergeCase(old, c)
			}
			cases[run.ID][c.ID] = c
		}
		var summaries []eval.CaseSummary
		for _, c := range cases[run.ID] {
			summaries = append(summaries, c.CaseSummary)
		}
		run.RunAggregate = eval.Aggregate(summaries)
		got, gotCases := s.get(run.ID)
		same(t, fmt.Sprintf("run after post %d", i), *got, run)
		if len(gotCases) != len(cases[run.ID]) {
			t.Fatalf("post %d: %d cases, want %d", i, len(gotCases), len(cases[run.ID]))
		}
		for _, c := range gotCases {
			want := cases[run.ID][c.ID]
			if c.Rank != want.Rank || !c.CreatedAt.Equal(want.CreatedAt) || c.Position != want.Position || string(c.Events) != string(want.Events) {
				t.Fatalf("post %d\n got %+v\nwant %+v", i, c, want)
			}
		}
	}
}

package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sidetone/internal/errs"
)

const fixtures = "../../testdata/fixtures"

const minimalRun = `{"run_id":"7a0d4b61-52c1-4a57-9a5e-0c7b3b1f6f10","testing_framework":"pytest","started_at":1795238400}`

func caseID(i int) string { return fmt.Sprintf("0b6f0a55-6f0e-4f43-9a43-%012x", i) }

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, body string) *Payload {
	t.Helper()
	p, err := Parse([]byte(body))
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return p
}

// oneCase parses a payload with one case that has these further members.
func oneCase(t testing.TB, members string) Case {
	t.Helper()
	return parse(t, `{"version":"v0","run":`+minimalRun+`,"cases":[{"case_id":"`+caseID(1)+`","name":"n","status":"passed"`+members+`}]}`).Cases[0]
}

// run parses a payload whose run has these further members.
func oneRun(t testing.TB, members string) Run {
	t.Helper()
	return parse(t, `{"version":"v0","run":`+strings.TrimSuffix(minimalRun, "}")+members+`},"cases":[]}`).Run
}

func summaries(cases []Case) []CaseSummary {
	out := make([]CaseSummary, len(cases))
	for i := range cases {
		out[i] = cases[i].CaseSummary
	}
	return out
}

func show(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func TestVitestFixture(t *testing.T) {
	p := parse(t, string(fixture(t, "vitest-evals/run.json")))
	r := p.Run
	if r.ID != "7a0d4b61-52c1-4a57-9a5e-0c7b3b1f6f10" || r.Name != "PR 482" || r.AccountID != "northwind" ||
		r.AgentID != "northwind-support" || r.AgentName != "Northwind support" || r.Framework != "livekit" || r.FrameworkVersion != "1.9.0" ||
		r.TestingFramework != "vitest" || r.TestingFrameworkVersion != "3.2.4" || r.Status != StatusFailed {
		t.Errorf("run: %+v", r)
	}
	if !r.StartedAt.Equal(time.UnixMilli(1795238400500)) || !r.FinishedAt.Equal(time.UnixMilli(1795238409200)) || *r.DurationMS() != 8700 {
		t.Errorf("times: %v %v %d", r.StartedAt, r.FinishedAt, *r.DurationMS())
	}
	price := func(provider, model string, in, cached, out int64) (float64, bool) {
		return float64(in-cached) + 0.5*float64(cached) + 10*float64(out), provider == "openai" && model == "gpt-4.1-mini"
	}
	for i := range p.Cases {
		p.Cases[i].Price(price)
	}
	got := show(Aggregate(summaries(p.Cases)))
	// Case 1 counts its message (812+18, 256 cached), case 2 its usage event (1452+27) and not its message.
	want := `{"total":4,"passed":1,"failed":2,"errored":0,"skipped":1,"pass_rate":0.3333333333333333,` +
		`"ttft_p50_ms":612,"ttft_p95_ms":1204,"ttft_avg_ms":771,"ttfb_p50_ms":181,"ttfb_p95_ms":181,"ttfb_avg_ms":181,` +
		`"turn_count":3,"tool_call_count":1,"interruption_count":1,"agent_handoff_count":1,"ttft_sample_count":3,` +
		`"prompt_tokens":2264,"completion_tokens":45,"total_tokens":2309,"cached_prompt_tokens":256,"estimated_cost_usd":2586}`
	if got != want {
		t.Errorf("aggregate\n got %s\nwant %s", got, want)
	}
	c := p.Cases[2]
	if c.Status != CasePassed || !c.JudgeFailed || c.Outcome() != CaseFailed {
		t.Errorf("the case that only its judge failed: %+v", c.CaseSummary)
	}
	if got := p.Cases[1].Verdicts(); !reflect.DeepEqual(got, []Verdict{{"hands off to billing", "fail"}, {"stays polite", "maybe"}}) {
		t.Errorf("verdicts: %v", got)
	}
	one := p.Cases[0].Metrics()
	if *one.TTFTP50MS != 612 || one.TTFBP50MS != nil || one.TotalTokens != 830 || one.CachedPromptTokens != 256 || one.TurnCount != 1 || one.ToolCallCount != 1 {
		t.Errorf("first case: %s", show(one))
	}
}

func TestLegacyFixture(t *testing.T) {
	p := parse(t, string(fixture(t, "vitest-evals/legacy-run.json")))
	r := p.Run
	if r.TestingFramework != "pytest" || r.TestingFrameworkVersion != "8.3.2" || r.Framework != "livekit" || r.FrameworkVersion != "1.0.9" ||
		r.Status != StatusCompleted || r.CI != nil {
		t.Errorf("run: %+v", r)
	}
	c := p.Cases[0]
	if string(c.Events) != "[]" || string(c.Judgments) != "[]" || c.Failure != nil || c.DurationMS != nil || !c.StartedAt.IsZero() || c.Outcome() != CasePassed {
		t.Errorf("case: %+v", c)
	}
}

func TestFrameworks(t *testing.T) {
	for _, tt := range []struct{ members, framework, version, testing, testingVersion string }{
		{`"testing_framework":"pytest"`, "", "", "pytest", ""},
		{`"testing_framework":"pytest","framework":"livekit-agents","framework_version":"1.7.0"`, "livekit", "1.7.0", "pytest", ""},
		{`"testing_framework":"vitest","framework":"pipecat-ai"`, "pipecat", "", "vitest", ""},
		{`"testing_framework":"vitest","framework":"pipecat-ai-flows"`, "pipecat", "", "vitest", ""},
		{`"testing_framework":"jest","framework":"own"`, "own", "", "jest", ""},
		{`"framework":"vitest","framework_version":"3","sdk":"pipecat-ai","sdk_version":"0.9"`, "pipecat", "0.9", "vitest", "3"},
		{`"framework":"pytest","testing_framework":null`, "", "", "pytest", ""},
		{`"framework":"pytest","testing_framework":""`, "", "", "pytest", ""},
		{`"testing_framework":"vitest","framework":"pytest","sdk":"livekit"`, "pytest", "", "vitest", ""},
	} {
		r := parse(t, `{"version":"v0","cases":[],"run":{"run_id":"`+caseID(0)+`","started_at":1,`+tt.members+`}}`).Run
		if r.Framework != tt.framework || r.FrameworkVersion != tt.version || r.TestingFramework != tt.testing || r.TestingFrameworkVersion != tt.testingVersion {
			t.Errorf("%s: %q %q %q %q", tt.members, r.Framework, r.FrameworkVersion, r.TestingFramework, r.TestingFrameworkVersion)
		}
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]string{
		"1795238753.9645624": "2026-11-21T05:25:53.964562Z",
		"1795238753964.5":    "2026-11-21T05:25:53.9645Z",
		"1795238753964":      "2026-11-21T05:25:53.964Z",
		"17952387.5e2":       "2026-11-21T05:25:50Z",
		"1":                  "1970-01-01T00:00:01Z",
		"100000000000":       "5138-11-16T09:46:40Z",
		"253402300799999":    "9999-12-31T23:59:59.999Z",
	} {
		if got := oneCase(t, `,"started_at":`+text).StartedAt.Format(time.RFC3339Nano); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for members, want := range map[string]string{
		``:                    "null",
		`,"duration_ms":12.5`: "13",
		`,"duration_ms":0`:    "0",
		`,"duration_ms":null,"started_at":10,"finished_at":10.25`:     "250",
		`,"duration_ms":7,"started_at":10,"finished_at":10.25`:        "7",
		`,"started_at":11,"finished_at":10`:                           "null",
		`,"started_at":1795238753.9645624,"finished_at":1795238754.2`: "235",
	} {
		if got := show(oneCase(t, members).DurationMS); got != want {
			t.Errorf("%s: %s, want %s", members, got, want)
		}
	}
}

func TestParseKeepsDocumentsAsSent(t *testing.T) {
	events := `[ {"type":"message", "content":["a",{"odd":1.50}],"content":2, "zz":"\ud83d cut", "nul":"\u0000"} ,{ } ]`
	judgments := `[{"intent":"i","verdict":"pass","score":1e2,"extra":{"a":[ ]}}]`
	failure := `{ "kind":"assertion","expected_event_index": 3 }`
	ci := `{"git_sha":"4f1d2c0",  "pull_request":"482"}`
	p := parse(t, `{"version":"v0","unknown":[1],"run":`+strings.TrimSuffix(minimalRun, "}")+`,"extra":{},"ci": `+ci+`},"cases":[ {"events" : `+events+
		` ,"judgments":`+judgments+`, "case_id":"`+caseID(1)+`","name":"n","other":null,"failure": `+failure+`,"status":"failed"}]}`)
	c := p.Cases[0]
	for _, d := range []struct{ got, want string }{{string(c.Events), events}, {string(c.Judgments), judgments}, {string(c.Failure), failure}, {string(p.Run.CI), ci}} {
		if d.got != d.want {
			t.Errorf("\n got %s\nwant %s", d.got, d.want)
		}
	}
}

func TestText(t *testing.T) {
	c := oneCase(t, `,"file":"a\u0000b","user_input":"caf\u00e9 \ud83d\ude00 \ud83d! \"q\"\n"`)
	if c.File != "a\uFFFDb" || c.UserInput != "café 😀 \uFFFD! \"q\"\n" {
		t.Errorf("%q %q", c.File, c.UserInput)
	}
	long := strings.Repeat("é", MaxName)
	if got := oneCase(t, `,"file":"`+long+`"`).File; got != long {
		t.Errorf("a file of %d characters was not kept", MaxName)
	}
	if r := oneRun(t, `,"account_id":"","agent_id":null,"name":"x"`); r.AccountID != "" || r.AgentID != "" || r.Name != "x" {
		t.Errorf("%+v", r)
	}
	upper := oneRun(t, ``)
	upper2 := parse(t, `{"version":"v0","cases":[],"run":`+strings.Replace(minimalRun, "7a0d4b61-52c1-4a57-9a5e", "7A0D4B61-52C1-4A57-9A5E", 1)+`}`).Run
	if upper2.ID != upper.ID {
		t.Errorf("%s is not lower-case", upper2.ID)
	}
}

func TestFinishedAtOfAnUnfinishedRunIsIgnored(t *testing.T) {
	if r := oneRun(t, `,"finished_at":1795238500,"status":"running"`); !r.FinishedAt.IsZero() {
		t.Errorf("finished at %v", r.FinishedAt)
	}
	if r := oneRun(t, `,"finished_at":1795238500,"status":null`); r.FinishedAt.IsZero() || r.Status != StatusCompleted {
		t.Errorf("%+v", r)
	}
}

func TestDuplicateCaseIDsLastWins(t *testing.T) {
	c := func(id int, name string) string {
		return `{"case_id":"` + caseID(id) + `","name":"` + name + `","status":"passed"}`
	}
	p := parse(t, `{"version":"v0","run":`+minimalRun+`,"cases":[`+c(1, "a")+`,`+c(2, "b")+`,`+c(1, "c")+`]}`)
	if len(p.Cases) != 2 || p.Cases[0].Name != "c" || p.Cases[0].Position != 0 || p.Cases[1].Name != "b" || p.Cases[1].Position != 1 {
		t.Errorf("%+v", p.Cases)
	}
	if p.Cases[0].RunID != p.Run.ID {
		t.Errorf("run id %q", p.Cases[0].RunID)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"pytest-evals/1-running.json", "pytest-evals/2-one-case.json", "vitest-evals/run.json", "vitest-evals/legacy-run.json"} {
		f.Add(fixture(f, name))
	}
	for i, m := range readMalformed(f) {
		if i%5 == 0 {
			f.Add(m.bytes())
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := Parse(body)
		if err != nil {
			if p != nil {
				t.Error("a payload beside an error")
			}
			var e *errs.Error
			if !errors.As(err, &e) || e.Kind == errs.Internal || len(e.Fields) == 0 || e.Fields[0].Field == "" {
				t.Errorf("an error that names no field: %v", err)
			}
			return
		}
		if _, err := json.Marshal(Aggregate(summaries(p.Cases))); err != nil {
			t.Error(err)
		}
		for i := range p.Cases {
			c := &p.Cases[i]
			if !json.Valid(c.Events) || !json.Valid(c.Judgments) || c.Failure != nil && !json.Valid(c.Failure) {
				t.Errorf("a document is not JSON: %s %s %s", c.Events, c.Judgments, c.Failure)
			}
			stored := Case{Judgments: c.Judgments}
			if got := stored.Verdicts(); len(got) != len(c.Verdicts()) {
				t.Errorf("verdicts differ after storing: %v %v", got, c.Verdicts())
			}
			if id, ok := ParseID(c.ID); !ok || id != c.ID || c.Name == "" || strings.ContainsRune(c.Name+c.File+c.UserInput, 0) {
				t.Errorf("%+v", c)
			}
		}
	})
}

func BenchmarkParse100(b *testing.B) {
	var run struct {
		Version string
		Run     json.RawMessage
		Cases   []map[string]any
	}
	if err := json.Unmarshal(fixture(b, "vitest-evals/run.json"), &run); err != nil {
		b.Fatal(err)
	}
	cases := make([]map[string]any, 100)
	for i := range cases {
		c := map[string]any{}
		for k, v := range run.Cases[i%3] {
			c[k] = v
		}
		c["case_id"] = caseID(i)
		events := c["events"].([]any)
		for range 3 { // a conversation of some twelve events
			events = append(events, run.Cases[i%3]["events"].([]any)...)
		}
		c["events"] = events
		cases[i] = c
	}
	body, _ := json.Marshal(map[string]any{"version": "v0", "run": run.Run, "cases": cases})
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

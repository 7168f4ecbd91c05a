package eval

import (
	"reflect"
	"testing"
)

// What the plugins are known to send, one event each: metrics on the event, inside the item, flat, camelCase.
func TestMeasurementsInEveryShape(t *testing.T) {
	for _, tt := range []struct{ what, events, want string }{
		{"none", ``, `{}`},
		{"on the event", `{"type":"message","role":"assistant","metrics":{"llm_node_ttft":0.5,"tts_node_ttfb":0.1}}`, `{"turns":1,"ttft":[500],"ttfb":[100]}`},
		{"in the item", `{"type":"message","item":{"role":"assistant","interrupted":true,"content":["a"],"metrics":{"llm_node_ttft":0.5}}}`, `{"turns":1,"interrupted":1,"ttft":[500]}`},
		{"in both, counted once", `{"type":"message","role":"assistant","metrics":{"llm_node_ttft":0.5,"llm_prompt_tokens":5},"item":{"role":"assistant","metrics":{"llm_node_ttft":0.5,"llm_prompt_tokens":5}}}`,
			`{"turns":1,"ttft":[500],"usage":[{"Provider":"","Model":"","Tokens":{"Prompt":5,"Completion":0,"Total":5,"Cached":0}}]}`},
		{"some here and some there", `{"type":"message","role":"assistant","metrics":{"llm_node_ttft":0.5},"item":{"metrics":{"tts_node_ttfb":0.25,"llm_node_ttft":9}}}`, `{"turns":1,"ttft":[500],"ttfb":[250]}`},
		{"flat on the event", `{"type":"message","role":"assistant","llm_node_ttft":0.0004}`, `{"turns":1,"ttft":[0.4]}`},
		{"flat in the item", `{"item":{"type":"message","role":"assistant","llmNodeTtft":1}}`, `{"turns":1,"ttft":[1000]}`},
		{"camelCase", `{"type":"message","role":"assistant","metrics":{"llmNodeTtft":0.5,"ttsNodeTtfb":0.1,"llmPromptTokens":7,"llmMetadata":{"modelName":"m","modelProvider":"p"}}}`,
			`{"turns":1,"ttft":[500],"ttfb":[100],"usage":[{"Provider":"p","Model":"m","Tokens":{"Prompt":7,"Completion":0,"Total":7,"Cached":0}}]}`},
		{"sub-millisecond precision", `{"type":"message","role":"assistant","metrics":{"llm_node_ttft":0.80039996}}`, `{"turns":1,"ttft":[800.4]}`},
		{"not measured", `{"type":"message","role":"assistant","metrics":{"llm_node_ttft":-1,"tts_node_ttfb":null}}`, `{"turns":1}`},
		{"nonsense", `{"type":"message","role":"assistant","metrics":{"llm_node_ttft":"fast","tts_node_ttfb":1e300,"llm_prompt_tokens":{},"x":[1]},"interrupted":"yes"},{"type":7,"role":[],"item":[],"metrics":3}`, `{"turns":1}`},
		{"metrics null", `{"type":"message","role":"assistant","metrics":null,"item":null}`, `{"turns":1}`},
		{"other roles", `{"type":"message","role":"user","interrupted":true},{"type":"message","role":"system"}`, `{}`},
		{"tools and handoffs", `{"type":"function_call","name":"f"},{"type":"function_call_output","call_id":"1"},{"type":"agent_handoff","item":{"type":"agent_handoff"}},{"type":"function_call"},{"type":"new_thing"}`, `{"tools":2,"handoffs":1}`},
		{"a plugin's fallback", `{"type":"message","_serialize_error":true,"repr":"<x>"}`, `{}`},
		{"usage instead of messages", `{"type":"message","role":"assistant","metrics":{"llm_prompt_tokens":5}},{"type":"usage","provider":"p","model":"m","input_tokens":10,"output_tokens":2,"cached_tokens":4}`,
			`{"turns":1,"usage":[{"Provider":"p","Model":"m","Tokens":{"Prompt":10,"Completion":2,"Total":12,"Cached":4}}]}`},
		{"usage without tokens does not hide messages", `{"type":"message","role":"assistant","metrics":{"llm_prompt_tokens":5}},{"type":"usage","provider":"p"}`,
			`{"turns":1,"usage":[{"Provider":"","Model":"","Tokens":{"Prompt":5,"Completion":0,"Total":5,"Cached":0}}]}`},
		{"nested usage, details", `{"type":"usage","model":"m","usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":20,"x":1}}}`,
			`{"usage":[{"Provider":"","Model":"m","Tokens":{"Prompt":10,"Completion":2,"Total":13,"Cached":10}}]}`},
		{"models apart", `{"type":"llm_usage","model":"a","total_tokens":10,"output_tokens":4},{"type":"usage","model":"b","input_tokens":1},{"type":"usage","model":"a","input_tokens":1}`,
			`{"usage":[{"Provider":"","Model":"a","Tokens":{"Prompt":7,"Completion":4,"Total":11,"Cached":0}},{"Provider":"","Model":"b","Tokens":{"Prompt":1,"Completion":0,"Total":1,"Cached":0}}]}`},
		{"implausible counts", `{"type":"usage","input_tokens":1e18,"output_tokens":3.9}`, `{"usage":[{"Provider":"","Model":"","Tokens":{"Prompt":0,"Completion":3,"Total":3,"Cached":0}}]}`},
		{"escaped names", `{"t\u0079pe":"m\u0065ssage","role":"\u0061ssistant"}`, `{"turns":1}`},
	} {
		c := oneCase(t, `,"events":[`+tt.events+`]`)
		got := show(struct {
			Turns       int          `json:"turns,omitempty"`
			Tools       int          `json:"tools,omitempty"`
			Interrupted int          `json:"interrupted,omitempty"`
			Handoffs    int          `json:"handoffs,omitempty"`
			TTFT        []float64    `json:"ttft,omitempty"`
			TTFB        []float64    `json:"ttfb,omitempty"`
			Usage       []ModelUsage `json:"usage,omitempty"`
		}{c.TurnCount, c.ToolCallCount, c.InterruptionCount, c.AgentHandoffCount, c.TTFT, c.TTFB, c.Usage})
		if got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.what, got, tt.want)
		}
		var sum Tokens
		for _, u := range c.Usage {
			sum.add(u.Tokens)
		}
		if sum != c.Tokens {
			t.Errorf("%s: tokens %+v", tt.what, c.Tokens)
		}
	}
}

func TestManyModelsStayBounded(t *testing.T) {
	events := ""
	for i := range 3 * maxModels {
		events += `{"type":"usage","model":"` + caseID(i) + `","input_tokens":1},`
	}
	c := oneCase(t, `,"events":[`+events+`{}]`)
	if len(c.Usage) != maxModels+1 || c.Tokens.Prompt != 3*maxModels {
		t.Errorf("%d models, %d tokens", len(c.Usage), c.Tokens.Prompt)
	}
	if last := c.Usage[maxModels]; last.Model != "" || last.Tokens.Prompt != 2*maxModels {
		t.Errorf("%+v", last)
	}
}

func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		judgments string
		want      []Verdict
		failed    bool
	}{
		{``, nil, false},
		{`{"judge_name":"j","name":"n","intent":"i","verdict":"PASS "}`, []Verdict{{"j", "pass"}}, false},
		{`{"name":"n","intent":"i","verdict":"Fail"},{"intent":"i","verdict":"maybe"}`, []Verdict{{"n", "fail"}, {"i", "maybe"}}, true},
		{`{"judge_name":"","name":null,"intent":"i","verdict":"pass"}`, []Verdict{{"i", "pass"}}, false},
		{`{"verdict":"odd"},{"intent":"i"},{"intent":"i","verdict":null},{"intent":"i","verdict":3},{}`, []Verdict{{"", "odd"}}, false},
		{`{"intent":"i","verdict":"failure"}`, []Verdict{{"i", "failure"}}, false},
	} {
		c := oneCase(t, `,"judgments":[`+tt.judgments+`]`)
		stored := Case{Judgments: c.Judgments}
		for _, got := range [][]Verdict{c.Verdicts(), stored.Verdicts()} {
			if len(got)+len(tt.want) > 0 && !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s: %v, want %v", tt.judgments, got, tt.want)
			}
		}
		if c.JudgeFailed != tt.failed {
			t.Errorf("%s: judge failed %v", tt.judgments, c.JudgeFailed)
		}
	}
	for _, damaged := range []string{`{}`, `[1,"a",{"verdict":"x"`, `nonsense`} {
		c := Case{Judgments: []byte(damaged)}
		if got := c.Verdicts(); len(got) > 1 {
			t.Errorf("%s: %v", damaged, got)
		}
	}
}

func TestPrice(t *testing.T) {
	price := func(_, model string, in, cached, out int64) (float64, bool) {
		return float64(in) + float64(cached)/10 + float64(out)*100, model != "unknown"
	}
	use := func(model string, prompt int64) ModelUsage {
		return ModelUsage{Model: model, Tokens: Tokens{Prompt: prompt, Completion: 1, Cached: 10}}
	}
	for _, tt := range []struct {
		what  string
		usage []ModelUsage
		want  string
	}{
		{"nothing", nil, "null"},
		{"two models", []ModelUsage{use("a", 5), use("b", 6)}, "213"},
		{"no partial sum", []ModelUsage{use("a", 5), use("unknown", 6)}, "null"},
		{"an unknown model without tokens", []ModelUsage{use("a", 5), {Model: "unknown"}}, "106"},
	} {
		old := 1.0
		c := Case{CaseSummary: CaseSummary{CostUSD: &old}, Usage: tt.usage}
		c.Price(price)
		if got := show(c.CostUSD); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}

func TestAggregate(t *testing.T) {
	if got, want := show(Aggregate(nil).Tally), `{"total":0,"passed":0,"failed":0,"errored":0,"skipped":0,"pass_rate":null}`; got != want {
		t.Errorf("no cases: %s", got)
	}
	if got := Aggregate([]CaseSummary{{Status: CaseSkipped}}); got.PassRate != nil || got.EstimatedCostUSD != nil || got.TTFTP50MS != nil {
		t.Errorf("nothing ran: %s", show(got))
	}
	one, two := 1.0, 2.5
	cases := []CaseSummary{
		{Status: CasePassed, CostUSD: &one, Tokens: Tokens{Prompt: 1}, TTFT: []float64{100, 200, 300.6}},
		{Status: CasePassed, JudgeFailed: true, CostUSD: &two, Tokens: Tokens{Prompt: 1}, TTFT: []float64{4000}, TTFB: []float64{50.4}},
		{Status: CaseErrored, JudgeFailed: true},
		{Status: CaseSkipped, JudgeFailed: true},
		{Status: CaseFailed},
	}
	got := Aggregate(cases)
	if show(got.Tally) != `{"total":5,"passed":1,"failed":2,"errored":1,"skipped":1,"pass_rate":0.25}` {
		t.Errorf("tally: %s", show(got.Tally))
	}
	// Over all samples 100, 200, 300.6, 4000: the 2nd and the 4th, not an average of the cases' own.
	if *got.TTFTP50MS != 200 || *got.TTFTP95MS != 4000 || *got.TTFTAvgMS != 1150 || got.TTFTSampleCount != 4 || *got.TTFBAvgMS != 50 {
		t.Errorf("latency: %s", show(got.Metrics))
	}
	if *got.EstimatedCostUSD != 3.5 {
		t.Errorf("cost: %s", show(got.EstimatedCostUSD))
	}
	if cases[0].TTFT[2] != 300.6 {
		t.Error("the samples of a case were reordered")
	}
	if got := Aggregate(append(cases, CaseSummary{Status: CasePassed, Tokens: Tokens{Total: 1}})); got.EstimatedCostUSD != nil {
		t.Errorf("a partial cost: %s", show(got.EstimatedCostUSD))
	}
}

func TestCaseMetricsDoNotReorderSamples(t *testing.T) {
	c := CaseSummary{TTFT: []float64{3, 1, 2}, TTFB: []float64{9, 8}}
	m := c.Metrics()
	if *m.TTFTP50MS != 2 || *m.TTFBP50MS != 8 || !reflect.DeepEqual(c.TTFT, []float64{3, 1, 2}) {
		t.Errorf("%s %v", show(m), c.TTFT)
	}
}

package alert

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sidetone/internal/errs"
)

// body merges fields (JSON text by name, "" removes one) into the smallest legal rule.
func body(fields map[string]string) []byte {
	all := map[string]string{"name": `"slow"`, "metric": `"latency_perceived_p95"`, "threshold_value": "800", "window_minutes": "15", "webhook_url": `"https://example.com/hook"`}
	maps.Copy(all, fields)
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if all[k] != "" {
			parts = append(parts, fmt.Sprintf("%q: %s", k, all[k]))
		}
	}
	return []byte("{" + strings.Join(parts, ", ") + "}")
}

func create(raw []byte) (Rule, error) {
	p, err := ParsePatch(raw)
	if err != nil {
		return Rule{}, err
	}
	return NewRule(p, "id", noon)
}

// violated is the fields that an error names, sorted and joined.
func violated(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid {
		t.Fatalf("not a validation error: %v", err)
	}
	var names []string
	for _, f := range e.Fields {
		if f.Message == "" || strings.Contains(f.Message, "%!") {
			t.Errorf("message of %s: %q", f.Field, f.Message)
		}
		names = append(names, f.Field)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestCreateWithDefaults(t *testing.T) {
	r, err := create(body(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := Rule{ID: "id", Name: "slow", Enabled: true, Metric: LatencyPerceived, Threshold: 800, WindowMinutes: 15, MinSamples: 1,
		EvalSource: SourceAll, WebhookURL: "https://example.com/hook", HTTPMethod: "POST", CreatedAt: noon, UpdatedAt: noon}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v\nwant %+v", r, want)
	}
}

func TestCreateWithEverything(t *testing.T) {
	r, err := create(body(map[string]string{"metric": `"eval_fail_rate"`, "threshold_value": "0.3", "enabled": "false", "min_samples": "5", "agent_id": `"a"`,
		"account_id": `"b"`, "judge_name": `"tone"`, "eval_source": `"runs"`, "http_method": `"PATCH"`, "secret": `"s"`, "headers": `{"X-Team":"voice","content-type":"text/plain"}`}))
	if err != nil {
		t.Fatal(err)
	}
	want := Rule{ID: "id", Name: "slow", Metric: EvalFailRate, Threshold: 0.3, WindowMinutes: 15, MinSamples: 5, AgentID: "a", AccountID: "b", JudgeName: "tone",
		EvalSource: SourceRuns, WebhookURL: "https://example.com/hook", HTTPMethod: "PATCH", Secret: "s",
		Headers: map[string]string{"X-Team": "voice", "content-type": "text/plain"}, CreatedAt: noon, UpdatedAt: noon}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v\nwant %+v", r, want)
	}
}

func TestValidation(t *testing.T) {
	long := func(n int) string { return `"` + strings.Repeat("é", n) + `"` }
	headers := func(n int) string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("x-%d", i)] = "v"
		}
		b, _ := json.Marshal(m)
		return string(b)
	}
	type fields = map[string]string
	for _, c := range []struct {
		fields fields
		want   string
	}{
		{fields{}, ""},
		{fields{"name": ""}, "name"},
		{fields{"name": `""`}, "name"},
		{fields{"name": "null"}, "name"},
		{fields{"name": "5"}, "name"},
		{fields{"name": long(200)}, ""},
		{fields{"name": long(201)}, "name"},
		{fields{"name": `"a\u0000b"`}, "name"},
		{fields{"metric": ""}, "metric"},
		{fields{"metric": `"latency"`}, "metric"},
		{fields{"metric": "7"}, "metric"},
		{fields{"threshold_value": ""}, "threshold_value"},
		{fields{"threshold_value": "0"}, "threshold_value"},
		{fields{"threshold_value": "-1"}, "threshold_value"},
		{fields{"threshold_value": "1e999"}, "threshold_value"},
		{fields{"threshold_value": `"800"`}, "threshold_value"},
		{fields{"threshold_value": "null"}, "threshold_value"},
		{fields{"threshold_value": "0.001"}, ""},
		{fields{"metric": `"interruption_rate"`, "threshold_value": "1"}, ""},
		{fields{"metric": `"interruption_rate"`, "threshold_value": "1.01"}, "threshold_value"},
		{fields{"metric": `"outcome_fail_rate"`, "threshold_value": "30"}, "threshold_value"},
		{fields{"window_minutes": ""}, "window_minutes"},
		{fields{"window_minutes": "14"}, "window_minutes"},
		{fields{"window_minutes": "15.5"}, "window_minutes"},
		{fields{"window_minutes": "15.0"}, ""},
		{fields{"window_minutes": `"15"`}, "window_minutes"},
		{fields{"window_minutes": "null"}, "window_minutes"},
		{fields{"window_minutes": "1e18"}, "window_minutes"},
		{fields{"window_minutes": "527040"}, ""},
		{fields{"window_minutes": "527041"}, "window_minutes"},
		{fields{"min_samples": "0"}, "min_samples"},
		{fields{"min_samples": "-5"}, "min_samples"},
		{fields{"min_samples": "1.5"}, "min_samples"},
		{fields{"min_samples": "true"}, "min_samples"},
		{fields{"min_samples": "null"}, ""},
		{fields{"enabled": `"yes"`}, "enabled"},
		{fields{"enabled": "null"}, ""},
		{fields{"agent_id": long(512), "account_id": long(512)}, ""},
		{fields{"agent_id": long(513), "account_id": long(513)}, "account_id agent_id"},
		{fields{"agent_id": `""`, "account_id": "5"}, "account_id agent_id"},
		{fields{"agent_id": "null", "account_id": "null", "judge_name": "null", "secret": "null", "headers": "null", "http_method": "null", "eval_source": "null"}, ""},
		{fields{"judge_name": `"tone"`}, "judge_name"},
		{fields{"judge_name": `"tone"`, "metric": `"eval_fail_rate"`, "threshold_value": "0.5"}, ""},
		{fields{"eval_source": `"runs"`}, "eval_source"},
		{fields{"eval_source": `"all"`}, ""},
		{fields{"eval_source": `"some"`}, "eval_source"},
		{fields{"webhook_url": ""}, "webhook_url"},
		{fields{"webhook_url": `"ftp://example.com"`}, "webhook_url"},
		{fields{"webhook_url": `"/hook"`}, "webhook_url"},
		{fields{"webhook_url": `"http://"`}, "webhook_url"},
		{fields{"webhook_url": `"http:example.com"`}, "webhook_url"},
		{fields{"webhook_url": `"http://h:99999/"`}, "webhook_url"},
		{fields{"webhook_url": `"http://h\n/"`}, "webhook_url"},
		{fields{"webhook_url": `"HTTP://127.0.0.1:8080/a?b=c"`}, ""},
		{fields{"webhook_url": `"http://[::1]:8080/"`}, ""},
		{fields{"webhook_url": `"http://h/` + strings.Repeat("a", 2039) + `"`}, ""},
		{fields{"webhook_url": `"http://h/` + strings.Repeat("a", 2040) + `"`}, "webhook_url"},
		{fields{"http_method": `"GET"`}, "http_method"},
		{fields{"http_method": `"post"`}, "http_method"},
		{fields{"http_method": `"PUT"`}, ""},
		{fields{"secret": `""`}, "secret"},
		{fields{"secret": long(1024)}, ""},
		{fields{"secret": long(1025)}, "secret"},
		{fields{"secret": `"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`}, ""},
		{fields{"secret": `"whsec_not base64!"`}, "secret"},
		{fields{"secret": `"whsec_"`}, "secret"},
		{fields{"headers": `[]`}, "headers"},
		{fields{"headers": `{}`}, ""},
		{fields{"headers": `{"a":5,"b":null}`}, "headers.a headers.b"},
		{fields{"headers": headers(50)}, ""},
		{fields{"headers": headers(51)}, "headers"},
		{fields{"headers": `{"a b":"v","":"v","ü":"v","a:":"v"}`}, "headers. headers.a b headers.a: headers.ü"},
		{fields{"headers": `{"A":"v\r\nb: c","B":"v\u0000","C":"tab\tis fine, ü too"}`}, "headers.A headers.B"},
		{fields{"headers": `{"X-A":"1","x-a":"2"}`}, "headers.x-a"},
		{fields{"headers": `{"Host":"h","Content-Length":"1","transfer-encoding":"x","Connection":"x","X-Alert-Signature":"x","x-alert-anything":"x"}`},
			"headers.Connection headers.Content-Length headers.Host headers.X-Alert-Signature headers.transfer-encoding headers.x-alert-anything"},
		{fields{"treshold_value": "5"}, "treshold_value"},
		{fields{"id": `"x"`, "has_secret": "true", "last_fired_at": "null", "suppressed_until": "null", "created_at": "1", "updated_at": "1", "api_id": "1"}, ""},
		{fields{"name": `""`, "metric": `"outcome_fail_rate"`, "threshold_value": "30", "window_minutes": "5", "min_samples": "0", "webhook_url": `"x"`, "http_method": `"GET"`, "judge_name": `"j"`},
			"http_method judge_name min_samples name threshold_value webhook_url window_minutes"},
	} {
		_, err := create(body(c.fields))
		if got := violated(t, err); got != c.want {
			t.Errorf("%v: violated %q, want %q (%v)", c.fields, got, c.want, err)
		}
	}
}

func TestRateThresholdIsExplained(t *testing.T) {
	_, err := create(body(map[string]string{"metric": `"eval_fail_rate"`, "threshold_value": "30"}))
	if err == nil || !strings.Contains(err.Error(), "threshold_value: rate thresholds are fractions: use 0.3 for 30%") {
		t.Errorf("got %v", err)
	}
}

func TestBodiesThatAreNoRules(t *testing.T) {
	for raw, want := range map[string]errs.Kind{"": errs.InvalidJSON, "{": errs.InvalidJSON, `{"a":1}x`: errs.InvalidJSON, "[]": errs.Invalid, "null": errs.Invalid, `"a"`: errs.Invalid, "5": errs.Invalid} {
		if _, err := ParsePatch([]byte(raw)); !errs.Is(err, want) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestPatchKeepsClearsAndRevalidates(t *testing.T) {
	stored, err := create(body(map[string]string{"metric": `"eval_fail_rate"`, "threshold_value": "0.3", "min_samples": "5", "agent_id": `"a"`, "account_id": `"b"`,
		"judge_name": `"tone"`, "eval_source": `"runs"`, "secret": `"s"`, "headers": `{"X-A":"1"}`, "http_method": `"PUT"`, "enabled": "false"}))
	if err != nil {
		t.Fatal(err)
	}
	stored.LastFiredAt = noon.Add(time.Minute)
	later := noon.Add(time.Hour)
	apply := func(raw string) (Rule, error) {
		p, err := ParsePatch([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return p.Apply(stored, later)
	}
	for _, c := range []struct {
		raw  string
		edit func(*Rule)
	}{
		{`{}`, func(*Rule) {}},
		{`{"threshold_value": 0.5}`, func(r *Rule) { r.Threshold = 0.5 }},
		{`{"agent_id": null}`, func(r *Rule) { r.AgentID = "" }},
		{`{"secret": null, "headers": null, "judge_name": null}`, func(r *Rule) { r.Secret, r.Headers, r.JudgeName = "", nil, "" }},
		{`{"headers": {"X-B": "2"}}`, func(r *Rule) { r.Headers = map[string]string{"X-B": "2"} }},
		{`{"headers": {}}`, func(r *Rule) { r.Headers = nil }},
		{`{"min_samples": null, "http_method": null, "eval_source": null, "enabled": null}`, func(r *Rule) { r.MinSamples, r.HTTPMethod, r.EvalSource, r.Enabled = 1, "POST", SourceAll, true }},
		{`{"metric": "latency_stt_p95", "threshold_value": 500, "judge_name": null, "eval_source": null}`,
			func(r *Rule) { r.Metric, r.Threshold, r.JudgeName, r.EvalSource = LatencySTT, 500, "", SourceAll }},
	} {
		want := stored
		want.UpdatedAt = later
		c.edit(&want)
		if got, err := apply(c.raw); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", c.raw, err, got, want)
		}
	}
	for raw, want := range map[string]string{
		`{"name": null}`:                         "name",
		`{"webhook_url": null}`:                  "webhook_url",
		`{"metric": "outcome_fail_rate"}`:        "eval_source judge_name",
		`{"threshold_value": 2}`:                 "threshold_value",
		`{"window_minutes": 1, "min_samples":0}`: "min_samples window_minutes",
	} {
		_, err := apply(raw)
		if got := violated(t, err); got != want {
			t.Errorf("%s: violated %q, want %q", raw, got, want)
		}
	}
	if stored.Headers["X-A"] != "1" || len(stored.Headers) != 1 {
		t.Errorf("a patch changed the stored rule: %v", stored.Headers)
	}
}

func FuzzParsePatch(f *testing.F) {
	f.Add(body(nil))
	f.Add([]byte(`{"headers":{"a":1},"window_minutes":1e400,"threshold_value":-0,"min_samples":null}`))
	f.Add([]byte(`{"from":"2026-11-21T05:20:00Z","to":"x","step_seconds":0.1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if r, err := create(raw); err == nil {
			if _, err := (Patch{}).Apply(r, noon); err != nil {
				t.Errorf("a legal rule is illegal when patched with nothing: %v", err)
			}
		}
		ParsePreview(raw, noon)
	})
}

package report

import (
	"encoding/json"
	"testing"
	"time"

	"sidetone/internal/errs"
)

func TestNormalizeItem(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"as it is", `{"id":"a","created_at":1795238401.6,"extra":{},"metrics":{"e2e_latency":1.25}}`,
			`{"id":"a","created_at":1795238401.6,"extra":{},"metrics":{"e2e_latency":1.25}}`},
		{"camelCase", `{"type":"message","transcriptConfidence":0.5,"metrics":{"llmMetadata":{"modelName":"m","modelProvider":"p"},"llmNodeTTFT":1,"e2eLatency":2,"providerRequestIds":["aB"]}}`,
			`{"type":"message","transcript_confidence":0.5,"metrics":{"llm_metadata":{"model_name":"m","model_provider":"p"},"llm_node_ttft":1,"e2e_latency":2,"provider_request_ids":["aB"]}}`},
		{"extra and arguments untouched", `{"type":"function_call","callId":"c","args":{"orderId":{"aB":1}},"extra":{"isSummary":{"xY":true}}}`,
			`{"type":"function_call","call_id":"c","arguments":{"orderId":{"aB":1}},"extra":{"isSummary":{"xY":true}}}`},
		{"output untouched", `{"type":"function_call_output","output":{"orderId":1},"isError":false}`,
			`{"type":"function_call_output","output":{"orderId":1},"is_error":false}`},
		{"milliseconds", `{"type":"x","createdAt":1795238401600,"metrics":{"startedSpeakingAt":1795238401601.5}}`,
			`{"type":"x","created_at":1795238401.6,"metrics":{"started_speaking_at":1795238401.6015}}`},
		{"microseconds and nanoseconds", `{"type":"x","created_at":1795238401600000,"metrics":{"stopped_speaking_at":1795238401600000000}}`,
			`{"type":"x","created_at":1795238401.6,"metrics":{"stopped_speaking_at":1795238401.6}}`},
		{"text times", `{"type":"x","created_at":"2026-11-21T05:20:01.600Z","metrics":{"started_speaking_at":"2026-11-21T06:20:01.5+01:00"}}`,
			`{"type":"x","created_at":1795238401.6,"metrics":{"started_speaking_at":1795238401.5}}`},
		{"no times", `{"type":"x","created_at":"soon","metrics":{"started_speaking_at":-1,"stopped_speaking_at":null}}`,
			`{"type":"x","created_at":"soon","metrics":{"started_speaking_at":-1,"stopped_speaking_at":null}}`},
		{"unknown keys and types", `{"type":"newThing","someKey":{"innerKey":[{"deepKey":null}]},"lk.pii.Text":1,"X-Header":2,"URL":3,"a_bC":4,"URLPath":5,"getURLPath":6,"é":7}`,
			`{"type":"newThing","some_key":{"inner_key":[{"deep_key":null}]},"lk.pii.Text":1,"X-Header":2,"URL":3,"a_b_c":4,"URLPath":5,"get_url_path":6,"é":7}`},
		{"escaped key", `{"type":"x","\u0061B":1}`, `{"type":"x","\u0061B":1}`},
		{"white space", "{ \"type\" : \"x\" , \"a\" : [ 1 , { } ] }", `{"type":"x","a":[1,{}]}`},
		{"proto-JSON", `{"message":{"id":"a","role":"USER","content":[{"text":"hi \"you\""}],"created_at":"2026-11-21T05:20:01.6Z"}}`,
			`{"type":"message","id":"a","role":"user","content":["hi \"you\""],"created_at":1795238401.6}`},
		{"proto-JSON roles", `{"role":"ASSISTANT","x":{"role":"SYSTEM","y":{"role":"DEVELOPER","z":{"role":"User"}}}}`,
			`{"type":"message","role":"assistant","x":{"role":"system","y":{"role":"developer","z":{"role":"User"}}}}`},
		{"proto-JSON developer", `{"message":{"id":"a"}}`, `{"type":"message","role":"developer","id":"a"}`},
		{"proto-JSON empty", `{"agent_handoff":{}}`, `{"type":"agent_handoff"}`},
		{"no type, told by a key", `{"name":"f","arguments":"{}"}`, `{"type":"function_call","name":"f","arguments":"{}"}`},
		{"text part with more to it stays", `{"type":"message","content":[{"text":"a","type":"text"},{"text":1},{"type":"image_content","imageUrl":"u"}]}`,
			`{"type":"message","content":[{"text":"a","type":"text"},{"text":1},{"type":"image_content","image_url":"u"}]}`},
		{"NaN", `{"type":"x","metrics":{"e2e_latency":NaN}}`, `{"type":"x","metrics":{"e2e_latency":null}}`},
		{"no object", `[1]`, `null`},
		{"no JSON", `{"a":`, `null`},
		{"empty", ``, `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := NormalizeItem(json.RawMessage(c.in))
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if again := NormalizeItem(got); string(again) != c.want {
				t.Errorf("a second time it gives %s", again)
			}
		})
	}
}

func TestParseItem(t *testing.T) {
	const wrapped = `{"message":{"id":"i1","role":"ASSISTANT","content":[{"text":"Hello"},{"text":"there"}],"interrupted":true,
		"transcript_confidence":1,"extra":{"a":"b"},"metrics":{"started_speaking_at":"2026-11-21T05:20:01.250Z","llm_node_ttft":1,"e2e_latency":0.75},
		"created_at":"2026-11-21T05:20:01.6Z"}}`
	it, err := ParseItem([]byte(wrapped))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 5, 20, 1, 600e6, time.UTC)
	if it.Type != "message" || it.Role != "assistant" || it.Text != "Hello\nthere" || !it.Interrupted || !it.CreatedAt.Equal(at) ||
		*it.TranscriptConfidence != 1 || *it.Metrics.LLMNodeTTFT != 1 || *it.Metrics.E2ELatency != 0.75 ||
		!it.Metrics.StartedSpeakingAt.Equal(at.Add(-350*time.Millisecond)) || it.ID != "i1" {
		t.Errorf("got %+v", it)
	}
	for _, c := range []struct{ in, kind, role string }{
		{`{"message":{"id":"a","content":[{"text":"x"}]}}`, "message", "developer"},
		{`{"id":"a","content":[{"text":"x"}]}`, "message", "developer"},
		{`{"id":"a","role":"SYSTEM"}`, "message", "system"},
		{`{"type":"message","content":[]}`, "message", ""},
		{`{"function_call":{"call_id":"c"}}`, "function_call", ""},
		{`{"call_id":"c","output":"o"}`, "function_call_output", ""},
		{`{"agent_handoff":{"new_agent_id":"n"}}`, "agent_handoff", ""},
		{`{"agent_config_update":{"instructions":"i"}}`, "agent_config_update", ""},
		{`{"type":5,"role":"user"}`, "", "user"},
		{`{"odd":{"id":"a"}}`, "", ""},
		{`{"message":{"id":"a"},"level":"info"}`, "", ""},
		{`{}`, "", ""},
	} {
		it, err := ParseItem([]byte(c.in))
		if err != nil || it.Type != c.kind || it.Role != c.role {
			t.Errorf("ParseItem(%s) = type %q, role %q, %v; want %q, %q", c.in, it.Type, it.Role, err, c.kind, c.role)
		}
	}
	for in, kind := range map[string]errs.Kind{`7`: errs.Invalid, `"a"`: errs.Invalid, `[]`: errs.Invalid, ``: errs.InvalidJSON,
		`{`: errs.InvalidJSON, `{}x`: errs.InvalidJSON} {
		if it, err := ParseItem([]byte(in)); errs.KindOf(err) != kind || err == nil || it.Raw != nil {
			t.Errorf("ParseItem(%s) = %+v, %v; want kind %v", in, it, err, kind)
		}
	}
}

func TestStripMarkup(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                      "plain",
		`<expr type="a"/> Hello`:     "Hello",
		`Right. <expr type="a"/> So`: "Right. So",
		`Right.<expr type="a"/> So`:  "Right. So",
		`Right. <expr type="a"/>So`:  "Right. So",
		`one <expr type="prosody" label="whisper">two</expr> three`: "one two three",
		`a <expr label="x > y" b='>'/> b`:                           "a b",
		`<expr/>`:                                                   "",
		`say <expression value="calm"/> this`:                       `say <expression value="calm"/> this`,
		`left open <expr type="a" and more`:                         `left open <expr type="a" and more`,
		`two <expr <expr/> marks`:                                   `two <expr marks`,
		"a\n<expr/>\nb":                                             "a\n\nb",
		"ends in <expr":                                             "ends in <expr",
		"</expr> 1 < 2":                                             "1 < 2",
	} {
		if got := stripMarkup(in); got != want {
			t.Errorf("stripMarkup(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestEpoch(t *testing.T) {
	for in, want := range map[string]string{
		`1795238401.6`: "2026-11-21T05:20:01.6Z", `1795238401.123456`: "2026-11-21T05:20:01.123456Z",
		`1795238401600`: "2026-11-21T05:20:01.6Z", `1795238401600.5`: "2026-11-21T05:20:01.6005Z",
		`1795238401600000`: "2026-11-21T05:20:01.6Z", `1795238401600000000`: "2026-11-21T05:20:01.6Z",
		`1.7952384016e9`: "2026-11-21T05:20:01.6Z", `12.5`: "1970-01-01T00:00:12.5Z",
		`"2026-11-21T05:20:01.6Z"`: "2026-11-21T05:20:01.6Z", `"2026-11-21T07:20:01.6+02:00"`: "2026-11-21T05:20:01.6Z",
		`"2026-11-21T05:20:01.6"`: "2026-11-21T05:20:01.6Z", `"2026-11-21 05:20:01.6+00:00"`: "2026-11-21T05:20:01.6Z",
		`"1795238401600"`: "2026-11-21T05:20:01.6Z",
		`0`:               "", `-1`: "", `-1795238401`: "", `1e19`: "", `1e300`: "", `1e999`: "", `1e-30`: "", `null`: "", `true`: "", `{}`: "", `""`: "",
		`"soon"`: "", `"NaN"`: "", `"Infinity"`: "", `"0000-01-01T00:00:00Z"`: "", `"1960-01-01T00:00:00Z"`: "",
	} {
		s := scanner{b: []byte(in)}
		at := s.time()
		if s.end(); s.err != nil {
			t.Errorf("%s: %v", in, s.err)
		}
		if want == "" && !at.IsZero() || want != "" && at.Format(time.RFC3339Nano) != want {
			t.Errorf("%s gives %v, want %q", in, at, want)
		}
		if at.Location() != time.UTC {
			t.Errorf("%s is not in UTC", in)
		}
	}
}

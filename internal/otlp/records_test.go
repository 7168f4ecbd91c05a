package otlp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"sidetone/internal/session"
)

// value makes an attribute value of plain JSON, so that tests read like what they mean.
func value(t testing.TB, plain string) *commonpb.AnyValue {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(plain))
	dec.UseNumber()
	return valueAt(t, dec)
}

func valueAt(t testing.TB, dec *json.Decoder) *commonpb.AnyValue {
	t.Helper()
	tok, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch tok := tok.(type) {
	case string:
		return str(tok)
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: tok}}
	case json.Number:
		if n, err := tok.Int64(); err == nil {
			return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: n}}
		}
		f, err := tok.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: f}}
	case json.Delim:
		if tok == '[' {
			list := &commonpb.ArrayValue{}
			for dec.More() {
				list.Values = append(list.Values, valueAt(t, dec))
			}
			dec.Token() // the bracket
			return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
		}
		kvs := &commonpb.KeyValueList{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			kvs.Values = append(kvs.Values, &commonpb.KeyValue{Key: key.(string), Value: valueAt(t, dec)})
		}
		dec.Token()
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: kvs}}
	}
	return &commonpb.AnyValue{}
}

var recordTime = time.Date(2026, 11, 21, 5, 20, 0, 0, time.UTC)

// special makes a special record: its body and its attributes as JSON.
func special(t testing.TB, body, attrs string) *logspb.LogRecord {
	r := &logspb.LogRecord{TimeUnixNano: uint64(recordTime.UnixNano()), Body: str(body)}
	r.Attributes = append(value(t, attrs).GetKvlistValue().GetValues(), attr("room_id", "RM"))
	return r
}

func groupOf(t testing.TB, scope string, records ...*logspb.LogRecord) LogGroup {
	t.Helper()
	l := decodeLogs(t, request{typeProtobuf, "", marshal(t, logsOf(scope, records...))})
	if len(l.Groups) != 1 {
		t.Fatalf("%d groups", len(l.Groups))
	}
	return l.Groups[0]
}

func TestValuesBecomePlainJSON(t *testing.T) {
	for _, want := range []string{`{}`, `{"s":"a\"\\\n<é😀>","i":9223372036854775807,"n":-1,"d":0.1,"b":true,"a":[1,"x",[],{}],"m":{"k":{"z":null}},"e":null}`} {
		var w writer
		if got := w.object(value(t, want).GetKvlistValue().GetValues()); string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	var w writer
	double := func(f float64) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: f}}
	}
	zero := 0.0
	for want, v := range map[string]*commonpb.AnyValue{
		`"AAH/"`:         {Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte{0, 1, 255}}},
		`"NaN"`:          double(zero / zero),
		`"Infinity"`:     double(1 / zero),
		`"-Infinity"`:    double(-1 / zero),
		`1795238448.076`: double(1795238448.076),
		`1e+300`:         double(1e300),
		`3`:              double(3),
		`null`:           nil,
	} {
		if got := w.value(v); string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRepeatedKeysKeepTheLast(t *testing.T) {
	var w writer
	if got := w.object([]*commonpb.KeyValue{attr("a", "1"), attr("b", "2"), attr("a", "3")}); string(got) != `{"b":"2","a":"3"}` {
		t.Errorf("few: %s", got)
	}
	var many []*commonpb.KeyValue
	for i := range 100 {
		many = append(many, attr(fmt.Sprint("k", i%50), fmt.Sprint(i)))
	}
	var back map[string]string
	doc := w.object(many)
	if err := json.Unmarshal(doc, &back); err != nil || len(back) != 50 || back["k0"] != "50" || strings.Count(string(doc), `"k0"`) != 1 {
		t.Errorf("many: %v %s", err, doc)
	}
}

func TestSessionReportOfNode(t *testing.T) {
	g := groupOf(t, "chat_history", special(t, "session report", `{"session.report_timestamp":1795238500060,"session.tags":"","session.options":"","agent_name":"","usage":[
		{"type":"llm_usage","inputTokens":10,"inputCachedTokens":4,"outputTokens":3,"sessionDurationMs":1500},
		{"type":"stt_usage","audioDurationMs":2250.5,"provider":"Deepgram"},"odd"]}`))
	s := g.Signals
	if !s.ReportTimestamp.Equal(time.UnixMilli(1795238500060)) || !s.StartedAt.Equal(recordTime) || s.Tags != nil || s.Options != nil || len(s.Usage) != 2 {
		t.Fatalf("%+v", s)
	}
	if u := s.Usage[0]; u.InputTokens != 10 || u.InputCachedTokens != 4 || u.OutputTokens != 3 || u.SessionDuration != 1.5 ||
		string(u.Raw) != `{"type":"llm_usage","input_tokens":10,"input_cached_tokens":4,"output_tokens":3,"session_duration":1.5}` {
		t.Errorf("%+v %s", u, u.Raw)
	}
	if u := s.Usage[1]; u.AudioDuration != 2.2505 || u.Provider != "Deepgram" {
		t.Errorf("%+v", u)
	}
	if !s.HasContent() || len(g.Records) != 0 {
		t.Errorf("content %v, logs %v", s.HasContent(), g.Records)
	}
}

func TestEpochs(t *testing.T) {
	want := time.Date(2026, 11, 21, 5, 20, 48, 76000000, time.UTC)
	for _, in := range []string{`1795238448.076`, `1795238448076`, `1795238448076000`, `1795238448076000000`, `"1795238448.076"`, `"2026-11-21T05:20:48.076Z"`, `"2026-11-21T06:20:48.076+01:00"`} {
		if got := epoch(value(t, in)); got.Sub(want).Abs() > time.Microsecond {
			t.Errorf("%s = %v", in, got)
		}
	}
	for _, in := range []string{`0`, `-5`, `1e300`, `"soon"`, `""`, `true`, `"9999-01-01T00:00:00Z"`, `"NaN"`} {
		if got := epoch(value(t, in)); !got.IsZero() {
			t.Errorf("%s = %v", in, got)
		}
	}
}

func TestChatItems(t *testing.T) {
	g := groupOf(t, "chat_history",
		special(t, "chat item", `{"chat.item":{"message":{"id":"i1","content":[{"text":"Be nice."}],"created_at":"2026-11-21T05:19:00Z"}}}`),
		special(t, "chat item", `{"chat.item":{"functionCall":{"id":"i2","callId":"c","name":"f","arguments":"{}","createdAt":"2026-11-21T05:19:01Z"}}}`),
		special(t, "chat item", `{"chat.item":{"function_call_output":{"id":"i3","call_id":"c","output":"no","is_error":true,"created_at":"2026-11-21T05:19:02Z"}}}`),
		special(t, "chat item", `{"chat.item":"{\"message\":{\"id\":\"i4\",\"role\":\"USER\",\"content\":[{\"text\":\"Hi\"}],\"metrics\":{\"transcription_delay\":1}}}"}`),
		special(t, "chat item", `{"chat.item":{"message":{"id":"i1","content":[{"text":"Be nice."}],"created_at":"2026-11-21T05:19:00Z"}}}`),
	)
	items := g.Signals.Items
	if len(items) != 4 || len(g.Records) != 0 {
		t.Fatalf("%d items, %d logs", len(items), len(g.Records))
	}
	if it := items[0]; it.Role != "developer" || it.Text != "Be nice." || it.Type != session.ItemMessage {
		t.Errorf("a message without a role: %+v", it)
	}
	if it := items[1]; it.Type != session.ItemFunctionCall || it.CallID != "c" || it.Arguments != "{}" || it.CreatedAt.IsZero() {
		t.Errorf("a camelCase call: %+v", it)
	}
	if it := items[2]; !it.IsError || it.Output != "no" {
		t.Errorf("an output: %+v", it)
	}
	if it := items[3]; it.Role != "user" || it.Metrics.TranscriptionDelay == nil || *it.Metrics.TranscriptionDelay != 1 || !it.CreatedAt.Equal(recordTime) {
		t.Errorf("an item as text and without a time: %+v", it)
	}
}

func TestTimesPastTheCalendarAreUnknown(t *testing.T) {
	g := groupOf(t, "chat_history", special(t, "chat item", `{"chat.item":{"message":{"id":"i","role":"USER","created_at":"9999-12-31T23:59:59-23:00",`+
		`"metrics":{"started_speaking_at":"9999-12-31T23:59:59-23:00","stopped_speaking_at":"2026-11-21T05:20:00Z"}}}}`))
	if _, err := session.MarshalLogSignals(&g.Signals); err != nil {
		t.Fatal(err)
	}
	it := g.Signals.Items[0]
	if !it.CreatedAt.Equal(recordTime) || !it.Metrics.StartedSpeakingAt.IsZero() || !it.Metrics.StoppedSpeakingAt.Equal(recordTime) {
		t.Errorf("%+v", it)
	}
}

// TestItemsOfOneMillisecondStayInOrder has two items of the same created_at, told apart only by the record's time.
func TestItemsOfOneMillisecondStayInOrder(t *testing.T) {
	item := func(id string, push time.Duration) *logspb.LogRecord {
		r := special(t, "chat item", `{"chat.item":{"message":{"id":"`+id+`","role":"USER","created_at":"2026-11-21T05:20:00Z"}}}`)
		r.TimeUnixNano = uint64(recordTime.Add(push).UnixNano())
		return r
	}
	g := groupOf(t, "chat_history", item("z", -64), item("a", time.Microsecond+36))
	if items := g.Signals.Items; items[0].ID != "z" || items[1].ID != "a" || !items[0].CreatedAt.Equal(recordTime) {
		t.Errorf("order %s %s, first at %v", items[0].ID, items[1].ID, items[0].CreatedAt)
	}
}

func TestEvaluationsTagsOutcomes(t *testing.T) {
	errorRecord := special(t, "outcome", `{"outcome":{"reason":"caller hung up"}}`)
	errorRecord.SeverityNumber = logspb.SeverityNumber_SEVERITY_NUMBER_ERROR
	for _, c := range []struct {
		name   string
		record *logspb.LogRecord
		check  func(s session.LogSignals) bool
	}{
		{"evaluation by its tag alone", special(t, "evaluation", `{"evaluation":{"tag":"lk.judge.a:b:PASS"}}`),
			func(s session.LogSignals) bool {
				return s.Evaluations[0].JudgeName == "a:b" && s.Evaluations[0].Verdict == "pass"
			}},
		{"upper-case verdict", special(t, "evaluation", `{"evaluation":{"name":"j","verdict":" Fail "}}`),
			func(s session.LogSignals) bool { return s.Evaluations[0].Verdict == "fail" }},
		{"tag without metadata", special(t, "tag", `{"tag":{"name":"x","metadata":""}}`),
			func(s session.LogSignals) bool { return s.Tags[0].Name == "x" && s.Tags[0].Metadata == nil }},
		{"outcome as text", special(t, "outcome", `{"outcome":"Success"}`),
			func(s session.LogSignals) bool { return s.Outcome.Outcome == "success" }},
		{"outcome of 1.4 with a reason only", special(t, "outcome", `{"outcome":{"reason":"done"}}`),
			func(s session.LogSignals) bool { return s.Outcome.Outcome == "" && s.Outcome.Reason == "done" }},
		{"outcome of 1.4 that failed", errorRecord,
			func(s session.LogSignals) bool {
				return s.Outcome.Outcome == "fail" && s.Outcome.Reason == "caller hung up"
			}},
	} {
		g := groupOf(t, "evaluations", c.record)
		if len(g.Records) != 0 || !g.Signals.HasContent() || !c.check(g.Signals) {
			t.Errorf("%s: %+v, logs %v", c.name, g.Signals, g.Records)
		}
	}
}

// TestWhatIsNotUnderstoodStaysALog holds that nothing is lost: a special record without sense, and a record that only
// looks special, are application logs.
func TestWhatIsNotUnderstoodStaysALog(t *testing.T) {
	for _, c := range []struct{ scope, body, attrs string }{
		{"chat_history", "chat item", `{}`},
		{"chat_history", "chat item", `{"chat.item":5}`},
		{"chat_history", "chat item", `{"chat.item":"[]"}`},
		{"chat_history", "chat item", `{"chat.item":{}}`},
		{"evaluations", "evaluation", `{"evaluation":{"name":"j"}}`},
		{"evaluations", "evaluation", `{"evaluation":"pass"}`},
		{"evaluations", "tag", `{"tag":{"metadata":{}}}`},
		{"evaluations", "outcome", `{"outcome":{}}`},
		{"evaluations", "something new", `{}`},
		{"my.app", "session report", `{"sdk_version":"9"}`},
		{"my.app", "outcome", `{"outcome":{"outcome":"fail"}}`},
	} {
		g := groupOf(t, c.scope, special(t, c.body, c.attrs))
		if len(g.Records) != 1 || g.Records[0].Body != c.body || g.Signals.HasContent() {
			t.Errorf("%s/%s %s: %d logs, signals %+v", c.scope, c.body, c.attrs, len(g.Records), g.Signals)
		}
	}
	flattened := special(t, "tag", `{"tag":{"name":"x"},"logger.name":"evaluations"}`)
	if g := groupOf(t, "", flattened); len(g.Signals.Tags) != 1 {
		t.Errorf("a record whose scope a Collector dropped: %+v", g)
	}
}

func TestApplicationLogs(t *testing.T) {
	r := &logspb.LogRecord{ObservedTimeUnixNano: 7000, SeverityNumber: 17, SeverityText: "ERROR", EventName: "e", TraceId: bytes.Repeat([]byte{0xab}, 16),
		SpanId: bytes.Repeat([]byte{0xcd}, 8), Body: value(t, `{"a":[1]}`), Attributes: []*commonpb.KeyValue{attr("room_id", "RM")}}
	got := groupOf(t, "app", r).Records[0]
	if got.Body != `{"a":[1]}` || !got.Time.Equal(time.Unix(0, 7000)) || !got.ObservedAt.Equal(got.Time) || got.SeverityNumber != 17 || got.Event != "e" ||
		got.TraceID != strings.Repeat("ab", 16) || got.SpanID != strings.Repeat("cd", 8) || got.Logger != "app" {
		t.Errorf("%+v", got)
	}
	again := proto.Clone(r).(*logspb.LogRecord)
	again.TimeUnixNano = 1 << 63 // past all calendars: as if it were missing
	if g := groupOf(t, "app", again).Records[0]; g.Key != got.Key || !g.Time.Equal(got.Time) {
		t.Errorf("time %v, same key %v", g.Time, g.Key == got.Key)
	}
}

// TestJSONEqualsProtobuf sends the same data in both encodings: ids in hex, as OTLP's JSON has them, in base64, as
// protobuf's own JSON has them, enums by number and by name, and 64-bit numbers as text and as numbers.
func TestJSONEqualsProtobuf(t *testing.T) {
	data := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{
		Scope: &commonpb.InstrumentationScope{Name: "livekit-agents"},
		Spans: []*tracepb.Span{{
			TraceId: []byte("0123456789abcdef"), SpanId: []byte("01234567"), ParentSpanId: []byte("76543210"), Name: "llm_node",
			Kind: tracepb.Span_SPAN_KIND_CLIENT, StartTimeUnixNano: 1795238400000000001, EndTimeUnixNano: 1795238401000000000,
			Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "boom"},
			Attributes: []*commonpb.KeyValue{attr("room_id", "RM"), {Key: "n", Value: value(t, `12345678901234567`)},
				{Key: "b", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte("0123456789abcdef")}}}},
			Events: []*tracepb.Span_Event{{Name: "exception", TimeUnixNano: 1795238400500001000, Attributes: []*commonpb.KeyValue{attr("exception.type", "ValueError")}}},
		}},
	}}}}}
	decode := func(contentType string, body []byte) session.Span {
		t.Helper()
		tr, _, err := DecodeTraces(contentType, "", bytes.NewReader(body), testLimit)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		return tr.Groups[0].Spans[0]
	}
	want := decode(typeProtobuf, marshal(t, data))
	if want.TraceID != "30313233343536373839616263646566" || want.ParentSpanID != "3736353433323130" || want.Kind != "client" || want.StatusCode != "error" ||
		want.StatusMessage != "boom" || string(want.Events) != `[{"name":"exception","time":"2026-11-21T05:20:00.500001Z","attributes":{"exception.type":"ValueError"}}]` ||
		string(want.Attributes) != `{"room_id":"RM","n":12345678901234567,"b":"MDEyMzQ1Njc4OWFiY2RlZg=="}` {
		t.Fatalf("%+v\n%s\n%s", want, want.Attributes, want.Events)
	}
	base64JSON, err := protojson.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	hexJSON := string(base64JSON)
	for old, new := range map[string]string{
		"MDEyMzQ1Njc4OWFiY2RlZg==\",\"sp": "30313233343536373839616263646566\",\"sp",
		"MDEyMzQ1Njc=":                    "3031323334353637", "NzY1NDMyMTA=": "3736353433323130",
		`"SPAN_KIND_CLIENT"`: "3", `"STATUS_CODE_ERROR"`: "2", `"1795238400000000001"`: "1795238400000000001", `"name":"llm_node"`: `"name":"llm_node","unknown":{"x":[1]}`,
	} {
		hexJSON = strings.ReplaceAll(hexJSON, strings.ReplaceAll(old, `,`, `, `), new)
		hexJSON = strings.ReplaceAll(hexJSON, old, new)
	}
	for name, body := range map[string]string{"base64 ids": string(base64JSON), "hex ids": hexJSON} {
		if got := decode(typeJSON, []byte(body)); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v\n%s", name, got, want, body)
		}
	}
}

func TestIDs(t *testing.T) {
	for name, ids := range map[string][2]string{
		"none": {"", ""}, "empty": {`"traceId":"","spanId":"",`, ""}, "zero": {`"traceId":"00000000000000000000000000000000",`, ""},
		"short": {`"traceId":"abcd",`, ""}, "upper case": {`"traceId":"ABCDEFABCDEFABCDEFABCDEFABCDEFAB",`, "abcdefabcdefabcdefabcdefabcdefab"},
		"no hex": {`"traceId":"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",`, ""}, "null": {`"traceId":null,`, ""},
	} {
		l, _, err := DecodeLogs(typeJSON, "", strings.NewReader(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{`+ids[0]+
			`"attributes":[{"key":"room_id","value":{"stringValue":"RM"}}]}]}]}]}`), 1000)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := l.Groups[0].Records[0].TraceID; got != ids[1] {
			t.Errorf("%s: %q, want %q", name, got, ids[1])
		}
	}
}

func TestSpansWithoutIDsAreDropped(t *testing.T) {
	data := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{
		{Name: "no ids", Attributes: []*commonpb.KeyValue{attr("room_id", "RM")}},
		{Name: "no span id", TraceId: bytes.Repeat([]byte{1}, 16)},
		{Name: "no session", TraceId: bytes.Repeat([]byte{1}, 16), SpanId: bytes.Repeat([]byte{1}, 8)},
	}}}}}}
	tr, _, err := DecodeTraces(typeProtobuf, "", bytes.NewReader(marshal(t, data)), testLimit)
	if err != nil || tr.Dropped != 2 || len(tr.Groups) != 1 {
		t.Fatalf("%v %+v", err, tr)
	}
	if g := tr.Groups[0]; g.TraceID != strings.Repeat("01", 16) || g.Spans[0].Events != nil || !g.Spans[0].End.IsZero() || g.Spans[0].StatusCode != "" {
		t.Errorf("%+v", g)
	}
}

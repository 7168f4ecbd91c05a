package otlp

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

const (
	typeProtobuf = "application/x-protobuf"
	typeJSON     = "application/json"
)

func str(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
}

func attr(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: str(value)}
}

// logsOf wraps records as one resource and scope.
func logsOf(scope string, records ...*logspb.LogRecord) *logspb.LogsData {
	return &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{
		Scope: &commonpb.InstrumentationScope{Name: scope}, LogRecords: records,
	}}}}}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// decodeAll runs a body through all three decoders and returns the errors.
func decodeAll(contentType, contentEncoding string, body []byte, limit int64) [3]error {
	_, _, e1 := DecodeLogs(contentType, contentEncoding, bytes.NewReader(body), limit)
	_, _, e2 := DecodeTraces(contentType, contentEncoding, bytes.NewReader(body), limit)
	_, _, e3 := DecodeMetrics(contentType, contentEncoding, bytes.NewReader(body), limit)
	return [3]error{e1, e2, e3}
}

func TestBodies(t *testing.T) {
	// A resource alone reads the same in all three signals.
	small := marshal(t, &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attr("service.name", "app")}}}}})
	const ok = errs.Kind(-1)
	for _, c := range []struct {
		name, contentType, contentEncoding string
		body                               []byte
		limit                              int64
		want                               errs.Kind
	}{
		{"protobuf", typeProtobuf, "", small, 1000, ok},
		{"protobuf by its other name", "application/protobuf", "identity", small, 1000, ok},
		{"parameters", "application/json; charset=utf-8", "", []byte(`{}`), 1000, ok},
		{"empty protobuf", typeProtobuf, "", nil, 1000, ok},
		{"empty JSON object", typeJSON, "", []byte("{}"), 1000, ok},
		{"byte order mark", typeJSON, "", []byte("\xef\xbb\xbf{}"), 1000, ok},
		{"gzip", typeProtobuf, "gzip", gzipped(t, small), 1000, ok},
		{"gzip in capitals", typeProtobuf, " GZIP", gzipped(t, small), 1000, ok},
		{"as large as allowed", typeProtobuf, "", small, int64(len(small)), ok},
		{"one byte too large", typeProtobuf, "", small, int64(len(small)) - 1, errs.TooLarge},
		{"one byte too large inflated", typeProtobuf, "gzip", gzipped(t, small), int64(len(small)) - 1, errs.TooLarge},
		{"gzip bomb", typeProtobuf, "gzip", gzipped(t, make([]byte, 30<<20)), 1 << 20, errs.TooLarge},
		{"endless gzip without output", typeProtobuf, "gzip", bytes.Repeat(gzipped(t, nil), 1000), 1000, errs.TooLarge},
		{"not gzip", typeProtobuf, "gzip", small, 1000, errs.Invalid},
		{"cut gzip", typeProtobuf, "gzip", gzipped(t, bytes.Repeat(small, 10))[:20], 1000, errs.Invalid},
		{"zstd", typeProtobuf, "zstd", small, 1000, errs.UnsupportedType},
		{"gzip twice", typeProtobuf, "gzip, gzip", small, 1000, errs.UnsupportedType},
		{"plain text", "text/plain", "", small, 1000, errs.UnsupportedType},
		{"no type", "", "", small, 1000, errs.UnsupportedType},
		{"garbage type", "application/json;;;=", "", []byte("{}"), 1000, ok},
		{"protobuf garbage", typeProtobuf, "", []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), 1000, errs.Invalid},
		{"cut protobuf", typeProtobuf, "", small[:len(small)-1], 1000, errs.Invalid},
		{"JSON as protobuf", typeProtobuf, "", []byte(`{"resourceLogs":[]}`), 1000, errs.Invalid},
		{"empty JSON", typeJSON, "", nil, 1000, errs.Invalid},
		{"cut JSON", typeJSON, "", []byte(`{"resourceLogs":[`), 1000, errs.Invalid},
		{"cut JSON string", typeJSON, "", []byte(`{"resourceLogs":"\ud8`), 1000, errs.Invalid},
		{"JSON list", typeJSON, "", []byte(`[]`), 1000, errs.Invalid},
		{"wrong types", typeJSON, "", []byte(`{"resourceLogs":7,"resourceSpans":"x","resourceMetrics":{}}`), 1000, errs.Invalid},
		{"two documents", typeJSON, "", []byte(`{}{}`), 1000, errs.Invalid},
		{"unbalanced nesting", typeJSON, "", bytes.Repeat([]byte("["), 100000), 1 << 20, errs.Invalid},
	} {
		for i, err := range decodeAll(c.contentType, c.contentEncoding, c.body, c.limit) {
			switch {
			case c.want == ok && err != nil:
				t.Errorf("%s, decoder %d: %v", c.name, i, err)
			case c.want != ok && !errs.Is(err, c.want):
				t.Errorf("%s, decoder %d: %v, want kind %d", c.name, i, err, c.want)
			}
		}
	}
}

func TestErrorsSayWhereTheProblemIs(t *testing.T) {
	_, enc, err := DecodeLogs(typeJSON, "", strings.NewReader(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"soon"}]}]}]}`), 1000)
	if enc != JSON || !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "timeUnixNano") {
		t.Errorf("%v %v", enc, err)
	}
	if _, enc, _ := DecodeLogs("text/json", "", strings.NewReader(`{}`), 1000); enc != JSON {
		t.Error("a refused JSON type is not answered in JSON")
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestReadErrors(t *testing.T) {
	for _, encoding := range []string{"", "gzip"} {
		_, _, err := DecodeLogs(typeProtobuf, encoding, failingReader{io.ErrUnexpectedEOF}, 1000)
		if !errs.Is(err, errs.Invalid) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: broken off: %v", encoding, err)
		}
		_, _, err = DecodeLogs(typeProtobuf, encoding, failingReader{errs.New(errs.Unavailable, "later")}, 1000)
		if !errs.Is(err, errs.Unavailable) {
			t.Errorf("%q: the kind of the reader's error is lost: %v", encoding, err)
		}
	}
}

// allocated is the memory that f allocates in total, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyTinyRecords sends 20 MB of the smallest records there are, in every place that repeats. Decoded without a
// check they would take up to 2 GB.
func TestManyTinyRecords(t *testing.T) {
	const size = 20 << 20
	nest := func(body []byte, fields ...protowire.Number) []byte {
		for _, f := range fields {
			body = protowire.AppendBytes(protowire.AppendTag(nil, f, protowire.BytesType), body)
		}
		return body
	}
	// Field numbers from the inside out: records(2) scope(2) resource(1).
	empty := func(field byte) []byte { return bytes.Repeat([]byte{field<<3 | 2, 0}, size/2) }
	oneByte := bytes.Repeat([]byte{2<<3 | 2, 2, 2 << 3, 9}, size/4)
	for name, c := range map[string]struct {
		contentType string
		body        []byte
		want        errs.Kind // Internal: no error
	}{
		"records":          {typeProtobuf, nest(empty(2), 2, 1), errs.TooLarge},
		"one-byte records": {typeProtobuf, nest(oneByte, 2, 1), errs.TooLarge},
		"resources":        {typeProtobuf, empty(1), errs.TooLarge},
		"scopes":           {typeProtobuf, nest(empty(2), 1), errs.TooLarge},
		"attributes":       {typeProtobuf, nest(empty(6), 2, 2, 1), errs.TooLarge},
		"array values":     {typeProtobuf, nest(empty(1), 5, 5, 2, 2, 1), errs.TooLarge},
		"entity keys":      {typeProtobuf, nest(empty(3), 3, 1, 1), errs.TooLarge},
		"bucket numbers":   {typeProtobuf, nest(make([]byte, size), 6, 1, 9, 2, 2, 1), errs.TooLarge},
		"unknown fields":   {typeProtobuf, bytes.Repeat([]byte{15<<3 | 2, 0}, size/2), errs.Internal},
		"JSON records":     {typeJSON, fmt.Appendf(nil, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}%s]}]}]}`, bytes.Repeat([]byte(",{}"), size/3)), errs.TooLarge},
		"JSON numbers": {typeJSON, fmt.Appendf(nil, `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"histogram":{"dataPoints":[{"bucketCounts":[0%s]}]}}]}]}]}`,
			bytes.Repeat([]byte(",0"), size/2)), errs.TooLarge},
		"JSON unknown": {typeJSON, fmt.Appendf(nil, `{"x":[{}%s]}`, bytes.Repeat([]byte(",{}"), size/3)), errs.TooLarge},
		"JSON garbage": {typeJSON, bytes.Repeat([]byte(`"\u`), size/3), errs.Invalid},
	} {
		decoder := DecodeLogs
		if strings.Contains(name, "numbers") {
			decoder = decodeMetricsAsLogs
		}
		var err error
		used := allocated(func() { _, _, err = decoder(c.contentType, "", bytes.NewReader(c.body), 2*size) })
		// The body with the smaller buffers it grew from, and what the check lets the decoder have.
		if most := uint64(4*size + 2*maxDecoded); used > most {
			t.Errorf("%s: %d MB allocated", name, used>>20)
		}
		if want := c.want; want == errs.Internal && err != nil || want != errs.Internal && !errs.Is(err, want) {
			t.Errorf("%s: %v, want kind %d", name, err, want)
		}
	}
}

func decodeMetricsAsLogs(contentType, contentEncoding string, body io.Reader, maxBytes int64) (*Logs, Encoding, error) {
	_, enc, err := DecodeMetrics(contentType, contentEncoding, body, maxBytes)
	return nil, enc, err
}

// nested is a value inside depth maps.
func nested(depth int) *commonpb.AnyValue {
	v := str("core")
	for range depth {
		v = &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{
			Values: []*commonpb.KeyValue{{Key: "a", Value: v}}}}}
	}
	return v
}

func nestedJSON(depth int) string {
	v := strings.Repeat(`{"kvlistValue":{"values":[{"key":"a","value":`, depth) + `{"stringValue":"core"}` + strings.Repeat(`}]}}`, depth)
	return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + v + `,"attributes":[{"key":"room_id","value":{"stringValue":"RM"}},{"key":"deep","value":` + v + `}]}]}]}]}`
}

func TestDeepNesting(t *testing.T) {
	deepProto := func(depth int) []byte {
		return marshal(t, logsOf("app", &logspb.LogRecord{Body: nested(depth), Attributes: []*commonpb.KeyValue{attr("room_id", "RM"), {Key: "deep", Value: nested(depth)}}}))
	}
	for _, depth := range []int{3, maxDepth - 1, maxDepth + 1, 1000} {
		for contentType, body := range map[string][]byte{typeProtobuf: deepProto(depth), typeJSON: []byte(nestedJSON(depth))} {
			l, _, err := DecodeLogs(contentType, "", bytes.NewReader(body), testLimit)
			if err != nil {
				t.Errorf("%s, %d levels: %v", contentType, depth, err)
				continue
			}
			r := l.Groups[0].Records[0]
			if cut := strings.Contains(string(r.Attributes), "(nested too deep)"); cut != (depth > maxDepth) {
				t.Errorf("%s, %d levels: cut %v", contentType, depth, cut)
			}
			if whole := strings.Contains(r.Body, `"core"`); whole != (depth < maxDepth) {
				t.Errorf("%s, %d levels: whole body %v", contentType, depth, whole)
			}
		}
	}
	for contentType, body := range map[string][]byte{typeProtobuf: deepProto(50000), typeJSON: []byte(nestedJSON(50000))} {
		if _, _, err := DecodeLogs(contentType, "", bytes.NewReader(body), testLimit); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s, 50000 levels: %v", contentType, err)
		}
	}
}

// TestBrokenText holds that one broken string does not cost the whole batch.
func TestBrokenText(t *testing.T) {
	body := marshal(t, logsOf("app", &logspb.LogRecord{TimeUnixNano: 5, Body: str("caf\u00e9 ABC nul\x00"), Attributes: []*commonpb.KeyValue{attr("room_id", "RM"), attr("k", "ABC\x00")}}))
	body = bytes.ReplaceAll(body, []byte("ABC"), []byte("\xed\xa0\x80")) // half a surrogate pair in UTF-8
	l := decodeLogs(t, request{typeProtobuf, "", body})
	r := l.Groups[0].Records[0]
	if r.Body != "café ??? nul" || string(r.Attributes) != `{"room_id":"RM","k":"???"}` {
		t.Errorf("protobuf: %q %s", r.Body, r.Attributes)
	}
	const js = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":5,"body":{"stringValue":%s},"attributes":[{"key":"room_id","value":{"stringValue":"RM"}}]}]}]}]}`
	for in, want := range map[string]string{
		`"cut \ud83d"`:                 "cut \uFFFD",
		`"cut \uD83D!"`:                "cut \uFFFD!",
		`"tail \ude00."`:               "tail \uFFFD.",
		`"whole \ud83d\ude00"`:         "whole 😀",
		`"twice \ud83d\ud83d\ude00"`:   "twice \uFFFD😀",
		`"text \\ud83d"`:               `text \ud83d`,
		`"raw ` + "\xed\xa0\x80" + `"`: "raw \uFFFD",
		`"nul \u0000"`:                 "nul ",
		`"\"{[\\"`:                     `"{[\`,
	} {
		l, _, err := DecodeLogs(typeJSON, "", strings.NewReader(fmt.Sprintf(js, in)), 1000)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := l.Groups[0].Records[0].Body; got != want {
			t.Errorf("%s = %q, want %q", in, got, want)
		}
	}
}

func TestIdentity(t *testing.T) {
	trace := []byte("0123456789abcdef")
	const traceHex = "30313233343536373839616263646566"
	type kvs = []*commonpb.KeyValue
	for _, c := range []struct {
		name                    string
		record, scope, resource kvs
		trace                   []byte
		want                    Origin
	}{
		{"record", kvs{attr("room_id", "R"), attr("job_id", "J")}, nil, nil, trace, Origin{Key: session.Key{Room: "R", Job: "J"}}},
		{"scope", nil, kvs{attr("room_id", "R"), attr("job_id", "J"), attr("room", "name")}, nil, nil, Origin{Key: session.Key{Room: "R", Job: "J"}, RoomName: "name"}},
		{"resource", nil, nil, kvs{attr("room_id", "R"), attr("lk.agent_name", "A"), attr("service.name", "S")}, nil, Origin{Key: session.Key{Room: "R"}, AgentName: "A", Service: "S"}},
		{"record before resource", kvs{attr("room_id", "R")}, nil, kvs{attr("room_id", "other"), attr("job_id", "J2"), attr("lk.agent_name", "A"), attr("service.name", "S")}, nil,
			Origin{Key: session.Key{Room: "R"}, Service: "S"}},
		{"job from the resource", kvs{attr("room_id", "R")}, nil, kvs{attr("room_id", "R"), attr("job_id", "J")}, nil, Origin{Key: session.Key{Room: "R", Job: "J"}}},
		{"room from the resource", kvs{attr("job_id", "J")}, nil, kvs{attr("room_id", "R")}, nil, Origin{Key: session.Key{Room: "R", Job: "J"}}},
		{"job alone", kvs{attr("job_id", "J")}, nil, nil, trace, Origin{Key: session.Key{Job: "J"}}},
		{"newer keys", kvs{attr("lk.room_sid", "R"), attr("lk.job_id", "J"), attr("lk.pii.room_name", "name")}, nil, nil, nil, Origin{Key: session.Key{Room: "R", Job: "J"}, RoomName: "name"}},
		{"older room name", kvs{attr("room_id", "R"), attr("lk.room_name", "name")}, nil, nil, nil, Origin{Key: session.Key{Room: "R"}, RoomName: "name"}},
		{"a record's own room is not a room name", kvs{attr("room_id", "R"), attr("room", "kitchen")}, nil, nil, nil, Origin{Key: session.Key{Room: "R"}}},
		{"trace", nil, nil, kvs{attr("service.name", "S")}, trace, Origin{TraceID: traceHex, Service: "S"}},
		{"empty ids", kvs{attr("room_id", " "), attr("job_id", "")}, nil, nil, trace, Origin{TraceID: traceHex}},
		{"too long an id", kvs{attr("room_id", strings.Repeat("x", maxID+1))}, nil, nil, trace, Origin{TraceID: traceHex}},
		{"nothing", nil, nil, kvs{attr("service.name", "S")}, make([]byte, 16), Origin{}},
		{"an id of another size", nil, nil, nil, []byte("abc"), Origin{}},
	} {
		data := logsOf("app", &logspb.LogRecord{Attributes: c.record, TraceId: c.trace, Body: str("x")})
		data.ResourceLogs[0].Resource = &resourcepb.Resource{Attributes: c.resource}
		data.ResourceLogs[0].ScopeLogs[0].Scope.Attributes = c.scope
		l := decodeLogs(t, request{typeProtobuf, "", marshal(t, data)})
		if c.want == (Origin{}) {
			if len(l.Groups) != 0 || l.Dropped != 1 {
				t.Errorf("%s: %+v, %d dropped", c.name, l.Groups, l.Dropped)
			}
			continue
		}
		if len(l.Groups) != 1 || l.Groups[0].Origin != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, l.Groups, c.want)
		}
	}
}

func TestRecordsAreGrouped(t *testing.T) {
	var records []*logspb.LogRecord
	for i := range 30 {
		records = append(records, &logspb.LogRecord{TimeUnixNano: uint64(i + 1), Body: str("x"), Attributes: []*commonpb.KeyValue{attr("room_id", fmt.Sprint("R", i%3))}})
	}
	l := decodeLogs(t, request{typeProtobuf, "", marshal(t, logsOf("app", records...))})
	if len(l.Groups) != 3 {
		t.Fatalf("%d groups", len(l.Groups))
	}
	for i, g := range l.Groups {
		if g.Key.Room != fmt.Sprint("R", i) || len(g.Records) != 10 {
			t.Errorf("group %d: %v with %d records", i, g.Key, len(g.Records))
		}
	}
}

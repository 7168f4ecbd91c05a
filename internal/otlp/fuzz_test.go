package otlp

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// fuzzLimit keeps one input cheap.
const fuzzLimit = 1 << 20

var fuzzTypes = []string{typeProtobuf, typeJSON}

func plain(f *testing.F, r request) []byte {
	f.Helper()
	if r.contentEncoding != "gzip" {
		return r.body
	}
	z, err := gzip.NewReader(bytes.NewReader(r.body))
	if err != nil {
		f.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// expected fails on errors of a kind that would be our fault.
func expected(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errs.Is(err, errs.Invalid) && !errs.Is(err, errs.TooLarge) {
		t.Errorf("kind %d: %v", errs.KindOf(err), err)
	}
}

func validJSON(t *testing.T, what string, docs ...json.RawMessage) {
	t.Helper()
	for _, d := range docs {
		if d != nil && (!json.Valid(d) || !utf8.Valid(d)) {
			t.Errorf("%s is not JSON: %q", what, d)
		}
	}
}

func FuzzDecodeLogs(f *testing.F) {
	f.Add(0, plain(f, fixture(f, "livekit-python-logs/logs")))
	f.Add(1, plain(f, fixture(f, "livekit-node-1.9.0/01_logs")))
	f.Add(1, plain(f, fixture(f, "livekit-node-1.9.0/03_logs")))
	f.Add(1, []byte(nestedJSON(3)))
	f.Add(0, marshal(f, logsOf("evaluations", special(f, "outcome", `{"outcome":{"outcome":"fail"}}`), special(f, "tag", `{"tag":{"name":"x","metadata":{"a":[1]}}}`))))
	f.Fuzz(func(t *testing.T, encoding int, body []byte) {
		l, _, err := DecodeLogs(fuzzTypes[uint(encoding)%2], "", bytes.NewReader(body), fuzzLimit)
		if expected(t, err); err != nil {
			return
		}
		for _, g := range l.Groups {
			if g.Key == (session.Key{}) && g.TraceID == "" {
				t.Error("a group of nothing")
			}
			for _, r := range g.Records {
				validJSON(t, "attributes", r.Attributes)
				if !utf8.ValidString(r.Body) || bytes.IndexByte([]byte(r.Body), 0) >= 0 {
					t.Errorf("body %q", r.Body)
				}
			}
			doc, err := session.MarshalLogSignals(&g.Signals)
			if err != nil {
				t.Fatal(err)
			}
			back, err := session.UnmarshalLogSignals(doc)
			if err != nil {
				t.Fatal(err)
			}
			back.Merge(g.Signals)
			again, err := session.MarshalLogSignals(back)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(doc, again) {
				t.Errorf("merging signals with themselves changes them:\n%s\n%s", doc, again)
			}
		}
	})
}

func FuzzDecodeTraces(f *testing.F) {
	f.Add(0, plain(f, fixture(f, "livekit-node-1.9.0/04_traces")))
	f.Add(1, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","kind":2,"events":[{"name":"e"}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, encoding int, body []byte) {
		tr, _, err := DecodeTraces(fuzzTypes[uint(encoding)%2], "", bytes.NewReader(body), fuzzLimit)
		if expected(t, err); err != nil {
			return
		}
		for _, g := range tr.Groups {
			for _, s := range g.Spans {
				validJSON(t, "span", s.Attributes, s.Events)
				if len(s.TraceID) != 32 || len(s.SpanID) != 16 || (s.ParentSpanID != "" && len(s.ParentSpanID) != 16) {
					t.Errorf("ids %q %q %q", s.TraceID, s.SpanID, s.ParentSpanID)
				}
			}
			if _, err := json.Marshal(g.Summary); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzDecodeMetrics(f *testing.F) {
	f.Add(1, []byte(`{"resourceMetrics":[{"resource":{"attributes":[{"key":"room_id","value":{"stringValue":"RM"}}]},"scopeMetrics":[{"metrics":[{"name":"n",`+
		`"histogram":{"aggregationTemporality":1,"dataPoints":[{"count":"2","sum":1.5,"bucketCounts":["1","1"],"explicitBounds":[1]}]}}]}]}]}`))
	f.Add(0, []byte("\x0a\x1c\x0a\x10\x0a\x0e\x0a\x07room_id\x12\x03\x0a\x01R\x12\x08\x12\x06\x2a\x04\x0a\x02\x19\x00"))
	f.Fuzz(func(t *testing.T, encoding int, body []byte) {
		m, _, err := DecodeMetrics(fuzzTypes[uint(encoding)%2], "", bytes.NewReader(body), fuzzLimit)
		if expected(t, err); err != nil {
			return
		}
		for _, g := range m.Groups {
			for _, p := range g.Points {
				validJSON(t, "point", p.Attributes, p.Value)
			}
		}
	})
}

func FuzzBody(f *testing.F) {
	f.Add("gzip", gzipped(f, []byte("{}")))
	f.Add("", []byte("{}"))
	f.Fuzz(func(t *testing.T, contentEncoding string, body []byte) {
		_, _, err := DecodeLogs(typeJSON, contentEncoding, bytes.NewReader(body), 1<<16)
		if !errs.Is(err, errs.UnsupportedType) {
			expected(t, err)
		}
	})
}

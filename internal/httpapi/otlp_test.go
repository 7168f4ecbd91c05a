package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"sidetone/internal/session"
)

const (
	logsPath    = "/observability/logs/otlp/v0"
	tracesPath  = "/observability/traces/otlp/v0"
	metricsPath = "/observability/metrics/otlp/v0"
)

// request is one post of a client.
type request struct {
	path, contentType, encoding string
	body                        []byte
}

func (s *sessionServer) send(r request) (int, []byte, string) {
	s.t.Helper()
	headers := []string{"Content-Type: " + r.contentType}
	if r.encoding != "" {
		headers = append(headers, "Content-Encoding: "+r.encoding)
	}
	w := s.do("POST", r.path, r.body, headers...)
	return w.Code, w.Body.Bytes(), w.Header().Get("Content-Type")
}

func (s *sessionServer) mustSend(rs ...request) {
	s.t.Helper()
	for _, r := range rs {
		if status, body, _ := s.send(r); status != 200 {
			s.t.Fatalf("%s: %d %.300s", r.path, status, body)
		}
	}
}

// captured is a fixture of a request as an SDK sent it.
func captured(t testing.TB, name string) request {
	t.Helper()
	var head struct {
		URL     string
		Headers map[string]string
	}
	if err := json.Unmarshal(evalFixture(t, name+".headers.json"), &head); err != nil {
		t.Fatal(err)
	}
	return request{head.URL, head.Headers["content-type"], head.Headers["content-encoding"], evalFixture(t, name+".bin")}
}

func zip(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func protobuf(t testing.TB, path string, m proto.Message) request {
	t.Helper()
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return request{path, "application/x-protobuf", "gzip", zip(t, body)}
}

func attr(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func spansOf(attrs []*commonpb.KeyValue, spans ...*tracepb.Span) *tracepb.TracesData {
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{Resource: &resourcepb.Resource{Attributes: attrs},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: spans}}}}}
}

func logsOf(attrs []*commonpb.KeyValue, records ...*logspb.LogRecord) *logspb.LogsData {
	return &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{Resource: &resourcepb.Resource{Attributes: attrs},
		ScopeLogs: []*logspb.ScopeLogs{{LogRecords: records}}}}}
}

func span(trace, id byte, name string, start, end time.Time) *tracepb.Span {
	sp := &tracepb.Span{TraceId: bytes.Repeat([]byte{trace}, 16), SpanId: bytes.Repeat([]byte{id}, 8), Name: name, StartTimeUnixNano: uint64(start.UnixNano())}
	if !end.IsZero() {
		sp.EndTimeUnixNano = uint64(end.UnixNano())
	}
	return sp
}

func logLine(text string, at time.Time) *logspb.LogRecord {
	return &logspb.LogRecord{TimeUnixNano: uint64(at.UnixNano()), Body: attr("", text).Value}
}

// TestFixturesInAnyOrder is what issue 4 asks of the captured requests.
func TestFixturesInAnyOrder(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		names := []string{"livekit-node-1.9.0/01_logs", "livekit-node-1.9.0/02_recordings", "livekit-node-1.9.0/03_logs", "livekit-node-1.9.0/04_traces"}
		r := rand.New(rand.NewPCG(4, 4))
		for round := range 6 {
			for _, i := range r.Perm(len(names)) {
				for range 1 + r.IntN(2) {
					s.mustSend(captured(t, names[i]))
				}
			}
			d := s.get("/api/sessions/RM_capture1")
			has(t, "the captured call", d, object{"turn_count": 3, "state": "ended", "incomplete": []any{}})
			for k, v := range d["signals"].(object) {
				if wanted := k == "report" || k == "transcript" || k == "logs" || k == "traces"; wanted && v == nil {
					t.Errorf("round %d: signal %s is missing", round, k)
				}
			}
			spans := rowsOf(s.get("/api/sessions/RM_capture1/spans?limit=1000"))
			ids, roots := map[any]bool{}, 0
			for _, sp := range spans {
				ids[sp["span_id"]] = true
			}
			for _, sp := range spans {
				if parent := sp["parent_span_id"]; parent == nil {
					roots++
				} else if !ids[parent] {
					t.Errorf("the parent of %v is missing", sp["name"])
				}
			}
			if len(spans) < 10 || roots != 1 || len(ids) != len(spans) {
				t.Errorf("round %d: %d spans, %d ids, %d roots", round, len(spans), len(ids), roots)
			}
			if n := s.get("/api/sessions")["meta"].(object)["total_count"]; n != 1.0 {
				t.Errorf("%v sessions", n)
			}
			if round < 5 {
				s.json(200, "DELETE", "/api/sessions", []byte(`{"session_ids":["RM_capture1"]}`), "Content-Type: application/json")
			}
		}
	})
}

func TestPythonLogsAndDemoCall(t *testing.T) {
	logs := captured(t, "livekit-python-logs/logs")
	for _, order := range []string{"logs, report", "report, logs", "logs, logs, report, logs, report"} {
		t.Run(order, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, s *sessionServer) {
				for _, what := range strings.Split(order, ", ") {
					if what == "logs" {
						s.mustSend(logs)
					} else {
						s.demoCall()
					}
				}
				d := s.get("/api/sessions/demo-call-44712")
				if e, tags, items := d["evaluations"].([]any), d["tags"].([]any), d["chat_history"].([]any); len(e) != 2 || len(tags) != 8 || len(items) != 16 {
					t.Errorf("%d evaluations, %d tags, %d items", len(e), len(tags), len(items))
				}
				has(t, "detail", d, object{"eval_fail_count": 1, "eval_pass_count": 1, "turn_count": 6})
				if o, _ := d["outcome"].(object); o["outcome"] != "success" {
					t.Errorf("outcome %v", d["outcome"])
				}
				if n := s.get("/api/sessions/demo-call-44712/logs")["meta"].(object)["total_count"]; n != 1.0 {
					t.Errorf("%v application logs", n)
				}
				for _, k := range []string{"report", "transcript", "audio", "logs", "evaluations", "outcome"} {
					if d["signals"].(object)[k] == nil {
						t.Errorf("signal %s is missing", k)
					}
				}
				row := rowsOf(s.get("/api/sessions?outcome=success"))
				if len(row) != 1 {
					t.Fatalf("%d rows", len(row))
				}
				has(t, "row", row[0], object{"outcome": "success", "eval_fail_count": 1, "eval_pass_count": 1})
			})
		})
	}
}

// TestLiveSession follows a call from its first span to its report.
func TestLiveSession(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		for i := range 3 { // calls that have ended, one of them in the future
			s.uploadForm(fmt.Sprintf(`{"session_id":"old%d","start_time":1795262000,"ended_at":%d}`, i, 1795263000+i*100000), `{"items":[]}`, nil)
		}
		start := s.clock()
		room := []*commonpb.KeyValue{attr("room_id", "RM_live"), attr("job_id", "AJ_1"), attr("lk.agent_name", "front desk")}
		s.mustSend(protobuf(t, tracesPath, spansOf(room, span(1, 1, "user_turn", start, start.Add(time.Second)))))
		first := rowsOf(s.get("/api/sessions?limit=1"))[0]
		has(t, "a call that has begun", first, object{"id": "RM_live", "state": "active", "ended_at": nil, "started_at": "2026-11-21T12:00:00.000Z",
			"agent_name": "front desk", "job_id": "AJ_1", "incomplete": []any{}})
		s.wait(20 * time.Minute)
		s.mustSend(protobuf(t, "/v1/logs", logsOf(room, logLine("still here", s.clock()))))
		last := s.clock()
		end := func(want int) {
			t.Helper()
			n, err := s.sessions.EndSilent(t.Context(), s.clock())
			if err != nil || n != want {
				t.Errorf("%d sessions ended, %v, want %d", n, err, want)
			}
		}
		s.wait(30*time.Minute - time.Second)
		end(0)
		s.wait(time.Second)
		end(1)
		end(0)
		d := s.get("/api/sessions/RM_live")
		has(t, "a call that fell silent", d, object{"state": "ended", "ended_at": "2026-11-21T12:20:00.000Z", "first_signal_at": "2026-11-21T12:00:00.000Z", "last_signal_at": "2026-11-21T12:20:00.000Z",
			"incomplete": []string{session.IncompleteNoReport, session.IncompleteNoTranscript, session.IncompleteAbandoned}})
		if row := rowsOf(s.get("/api/sessions?state=ended&limit=20")); len(row) != 4 {
			t.Errorf("%d ended sessions", len(row))
		}
		// It was alive after all.
		s.wait(time.Minute)
		s.mustSend(protobuf(t, "/v1/logs", logsOf(room, logLine("a long silence", s.clock()))))
		has(t, "a call that spoke again", s.get("/api/sessions/RM_live"), object{"state": "active", "ended_at": nil, "incomplete": []any{}})
		s.wait(time.Hour)
		end(1)
		s.uploadForm(fmt.Sprintf(`{"session_id":"RM_live","ended_at":%d}`, last.Unix()), `{"items":[{"type":"message","role":"assistant","content":["hello"]}]}`, nil)
		has(t, "a call whose report came late", s.get("/api/sessions/RM_live"), object{"state": "ended", "ended_at": "2026-11-21T12:20:00.000Z", "incomplete": []any{}, "turn_count": 1})
		end(0)
		// A span that ends calls ends this one.
		room = []*commonpb.KeyValue{attr("room_id", "RM_ended")}
		s.mustSend(protobuf(t, tracesPath, spansOf(room, span(2, 1, "agent_session", start, time.Time{}))))
		has(t, "an open agent_session", s.get("/api/sessions/RM_ended"), object{"state": "active"})
		s.mustSend(protobuf(t, tracesPath, spansOf(room, span(2, 1, "agent_session", start, start.Add(time.Minute)))))
		has(t, "a closed agent_session", s.get("/api/sessions/RM_ended"), object{"state": "ended", "ended_at": "2026-11-21T12:01:00.000Z", "duration_ms": 60000,
			"incomplete": []string{session.IncompleteNoReport, session.IncompleteNoTranscript}})
		if spans := rowsOf(s.get("/api/sessions/RM_ended/spans")); len(spans) != 1 || spans[0]["duration_ms"] != 60000.0 {
			t.Errorf("the span that was sent open and closed: %v", spans)
		}
	})
}

// TestSpansWithoutARoom are kept under their trace and shown with the session of the same trace, whichever came first.
func TestSpansWithoutARoom(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		at := s.clock()
		service := []*commonpb.KeyValue{attr("service.name", "shop")}
		s.mustSend(protobuf(t, tracesPath, spansOf(service, span(7, 2, "GET /orders", at.Add(time.Second), at.Add(2*time.Second)), span(8, 1, "other", at, at))))
		if n := s.get("/api/sessions")["meta"].(object)["total_count"]; n != 0.0 {
			t.Errorf("spans without a room made %v sessions", n)
		}
		s.mustSend(protobuf(t, tracesPath, spansOf([]*commonpb.KeyValue{attr("room_id", "R")}, span(7, 1, "function_tool", at, at.Add(3*time.Second)))))
		s.mustSend(protobuf(t, "/v1/traces", spansOf(service, span(7, 3, "SELECT", at.Add(1500*time.Millisecond), at.Add(1600*time.Millisecond)), span(7, 2, "GET /orders", at.Add(time.Second), at.Add(2*time.Second)))))
		var names []any
		for _, sp := range rowsOf(s.get("/api/sessions/R/spans")) {
			names = append(names, sp["name"])
		}
		if !slices.Equal(names, []any{"function_tool", "GET /orders", "SELECT"}) {
			t.Errorf("spans %v", names)
		}
		page := s.get("/api/sessions/R/spans?limit=1&offset=1")
		if rows := rowsOf(page); len(rows) != 1 || rows[0]["name"] != "GET /orders" || page["meta"].(object)["total_count"] != 3.0 ||
			page["meta"].(object)["next"] != "/api/sessions/R/spans?limit=1&offset=2" || page["meta"].(object)["previous"] != "/api/sessions/R/spans?limit=1&offset=0" {
			t.Errorf("second page %v", page)
		}
	})
}

func TestOTLPReplies(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		at := s.clock()
		nowhere := logLine("nobody knows", at)
		known := logLine("known", at)
		known.Attributes = []*commonpb.KeyValue{attr("room_id", "R")}
		for _, path := range []string{logsPath, "/v1/logs"} {
			code, body, kind := s.send(protobuf(t, path, logsOf(nil, nowhere, known, nowhere)))
			want := "\x0a" // field 1, a partial success with field 1 = 2
			if code != 200 || kind != "application/x-protobuf" || !strings.HasPrefix(string(body), want) || body[2] != 0x08 || body[3] != 2 {
				t.Errorf("%s: %d %s %q", path, code, kind, body)
			}
			code, body, kind = s.send(request{path, "application/json", "", []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}`)})
			var reply struct {
				PartialSuccess struct{ RejectedLogRecords, ErrorMessage string }
			}
			if err := json.Unmarshal(body, &reply); err != nil || code != 200 || kind != "application/json" || reply.PartialSuccess.RejectedLogRecords != "1" || reply.PartialSuccess.ErrorMessage == "" {
				t.Errorf("%s: %d %s %s", path, code, kind, body)
			}
		}
		if s.dropped != 6 {
			t.Errorf("%d records counted as dropped", s.dropped)
		}
		for path, empty := range map[string]proto.Message{logsPath: &logspb.LogsData{}, tracesPath: &tracepb.TracesData{}, metricsPath: &metricspb.MetricsData{},
			"/v1/logs": &logspb.LogsData{}, "/v1/traces": &tracepb.TracesData{}, "/v1/metrics": &metricspb.MetricsData{}} {
			if code, body, kind := s.send(protobuf(t, path, empty)); code != 200 || len(body) != 0 || kind != "application/x-protobuf" {
				t.Errorf("%s: %d %s %q", path, code, kind, body)
			}
			if code, body, kind := s.send(request{path, "application/json; charset=utf-8", "", []byte("{}")}); code != 200 || string(body) != "{}" || kind != "application/json" {
				t.Errorf("%s: %d %s %q", path, code, kind, body)
			}
			for name, bad := range map[string]struct {
				request
				code int
			}{
				"garbage":          {request{path, "application/x-protobuf", "", []byte("\x0a\xff\xff\xff\xff garbage")}, 400},
				"not gzip":         {request{path, "application/x-protobuf", "gzip", []byte("plain")}, 400},
				"cut off":          {request{path, "application/x-protobuf", "gzip", zip(t, make([]byte, 1000))[:20]}, 400},
				"not JSON":         {request{path, "application/json", "", []byte(`{"resourceLogs":`)}, 400},
				"wrong types":      {request{path, "application/json", "", []byte(`{"resourceLogs":7,"resourceSpans":7,"resourceMetrics":7}`)}, 400},
				"a list":           {request{path, "application/json", "", []byte(`[]`)}, 400},
				"a text":           {request{path, "text/plain", "", []byte(`x`)}, 415},
				"brotli":           {request{path, "application/x-protobuf", "br", []byte(`x`)}, 415},
				"too large":        {request{path, "application/json", "", bytes.Repeat([]byte(" "), 21<<20)}, 413},
				"a bomb":           {request{path, "application/x-protobuf", "gzip", zip(t, make([]byte, 200<<20))}, 413},
				"nested too deep":  {request{path, "application/json", "", []byte(strings.Repeat(`{"a":[`, 100000))}, 400},
				"no content type ": {request{path, "", "", []byte("{}")}, 415},
			} {
				code, body, kind := s.send(bad.request)
				st := &status.Status{}
				if kind == "application/json" {
					var reply struct {
						Code    int32
						Message string
					}
					if err := json.Unmarshal(body, &reply); err != nil {
						t.Errorf("%s %s: %v in %s", path, name, err, body)
					}
					st.Code, st.Message = reply.Code, reply.Message
				} else if err := proto.Unmarshal(body, st); err != nil {
					t.Errorf("%s %s: %v", path, name, err)
				}
				if code != bad.code || st.Code == 0 || st.Message == "" || (kind == "application/json") != strings.Contains(bad.contentType, "json") {
					t.Errorf("%s %s: %d %s %v, want %d", path, name, code, kind, st, bad.code)
				}
			}
		}
	})
}

// TestHostileExports are well-formed and made to hurt.
func TestHostileExports(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		at := s.clock()
		room := []*commonpb.KeyValue{attr("room_id", "R")}
		deep := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "bottom"}}
		for range 1000 {
			deep = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{deep}}}}
		}
		nested := logLine("nested", at)
		nested.Attributes = []*commonpb.KeyValue{{Key: "deep", Value: deep}}
		many := &logspb.ScopeLogs{}
		for range 20000 {
			many.LogRecords = append(many.LogRecords, &logspb.LogRecord{TimeUnixNano: 1, Body: attr("", "x").Value})
		}
		rooms := &logspb.ScopeLogs{}
		for i := range 300 {
			rec := logLine("hello", at)
			rec.Attributes = []*commonpb.KeyValue{attr("room_id", fmt.Sprintf("many-%d", i))}
			rooms.LogRecords = append(rooms.LogRecords, rec)
		}
		nul := logLine("a\x00b", at)
		nul.SeverityText = "\x00"
		nul.Attributes = []*commonpb.KeyValue{attr("\x00", "\x00"), attr("agent_name", "\x00")}
		special := logLine("tag", at)
		special.Attributes = []*commonpb.KeyValue{{Key: "tag", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{
			Values: []*commonpb.KeyValue{attr("name", "account_id:a\x00b"), {Key: "metadata", Value: deep}}}}}}}
		tag := logsOf(room, special)
		tag.ResourceLogs[0].ScopeLogs[0].Scope = &commonpb.InstrumentationScope{Name: "evaluations"}
		odd := span(1, 1, "\x00", time.Unix(0, 0), time.Unix(0, 1))
		odd.StartTimeUnixNano, odd.EndTimeUnixNano = 1<<64-1, 1
		for name, r := range map[string]request{
			"nested 1,000 deep":        protobuf(t, logsPath, logsOf(room, nested)),
			"20,000 records":           protobuf(t, logsPath, &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{Resource: &resourcepb.Resource{Attributes: room}, ScopeLogs: []*logspb.ScopeLogs{many}}}}),
			"300 rooms":                protobuf(t, logsPath, &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{rooms}}}}),
			"NUL":                      protobuf(t, logsPath, logsOf(room, nul)),
			"NUL in a tag":             protobuf(t, logsPath, tag),
			"a room of NUL":            protobuf(t, logsPath, logsOf([]*commonpb.KeyValue{attr("room_id", "\x00"), attr("job_id", "a\x00b")}, logLine("x", at))),
			"a long room":              protobuf(t, logsPath, logsOf([]*commonpb.KeyValue{attr("room_id", strings.Repeat("r", 5000))}, logLine("x", at))),
			"a span before and after":  protobuf(t, tracesPath, spansOf(room, odd)),
			"ids of the wrong length":  protobuf(t, tracesPath, spansOf(room, &tracepb.Span{TraceId: []byte{1}, SpanId: []byte{2}})),
			"JSON with other fields":   {logsPath, "application/json", "", []byte(`{"resourceLogs":[{"resource":{"attributes":[{"key":"room_id","value":{"stringValue":"R"}}]},"scopeLogs":[{"logRecords":[{"timeUnixNano":"1","body":{"stringValue":"x"},"new":{"a":1}}]}]}],"later":1}`)},
			"JSON nested 1,000 deep":   {logsPath, "application/json", "", []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{"key":"room_id","value":{"stringValue":"R"}},{"key":"d","value":` + strings.Repeat(`{"arrayValue":{"values":[`, 1000) + `{"intValue":"1"}` + strings.Repeat(`]}}`, 1000) + `}]}]}]}]}`)},
			"metrics with odd numbers": {metricsPath, "application/json", "", []byte(`{"resourceMetrics":[{"resource":{"attributes":[{"key":"room_id","value":{"stringValue":"R"}}]},"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":[{"asDouble":"NaN","timeUnixNano":"1"},{"asDouble":"Infinity"}]}}]}]}]}`)},
		} {
			if status, body, _ := s.send(r); status != 200 && (status < 400 || status > 499 || len(body) == 0) {
				t.Errorf("%s: %d %.200q", name, status, body)
			}
		}
		// Two bytes on the wire, two hundred in memory: refused or taken, never gigabytes.
		var before, after runtime.MemStats
		small := make([]byte, 0, 20<<20)
		for len(small) < 20<<20-16 {
			small = append(small, 0x12, 0) // an empty log record
		}
		body := []byte{0x0a}
		length := func(n int) []byte {
			var out []byte
			for ; n >= 0x80; n >>= 7 {
				out = append(out, byte(n)|0x80)
			}
			return append(out, byte(n))
		}
		scope := append(append([]byte{0x12}, length(len(small))...), small...)
		body = append(append(body, length(len(scope))...), scope...)
		runtime.GC()
		runtime.ReadMemStats(&before)
		status, reply, _ := s.send(request{logsPath, "application/x-protobuf", "gzip", zip(t, body[:min(len(body), 20<<20)])})
		runtime.ReadMemStats(&after)
		if status < 400 && status != 200 || status >= 500 {
			t.Errorf("20 MB of empty records: %d %.200q", status, reply)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 400<<20 {
			t.Errorf("20 MB of empty records allocated %d MB", got>>20)
		}
		for _, path := range []string{"/api/sessions/R", "/api/sessions/R/logs?limit=1000", "/api/sessions/R/spans"} {
			s.get(path)
		}
		if n := s.get("/api/sessions?started_from=2026-11-01")["meta"].(object)["total_count"].(float64); n < 300 {
			t.Errorf("%v sessions", n)
		}
	})
}

func TestOTLPWithTheDatabaseAway(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
		room := []*commonpb.KeyValue{attr("room_id", "R")}
		for _, path := range []string{tracesPath, "/v1/traces"} {
			for _, attrs := range [][]*commonpb.KeyValue{room, nil} {
				code, body, kind := s.send(protobuf(t, path, spansOf(attrs, span(1, 1, "x", s.clock(), s.clock()))))
				var st status.Status
				if err := proto.Unmarshal(body, &st); err != nil || code != 503 || kind != "application/x-protobuf" || st.Code != 14 || len(st.Details) != 1 {
					t.Fatalf("%d %s %v, %v", code, kind, &st, err)
				}
				var retry errdetails.RetryInfo
				if err := st.Details[0].UnmarshalTo(&retry); err != nil || retry.RetryDelay.AsDuration() <= 0 {
					t.Errorf("%v, %v", &retry, err)
				}
			}
		}
		w := s.do("POST", "/v1/logs", []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{"key":"room_id","value":{"stringValue":"R"}}]}]}]}]}`), "Content-Type: application/json")
		var reply struct{ Code int }
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != 503 || reply.Code != 14 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

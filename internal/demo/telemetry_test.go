package demo

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
	"time"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestSpansAreOneTreeWithinTheTurns checks the recorded call and a day of synthetic ones.
func TestSpansAreOneTreeWithinTheTurns(t *testing.T) {
	demo, _ := DemoCall(testNow)
	talks := []*talk{demo.talk}
	g := NewGenerator(1)
	for _, s := range schedule(1, testNow, 1, 150) {
		talks = append(talks, g.talk(s.index, s.ended))
	}
	kinds := map[string]int{}
	for _, k := range talks {
		tr := traceTalk(k)
		byID := map[string]*tracepb.Span{}
		for _, s := range tr.spans {
			if byID[string(s.SpanId)] != nil {
				t.Fatalf("%s: span id twice", k.sessionID)
			}
			byID[string(s.SpanId)] = s
		}
		roots, turns, tools := 0, 0, 0
		var lastEnd uint64
		for _, s := range tr.spans {
			kinds[s.Name]++
			if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
				kinds[s.Name+" failed"]++
			}
			if s.EndTimeUnixNano < s.StartTimeUnixNano || s.EndTimeUnixNano < lastEnd {
				t.Fatalf("%s: %s ends before it starts or out of order", k.sessionID, s.Name)
			}
			lastEnd = s.EndTimeUnixNano
			if stringAttr(s, "room_id") != k.sessionID || stringAttr(s, "job_id") != k.jobID {
				t.Fatalf("%s lacks room_id or job_id", s.Name)
			}
			switch s.Name {
			case "agent_turn":
				turns++
			case "function_tool":
				tools++
			}
			if len(s.ParentSpanId) == 0 {
				roots++
				continue
			}
			p := byID[string(s.ParentSpanId)]
			if p == nil {
				t.Fatalf("%s: the parent of %s is missing", k.sessionID, s.Name)
			}
			if s.StartTimeUnixNano < p.StartTimeUnixNano || s.EndTimeUnixNano > p.EndTimeUnixNano {
				t.Fatalf("%s: %s [%d %d] is not within %s [%d %d]", k.sessionID, s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano, p.Name, p.StartTimeUnixNano, p.EndTimeUnixNano)
			}
		}
		wantTurns, wantTools := 0, 0
		for i, it := range k.items {
			silent := it.Type == "function_call_output" && (i+1 == len(k.items) || k.items[i+1].Role == "user")
			if it.Role == "assistant" || silent {
				wantTurns++
			}
			if it.Type == "function_call" {
				wantTools++
			}
		}
		if roots != 1 || turns != wantTurns || tools != wantTools {
			t.Fatalf("%s: %d roots, %d of %d agent turns, %d of %d tools", k.sessionID, roots, turns, wantTurns, tools, wantTools)
		}
	}
	for _, want := range []string{"job_entrypoint", "agent_session", "user_turn", "eou_detection", "llm_request_run", "llm_request_run failed", "tts_request_run", "function_tool failed", "agent_speaking", "judge_evaluation", "job_shutdown"} {
		if kinds[want] == 0 {
			t.Errorf("no %s span in a day", want)
		}
	}
}

// TestSpansMatchTheMeasurements: the LLM, TTS and speech spans of a turn add up to what its message says.
func TestSpansMatchTheMeasurements(t *testing.T) {
	demo, _ := DemoCall(testNow.Truncate(time.Second))
	var ttft, ttfb []float64
	starts := map[string][]uint64{}
	for _, s := range traceTalk(demo.talk).spans {
		starts[s.Name] = append(starts[s.Name], s.StartTimeUnixNano)
		for _, a := range s.Attributes {
			switch a.Key {
			case "lk.response.ttft":
				ttft = append(ttft, a.Value.GetDoubleValue())
			case "lk.response.ttfb":
				ttfb = append(ttfb, a.Value.GetDoubleValue())
			}
		}
	}
	if len(ttft) != 5 || len(ttfb) != 6 {
		t.Fatalf("ttft %v, ttfb %v", ttft, ttfb)
	}
	speaking := 0
	for _, it := range demo.talk.items {
		if it.Role != "assistant" {
			continue
		}
		want := nanos(it.Metrics.StartedSpeakingAt)
		found := false
		for _, got := range starts["agent_speaking"] {
			found = found || got == want
		}
		if !found {
			t.Errorf("no agent_speaking span at %f", it.Metrics.StartedSpeakingAt)
		}
		speaking++
	}
	if speaking != len(starts["agent_speaking"]) {
		t.Errorf("%d agent_speaking spans", len(starts["agent_speaking"]))
	}
}

func TestReportLogsCarryTheVerdicts(t *testing.T) {
	demo, _ := DemoCall(testNow)
	byBody := map[string]int{}
	severities := map[logspb.SeverityNumber]int{}
	var reasoning string
	for _, s := range reportLogs(demo.talk, traceTalk(demo.talk)).request().ResourceLogs[0].ScopeLogs {
		for _, r := range s.LogRecords {
			byBody[r.Body.GetStringValue()]++
			severities[r.SeverityNumber]++
			for _, a := range r.Attributes {
				if a.Key == "evaluation" {
					for _, kv := range a.Value.GetKvlistValue().Values {
						if kv.Key == "reasoning" {
							reasoning += kv.Value.GetStringValue()
						}
					}
				}
				if a.Key == "session.report_timestamp" && nanos(a.Value.GetDoubleValue()) != uint64(demo.Ended.UnixNano()) {
					t.Errorf("report timestamp %f", a.Value.GetDoubleValue())
				}
			}
		}
	}
	if byBody["session report"] != 1 || byBody["evaluation"] != 2 || byBody["outcome"] != 1 || byBody["start_refund failed: refund service timed out"] != 1 {
		t.Errorf("records %v", byBody)
	}
	if severities[failure] != 2 || severities[warning] == 0 || severities[info] == 0 {
		t.Errorf("severities %v", severities)
	}
	if !strings.Contains(reasoning, "timed out") {
		t.Errorf("reasoning %q", reasoning)
	}
}

func TestTelemetryIsSentAsTheSDKSendsIt(t *testing.T) {
	rec, srv := newReceiver(t)
	out, err := testRun(t, srv, "--calls", "40", "--no-evals")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "2 of them still going on") {
		t.Errorf("output:\n%s", out)
	}
	rooms := map[string]bool{}
	for _, body := range rec.bodies["POST "+tracesPath] {
		var m tracepb.TracesData
		unzip(t, body, &m)
		for _, s := range m.ResourceSpans[0].ScopeSpans[0].Spans {
			room := stringAttr(s, "room_id")
			rooms[room] = true
			if strings.HasPrefix(room, "live-call") {
				if s.EndTimeUnixNano > uint64(testNow.UnixNano()) || s.StartTimeUnixNano < uint64(testNow.Add(-time.Minute).UnixNano()) || s.Name == "agent_session" {
					t.Errorf("%s: %s is over at %d", room, s.Name, s.EndTimeUnixNano)
				}
			}
		}
	}
	for _, want := range []string{demoSessionID, "demo-recorded-1", "live-call-1", "live-call-2"} {
		if !rooms[want] {
			t.Errorf("no spans of %s", want)
		}
	}
	if n := len(rooms); n < 13 || n > 18 {
		t.Errorf("spans of %d calls", n)
	}
	for _, body := range rec.bodies["POST "+logsPath] {
		var m logspb.LogsData
		unzip(t, body, &m)
		if len(m.ResourceLogs[0].ScopeLogs) == 0 {
			t.Error("empty log request")
		}
	}
	points := 0
	for _, body := range rec.bodies["POST "+metricsPath] {
		var m metricspb.MetricsData
		unzip(t, body, &m)
		for _, metric := range m.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			points++
			for _, h := range metric.GetHistogram().GetDataPoints() {
				var n uint64
				for _, c := range h.BucketCounts {
					n += c
				}
				if n != h.Count || n == 0 || *h.Max > *h.Sum || len(h.BucketCounts) != len(h.ExplicitBounds)+1 {
					t.Errorf("%s: %v", metric.Name, h)
				}
			}
			for _, d := range metric.GetSum().GetDataPoints() {
				if d.GetAsDouble() <= 0 {
					t.Errorf("%s is %f", metric.Name, d.GetAsDouble())
				}
			}
		}
	}
	if n := rec.count("POST " + metricsPath); n != len(rooms)-2 || points < 5*n {
		t.Errorf("metrics of %d calls, %d points", n, points)
	}
	if rec.parts["live-call-1"] != nil {
		t.Error("a call still going on was reported")
	}
}

func TestMissingRoutesAreNoted(t *testing.T) {
	rec, srv := newReceiver(t)
	rec.answer = missing
	out, err := testRun(t, srv, "--calls", "5")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no eval runs were sent", "no spans and logs were sent", "Done: 4 calls with audio"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
}

func stringAttr(s *tracepb.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

func unzip(t *testing.T, body []byte, m proto.Message) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(raw, m); err != nil {
		t.Fatal(err)
	}
}

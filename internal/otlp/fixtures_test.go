package otlp

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sidetone/internal/report"
	"sidetone/internal/session"
)

const fixtures = "../../testdata/fixtures"

// request is a captured request: its headers and body.
type request struct {
	contentType, contentEncoding string
	body                         []byte
}

func fixture(t testing.TB, name string) request {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(fixtures, name+".bin"))
	if err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile(filepath.Join(fixtures, name+".headers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var h struct{ Headers map[string]string }
	if err := json.Unmarshal(head, &h); err != nil {
		t.Fatal(err)
	}
	return request{h.Headers["content-type"], h.Headers["content-encoding"], body}
}

const testLimit = 20 << 20

func decodeLogs(t testing.TB, r request) *Logs {
	t.Helper()
	l, _, err := DecodeLogs(r.contentType, r.contentEncoding, bytes.NewReader(r.body), testLimit)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestPythonLogs(t *testing.T) {
	l := decodeLogs(t, fixture(t, "livekit-python-logs/logs"))
	if len(l.Groups) != 1 || l.Dropped != 0 {
		t.Fatalf("%d groups, %d dropped", len(l.Groups), l.Dropped)
	}
	g := l.Groups[0]
	if g.Key != (session.Key{Room: "demo-call-44712", Job: "AJ_demo-call-44712"}) || g.AgentName != "Northwind support" || g.TraceID != "" {
		t.Errorf("origin %+v", g.Origin)
	}
	s := g.Signals
	if !s.StartedAt.Equal(at("2026-11-21T05:20:00.6Z")) || !s.ReportTimestamp.Equal(at("2026-11-21T05:20:48.076Z")) {
		t.Errorf("report from %v to %v", s.StartedAt, s.ReportTimestamp)
	}
	if s.SDKVersion != "1.7.0" || s.AgentName != "Northwind support" || s.RoomName != "" {
		t.Errorf("report %+v", s)
	}
	if want := `{"turn_handling":{"endpointing":{"min_delay":0.5,"max_delay":3}},"max_tool_steps":3,"recording_options":` +
		`{"audio":true,"traces":true,"logs":true,"transcript":true,"redaction":false}}`; string(s.Options) != want {
		t.Errorf("options %s", s.Options)
	}
	var names []string
	for _, tag := range s.Tags {
		names = append(names, tag.Name)
		if tag.Source != "otlp" {
			t.Errorf("source of %s is %q", tag.Name, tag.Source)
		}
	}
	if want := []string{"account_id:northwind", "agent.session", "agent_id:northwind-support", "lk.judge.accuracy:pass",
		"lk.judge.tool_use:fail", "lk.success", "refund:issued", "transport:sip"}; !slices.Equal(names, want) {
		t.Errorf("tags %q", names)
	}
	if refund := s.Tags[6]; string(refund.Metadata) != `{"amount":84.5,"currency":"USD"}` || !refund.ObservedAt.Equal(at("2026-11-21T05:20:48.076Z")) {
		t.Errorf("tag with metadata %+v", refund)
	}
	if s.Tags[7].Metadata != nil {
		t.Errorf("tag without metadata %+v", s.Tags[7])
	}
	if len(s.Evaluations) != 2 {
		t.Fatalf("%d evaluations", len(s.Evaluations))
	}
	if e := s.Evaluations[1]; e.JudgeName != "tool_use" || e.Verdict != "fail" || e.Tag != "lk.judge.tool_use:fail" || e.Source != "otlp" ||
		e.Reasoning != "The first refund call failed and the caller was not told." || e.Instructions != "Tool failures must be disclosed." ||
		!e.ObservedAt.Equal(at("2026-11-21T05:20:48.076Z")) || !bytes.Contains(e.Raw, []byte(`"verdict":"fail"`)) {
		t.Errorf("evaluation %+v", e)
	}
	if o := s.Outcome; o == nil || o.Outcome != "success" || o.Reason != "Refund issued." || o.Source != "otlp" {
		t.Errorf("outcome %+v", o)
	}
	if len(s.Usage) != 3 {
		t.Fatalf("%d usage entries", len(s.Usage))
	}
	if u := s.Usage[0]; u.Type != "llm_usage" || u.Provider != "openai" || u.Model != "gpt-4.1-mini" || u.InputTokens != 3120 || u.InputCachedTokens != 1024 || u.OutputTokens != 214 {
		t.Errorf("LLM usage %+v", u)
	}
	if s.Usage[1].CharactersCount != 512 || s.Usage[1].AudioDuration != 31.2 || s.Usage[2].AudioDuration != 61 {
		t.Errorf("TTS and STT usage %+v", s.Usage[1:])
	}
	if !s.FirstAt.Equal(at("2026-11-21T05:20:00.6Z")) || !s.LastAt.Equal(at("2026-11-21T05:20:48.076Z")) {
		t.Errorf("records from %v to %v", s.FirstAt, s.LastAt)
	}
	if len(s.Items) != 16 || len(g.Records) != 1 {
		t.Fatalf("%d items, %d application logs", len(s.Items), len(g.Records))
	}
	if r := g.Records[0]; r.Body != "participant disconnected" || r.Logger != "root" || r.SeverityText != "unspecified" ||
		!r.Time.Equal(at("2026-11-21T05:20:48.076Z")) || r.Key == [16]byte{} {
		t.Errorf("application log %+v", r)
	}
}

func TestNodeLogs(t *testing.T) {
	l := decodeLogs(t, fixture(t, "livekit-node-1.9.0/01_logs"))
	if len(l.Groups) != 1 {
		t.Fatalf("%d groups", len(l.Groups))
	}
	g := l.Groups[0]
	if g.Key != (session.Key{Room: "RM_capture1", Job: "AJ_RM_capture1"}) || g.RoomName != "room-RM_capture1" || g.Service != "livekit-agents" {
		t.Errorf("origin %+v", g.Origin)
	}
	s := g.Signals
	if !s.StartedAt.Equal(at("2026-11-21T05:21:39.98Z")) || !s.ReportTimestamp.Equal(at("2026-11-21T05:21:40.06Z")) ||
		s.SDKVersion != "1.9.0" || s.AgentName != "support" || s.RoomName != "room-RM_capture1" {
		t.Errorf("report %+v", s)
	}
	if len(s.Items) != 8 || len(g.Records) != 0 || len(s.Tags) != 0 || len(s.Evaluations) != 0 || s.Outcome != nil || len(s.Usage) != 1 {
		t.Errorf("%d items, %d logs, %d tags, %d evaluations, outcome %v, %d usage", len(s.Items), len(g.Records), len(s.Tags), len(s.Evaluations), s.Outcome, len(s.Usage))
	}

	l = decodeLogs(t, fixture(t, "livekit-node-1.9.0/03_logs"))
	g = l.Groups[0]
	if len(l.Groups) != 1 || len(g.Records) != 10 || g.Signals.HasContent() {
		t.Fatalf("%d groups, %d logs, content %v", len(l.Groups), len(g.Records), g.Signals.HasContent())
	}
	r := g.Records[1]
	if r.Body != "playout completed without interruption" || r.SeverityNumber != 9 || r.SeverityText != "INFO" || r.Logger != "livekit.agents" ||
		!r.Time.Equal(at("2026-11-21T05:21:40.039Z")) || r.TraceID != "" || r.SpanID != "" {
		t.Errorf("log %+v", r)
	}
	if got := session.ParseAttrs(r.Attributes).Text("message"); got != "Hello! How can I help you today?" {
		t.Errorf("attribute lk.pii.message = %q", got)
	}
	keys := map[[16]byte]bool{}
	for _, r := range g.Records {
		keys[r.Key] = true
	}
	if len(keys) != 10 {
		t.Errorf("%d distinct keys", len(keys))
	}
	if again := decodeLogs(t, fixture(t, "livekit-node-1.9.0/03_logs")); again.Groups[0].Records[5].Key != g.Records[5].Key {
		t.Error("the key of a record is not the same the second time")
	}
}

func TestNodeTraces(t *testing.T) {
	r := fixture(t, "livekit-node-1.9.0/04_traces")
	tr, enc, err := DecodeTraces(r.contentType, r.contentEncoding, bytes.NewReader(r.body), testLimit)
	if err != nil {
		t.Fatal(err)
	}
	if enc != Protobuf || len(tr.Groups) != 1 || tr.Dropped != 0 {
		t.Fatalf("encoding %v, %d groups, %d dropped", enc, len(tr.Groups), tr.Dropped)
	}
	g := tr.Groups[0]
	if g.Key != (session.Key{Room: "RM_capture1", Job: "AJ_RM_capture1"}) || g.AgentName != "support" || g.Service != "livekit-agents" {
		t.Errorf("origin %+v", g.Origin)
	}
	byID := map[string]*session.Span{}
	for i := range g.Spans {
		byID[g.Spans[i].SpanID] = &g.Spans[i]
	}
	var roots []string
	for _, s := range g.Spans {
		if s.TraceID != g.Spans[0].TraceID || len(s.TraceID) != 32 || len(s.SpanID) != 16 || s.Scope != "livekit-agents" || s.Kind != "internal" {
			t.Errorf("span %+v", s)
		}
		if s.End.Before(s.Start) || s.Start.IsZero() {
			t.Errorf("%s from %v to %v", s.Name, s.Start, s.End)
		}
		if byID[s.ParentSpanID] == nil {
			roots = append(roots, s.Name)
		}
	}
	if len(g.Spans) != 22 || len(byID) != 22 || !slices.Equal(roots, []string{"agent_session"}) {
		t.Errorf("%d spans, %d ids, roots %q", len(g.Spans), len(byID), roots)
	}
	end := at("2026-11-21T05:21:40.67329224Z")
	if s := g.Summary; !s.Ended || !s.EndedAt.Equal(end) || !s.Started.Equal(at("2026-11-21T05:21:39.982Z")) ||
		!s.First.Equal(s.Started) || !s.Last.Equal(end) || s.AgentName != "support" || s.ToolErrors != nil {
		t.Errorf("summary %+v", s)
	}
	turn := slices.IndexFunc(g.Spans, func(s session.Span) bool { return s.Name == "user_turn" })
	if _, ok := session.Attr(g.Spans[turn].Attributes, "user_transcript"); !ok {
		t.Errorf("user_turn has no transcript: %s", g.Spans[turn].Attributes)
	}
}

// uploads are calls that were both uploaded and logged.
func uploads(t *testing.T) map[string][2][]session.Item {
	demo, err := os.ReadFile(filepath.Join(fixtures, "demo-call/chat_history.json"))
	if err != nil {
		t.Fatal(err)
	}
	node := fixture(t, "livekit-node-1.9.0/02_recordings")
	_, params, err := mime.ParseMediaType(node.contentType)
	if err != nil {
		t.Fatal(err)
	}
	var history []byte
	for mr := multipart.NewReader(bytes.NewReader(node.body), params["boundary"]); ; {
		p, err := mr.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.FormName() == "chat_history" {
			if history, err = io.ReadAll(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	return map[string][2][]session.Item{
		"demo": {itemsOf(t, demo), decodeLogs(t, fixture(t, "livekit-python-logs/logs")).Groups[0].Signals.Items},
		"node": {itemsOf(t, history), decodeLogs(t, fixture(t, "livekit-node-1.9.0/01_logs")).Groups[0].Signals.Items},
	}
}

func itemsOf(t *testing.T, history []byte) []session.Item {
	t.Helper()
	var doc struct {
		Items []json.RawMessage
		Chat  struct{ Items []json.RawMessage } `json:"chat_history"`
	}
	if err := json.Unmarshal(history, &doc); err != nil {
		t.Fatal(err)
	}
	var out []session.Item
	for _, raw := range append(doc.Items, doc.Chat.Items...) {
		it, err := report.ParseItem(raw)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, it)
	}
	return out
}

// TestLoggedItemsEqualUploadedItems holds the two ways in which an SDK tells a conversation against each other. Times in
// log records have milliseconds, and the log form has no model names.
func TestLoggedItemsEqualUploadedItems(t *testing.T) {
	sameTime := func(a, b time.Time) bool {
		return a.IsZero() == b.IsZero() && a.Sub(b).Abs() <= time.Millisecond
	}
	sameMetric := func(a, b *float64) bool {
		return (a == nil) == (b == nil) && (a == nil || math.Abs(*a-*b) < 0.0005)
	}
	for name, pair := range uploads(t) {
		up, logged := pair[0], pair[1]
		if len(up) == 0 || len(up) != len(logged) {
			t.Errorf("%s: %d items uploaded, %d logged", name, len(up), len(logged))
			continue
		}
		// Logged items are in order of time. The upload is in the SDK's order, in which the demo call puts a message
		// after the tool calls that were made while it was spoken.
		slices.SortStableFunc(up, func(a, b session.Item) int { return a.CreatedAt.Compare(b.CreatedAt) })
		for i := range up {
			a, b := up[i], logged[i]
			if a.ID != b.ID || a.Type != b.Type || a.Role != b.Role || a.Text != b.Text || a.Interrupted != b.Interrupted || a.CallID != b.CallID ||
				a.Name != b.Name || a.Arguments != b.Arguments || a.Output != b.Output || a.IsError != b.IsError || !sameTime(a.CreatedAt, b.CreatedAt) {
				t.Errorf("%s item %d differs:\nuploaded %s\nlogged   %s", name, i, a.Raw, b.Raw)
			}
			am, bm := a.Metrics, b.Metrics
			if !sameTime(am.StartedSpeakingAt, bm.StartedSpeakingAt) || !sameTime(am.StoppedSpeakingAt, bm.StoppedSpeakingAt) ||
				!sameMetric(am.TranscriptionDelay, bm.TranscriptionDelay) || !sameMetric(am.EndOfTurnDelay, bm.EndOfTurnDelay) ||
				!sameMetric(am.OnUserTurnCompletedDelay, bm.OnUserTurnCompletedDelay) || !sameMetric(am.LLMNodeTTFT, bm.LLMNodeTTFT) ||
				!sameMetric(am.TTSNodeTTFB, bm.TTSNodeTTFB) || !sameMetric(am.E2ELatency, bm.E2ELatency) ||
				!sameMetric(a.TranscriptConfidence, b.TranscriptConfidence) {
				t.Errorf("%s item %d: metrics differ:\nuploaded %s\nlogged   %s", name, i, a.Raw, b.Raw)
			}
		}
	}
}

package session_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"testing"

	"sidetone/internal/report"
	"sidetone/internal/session"
)

const fixtures = "../../testdata/fixtures/"

func fixture(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(fixtures + name)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func parseReport(tb testing.TB, u report.Upload) *session.Report {
	tb.Helper()
	r, err := report.Parse(u)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// demoCall is the demonstration call with the times the contract gives it: the header's start, the report's own timestamp.
func demoCall(tb testing.TB) session.Input {
	tb.Helper()
	r := parseReport(tb, report.Upload{
		Header: fixture(tb, "demo-call/header.json"), ChatHistory: fixture(tb, "demo-call/chat_history.json"), HasChatHistory: true,
	})
	ms := r.Timestamp.Sub(r.HeaderStart).Milliseconds()
	return session.Input{Items: r.Items, Usage: r.Usage, Transport: r.Transport, StartedAt: r.HeaderStart, DurationMS: &ms}
}

// nodeCall is a text session as @livekit/agents 1.9.0 uploaded it.
func nodeCall(tb testing.TB) *session.Report {
	tb.Helper()
	var head struct {
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal(fixture(tb, "livekit-node-1.9.0/02_recordings.headers.json"), &head); err != nil {
		tb.Fatal(err)
	}
	body := bytes.NewReader(fixture(tb, "livekit-node-1.9.0/02_recordings.bin"))
	u, err := report.Read(head.Headers["content-type"], body, report.Limits{Body: 1 << 20, Part: 1 << 20}, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return parseReport(tb, u)
}

func TestDemoCall(t *testing.T) {
	m := session.Compute(demoCall(t))

	// What the issue names.
	s := m.Summary
	if s.TotalTurns != 6 || s.Interruptions != 1 || s.TotalToolCalls != 3 || s.P95UserPerceivedMS == nil || *s.P95UserPerceivedMS != 3702 {
		t.Errorf("turns %d, interruptions %d, tool calls %d, p95 %v", s.TotalTurns, s.Interruptions, s.TotalToolCalls, s.P95UserPerceivedMS)
	}

	for i, want := range []string{
		`{"name":"lookup_order","call_id":"call_04","arguments":{"order_id":"44712"},"output":"{\"status\": \"delayed\", \"carrier\": \"DHL\", \"eta\": \"2026-11-24\"}","is_error":false,"turn_number":3,"timestamp":"2026-11-21T05:20:19.504Z"}`,
		`{"name":"start_refund","call_id":"call_07","arguments":{"order_id":"44712","reason":"late"},"output":"refund service timed out","is_error":true,"turn_number":4,"timestamp":"2026-11-21T05:20:29.977Z"}`,
		`{"name":"start_refund","call_id":"call_09","arguments":{"order_id":"44712","reason":"late"},"output":"{\"refund_id\": \"RF-9031\", \"amount\": \"84.50\"}","is_error":false,"turn_number":5,"timestamp":"2026-11-21T05:20:34.752Z"}`,
	} {
		equalJSON(t, "tool call", m.ToolCalls[i], want)
	}
	equalJSON(t, "turn 1", m.Turns[0], `{"turn_number":1,"turn_id":"item_00m","user_text":null,
		"agent_text":"Thanks for calling Northwind support. How can I help you today?","agent_first":true,"interrupted":false,
		"agent_started_speaking_at":"2026-11-21T05:20:01.600Z","agent_stopped_speaking_at":"2026-11-21T05:20:05.851Z",
		"tts_ttfb_ms":184,"agent_speech_ms":4252,"tts_characters":63,"tool_calls":[],"tts_provider":"Cartesia","tts_model":"sonic-3"}`)
	// The caller spoke over the end of turn 3: the gap is 0, not negative.
	turn4 := m.Turns[3]
	turn4.ToolCalls = nil
	equalJSON(t, "turn 4", turn4, `{"turn_number":4,"turn_id":"item_08m","user_text":"Tuesday is too late. Can I get a refund instead?",
		"agent_text":"Let me try that again for you, one moment please.","agent_first":false,"interrupted":false,
		"user_started_speaking_at":"2026-11-21T05:20:26.159Z","user_stopped_speaking_at":"2026-11-21T05:20:29.627Z",
		"agent_started_speaking_at":"2026-11-21T05:20:31.047Z","agent_stopped_speaking_at":"2026-11-21T05:20:34.402Z",
		"user_perceived_ms":1420,"stt_delay_ms":240,"llm_ttft_ms":655,"tts_ttfb_ms":166,"turn_decision_ms":498,"hook_delay_ms":1,
		"user_speech_ms":3468,"agent_speech_ms":3355,"ttfa_ms":1420,"inter_turn_gap_ms":0,"user_transcript_confidence":0.91,
		"tts_characters":49,"tool_calls":null,"stt_provider":"Deepgram","stt_model":"nova-3","llm_provider":"openai",
		"llm_model":"gpt-4.1-mini","tts_provider":"Cartesia","tts_model":"sonic-3"}`)
	// Tokens are those of usage: no message carries any. The agent's speech of turns 4 and 5 overlaps, once in the silence.
	equalJSON(t, "summary", s, `{"total_turns":6,"total_llm_tokens":3334,"total_llm_prompt_tokens":3120,"total_llm_completion_tokens":214,
		"total_tts_characters":382,"total_tool_calls":3,"interruptions":1,"interruption_rate":0.1667,
		"avg_user_perceived_ms":1867,"p95_user_perceived_ms":3702,"latency":{
			"perceived":{"avg":1867,"p50":1420,"p90":3702,"p95":3702,"count":5},
			"llm_ttft":{"avg":940,"p50":655,"p90":2310,"p95":2310,"count":5},
			"tts_ttfb":{"avg":179,"p50":171,"p90":203,"p95":203,"count":6},
			"stt":{"avg":204,"p50":188,"p90":240,"p95":240,"count":4},
			"turn_decision":{"avg":528,"p50":512,"p90":561,"p95":561,"count":4}},
		"voice":{"ttfa":{"avg":1408,"p50":1164,"p90":1958,"p95":1958,"count":4},"greeting_ttfa_ms":1600,
			"user_speech_ms":13866,"agent_speech_ms":25351,"talk_ratio":0.6464,"longest_monologue_ms":6813,"longest_monologue_turn":5,
			"user_wpm":164.4,"agent_wpm":177.5,
			"dead_air":{"threshold_ms":3000,"count":0,"total_ms":0,"max_ms":0,"events":[]},"silence_pct":20.97},
		"providers":{"stt":["Deepgram/nova-3"],"llm":["openai/gpt-4.1-mini"],"tts":["Cartesia/sonic-3"]}}`)
}

// The messages of this session carry speaking times though nobody spoke: no trace of a voice may be left.
func TestNodeTextSession(t *testing.T) {
	r := nodeCall(t)
	equalJSON(t, "metrics", session.Compute(session.Input{Items: r.Items, Usage: r.Usage, Transport: r.Transport, StartedAt: r.HeaderStart}), `{"turns":[
		{"turn_number":1,"turn_id":"item_a8899536-04d","user_text":"Hi there","agent_text":"Hello! How can I help you today?",
			"agent_first":false,"interrupted":false,"user_perceived_ms":17,"llm_ttft_ms":17,"tool_calls":[]},
		{"turn_number":2,"turn_id":"item_c9db6dec-da6","user_text":"What is my balance?","agent_text":"Your balance is forty two dollars.",
			"agent_first":false,"interrupted":false,"user_perceived_ms":3,"llm_ttft_ms":3,"tool_calls":[]},
		{"turn_number":3,"turn_id":"item_4c60667f-fb6","user_text":"Thanks, bye","agent_text":"Goodbye, have a great day.",
			"agent_first":false,"interrupted":false,"user_perceived_ms":3,"llm_ttft_ms":3,"tool_calls":[]}],
		"tool_calls":[],
		"summary":{"total_turns":3,"total_llm_tokens":0,"total_llm_prompt_tokens":0,"total_llm_completion_tokens":0,"total_tts_characters":0,
			"total_tool_calls":0,"interruptions":0,"interruption_rate":0,"avg_user_perceived_ms":8,"p95_user_perceived_ms":17,
			"latency":{"perceived":{"avg":8,"p50":3,"p90":17,"p95":17,"count":3},"llm_ttft":{"avg":8,"p50":3,"p90":17,"p95":17,"count":3}},
			"providers":{"stt":[],"llm":[],"tts":[]}}}`)
	if stt, llm, tts := session.Capabilities(r.Items, r.Transport); stt || !llm || tts {
		t.Errorf("has_stt %v, has_llm %v, has_tts %v", stt, llm, tts)
	}
}

func equalJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var g, w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%s: the expectation is not JSON: %v", what, err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s:\n got %s\nwant %s", what, b, want)
	}
}

func BenchmarkComputeDemoCall(b *testing.B) {
	in := demoCall(b)
	b.ReportAllocs()
	for b.Loop() {
		session.Compute(in)
	}
}

func BenchmarkSearchIndexDemoCall(b *testing.B) {
	items := demoCall(b).Items
	b.ReportAllocs()
	for b.Loop() {
		session.Words(session.SearchText(items))
	}
}

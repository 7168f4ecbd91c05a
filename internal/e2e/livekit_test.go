package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sdkStory is the last line of node/session.mjs.
type sdkStory struct {
	SDK       string   `json:"sdk"`
	StartedAt int64    `json:"started_at"` // epoch ms
	Items     []string `json:"items"`      // types
	Answers   []string `json:"answers"`
}

// runSDK lets the published LiveKit SDK hold a conversation and send its report to the server.
func runSDK(ctx context.Context, s *server, room, recording string) (sdkStory, error) {
	var story sdkStory
	node, err := exec.LookPath("node")
	if err != nil {
		return story, fmt.Errorf("the LiveKit SDK needs Node.js: %w", err)
	}
	if _, err := os.Stat("node/node_modules/@livekit/agents"); err != nil {
		return story, fmt.Errorf("the LiveKit SDK is not installed; run scripts/install-deps: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "session.mjs")
	cmd.Dir = "node"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LIVEKIT_API_KEY=" + apiKey, "LIVEKIT_API_SECRET=" + secret,
		"SERVER=" + s.URL, "ROOM_ID=" + room, "JOB_ID=AJ_" + room, "RECORDING=" + recording}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return story, fmt.Errorf("node session.mjs: %w\n%s\n%s", err, &stdout, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &story); err != nil {
		return story, fmt.Errorf("node session.mjs says %q: %w", lines[len(lines)-1], err)
	}
	return story, nil
}

// TestLiveKitSDK runs a text session with the SDK from npm and looks at what arrived: the report with its recording,
// the log records and the spans.
func TestLiveKitSDK(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database, livekitPair...)
		recording, err := filepath.Abs(fixtures + "demo-call/recording.ogg")
		if err != nil {
			t.Fatal(err)
		}
		story, err := runSDK(t.Context(), s, "RM_sdk", recording)
		if err != nil {
			t.Fatal(err)
		}
		answers := []string{"Hello! How can I help you today?", "Your balance is forty-two dollars.", "There is no such account.", "Goodbye, have a great day."}
		if !slices.Equal(story.Answers, answers) {
			t.Fatalf("the conversation went another way: %q", story.Answers)
		}
		if n := s.total(); n != 1 {
			t.Errorf("%d sessions", n)
		}
		call := s.json("/api/sessions/RM_sdk")
		started := time.UnixMilli(story.StartedAt).UTC().Format("2006-01-02T15:04:05.000Z")
		want(t, call, map[string]any{
			"job_id": "AJ_RM_sdk", "agent_name": "support", "room_name": "e2e", "sdk_version": story.SDK, "state": "ended",
			"started_at": started, "audio_started_at": started, "record_url": "/api/sessions/RM_sdk/recording", "incomplete": []any{},
			"turn_count": 4, "tool_call_count": 2, "interruption_count": 0, "has_llm": true, "has_stt": false, "has_tts": false,
			"session_metrics.summary.total_turns": 4, "session_metrics.tool_calls.0.is_error": false,
			"session_metrics.tool_calls.0.arguments.account": "42", "session_metrics.tool_calls.1.is_error": true,
			"session_metrics.tool_calls.1.arguments.account": "7", "session_metrics.tool_calls.1.output": "there is no account 7",
			"session_metrics.tool_calls.1.turn_number": 3,
		})
		if n := length(call, "chat_history"); n != len(story.Items) {
			t.Errorf("%d items, the SDK had %v", n, story.Items)
		}
		for i, answer := range answers {
			turn := fmt.Sprintf("session_metrics.turns.%d.", i)
			want(t, call, map[string]any{turn + "agent_text": answer})
			if ms, ok := at(call, turn+"llm_ttft_ms").(float64); !ok || ms < 0 || ms > 30_000 {
				t.Errorf("turn %d: llm_ttft_ms is %v", i+1, at(call, turn+"llm_ttft_ms"))
			}
		}
		for _, signal := range []string{"report", "transcript", "audio", "logs", "traces"} {
			if at(call, "signals."+signal) == nil {
				t.Errorf("no signal of %s", signal)
			}
		}
		checkSameAudio(t, s, "RM_sdk", readFile(t, recording))
		checkSpans(t, s, "RM_sdk")
		logs := s.get("/api/sessions/RM_sdk/logs").body
		if n := bytes.Count(logs, []byte("the caller asked for a balance")); n != 1 {
			t.Errorf("the application's log line is there %d times: %s", n, logs)
		}
	})
}

// checkSpans wants the spans of a session to be one tree below agent_session.
func checkSpans(t *testing.T, s *server, id string) {
	t.Helper()
	doc := s.json("/api/sessions/" + id + "/spans?limit=100")
	known, names := map[string]bool{}, map[string]int{}
	for i := range length(doc, "objects") {
		span := at(doc, fmt.Sprintf("objects.%d", i))
		known[fmt.Sprint(at(span, "span_id"))] = true
		names[fmt.Sprint(at(span, "name"))]++
	}
	for i := range length(doc, "objects") {
		span := at(doc, fmt.Sprintf("objects.%d", i))
		parent, _ := at(span, "parent_span_id").(string)
		if parent == "" && at(span, "name") != "agent_session" || parent != "" && !known[parent] {
			t.Errorf("the span %v hangs below nothing (%q)", at(span, "name"), parent)
		}
	}
	if names["agent_session"] != 1 || names["agent_turn"] < 4 || names["function_tool"] != 2 {
		t.Errorf("the spans are %v", names)
	}
}

// TestLiveKitSDKComesAgain lets the disk for recordings be full when the SDK uploads: it is told to come again, does so
// and succeeds.
func TestLiveKitSDKComesAgain(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t), livekitPair...)
	recording := filepath.Join(t.TempDir(), "call.ogg")
	audio := bytes.Repeat([]byte("OggS not really"), 200_000)
	writeFile(t, recording, string(audio))
	s.LimitFileSize(1 << 20)
	done := make(chan error, 1)
	go func() {
		_, err := runSDK(context.Background(), s, "RM_again", recording)
		done <- err
	}()
	s.WaitLog("path=/observability/recordings/v0 status=503", 2*patience)
	s.LimitFileSize(-1)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want(t, s.json("/api/sessions/RM_again"), map[string]any{"turn_count": 4, "incomplete": []any{}})
	checkSameAudio(t, s, "RM_again", audio)
	if f := s.files(); len(f) != 1 {
		t.Errorf("the recordings folder holds %v", f)
	}
}

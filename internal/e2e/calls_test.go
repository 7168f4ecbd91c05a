package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"sidetone/internal/demo"
)

const fixtures = "../../testdata/fixtures/"

// demoCall is the recorded call of the fixtures as agent-transport sends it: JSON header, whole report, recording.
func demoCall(t *testing.T) (contentType string, body, audio []byte) {
	t.Helper()
	header, chat := readFile(t, fixtures+"demo-call/header.json"), readFile(t, fixtures+"demo-call/chat_history.json")
	audio = readFile(t, fixtures+"demo-call/recording.ogg")
	contentType, body = demo.Call{Header: header, Body: chat}.Multipart(audio)
	return contentType, body, audio
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDemoCall(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		contentType, body, audio := demoCall(t)
		posted := decode(t, s.post(contentType, body).body)
		want(t, posted, map[string]any{"message": "session report received", "session_id": "demo-call-44712"})

		call := s.json("/api/sessions/demo-call-44712")
		want(t, call, map[string]any{
			"turn_count": 6, "interruption_count": 1, "tool_call_count": 3, "p95_user_perceived_ms": 3702,
			"account_id": "northwind", "transport": "sip", "state": "ended", "record_url": "/api/sessions/demo-call-44712/recording",
			"session_metrics.summary.total_turns": 6, "session_metrics.summary.interruptions": 1,
			"session_metrics.summary.total_tool_calls": 3, "session_metrics.summary.p95_user_perceived_ms": 3702,
			"session_metrics.tool_calls.3": nil,
		})
		failed := 0
		for i := range length(call, "session_metrics.tool_calls") {
			if at(call, fmt.Sprintf("session_metrics.tool_calls.%d.is_error", i)) == true {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d tool calls failed, want 1", failed)
		}
		row := at(s.json("/api/sessions?account_id=northwind&has_recording=true&q=refund"), "objects.0")
		want(t, row, map[string]any{"id": "demo-call-44712", "turn_count": 6, "p95_user_perceived_ms": 3702})
		if snippet, _ := at(row, "match_snippet").(string); !strings.Contains(snippet, "<mark>") {
			t.Errorf("the match is not marked in %q", snippet)
		}
		checkPlayback(t, s, "/api/sessions/demo-call-44712/recording", audio)

		deleted := s.do("DELETE", "/api/sessions", map[string]string{"Content-Type": "application/json"},
			strings.NewReader(`{"session_ids":["demo-call-44712","never-was"]}`))
		want(t, decode(t, deleted.body), map[string]any{"deleted": 1})
		wantError(t, "a deleted session", s.get("/api/sessions/demo-call-44712"), 404, "not_found")
		wantError(t, "a deleted recording", s.get("/api/sessions/demo-call-44712/recording"), 404, "not_found")
		s.wantNothingStored("deleting the only session")
	})
}

// checkPlayback asks for a recording in every way players do.
func checkPlayback(t *testing.T, s *server, path string, audio []byte) {
	t.Helper()
	whole := s.get(path)
	etag := whole.header.Get("ETag")
	if etag != strconv.Quote(sha256Hex(audio)) {
		t.Errorf("the ETag is %s", etag)
	}
	size := len(audio)
	for _, c := range []struct {
		name, method, query string
		header              map[string]string
		status              int
		body                []byte
		replied             map[string]string
	}{
		{"all of it", "GET", "", nil, 200, audio, map[string]string{"Content-Type": "audio/ogg", "Accept-Ranges": "bytes",
			"Content-Length": strconv.Itoa(size), "X-Content-Type-Options": "nosniff", "Content-Disposition": ""}},
		{"HEAD", "HEAD", "", nil, 200, nil, map[string]string{"Content-Length": strconv.Itoa(size), "ETag": etag}},
		{"the first bytes", "GET", "", map[string]string{"Range": "bytes=0-99"}, 206, audio[:100],
			map[string]string{"Content-Range": fmt.Sprintf("bytes 0-99/%d", size), "Content-Type": "audio/ogg"}},
		{"the middle", "GET", "", map[string]string{"Range": "bytes=70000-70009"}, 206, audio[70000:70010], nil},
		{"open end", "GET", "", map[string]string{"Range": "bytes=150000-"}, 206, audio[150000:], nil},
		{"suffix", "GET", "", map[string]string{"Range": "bytes=-500"}, 206, audio[size-500:],
			map[string]string{"Content-Range": fmt.Sprintf("bytes %d-%d/%d", size-500, size-1, size)}},
		{"HEAD of a range", "HEAD", "", map[string]string{"Range": "bytes=0-99"}, 206, nil, map[string]string{"Content-Length": "100"}},
		{"past the end", "GET", "", map[string]string{"Range": fmt.Sprintf("bytes=%d-", size)}, 416, nil,
			map[string]string{"Content-Range": fmt.Sprintf("bytes */%d", size)}},
		{"If-Range that holds", "GET", "", map[string]string{"Range": "bytes=0-9", "If-Range": etag}, 206, audio[:10], nil},
		{"If-Range of another recording", "GET", "", map[string]string{"Range": "bytes=0-9", "If-Range": `"other"`}, 200, audio, nil},
		{"nothing new", "GET", "", map[string]string{"If-None-Match": etag}, 304, nil, map[string]string{"ETag": etag}},
		{"something new", "GET", "", map[string]string{"If-None-Match": `"other"`}, 200, audio, nil},
		{"as a file", "GET", "?download=1", nil, 200, audio,
			map[string]string{"Content-Disposition": "attachment; filename=demo-call-44712.ogg"}},
		{"compressed", "GET", "", map[string]string{"Accept-Encoding": "gzip"}, 200, audio, map[string]string{"Content-Encoding": ""}},
	} {
		r := s.do(c.method, path+c.query, c.header, nil)
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d", c.name, r.status, c.status)
		}
		if c.status != 416 && !bytes.Equal(r.body, c.body) {
			t.Errorf("%s: %d bytes that are not the %d wanted", c.name, len(r.body), len(c.body))
		}
		for k, v := range c.replied {
			if got := r.header.Get(k); got != v {
				t.Errorf("%s: %s is %q, want %q", c.name, k, got, v)
			}
		}
	}
}

// captured is a request of an SDK as it was on the wire.
type captured struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	body    []byte
}

func readCaptured(t *testing.T, name string) captured {
	t.Helper()
	var c captured
	if err := json.Unmarshal(readFile(t, fixtures+name+".headers.json"), &c); err != nil {
		t.Fatal(err)
	}
	for _, hop := range []string{"connection", "content-length", "transfer-encoding"} {
		delete(c.Headers, hop) // these belong to the connection; the client sets its own
	}
	c.body = readFile(t, fixtures+name+".bin")
	return c
}

func TestCapturedNodeUpload(t *testing.T) {
	t.Parallel()
	c := readCaptured(t, "livekit-node-1.9.0/02_recordings")
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		// The Python SDK joins a base URL that ends with a slash and the path as they are.
		for _, path := range []string{c.URL, "/" + c.URL} {
			if r := s.do("POST", path, c.Headers, bytes.NewReader(c.body)); r.status != 200 {
				t.Fatalf("POST %s: %d %s", path, r.status, r.body)
			}
		}
		if n := s.total(); n != 1 {
			t.Errorf("%d sessions", n)
		}
		call := s.json("/api/sessions/RM_capture1")
		want(t, call, map[string]any{
			"job_id": "AJ_RM_capture1", "turn_count": 3, "session_metrics.summary.total_turns": 3, "session_metrics.turns.3": nil,
			"chat_history.8": nil, "chat_history.7.content.0": "Goodbye, have a great day.", "has_llm": true, "record_url": nil,
			"session_metrics.turns.1.user_text": "What is my balance?", "session_metrics.turns.1.llm_ttft_ms": 3,
		})
	})
}

func TestOtherJobInTheSameRoomIsAnotherSession(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		c := readCaptured(t, "livekit-node-1.9.0/02_recordings")
		other := c
		// The same length, so that the length prefixes of the protobuf header stay right.
		other.body = bytes.Replace(c.body, []byte("AJ_RM_capture1"), []byte("AJ_RM_capture2"), 1)
		for _, c := range []captured{c, other, c, other} {
			s.mustPost(c.Headers["content-type"], c.body)
		}
		if n := s.total(); n != 2 {
			t.Errorf("%d sessions, want 2", n)
		}
		want(t, s.json("/api/sessions/RM_capture1"), map[string]any{"job_id": "AJ_RM_capture1", "turn_count": 3})
		want(t, s.json("/api/sessions/RM_capture1:AJ_RM_capture2"), map[string]any{"job_id": "AJ_RM_capture2", "turn_count": 3})
	})
}

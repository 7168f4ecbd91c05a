package e2e

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"

	"sidetone/internal/demo"
)

// TestSameReportAgain sends one report ten times at once and ten times in a row, as SDKs do that did not hear the
// answer: one row, the same turns, one file.
func TestSameReportAgain(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		call := demo.BenchCall(7)
		audio := readFile(t, fixtures+"demo-call/recording.ogg")
		contentType, body := call.Multipart(audio)

		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				r, err := s.tryPost(contentType, body)
				if err != nil || r.status != 200 {
					t.Errorf("at once: %d %s, %v", r.status, r.body, err)
				}
			})
		}
		wg.Wait()
		first := sessionNow(t, s, call.SessionID)
		for range 10 {
			s.mustPost(contentType, body)
		}
		again := sessionNow(t, s, call.SessionID)
		if !reflect.DeepEqual(first, again) {
			t.Errorf("the session changed:\n%v\n%v", first, again)
		}
		want(t, again, map[string]any{"turn_count": 12, "session_metrics.summary.total_tool_calls": 3})
		if n := s.total(); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
		if f := s.files(); len(f) != 1 || strings.HasPrefix(f[0], "tmp") {
			t.Errorf("the recordings folder holds %v, want one recording", f)
		}
		checkSameAudio(t, s, call.SessionID, audio)

		// A report that comes again without its recording does not take the recording away.
		s.mustPost(call.Multipart(nil))
		checkSameAudio(t, s, call.SessionID, audio)

		// Another recording takes the place of the first, whose file goes.
		other := append([]byte("another "), audio...)
		s.mustPost(call.Multipart(other))
		checkSameAudio(t, s, call.SessionID, other)
		if f := s.files(); len(f) != 1 {
			t.Errorf("the recordings folder holds %v, want one recording", f)
		}
	})
}

// sessionNow is a session but for what belongs to the reply.
func sessionNow(t *testing.T, s *server, id string) map[string]any {
	t.Helper()
	doc := s.json("/api/sessions/" + id).(map[string]any)
	delete(doc, "api_id")
	delete(doc, "last_signal_at")
	return doc
}

func checkSameAudio(t *testing.T, s *server, id string, audio []byte) {
	t.Helper()
	r := s.get("/api/sessions/" + id + "/recording")
	if r.status != 200 || sha256Hex(r.body) != sha256Hex(audio) {
		t.Errorf("the recording is answered %d with %d bytes, want the %d sent", r.status, len(r.body), len(audio))
	}
}

// TestLateFacts sends what the second report knows and the first did not.
func TestLateFacts(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		send := func(header map[string]any) {
			b, err := json.Marshal(header)
			if err != nil {
				t.Fatal(err)
			}
			s.mustPost(demo.Call{Header: b, Body: []byte(`{"items":[]}`)}.Multipart(nil))
		}
		send(map[string]any{"session_id": "late", "start_time": 1795238400})
		want(t, s.json("/api/sessions/late"), map[string]any{"account_id": nil, "agent_id": nil, "transport": nil, "turn_count": 0})
		send(map[string]any{"session_id": "late", "start_time": 1795238400, "agent_id": "support-1", "transport": "sip",
			"room_tags": map[string]any{"account_id": "northwind"}})
		want(t, s.json("/api/sessions/late"), map[string]any{"account_id": "northwind", "agent_id": "support-1", "transport": "sip"})
	})
}

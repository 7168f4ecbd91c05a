package report

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"sidetone/internal/session"
)

// callBody is a whole session report of at least size bytes like the demo call's: its conversation goes on with other
// ids, times and latencies, and events repeats every item, as agent-transport sends it.
func callBody(tb testing.TB, size int) []byte {
	tb.Helper()
	var report map[string]any
	if err := json.Unmarshal(read(tb, "demo-call/chat_history.json"), &report); err != nil {
		tb.Fatal(err)
	}
	demo := report["chat_history"].(map[string]any)["items"].([]any)
	var items, events []any
	for i := 0; ; i++ {
		b, err := json.Marshal(demo[i%len(demo)])
		if err != nil {
			tb.Fatal(err)
		}
		var item map[string]any
		if err := json.Unmarshal(b, &item); err != nil {
			tb.Fatal(err)
		}
		round := float64(i / len(demo))
		item["id"] = item["id"].(string) + strings.Repeat("b", i/len(demo))
		item["created_at"] = item["created_at"].(float64) + 48.125*round
		if m, ok := item["metrics"].(map[string]any); ok {
			for k, v := range m {
				if v, ok := v.(float64); ok && v < 100 {
					m[k] = v * (1 + round/16)
				}
			}
		}
		items = append(items, item)
		events = append(events, map[string]any{"type": "conversation_item_added", "created_at": item["created_at"], "item": item})
		report["chat_history"], report["events"] = map[string]any{"items": items}, events
		if b, err = json.Marshal(report); err != nil {
			tb.Fatal(err)
		}
		if len(b) >= size {
			return b
		}
	}
}

func benchUpload(b *testing.B) Upload {
	return Upload{Header: []byte(`{"session_id":"s","start_time":1795238400}`), ChatHistory: callBody(b, 35_000), HasChatHistory: true}
}

func BenchmarkParse(b *testing.B) {
	u := benchUpload(b)
	b.SetBytes(int64(len(u.ChatHistory)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(u); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnmarshal is what the standard decoder would take for the items and the raw rest, to hold Parse against.
func BenchmarkUnmarshal(b *testing.B) {
	u := benchUpload(b)
	b.SetBytes(int64(len(u.ChatHistory)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct {
			Events, Options json.RawMessage
			ChatHistory     struct {
				Items []struct {
					ID, Type, Role, Name, Arguments, Output string
					Content                                 json.RawMessage
					CreatedAt                               float64 `json:"created_at"`
					Metrics                                 map[string]any
				}
			} `json:"chat_history"`
		}
		if err := json.Unmarshal(u.ChatHistory, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	u := benchUpload(b)
	body := part("header", "; filename=\"header.json\"\r\nContent-Type: application/json", string(u.Header)) +
		part("chat_history", "; filename=\"chat_history.json\"\r\nContent-Type: application/json", string(u.ChatHistory)) + closing
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(formData, strings.NewReader(body), roomy, func(io.Reader) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseDoc(b *testing.B) {
	u := benchUpload(b)
	r, err := Parse(u)
	if err != nil {
		b.Fatal(err)
	}
	doc := EncodeDoc(u, r)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseDoc(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNormalizeItem(b *testing.B) {
	r, err := Parse(benchUpload(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, it := range r.Items {
			NormalizeItem(it.Raw)
		}
	}
}

// TestBenchBody keeps the benchmarks honest: their body has the size they claim and is understood.
func TestBenchBody(t *testing.T) {
	body := callBody(t, 35_000)
	r, err := Parse(Upload{Header: []byte(`{"session_id":"s"}`), ChatHistory: body, HasChatHistory: true})
	if err != nil {
		t.Fatal(err)
	}
	turns := 0
	for _, it := range r.Items {
		if it.Role == session.RoleAssistant && it.Text != "" && !it.CreatedAt.IsZero() {
			turns++
		}
	}
	if len(body) > 37_000 || turns < 12 || bytes.Count(r.Events, []byte(`"conversation_item_added"`)) != len(r.Items) {
		t.Errorf("%d bytes, %d turns, %d items", len(body), turns, len(r.Items))
	}
}

package session

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func TestAttrFindsOldAndNewNames(t *testing.T) {
	attrs := json.RawMessage(`{"lk.user_transcript":"old","lk.pii.response.text":"new","lk.pii.user_input":"b","lk.user_input":"a",` +
		`"gen_ai.usage.input_tokens":12,"lk.pii.null":null}`)
	for _, c := range []struct{ name, want string }{
		{"user_transcript", "old"},
		{"lk.user_transcript", "old"},
		{"lk.pii.user_transcript", "old"},
		{"response.text", "new"},
		{"user_input", "b"}, // both there: the newer
		{"gen_ai.usage.input_tokens", "12"},
		{"transcript", ""},
		{"null", ""},
	} {
		if got := ParseAttrs(attrs).Text(c.name); got != c.want {
			t.Errorf("%s = %q, want %q", c.name, got, c.want)
		}
	}
	if raw, ok := Attr(attrs, "user_transcript"); !ok || string(raw) != `"old"` {
		t.Errorf("Attr = %s %v", raw, ok)
	}
	if _, ok := Attr(json.RawMessage(`[1]`), "x"); ok {
		t.Error("found something in what is no object")
	}
}

func TestContentKeys(t *testing.T) {
	base := LogRecord{Time: signalsBase, SeverityNumber: 9, SeverityText: "INFO", Body: "hello", Logger: "root", TraceID: "aa", SpanID: "bb",
		Attributes: json.RawMessage(`{"a":1}`)}
	key := func(change func(*LogRecord)) [16]byte {
		r := base
		change(&r)
		r.SetKey()
		return r.Key
	}
	same := key(func(*LogRecord) {})
	if key(func(r *LogRecord) { r.ObservedAt = signalsBase }) != same {
		t.Error("the observed time changes the key")
	}
	seen := map[[16]byte]string{same: "base"}
	for name, change := range map[string]func(*LogRecord){
		"time":     func(r *LogRecord) { r.Time = r.Time.Add(1) },
		"severity": func(r *LogRecord) { r.SeverityNumber = 10 },
		"text":     func(r *LogRecord) { r.SeverityText = "" },
		"body":     func(r *LogRecord) { r.Body = "hello " },
		"shifted":  func(r *LogRecord) { r.SeverityText, r.Body = "INFOh", "ello" },
		"logger":   func(r *LogRecord) { r.Logger = "" },
		"trace":    func(r *LogRecord) { r.TraceID = "ab" },
		"span":     func(r *LogRecord) { r.SpanID = "" },
		"event":    func(r *LogRecord) { r.Event = "e" },
		"attrs":    func(r *LogRecord) { r.Attributes = json.RawMessage(`{"a":2}`) },
	} {
		k := key(change)
		if other, ok := seen[k]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[k] = name
	}
	p, q := MetricPoint{Name: "n", Value: json.RawMessage("1")}, MetricPoint{Name: "n", Value: json.RawMessage("2")}
	p.SetKey()
	q.SetKey()
	if p.Key == q.Key {
		t.Error("points with other values have the same key")
	}
}

func TestSummaryOfSpans(t *testing.T) {
	at := func(s int) time.Time { return signalsBase.Add(time.Duration(s) * time.Second) }
	spans := []Span{
		{SpanID: "1", Name: "job_entrypoint", Start: at(0), End: at(1)},
		{SpanID: "2", Name: "llm_node", Start: at(5), End: at(9)},
		{SpanID: "3", Name: "function_tool", Start: at(6), End: at(7), Attributes: json.RawMessage(`{"lk.function_tool.name":"pay","lk.function_tool.is_error":true}`)},
		{SpanID: "4", Name: "function_tool", Start: at(7), End: at(8), Attributes: json.RawMessage(`{"lk.function_tool.name":"look"}`)},
		{SpanID: "5", Name: "function_tool", Start: at(6), StatusCode: "error", Attributes: json.RawMessage(`{"gen_ai.tool.name":"ship"}`)},
	}
	s := Summarize(spans)
	if s.Ended || !s.First.Equal(at(0)) || !s.Last.Equal(at(9)) {
		t.Errorf("a call that goes on: %+v", s)
	}
	want := []ToolError{{at(6), "3", "pay"}, {at(6), "5", "ship"}}
	if !reflect.DeepEqual(s.ToolErrors, want) {
		t.Errorf("tool errors %+v, want %+v", s.ToolErrors, want)
	}
	for _, name := range []string{"agent_session", "session_close", "job_shutdown"} {
		if open := Summarize([]Span{{Name: name, Start: at(0)}}); open.Ended {
			t.Errorf("%s without an end ends the call", name)
		}
		done := Summarize([]Span{{Name: name, Start: at(2), End: at(20)}})
		if !done.Ended || !done.EndedAt.Equal(at(20)) {
			t.Errorf("%s: %+v", name, done)
		}
	}
}

func TestTraceSummaryMergeIgnoresOrderAndRepetition(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		spans := make([]Span, 1+r.IntN(300))
		names := []string{"agent_session", "function_tool", "llm_node", "session_close"}
		for i := range spans {
			start := signalsBase.Add(time.Duration(r.IntN(100)) * time.Second)
			spans[i] = Span{SpanID: fmt.Sprint(i), Name: names[r.IntN(len(names))], Start: start, StatusCode: "error"}
			if r.IntN(3) > 0 {
				spans[i].End = start.Add(time.Duration(r.IntN(9)) * time.Second)
			}
		}
		summary := func(room string, sp []Span) TraceSummary {
			s := Summarize(sp)
			s.RoomName = room
			return s
		}
		cut := r.IntN(len(spans))
		want, a, b := summary("r", spans), summary("", spans[:cut]), summary("r", spans[cut:])
		for _, parts := range [][]TraceSummary{{a, b}, {b, a}, {a, b, a, want}, {want, b}} {
			var got TraceSummary
			for _, p := range parts {
				got.Merge(p)
			}
			doc, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var back TraceSummary
			if err := json.Unmarshal(doc, &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, want) {
				t.Fatalf("seed %d: got %+v, want %+v", seed, back, want)
			}
		}
		if len(want.ToolErrors) > maxToolErrors {
			t.Fatalf("%d tool errors kept", len(want.ToolErrors))
		}
	}
}

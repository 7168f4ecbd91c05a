package demo

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

var testNow = time.Date(2026, 11, 21, 6, 30, 0, 0, time.UTC)

func TestScenariosAreWellFormed(t *testing.T) {
	scenarios, err := parseScenarios(scenarioText)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, a := range agents() {
		known[a.id] = true
	}
	used := map[string]bool{}
	languages := map[string]bool{}
	for _, s := range scenarios {
		languages[s.language] = true
		if namesByLanguage[s.language] == nil || daysByLanguage[s.language] == nil || retryWords[s.language] == "" {
			t.Errorf("%s: no words for language %q", s.name, s.language)
		}
		for _, id := range s.agents {
			used[id] = true
			if !known[id] {
				t.Errorf("%s: unknown agent %q", s.name, id)
			}
		}
		for _, l := range s.lines {
			if l.kind == "call" || l.kind == "error" {
				if args := fill(l.args, drawSlots(newRand(1), s.language, testNow)); !json.Valid([]byte(args)) {
					t.Errorf("%s: %s: arguments are not JSON: %s", s.name, l.name, args)
				}
			}
		}
	}
	for id := range known {
		if !used[id] {
			t.Errorf("agent %s has no scenario", id)
		}
	}
	if !languages["ar"] || len(languages) < 4 {
		t.Errorf("languages: %v", languages)
	}
	for _, bad := range []string{"agent hello", "scenario a | en | b", "scenario a | en | b | maybe: x", "scenario a | en | b | fail: x\nshout hello", "scenario a | en | b | fail: x\ncall name {}"} {
		if _, err := parseScenarios(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestCallsAreDeterministic(t *testing.T) {
	ended := testNow.Add(-time.Hour)
	a, b := NewGenerator(7), NewGenerator(7)
	b.Call(3, ended) // what was generated before must not matter
	for i := range 50 {
		x, y := a.Call(i, ended), b.Call(i, ended)
		if !bytes.Equal(x.Body, y.Body) || !bytes.Equal(x.Header, y.Header) || !bytes.Equal(x.HeaderProto, y.HeaderProto) {
			t.Fatalf("call %d differs between two generators of the same seed", i)
		}
		if z := NewGenerator(8).Call(i, ended); z.SessionID == x.SessionID || bytes.Equal(z.Body, x.Body) {
			t.Fatalf("call %d is the same for another seed", i)
		}
		if p, q := BenchCall(i), BenchCall(i); !bytes.Equal(p.Body, q.Body) || !bytes.Equal(p.Header, q.Header) {
			t.Fatalf("bench call %d differs", i)
		}
	}
}

// TestCallsAreConsistent reads every call of a day as a server would and checks what the metrics rest on.
func TestCallsAreConsistent(t *testing.T) {
	g := NewGenerator(1)
	seen := map[string]bool{}
	var interrupted, failedTools, slow, text, rtl, emoji, fails, verdicts int
	for _, s := range schedule(1, testNow, 1, 300) {
		c := g.Call(s.index, s.ended)
		if seen[c.SessionID] {
			t.Fatalf("session id %s twice", c.SessionID)
		}
		seen[c.SessionID] = true
		var h header
		var r reportBody
		strictJSON(t, c.Header, &h)
		strictJSON(t, c.Body, &r)
		if h.SessionID != c.SessionID || r.RoomID != c.SessionID || h.RoomTags["account_id"] == "" || h.Transport == "" || h.AgentID == "" {
			t.Fatalf("header %s", c.Header)
		}
		if got := fromEpoch(h.EndedAt); !got.Equal(s.ended) {
			t.Fatalf("%s ended at %v, want %v", c.SessionID, got, s.ended)
		}
		if h.StartTime >= h.EndedAt || h.EndedAt-h.StartTime > 900 {
			t.Fatalf("%s lasts %.1f s", c.SessionID, h.EndedAt-h.StartTime)
		}
		calls := map[string]bool{}
		last := h.StartTime
		for _, it := range r.ChatHistory.Items {
			if it.CreatedAt < h.StartTime || it.CreatedAt > h.EndedAt {
				t.Fatalf("%s: item %s at %f outside the call", c.SessionID, it.ID, it.CreatedAt)
			}
			if it.CreatedAt < last-0.001 {
				t.Fatalf("%s: item %s is out of order", c.SessionID, it.ID)
			}
			last = it.CreatedAt
			if strings.ContainsAny(strings.Join(it.Content, ""), "{}|") {
				t.Fatalf("%s: unfilled text %q", c.SessionID, it.Content)
			}
			switch it.Type {
			case "function_call":
				calls[it.CallID] = true
				if !json.Valid([]byte(it.Arguments)) {
					t.Fatalf("arguments %s", it.Arguments)
				}
			case "function_call_output":
				if !calls[it.CallID] {
					t.Fatalf("output without a call: %+v", it)
				}
				if *it.IsError {
					failedTools++
				}
			case "message":
				if *it.Interrupted {
					interrupted++
				}
				if m := it.Metrics; m != nil && h.Transport != "text" {
					if m.StoppedSpeakingAt <= m.StartedSpeakingAt {
						t.Fatalf("%s: speaks from %f to %f", c.SessionID, m.StartedSpeakingAt, m.StoppedSpeakingAt)
					}
					if m.E2ELatency != 0 && m.E2ELatency < m.TTSNodeTTFB+m.LLMNodeTTFT {
						t.Fatalf("%s: e2e %f is less than ttft %f and ttfb %f", c.SessionID, m.E2ELatency, m.LLMNodeTTFT, m.TTSNodeTTFB)
					}
					if m.E2ELatency > 4 {
						slow++
					}
				}
			}
		}
		if h.Transport == "text" {
			text++
			if bytes.Contains(c.Body, []byte("speaking_at")) || bytes.Contains(c.Body, []byte("tts_")) {
				t.Fatalf("%s is a text session with voice metrics", c.SessionID)
			}
		}
		if bytes.Contains(c.Body, []byte("مرحب")) {
			rtl++
		}
		if bytes.Contains(c.Body, []byte("👋")) {
			emoji++
		}
		if slices.Contains(r.Tags, "lk.fail") {
			fails++
		}
		verdicts += strings.Count(strings.Join(r.Tags, " "), "lk.judge.")
	}
	if n := len(seen); n < 290 || n > 310 {
		t.Errorf("a day of 300 calls has %d", n)
	}
	for what, n := range map[string]int{"interrupted": interrupted, "failed tools": failedTools, "slow replies": slow, "text sessions": text, "right-to-left": rtl, "emoji": emoji, "failed calls": fails, "verdicts": verdicts} {
		if n < 5 {
			t.Errorf("%s: only %d in the day", what, n)
		}
	}
}

func TestScheduleStaysInTheWindowAndAgreesBetweenRuns(t *testing.T) {
	first := schedule(1, testNow, 2, 200)
	later := schedule(1, testNow.Add(3*time.Hour), 2, 200)
	ended := map[string]time.Time{}
	key := func(s slot) string { return s.ended.Format("20060102") + string(rune(s.index)) }
	for _, s := range first {
		if s.ended.After(testNow) || s.ended.Before(testNow.Add(-48*time.Hour)) {
			t.Fatalf("%v is outside the two days before %v", s.ended, testNow)
		}
		ended[key(s)] = s.ended
	}
	common := 0
	for _, s := range later {
		if at, ok := ended[key(s)]; ok {
			common++
			if !at.Equal(s.ended) {
				t.Fatalf("call %d moved from %v to %v", s.index, at, s.ended)
			}
		}
	}
	if common < 350 {
		t.Errorf("only %d of %d calls are the same three hours later", common, len(first))
	}
	if !slices.IsSortedFunc(first, func(a, b slot) int { return a.ended.Compare(b.ended) }) {
		t.Error("the schedule is not in order of time")
	}
}

func TestIncidentSlowsOneAgent(t *testing.T) {
	g := NewGenerator(1)
	mean := func(at time.Time) float64 {
		var sum, n float64
		for i := range 400 {
			c := g.talk(i, at)
			for _, it := range c.items {
				if c.agentID == incidentAgent && it.Metrics != nil && it.Metrics.LLMNodeTTFT > 0 {
					sum, n = sum+it.Metrics.LLMNodeTTFT, n+1
				}
			}
		}
		return sum / n
	}
	day := testNow.Truncate(24 * time.Hour)
	before, during := mean(day.Add(12*time.Hour)), mean(day.Add(14*time.Hour))
	if during < 3*before {
		t.Errorf("mean TTFT %.2f s during the incident, %.2f s before", during, before)
	}
}

func TestRecordedCallKeepsItsContent(t *testing.T) {
	start := testNow.Add(-3 * time.Minute)
	c, audio := DemoCall(start)
	if !bytes.HasPrefix(audio, []byte("OggS")) {
		t.Fatal("the recording is not Ogg")
	}
	var got, want reportBody
	strictJSON(t, c.Body, &got)
	strictJSON(t, []byte(demoBody), &want)
	if len(got.ChatHistory.Items) != 16 || len(got.ChatHistory.Items) != len(want.ChatHistory.Items) {
		t.Fatalf("%d items", len(got.ChatHistory.Items))
	}
	offset := float64(start.Unix() - demoStart)
	for i := range want.ChatHistory.Items {
		w, g := want.ChatHistory.Items[i], got.ChatHistory.Items[i]
		if d := g.CreatedAt - w.CreatedAt - offset; d > 1e-6 || d < -1e-6 {
			t.Fatalf("item %d moved by %f s too much", i, d)
		}
		if (g.Metrics == nil) != (w.Metrics == nil) || g.Metrics != nil && g.Metrics.E2ELatency != w.Metrics.E2ELatency || !reflect.DeepEqual(g.Content, w.Content) {
			t.Fatalf("item %d changed: %+v", i, g)
		}
	}
	if bytes.Contains(c.Body, []byte("17952384")) {
		t.Error("a time was not moved")
	}
	var h header
	if err := json.Unmarshal(c.Header, &h); err != nil || h.SessionID != demoSessionID || h.StartTime != float64(start.Unix()) {
		t.Fatalf("header %s: %v", c.Header, err)
	}
	if d := h.EndedAt - h.StartTime; d < 48.07 || d > 48.08 {
		t.Errorf("lasts %f s", d)
	}
	if other := recordedCall("demo-recorded-1", start); bytes.Contains(other.Body, []byte(demoSessionID)) || bytes.Contains(other.Header, []byte(demoSessionID)) {
		t.Error("a copy still names the original")
	}
}

func TestMultipartAndProtobufHeader(t *testing.T) {
	c := NewGenerator(1).Call(5, testNow)
	ctype, body := c.MultipartProto([]byte("OggS..."))
	parts := readParts(t, ctype, body)
	if !bytes.Equal(parts["header"], c.HeaderProto) || !bytes.Equal(parts["chat_history"], c.Body) || string(parts["audio"]) != "OggS..." {
		t.Fatalf("parts %v", parts)
	}
	ctype, body = c.Multipart(nil)
	if parts = readParts(t, ctype, body); len(parts) != 2 || !bytes.Equal(parts["header"], c.Header) {
		t.Fatalf("parts %v", parts)
	}
	fields := map[protowire.Number]int{}
	for b := c.HeaderProto; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		v := protowire.ConsumeFieldValue(num, typ, b[n:])
		if v < 0 {
			t.Fatal(protowire.ParseError(v))
		}
		if num == 1 {
			if s, _ := protowire.ConsumeString(b[n:]); s != c.SessionID {
				t.Errorf("room_id %q", s)
			}
		}
		fields[num]++
		b = b[n+v:]
	}
	if want := (map[protowire.Number]int{1: 1, 4: 1, 5: 2, 6: 1, 8: 1}); !reflect.DeepEqual(fields, want) {
		t.Errorf("fields %v, want %v", fields, want)
	}
}

func TestBenchCallShape(t *testing.T) {
	ids, texts, total := map[string]bool{}, map[string]bool{}, 0
	const calls = 50
	for i := range calls {
		c := BenchCall(i)
		var r reportBody
		var h header
		strictJSON(t, c.Body, &r)
		strictJSON(t, c.Header, &h)
		total += len(c.Body)
		if ids[c.SessionID] {
			t.Fatal("repeated id")
		}
		ids[c.SessionID] = true
		agent, words, messages := 0, 0, 0
		for k, it := range r.ChatHistory.Items {
			if it.Role == "assistant" {
				agent++
			}
			if it.Type == "message" {
				messages++
				words += len(strings.Fields(it.Content[0]))
				texts[it.Content[0]] = true
			}
			if !reflect.DeepEqual(*r.Events[k].Item, it) {
				t.Fatal("the event does not repeat its item")
			}
		}
		if agent != benchTurns {
			t.Fatalf("%d agent turns", agent)
		}
		if mean := words / messages; mean < 20 || mean > 40 {
			t.Fatalf("%d words a turn", mean)
		}
		if fromEpoch(h.EndedAt) != c.Ended || h.EndedAt <= h.StartTime {
			t.Fatalf("ended %v, header %f", c.Ended, h.EndedAt)
		}
	}
	if mean := total / calls; mean < 33_000 || mean > 37_000 {
		t.Errorf("bodies of %d bytes on average, want about 35 KB", mean)
	}
	if len(texts) != calls*2*benchTurns {
		t.Errorf("%d different texts in %d messages", len(texts), calls*2*benchTurns)
	}
}

func BenchmarkBenchCall(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		b.SetBytes(int64(len(BenchCall(i).Body)))
	}
}

func readParts(t *testing.T, contentType string, body []byte) map[string][]byte {
	t.Helper()
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[p.FormName()], err = io.ReadAll(p); err != nil {
			t.Fatal(err)
		}
	}
}

// strictJSON decodes b and fails on a key that v does not have.
func strictJSON(t *testing.T, b []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %.200s", err, b)
	}
}

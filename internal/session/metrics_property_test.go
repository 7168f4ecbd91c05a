package session

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// randomItems makes a chat history that no client would send on purpose: any order, ids that repeat, times that run
// backwards, measurements of every bad kind.
func randomItems(rng *rand.Rand) []Item {
	seconds := func() *float64 {
		switch rng.IntN(12) {
		case 0, 1, 2, 3:
			return nil
		case 4:
			return ptr([]float64{-1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, math.Copysign(0, -1), 86400}[rng.IntN(7)])
		}
		return ptr(rng.Float64() * 5)
	}
	count := func() *int64 {
		switch rng.IntN(6) {
		case 0:
			return ptr(int64(rng.IntN(3)) - 2)
		case 1:
			return ptr(int64(math.MaxInt64))
		case 2, 3:
			return ptr(int64(rng.IntN(500)))
		}
		return nil
	}
	at := func() time.Time {
		switch rng.IntN(8) {
		case 0, 1:
			return time.Time{}
		case 2:
			return time.Unix(rng.Int64()-rng.Int64(), 0)
		}
		return sec(rng.Float64() * 100)
	}
	word := func(words ...string) string { return words[rng.IntN(len(words))] }
	model := func() Model { return Model{word("", "a", "b"), word("", "x", "y")} }
	items := make([]Item, rng.IntN(30))
	for i := range items {
		items[i] = Item{
			ID:   word("", "1", "2", fmt.Sprint(i)),
			Type: word(ItemMessage, ItemMessage, ItemMessage, ItemFunctionCall, ItemFunctionOut, ItemHandoff, "new"),
			Role: word(RoleUser, RoleUser, RoleAssistant, RoleAssistant, "system", "developer"),
			Text: word("", "hello", "hello there, friend", "日本"), Interrupted: rng.IntN(4) == 0, TranscriptConfidence: seconds(),
			CallID: word("", "c1", "c2", "c3"), Name: word("f", "g"), Arguments: word("", "{}", "[", `{"a":"b"}`), Output: word("", "ok"), IsError: rng.IntN(3) == 0,
			CreatedAt: at(),
			Metrics: ItemMetrics{
				StartedSpeakingAt: at(), StoppedSpeakingAt: at(),
				TranscriptionDelay: seconds(), EndOfTurnDelay: seconds(), OnUserTurnCompletedDelay: seconds(),
				LLMNodeTTFT: seconds(), TTSNodeTTFB: seconds(), E2ELatency: seconds(),
				LLMPromptTokens: count(), LLMCompletionTokens: count(), LLMTotalTokens: count(), TTSCharacters: count(),
				LLM: model(), TTS: model(), STT: model(),
			},
		}
	}
	return items
}

func ptr[T any](v T) *T { return &v }

func TestMetricsHoldWhateverIsSent(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		in := Input{
			Items: randomItems(rng), Transport: []string{"", "sip", "text"}[rng.IntN(3)], StartedAt: sec(rng.Float64() * 50),
			Usage: []Usage{{Type: "llm_usage", InputTokens: int64(rng.IntN(9)) - 4, OutputTokens: math.MaxInt64}, {Type: "tts_usage", CharactersCount: -1}},
		}
		if rng.IntN(2) == 0 {
			in.DurationMS = ptr(int64(rng.IntN(100000)) - 1000)
		}
		before := fmt.Sprint(in)
		m := Compute(in)
		if problem := check(in, m); problem != "" {
			t.Fatalf("seed %d: %s", seed, problem)
		}
		if fmt.Sprint(in) != before {
			t.Fatalf("seed %d: Compute changed its input", seed)
		}
	}
}

// check names the first broken invariant.
func check(in Input, m Metrics) string {
	doc, err := json.Marshal(m)
	if err != nil {
		return "not JSON: " + err.Error()
	}
	var tree any
	if err := json.Unmarshal(doc, &tree); err != nil {
		return err.Error()
	}
	if path := negative(tree, ""); path != "" {
		return path + " is negative"
	}
	items := distinct(in.Items)
	count := func(is func(*Item) bool) (n int) {
		for i := range items {
			if is(&items[i]) {
				n++
			}
		}
		return n
	}

	// Turns: numbered from 1, only the last without a reply, none empty.
	var userText, calls []string
	replies, interrupted := 0, 0
	for i, u := range m.Turns {
		if u.TurnNumber != i+1 {
			return fmt.Sprintf("turn %d has number %d", i+1, u.TurnNumber)
		}
		if u.AgentText != nil {
			replies++
		} else if i != len(m.Turns)-1 || u.UserText == nil && len(u.ToolCalls) == 0 || u.AgentFirst || u.Interrupted {
			return fmt.Sprintf("turn %d has no reply and should not be", i+1)
		}
		if u.Interrupted {
			interrupted++
		}
		if u.UserText != nil && *u.UserText != "" {
			userText = append(userText, *u.UserText)
		}
		if u.ToolCalls == nil {
			return fmt.Sprintf("the tool calls of turn %d are null", i+1)
		}
		for _, c := range u.ToolCalls {
			if c.TurnNumber != i+1 {
				return fmt.Sprintf("a tool call of turn %d says %d", i+1, c.TurnNumber)
			}
			calls = append(calls, c.CallID+c.Name)
		}
		if u.TTFAMS != nil && (u.UserStoppedSpeakingAt == nil || u.AgentStartedSpeakingAt == nil) {
			return fmt.Sprintf("turn %d has a ttfa of nothing", i+1)
		}
	}
	s := m.Summary
	if replies != count(isAssistant) || s.TotalTurns != len(m.Turns) || s.Interruptions != interrupted {
		return fmt.Sprintf("%d replies of %d assistant messages, %d turns, %d interruptions", replies, count(isAssistant), s.TotalTurns, s.Interruptions)
	}

	// Nothing the user said is lost, and every tool call appears once, in order, in its turn and in the list.
	var said []string
	for i := range items {
		if isUser(&items[i]) && items[i].Text != "" {
			said = append(said, items[i].Text)
		}
	}
	if strings.Join(said, "\n") != strings.Join(userText, "\n") {
		return "user texts differ"
	}
	var listed []string
	answered := 0
	for _, c := range m.ToolCalls {
		listed = append(listed, c.CallID+c.Name)
		if c.Output != nil {
			answered++
		}
	}
	isCall := func(it *Item) bool { return it.Type == ItemFunctionCall }
	if !slices.Equal(listed, calls) || len(listed) != count(isCall) || s.TotalToolCalls != len(listed) {
		return fmt.Sprintf("tool calls %v in turns, %v in the list, %d items", calls, listed, count(isCall))
	}
	if outputs := count(func(it *Item) bool { return it.Type == ItemFunctionOut }); answered > outputs {
		return fmt.Sprintf("%d calls answered by %d outputs", answered, outputs)
	}

	// Distributions count their turns and are ordered.
	for name, of := range map[string]func(Turn) *int64{
		"perceived": func(u Turn) *int64 { return u.UserPerceivedMS }, "llm_ttft": func(u Turn) *int64 { return u.LLMTTFTMS },
		"tts_ttfb": func(u Turn) *int64 { return u.TTSTTFBMS }, "stt": func(u Turn) *int64 { return u.STTDelayMS },
		"turn_decision": func(u Turn) *int64 { return u.TurnDecisionMS },
	} {
		n, d := 0, s.Latency[name]
		for _, u := range m.Turns {
			if of(u) != nil {
				n++
			}
		}
		if _, there := s.Latency[name]; there != (n > 0) || d.Count != n || d.P50 > d.P90 || d.P90 > d.P95 {
			return fmt.Sprintf("%s %+v of %d turns", name, d, n)
		}
	}
	if v := s.Voice; v != nil {
		for what, r := range map[string]*float64{"talk_ratio": v.TalkRatio, "silence_pct/100": v.SilencePct} {
			if r != nil && (*r > 100 || what == "talk_ratio" && *r > 1) {
				return fmt.Sprintf("%s %v", what, *r)
			}
		}
		if len(v.DeadAir.Events) != v.DeadAir.Count {
			return "dead air events"
		}
	}

	// The short ways to the same numbers.
	c, f := Tally(in.Items, in.Transport)
	if !reflect.DeepEqual(f, Facts(in.Items)) {
		return "Tally and Facts differ"
	}
	if c.Turns != replies || c.Interruptions != interrupted || c.ToolCalls != len(listed) || !reflect.DeepEqual(c.P95UserPerceivedMS, s.P95UserPerceivedMS) {
		return fmt.Sprintf("Tally %+v, Compute %+v", c, s)
	}
	if len(f.Perceived) != s.Latency["perceived"].Count || len(f.TTFT) != s.Latency["llm_ttft"].Count || len(f.TTFB) != s.Latency["tts_ttfb"].Count || len(f.STT) != s.Latency["stt"].Count {
		return fmt.Sprintf("Facts %+v, latency %+v", f, s.Latency)
	}
	return ""
}

// negative finds a negative number in a JSON tree, "-0" included.
func negative(v any, path string) string {
	switch v := v.(type) {
	case float64:
		if v < 0 || math.Signbit(v) {
			return path
		}
	case map[string]any:
		for k, e := range v {
			if p := negative(e, path+"."+k); p != "" {
				return p
			}
		}
	case []any:
		for i, e := range v {
			if p := negative(e, fmt.Sprintf("%s[%d]", path, i)); p != "" {
				return p
			}
		}
	}
	return ""
}

func TestFactsKeepFractionsOfMilliseconds(t *testing.T) {
	cut := agent("x", ItemMetrics{LLMNodeTTFT: ptr(0.8004), TTSNodeTTFB: ptr(0.1)})
	cut.Interrupted = true
	items := []Item{
		agent("hi", ItemMetrics{TTSNodeTTFB: ptr(math.Copysign(0, -1))}),
		user("a", ItemMetrics{TranscriptionDelay: ptr(0.1)}), user("b", ItemMetrics{TranscriptionDelay: ptr(0.2345678)}), user("c", ItemMetrics{}),
		agent("x", ItemMetrics{E2ELatency: ptr(1.2), LLMNodeTTFT: ptr(0.4), TTSNodeTTFB: ptr(-1.0)}),
		cut,
		user("bye", ItemMetrics{TranscriptionDelay: ptr(0.3)}),
	}
	b, err := json.Marshal(Facts(items))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"AssistantTurns":3,"InterruptedTurns":1,"Perceived":[1200,800.4],"TTFT":[400,800.4],"TTFB":[0,100],"STT":[234.568,300]}`; string(b) != want {
		t.Errorf("\n got %s\nwant %s", b, want)
	}
}

// manyTurns is a call of n turns with everything measured and a tool call in every fourth turn.
func manyTurns(n int) Input {
	var items []Item
	for i := range n {
		at := float64(i) * 8
		u := user("I would like to know where my order is, please.", said(at, at+2))
		u.ID, u.CreatedAt = fmt.Sprintf("item_%du", i), sec(at)
		u.Metrics.TranscriptionDelay, u.Metrics.EndOfTurnDelay, u.Metrics.OnUserTurnCompletedDelay = ptr(0.2), ptr(0.5), ptr(0.001)
		u.Metrics.STT = Model{"Deepgram", "nova-3"}
		items = append(items, u)
		if i%4 == 1 {
			id := fmt.Sprintf("call_%d", i)
			c, o := call(id, "lookup_order", `{"order_id": "44712"}`), output(id, "delayed")
			c.ID, o.ID = "item_"+id, "item_o"+id
			items = append(items, c, o)
		}
		a := agent("I can see that your order was delayed at the carrier and arrives on Tuesday.", said(at+3, at+6))
		a.ID, a.CreatedAt = fmt.Sprintf("item_%da", i), sec(at+3)
		a.Metrics.E2ELatency, a.Metrics.LLMNodeTTFT, a.Metrics.TTSNodeTTFB = ptr(1.1+float64(i%7)/10), ptr(0.4), ptr(0.2)
		a.Metrics.LLM, a.Metrics.TTS = Model{"openai", "gpt-4.1-mini"}, Model{"Cartesia", "sonic-3"}
		items = append(items, a)
	}
	return Input{Items: items, Transport: "sip", StartedAt: start, DurationMS: ptr(int64(n * 8000))}
}

func BenchmarkCompute(b *testing.B) {
	for _, n := range []int{12, 2500} {
		in := manyTurns(n)
		b.Run(fmt.Sprintf("turns=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Compute(in)
			}
		})
	}
}

func BenchmarkTally(b *testing.B) {
	in := manyTurns(12)
	b.ReportAllocs()
	for b.Loop() {
		Tally(in.Items, in.Transport)
	}
}

// BenchmarkLongSessions has the cases that would be quadratic if anything were: 20,000 items take about four times as long
// as 5,000.
func BenchmarkLongSessions(b *testing.B) {
	worst := map[string]func(i int) Item{
		"user messages in a row": func(i int) Item { return user("some words of the user", said(float64(i), float64(i)+1)) },
		"calls of one id":        func(i int) Item { return call("0", "f", "{}") },
		"outputs without a call": func(i int) Item { return output("0", "x") },
		"calls, then outputs": func(i int) Item {
			if i%2 == 0 {
				return call("0", "f", "{}")
			}
			return output("0", "x")
		},
		"one id": func(i int) Item { return Item{ID: "x", Type: ItemMessage, Role: RoleUser, Text: fmt.Sprint(i)} },
		"a new model each": func(i int) Item {
			return agent("x", ItemMetrics{LLM: Model{"p", fmt.Sprint(i)}, TTS: Model{"p", fmt.Sprint(i)}})
		},
	}
	for name, item := range worst {
		for _, n := range []int{5000, 20000} {
			items := make([]Item, n)
			for i := range items {
				items[i] = item(i)
			}
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					Compute(Input{Items: items, Transport: "sip"})
				}
			})
		}
	}
}

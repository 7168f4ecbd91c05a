package session

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"sidetone/internal/stamp"
)

var start = time.Date(2026, 11, 21, 5, 20, 0, 0, time.UTC)

// sec is so many seconds into the call.
func sec(s float64) time.Time { return start.Add(time.Duration(math.Round(s * float64(time.Second)))) }

func user(text string, m ItemMetrics) Item {
	return Item{Type: ItemMessage, Role: RoleUser, Text: text, Metrics: m}
}

func agent(text string, m ItemMetrics) Item {
	return Item{Type: ItemMessage, Role: RoleAssistant, Text: text, Metrics: m}
}

func call(id, name, args string) Item {
	return Item{Type: ItemFunctionCall, CallID: id, Name: name, Arguments: args}
}

func output(id, text string) Item { return Item{Type: ItemFunctionOut, CallID: id, Output: text} }

func failed(id, text string) Item {
	return Item{Type: ItemFunctionOut, CallID: id, Output: text, IsError: true}
}

// said is speech from one second of the call to another.
func said(from, to float64) ItemMetrics {
	return ItemMetrics{StartedSpeakingAt: sec(from), StoppedSpeakingAt: sec(to)}
}

// shape writes turns and their calls in one line each: "1 user > agent [name=output name!error name?]".
func shape(m Metrics) []string {
	var lines []string
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return fmt.Sprintf("%q", *s)
	}
	for _, t := range m.Turns {
		line := fmt.Sprintf("%d %s > %s", t.TurnNumber, text(t.UserText), text(t.AgentText))
		for _, c := range t.ToolCalls {
			switch {
			case c.Output == nil:
				line += fmt.Sprintf(" %s?", c.Name)
			case c.IsError:
				line += fmt.Sprintf(" %s!%s", c.Name, *c.Output)
			default:
				line += fmt.Sprintf(" %s=%s", c.Name, *c.Output)
			}
			if c.TurnNumber != t.TurnNumber {
				line += fmt.Sprintf(" in turn %d", c.TurnNumber)
			}
		}
		if t.AgentFirst {
			line += " first"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestTurns(t *testing.T) {
	none := ItemMetrics{}
	u := func(s string) Item { return user(s, none) }
	a := func(s string) Item { return agent(s, none) }
	twice := Item{ID: "x", Type: ItemMessage, Role: RoleUser, Text: "hello", CreatedAt: start}
	for _, c := range []struct {
		name  string
		items []Item
		want  []string
	}{
		{"nothing", nil, nil},
		{"a greeting and a reply", []Item{a("Hi"), u("Hello"), a("Yes?")}, []string{`1 - > "Hi" first`, `2 "Hello" > "Yes?"`}},
		{"several user messages", []Item{u("one"), u(""), u("two"), a("ok")}, []string{`1 "one\ntwo" > "ok"`}},
		{"a user message without text", []Item{u(""), a("ok")}, []string{`1 "" > "ok"`}},
		{"several agent messages", []Item{u("go"), a("wait"), a("done")}, []string{`1 "go" > "wait"`, `2 - > "done"`}},
		{"two greetings", []Item{a("Hi"), a("I am here"), u("ok")}, []string{`1 - > "Hi" first`, `2 - > "I am here" first`, `3 "ok" > -`}},
		{"an empty reply", []Item{u("go"), a("")}, []string{`1 "go" > ""`}},
		{"tool calls between", []Item{u("go"), call("1", "f", "{}"), output("1", "a"), call("2", "g", ""), failed("2", "b"), a("done")},
			[]string{`1 "go" > "done" f=a g!b`}},
		{"parallel calls, outputs in the other order", []Item{call("1", "f", ""), call("2", "g", ""), output("2", "b"), output("1", "a"), a("x")},
			[]string{`1 - > "x" f=a g=b first`}},
		{"output before its call", []Item{output("1", "a"), call("1", "f", ""), a("x")}, []string{`1 - > "x" f=a first`}},
		{"output after the reply", []Item{call("1", "f", ""), a("x"), output("1", "late"), a("y")}, []string{`1 - > "x" f=late first`, `2 - > "y" first`}},
		{"output without a call", []Item{output("9", "a"), a("x")}, []string{`1 - > "x" first`}},
		{"call without an output", []Item{call("1", "f", ""), a("x")}, []string{`1 - > "x" f? first`}},
		{"a later output replaces", []Item{call("1", "f", ""), output("1", "running"), failed("1", "broke"), a("x")}, []string{`1 - > "x" f!broke first`}},
		{"call ids that come back", []Item{call("0", "f", ""), output("0", "a"), a("x"), call("0", "g", ""), output("0", "b"), a("y")},
			[]string{`1 - > "x" f=a first`, `2 - > "y" g=b first`}},
		{"parallel calls of one id", []Item{call("0", "f", ""), call("0", "g", ""), output("0", "a"), output("0", "b"), a("x")},
			[]string{`1 - > "x" f=a g=b first`}},
		{"calls without ids join by name", []Item{call("", "f", ""), call("", "g", ""),
			{Type: ItemFunctionOut, Name: "g", Output: "b"}, {Type: ItemFunctionOut, Name: "f", Output: "a"}, a("x")}, []string{`1 - > "x" f=a g=b first`}},
		{"user text left over", []Item{a("Hi"), u("Bye")}, []string{`1 - > "Hi" first`, `2 "Bye" > -`}},
		{"tool calls left over", []Item{u("Bye"), a("Bye"), call("1", "end_call", ""), output("1", "ok")}, []string{`1 "Bye" > "Bye"`, `2 - > - end_call=ok`}},
		{"only an output left over", []Item{a("Hi"), output("1", "x")}, []string{`1 - > "Hi" first`}},
		{"other items are no part of turns", []Item{
			{Type: ItemHandoff, ID: "h"}, {Type: ItemMessage, Role: "system", Text: "Be brief."}, u("Hello"), {Type: ItemMessage, Role: "developer", Text: "x"},
			{Type: ItemConfigUpdate}, {Type: "from_the_future", Role: RoleAssistant, Text: "?"}, a("Hi"), {Type: ItemHandoff}},
			[]string{`1 "Hello" > "Hi"`}},
		{"repeated items count once", []Item{twice, twice, a("Hi"), twice, a("Hi")}, []string{`1 "hello" > "Hi"`, `2 - > "Hi"`}},
		{"one id for all items", []Item{{ID: "x", Type: ItemMessage, Role: RoleUser, Text: "a"}, {ID: "x", Type: ItemMessage, Role: RoleAssistant, Text: "a"},
			{ID: "x", Type: ItemMessage, Role: RoleUser, Text: "b"}}, []string{`1 "a" > "a"`, `2 "b" > -`}},
		{"the order given is kept", []Item{{Type: ItemMessage, Role: RoleAssistant, Text: "late", CreatedAt: sec(9)},
			{Type: ItemMessage, Role: RoleUser, Text: "early", CreatedAt: sec(1)}}, []string{`1 - > "late" first`, `2 "early" > -`}},
	} {
		m := Compute(Input{Items: c.items})
		if got := shape(m); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.name, strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
		}
	}
}

func TestTurnIDs(t *testing.T) {
	items := []Item{user("go", ItemMetrics{}), call("1", "f", ""), agent("ok", ItemMetrics{}), call("2", "g", ""), user("more", ItemMetrics{})}
	for i := range items {
		items[i].ID = fmt.Sprintf("item_%d", i)
	}
	m := Compute(Input{Items: items})
	if m.Turns[0].TurnID != "item_2" || m.Turns[1].TurnID != "item_3" {
		t.Errorf("turn ids %q, %q: want the assistant message's, then that of the first item left over", m.Turns[0].TurnID, m.Turns[1].TurnID)
	}
}

func TestEmptySessionHasListsNotNulls(t *testing.T) {
	b, err := json.Marshal(Compute(Input{}))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"turns":[],"tool_calls":[],"summary":{"total_turns":0,"total_llm_tokens":0,"total_llm_prompt_tokens":0,"total_llm_completion_tokens":0,` +
		`"total_tts_characters":0,"total_tool_calls":0,"interruptions":0,"latency":{},"providers":{"stt":[],"llm":[],"tts":[]}}}`; string(b) != want {
		t.Errorf("\n got %s\nwant %s", b, want)
	}
}

func TestArguments(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": 1}`:         `{"a": 1}`,
		" {\"a\":1}\n ":    `{"a":1}`,
		``:                 `{}`,
		`  `:               `{}`,
		`null`:             `{}`,
		`[1]`:              `{"_raw":"[1]"}`,
		`"x"`:              `{"_raw":"\"x\""}`,
		`{"a":`:            `{"_raw":"{\"a\":"}`,
		`{} {}`:            `{"_raw":"{} {}"}`,
		"{\"a\":\"\xff\"}": "{\"_raw\":\"{\\\"a\\\":\\\"\\ufffd\\\"}\"}",
		"order 7":          `{"_raw":"order 7"}`,
	} {
		got := argumentsObject(in)
		var object map[string]any
		if err := json.Unmarshal(got, &object); err != nil || object == nil {
			t.Errorf("%q: %s is no object", in, got)
		}
		if string(got) != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestMeasurements(t *testing.T) {
	nan, inf, minus, week := math.NaN(), math.Inf(1), -1.0, 7*86400.0
	f := func(v float64) *float64 { return &v }
	m := Compute(Input{Transport: "sip", Items: []Item{
		user("a", ItemMetrics{TranscriptionDelay: f(0.2), EndOfTurnDelay: f(0.5), OnUserTurnCompletedDelay: f(0.0006)}),
		user("b", ItemMetrics{TranscriptionDelay: f(0.3004), EndOfTurnDelay: &minus, OnUserTurnCompletedDelay: &nan}),
		agent("x", ItemMetrics{E2ELatency: f(1.2), LLMNodeTTFT: f(0.4), TTSNodeTTFB: f(0.1)}),
		agent("y", ItemMetrics{E2ELatency: &minus, LLMNodeTTFT: f(0.8004), TTSNodeTTFB: &inf}),
		agent("z", ItemMetrics{E2ELatency: &week, LLMNodeTTFT: &nan, TTSNodeTTFB: f(0)}),
	}})
	for i, want := range []string{
		`perceived 1200 stt 300 ttft 400 ttfb 100 decision 500 hook 1`,
		`perceived 800 stt - ttft 800 ttfb - decision - hook -`,
		`perceived - stt - ttft - ttfb 0 decision - hook -`,
	} {
		u := m.Turns[i]
		got := fmt.Sprintf("perceived %s stt %s ttft %s ttfb %s decision %s hook %s",
			num(u.UserPerceivedMS), num(u.STTDelayMS), num(u.LLMTTFTMS), num(u.TTSTTFBMS), num(u.TurnDecisionMS), num(u.HookDelayMS))
		if got != want {
			t.Errorf("turn %d: got %s, want %s", i+1, got, want)
		}
	}
	if got := m.Summary.Latency["perceived"]; got != (Distribution{Avg: 1000, P50: 800, P90: 1200, P95: 1200, Count: 2}) {
		t.Errorf("perceived %+v", got)
	}
	if _, ok := m.Summary.Latency["turn_decision"]; !ok || len(m.Summary.Latency) != 5 {
		t.Errorf("stages %v", m.Summary.Latency)
	}
}

func num(p *int64) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}

func TestTranscriptConfidence(t *testing.T) {
	low, high, nan := 0.4, 0.9, math.NaN()
	items := []Item{user("a", ItemMetrics{}), user("b", ItemMetrics{}), user("c", ItemMetrics{}), agent("x", ItemMetrics{}), agent("y", ItemMetrics{})}
	items[0].TranscriptConfidence, items[1].TranscriptConfidence, items[2].TranscriptConfidence = &low, &high, &nan
	turns := Compute(Input{Items: items}).Turns
	if c := turns[0].UserTranscriptConfidence; c == nil || *c != 0.9 {
		t.Errorf("confidence %v, want that of the last message that has one", c)
	}
	if turns[1].UserTranscriptConfidence != nil {
		t.Error("confidence leaked into the next turn")
	}
}

func TestTokenCounts(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	usage := []Usage{
		{Type: "llm_usage", InputTokens: 1000, OutputTokens: 50}, {Type: "llm_usage", InputTokens: 10, OutputTokens: -7},
		{Type: "tts_usage", InputTokens: 77, OutputTokens: 77, CharactersCount: 512}, {Type: "stt_usage", InputTokens: 99},
	}
	for _, c := range []struct {
		name                      string
		items                     []Item
		prompt, completion, total int64
		turn                      string
	}{
		{"messages carry them: usage is not added", []Item{
			agent("x", ItemMetrics{LLMPromptTokens: n(100), LLMCompletionTokens: n(20), LLMTotalTokens: n(121)}), agent("y", ItemMetrics{LLMPromptTokens: n(5)})},
			105, 20, 126, "100 20 121"},
		{"the total is the sum where it is not given", []Item{agent("x", ItemMetrics{LLMPromptTokens: n(100), LLMCompletionTokens: n(20)})}, 100, 20, 120, "100 20 120"},
		{"only a total", []Item{agent("x", ItemMetrics{LLMTotalTokens: n(9)})}, 0, 0, 9, "- - 9"},
		{"none: usage of the LLM only", []Item{agent("x", ItemMetrics{})}, 1010, 50, 1060, "- - -"},
		{"negative ones are none", []Item{agent("x", ItemMetrics{LLMPromptTokens: n(-1), LLMTotalTokens: n(-5)})}, 1010, 50, 1060, "- - -"},
		{"sums do not wrap", []Item{agent("x", ItemMetrics{LLMPromptTokens: n(math.MaxInt64), LLMCompletionTokens: n(1)}), agent("y", ItemMetrics{LLMPromptTokens: n(3)})},
			math.MaxInt64, 1, math.MaxInt64, fmt.Sprint(int64(math.MaxInt64), 1, int64(math.MaxInt64))},
	} {
		m := Compute(Input{Items: c.items, Usage: usage})
		s := m.Summary
		if s.TotalLLMPromptTokens != c.prompt || s.TotalLLMCompletionTokens != c.completion || s.TotalLLMTokens != c.total {
			t.Errorf("%s: %d + %d = %d, want %d + %d = %d", c.name, s.TotalLLMPromptTokens, s.TotalLLMCompletionTokens, s.TotalLLMTokens, c.prompt, c.completion, c.total)
		}
		u := m.Turns[0]
		if got := num(u.LLMPromptTokens) + " " + num(u.LLMCompletionTokens) + " " + num(u.LLMTotalTokens); got != c.turn {
			t.Errorf("%s: turn 1 has %s, want %s", c.name, got, c.turn)
		}
	}
}

func TestTTSCharacters(t *testing.T) {
	n, f := int64(99), 0.1
	sonic := Model{Provider: "Cartesia", Name: "sonic-3"}
	spoke := said(1, 2)
	named := spoke
	named.TTS = sonic
	usage := []Usage{{Type: "tts_usage", CharactersCount: 512}, {Type: "llm_usage", CharactersCount: 9}}
	for _, c := range []struct {
		name, transport string
		m               ItemMetrics
		turn            string
		total           int64
	}{
		{"as the message says", "", ItemMetrics{TTSCharacters: &n, TTSNodeTTFB: &f}, "99", 99},
		{"the text's runes where TTS ran", "", ItemMetrics{TTSNodeTTFB: &f}, "5", 5},
		{"a text session: usage", "", ItemMetrics{LLMNodeTTFT: &f}, "-", 512},
		{"spoken by a named model on a voice transport", "sip", named, "5", 5},
		{"speech of no TTS", "sip", spoke, "-", 512},
		{"speaking times of a text session", "", named, "-", 512},
	} {
		m := Compute(Input{Items: []Item{agent("Größe", c.m)}, Usage: usage, Transport: c.transport})
		if got := num(m.Turns[0].TTSCharacters); got != c.turn || m.Summary.TotalTTSCharacters != c.total {
			t.Errorf("%s: %s in the turn, %d in total, want %s and %d", c.name, got, m.Summary.TotalTTSCharacters, c.turn, c.total)
		}
	}
}

func TestInterruptions(t *testing.T) {
	cut := agent("x", ItemMetrics{})
	cut.Interrupted = true
	barge := user("stop", ItemMetrics{})
	barge.Interrupted = true // a user message is never an interrupted agent turn
	s := Compute(Input{Items: []Item{agent("a", ItemMetrics{}), barge, cut, agent("b", ItemMetrics{}), user("left over", ItemMetrics{})}}).Summary
	if s.Interruptions != 1 || s.InterruptionRate == nil || *s.InterruptionRate != 0.3333 {
		t.Errorf("%d interruptions, rate %v, want 1 of 3 agent turns", s.Interruptions, s.InterruptionRate)
	}
}

func TestProviders(t *testing.T) {
	gpt, mini := Model{"openai", "gpt-5"}, Model{"openai", "gpt-5-mini"}
	items := []Item{agent("a", ItemMetrics{LLM: gpt}), agent("b", ItemMetrics{LLM: mini}), agent("c", ItemMetrics{LLM: gpt}),
		agent("d", ItemMetrics{LLM: Model{Name: "local"}}), agent("e", ItemMetrics{LLM: Model{Name: "local"}}), user("f", ItemMetrics{})}
	usage := []Usage{{Type: "llm_usage", Provider: "other", Model: "x"}, {Type: "tts_usage", Provider: "Cartesia", Model: "sonic-3"}, {Type: "tts_usage", Provider: "Cartesia"}, {Type: "stt_usage"}}
	got := Compute(Input{Items: items, Usage: usage}).Summary.Providers
	if want := []string{"openai/gpt-5", "openai/gpt-5-mini", "local"}; !slices.Equal(got.LLM, want) {
		t.Errorf("llm %v, want %v: those of messages, in order, usage not asked", got.LLM, want)
	}
	if want := []string{"Cartesia/sonic-3", "Cartesia"}; !slices.Equal(got.TTS, want) {
		t.Errorf("tts %v, want %v: those of usage", got.TTS, want)
	}
	if got.STT == nil || len(got.STT) > 0 {
		t.Errorf("stt %v, want an empty list", got.STT)
	}
}

func TestTimestamps(t *testing.T) {
	c := call("1", "f", "")
	c.CreatedAt = sec(3)
	m := Compute(Input{Items: []Item{c, call("2", "g", "")}})
	if at := m.ToolCalls[0].Timestamp; at == nil || *at != stamp.Of(sec(3)) {
		t.Errorf("timestamp %v", at)
	}
	if m.ToolCalls[1].Timestamp != nil {
		t.Error("an unknown time is not null")
	}
}

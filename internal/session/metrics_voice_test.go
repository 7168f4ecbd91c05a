package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

func ms(v int64) *int64 { return &v }

func TestSpeechOfATurn(t *testing.T) {
	f := 0.1
	half := said(1, 2)
	half.StoppedSpeakingAt = time.Time{}
	for _, c := range []struct {
		name  string
		items []Item
		want  []string // per turn: user speech, agent speech, ttfa, gap
	}{
		{"an exchange", []Item{agent("hi", said(1, 2)), user("a", said(2.5, 4)), agent("x", said(5, 6.25))}, []string{"- 1000 - -", "1500 1250 1000 500"}},
		{"several user messages: earliest start, latest stop, pauses are not speech", []Item{agent("hi", said(0, 1)), user("a", said(4, 5)), user("b", said(2, 3)), agent("x", said(7, 8))},
			[]string{"- 1000 - -", "2000 1000 2000 1000"}},
		{"overlapping user messages", []Item{user("a", said(1, 4)), user("b", said(2, 4)), agent("x", said(5, 6))}, []string{"3000 1000 1000 -"}},
		{"barge-in: gaps are not negative", []Item{agent("hi", said(1, 5)), user("a", said(4, 6)), agent("x", said(5.5, 7))}, []string{"- 4000 - -", "2000 1500 0 0"}},
		{"stopped before started", []Item{user("a", said(5, 4)), agent("x", said(7, 6))}, []string{"- - 3000 -"}},
		{"half a measurement", []Item{user("a", half), agent("x", half), user("b", said(3, 4))}, []string{"- - - -", "1000 - - -"}},
		{"no user before the second reply", []Item{user("a", said(1, 2)), agent("x", said(3, 4)), agent("y", said(9, 10))}, []string{"1000 1000 1000 -", "- 1000 - -"}},
		{"a partial turn has a gap", []Item{agent("x", said(1, 2)), user("bye", said(3, 4))}, []string{"- 1000 - -", "1000 - - 1000"}},
		{"a lifetime is no measurement", []Item{user("a", ItemMetrics{StartedSpeakingAt: time.Unix(1, 0), StoppedSpeakingAt: sec(1)}), agent("x", said(2, 3))}, []string{"- 1000 1000 -"}},
		{"times beyond all calendars", []Item{user("a", ItemMetrics{StartedSpeakingAt: time.Unix(-1<<60, 0), StoppedSpeakingAt: time.Unix(1<<60, 0)}), agent("x", said(2, 3))}, []string{"- 1000 0 -"}},
	} {
		for _, in := range []Input{{Items: c.items, Transport: "sip"}, {Items: append(slices.Clone(c.items), Item{Type: ItemMessage, Role: RoleAssistant, Metrics: ItemMetrics{TTSNodeTTFB: &f}})}} {
			var got []string
			for _, u := range Compute(in).Turns[:len(c.want)] {
				got = append(got, fmt.Sprintf("%s %s %s %s", num(u.UserSpeechMS), num(u.AgentSpeechMS), num(u.TTFAMS), num(u.InterTurnGapMS)))
			}
			// Where a reply follows, it ends the partial turn.
			if !slices.Equal(got, c.want) {
				t.Errorf("%s (transport %q): got %q, want %q", c.name, in.Transport, got, c.want)
			}
		}
	}
	turn := Compute(Input{Transport: "sip", Items: []Item{user("a", said(4, 5)), user("b", said(2, 3)), agent("x", said(7, 8))}}).Turns[0]
	if !turn.UserStartedSpeakingAt.Equal(sec(2)) || !turn.UserStoppedSpeakingAt.Equal(sec(5)) || !turn.AgentStartedSpeakingAt.Equal(sec(7)) || !turn.AgentStoppedSpeakingAt.Equal(sec(8)) {
		t.Errorf("user %v to %v, agent %v to %v", turn.UserStartedSpeakingAt, turn.UserStoppedSpeakingAt, turn.AgentStartedSpeakingAt, turn.AgentStoppedSpeakingAt)
	}
}

func TestVoice(t *testing.T) {
	in := Input{Transport: "webrtc", StartedAt: start, DurationMS: ms(40000), Items: []Item{
		agent("one two three four", said(2, 4)),
		user("five six", said(8, 9)),         // 4 s after the agent
		agent("seven", said(12.5, 13.5)),     // 3.5 s after the user
		user("eight nine", said(16.5, 17.5)), // 3 s: not above the threshold
		agent("ten", said(17, 21)),           // overlaps the user by half a second
		agent("eleven twelve", said(30, 31)), // no user between: no gap of either kind
		agent("never timed", ItemMetrics{}),  // its words have no time to be spread over
		user("lost", ItemMetrics{StartedSpeakingAt: sec(35)}),
	}}
	got, err := json.Marshal(Compute(in).Summary.Voice)
	if err != nil {
		t.Fatal(err)
	}
	// Speech covers 2-4, 8-9, 12.5-13.5, 16.5-21, 30-31: 9.5 s of 40 s.
	want := `{"ttfa":{"avg":1750,"p50":0,"p90":3500,"p95":3500,"count":2},"greeting_ttfa_ms":2000,"user_speech_ms":2000,"agent_speech_ms":8000,` +
		`"talk_ratio":0.8,"longest_monologue_ms":4000,"longest_monologue_turn":3,"user_wpm":120,"agent_wpm":60,` +
		`"dead_air":{"threshold_ms":3000,"count":2,"total_ms":7500,"max_ms":4000,"events":[` +
		`{"turn_number":2,"kind":"inter_turn","gap_ms":4000},{"turn_number":2,"kind":"response","gap_ms":3500}]},"silence_pct":76.25}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestVoiceLeavesOutWhatWasNotMeasured(t *testing.T) {
	f := 0.1
	voice := func(in Input) string {
		b, err := json.Marshal(Compute(in).Summary.Voice)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	quiet := `"dead_air":{"threshold_ms":3000,"count":0,"total_ms":0,"max_ms":0,"events":[]}`
	for _, c := range []struct {
		name string
		in   Input
		want string
	}{
		{"a text session", Input{Items: []Item{user("a", ItemMetrics{}), agent("x", said(1, 2))}}, `null`},
		{"a text transport", Input{Transport: "SMS", Items: []Item{user("a", said(0, 1)), agent("x", said(1, 2))}}, `null`},
		{"an unknown transport, STT measured", Input{Items: []Item{user("a", ItemMetrics{TranscriptionDelay: &f}), agent("x", said(1, 2))}},
			`{"agent_speech_ms":1000,"talk_ratio":1,"longest_monologue_ms":1000,"longest_monologue_turn":1,"agent_wpm":60,` + quiet + `}`},
		{"speech to speech, nothing else measured", Input{Items: []Item{user("a", said(0, 1)), agent("x", ItemMetrics{})}}, `{"user_speech_ms":1000,"talk_ratio":0,"user_wpm":60,` + quiet + `}`},
		{"speech to speech by its e2e_latency", Input{Items: []Item{agent("x", ItemMetrics{E2ELatency: &f, StartedSpeakingAt: sec(0), StoppedSpeakingAt: sec(1)})}},
			`{"agent_speech_ms":1000,"talk_ratio":1,"longest_monologue_ms":1000,"longest_monologue_turn":1,"agent_wpm":60,` + quiet + `}`},
		{"spoken, but nothing timed", Input{Transport: "sip", Items: []Item{user("a", ItemMetrics{TranscriptionDelay: &f}), agent("x", ItemMetrics{})}}, `null`},
		{"no length of speech", Input{Transport: "sip", DurationMS: ms(1000), Items: []Item{agent("x", said(1, 1))}},
			`{"agent_speech_ms":0,"longest_monologue_ms":0,"longest_monologue_turn":1,` + quiet + `,"silence_pct":100}`},
		{"speech longer than the call", Input{Transport: "sip", DurationMS: ms(500), Items: []Item{agent("x", said(1, 2))}},
			`{"agent_speech_ms":1000,"talk_ratio":1,"longest_monologue_ms":1000,"longest_monologue_turn":1,"agent_wpm":60,` + quiet + `,"silence_pct":0}`},
		{"the user spoke first: no greeting", Input{Transport: "sip", StartedAt: start, Items: []Item{user("a", ItemMetrics{}), agent("x", said(1, 2))}},
			`{"agent_speech_ms":1000,"talk_ratio":1,"longest_monologue_ms":1000,"longest_monologue_turn":1,"agent_wpm":60,` + quiet + `}`},
		{"a greeting before the call is none", Input{Transport: "sip", StartedAt: sec(3), Items: []Item{agent("x", said(1, 2))}},
			`{"agent_speech_ms":1000,"talk_ratio":1,"longest_monologue_ms":1000,"longest_monologue_turn":1,"agent_wpm":60,` + quiet + `}`},
		{"gaps without speech", Input{Transport: "sip", Items: []Item{user("a", ItemMetrics{StoppedSpeakingAt: sec(1)}), agent("x", ItemMetrics{StartedSpeakingAt: sec(5)})}},
			`{"ttfa":{"avg":4000,"p50":4000,"p90":4000,"p95":4000,"count":1},"dead_air":{"threshold_ms":3000,"count":1,"total_ms":4000,"max_ms":4000,"events":[{"turn_number":1,"kind":"response","gap_ms":4000}]}}`},
	} {
		if got := voice(c.in); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestCapabilities(t *testing.T) {
	f, minus := 0.1, -1.0
	for _, c := range []struct {
		name, transport string
		items           []Item
		want            string // the stages it has
	}{
		{"nothing", "sip", nil, ""},
		{"text with speaking times and no transport", "", []Item{user("a", ItemMetrics{}), agent("x", ItemMetrics{LLMNodeTTFT: &f, StartedSpeakingAt: sec(1), StoppedSpeakingAt: sec(2)})}, "llm "},
		{"the same over a voice transport", "sip", []Item{user("a", ItemMetrics{}), agent("x", ItemMetrics{LLMNodeTTFT: &f, StartedSpeakingAt: sec(1)})}, "llm tts "},
		{"speaking times of both", "WebRTC", []Item{user("a", ItemMetrics{StoppedSpeakingAt: sec(1)}), agent("x", said(1, 2))}, "stt tts "},
		{"over a text transport", "text", []Item{user("a", said(0, 1)), agent("x", said(1, 2))}, ""},
		{"audio metrics need no transport", "", []Item{user("a", ItemMetrics{TranscriptionDelay: &f}), agent("x", ItemMetrics{TTSNodeTTFB: &f})}, "stt tts "},
		{"nor do they mind a text one", "chat", []Item{user("a", ItemMetrics{TranscriptionDelay: &f})}, "stt "},
		{"not measured is not there", "", []Item{user("a", ItemMetrics{TranscriptionDelay: &minus}), agent("x", ItemMetrics{TTSNodeTTFB: &minus, LLMNodeTTFT: &minus})}, ""},
	} {
		stt, llm, tts := Capabilities(c.items, c.transport)
		got := ""
		for _, stage := range []struct {
			name string
			has  bool
		}{{"llm ", llm}, {"stt ", stt}, {"tts ", tts}} {
			if stage.has {
				got += stage.name
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for transport, want := range map[string]bool{
		"": false, " ": false, "text": false, "Text": false, "chat": false, "web-chat": false, "sms": false, "whatsapp": false, "email": false, "text_simulation": false,
		"sip": true, "SIP": true, "webrtc": true, "phone": true, "pstn": true, "audio": true, "voice": true, "plivo": true, "twilio": true, "telephony": true,
		"audio_stream": true, "websocket": true, "voice-chat": true, "whatsapp_call": true, "console": true, "room": true,
	} {
		if got := IsVoiceTransport(transport); got != want {
			t.Errorf("IsVoiceTransport(%q) = %v", transport, got)
		}
	}
}

func TestUnionOfSpeech(t *testing.T) {
	for _, c := range []struct {
		speech []interval
		want   int64
	}{
		{nil, 0}, {[]interval{{5, 5}}, 0}, {[]interval{{0, 10}, {10, 20}}, 20}, {[]interval{{30, 40}, {0, 10}}, 20},
		{[]interval{{0, 100}, {10, 20}, {50, 110}}, 110}, {[]interval{{0, 10}, {0, 10}}, 10},
	} {
		if got := unionMicros(slices.Clone(c.speech)); got != c.want {
			t.Errorf("%v cover %d, want %d", c.speech, got, c.want)
		}
	}
}

package session

import (
	"math"
	"slices"
	"strings"

	"sidetone/internal/stat"
)

// Capabilities tells which stages a session had. has_llm: any llm_node_ttft. has_stt: a user message with a
// transcription_delay, or with speaking times on a voice transport. has_tts: an assistant message with a tts_node_ttfb, or
// with speaking times on a voice transport. So a text session has neither, though its messages carry speaking times.
func Capabilities(items []Item, transport string) (stt, llm, tts bool) {
	voice := IsVoiceTransport(transport)
	for i := range items {
		it := &items[i]
		m := &it.Metrics
		timed := voice && !(m.StartedSpeakingAt.IsZero() && m.StoppedSpeakingAt.IsZero())
		switch {
		case isUser(it):
			_, ok := measured(m.TranscriptionDelay)
			stt = stt || ok || timed
		case isAssistant(it):
			_, ok := measured(m.LLMNodeTTFT)
			llm = llm || ok
			_, ok = measured(m.TTSNodeTTFB)
			tts = tts || ok || timed
		}
	}
	return stt, llm, tts
}

// Words in a transport's name. Transports are free text that agents set (sip, webrtc, audio_stream, sms, ...), so a name
// is a text transport when it contains a text word and no voice word; every other name that is not empty is a voice
// transport, because a new name is most likely a new way to place calls.
var (
	voiceWords = []string{"voice", "audio", "call", "phone", "speech", "video", "rtc", "sip", "pstn"}
	textWords  = []string{"text", "chat", "sms", "mms", "rcs", "mail", "messag", "whatsapp", "telegram", "slack"}
)

// IsVoiceTransport tells whether calls on a transport are spoken. An empty transport is unknown, which is not voice.
func IsVoiceTransport(transport string) bool {
	t := strings.ToLower(strings.TrimSpace(transport))
	return t != "" && !isTextTransport(t)
}

func isTextTransport(lower string) bool {
	in := func(word string) bool { return strings.Contains(lower, word) }
	return slices.ContainsFunc(textWords, in) && !slices.ContainsFunc(voiceWords, in)
}

// spoken tells whether speaking times are those of a voice: the session has STT or TTS, or, where that says nothing (a
// speech-to-speech model measures neither stage, and the SDKs send no transport), a user message that took time to speak
// or an e2e_latency. Typed user messages have no speaking times and text replies no e2e_latency.
func spoken(items []Item, transport string) bool {
	if stt, _, tts := Capabilities(items, transport); stt || tts {
		return true
	}
	if isTextTransport(strings.ToLower(transport)) {
		return false
	}
	for i := range items {
		it := &items[i]
		if m := &it.Metrics; isUser(it) && !m.StartedSpeakingAt.IsZero() && m.StoppedSpeakingAt.After(m.StartedSpeakingAt) {
			return true
		} else if _, ok := measured(m.E2ELatency); ok && isAssistant(it) {
			return true
		}
	}
	return false
}

// Facts are the samples of a session for alert rules: the same turns and measurements as Compute's, unrounded down to
// microseconds.
func Facts(items []Item) TurnFacts { return facts(distinct(items)) }

func facts(items []Item) TurnFacts {
	var f TurnFacts
	var stt *float64 // of the turn so far
	for i := range items {
		it := &items[i]
		m := &it.Metrics
		switch {
		case isUser(it):
			if _, ok := measured(m.TranscriptionDelay); ok {
				stt = m.TranscriptionDelay
			}
		case isAssistant(it):
			f.AssistantTurns++
			if it.Interrupted {
				f.InterruptedTurns++
			}
			f.Perceived = appendSample(f.Perceived, perceived(m))
			f.TTFT = appendSample(f.TTFT, m.LLMNodeTTFT)
			f.TTFB = appendSample(f.TTFB, m.TTSNodeTTFB)
			f.STT = appendSample(f.STT, stt)
			stt = nil
		}
	}
	f.STT = appendSample(f.STT, stt)
	return f
}

// Tally gives both what lists show and what alert rules count of a session, consistent with Compute: what ingest needs
// without building the turns.
func Tally(items []Item, transport string) (Counts, TurnFacts) {
	items = distinct(items)
	f := facts(items)
	c := Counts{Turns: f.AssistantTurns, Interruptions: f.InterruptedTurns}
	c.HasSTT, c.HasLLM, c.HasTTS = Capabilities(items, transport)
	for i := range items {
		if items[i].Type == ItemFunctionCall {
			c.ToolCalls++
		}
	}
	if d, ok := stat.Describe(slices.Clone(f.Perceived)); ok {
		p95 := int64(math.Round(d.P95))
		c.P95UserPerceivedMS = &p95
	}
	return c, f
}

// appendSample appends a measured duration in milliseconds with three decimals.
func appendSample(to []float64, seconds *float64) []float64 {
	if _, ok := measured(seconds); !ok {
		return to
	}
	return append(to, math.Abs(math.Round(*seconds*1e6)/1e3)) // Abs: -0 would be printed with its sign
}

// distinct drops items that repeat an earlier one: same id, type, role, call, time and content, as when a client sends its
// history twice. The same id with other content is kept, because a client that gives all its items one id must not lose
// its transcript. It returns items itself when nothing repeats.
func distinct(items []Item) []Item {
	seen := make(map[string]int, len(items))
	var kept []Item // nil until the first repetition
	for i := range items {
		it := &items[i]
		if first, dup := seen[it.ID]; !dup {
			seen[it.ID] = i
		} else if it.ID != "" && repeats(it, &items[first]) {
			if kept == nil {
				kept = append(make([]Item, 0, len(items)), items[:i]...)
			}
			continue
		}
		if kept != nil {
			kept = append(kept, *it)
		}
	}
	if kept == nil {
		return items
	}
	return kept
}

func repeats(a, b *Item) bool {
	return a.Type == b.Type && a.Role == b.Role && a.CallID == b.CallID && a.Name == b.Name && a.CreatedAt.Equal(b.CreatedAt) &&
		a.Text == b.Text && a.Arguments == b.Arguments && a.Output == b.Output
}

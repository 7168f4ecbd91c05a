package demo

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// Speaking rates in characters per second: about 150 words a minute for the agent, a little less for callers.
const (
	agentRate = 14.5
	userRate  = 13.0
)

// A builder plays a scenario against the clock. Times are seconds since the start of the call until talk.shift.
type builder struct {
	r        *rand.Rand
	agent    agent
	scenario scenario
	slots    map[string]string
	voice    bool
	slow     bool // the agent's model is having its incident
	failRate float64

	t        float64 // now
	userStop float64 // when the caller fell silent and no reply has begun yet; -1 when the agent owes no reply
	cutOff   bool    // the last reply was interrupted: the caller is talking already
	hungUp   bool
	items    []item
	speaker  string // the agent in charge, for handoffs

	context                     int // tokens of the prompt so far
	inTokens, outTokens, cached int
	characters                  int
	agentSpeech, userSpeech     float64
	slowest                     float64 // longest wait of the caller so far
}

func (b *builder) id(kind string) string { return fmt.Sprintf("%s_%012x", kind, b.r.Uint64()>>16) }

func (b *builder) add(it item) {
	it.CreatedAt = micros(it.CreatedAt)
	b.items = append(b.items, it)
}

// run plays the whole scenario and leaves b.t at the end of the call.
func (b *builder) run() {
	lines := b.chooseLines()
	b.speaker = strings.ReplaceAll(b.agent.id, "-", "_")
	b.t, b.userStop = 0.12+0.2*b.r.Float64(), -1
	b.add(item{ID: b.id("item"), Type: "agent_handoff", NewAgentID: b.speaker, CreatedAt: b.t})
	b.add(item{ID: b.id("item"), Type: "agent_config_update", Instructions: b.agent.instructions, ToolsAdded: tools(lines), CreatedAt: b.t + 0.002})
	b.t += 0.6 + 0.9*b.r.Float64()
	for i, l := range lines {
		switch l.kind {
		case "agent":
			cut := i > 0 && i+1 < len(lines) && lines[i+1].kind == "user" && b.r.Float64() < b.agent.interrupted
			b.agentSays(b.word(l), i == 0, cut)
		case "user":
			b.userSays(b.word(l))
			// A caller who has waited very long may give up instead of hearing the answer.
			if i > 2 && b.slowest > 5 && b.r.Float64() < 0.3 || i > 4 && b.r.Float64() < 0.012 {
				b.hungUp = true
			}
		case "call":
			if b.r.Float64() < b.failRate {
				b.callTool(l, l.name+" timed out after 5000 ms", true)
				b.agentSays(retryWords[b.scenario.language], false, false)
			}
			b.callTool(l, fill(l.output, b.slots), false)
		case "error":
			b.callTool(l, l.output, true)
		case "handoff":
			b.add(item{ID: b.id("item"), Type: "agent_handoff", OldAgentID: b.speaker, NewAgentID: l.name, CreatedAt: b.t})
			b.speaker = l.name
		}
		if b.hungUp {
			break
		}
	}
	b.t += 1 + 1.5*b.r.Float64()
	if !b.voice {
		b.t += 15 + 30*b.r.Float64() // a chat stays open for a while
	}
}

// chooseLines decides which optional lines are said; consecutive ones stand or fall together.
func (b *builder) chooseLines() []line {
	var out []line
	keep := true
	for i, l := range b.scenario.lines {
		if l.optional {
			if i == 0 || !b.scenario.lines[i-1].optional {
				keep = b.r.Float64() < 0.5
			}
			if !keep {
				continue
			}
		}
		out = append(out, l)
	}
	return out
}

func tools(lines []line) []string {
	var out []string
	seen := map[string]bool{}
	for _, l := range lines {
		if (l.kind == "call" || l.kind == "error") && !seen[l.name] {
			seen[l.name] = true
			out = append(out, l.name)
		}
	}
	return out
}

func (b *builder) word(l line) string {
	return fill(l.wordings[b.r.IntN(len(l.wordings))], b.slots)
}

func (b *builder) ttft() float64 {
	d := b.agent.ttft.draw(b.r)
	if b.slow {
		d *= incidentSlowdown
	}
	return d
}

func (b *builder) userSays(text string) {
	length := float64(utf8.RuneCountInString(text))
	it := item{ID: b.id("item"), Type: "message", Role: "user", Content: []string{text}, Interrupted: new(bool), Extra: &struct{}{}}
	b.context += int(length)/4 + 4
	if !b.voice {
		b.t += 1.5 + length/6*(0.7+0.6*b.r.Float64()) // reading the answer and typing
		it.CreatedAt, b.userStop = b.t, b.t
		b.add(it)
		return
	}
	start := b.t + lognormal{0.7, 0.55}.draw(b.r)
	if b.cutOff {
		start, b.cutOff = b.t-0.1-0.25*b.r.Float64(), false
	}
	speech := 0.3 + length/userRate*(0.9+0.25*b.r.Float64())
	stop := start + speech
	b.userSpeech += speech
	stt := b.agent.sttDelay.draw(b.r)
	eou := max(b.agent.eou.draw(b.r), stt+0.03)
	hook := 0.0004 + 0.0012*b.r.Float64()
	it.CreatedAt = stop
	it.TranscriptConfidence = float64(860+b.r.IntN(139)) / 1000
	it.Metrics = &metrics{StartedSpeakingAt: micros(start), StoppedSpeakingAt: micros(stop), TranscriptionDelay: micros(stt),
		EndOfTurnDelay: micros(eou), OnUserTurnCompletedDelay: micros(hook), STT: b.agent.stt.json()}
	b.add(it)
	b.userStop, b.t = stop, stop+eou+hook
}

func (b *builder) agentSays(text string, greeting, cut bool) {
	length := float64(utf8.RuneCountInString(text))
	it := item{ID: b.id("item"), Type: "message", Role: "assistant", Interrupted: new(bool), Extra: &struct{}{}}
	m := &metrics{}
	it.Metrics = m
	if !greeting { // a greeting is said without asking the model
		ttft := b.ttft()
		m.LLMNodeTTFT, m.LLM = micros(ttft), b.agent.llm.json()
		b.t += ttft
		b.countTokens(m, int(length)/4+3)
	}
	if !b.voice {
		it.Content, it.CreatedAt = []string{text}, b.t
		if greeting {
			it.Metrics = nil
		}
		b.t += length / 200 // streamed to the screen
		b.userStop = -1
		b.add(it)
		return
	}
	ttfb := b.agent.ttfb.draw(b.r)
	b.t += ttfb + 0.02 + 0.09*b.r.Float64()
	start := b.t
	speech := 0.25 + length/agentRate*(0.93+0.14*b.r.Float64())
	if cut && length > 45 {
		share := 0.35 + 0.5*b.r.Float64()
		text, speech = cutText(text, share), speech*share
		*it.Interrupted, b.cutOff = true, true
	}
	b.t = start + speech
	b.agentSpeech += speech
	b.characters += utf8.RuneCountInString(text)
	m.StartedSpeakingAt, m.StoppedSpeakingAt = micros(start), micros(b.t)
	m.TTSNodeTTFB, m.TTS = micros(ttfb), b.agent.tts.json()
	if b.userStop >= 0 {
		m.E2ELatency = micros(start - b.userStop)
		b.slowest = max(b.slowest, m.E2ELatency)
	}
	it.Content, it.CreatedAt = []string{text}, start
	b.userStop = -1
	b.add(it)
}

func (b *builder) callTool(l line, output string, failed bool) {
	b.t += b.ttft() * 1.1 // the model decides to call
	b.countTokens(nil, 24)
	call := item{ID: b.id("item"), Type: "function_call", CallID: b.id("call"), Name: l.name, Arguments: fill(l.args, b.slots), CreatedAt: b.t}
	b.add(call)
	took := lognormal{0.28, 0.6}.draw(b.r)
	if failed && strings.Contains(output, "timed out") {
		took = 5
	}
	b.t += took
	b.context += len(output) / 4
	b.add(item{ID: b.id("item"), Type: "function_call_output", CallID: call.CallID, Name: l.name, Output: output, IsError: &failed, CreatedAt: b.t})
}

// countTokens books one request to the model, and on m when the agent reports tokens per message.
func (b *builder) countTokens(m *metrics, completion int) {
	prompt := b.context + 180 // 180: the tool definitions
	b.inTokens += prompt
	b.outTokens += completion
	if prompt > 1024 { // providers cache prompts from 1,024 tokens on
		b.cached += 1024
	}
	if m != nil && b.agent.tokensPerMessage {
		m.LLMPromptTokens, m.LLMCompletionTokens, m.LLMTotalTokens = prompt, completion, prompt+completion
	}
	b.context += completion
}

// usageEntries are the session totals as the SDKs report them: keys whose value is zero are left out.
func (b *builder) usageEntries() []map[string]any {
	llm := map[string]any{"type": "llm_usage", "provider": b.agent.llm.provider, "model": b.agent.llm.name,
		"input_tokens": b.inTokens, "output_tokens": b.outTokens}
	if b.cached > 0 {
		llm["input_cached_tokens"] = b.cached
	}
	out := []map[string]any{llm}
	if b.voice {
		out = append(out,
			map[string]any{"type": "tts_usage", "provider": b.agent.tts.provider, "model": b.agent.tts.name,
				"characters_count": b.characters, "audio_duration": micros(b.agentSpeech)},
			map[string]any{"type": "stt_usage", "provider": b.agent.stt.provider, "model": b.agent.stt.name,
				"audio_duration": micros(b.t)})
	}
	return out
}

// cutText keeps about the given share of text, up to the end of a word.
func cutText(text string, share float64) string {
	words := strings.Fields(text)
	n := max(1, int(share*float64(len(words))))
	return strings.Join(words[:n], " ")
}

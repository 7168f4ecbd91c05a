package session

import (
	"math"
	"slices"
	"strings"

	"sidetone/internal/stat"
)

// stages are the latencies that are summarised.
var stages = [...]struct {
	name string
	of   func(*Turn) *int64
}{
	{"perceived", func(t *Turn) *int64 { return t.UserPerceivedMS }},
	{"llm_ttft", func(t *Turn) *int64 { return t.LLMTTFTMS }},
	{"tts_ttfb", func(t *Turn) *int64 { return t.TTSTTFBMS }},
	{"stt", func(t *Turn) *int64 { return t.STTDelayMS }},
	{"turn_decision", func(t *Turn) *int64 { return t.TurnDecisionMS }},
}

func (b *builder) summary(in Input) Summary {
	s := Summary{
		TotalTurns:     len(b.turns),
		TotalToolCalls: len(b.calls),
		Latency:        make(map[string]Distribution, 5),
		Providers:      providers(b.turns, in.Usage),
	}
	replies := 0
	for i := range b.turns {
		t := &b.turns[i]
		if t.AgentText != nil {
			replies++
		}
		if t.Interrupted {
			s.Interruptions++
		}
	}
	if r, ok := stat.Rate(s.Interruptions, replies); ok {
		r = stat.Round(r, 4)
		s.InterruptionRate = &r
	}
	for _, stage := range stages {
		if d := b.distribution(stage.of); d != nil {
			s.Latency[stage.name] = *d
		}
	}
	if d, ok := s.Latency["perceived"]; ok {
		s.AvgUserPerceivedMS, s.P95UserPerceivedMS = b.ints.put(d.Avg), b.ints.put(d.P95)
	}
	s.tokens(b.turns, in.Usage)
	s.ttsCharacters(b.turns, in.Usage)
	s.Voice = b.voiceSummary(in)
	return s
}

// distribution describes one measurement of all turns that have it, nil when none has.
func (b *builder) distribution(of func(*Turn) *int64) *Distribution {
	samples := b.samples[:0]
	for i := range b.turns {
		if ms := of(&b.turns[i]); ms != nil {
			samples = append(samples, float64(*ms))
		}
	}
	b.samples = samples
	d, ok := stat.Describe(samples)
	if !ok {
		return nil
	}
	return &Distribution{Avg: int64(math.Round(d.Avg)), P50: int64(d.P50), P90: int64(d.P90), P95: int64(d.P95), Count: d.Count}
}

// tokens sums the turns' tokens, or those of LLM usage when no turn has any: usage counts the same tokens again.
func (s *Summary) tokens(turns []Turn, usage []Usage) {
	found := false
	for i := range turns {
		t := &turns[i]
		if t.LLMTotalTokens == nil {
			continue
		}
		found = true
		s.TotalLLMPromptTokens = addCapped(s.TotalLLMPromptTokens, value(t.LLMPromptTokens))
		s.TotalLLMCompletionTokens = addCapped(s.TotalLLMCompletionTokens, value(t.LLMCompletionTokens))
		s.TotalLLMTokens = addCapped(s.TotalLLMTokens, *t.LLMTotalTokens)
	}
	if found {
		return
	}
	for i := range usage {
		if u := &usage[i]; usageStage(u) == "llm" {
			s.TotalLLMPromptTokens = addCapped(s.TotalLLMPromptTokens, max(0, u.InputTokens))
			s.TotalLLMCompletionTokens = addCapped(s.TotalLLMCompletionTokens, max(0, u.OutputTokens))
		}
	}
	s.TotalLLMTokens = addCapped(s.TotalLLMPromptTokens, s.TotalLLMCompletionTokens)
}

func (s *Summary) ttsCharacters(turns []Turn, usage []Usage) {
	found := false
	for i := range turns {
		if n := turns[i].TTSCharacters; n != nil {
			found = true
			s.TotalTTSCharacters = addCapped(s.TotalTTSCharacters, *n)
		}
	}
	if found {
		return
	}
	for i := range usage {
		if u := &usage[i]; usageStage(u) == "tts" {
			s.TotalTTSCharacters = addCapped(s.TotalTTSCharacters, max(0, u.CharactersCount))
		}
	}
}

// usageStage is the stage an entry of usage belongs to: llm_usage is llm. Other kinds give their own name.
func usageStage(u *Usage) string {
	return strings.TrimSuffix(u.Type, "_usage")
}

// providers lists the models each stage used; usage speaks for a stage only when no message names its model.
func providers(turns []Turn, usage []Usage) Providers {
	p := Providers{STT: []string{}, LLM: []string{}, TTS: []string{}}
	for i := range turns {
		t := &turns[i]
		addProvider(&p.STT, t.STTProvider, t.STTModel)
		addProvider(&p.LLM, t.LLMProvider, t.LLMModel)
		addProvider(&p.TTS, t.TTSProvider, t.TTSModel)
	}
	said := [...]bool{len(p.STT) > 0, len(p.LLM) > 0, len(p.TTS) > 0}
	for i := range usage {
		u := &usage[i]
		switch stage := usageStage(u); {
		case stage == "stt" && !said[0]:
			addProvider(&p.STT, u.Provider, u.Model)
		case stage == "llm" && !said[1]:
			addProvider(&p.LLM, u.Provider, u.Model)
		case stage == "tts" && !said[2]:
			addProvider(&p.TTS, u.Provider, u.Model)
		}
	}
	return p
}

// maxProviders bounds a stage's list: real sessions name a handful, and looking a name up is a linear search.
const maxProviders = 64

func addProvider(list *[]string, provider, model string) {
	if provider == "" && model == "" || len(*list) == maxProviders {
		return
	}
	for _, known := range *list { // compared in place: building the name would allocate once per turn
		if len(known) == len(provider)+len(model)+1 && strings.HasPrefix(known, provider) && strings.HasSuffix(known, model) && known[len(provider)] == '/' {
			return
		}
	}
	name := provider + "/" + model
	if provider == "" || model == "" {
		name = provider + model
	}
	if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

package price

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"sidetone/internal/session"
	"sidetone/internal/stat"
)

const million = 1e6

// LLM tells what tokens of a language model cost in USD. input includes cached, which costs less; more cached tokens
// than input are taken as all of it. ok is false when the model is unknown or priced per kind of token (speech to
// speech), and when there are no tokens at all.
func (t *Table) LLM(provider, model string, input, cached, output int64) (usd float64, ok bool) {
	p := t.find(kindLLM, provider, model)
	if p == nil || p.AudioInput != nil {
		return 0, false
	}
	q := count(input, cached, output)
	if q.input == 0 && q.output == 0 {
		return 0, false
	}
	return p.text(q), true
}

// tokens are amounts of one modality. cached and written are parts of input: read from the provider's cache, and
// put there.
type tokens struct{ input, cached, written, output float64 }

func count(input, cached, output int64) tokens {
	return tokens{input: float64(max(0, input)), cached: float64(max(0, cached)), output: float64(max(0, output))}
}

// text prices text tokens. Cached input without a price of its own costs what other input does, and so does input that
// is written to a cache.
func (r *rates) text(q tokens) float64 {
	cached := min(q.cached, q.input)
	written := min(q.written, q.input-cached)
	return ((q.input-cached-written)**r.Input + cached*orElse(r.CachedInput, *r.Input) +
		written*orElse(r.CacheWrite, *r.Input) + q.output**r.Output) / million
}

func (r *rates) audio(q tokens) float64 {
	cached := min(q.cached, q.input)
	return ((q.input-cached)**r.AudioInput + cached*orElse(r.CachedAudioInput, *r.AudioInput) +
		q.output**r.AudioOutput) / million
}

// Session estimates what a call cost in USD, from its usage totals or, when there are none to price, from what its
// messages measured. It is nil when anything that has a price could not be priced.
func (t *Table) Session(usage []session.Usage, items []session.Item) *float64 {
	usd, found, ok := t.usage(usage)
	if ok && !found {
		usd, found, ok = t.items(items)
	}
	return estimate(usd, found && ok)
}

// Usage estimates what usage totals cost in USD: nil when there is nothing to price, and when the model of any entry is
// unknown or its price needs a quantity that the entry does not have. Entries without any quantity are ignored, and so
// are those that only count requests (interruption and end-of-turn detection), which nobody sells by itself. An entry of
// any other type that has a quantity is of an unknown model.
func (t *Table) Usage(usage []session.Usage) *float64 {
	usd, found, ok := t.usage(usage)
	return estimate(usd, found && ok)
}

// estimate rounds to a billionth of a dollar, the sixth decimal of a price per million: what is beyond is noise of
// floating point.
func estimate(usd float64, ok bool) *float64 {
	if !ok || math.IsNaN(usd) || math.IsInf(usd, 0) {
		return nil
	}
	usd = stat.Round(usd, 9)
	return &usd
}

func (t *Table) usage(usage []session.Usage) (usd float64, found, ok bool) {
	for i := range usage {
		u := &usage[i]
		kind := strings.TrimSuffix(u.Type, "_usage")
		if kind == "interruption" || kind == "eot" || u.InputTokens <= 0 && u.InputCachedTokens <= 0 && u.OutputTokens <= 0 &&
			u.CharactersCount <= 0 && u.AudioDuration <= 0 && u.SessionDuration <= 0 {
			continue
		}
		cost, priced := t.entry(kind, u)
		if !priced {
			return 0, false, false
		}
		usd, found = usd+cost, true
	}
	return usd, found, true
}

func (t *Table) entry(kind string, u *session.Usage) (usd float64, ok bool) {
	p := t.find(kind, u.Provider, u.Model)
	switch {
	case p == nil:
		return 0, false
	case kind == kindLLM:
		return p.llm(u)
	}
	// Of several ways to sell the same speech the first whose quantity was reported counts.
	q := count(u.InputTokens, 0, u.OutputTokens)
	switch {
	case p.Input != nil && (q.output > 0 || kind == kindSTT && q.input > 0): // the output of TTS is the speech
		return p.text(q), true
	case p.Characters != nil && u.CharactersCount > 0:
		return float64(u.CharactersCount) * *p.Characters / million, true
	case p.Minute != nil && u.AudioDuration > 0:
		return u.AudioDuration / 60 * *p.Minute, true
	}
	return 0, false
}

// details are the keys of a usage entry that session.Usage has no field for.
type details struct {
	CacheCreation float64 `json:"input_cache_creation_tokens"`
	Audio         float64 `json:"input_audio_tokens"`
	CachedAudio   float64 `json:"input_cached_audio_tokens"`
	Text          float64 `json:"input_text_tokens"`
	CachedText    float64 `json:"input_cached_text_tokens"`
	OutputAudio   float64 `json:"output_audio_tokens"`
	OutputText    float64 `json:"output_text_tokens"`
}

// llm prices an entry of a language model. Where audio tokens have a price of their own the entry must say which tokens
// were which and leave none out; images among them have no price here.
func (r *rates) llm(u *session.Usage) (usd float64, ok bool) {
	q := count(u.InputTokens, u.InputCachedTokens, u.OutputTokens)
	if q.input == 0 && q.output == 0 {
		return 0, false // time alone has no price
	}
	speech := r.AudioInput != nil
	if !speech && !bytes.Contains(u.Raw, []byte("_audio_")) && !bytes.Contains(u.Raw, []byte("_cache_creation_")) {
		return r.text(q), true
	}
	var d details
	if json.Unmarshal(u.Raw, &d) != nil ||
		min(d.CacheCreation, d.Audio, d.CachedAudio, d.Text, d.CachedText, d.OutputAudio, d.OutputText) < 0 {
		return 0, false
	}
	if !speech {
		q.written = d.CacheCreation
		return r.text(q), d.Audio == 0 && d.OutputAudio == 0
	}
	if d.Text+d.Audio != q.input || d.OutputText+d.OutputAudio != q.output || d.CachedText+d.CachedAudio != q.cached {
		return 0, false
	}
	return r.text(tokens{input: d.Text, cached: d.CachedText, output: d.OutputText}) +
		r.audio(tokens{input: d.Audio, cached: d.CachedAudio, output: d.OutputAudio}), true
}

// items prices what messages measured: the tokens of replies and the characters that were spoken. A message shows that a
// stage ran by its latency or its model; without its quantity the cost is unknown. Transcription is never measured per
// message, so a call with it has no cost from messages.
func (t *Table) items(items []session.Item) (usd float64, found, ok bool) {
	for i := range items {
		m := &items[i].Metrics
		if m.TranscriptionDelay != nil || m.STT != (session.Model{}) {
			return 0, false, false
		}
		if m.LLMNodeTTFT != nil || m.LLM != (session.Model{}) || m.LLMPromptTokens != nil || m.LLMCompletionTokens != nil || m.LLMTotalTokens != nil {
			cost, priced := t.LLM(m.LLM.Provider, m.LLM.Name, orElse(m.LLMPromptTokens, 0), orElse(m.LLMCacheReadTokens, 0), orElse(m.LLMCompletionTokens, 0))
			if !priced || m.LLMPromptTokens == nil || m.LLMCompletionTokens == nil {
				return 0, false, false
			}
			usd, found = usd+cost, true
		}
		if m.TTSNodeTTFB != nil || m.TTS != (session.Model{}) || m.TTSCharacters != nil {
			p := t.find(kindTTS, m.TTS.Provider, m.TTS.Name)
			if p == nil || p.Characters == nil || m.TTSCharacters == nil {
				return 0, false, false
			}
			usd, found = usd+float64(max(0, *m.TTSCharacters))**p.Characters/million, true
		}
	}
	return usd, found, true
}

func orElse[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

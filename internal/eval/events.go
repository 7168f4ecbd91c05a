package eval

import (
	"math"
	"slices"
)

// Events come in the shapes of several plugins and SDKs. Role, interrupted and the measurements of a message stand
// on the event, or inside its item, and the measurements either in a metrics (or usage) object or flat beside the
// other keys; names are snake_case or camelCase. The first place that has a value counts, in the order of places.
const (
	inMetrics     = iota // event.metrics
	inItemMetrics        // event.item.metrics
	inEvent              // event
	inItem               // event.item
	places
)

// measures is what one place says; a negative number is absent.
type measures struct {
	ttft, ttfb                       float64 // seconds
	prompt, completion, total, cache float64
	provider, model                  string
}

var noMeasures = measures{ttft: -1, ttfb: -1, prompt: -1, completion: -1, total: -1, cache: -1}

type eventType int

const (
	otherEvent eventType = iota
	messageEvent
	callEvent
	handoffEvent
	usageEvent
)

// event is what counts of one event.
type event struct {
	kind        eventType
	assistant   bool
	interrupted bool
	at          [places]measures
}

// readEvents reads the events of a case and fills what is computed from them.
func (p *parser) readEvents(c *Case) (raw []byte, n int) {
	s := &c.CaseSummary
	var perMessage, perUsage []ModelUsage
	raw, n = p.objects("events", func() {
		ev := event{at: [places]measures{noMeasures, noMeasures, noMeasures, noMeasures}}
		p.readEvent(&ev)
		m := ev.merged()
		switch ev.kind {
		case messageEvent:
			if ev.assistant {
				s.TurnCount++
				if ev.interrupted {
					s.InterruptionCount++
				}
			}
			s.TTFT = appendSample(s.TTFT, m.ttft)
			s.TTFB = appendSample(s.TTFB, m.ttfb)
			perMessage = appendUsage(perMessage, m)
		case callEvent:
			s.ToolCallCount++
		case handoffEvent:
			s.AgentHandoffCount++
		case usageEvent:
			perUsage = appendUsage(perUsage, m)
		}
	})
	// A usage event reports what the messages report too: one or the other, never both.
	c.Usage = perMessage
	if len(perUsage) > 0 {
		c.Usage = perUsage
	}
	for _, u := range c.Usage {
		s.Tokens.add(u.Tokens)
	}
	return raw, n
}

func (p *parser) readEvent(ev *event) {
	p.object(func(key []byte) {
		switch string(key) {
		case "item":
			if p.kind() != '{' {
				p.value()
				return
			}
			p.object(func(key []byte) { p.eventField(ev, key, inItem, inItemMetrics) })
		default:
			p.eventField(ev, key, inEvent, inMetrics)
		}
	})
}

// eventField reads one member of an event or of its item.
func (p *parser) eventField(ev *event, key []byte, flat, nested int) {
	switch string(key) {
	case "type":
		if s, ok := p.string(); ok && ev.kind == otherEvent {
			ev.kind = typeOf(s)
		}
	case "role":
		if s, ok := p.string(); ok && string(s) == "assistant" {
			ev.assistant = true
		}
	case "interrupted":
		ev.interrupted = p.bool() || ev.interrupted
	case "metrics", "usage":
		if p.kind() != '{' {
			p.value()
			return
		}
		p.object(func(key []byte) { p.measure(&ev.at[nested], key) })
	default:
		p.measure(&ev.at[flat], key)
	}
}

func typeOf(s []byte) eventType {
	switch string(s) {
	case "message":
		return messageEvent
	case "function_call":
		return callEvent
	case "agent_handoff":
		return handoffEvent
	case "usage", "llm_usage":
		return usageEvent
	}
	return otherEvent
}

// measure reads one member that may be a measurement.
func (p *parser) measure(m *measures, key []byte) {
	switch string(key) {
	case "llm_node_ttft", "llmNodeTtft":
		p.amount(&m.ttft)
	case "tts_node_ttfb", "ttsNodeTtfb":
		p.amount(&m.ttfb)
	case "llm_prompt_tokens", "llmPromptTokens", "prompt_tokens", "promptTokens", "input_tokens", "inputTokens":
		p.amount(&m.prompt)
	case "llm_completion_tokens", "llmCompletionTokens", "completion_tokens", "completionTokens", "output_tokens", "outputTokens":
		p.amount(&m.completion)
	case "llm_total_tokens", "llmTotalTokens", "total_tokens", "totalTokens":
		p.amount(&m.total)
	case "llm_cache_read_tokens", "llmCacheReadTokens", "cached_prompt_tokens", "cachedPromptTokens", "prompt_cached_tokens",
		"promptCachedTokens", "input_cached_tokens", "inputCachedTokens", "cache_read_input_tokens", "cacheReadInputTokens",
		"cached_tokens", "cachedTokens":
		p.amount(&m.cache)
	case "provider", "model_provider", "modelProvider":
		p.label(&m.provider)
	case "model", "model_name", "modelName":
		p.label(&m.model)
	case "llm_metadata", "llmMetadata", "prompt_tokens_details", "promptTokensDetails", "input_tokens_details", "inputTokensDetails":
		if p.kind() != '{' {
			p.value()
			return
		}
		p.object(func(key []byte) {
			switch string(key) {
			case "model_provider", "modelProvider", "provider":
				p.label(&m.provider)
			case "model_name", "modelName", "model":
				p.label(&m.model)
			case "cached_tokens", "cachedTokens":
				p.amount(&m.cache)
			default:
				p.value()
			}
		})
	default:
		p.value()
	}
}

// amount reads a measurement, keeping what is there when the value is not a number or is negative: SDKs write -1 for
// "not measured".
func (p *parser) amount(to *float64) {
	if f, ok := p.number(); ok && f >= 0 {
		*to = f
	}
}

func (p *parser) label(to *string) {
	if s, ok := p.string(); ok && len(s) > 0 && len(s) <= MaxIdentifier {
		*to = p.name(s)
	}
}

// merged takes each measurement from the first place that has it.
func (ev *event) merged() measures {
	m := ev.at[0]
	for _, o := range ev.at[1:] {
		for _, f := range [...]struct {
			to   *float64
			from float64
		}{{&m.ttft, o.ttft}, {&m.ttfb, o.ttfb}, {&m.prompt, o.prompt}, {&m.completion, o.completion}, {&m.total, o.total}, {&m.cache, o.cache}} {
			if *f.to < 0 {
				*f.to = f.from
			}
		}
		if m.provider == "" {
			m.provider = o.provider
		}
		if m.model == "" {
			m.model = o.model
		}
	}
	return m
}

// Implausible numbers are not counted, so that one of them cannot spoil or overflow an aggregate.
const (
	maxLatency = 86_400        // seconds: a day
	maxTokens  = 1_000_000_000 // of one message or usage event
	maxModels  = 50            // told apart in one case; the tokens of further ones count under an unnamed model
)

// appendSample adds a measurement in seconds to samples in milliseconds.
func appendSample(ms []float64, seconds float64) []float64 {
	if seconds < 0 || seconds > maxLatency {
		return ms
	}
	return append(ms, math.Round(seconds*1e6)/1e3)
}

// appendUsage adds the tokens of one message or usage event to the usage of its model.
func appendUsage(usage []ModelUsage, m measures) []ModelUsage {
	if m.prompt < 0 && m.completion < 0 && m.total < 0 {
		return usage
	}
	t := Tokens{Prompt: tokens(m.prompt), Completion: tokens(m.completion), Total: tokens(m.total), Cached: tokens(m.cache)}
	if m.prompt < 0 {
		t.Prompt = max(0, t.Total-t.Completion)
	}
	if m.total < 0 {
		t.Total = t.Prompt + t.Completion
	}
	t.Cached = min(t.Cached, t.Prompt) // it is a part of the prompt
	i := slices.IndexFunc(usage, func(u ModelUsage) bool { return u.Provider == m.provider && u.Model == m.model })
	if i < 0 && len(usage) >= maxModels {
		m.provider, m.model = "", ""
		i = slices.IndexFunc(usage, func(u ModelUsage) bool { return u.Provider == "" && u.Model == "" })
	}
	if i < 0 {
		return append(usage, ModelUsage{Provider: m.provider, Model: m.model, Tokens: t})
	}
	usage[i].Tokens.add(t)
	return usage
}

func tokens(f float64) int64 {
	if f < 0 || f > maxTokens {
		return 0
	}
	return int64(f)
}

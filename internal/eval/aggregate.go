package eval

import (
	"math"
	"slices"

	"sidetone/internal/stat"
)

// RunAggregate is what is computed from all cases of a run.
type RunAggregate struct {
	Tally
	Metrics
}

// Tally counts cases by outcome.
type Tally struct {
	Total    int      `json:"total"`
	Passed   int      `json:"passed" doc:"Cases that passed and that no judge failed"`
	Failed   int      `json:"failed" doc:"Cases that failed, or passed although a judge failed them"`
	Errored  int      `json:"errored"`
	Skipped  int      `json:"skipped"`
	PassRate *float64 `json:"pass_rate" doc:"passed / (total - skipped); null when nothing ran"`
}

// Metrics are the measurements of a case, or of all cases of a run together. Percentiles are nearest-rank over all
// samples; null without a sample.
type Metrics struct {
	TTFTP50MS *int64 `json:"ttft_p50_ms" doc:"LLM time to first token, ms"`
	TTFTP95MS *int64 `json:"ttft_p95_ms"`
	TTFTAvgMS *int64 `json:"ttft_avg_ms"`
	TTFBP50MS *int64 `json:"ttfb_p50_ms" doc:"TTS time to first byte, ms"`
	TTFBP95MS *int64 `json:"ttfb_p95_ms"`
	TTFBAvgMS *int64 `json:"ttfb_avg_ms"`

	TurnCount         int `json:"turn_count" doc:"Assistant messages"`
	ToolCallCount     int `json:"tool_call_count"`
	InterruptionCount int `json:"interruption_count"`
	AgentHandoffCount int `json:"agent_handoff_count"`
	TTFTSampleCount   int `json:"ttft_sample_count"`

	PromptTokens       int64    `json:"prompt_tokens"`
	CompletionTokens   int64    `json:"completion_tokens"`
	TotalTokens        int64    `json:"total_tokens"`
	CachedPromptTokens int64    `json:"cached_prompt_tokens" doc:"Part of prompt_tokens"`
	EstimatedCostUSD   *float64 `json:"estimated_cost_usd" doc:"null when no tokens were reported or a model has no known price"`
}

// Metrics are the measurements of this one case.
func (c *CaseSummary) Metrics() Metrics {
	m := Metrics{
		TurnCount: c.TurnCount, ToolCallCount: c.ToolCallCount, InterruptionCount: c.InterruptionCount,
		AgentHandoffCount: c.AgentHandoffCount, TTFTSampleCount: len(c.TTFT),
		PromptTokens: c.Tokens.Prompt, CompletionTokens: c.Tokens.Completion, TotalTokens: c.Tokens.Total,
		CachedPromptTokens: c.Tokens.Cached, EstimatedCostUSD: c.CostUSD,
	}
	m.TTFTP50MS, m.TTFTP95MS, m.TTFTAvgMS = distribution(slices.Clone(c.TTFT))
	m.TTFBP50MS, m.TTFBP95MS, m.TTFBAvgMS = distribution(slices.Clone(c.TTFB))
	return m
}

// Aggregate computes a run from all its cases. The order of the cases does not matter, except for the last bits of the
// cost.
func Aggregate(cases []CaseSummary) RunAggregate {
	a := RunAggregate{Tally: tally(cases)}
	var ttft, ttfb []float64
	var sum CaseSummary
	cost, priced, unpriced := 0.0, false, false
	for i := range cases {
		c := &cases[i]
		sum.TurnCount += c.TurnCount
		sum.ToolCallCount += c.ToolCallCount
		sum.InterruptionCount += c.InterruptionCount
		sum.AgentHandoffCount += c.AgentHandoffCount
		sum.Tokens.add(c.Tokens)
		ttft, ttfb = append(ttft, c.TTFT...), append(ttfb, c.TTFB...)
		if c.CostUSD != nil {
			cost, priced = cost+*c.CostUSD, true
		} else if c.Tokens != (Tokens{}) {
			unpriced = true
		}
	}
	sum.TTFT, sum.TTFB = ttft, ttfb
	if priced && !unpriced {
		cost = stat.Round(cost, 9) // as each case is: sums of doubles end in noise
		sum.CostUSD = &cost
	}
	a.Metrics = sum.Metrics()
	return a
}

func tally(cases []CaseSummary) Tally {
	t := Tally{Total: len(cases)}
	for i := range cases {
		switch cases[i].Outcome() {
		case CasePassed:
			t.Passed++
		case CaseErrored:
			t.Errored++
		case CaseSkipped:
			t.Skipped++
		default:
			t.Failed++
		}
	}
	if rate, ok := stat.Rate(t.Passed, t.Total-t.Skipped); ok {
		t.PassRate = &rate
	}
	return t
}

// distribution sorts samples and gives p50, p95 and average, rounded to whole milliseconds; all nil without samples.
func distribution(ms []float64) (p50, p95, avg *int64) {
	d, ok := stat.Describe(ms)
	if !ok {
		return nil, nil, nil
	}
	return rounded(d.P50), rounded(d.P95), rounded(d.Avg)
}

func rounded(f float64) *int64 {
	n := int64(math.Round(f))
	return &n
}

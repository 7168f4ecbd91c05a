package alert

import (
	"testing"
	"time"
)

func TestEvaluate(t *testing.T) {
	rate := func(edit func(*Rule)) *Rule {
		r := defaults()
		r.Metric, r.Threshold, r.WindowMinutes, r.MinSamples = OutcomeFailRate, 0.3, 15, 10
		if edit != nil {
			edit(&r)
		}
		return &r
	}
	latency := func(r *Rule) { r.Metric, r.Threshold = LatencySTT, 800 }
	for _, c := range []struct {
		name   string
		rule   *Rule
		counts Counts
		want   Reason // "" fires
	}{
		{"above", rate(nil), Counts{Observations: 10, Matched: 4}, ""},
		{"exactly at the threshold", rate(nil), Counts{Observations: 10, Matched: 3}, BelowThreshold},
		{"one above in a large window", rate(nil), Counts{Observations: 1_000_000, Matched: 300_001}, ""},
		{"exactly at it in a large window", rate(nil), Counts{Observations: 1_000_000, Matched: 300_000}, BelowThreshold},
		{"one sample short", rate(nil), Counts{Observations: 9, Matched: 9}, TooFewSamples},
		{"nothing observed", rate(nil), Counts{}, NoData},
		{"all of them, threshold 1", rate(func(r *Rule) { r.Threshold = 1 }), Counts{Observations: 10, Matched: 10}, BelowThreshold},
		{"disabled", rate(func(r *Rule) { r.Enabled = false }), Counts{Observations: 10, Matched: 10}, Disabled},
		{"latency above", rate(latency), Counts{Observations: 10, P95: 800.001}, ""},
		{"latency at the threshold", rate(latency), Counts{Observations: 10, P95: 800}, BelowThreshold},
		{"latency, one sample short", rate(latency), Counts{Observations: 9, P95: 900}, TooFewSamples},
		{"fired a moment ago", rate(func(r *Rule) { r.LastFiredAt = noon.Add(-time.Second) }), Counts{Observations: 10, Matched: 10}, Suppressed},
		{"fired a microsecond less than a window ago", rate(func(r *Rule) { r.LastFiredAt = noon.Add(-15*time.Minute + time.Microsecond) }), Counts{Observations: 10, Matched: 10}, Suppressed},
		{"fired one window ago", rate(func(r *Rule) { r.LastFiredAt = noon.Add(-15 * time.Minute) }), Counts{Observations: 10, Matched: 10}, ""},
	} {
		d := Evaluate(c.rule, c.counts, noon)
		if d.Fires != (c.want == "") || d.Reason != c.want {
			t.Errorf("%s: %+v, want reason %q", c.name, d, c.want)
		}
	}
}

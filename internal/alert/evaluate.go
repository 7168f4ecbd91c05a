package alert

import "time"

// Reason says why a rule did not fire at a tick.
type Reason string

// The reasons, in the order in which they are looked at. A rule that fires has none.
const (
	Disabled       Reason = "disabled"
	Suppressed     Reason = "suppressed"      // it fired less than one window ago
	NoData         Reason = "no_data"         // nothing was observed in the window
	TooFewSamples  Reason = "too_few_samples" // fewer observations than min_samples
	BelowThreshold Reason = "below_threshold" // the value is not strictly greater than the threshold
	Failed         Reason = "error"           // it could not be measured, or its firing not be stored
)

// Counts is what a window holds for one rule.
type Counts struct {
	// Observations are verdicts, outcomes, assistant turns, or turns with the measured latency.
	Observations int64
	// Matched are, for rates, the observations that count against: failed or interrupted.
	Matched int64
	// P95 is, for latencies, the nearest-rank 95th percentile in ms.
	P95 float64
}

// Decision is what a tick decides about one rule.
type Decision struct {
	Fires  bool
	Reason Reason  // why not; "" when it fires
	Value  float64 // the measured value; meaningless without observations
}

// Skips reports whether a rule is not measured at all at now, and why.
func Skips(r *Rule, now time.Time) (Reason, bool) {
	switch {
	case !r.Enabled:
		return Disabled, true
	case r.Suppressed(now):
		return Suppressed, true
	}
	return "", false
}

// Value is the measured value: a fraction for rates, ms for latencies; 0 without observations.
func (c Counts) Value(m Metric) float64 {
	switch {
	case c.Observations == 0:
		return 0
	case m.IsLatency():
		return c.P95
	}
	return float64(c.Matched) / float64(c.Observations)
}

// Evaluate decides whether a rule fires at now, given what its window holds. It is the only place that knows the rule of
// firing (spec, Evaluation rules): enabled, not suppressed, enough observations, strictly greater.
func Evaluate(r *Rule, c Counts, now time.Time) Decision {
	d := Decision{Value: c.Value(r.Metric)}
	reason, skip := Skips(r, now)
	switch {
	case skip:
		d.Reason = reason
	case c.Observations == 0:
		d.Reason = NoData
	case c.Observations < int64(r.MinSamples):
		d.Reason = TooFewSamples
	case !(d.Value > r.Threshold):
		d.Reason = BelowThreshold
	default:
		d.Fires = true
	}
	return d
}

package alert

import (
	"time"

	"sidetone/internal/stamp"
	"sidetone/internal/webhook"
)

// MaxSampleSessions bounds the sample sessions of a firing (spec, Limits).
const MaxSampleSessions = 20

// Firing is one occurrence of a rule crossing its threshold, with the state of its delivery.
type Firing struct {
	ID               string
	RuleID           string
	WindowStart      time.Time
	WindowEnd        time.Time
	MatchedCount     int64  // rates: the numerator; latencies: the measured turns in the window
	TotalCount       *int64 // rates: the denominator; latencies: nil
	ObservedValue    float64
	SampleSessionIDs []string
	Payload          []byte // the body of every delivery attempt

	Status         webhook.Status
	AttemptCount   int
	AttemptBase    int // attempts before the last redelivery
	NextAttemptAt  time.Time
	LastAttemptAt  time.Time // zero before the first attempt
	ResponseStatus int       // of the last attempt; 0 when no response came
	LastError      string
	CreatedAt      time.Time // when it fired
	UpdatedAt      time.Time
}

// newFiring is the firing of r at now, due for delivery at once.
func newFiring(r *Rule, c Counts, samples []string, now time.Time) (Firing, error) {
	if samples == nil {
		samples = []string{}
	}
	f := Firing{
		ID: webhook.NewID(), RuleID: r.ID,
		WindowStart: now.Add(-r.Window()), WindowEnd: now,
		MatchedCount: c.Matched, TotalCount: &c.Observations,
		ObservedValue: c.Value(r.Metric), SampleSessionIDs: samples,
		Status: webhook.Pending, NextAttemptAt: now, CreatedAt: now, UpdatedAt: now,
	}
	if r.Metric.IsLatency() {
		f.MatchedCount, f.TotalCount = c.Observations, nil
	}
	var err error
	f.Payload, err = webhook.Triggered{
		FiringID: f.ID,
		Rule: webhook.TriggeredRule{ID: r.ID, Name: r.Name, Metric: string(r.Metric), JudgeName: orNull(r.JudgeName),
			ThresholdValue: r.Threshold, WindowMinutes: r.WindowMinutes},
		Window:       webhook.Window{Start: stamp.Of(f.WindowStart), End: stamp.Of(f.WindowEnd)},
		MatchedCount: f.MatchedCount, TotalCount: f.TotalCount, ObservedValue: f.ObservedValue,
		AgentID: orNull(r.AgentID), AccountID: orNull(r.AccountID),
		SampleSessionIDs: samples, FiredAt: stamp.Of(now),
	}.Body()
	return f, err
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

package httpapi

import (
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/stamp"
	"sidetone/internal/webhook"
)

// ruleFields are the fields of a rule that a client sets.
type ruleFields struct {
	Name           string            `json:"name" minLength:"1" maxLength:"200"`
	Enabled        bool              `json:"enabled,omitempty" default:"true" doc:"Disabled rules are never evaluated"`
	Metric         string            `json:"metric" enum:"eval_fail_rate,outcome_fail_rate,interruption_rate,latency_perceived_p95,latency_llm_ttft_p95,latency_tts_ttfb_p95,latency_stt_p95"`
	ThresholdValue float64           `json:"threshold_value" doc:"Above 0: a fraction for rates (0.3 is 30 %), milliseconds for latencies. Fires strictly above it"`
	WindowMinutes  int               `json:"window_minutes" minimum:"15" doc:"How far back each evaluation looks, and how long the rule is silent after it fired"`
	MinSamples     int               `json:"min_samples,omitempty" default:"1" doc:"Observations the window must hold"`
	AgentID        *string           `json:"agent_id" required:"false" maxLength:"512" doc:"null: all agents"`
	AccountID      *string           `json:"account_id" required:"false" maxLength:"512" doc:"null: all accounts"`
	JudgeName      *string           `json:"judge_name" required:"false" maxLength:"512" doc:"Only with eval_fail_rate; null: all judges"`
	EvalSource     string            `json:"eval_source,omitempty" enum:"all,sessions,runs" default:"all" doc:"Whose verdicts eval_fail_rate counts"`
	WebhookURL     string            `json:"webhook_url" format:"uri" maxLength:"2048" doc:"http or https"`
	HTTPMethod     string            `json:"http_method,omitempty" enum:"POST,PUT,PATCH" default:"POST"`
	Secret         *string           `json:"secret" required:"false" writeOnly:"true" maxLength:"1024" doc:"Signs deliveries; a whsec_ secret adds the Standard Webhooks headers"`
	Headers        map[string]string `json:"headers" required:"false" nullable:"true" doc:"Extra headers of every delivery, at most 50"`
}

// RuleView is a rule as the API shows it: never its secret.
type RuleView struct {
	ID              string            `json:"id" format:"uuid"`
	Name            string            `json:"name"`
	Enabled         bool              `json:"enabled"`
	Metric          string            `json:"metric"`
	ThresholdValue  float64           `json:"threshold_value" doc:"A fraction for rates, milliseconds for latencies"`
	WindowMinutes   int               `json:"window_minutes"`
	MinSamples      int               `json:"min_samples"`
	AgentID         *string           `json:"agent_id"`
	AccountID       *string           `json:"account_id"`
	JudgeName       *string           `json:"judge_name"`
	EvalSource      string            `json:"eval_source" enum:"all,sessions,runs"`
	WebhookURL      string            `json:"webhook_url"`
	HTTPMethod      string            `json:"http_method"`
	Headers         map[string]string `json:"headers" nullable:"true"`
	HasSecret       bool              `json:"has_secret"`
	LastFiredAt     *stamp.Time       `json:"last_fired_at"`
	SuppressedUntil *stamp.Time       `json:"suppressed_until" doc:"null when the rule may fire now"`
	LastValue       *float64          `json:"last_value" doc:"Of the last evaluation, in the unit of the metric; null when nothing was observed"`
	LastSamples     int64             `json:"last_samples" doc:"Observations in the window of the last evaluation"`
	LastReason      *string           `json:"last_reason" doc:"Why the last evaluation did not fire: below_threshold, too_few_samples, suppressed, disabled, no_data, error; null when it fired or was never made"`
	LastEvaluatedAt *stamp.Time       `json:"last_evaluated_at"`
	CreatedAt       stamp.Time        `json:"created_at"`
	UpdatedAt       stamp.Time        `json:"updated_at"`
}

func viewRule(r *alert.Rule, now time.Time) RuleView {
	v := RuleView{ID: r.ID, Name: r.Name, Enabled: r.Enabled, Metric: string(r.Metric), ThresholdValue: r.Threshold,
		WindowMinutes: r.WindowMinutes, MinSamples: r.MinSamples, AgentID: orNull(r.AgentID), AccountID: orNull(r.AccountID),
		JudgeName: orNull(r.JudgeName), EvalSource: r.EvalSource, WebhookURL: r.WebhookURL, HTTPMethod: r.HTTPMethod,
		Headers: r.Headers, HasSecret: r.Secret != "", LastFiredAt: stamp.Ptr(r.LastFiredAt),
		LastValue: r.Status.Value, LastSamples: r.Status.Samples, LastReason: orNull(string(r.Status.Reason)),
		LastEvaluatedAt: stamp.Ptr(r.Status.EvaluatedAt), CreatedAt: stamp.Of(r.CreatedAt), UpdatedAt: stamp.Of(r.UpdatedAt)}
	if r.Suppressed(now) {
		v.SuppressedUntil = stamp.Ptr(r.SuppressedUntil())
	}
	return v
}

func metricNames() []string {
	names := make([]string, len(alert.Metrics))
	for i, m := range alert.Metrics {
		names[i] = string(m)
	}
	return names
}

type FiringView struct {
	ID               string      `json:"id" format:"uuid"`
	RuleID           string      `json:"rule_id" format:"uuid"`
	WindowStart      stamp.Time  `json:"window_start"`
	WindowEnd        stamp.Time  `json:"window_end"`
	MatchedCount     int64       `json:"matched_count" doc:"Rates: the numerator; latencies: the turns in the window"`
	TotalCount       *int64      `json:"total_count" doc:"Rates: the denominator; latencies: null"`
	ObservedValue    float64     `json:"observed_value"`
	SampleSessionIDs []string    `json:"sample_session_ids"`
	Status           string      `json:"status" enum:"pending,delivered,failed"`
	AttemptCount     int         `json:"attempt_count"`
	NextAttemptAt    *stamp.Time `json:"next_attempt_at" doc:"null unless pending"`
	LastAttemptAt    *stamp.Time `json:"last_attempt_at"`
	ResponseStatus   *int        `json:"response_status"`
	LastError        *string     `json:"last_error"`
	CreatedAt        stamp.Time  `json:"created_at"`
	UpdatedAt        stamp.Time  `json:"updated_at"`
}

func viewFiring(f *alert.Firing) FiringView {
	v := FiringView{ID: f.ID, RuleID: f.RuleID, WindowStart: stamp.Of(f.WindowStart), WindowEnd: stamp.Of(f.WindowEnd),
		MatchedCount: f.MatchedCount, TotalCount: f.TotalCount, ObservedValue: f.ObservedValue, SampleSessionIDs: f.SampleSessionIDs,
		Status: string(f.Status), AttemptCount: f.AttemptCount, LastAttemptAt: stamp.Ptr(f.LastAttemptAt),
		ResponseStatus: statusOrNull(f.ResponseStatus), LastError: orNull(f.LastError), CreatedAt: stamp.Of(f.CreatedAt), UpdatedAt: stamp.Of(f.UpdatedAt)}
	if v.SampleSessionIDs == nil {
		v.SampleSessionIDs = []string{}
	}
	if f.Status == webhook.Pending {
		v.NextAttemptAt = stamp.Ptr(f.NextAttemptAt)
	}
	return v
}

type attemptView struct {
	ID             string     `json:"id" format:"uuid"`
	RuleID         string     `json:"rule_id" format:"uuid"`
	RuleName       string     `json:"rule_name"`
	FiringID       *string    `json:"firing_id" doc:"null for a test"`
	Kind           string     `json:"kind" enum:"firing,test"`
	URL            string     `json:"url"`
	HTTPMethod     string     `json:"http_method"`
	AttemptNumber  int        `json:"attempt_number"`
	OK             bool       `json:"ok"`
	ResponseStatus *int       `json:"response_status" doc:"null when no response came"`
	Error          *string    `json:"error"`
	DurationMS     int64      `json:"duration_ms"`
	CreatedAt      stamp.Time `json:"created_at"`
}

func viewAttempt(a *webhook.Attempt) attemptView {
	return attemptView{ID: a.ID, RuleID: a.RuleID, RuleName: a.RuleName, FiringID: orNull(a.FiringID), Kind: string(a.Kind),
		URL: a.URL, HTTPMethod: a.Method, AttemptNumber: a.Number, OK: a.OK, ResponseStatus: statusOrNull(a.ResponseStatus),
		Error: orNull(a.Error), DurationMS: a.Duration.Milliseconds(), CreatedAt: stamp.Of(a.CreatedAt)}
}

type PreviewView struct {
	From        stamp.Time     `json:"from"`
	To          stamp.Time     `json:"to"`
	StepSeconds int64          `json:"step_seconds"`
	Points      []previewPoint `json:"points"`
	FiredAt     []stamp.Time   `json:"fired_at" doc:"When the rule would have fired, at the resolution of the step"`
}

type previewPoint struct {
	At      stamp.Time `json:"at"`
	Value   *float64   `json:"value" doc:"Of the window that ends here; null when nothing was observed"`
	Samples int64      `json:"samples"`
	Reason  *string    `json:"reason" doc:"Why it would not have fired; null when it would"`
}

func viewPreview(p *alert.Preview) PreviewView {
	v := PreviewView{From: stamp.Of(p.From), To: stamp.Of(p.To), StepSeconds: int64(p.Step / time.Second),
		Points: make([]previewPoint, len(p.Points)), FiredAt: make([]stamp.Time, len(p.Fired))}
	for i, pt := range p.Points {
		v.Points[i] = previewPoint{stamp.Of(pt.At), pt.Value, pt.Samples, orNull(string(pt.Reason))}
	}
	for i, at := range p.Fired {
		v.FiredAt[i] = stamp.Of(at)
	}
	return v
}

type StatsView struct {
	Range          string        `json:"range" enum:"24h,7d,30d"`
	TotalAttempts  int           `json:"total_attempts"`
	Accepted       int           `json:"accepted" doc:"Answered 2xx"`
	AcceptanceRate *float64      `json:"acceptance_rate" doc:"null without attempts"`
	AvgDurationMS  *int64        `json:"avg_duration_ms" doc:"null without attempts"`
	Buckets        []statsBucket `json:"buckets"`
	RuleBreakdown  []statsRule   `json:"rule_breakdown"`
}

type statsBucket struct {
	BucketStart stamp.Time `json:"bucket_start"`
	Attempts    int        `json:"attempts"`
	Accepted    int        `json:"accepted"`
}

type statsRule struct {
	RuleID   string `json:"rule_id"`
	RuleName string `json:"rule_name"`
	Attempts int    `json:"attempts"`
	Accepted int    `json:"accepted"`
}

func viewStats(name string, s *alert.AttemptStats) StatsView {
	v := StatsView{Range: name, TotalAttempts: s.Attempts, Accepted: s.Accepted,
		Buckets: make([]statsBucket, len(s.Buckets)), RuleBreakdown: make([]statsRule, len(s.Rules))}
	if s.Attempts > 0 {
		rate, ms := float64(s.Accepted)/float64(s.Attempts), s.AvgDuration.Milliseconds()
		v.AcceptanceRate, v.AvgDurationMS = &rate, &ms
	}
	for i, b := range s.Buckets {
		v.Buckets[i] = statsBucket{stamp.Of(b.Start), b.Attempts, b.Accepted}
	}
	for i, r := range s.Rules {
		v.RuleBreakdown[i] = statsRule{r.RuleID, r.RuleName, r.Attempts, r.Accepted}
	}
	return v
}

func statusOrNull(status int) *int {
	if status == 0 {
		return nil
	}
	return &status
}

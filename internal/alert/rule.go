// Package alert is the domain of alerting: rules and their validation, the measuring of windows, the decision whether a
// rule fires, and the sweeper that does so for all rules at once. It knows neither SQL nor HTTP.
package alert

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sidetone/internal/errs"
	"sidetone/internal/webhook"
)

// Metric is what a rule measures.
type Metric string

// The metrics (spec, Metrics). Rates are fractions from 0 to 1, latencies milliseconds.
const (
	EvalFailRate     Metric = "eval_fail_rate"
	OutcomeFailRate  Metric = "outcome_fail_rate"
	InterruptionRate Metric = "interruption_rate"
	LatencyPerceived Metric = "latency_perceived_p95"
	LatencyTTFT      Metric = "latency_llm_ttft_p95"
	LatencyTTFB      Metric = "latency_tts_ttfb_p95"
	LatencySTT       Metric = "latency_stt_p95"
)

// Metrics lists all metrics, in the order of the spec.
var Metrics = []Metric{EvalFailRate, OutcomeFailRate, InterruptionRate, LatencyPerceived, LatencyTTFT, LatencyTTFB, LatencySTT}

// IsLatency reports whether the metric is a p95 in milliseconds rather than a rate.
func (m Metric) IsLatency() bool { return m.latency() >= 0 }

// latency is the index of the metric's list among the packed samples of a session, -1 for a rate.
func (m Metric) latency() int {
	switch m {
	case LatencyPerceived:
		return 0
	case LatencyTTFT:
		return 1
	case LatencyTTFB:
		return 2
	case LatencySTT:
		return 3
	}
	return -1
}

func (m Metric) known() bool {
	for _, k := range Metrics {
		if m == k {
			return true
		}
	}
	return false
}

// Where the verdicts come from that an eval_fail_rate rule counts.
const (
	SourceAll      = "all"
	SourceSessions = "sessions" // evaluations of sessions
	SourceRuns     = "runs"     // judgments of eval runs
)

// Limits of a rule (spec, Limits; api.md, Alerts).
const (
	MaxName          = 200
	MinWindowMinutes = 15
	// MaxWindowMinutes is one year. The spec names no maximum; without one a single rule could make every tick hold all
	// of history in memory.
	MaxWindowMinutes = 366 * 24 * 60
	MaxMinSamples    = 1_000_000_000
	MaxID            = 512
	MaxURL           = 2048
	MaxSecret        = 1024
	MaxHeaders       = 50
	MaxHeaderName    = 256
	MaxHeaderValue   = 8192
)

// Rule is one alert rule. The zero value of an optional field means null.
type Rule struct {
	ID            string
	Name          string
	Enabled       bool
	Metric        Metric
	Threshold     float64 // a fraction for rates, ms for latencies
	WindowMinutes int     // also the length of the suppression
	MinSamples    int
	AgentID       string // "" for all agents
	AccountID     string // "" for all accounts
	JudgeName     string // "" for all judges
	EvalSource    string // SourceAll, SourceSessions or SourceRuns
	WebhookURL    string
	HTTPMethod    string
	Secret        string            // "" when deliveries are not signed; never shown
	Headers       map[string]string // nil when none

	CreatedAt   time.Time
	UpdatedAt   time.Time // of the last create or PATCH; firing does not change it
	LastFiredAt time.Time // the stamp; zero when it never fired
	Status      Status    // of the last tick
}

// Status is what the last tick found out about a rule.
type Status struct {
	RuleID      string
	Value       *float64 // nil when nothing was observed; in the unit of the metric
	Samples     int64    // observations in the window
	Reason      Reason   // why it did not fire; "" when it did
	EvaluatedAt time.Time
}

// Window is the length of what is measured and of the suppression.
func (r *Rule) Window() time.Duration { return time.Duration(r.WindowMinutes) * time.Minute }

// SuppressedUntil is when the rule may fire again: one window after the stamp. Zero when it never fired.
func (r *Rule) SuppressedUntil() time.Time {
	if r.LastFiredAt.IsZero() {
		return time.Time{}
	}
	return r.LastFiredAt.Add(r.Window())
}

// Suppressed reports whether the rule fired less than one window before now.
func (r *Rule) Suppressed(now time.Time) bool { return now.Before(r.SuppressedUntil()) }

// Target is where the rule's webhooks go.
func (r *Rule) Target() webhook.Target {
	return webhook.Target{URL: r.WebhookURL, Method: r.HTTPMethod, Secret: r.Secret, Headers: r.Headers}
}

// problems collects violated rules, at most one per field, so that a value of the wrong type is not also out of range.
type problems struct {
	fields []errs.Field
	seen   map[string]bool
}

func (p *problems) add(field, format string, args ...any) {
	if p.seen[field] {
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[field] = true
	p.fields = append(p.fields, errs.Field{Field: field, Message: fmt.Sprintf(format, args...)})
}

// check adds every rule that r violates.
func (r *Rule) check(p *problems) {
	r.checkMeasure(p)
	checkText(p, "name", r.Name, MaxName, "required: 1 to %d characters")
	switch {
	case r.WebhookURL == "":
		p.add("webhook_url", "required: an http or https URL")
	default:
		if why := badURL(r.WebhookURL); why != "" {
			p.add("webhook_url", "%s", why)
		}
	}
	switch r.HTTPMethod {
	case "POST", "PUT", "PATCH":
	default:
		p.add("http_method", "must be POST, PUT or PATCH")
	}
	if r.Secret != "" {
		checkText(p, "secret", r.Secret, MaxSecret, "must be 1 to %d characters, or null")
		if _, ok := webhook.StandardKey(r.Secret); !ok && strings.HasPrefix(r.Secret, webhook.StandardPrefix) {
			p.add("secret", "a secret that starts with %s must go on with the key in base64", webhook.StandardPrefix)
		}
	}
	checkHeaders(p, r.Headers)
}

// checkMeasure adds the violated rules among the fields that say what is measured and when it fires.
func (r *Rule) checkMeasure(p *problems) {
	if !r.Metric.known() {
		p.add("metric", "required: one of %s", metricList())
	}
	switch {
	case !(r.Threshold > 0) || math.IsInf(r.Threshold, 0):
		p.add("threshold_value", "required: a number greater than 0")
	case r.Metric.known() && !r.Metric.IsLatency() && r.Threshold > 1:
		p.add("threshold_value", "rate thresholds are fractions: use 0.3 for 30%%")
	}
	if r.WindowMinutes < MinWindowMinutes || r.WindowMinutes > MaxWindowMinutes {
		p.add("window_minutes", "required: an integer from %d to %d", MinWindowMinutes, MaxWindowMinutes)
	}
	if r.MinSamples < 1 || r.MinSamples > MaxMinSamples {
		p.add("min_samples", "must be an integer from 1 to %d", MaxMinSamples)
	}
	const orNull = "must be 1 to %d characters, or null"
	if r.AgentID != "" {
		checkText(p, "agent_id", r.AgentID, MaxID, orNull)
	}
	if r.AccountID != "" {
		checkText(p, "account_id", r.AccountID, MaxID, orNull)
	}
	if r.JudgeName != "" {
		checkText(p, "judge_name", r.JudgeName, MaxID, orNull)
		if r.Metric.known() && r.Metric != EvalFailRate {
			p.add("judge_name", "is only allowed when metric is %s; set it to null", EvalFailRate)
		}
	}
	switch r.EvalSource {
	case SourceAll:
	case SourceSessions, SourceRuns:
		if r.Metric.known() && r.Metric != EvalFailRate {
			p.add("eval_source", "is only allowed when metric is %s; set it to null", EvalFailRate)
		}
	default:
		p.add("eval_source", "must be %s, %s or %s", SourceAll, SourceSessions, SourceRuns)
	}
}

func metricList() string {
	names := make([]string, len(Metrics))
	for i, m := range Metrics {
		names[i] = string(m)
	}
	return strings.Join(names, ", ")
}

// checkText holds a text to a length in characters and to what every database can store.
func checkText(p *problems, field, s string, most int, rule string) {
	if n := utf8.RuneCountInString(s); n < 1 || n > most {
		p.add(field, rule, most)
	}
	if strings.ContainsRune(s, 0) {
		p.add(field, "must not contain the NUL character")
	}
}

// badURL says what is wrong with a webhook URL, "" when nothing is.
func badURL(s string) string {
	if utf8.RuneCountInString(s) > MaxURL {
		return fmt.Sprintf("must be at most %d characters", MaxURL)
	}
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "must be an http or https URL, such as https://example.com/hook"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "the port must be from 1 to 65535"
		}
	}
	return ""
}

// ownHeaders are the names a rule cannot set: HTTP itself needs them (api.md, Alerts). The prefix x-alert- is ours too.
var ownHeaders = []string{"host", "content-length", "transfer-encoding", "connection"}

func checkHeaders(p *problems, headers map[string]string) {
	if len(headers) > MaxHeaders {
		p.add("headers", "at most %d headers are allowed", MaxHeaders)
		return
	}
	lower := make(map[string]bool, len(headers))
	for _, name := range sortedKeys(headers) {
		field := "headers." + name
		key := strings.ToLower(name)
		switch {
		case !isToken(name):
			p.add(field, "is not a legal header name: letters, digits and !#$%%&'*+-.^_`|~, at most %d", MaxHeaderName)
		case strings.HasPrefix(key, "x-alert-"), contains(ownHeaders, key):
			p.add(field, "is set by the server and cannot be changed")
		case lower[key]:
			p.add(field, "is given twice: header names do not distinguish case")
		case !isHeaderValue(headers[name]):
			p.add(field, "the value must be printable text without line breaks, at most %d bytes", MaxHeaderValue)
		}
		lower[key] = true
	}
}

// isToken reports whether s is a header name as RFC 9110 5.1 defines it.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != "" && len(s) <= MaxHeaderName
}

// isHeaderValue reports whether s has no control characters but tabs (RFC 9110 5.5).
func isHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return len(s) <= MaxHeaderValue
}

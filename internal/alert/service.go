package alert

import (
	"context"
	"regexp"
	"strings"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/stat"
	"sidetone/internal/webhook"
)

// Page selects a slice of a list.
type Page struct{ Limit, Offset int }

// RuleFilter selects rules; zero fields do not filter. All are combined with AND.
type RuleFilter struct {
	AgentID, AccountID string
	Enabled            *bool
	Metric             Metric
}

// AttemptFilter selects attempts; zero fields do not filter. All are combined with AND.
type AttemptFilter struct {
	RuleID, FiringID string
	OK               *bool
	Kind             webhook.Kind
}

// AttemptCount is a number of attempts and how many of them the receiver accepted.
type AttemptCount struct{ Attempts, Accepted int }

// RuleAttempts is the attempts of one rule.
type RuleAttempts struct {
	RuleID, RuleName string
	AttemptCount
}

// BucketAttempts is the attempts that began in one stretch of time.
type BucketAttempts struct {
	Start time.Time
	AttemptCount
}

// AttemptStats sums up the attempts of a time range, tests included.
type AttemptStats struct {
	AttemptCount
	AvgDuration time.Duration    // 0 without attempts
	Buckets     []BucketAttempts // only those with attempts, oldest first
	Rules       []RuleAttempts   // most attempts first, ties by id
}

// Queue is the state of deliveries at a moment.
type Queue struct {
	Pending   int       // not delivered and not failed, under way or waiting
	Retrying  int       // of these, those with at least one failed attempt
	OldestDue time.Time // next_attempt_at of the delivery that is due for longest; zero when none is due
}

// Store keeps rules, firings and attempts. Every method owns its transaction. Errors are of the kinds of package errs:
// Unavailable when the database is away, NotFound for an unknown id.
type Store interface {
	webhook.Store
	SweepStore

	CreateRule(ctx context.Context, r Rule) error
	Rule(ctx context.Context, id string) (Rule, error)
	// Rules lists rules, newest first, ties by id.
	Rules(ctx context.Context, f RuleFilter, p Page) (rules []Rule, total int, err error)
	// UpdateRule replaces the fields a client can set by what edit makes of the stored rule, under a lock on the row.
	// Stamp and status are not written. An error of edit is returned as it is and changes nothing.
	UpdateRule(ctx context.Context, id string, edit func(Rule) (Rule, error)) (Rule, error)
	// DeleteRule deletes a rule with its firings and attempts.
	DeleteRule(ctx context.Context, id string) error

	// Firings lists the firings of a rule, newest first, ties by id. NotFound when there is no such rule.
	Firings(ctx context.Context, ruleID string, p Page) (firings []Firing, total int, err error)
	// Redeliver makes a delivered or failed firing pending and due at now, with AttemptBase at its AttemptCount. One that is
	// pending already is left as it is, so that two clicks are one redelivery.
	Redeliver(ctx context.Context, firingID string, now time.Time) (Firing, error)

	// Attempts lists attempts, newest first, ties by id.
	Attempts(ctx context.Context, f AttemptFilter, p Page) (attempts []webhook.Attempt, total int, err error)
	// AttemptStats sums up the attempts that began at or after from, in buckets of the given length since the epoch.
	AttemptStats(ctx context.Context, from time.Time, bucket time.Duration) (AttemptStats, error)
	Queue(ctx context.Context, now time.Time) (Queue, error)
}

// Service is what the program can do with alerts for a client.
type Service struct {
	store Store
	send  webhook.Send
	now   func() time.Time
	wake  func() // the dispatcher
}

// NewService wires the domain to its store and to the sender of test webhooks. now times test sends; wake is called when a
// redelivery was queued.
func NewService(store Store, send webhook.Send, now func() time.Time, wake func()) *Service {
	return &Service{store: store, send: send, now: now, wake: wake}
}

// Create makes a rule from the body of a request. Errors: InvalidJSON, Invalid with every violated field, of the store.
func (s *Service) Create(ctx context.Context, body []byte, now time.Time) (Rule, error) {
	p, err := ParsePatch(body)
	if err != nil {
		return Rule{}, err
	}
	r, err := NewRule(p, webhook.NewID(), now)
	if err != nil {
		return Rule{}, err
	}
	return r, s.store.CreateRule(ctx, r)
}

// Patch merges the body of a request into a rule. Errors as of Create, and NotFound.
func (s *Service) Patch(ctx context.Context, id string, body []byte, now time.Time) (Rule, error) {
	id, err := ruleID(id)
	if err != nil {
		return Rule{}, err
	}
	p, err := ParsePatch(body)
	if err != nil {
		return Rule{}, err
	}
	return s.store.UpdateRule(ctx, id, func(stored Rule) (Rule, error) { return p.Apply(stored, now) })
}

// Rule gives one rule. NotFound also for what is not a UUID.
func (s *Service) Rule(ctx context.Context, id string) (Rule, error) {
	id, err := ruleID(id)
	if err != nil {
		return Rule{}, err
	}
	return s.store.Rule(ctx, id)
}

// Rules gives one page of rules and how many there are.
func (s *Service) Rules(ctx context.Context, f RuleFilter, p Page) ([]Rule, int, error) {
	return s.store.Rules(ctx, f, p)
}

// Delete deletes a rule with its firings and attempts.
func (s *Service) Delete(ctx context.Context, id string) error {
	id, err := ruleID(id)
	if err != nil {
		return err
	}
	return s.store.DeleteRule(ctx, id)
}

// Firings gives one page of a rule's firings and how many there are.
func (s *Service) Firings(ctx context.Context, id string, p Page) ([]Firing, int, error) {
	id, err := ruleID(id)
	if err != nil {
		return nil, 0, err
	}
	return s.store.Firings(ctx, id, p)
}

// Redeliver queues a firing again, at once. One that is still pending stays as it is.
func (s *Service) Redeliver(ctx context.Context, firingID string, now time.Time) (Firing, error) {
	id, ok := parseID(firingID)
	if !ok {
		return Firing{}, errs.New(errs.NotFound, "no such firing")
	}
	f, err := s.store.Redeliver(ctx, id, now)
	if err == nil {
		s.wake()
	}
	return f, err
}

// Test sends an alert.test to a rule's webhook, also when the rule is disabled, and waits for the answer.
func (s *Service) Test(ctx context.Context, id string) (webhook.TestResult, error) {
	r, err := s.Rule(ctx, id)
	if err != nil {
		return webhook.TestResult{}, err
	}
	return webhook.SendTest(ctx, s.store, s.send, s.now, r.ID, r.Name, string(r.Metric), r.Target())
}

// Preview says what a rule would have measured and when it would have fired.
func (s *Service) Preview(ctx context.Context, body []byte, now time.Time) (Preview, error) {
	req, err := ParsePreview(body, now)
	if err != nil {
		return Preview{}, err
	}
	return req.Run(ctx, s.store)
}

// Attempts gives one page of delivery attempts and how many there are. A filter by what is not a UUID finds nothing.
func (s *Service) Attempts(ctx context.Context, f AttemptFilter, p Page) ([]webhook.Attempt, int, error) {
	for _, id := range []*string{&f.RuleID, &f.FiringID} {
		canonical, ok := parseID(*id)
		if !ok && *id != "" {
			return nil, 0, nil
		}
		*id = canonical
	}
	return s.store.Attempts(ctx, f, p)
}

// StatsRange is a range that statistics can be asked for.
type StatsRange struct {
	Length time.Duration
	Bucket time.Duration
}

// StatsRanges are the ranges (api.md, Alerts) with the lengths of their buckets.
var StatsRanges = map[string]StatsRange{
	"24h": {24 * time.Hour, time.Hour},
	"7d":  {7 * 24 * time.Hour, 6 * time.Hour},
	"30d": {30 * 24 * time.Hour, 24 * time.Hour},
}

// DefaultStatsRange is the range when none is asked for.
const DefaultStatsRange = "7d"

// Stats sums up the attempts of a range that ends with the bucket of now: one entry for every bucket, also those without
// attempts, so that charts need not fill gaps. InvalidQuery for an unknown range.
func (s *Service) Stats(ctx context.Context, name string, now time.Time) (AttemptStats, error) {
	r, ok := StatsRanges[name]
	if !ok {
		return AttemptStats{}, errs.New(errs.InvalidQuery, "range must be 24h, 7d or 30d")
	}
	end := stat.BucketStart(now, r.Bucket).Add(r.Bucket)
	from := end.Add(-r.Length)
	stats, err := s.store.AttemptStats(ctx, from, r.Bucket)
	if err != nil {
		return AttemptStats{}, err
	}
	counted := map[int64]AttemptCount{}
	for _, b := range stats.Buckets {
		counted[b.Start.Unix()] = b.AttemptCount
	}
	stats.Buckets = nil
	for _, at := range stat.Buckets(from, end, r.Bucket) {
		stats.Buckets = append(stats.Buckets, BucketAttempts{at, counted[at.Unix()]})
	}
	return stats, nil
}

// Queue is the state of deliveries, for metrics.
func (s *Service) Queue(ctx context.Context, now time.Time) (Queue, error) {
	return s.store.Queue(ctx, now)
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// parseID gives an id in the form in which it is stored, false for what is not a UUID.
func parseID(s string) (string, bool) {
	s = strings.ToLower(s)
	return s, uuid.MatchString(s)
}

func ruleID(s string) (string, error) {
	id, ok := parseID(s)
	if !ok {
		return "", errs.New(errs.NotFound, "no such alert rule")
	}
	return id, nil
}

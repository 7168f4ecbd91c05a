package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// Interval is how often rules are evaluated (spec, Limits).
	Interval = 30 * time.Second

	// fireChunk bounds the firings of one transaction.
	fireChunk = 100
)

// Fire is a rule that crossed its threshold, and the firing to store for it.
type Fire struct {
	Rule   *Rule // as it was evaluated
	Firing Firing
}

// SweepStore is what the sweeper needs. Every method owns its transaction.
type SweepStore interface {
	FactStore

	// SweepRules lists all rules with stamp and status. Secret, Headers and target may be left out. A rule that cannot
	// be read in full is still listed, with what could be read.
	SweepRules(ctx context.Context) ([]Rule, error)

	// Fire stamps rules and inserts their firings in one transaction. A rule wins when, at this moment, it exists, is
	// enabled, still has the UpdatedAt it was evaluated with, and its stamp is zero or at least one window before now. A
	// rule that does not win inserts nothing. won has one entry per fire.
	Fire(ctx context.Context, fires []Fire, now time.Time) (won []bool, err error)

	// SaveStatuses writes the outcome of a tick per rule; rules that are gone are left out.
	SaveStatuses(ctx context.Context, statuses []Status) error
}

// Report is what one tick did, for metrics and the log.
type Report struct {
	Rules     int // all there are
	Evaluated int // measured and decided
	Skipped   int // disabled or suppressed
	Fired     int
	Lost      int // another sweeper fired it first, or it was edited just now
	Failed    int // could not be measured or stored
	FullReads int // of at most three: sessions, verdicts, outcomes
	Sessions  int // held in memory
	Marks     int // verdicts and outcomes held in memory
}

// Sweeper evaluates all rules. It keeps the facts of the longest windows in memory between ticks. Any number of sweepers
// may share one store. Use NewSweeper.
type Sweeper struct {
	store SweepStore
	fired func() // wakes the dispatcher

	mu       sync.Mutex // one sweep at a time
	sessions *cached[Sessions, *Sessions]
	verdicts *cached[Marks, *Marks]
	outcomes *cached[Marks, *Marks]
}

// NewSweeper makes a sweeper. fired is called after every commit of new firings.
func NewSweeper(store SweepStore, fired func()) *Sweeper {
	return &Sweeper{store: store, fired: fired,
		sessions: newCached(func(ctx context.Context, w *Sessions, q FactQuery) (Mark, error) {
			return store.SessionFacts(ctx, q, w.Put)
		}),
		verdicts: newCached(func(ctx context.Context, w *Marks, q FactQuery) (Mark, error) {
			return store.VerdictFacts(ctx, q, w.PutVerdict)
		}),
		outcomes: newCached(func(ctx context.Context, w *Marks, q FactQuery) (Mark, error) {
			return store.OutcomeFacts(ctx, q, w.PutOutcome)
		}),
	}
}

// verdict is what the tick finds out about one rule.
type verdict struct {
	rule   *Rule
	counts Counts
	failed bool // it could not be measured
	Decision
}

// Sweep makes one pass over all rules at now. A rule, a read or a transaction that fails costs only the rules that depend
// on it; the error joins all failures, and the report is valid beside it.
func (s *Sweeper) Sweep(ctx context.Context, now time.Time) (Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rules, err := s.store.SweepRules(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("reading alert rules: %w", err)
	}
	report := Report{Rules: len(rules)}
	all := make([]*verdict, len(rules))
	for i := range rules {
		all[i] = &verdict{rule: &rules[i]}
	}
	errMeasure := s.measure(ctx, all, now, &report)

	var fires []Fire
	byRule := map[string]*verdict{}
	for _, v := range all {
		if v.Decision = Evaluate(v.rule, v.counts, now); v.failed {
			v.Decision = Decision{Reason: Failed}
		}
		if !v.Fires {
			continue
		}
		var samples []string
		if v.rule.Metric.IsLatency() {
			samples = s.sessions.window.Samples(v.rule, now, MaxSampleSessions)
		}
		f, err := newFiring(v.rule, v.counts, samples, now)
		if err != nil { // no rule that passed validation gets here
			v.Decision = Decision{Reason: Failed}
			errMeasure = errors.Join(errMeasure, fmt.Errorf("rule %s: %w", v.rule.ID, err))
			continue
		}
		byRule[v.rule.ID] = v
		fires = append(fires, Fire{v.rule, f})
	}
	errFire := s.fire(ctx, fires, byRule, now, &report)
	errSave := s.save(ctx, all, now, &report)
	return report, errors.Join(errMeasure, errFire, errSave)
}

// measure fills in the counts of every rule that is not skipped. The three kinds of facts are read at the same time and
// fail apart from each other.
func (s *Sweeper) measure(ctx context.Context, all []*verdict, now time.Time, report *Report) error {
	var calls, judged, ended wanted
	var failures []error
	for _, v := range all {
		to := &calls
		switch m := v.rule.Metric; {
		case !m.known():
			v.failed = true
			failures = append(failures, fmt.Errorf("rule %s: unknown metric %q", v.rule.ID, m))
			continue
		case m == EvalFailRate:
			to = &judged
		case m == OutcomeFailRate:
			to = &ended
		}
		to.add(v, now)
	}
	var wg sync.WaitGroup
	errs := make([]error, 3)
	wg.Go(func() { errs[0] = s.sessions.tick(ctx, calls, now) })
	wg.Go(func() { errs[1] = s.verdicts.tick(ctx, judged, now) })
	wg.Go(func() { errs[2] = s.outcomes.tick(ctx, ended, now) })
	wg.Wait()

	report.Sessions = s.sessions.len()
	report.Marks = s.verdicts.len() + s.outcomes.len()
	for _, full := range []bool{s.sessions.full, s.verdicts.full, s.outcomes.full} {
		if full {
			report.FullReads++
		}
	}
	return errors.Join(append(failures, errs...)...)
}

// fire stores the firings, a chunk per transaction, and each alone when its chunk fails. The dispatcher is woken after
// every commit, so that deliveries begin while the rest is being stored.
func (s *Sweeper) fire(ctx context.Context, fires []Fire, byRule map[string]*verdict, now time.Time, report *Report) error {
	var failures []error
	store := func(chunk []Fire) error {
		won, err := s.store.Fire(ctx, chunk, now)
		if err != nil {
			return err
		}
		for i, f := range chunk {
			if i < len(won) && won[i] {
				report.Fired++
			} else {
				report.Lost++
				byRule[f.Rule.ID].Decision = Decision{Reason: Suppressed, Value: byRule[f.Rule.ID].Value}
			}
		}
		s.fired()
		return nil
	}
	for chunk := range slices.Chunk(fires, fireChunk) {
		if store(chunk) == nil {
			continue
		}
		for i := range chunk {
			if err := store(chunk[i : i+1]); err != nil {
				failures = append(failures, fmt.Errorf("firing rule %s: %w", chunk[i].Rule.ID, err))
				byRule[chunk[i].Rule.ID].Decision = Decision{Reason: Failed}
			}
		}
	}
	return errors.Join(failures...)
}

// save writes what changed about the rules' statuses.
func (s *Sweeper) save(ctx context.Context, all []*verdict, now time.Time, report *Report) error {
	var changed []Status
	for _, v := range all {
		status := v.rule.Status // a rule that is not measured keeps its last value
		status.RuleID, status.Reason = v.rule.ID, v.Reason
		_, skipped := Skips(v.rule, now)
		switch {
		case v.Reason == Failed:
			report.Failed++
			status.EvaluatedAt = now
		case skipped:
			report.Skipped++
		default:
			report.Evaluated++
			status.Value, status.Samples, status.EvaluatedAt = nil, v.counts.Observations, now
			if v.counts.Observations > 0 {
				value := v.Value
				status.Value = &value
			}
		}
		if status.Reason != v.rule.Status.Reason || !status.EvaluatedAt.Equal(v.rule.Status.EvaluatedAt) {
			changed = append(changed, status)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if err := s.store.SaveStatuses(ctx, changed); err != nil {
		return fmt.Errorf("saving alert rule statuses: %w", err)
	}
	return nil
}

package app

import (
	"context"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/loop"
	"sidetone/internal/outbound"
	"sidetone/internal/promstats"
	"sidetone/internal/webhook"
)

const (
	// sweepEvery is how often all rules are evaluated: spec.md "Limits".
	sweepEvery = 30 * time.Second
	// deliverIdle is how often a process looks for deliveries that others queued; its own wake it at once.
	deliverIdle = 5 * time.Second
	// queueTimeout bounds the query behind the queue metrics.
	queueTimeout = 2 * time.Second
)

// alerting wires rules, evaluation and delivery. With sweep, this process evaluates and delivers; without, it only serves
// the routes, and another process does the work.
func (a *App) alerting(sweep bool) *alert.Service {
	store := a.store.Alerts()
	sender := outbound.New(outbound.Options{Timeout: webhook.Timeout, BlockPrivate: a.cfg.BlockPrivateWebhooks,
		UserAgent: "sidetone/" + firstWord(a.cfg.Version)})
	a.onStop("webhook connections", func(context.Context) error { sender.Close(); return nil })
	dispatcher := webhook.NewDispatcher(store, sender.Send, time.Now, a.log)
	service := alert.NewService(store, sender.Send, time.Now, dispatcher.Wake)
	stats := a.stats.Alerts(func() (promstats.Queue, error) {
		ctx, cancel := context.WithTimeout(context.Background(), queueTimeout)
		defer cancel()
		now := time.Now()
		q, err := service.Queue(ctx, now)
		out := promstats.Queue{Pending: q.Pending, Retrying: q.Retrying}
		if !q.OldestDue.IsZero() {
			out.OldestDue = now.Sub(q.OldestDue)
		}
		return out, err
	})
	if !sweep {
		return service
	}
	dispatcher.Done = func(at webhook.Attempt) { stats.Attempt(at.OK, at.ResponseStatus, at.Duration) }
	a.onStop("deliveries in flight", dispatcher.Drain)
	a.background("deliveries", func(ctx context.Context) {
		loop.OnDemand(ctx, dispatcher.Woken(), deliverIdle, func(ctx context.Context, now time.Time) time.Time {
			next, err := dispatcher.DeliverDue(ctx, now)
			if err != nil && ctx.Err() == nil {
				a.log.Warn("due webhooks could not be delivered; they stay queued", "error", err)
			}
			return next
		})
	})
	sweeper := alert.NewSweeper(store, dispatcher.Wake)
	a.background("alert rules", func(ctx context.Context) {
		loop.Every(ctx, sweepEvery, func(ctx context.Context, now time.Time) { a.sweep(ctx, sweeper, stats, now) },
			func(missed int, took time.Duration) {
				stats.Overrun(missed)
				a.log.Warn("evaluating the alert rules took longer than its interval", "took_ms", took.Milliseconds(), "skipped", missed)
			})
	})
	return service
}

// sweep evaluates all rules once and tells how it went.
func (a *App) sweep(ctx context.Context, sweeper *alert.Sweeper, stats *promstats.Alerts, now time.Time) {
	r, err := sweeper.Sweep(ctx, now)
	if err != nil && ctx.Err() != nil {
		return // the process is stopping
	}
	took := time.Since(now)
	stats.Tick(err == nil, took, r.Evaluated, r.Fired)
	if err != nil {
		a.log.Error("some alert rules could not be evaluated", "failed", r.Failed, "error", err)
	}
	a.log.Debug("alert rules evaluated", "rules", r.Rules, "evaluated", r.Evaluated, "skipped", r.Skipped, "fired", r.Fired,
		"full_reads", r.FullReads, "sessions", r.Sessions, "marks", r.Marks, "took_ms", took.Milliseconds())
	if r.Fired > 0 {
		a.log.Info("alert rules fired", "count", r.Fired)
	}
}

func firstWord(s string) string {
	for i, c := range s {
		if c == ' ' {
			return s[:i]
		}
	}
	return s
}

// Package loop holds the only tickers and timers of the program that start work. What they run takes its time as an
// argument and knows nothing of clocks.
package loop

import (
	"context"
	"time"
)

// Every runs f at once and then at start+d, start+2d and so on until ctx is done; it returns only when f has returned.
// f is never run twice at a time. When a run takes longer than d, the times it ran over are skipped, and overrun (which
// may be nil) is told after that run how many they were and how long it took.
func Every(ctx context.Context, d time.Duration, f func(ctx context.Context, now time.Time), overrun func(missed int, took time.Duration)) {
	next := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return // both were ready: stopping wins
		}
		began := time.Now()
		f(ctx, began)
		ended := time.Now()
		next = next.Add(d)
		if late := ended.Sub(next); late > 0 {
			missed := int((late + d - 1) / d)
			next = next.Add(time.Duration(missed) * d)
			if overrun != nil {
				overrun(missed, ended.Sub(began))
			}
		}
		timer.Reset(next.Sub(ended))
	}
}

// OnDemand runs f at once and then whenever woken receives, the time f asked for has come, or idle has passed since
// the last run, until ctx is done; it returns only when f has returned. f returns the time at which it wants to run
// next: the zero time leaves that to the other two, a time that has passed means at once.
func OnDemand(ctx context.Context, woken <-chan struct{}, idle time.Duration, f func(ctx context.Context, now time.Time) (next time.Time)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-woken:
		}
		if ctx.Err() != nil {
			return
		}
		next := f(ctx, time.Now())
		wait := idle
		if !next.IsZero() {
			wait = max(0, min(idle, time.Until(next)))
		}
		timer.Reset(wait)
	}
}

// Patiently runs f until it succeeds, fails for good, or patience has passed, pausing between tries; temporary tells which
// failures may go away. It returns the last error.
func Patiently(ctx context.Context, patience, pause time.Duration, temporary func(error) bool, f func() error) error {
	deadline := time.Now().Add(patience)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		err := f()
		if err == nil || !temporary(err) || !time.Now().Add(pause).Before(deadline) {
			return err
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return err
		case <-timer.C:
		}
	}
}

package alert

import (
	"context"
	"math"
	"time"
)

const (
	// readTimeout bounds each of the reads of a tick, so that one slow query costs its own rules this tick and nothing else.
	readTimeout = 20 * time.Second

	// fullEvery is how often everything is read again all the same: it gives back the memory of what has left the windows,
	// and mends what nobody told us about, such as rows that were edited by hand.
	fullEvery = time.Hour
)

// measurer is a window of one kind of facts.
type measurer[W any] interface {
	*W
	Measure(rules []*Rule, now time.Time) []Counts
	Len() int
	dropUntil(us int64)
}

// cached keeps a window of facts between ticks, so that a tick reads only what changed since the last one. It is never
// a source of truth: any doubt (a failed read, a longer window than before, a clock that went back) makes it read everything
// again.
type cached[W any, P measurer[W]] struct {
	read func(ctx context.Context, w P, q FactQuery) (Mark, error)

	window P     // nil when there is nothing to trust
	from   int64 // µs: everything later is in the window
	since  Mark  // of the last read
	readAt time.Time
	fullAt time.Time
	full   bool // the last tick read everything
}

func newCached[W any, P measurer[W]](read func(ctx context.Context, w P, q FactQuery) (Mark, error)) *cached[W, P] {
	return &cached[W, P]{read: read}
}

// wanted is the rules that count one kind of facts.
type wanted struct {
	rules   []*verdict    // to be measured at this tick
	longest time.Duration // window of any enabled rule; those suppressed now will be measured again soon
}

func (w *wanted) add(v *verdict, now time.Time) {
	if v.rule.Enabled {
		w.longest = max(w.longest, v.rule.Window())
	}
	if _, skip := Skips(v.rule, now); !skip {
		w.rules = append(w.rules, v)
	}
}

// tick brings the window up to date and fills in the counts of the wanted rules. On an error they are marked as failed.
func (c *cached[W, P]) tick(ctx context.Context, want wanted, now time.Time) error {
	c.full = false
	if want.longest == 0 {
		c.window = nil
	}
	if len(want.rules) == 0 {
		return nil
	}
	if err := c.refresh(ctx, now, want.longest); err != nil {
		c.window = nil
		for _, v := range want.rules {
			v.failed = true
		}
		return err
	}
	rules := make([]*Rule, len(want.rules))
	for i, v := range want.rules {
		rules[i] = v.rule
	}
	for i, counts := range c.window.Measure(rules, now) {
		want.rules[i].counts = counts
	}
	return nil
}

func (c *cached[W, P]) refresh(ctx context.Context, now time.Time, longest time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	start := windowStart(now, longest)
	c.full = c.window == nil || start < c.from || now.Before(c.readAt) || now.Sub(c.fullAt) >= fullEvery
	if c.full {
		// What lies in the future by a client's clock is read too: its time will come without it changing again.
		c.window, c.from, c.fullAt = new(W), start, now
		c.since, err = c.read(ctx, c.window, FactQuery{After: start, Until: math.MaxInt64})
	} else {
		c.since, err = c.read(ctx, c.window, FactQuery{Since: c.since})
	}
	if err != nil {
		return err
	}
	c.readAt = now
	c.window.dropUntil(start)
	c.from = max(c.from, start)
	return nil
}

func (c *cached[W, P]) len() int {
	if c.window == nil {
		return 0
	}
	return c.window.Len()
}

package webhook

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// claimTimeout bounds each conversation with the store, so that a hanging database cannot hang a shutdown.
const claimTimeout = 15 * time.Second

// recordChunk bounds the outcomes written in one transaction.
const recordChunk = 200

// Dispatcher claims due deliveries, sends them and records what came of it. Any number of dispatchers may share one
// store. Use NewDispatcher; Done may be set before the first DeliverDue.
type Dispatcher struct {
	// Done, when set, is told of every attempt once it ended, before it is recorded. It must be quick and safe for
	// concurrent use.
	Done func(Attempt)

	store Store
	send  Send
	now   func() time.Time
	log   *slog.Logger
	wake  chan struct{}

	claiming sync.Mutex     // one claim at a time in this process
	inFlight sync.WaitGroup // attempts under way, until their outcome was handed to the store

	mu       sync.Mutex
	total    int            // attempts under way
	busy     map[string]int // the same by host
	refused  bool           // a due delivery found no room: the next attempt that ends makes some
	finished []Outcome      // ended but not recorded yet
	flushing bool           // somebody is recording; they also take what is added meanwhile
}

// NewDispatcher makes a dispatcher. now is the clock by which attempts are timed.
func NewDispatcher(store Store, send Send, now func() time.Time, log *slog.Logger) *Dispatcher {
	return &Dispatcher{store: store, send: send, now: now, log: log,
		wake: make(chan struct{}, 1), busy: map[string]int{}}
}

// Woken receives when DeliverDue should run before the time it asked for.
func (d *Dispatcher) Woken() <-chan struct{} { return d.wake }

// Wake asks for a DeliverDue soon: a firing was committed, or a redelivery queued. It never blocks.
func (d *Dispatcher) Wake() {
	select {
	case d.wake <- struct{}{}:
	default: // one is already asked for
	}
}

// DeliverDue claims what is due at now and for which there is room, starts the attempts and returns without waiting for
// them: next is when something falls due after now, zero when nothing is scheduled. Outcomes that could not be recorded
// before are tried again first. Attempts outlive ctx; Drain waits for them.
func (d *Dispatcher) DeliverDue(ctx context.Context, now time.Time) (next time.Time, err error) {
	if ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	// A claim that commits must be acted on even when the process is being stopped just now.
	ctx = context.WithoutCancel(ctx)
	d.claiming.Lock()
	defer d.claiming.Unlock()

	flushErr := d.flush(ctx)
	claimCtx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	claimed, err := d.store.ClaimDue(claimCtx, now, now.Add(Lease), d.room())
	for _, c := range claimed {
		d.start(ctx, c)
	}
	d.wakeIfStuck()
	if err != nil {
		return time.Time{}, errors.Join(flushErr, err)
	}
	next, err = d.store.NextDue(claimCtx, now)
	return next, errors.Join(flushErr, err)
}

// room returns the question ClaimDue asks for every candidate: is there room for one more attempt at this URL?
func (d *Dispatcher) room() func(url string) bool {
	reserved, sum := map[string]int{}, 0
	return func(url string) bool {
		host := hostOf(url)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.total+sum >= MaxInFlight || d.busy[host]+reserved[host] >= MaxPerHost {
			d.refused = true
			return false
		}
		reserved[host]++
		sum++
		return true
	}
}

// wakeIfStuck covers the rare claim that refused candidates because of others which another dispatcher then won: nothing
// of ours is under way whose end would wake us.
func (d *Dispatcher) wakeIfStuck() {
	d.mu.Lock()
	stuck := d.refused && d.total == 0
	if stuck {
		d.refused = false
	}
	d.mu.Unlock()
	if stuck {
		d.Wake()
	}
}

func (d *Dispatcher) start(ctx context.Context, c Delivery) {
	host := hostOf(c.Target.URL)
	d.mu.Lock()
	d.total++
	d.busy[host]++
	d.mu.Unlock()
	d.inFlight.Go(func() {
		d.finish(host, d.attempt(ctx, c))
		if err := d.flush(ctx); err != nil {
			d.log.Warn("webhook outcomes not recorded yet", "err", err)
		}
	})
}

// attempt makes one attempt and decides what it means for the firing.
func (d *Dispatcher) attempt(ctx context.Context, c Delivery) Outcome {
	a := Attempt{ID: NewID(), RuleID: c.RuleID, RuleName: c.RuleName, FiringID: c.FiringID, Kind: KindFiring, Number: c.Attempts + 1}
	a.run(ctx, d.send, d.now, c.Target, Message{ID: c.FiringID, RuleID: c.RuleID, FiringID: c.FiringID, Body: c.Body})
	out := Outcome{Attempt: a, Lease: c.Lease, Status: Delivered, At: a.CreatedAt.Add(a.Duration)}
	if !a.OK {
		out.Status = Failed
		if next, more := NextAttempt(a.Number-c.Base, out.At); more {
			out.Status, out.Next = Pending, next
		}
	}
	if d.Done != nil {
		d.Done(a)
	}
	return out
}

// finish frees the attempt's place and queues its outcome.
func (d *Dispatcher) finish(host string, out Outcome) {
	d.mu.Lock()
	d.total--
	if d.busy[host]--; d.busy[host] == 0 {
		delete(d.busy, host)
	}
	d.finished = append(d.finished, out)
	hungry := d.refused
	d.refused = false
	d.mu.Unlock()
	if hungry {
		d.Wake()
	}
}

// flush records what has finished. Of concurrent callers one writes for all, so that a burst of attempts costs few
// transactions; the others return at once. What the store refuses stays queued for the next flush.
func (d *Dispatcher) flush(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flushing {
		return nil
	}
	d.flushing = true
	defer func() { d.flushing = false }()
	for len(d.finished) > 0 {
		n := min(len(d.finished), recordChunk)
		batch := d.finished[:n:n]
		d.finished = d.finished[n:]
		d.mu.Unlock()
		rest, err := d.record(ctx, batch)
		d.mu.Lock()
		if err != nil {
			d.finished = append(rest, d.finished...)
			return err
		}
	}
	return nil
}

// record writes one batch, and when that fails each outcome alone, so that a bad one does not hold up the others. It
// returns those that are still not written; an outcome whose claim has ended is given up, as the delivery is due again.
func (d *Dispatcher) record(ctx context.Context, batch []Outcome) (rest []Outcome, last error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	held, err := d.store.Record(ctx, batch)
	if err == nil {
		d.noteLost(batch, held)
		return nil, nil
	}
	for i, out := range batch {
		one := batch[i : i+1]
		if len(batch) > 1 {
			held, err = d.store.Record(ctx, one)
		}
		switch {
		case err == nil:
			d.noteLost(one, held)
		case d.now().After(out.Lease):
			d.log.Error("webhook attempt could not be recorded before its claim ended", "firing_id", out.Attempt.FiringID, "err", err)
		default:
			rest, last = append(rest, out), err
		}
	}
	return rest, last
}

func (d *Dispatcher) noteLost(batch []Outcome, held []bool) {
	for i, out := range batch {
		if i < len(held) && !held[i] {
			d.log.Warn("webhook attempt ended after its claim did; the delivery may repeat", "firing_id", out.Attempt.FiringID)
		}
	}
}

// Drain waits for the attempts under way and records them. Call it after the last DeliverDue. What cannot be recorded
// is returned as an error: after its lease it will be delivered again.
func (d *Dispatcher) Drain(ctx context.Context) error {
	d.inFlight.Wait()
	var err error
	for range 3 {
		if err = d.flush(context.WithoutCancel(ctx)); err == nil {
			return nil
		}
	}
	return err
}

// InFlight is the number of attempts under way.
func (d *Dispatcher) InFlight() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}

package sqlstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sidetone/internal/errs"
)

// batcher is the group commit: items that arrive while a transaction runs are written together by the next one, so
// that one disk flush serves many callers. Under no load an item waits for nobody.
type batcher[T any] struct {
	in      chan *pending[T]
	quit    chan struct{}
	done    chan struct{}
	max     int
	timeout time.Duration
	flush   func(ctx context.Context, items []T) error
	settle  func() error
	observe func(size int)

	turn     chan struct{}  // held by the writer that gathers a group
	callers  atomic.Int64   // who is in do
	busy     atomic.Int64   // groups that are being written or wait to be durable
	finished chan struct{}  // receives when one of them is answered
	answers  sync.WaitGroup // groups that wait to be durable
}

type pending[T any] struct {
	item T
	err  error
	done chan struct{}
}

// newBatcher starts writers goroutines that call flush with at most max items. flush writes all items in one
// transaction or none; settle, called while the next group is written already, returns when that transaction is durable.
func newBatcher[T any](writers, max int, timeout time.Duration, flush func(context.Context, []T) error, settle func() error,
	observe func(int)) *batcher[T] {
	b := &batcher[T]{in: make(chan *pending[T]), quit: make(chan struct{}), done: make(chan struct{}), max: max,
		timeout: timeout, flush: flush, settle: settle, observe: observe, turn: make(chan struct{}, 1),
		finished: make(chan struct{}, 1)}
	finished := make(chan struct{})
	for range writers {
		go func() {
			b.run()
			finished <- struct{}{}
		}()
	}
	go func() {
		for range writers {
			<-finished
		}
		b.answers.Wait()
		close(b.done)
	}()
	return b
}

// do hands an item to a writer and waits until it is durable or failed. When ctx ends first the item may still be
// written: the caller must treat that as not acknowledged.
func (b *batcher[T]) do(ctx context.Context, item T) error {
	b.callers.Add(1)
	defer b.callers.Add(-1)
	p := &pending[T]{item: item, done: make(chan struct{})}
	select {
	case b.in <- p:
	case <-b.quit:
		return errs.New(errs.Unavailable, "the server is shutting down")
	case <-ctx.Done():
		return errs.Wrap(errs.Unavailable, ctx.Err(), "the database did not answer in time")
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return errs.Wrap(errs.Unavailable, ctx.Err(), "the database did not answer in time")
	}
}

func (b *batcher[T]) run() {
	for {
		group := b.next()
		if group == nil {
			return
		}
		b.observe(len(group))
		b.write(group)
	}
}

// next waits for a group to write; nil when the batcher is closed. While another group is still on its way to the disk,
// half of all callers make a group: a transaction costs as much as several reports, so two large ones that alternate do
// far more than many small ones.
func (b *batcher[T]) next() []*pending[T] {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	var group []*pending[T]
	select {
	case p := <-b.in:
		group = append(group, p)
	case <-b.quit:
		return nil
	}
	defer b.busy.Add(1)
	for len(group) < b.max {
		// Senders block on the channel, so everybody who waits is there to take.
		select {
		case p := <-b.in:
			group = append(group, p)
			continue
		default:
		}
		if int64(len(group)) >= b.callers.Load()/2 || b.busy.Load() == 0 {
			break
		}
		select {
		case p := <-b.in:
			group = append(group, p)
		case <-b.finished:
		}
	}
	return group
}

func (b *batcher[T]) write(group []*pending[T]) {
	items := make([]T, len(group))
	for i, p := range group {
		items[i] = p.item
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
	err := b.flush(ctx, items)
	cancel()
	if err != nil && len(group) > 1 && !errs.Is(err, errs.Unavailable) {
		// One bad item must not take the others with it.
		b.busy.Add(int64(len(group)) - 1)
		for _, p := range group {
			b.write([]*pending[T]{p})
		}
		return
	}
	if err != nil {
		b.answer(group, err)
		return
	}
	b.answers.Go(func() { b.answer(group, b.settle()) })
}

func (b *batcher[T]) answer(group []*pending[T], err error) {
	for _, p := range group {
		p.err = err
		close(p.done)
	}
	b.busy.Add(-1)
	select {
	case b.finished <- struct{}{}:
	default: // somebody is told already
	}
}

// close stops the writers after the transactions that run.
func (b *batcher[T]) close() {
	close(b.quit)
	<-b.done
}

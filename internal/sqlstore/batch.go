package sqlstore

import (
	"context"
	"sync"
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

	answers sync.WaitGroup // groups that wait to be durable
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
		timeout: timeout, flush: flush, settle: settle, observe: observe}
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
		var group []*pending[T]
		select {
		case p := <-b.in:
			group = append(group, p)
		case <-b.quit:
			return
		}
		// Senders block on the channel while a transaction runs, so everything that gathered is there to take.
	gather:
		for len(group) < b.max {
			select {
			case p := <-b.in:
				group = append(group, p)
			default:
				break gather
			}
		}
		b.observe(len(group))
		b.write(group)
	}
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
		for _, p := range group {
			b.write([]*pending[T]{p})
		}
		return
	}
	if err != nil {
		answer(group, err)
		return
	}
	b.answers.Go(func() { answer(group, b.settle()) })
}

func answer[T any](group []*pending[T], err error) {
	for _, p := range group {
		p.err = err
		close(p.done)
	}
}

// close stops the writers after the transactions that run.
func (b *batcher[T]) close() {
	close(b.quit)
	<-b.done
}

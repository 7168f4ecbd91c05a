package recording

import (
	"context"
	"sync"
)

// early is the upload of a recording that still comes in. It reads what has reached the folder, so a slow object store
// holds nobody up and nothing is kept in memory, and it finishes only when the report is durable, so that no object is
// ever there without its row. Whatever goes wrong, the file is there to begin again from.
type early struct {
	k     *Keeper
	key   string
	file  File
	grown chan struct{}
	ctx   context.Context
	stop  context.CancelFunc

	mu      sync.Mutex
	size    int64
	durable bool
	ended   bool
}

// begin starts uploading a recording that comes in, if there is a free slot; nil otherwise.
func (k *Keeper) begin(s Staged) *early {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped || k.failures > 0 { // what failed a moment ago is tried again by the rounds, not by every client
		return nil
	}
	select {
	case k.slots <- struct{}{}:
	default:
		return nil
	}
	file, err := s.Lock()
	if err != nil || file == nil {
		<-k.slots
		return nil
	}
	e := &early{k: k, key: s.Key(), file: file, grown: make(chan struct{}, 1)}
	e.ctx, e.stop = context.WithCancel(k.stop)
	k.running.Add(1)
	go func() {
		defer k.running.Done()
		defer func() { <-k.slots }()
		err := e.run()
		e.file.Close()
		e.stop()
		e.mu.Lock()
		e.ended = true
		durable := e.durable
		e.mu.Unlock()
		if err != nil {
			k.log.Debug("an upload that began with its report did not finish; it is done again", "key", e.key, "error", err)
		}
		if durable && err != nil {
			k.wake()
		}
	}()
	return e
}

// grow tells how many bytes there are, all of them in the file.
func (e *early) grow(size int64) {
	e.mu.Lock()
	e.size = size
	e.mu.Unlock()
	e.poke()
}

// finish tells that the report is durable and the file complete.
func (e *early) finish() {
	e.mu.Lock()
	e.durable = true
	ended := e.ended
	e.mu.Unlock()
	if ended {
		e.k.wake()
		return
	}
	e.poke()
}

// giveUp ends the upload without an object.
func (e *early) giveUp() { e.stop() }

func (e *early) poke() {
	select {
	case e.grown <- struct{}{}:
	default:
	}
}

func (e *early) run() error {
	parts, err := e.k.objects.Begin(e.ctx, e.key)
	if err != nil {
		return err
	}
	if err := e.send(parts); err != nil {
		parts.Abort()
		return err
	}
	row, err := e.k.store.Recording(e.ctx, e.key)
	if err != nil {
		return err // the next round finds the object and only notes that it is there
	}
	if row.Dropped {
		return e.k.delete(e.ctx, row)
	}
	return e.k.arrived(e.ctx, row)
}

// send sends parts as they become full, and the rest when the report is durable.
func (e *early) send(parts Parts) error {
	var sent int64
	for {
		e.mu.Lock()
		size, durable := e.size, e.durable
		e.mu.Unlock()
		switch {
		case e.ctx.Err() != nil:
			return e.ctx.Err()
		case size-sent >= PartSize:
			if err := parts.Part(e.ctx, e.file, sent, PartSize); err != nil {
				return err
			}
			sent += PartSize
			continue
		case durable:
			if size > sent {
				if err := parts.Part(e.ctx, e.file, sent, size-sent); err != nil {
					return err
				}
			}
			return parts.Complete(e.ctx)
		}
		select {
		case <-e.grown:
		case <-e.ctx.Done():
		}
	}
}

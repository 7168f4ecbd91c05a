package recording

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync"
	"time"

	"sidetone/internal/errs"
)

const (
	batch = 64 // rows read at a time

	firstRetry = time.Second
	// lastRowRetry bounds the wait of one recording, lastRoundRetry that of all while the object store is away.
	lastRowRetry, lastRoundRetry = 5 * time.Minute, 30 * time.Second
	// lostRetry is how often a file that is missing or damaged is looked at again.
	lostRetry = time.Hour
	// doubtAge is when a transaction of unknown outcome has one: far longer than any takes.
	doubtAge = 10 * time.Minute
	// busyRetry is when to come back to what somebody else is working on.
	busyRetry = 2 * time.Second
)

// due is the next time of a row that has something to do at once.
var due = time.UnixMicro(1)

// backoff is how long to wait after a number of failures in a row: 1 s, 2 s, 4 s and so on up to most.
func backoff(failures int, most time.Duration) time.Duration {
	return min(most, firstRetry<<min(max(failures-1, 0), 20))
}

// Start makes what failed in an earlier run due at once.
func (k *Keeper) Start(ctx context.Context) error { return k.store.Hurry(ctx, k.folder.ID()) }

// Round does everything that is due and returns when it wants to be called again; the zero time leaves that to a wake-up
// and to the caller. While the object store is away it returns early and waits longer every time.
func (k *Keeper) Round(ctx context.Context, now time.Time) (next time.Time) {
	if !k.retryAt.IsZero() && now.Before(k.retryAt) {
		return k.retryAt
	}
	k.settleDoubts(ctx, now)
	r := round{k: k, now: now, busy: map[string]bool{}}
	err := r.run(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return time.Time{}
	case err != nil:
		k.failures++
		k.retryAt = now.Add(backoff(k.failures, lastRoundRetry))
		k.log.Warn("recordings wait: what is due about them failed", "failures", k.failures, "error", err)
		return k.retryAt
	}
	if k.failures > 0 {
		k.log.Info("recordings move again")
	}
	k.failures, k.retryAt = 0, time.Time{}
	if len(r.busy) > 0 {
		return now.Add(busyRetry)
	}
	next, err = k.store.NextDue(ctx, k.folder.ID(), k.objects != nil)
	if err != nil {
		return time.Time{}
	}
	return next
}

// round is one run over everything due.
type round struct {
	k   *Keeper
	now time.Time

	mu   sync.Mutex
	busy map[string]bool // locked by somebody else
	err  error           // the first failure that concerns all
}

func (r *round) run(ctx context.Context) error {
	for {
		rows, err := r.k.store.Due(ctx, r.k.folder.ID(), r.k.objects != nil, r.now, batch+len(r.busy))
		if err != nil {
			return err
		}
		var done sync.WaitGroup
		found := false
		for _, row := range rows {
			if r.isBusy(row.Key) {
				continue
			}
			found = true
			if !r.slot(ctx) {
				break
			}
			done.Add(1)
			go func() {
				defer done.Done()
				defer func() { <-r.k.slots }()
				r.one(ctx, row)
			}()
		}
		done.Wait()
		if err := r.failed(); err != nil || !found || ctx.Err() != nil {
			return err
		}
	}
}

// slot waits for a free slot and takes it; false when the round is to end instead.
func (r *round) slot(ctx context.Context) bool {
	select {
	case r.k.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() == nil && r.failed() == nil {
		return true
	}
	<-r.k.slots
	return false
}

func (r *round) isBusy(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy[key]
}

func (r *round) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// one does what is due about one recording.
func (r *round) one(ctx context.Context, row Row) {
	busy, err := r.k.process(ctx, row, r.now)
	if busy {
		r.mu.Lock()
		r.busy[row.Key] = true
		r.mu.Unlock()
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	r.k.told("failed")
	wait := lostRetry
	if errs.Is(err, errs.Unavailable) { // the store is away, not this recording broken
		wait = backoff(row.Attempts+1, lastRowRetry)
		r.mu.Lock()
		if r.err == nil {
			r.err = err
		}
		r.mu.Unlock()
	} else {
		r.k.log.Error("a recording cannot be moved", "key", row.Key, "error", err)
	}
	if err := r.k.store.Postpone(ctx, row, row.Attempts+1, r.now.Add(wait)); err != nil {
		r.mu.Lock()
		r.err = err // or this round would find the row again at once
		r.mu.Unlock()
	}
}

// process does what is due about one recording unless somebody else is at it.
func (k *Keeper) process(ctx context.Context, row Row, now time.Time) (busy bool, err error) {
	var file File
	if row.Folder == k.folder.ID() || row.Folder == "" && row.Place != InObjects {
		file, err = k.folder.Lock(row.Key)
		switch {
		case errs.Is(err, errs.NotFound):
		case err != nil:
			return false, err
		case file == nil:
			return true, nil
		default:
			defer file.Close()
		}
	}
	// Whoever had the lock before may have done it.
	row, err = k.store.Recording(ctx, row.Key)
	if errs.Is(err, errs.NotFound) || err == nil && (row.NextAt.IsZero() || row.NextAt.After(now)) {
		return false, nil
	}
	switch {
	case err != nil:
		return false, err
	case row.Dropped:
		return false, k.delete(ctx, row)
	case row.Place == InSpool:
		return false, k.upload(ctx, row, file)
	case row.Place == InObjects:
		return false, k.removeCopy(ctx, row)
	}
	if err := k.objects.Delete(ctx, row.Key); err != nil { // what a move to the folder left
		return false, err
	}
	_, err = k.store.Switch(ctx, row, InFolder, row.Folder, time.Time{})
	return false, err
}

// upload brings a recording from the folder to the object store. The caller holds its lock; file is nil when it is gone.
func (k *Keeper) upload(ctx context.Context, row Row, file File) error {
	size, err := k.objects.Stat(ctx, row.Key)
	switch {
	case err == nil && size == row.Size:
		return k.arrived(ctx, row) // it was stored, and only the note of it was lost
	case err != nil && !errs.Is(err, errs.NotFound):
		return err
	case file == nil:
		return errs.New(errs.Internal, "the file is missing in the folder, and the object store has none either")
	}
	if err := verify(file, row); err != nil {
		return err
	}
	if err := k.objects.Put(ctx, row.Key, file, row.Size); err != nil {
		return err
	}
	return k.arrived(ctx, row)
}

// arrived notes that the object store holds a recording, after looking, and removes the file.
func (k *Keeper) arrived(ctx context.Context, row Row) error {
	size, err := k.objects.Stat(ctx, row.Key)
	if errs.Is(err, errs.NotFound) || err == nil && size != row.Size {
		return errs.Wrap(errs.Unavailable, err, "the object store does not have what it said it stored (%d of %d bytes)", size, row.Size)
	}
	if err != nil {
		return err
	}
	mine := k.folder.ID()
	ok, err := k.store.Switch(ctx, row, InObjects, mine, due)
	if err != nil || !ok {
		return err
	}
	k.told("uploaded")
	row.Place, row.Folder = InObjects, mine
	return k.removeCopy(ctx, row)
}

// removeCopy removes the file of a recording that is in the object store.
func (k *Keeper) removeCopy(ctx context.Context, row Row) error {
	if err := k.folder.Remove(row.Key); err != nil {
		return err
	}
	_, err := k.store.Switch(ctx, row, InObjects, "", time.Time{})
	return err
}

// delete removes a dropped recording from everywhere. The row goes last, so it is tried until all is done.
func (k *Keeper) delete(ctx context.Context, row Row) error {
	if k.objects != nil {
		if err := k.objects.Delete(ctx, row.Key); err != nil {
			return err
		}
	}
	if err := k.folder.Remove(row.Key); err != nil {
		return err
	}
	k.told("deleted")
	return k.store.Forget(ctx, row.Key)
}

func (k *Keeper) told(done string) {
	if k.observe != nil {
		k.observe(done)
	}
}

// verify reads a file and compares it with what was received.
func verify(file File, row Row) error {
	sum := sha256.New()
	n, err := io.Copy(sum, io.NewSectionReader(file, 0, 1<<62))
	if err != nil {
		return err
	}
	if n != row.Size || hex.EncodeToString(sum.Sum(nil)) != row.SHA256 {
		return errs.New(errs.Internal, "the file is damaged: it is not what was received")
	}
	return nil
}

// settleDoubts deletes files whose reports turned out not to be stored.
func (k *Keeper) settleDoubts(ctx context.Context, now time.Time) {
	k.mu.Lock()
	var old []string
	for key, seen := range k.doubtful {
		if seen.IsZero() {
			k.doubtful[key] = now
		} else if now.Sub(seen) >= doubtAge {
			old = append(old, key)
		}
	}
	k.mu.Unlock()
	for _, key := range old {
		_, err := k.store.Recording(ctx, key)
		if errs.Is(err, errs.NotFound) {
			err = k.folder.Remove(key)
		}
		if err != nil {
			continue // asked again in the next round
		}
		k.mu.Lock()
		delete(k.doubtful, key)
		k.mu.Unlock()
	}
}

package sqlstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sidetone/internal/errs"
)

// disk is a database under a batcher: each group takes a moment to write and another to become durable.
type disk struct {
	mu      sync.Mutex
	groups  [][]int
	durable int // groups
	fail    func(items []int) error
	sync    func() error
}

func (d *disk) flush(ctx context.Context, items []int) error {
	time.Sleep(time.Millisecond)
	if d.fail != nil {
		if err := d.fail(items); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups = append(d.groups, slices.Clone(items))
	return nil
}

func (d *disk) settle() error {
	d.mu.Lock()
	written := len(d.groups)
	d.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	if d.sync != nil {
		if err := d.sync(); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.durable = max(d.durable, written)
	return nil
}

func (d *disk) batcher(writers, max int) *batcher[int] {
	return newBatcher(writers, max, time.Minute, d.flush, d.settle, func(int) {})
}

func TestBatcherAnswersWhenDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		b := d.batcher(1, 64)
		start := time.Now()
		if err := b.do(t.Context(), 1); err != nil || d.durable != 1 {
			t.Errorf("%v, %d groups durable", err, d.durable)
		}
		if took := time.Since(start); took != 11*time.Millisecond {
			t.Errorf("a lone item took %v: it waits for nobody", took)
		}
		b.close()
	})
}

// TestBatcherGathers: while a group is on its way to the disk the next one gathers until it is half of all callers, and
// then it does not wait any longer.
func TestBatcherGathers(t *testing.T) {
	for _, writers := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var d disk
			b := d.batcher(writers, 64)
			const callers, each = 16, 50
			var wg sync.WaitGroup
			start := time.Now()
			for c := range callers {
				wg.Go(func() {
					for i := range each {
						if err := b.do(t.Context(), c*each+i); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			took := time.Since(start)
			b.close()
			seen := map[int]bool{}
			for _, g := range d.groups {
				for _, item := range g {
					if seen[item] {
						t.Errorf("item %d was written twice", item)
					}
					seen[item] = true
				}
			}
			if len(seen) != callers*each {
				t.Errorf("%d items written", len(seen))
			}
			// Without waiting for company, a group would begin every millisecond with whoever is there: two items or three.
			if n := len(d.groups); n > 4*each {
				t.Errorf("%d writers: %d groups of %d callers", writers, n, callers)
			}
			// Halves that do not overlap on their way to the disk would take this long.
			if limit := each * 22 * time.Millisecond; took >= limit {
				t.Errorf("%d writers: took %v", writers, took)
			}
		})
	}
}

func TestBatcherBadItemFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("bad")
		d := disk{fail: func(items []int) error {
			if slices.Contains(items, 13) {
				return bad
			}
			return nil
		}}
		b := d.batcher(1, 64)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if err := b.do(t.Context(), i); (i == 13) != errors.Is(err, bad) {
					t.Errorf("item %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if err := b.do(t.Context(), 20); err != nil { // it still works
			t.Error(err)
		}
		if n := b.busy.Load(); n != 0 {
			t.Errorf("%d groups are thought to be under way", n)
		}
		b.close()
		if err := b.do(t.Context(), 21); !errs.Is(err, errs.Unavailable) {
			t.Errorf("after close: %v", err)
		}
	})
}

// TestBatcherNotDurable: what is committed and not on disk is not acknowledged.
func TestBatcherNotDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errs.New(errs.Unavailable, "no disk")
		d := disk{sync: func() error { return lost }}
		b := d.batcher(1, 64)
		if err := b.do(t.Context(), 1); !errors.Is(err, lost) {
			t.Error(err)
		}
		b.close()
	})
}

func TestWALSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db-wal")
	w := &walSync{path: path}
	if err := w.wait(); err != nil {
		t.Errorf("no log, so nothing to flush: %v", err)
	}
	write := func() {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				if err := w.wait(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if w.state() != nil || w.next != nil {
		t.Errorf("%v, %v", w.state(), w.next)
	}
	old := w.file
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	write()
	if err := w.wait(); err != nil || w.file == old {
		t.Errorf("%v: another log was begun and the old one flushed", err)
	}
	w.file.Close() // the disk goes away
	if err := w.wait(); !errs.Is(err, errs.Unavailable) {
		t.Error(err)
	}
	os.Remove(path)
	write()
	if err := w.wait(); err == nil || w.state() == nil {
		t.Error("a failure must stick: nobody knows what is on disk")
	}
}

// TestReadyAfterAFailedFlush: whoever restarts servers that are not ready restarts this one.
func TestReadyAfterAFailedFlush(t *testing.T) {
	s, err := Open("sqlite", filepath.Join(t.TempDir(), "a.db"), "", Observer{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	migrated(t, s)
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.log.file.Close()
	if _, _, err := s.Delete(t.Context(), []string{"x"}); !errs.Is(err, errs.Unavailable) {
		t.Error(err)
	}
	if err := s.Ready(t.Context()); !errs.Is(err, errs.Unavailable) {
		t.Error(err)
	}
}

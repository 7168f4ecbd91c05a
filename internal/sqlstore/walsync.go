package sqlstore

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sidetone/internal/errs"
)

// walSync makes committed SQLite transactions durable. SQLite itself would flush its log inside COMMIT, with the only
// writing connection idle all the while; with synchronous=NORMAL it leaves that to us, so the next transaction is written
// while the disk still flushes the one before, and one flush serves all that waited for it. The log is written in order:
// a transaction that is on disk has all earlier ones beneath it. SQLite still flushes the log before it copies pages
// from there into the database file, so nothing but acknowledgements depends on this.
type walSync struct {
	path string // of the log, the database's name with -wal

	mu   sync.Mutex
	next *flushRound // callers of the next flush; nil when nobody waits for one

	one    sync.Mutex // one flush at a time; guards what follows
	file   *os.File
	failed error // sticks
}

type flushRound struct {
	done chan struct{}
	err  error
}

// wait returns when everything committed before the call is on disk.
//
// After a failed flush nobody knows what is on disk: the kernel reports an error once and may have dropped the pages. So
// every later call fails too, until a restart has read the log again.
func (w *walSync) wait() error {
	w.mu.Lock()
	r := w.next
	if r != nil {
		w.mu.Unlock()
		<-r.done
		return r.err
	}
	r = &flushRound{done: make(chan struct{})}
	w.next = r
	w.mu.Unlock()

	w.one.Lock()
	w.mu.Lock()
	w.next = nil // who comes from here on may have committed too late for this flush
	w.mu.Unlock()
	if w.failed == nil {
		w.failed = w.flush()
	}
	r.err = w.failed
	w.one.Unlock()
	close(r.done)
	return r.err
}

func (w *walSync) flush() error {
	if err := w.open(); err != nil || w.file == nil {
		return w.fail(err)
	}
	return w.fail(w.file.Sync())
}

// open finds the log. SQLite removes it when its last connection closes, after everything in it is on disk in the database
// file, and starts another one later; a flush of the old one would do nothing.
func (w *walSync) open() error {
	now, err := os.Stat(w.path)
	if os.IsNotExist(err) {
		w.forget()
		return nil
	}
	if err != nil {
		return err
	}
	if w.file != nil {
		was, err := w.file.Stat()
		if err != nil {
			return err
		}
		if os.SameFile(was, now) {
			return nil
		}
		w.forget()
	}
	if w.file, err = os.OpenFile(w.path, os.O_RDWR, 0); err != nil {
		return err
	}
	// The log was created by SQLite; its name must be on disk as well.
	dir, err := os.Open(filepath.Dir(w.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func (w *walSync) fail(err error) error {
	if err == nil {
		return nil
	}
	return errs.Wrap(errs.Unavailable, fmt.Errorf("flush the log of SQLite: %w", err), "the database is not available")
}

// state is the error of the flush that failed, if one did.
func (w *walSync) state() error {
	w.one.Lock()
	defer w.one.Unlock()
	return w.failed
}

func (w *walSync) close() {
	w.one.Lock()
	defer w.one.Unlock()
	w.forget()
}

// forget closes a log that is over.
func (w *walSync) forget() {
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
}

package recording

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// Keeper is session.Recordings: it takes recordings into the folder, serves them from wherever they are, and does in
// the background what is due about them.
type Keeper struct {
	store   Store
	folder  Folder
	objects Objects // nil without object storage
	log     *slog.Logger
	woken   chan struct{}
	observe func(done string) // told "uploaded", "failed" or "deleted"; may be nil

	mu       sync.Mutex
	early    map[string]*early    // uploads that began before their report was stored, by key
	doubtful map[string]time.Time // files whose report may be stored or not, and when a round first saw them
	retryAt  time.Time            // when the next round may begin, after failures
	failures int                  // rounds in a row in which the object store failed
	stopped  bool
	running  sync.WaitGroup
	stop     context.Context // ends with the process
	cancel   context.CancelFunc
	slots    chan struct{} // one for each upload at a time
}

// uploadsAtOnce bounds the connections to the object store for uploading.
const uploadsAtOnce = 4

// NewKeeper makes a keeper; objects is nil without object storage. Close ends its uploads.
func NewKeeper(store Store, folder Folder, objects Objects, log *slog.Logger, observe func(done string)) *Keeper {
	k := &Keeper{store: store, folder: folder, objects: objects, log: log, woken: make(chan struct{}, 1), observe: observe,
		early: map[string]*early{}, doubtful: map[string]time.Time{}, slots: make(chan struct{}, uploadsAtOnce)}
	k.stop, k.cancel = context.WithCancel(context.Background())
	return k
}

// Close gives up uploads that began while their reports came in, and waits for them. What was acknowledged lies in the
// folder and is uploaded by whoever comes next.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.stopped = true
	k.mu.Unlock()
	k.cancel()
	k.running.Wait()
}

// Failing tells whether the object store was away when it was last needed.
func (k *Keeper) Failing() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failures > 0
}

// Woken receives when something came due before its time.
func (k *Keeper) Woken() <-chan struct{} { return k.woken }

func (k *Keeper) wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

// Create implements session.Recordings.
func (k *Keeper) Create(ctx context.Context) (session.StagedRecording, error) {
	s, err := k.folder.Create(ctx)
	if err != nil {
		return nil, err
	}
	return &taking{Staged: s, k: k}, nil
}

// Kept implements session.Recordings: the report is durable, so the recording may go on.
func (k *Keeper) Kept(key string) {
	if k.objects == nil {
		return
	}
	if e := k.takeEarly(key); e != nil {
		e.finish()
		return
	}
	k.wake()
}

// Doubt implements session.Recordings: the report is stored or not, which the database will know in a while.
func (k *Keeper) Doubt(key string) {
	if e := k.takeEarly(key); e != nil {
		e.giveUp()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.doubtful) < maxDoubtful {
		k.doubtful[key] = time.Time{}
	}
}

// maxDoubtful bounds what is remembered of a database that is away for long; `recordings check` finds the others.
const maxDoubtful = 10_000

func (k *Keeper) takeEarly(key string) *early {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.early[key]
	delete(k.early, key)
	return e
}

// Delete implements session.Recordings. A recording with a row was dropped together with its session, and the row stays
// until the bytes are gone; a file without one goes at once.
func (k *Keeper) Delete(ctx context.Context, key string) error {
	if e := k.takeEarly(key); e != nil {
		e.giveUp()
	}
	row, err := k.store.Recording(ctx, key)
	switch {
	case errs.Is(err, errs.NotFound):
		return k.folder.Remove(key)
	case err != nil:
		return err
	case row.Dropped && row.Place == InFolder && k.objects == nil:
		return k.delete(ctx, row)
	}
	k.wake()
	return nil
}

// Open implements session.Recordings. What the row says may change while this looks, so it looks twice.
func (k *Keeper) Open(ctx context.Context, key string) (io.ReadSeekCloser, error) {
	for try := 0; ; try++ {
		row, err := k.store.Recording(ctx, key)
		if err != nil && !errs.Is(err, errs.NotFound) {
			return nil, err
		}
		if err == nil && row.Place == InObjects {
			if k.objects == nil {
				return nil, errs.New(errs.Unavailable, "the recording is in object storage, which this server is not configured for")
			}
			f, err := k.objects.Open(ctx, key, row.Size)
			if try == 0 && errs.Is(err, errs.NotFound) {
				continue // moved to the folder meanwhile
			}
			return f, err
		}
		f, err := k.folder.Open(key)
		if !errs.Is(err, errs.NotFound) {
			return f, err
		}
		if try > 0 {
			if row.Folder != "" && row.Folder != k.folder.ID() {
				return nil, errs.New(errs.Unavailable, "the recording is in the folder of another server and not in object storage yet")
			}
			return nil, err
		}
	}
}

// Link implements session.Recordings.
func (k *Keeper) Link(ctx context.Context, key, name string) (string, error) {
	if k.objects == nil {
		return "", nil
	}
	row, err := k.store.Recording(ctx, key)
	if errs.Is(err, errs.NotFound) {
		return "", nil
	}
	if err != nil || row.Place != InObjects {
		return "", err
	}
	return k.objects.Link(ctx, key, name)
}

// taking is a recording that comes in: it grows in the folder and, when it is large, in the object store behind that.
type taking struct {
	Staged
	k     *Keeper
	size  int64
	early *early
	done  bool // committed
}

func (t *taking) Write(p []byte) (int, error) {
	n, err := t.Staged.Write(p)
	t.size += int64(n)
	if t.early == nil && t.k.objects != nil && t.size >= PartSize && t.size-int64(n) < PartSize {
		t.early = t.k.begin(t.Staged)
	}
	if t.early != nil {
		t.early.grow(t.size)
	}
	return n, err
}

func (t *taking) Commit(ctx context.Context) (session.Recording, error) {
	rec, err := t.Staged.Commit(ctx)
	if err != nil {
		return rec, err
	}
	t.done = true
	rec.Taken = &session.Taken{Folder: t.k.folder.ID(), Spooled: t.k.objects != nil}
	if t.early != nil {
		t.k.mu.Lock()
		t.k.early[rec.Key] = t.early
		t.k.mu.Unlock()
	}
	return rec, nil
}

func (t *taking) Abort() {
	t.Staged.Abort()
	if t.early != nil && !t.done {
		t.early.giveUp()
	}
}

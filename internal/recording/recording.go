// Package recording decides where recordings lie and gets them there: every one is taken into a folder first, where it
// is safe before its report is acknowledged, and goes on to the object store, when there is one, from there. It knows
// neither S3 nor SQL nor the clock.
package recording

import (
	"context"
	"io"
	"time"

	"sidetone/internal/session"
)

// Place is where the bytes of a recording are, as the database says. The texts are stored.
type Place string

const (
	InFolder  Place = "dir"   // in a folder, to stay there
	InSpool   Place = "spool" // in a folder, on its way to the object store
	InObjects Place = "s3"    // in the object store
)

// Row is what the database knows of one recording.
type Row struct {
	Key    string
	Size   int64  // bytes
	SHA256 string // hex
	Place  Place
	// Folder is the id of the folder that holds the bytes or, for one in the object store, a copy not removed yet. ""
	// is none, or one from before folders had ids.
	Folder   string
	StoredAt time.Time
	Dropped  bool // no session refers to it: it is to be deleted
	Attempts int  // failed ones in a row
	// NextAt is when there is something to do about it: upload it, delete it, remove a copy that was left. Zero is never.
	NextAt    time.Time
	SessionID string // of the session it belongs to; only Shard fills it
}

// Spool is how much waits for the object store.
type Spool struct {
	Count  int
	Bytes  int64
	Oldest time.Time // when the oldest came; zero when nothing waits
}

// Store keeps the rows. Ingest, replacing and deleting sessions add and drop them inside their own transactions.
type Store interface {
	// Recording reads one row, NotFound when there is none.
	Recording(ctx context.Context, key string) (Row, error)
	// Due reads rows that somebody with this folder has something to do about by now, longest due first. Without
	// object storage those that need it stay out.
	Due(ctx context.Context, folder string, objects bool, now time.Time, limit int) ([]Row, error)
	// NextDue is when the next such row comes due; zero when there is none.
	NextDue(ctx context.Context, folder string, objects bool) (time.Time, error)
	// Hurry makes everything due that failed before.
	Hurry(ctx context.Context, folder string) error
	// Switch changes place, folder and next time of a row that is still where old says, and tells whether it was. A row
	// that was dropped stays due at once.
	Switch(ctx context.Context, old Row, place Place, folder string, next time.Time) (bool, error)
	// Postpone notes a failed attempt, unless the row was dropped since it was read.
	Postpone(ctx context.Context, row Row, attempts int, next time.Time) error
	// Forget removes a dropped row whose bytes are gone everywhere.
	Forget(ctx context.Context, key string) error
	// Shard reads all rows whose keys begin with two hex digits.
	Shard(ctx context.Context, shard string) ([]Row, error)
	// Spool counts what waits in all folders.
	Spool(ctx context.Context) (Spool, error)
	// CountPlaces counts the recordings of sessions by place, and their bytes.
	CountPlaces(ctx context.Context) (map[Place]Total, error)
}

// Total is a number of recordings and their bytes.
type Total struct {
	Count int
	Bytes int64
}

// Object is one stored file or object.
type Object struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
}

// File is a recording in a folder, open for reading.
type File interface {
	io.ReadSeekCloser
	io.ReaderAt
}

// Staged is a recording being written into a folder.
type Staged interface {
	session.StagedRecording
	Key() string
	SetKey(key string)
	// Lock opens the growing file and holds its lock until it is closed.
	Lock() (File, error)
}

// Folder keeps recordings on a disk.
type Folder interface {
	ID() string
	Create(ctx context.Context) (Staged, error)
	Open(key string) (File, error)
	// Lock opens a recording; nil when another goroutine or process has it locked.
	Lock(key string) (File, error)
	Remove(key string) error
	List(shard string) ([]Object, error)
}

// Objects is an object store. A failure that may pass is Unavailable, with a message that says what to look at.
type Objects interface {
	// Put stores size bytes; the object is there whole or not at all.
	Put(ctx context.Context, key string, r io.ReaderAt, size int64) error
	// Begin starts an object whose parts come one after the other.
	Begin(ctx context.Context, key string) (Parts, error)
	// Stat tells the size of an object, NotFound when there is none.
	Stat(ctx context.Context, key string) (int64, error)
	// Open reads an object of a known size, NotFound when there is none.
	Open(ctx context.Context, key string, size int64) (io.ReadSeekCloser, error)
	// Delete removes an object. One that is gone already is no error.
	Delete(ctx context.Context, key string) error
	// List names the objects whose keys begin with two hex digits.
	List(ctx context.Context, shard string) ([]Object, error)
	// Link is an address at which the object can be read for a while without credentials; name, unless "", is what a
	// browser saves it as.
	Link(ctx context.Context, key, name string) (string, error)
	// Unfinished lists uploads in parts that were begun and not finished; Discard gives up those of a key.
	Unfinished(ctx context.Context) ([]Object, error)
	Discard(ctx context.Context, key string) error
}

// Parts is an object being stored in parts. Every part but the last has PartSize bytes. Exactly one of Complete and
// Abort ends it; nothing is visible before Complete.
type Parts interface {
	Part(ctx context.Context, r io.ReaderAt, offset, size int64) error
	Complete(ctx context.Context) error
	Abort()
}

// PartSize is the size of the parts of large objects, in bytes. S3 takes 5 MiB to 5 GiB and at most 10,000 parts, so
// this stores up to 80 GB; it is also what is sent again when a connection breaks.
const PartSize = 8 << 20

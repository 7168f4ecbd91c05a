package session

import (
	"context"
	"io"
	"time"
)

// Key says which session a signal belongs to.
type Key struct {
	Room string // room id, or the session id that a JSON header names
	Job  string // "" when the signal does not say
	// Exact is set when the client named the session itself (JSON header): the job then never splits the room.
	Exact bool
}

// Resolve applies the identity rule: the first job of a room owns the plain room id, any other non-empty job has
// ROOM:JOB. existing is the job key of the session stored under the plain room id, with found false when none is.
func (k Key) Resolve(existingJob string, found bool) string {
	if !found || k.Exact || k.Job == "" || existingJob == "" || existingJob == k.Job {
		return k.Room
	}
	return k.Room + ":" + k.Job
}

// DocKind names one of the documents that are stored whole beside a session.
type DocKind int

// The documents of a session. The numbers are stored.
const (
	DocReport DocKind = 1 // the uploaded report: header and body as sent
	DocLog    DocKind = 2 // what log records said, merged
	DocTrace  DocKind = 3 // what spans said, merged
)

// Prior is what the store already holds of a session when a signal arrives.
type Prior struct {
	Session Session
	JobKey  string
	// Doc reads one stored document, nil when there is none.
	Doc func(DocKind) ([]byte, error)
}

// Record is everything the store keeps of one session. Documents absent from Docs stay as they are.
type Record struct {
	Session  Session
	JobKey   string // the job of the identity, "" when no signal named one
	Facts    TurnFacts
	Verdicts []Verdict
	// OutcomeAt is when the outcome first reached us; zero without one.
	OutcomeAt time.Time
	// Words are the searchable words, as the function Words gives them. With SameWords they are what is indexed already.
	Words     string
	SameWords bool
	Docs      map[DocKind][]byte
}

// Verdict is one evaluation as alert rules count it.
type Verdict struct {
	Judge   string
	Verdict string
	At      time.Time // arrival
}

// Change is one signal about one session. Fresh is what to store when the session is new; Merge computes what to
// store when it is not. Both must be pure: the store calls Merge inside its transaction and may call it again.
type Change struct {
	Key   Key
	Fresh *Record
	Merge func(Prior) (*Record, error)
	// Chunks are kept beside the session; one that is there already is not stored twice.
	Chunks []Chunk
	// OnlyExisting makes the change do nothing when the session is gone; Fresh is nil then.
	OnlyExisting bool
}

// Applied is the result of a durable change.
type Applied struct {
	ID string
	// Dropped is the recording that the change replaced, nil when none was.
	Dropped *Recording
}

// Stored is one session with its documents.
type Stored struct {
	Session Session
	JobKey  string
	Docs    map[DocKind][]byte
}

// Listed is one row of a list, with the transcript when the list was a search.
type Listed struct {
	Session Session
	Docs    map[DocKind][]byte // only when searching: what the snippet is cut from
}

// Filter selects sessions; zero fields do not filter. All are combined with AND, lists are any-of.
type Filter struct {
	AccountIDs, AgentIDs, AgentNames, Transports, Outcomes []string

	StartedFrom, StartedTo time.Time // inclusive
	State                  string
	HasRecording           *bool
	HasFailedEval          *bool
	MinDurationMS          *int64
	MaxDurationMS          *int64
	Search                 Query
}

// Page selects a slice of a list.
type Page struct{ Limit, Offset int }

// Store keeps sessions. Apply answers only when the change is durable. Errors are of the kinds of package errs:
// Unavailable when the database is away, NotFound for an unknown id.
type Store interface {
	Apply(ctx context.Context, c Change) (Applied, error)
	List(ctx context.Context, f Filter, p Page) (rows []Listed, total int, err error)
	Get(ctx context.Context, id string) (*Stored, error)
	// AppendChunks keeps chunks that belong to no session under an owner's name.
	AppendChunks(ctx context.Context, owner string, chunks []Chunk) error
	// Chunks reads the chunks of a session, NotFound when there is no such session; TraceChunks those of traces
	// without a session.
	Chunks(ctx context.Context, id string, kind ChunkKind) ([][]byte, error)
	TraceChunks(ctx context.Context, traceIDs []string, kind ChunkKind) ([][]byte, error)
	// Silent finds active sessions whose last signal came no later than a time.
	Silent(ctx context.Context, notAfter time.Time, limit int) ([]Key, error)
	// Delete removes sessions with all that belongs to them and returns their recordings.
	Delete(ctx context.Context, ids []string) (deleted int, recordings []Recording, err error)
}

// Recordings keeps audio files under keys of its own making.
type Recordings interface {
	// Create starts a new recording; nothing is visible until Commit.
	Create(ctx context.Context) (StagedRecording, error)
	// Open reads a recording; NotFound when it is gone.
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
	// Link is an address at which a client may fetch a recording itself for a while, "" when it must be streamed. name,
	// unless "", is what the client saves it as.
	Link(ctx context.Context, key, name string) (string, error)
	// Exactly one of these follows Commit: Kept when the report is durable, Delete when it is not stored, Doubt when
	// that is not known. Delete also follows when the session of a recording was deleted or got another recording; what
	// cannot be deleted now is deleted later.
	Kept(key string)
	Delete(ctx context.Context, key string) error
	Doubt(key string)
}

// StagedRecording is a recording being written. Exactly one of Commit and Abort ends it; Abort after Commit does nothing.
type StagedRecording interface {
	io.Writer
	// Commit makes the recording durable.
	Commit(ctx context.Context) (Recording, error)
	Abort()
}

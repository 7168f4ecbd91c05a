package recording_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sidetone/internal/apptest"
	"sidetone/internal/blob"
	"sidetone/internal/errs"
	"sidetone/internal/recording"
	"sidetone/internal/s3test"
	"sidetone/internal/session"
	"sidetone/internal/sqlstore"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// house is everything around a keeper: a database, a folder and a real object store behind a proxy.
type house struct {
	t        *testing.T
	store    *sqlstore.Store
	folder   string
	dir      *blob.Dir
	server   *s3test.Server
	proxy    *s3test.Proxy
	objects  *blob.S3
	keeper   *recording.Keeper
	sessions *session.Service
	log      bytes.Buffer
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, folder: t.TempDir(), server: s3test.Start(t)}
	h.proxy = s3test.NewProxy(t, h.server.Endpoint)
	var err error
	if h.store, err = sqlstore.Open("sqlite", filepath.Join(t.TempDir(), "x.db"), "", sqlstore.Observer{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.store.Close() })
	if _, err := h.store.Migrate(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if h.objects, err = blob.OpenS3(blob.S3Settings{Bucket: s3test.Bucket, Region: s3test.Region, AccessKeyID: s3test.AccessKey,
		SecretAccessKey: s3test.SecretKey, Endpoint: h.proxy.URL, Prefix: "recordings", Stall: time.Second, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	h.restart(true)
	t.Cleanup(func() { h.keeper.Close() })
	return h
}

// restart makes a new keeper, as a new process does, with or without object storage.
func (h *house) restart(objects bool) {
	h.t.Helper()
	if h.keeper != nil {
		h.keeper.Close()
	}
	var err error
	if h.dir, err = blob.OpenDir(h.folder); err != nil {
		h.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	var store recording.Objects
	if objects {
		store = h.objects
	}
	h.keeper = recording.NewKeeper(h.store, h.dir, store, log, nil)
	if err := h.keeper.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	parse := func(doc []byte) (*session.Report, error) { return &session.Report{SessionID: string(doc)}, nil }
	h.sessions = session.NewService(h.store, h.keeper, parse, func([]session.Usage, []session.Item) *float64 { return nil }, log)
}

func noise(seed, n int) []byte {
	b := make([]byte, n)
	mathrand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// send stores a report with a recording, or fails the test.
func (h *house) send(id string, audio []byte) {
	h.t.Helper()
	rec, err := h.sessions.NewRecording(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := io.Copy(struct{ io.Writer }{rec}, bytes.NewReader(audio)); err != nil {
		h.t.Fatal(err)
	}
	_, err = h.sessions.Ingest(h.t.Context(), session.Upload{Report: &session.Report{SessionID: id}, Doc: []byte(id), Audio: rec}, noon)
	if err != nil {
		h.t.Fatal(err)
	}
}

// plays checks that a session's recording reads back byte for byte.
func (h *house) plays(id string, want []byte) {
	h.t.Helper()
	_, f, err := h.sessions.Recording(h.t.Context(), id)
	if err != nil {
		h.t.Errorf("%s: %v", id, err)
		return
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
		h.t.Errorf("%s: %d bytes of %d, %v", id, len(got), len(want), err)
	}
}

// files are the keys in the folder.
func (h *house) files() []string {
	h.t.Helper()
	paths, err := filepath.Glob(filepath.Join(h.folder, "??", "*"))
	if err != nil {
		h.t.Fatal(err)
	}
	return paths
}

// holds checks how many recordings the folder and the bucket have.
func (h *house) holds(files, objects int) {
	h.t.Helper()
	if got := h.files(); len(got) != files {
		h.t.Errorf("the folder has %d recordings, want %d: %v", len(got), files, got)
	}
	if got := h.server.Keys(); len(got) != objects {
		h.t.Errorf("the bucket has %d recordings, want %d: %v", len(got), objects, got)
	}
}

func (h *house) key(id string) string {
	h.t.Helper()
	st, err := h.store.Get(h.t.Context(), id)
	if err != nil || st.Session.Recording == nil {
		h.t.Fatalf("%s: %v", id, err)
	}
	return st.Session.Recording.Key
}

func (h *house) row(id string) recording.Row {
	h.t.Helper()
	row, err := h.store.Recording(h.t.Context(), h.key(id))
	if err != nil {
		h.t.Fatal(err)
	}
	return row
}

// until waits for something that happens beside the test.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	apptest.Eventually(t, 20*time.Second, what, ok)
}

func TestRecordingsGoToTheObjectStore(t *testing.T) {
	h := newHouse(t)
	sizes := []int{0, 1, 100_000, recording.PartSize - 1, recording.PartSize}
	for i, n := range sizes {
		h.send(fmt.Sprint("call-", i), noise(i, n))
	}
	h.plays("call-2", noise(2, sizes[2])) // from the folder
	if s, err := h.store.Spool(t.Context()); err != nil || s.Count == 0 || !s.Oldest.Equal(noon) {
		t.Errorf("spool: %+v, %v", s, err)
	}
	// The last one is large enough to be on its way already; the round takes the others.
	until(t, "all uploaded", func() bool {
		h.keeper.Round(t.Context(), noon)
		return len(h.files()) == 0
	})
	h.holds(0, len(sizes))
	for i, n := range sizes {
		h.plays(fmt.Sprint("call-", i), noise(i, n))
		if got := h.row(fmt.Sprint("call-", i)); got.Place != recording.InObjects || got.Folder != "" || !got.NextAt.IsZero() {
			t.Errorf("call-%d: %+v", i, got)
		}
	}
	if s, err := h.store.Spool(t.Context()); err != nil || s != (recording.Spool{}) {
		t.Errorf("spool: %+v, %v", s, err)
	}
	if next := h.keeper.Round(t.Context(), noon); !next.IsZero() {
		t.Errorf("there is more to do at %v", next)
	}
}

// A large recording is uploaded while it comes in, and is an object only when its report is durable.
func TestLargeRecordingsAreUploadedWhileTheyComeIn(t *testing.T) {
	h := newHouse(t)
	audio := noise(7, 3*recording.PartSize+5)
	rec, err := h.sessions.NewRecording(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec.Write(audio[:2*recording.PartSize+1])
	until(t, "two parts sent before the report is complete", func() bool { return h.proxy.Requests() >= 3 })
	h.holds(0, 0)
	rec.Write(audio[2*recording.PartSize+1:])
	if _, err := h.sessions.Ingest(t.Context(), session.Upload{Report: &session.Report{SessionID: "big"}, Doc: []byte("big"), Audio: rec}, noon); err != nil {
		t.Fatal(err)
	}
	rec.Abort() // as handlers do in every case
	until(t, "uploaded without a round", func() bool { return len(h.files()) == 0 })
	h.holds(0, 1)
	h.plays("big", audio)

	// A report that is refused leaves nothing, and nobody is still uploading.
	rec, err = h.sessions.NewRecording(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec.Write(audio)
	rec.Abort()
	h.keeper.Close()
	h.holds(0, 1)
	if left, err := h.objects.Unfinished(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("unfinished uploads: %v, %v", left, err)
	}
}

func TestAnOutageDelaysAndLosesNothing(t *testing.T) {
	h := newHouse(t)
	for name, fault := range map[string]s3test.Fault{"500": {Status: 500}, "503": {Status: 503}, "hang": {Hang: true}, "cut": {CutAfter: 1000}, "refused": {}} {
		h.proxy.Set(fault)
		if name == "refused" {
			h.server.Stop()
		}
		small, large := noise(1, 50_000), noise(2, 2*recording.PartSize+77)
		h.send(name+"-small", small)
		h.send(name+"-large", large)
		now, waits := noon, []time.Duration{}
		for range 4 {
			next := h.keeper.Round(t.Context(), now)
			if next.IsZero() {
				t.Fatalf("%s: the round says that all is done", name)
			}
			waits = append(waits, next.Sub(now))
			if again := h.keeper.Round(t.Context(), now); !again.Equal(next) {
				t.Errorf("%s: a wake-up breaks the wait: %v", name, again)
			}
			now = next
		}
		if !slices.IsSorted(waits) || waits[0] < time.Second || waits[3] < 8*time.Second {
			t.Errorf("%s: waits %v", name, waits)
		}
		h.plays(name+"-small", small)
		h.plays(name+"-large", large)
		if name == "refused" {
			h.server.Start()
		}
		h.proxy.Set(s3test.Fault{})
		h.restart(true) // a new process does not wait
		until(t, "uploaded after "+name, func() bool {
			h.keeper.Round(t.Context(), noon)
			return len(h.files()) == 0
		})
		h.plays(name+"-small", small)
		h.plays(name+"-large", large)
	}
	h.holds(0, 10)
}

// A long outage with much to do ends without a restart.
func TestManyRoundsOfAnOutage(t *testing.T) {
	h := newHouse(t)
	for i := range 20 {
		h.send(fmt.Sprint("call-", i), noise(i, 100))
	}
	h.proxy.Set(s3test.Fault{Status: 503})
	now := noon
	for i := range 15 {
		next := h.keeper.Round(t.Context(), now)
		if wait := next.Sub(now); wait < time.Second || wait > 30*time.Second || !h.keeper.Failing() {
			t.Fatalf("round %d waits %s", i, wait)
		}
		now = next
	}
	before := h.proxy.Requests()
	h.keeper.Round(t.Context(), now)
	if n := h.proxy.Requests() - before; n > 4*4 {
		t.Errorf("%d requests in one round of an outage", n)
	}
	h.proxy.Set(s3test.Fault{})
	for range 20 { // some have failed often enough to wait for minutes
		now = now.Add(5 * time.Minute)
		if h.keeper.Round(t.Context(), now).IsZero() {
			break
		}
	}
	h.holds(0, 20)
	if h.keeper.Failing() {
		t.Error("still failing")
	}
}

// The note that an object is stored can be lost; then it is not stored again.
func TestACrashBeforeTheNoteDoesNotStoreTwice(t *testing.T) {
	h := newHouse(t)
	audio := noise(3, 1000)
	h.send("call", audio)
	if err := h.objects.Put(t.Context(), h.key("call"), bytes.NewReader(audio), 1000); err != nil {
		t.Fatal(err)
	}
	h.restart(true)
	before := h.proxy.Requests()
	h.keeper.Round(t.Context(), noon)
	if n := h.proxy.Requests() - before; n != 2 {
		t.Errorf("%d requests, want two looks", n)
	}
	h.holds(0, 1)
	h.plays("call", audio)
}

// A process that dies between noting the object and removing the file leaves the file to the next one.
func TestACrashBeforeTheFileIsRemoved(t *testing.T) {
	h := newHouse(t)
	audio := noise(3, 1000)
	h.send("call", audio)
	row := h.row("call")
	if err := h.objects.Put(t.Context(), row.Key, bytes.NewReader(audio), 1000); err != nil {
		t.Fatal(err)
	}
	if ok, err := h.store.Switch(t.Context(), row, recording.InObjects, row.Folder, time.UnixMicro(1)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	h.holds(1, 1)
	h.restart(true)
	h.keeper.Round(t.Context(), noon)
	h.holds(0, 1)
	h.plays("call", audio)
}

func TestDeletedAndReplacedRecordingsGo(t *testing.T) {
	h := newHouse(t)
	h.send("a", noise(1, 1000))
	h.send("b", noise(2, 1000))
	h.keeper.Round(t.Context(), noon)
	h.send("a", noise(3, 2000)) // the report again, with another recording
	h.send("c", noise(4, 1000)) // still in the folder when it is deleted
	h.proxy.Set(s3test.Fault{Status: 503})
	if n, err := h.sessions.Delete(t.Context(), []string{"b", "c"}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if _, _, err := h.sessions.Recording(t.Context(), "b"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a deleted session: %v", err)
	}
	next := h.keeper.Round(t.Context(), noon)
	if next.IsZero() {
		t.Fatal("nothing is left to do although the store refused")
	}
	h.proxy.Set(s3test.Fault{})
	until(t, "gone", func() bool {
		next = h.keeper.Round(t.Context(), next)
		return next.IsZero()
	})
	h.holds(0, 1)
	h.plays("a", noise(3, 2000))
}

func TestWithoutObjectStorageTheFolderIsAll(t *testing.T) {
	h := newHouse(t)
	h.restart(false)
	audio := noise(1, 2*recording.PartSize)
	h.send("a", audio)
	h.send("b", noise(2, 10))
	h.send("b", noise(3, 20))
	if next := h.keeper.Round(t.Context(), noon); !next.IsZero() {
		t.Errorf("there is something to do at %v", next)
	}
	h.holds(2, 0)
	h.plays("a", audio)
	h.plays("b", noise(3, 20))
	if n, err := h.sessions.Delete(t.Context(), []string{"a"}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	h.holds(1, 0)
	if h.proxy.Requests() != 0 {
		t.Error("object storage was asked")
	}
}

// A report of which the database does not say whether it is stored keeps its file until the database knows.
func TestDoubtfulFilesStayUntilTheDatabaseKnows(t *testing.T) {
	h := newHouse(t)
	h.restart(false)
	var keys []string
	for i := range 2 {
		rec, err := h.keeper.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rec.Write(noise(i, 100))
		r, err := rec.Commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.keeper.Doubt(r.Key)
		keys = append(keys, r.Key)
		if i == 0 { // this one was stored after all
			r.Taken.At = noon
			s := session.Session{ID: "call", Recording: &r, CreatedAt: noon, FirstSignalAt: noon, LastSignalAt: noon}
			if _, err := h.store.Apply(t.Context(), session.Change{Key: session.Key{Room: "call"}, Fresh: &session.Record{Session: s}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.keeper.Round(t.Context(), noon)
	h.keeper.Round(t.Context(), noon.Add(9*time.Minute))
	h.holds(2, 0)
	h.keeper.Round(t.Context(), noon.Add(11*time.Minute))
	if files := h.files(); len(files) != 1 || !strings.HasSuffix(files[0], filepath.FromSlash(keys[0])) {
		t.Errorf("left: %v, want %s", files, keys[0])
	}
}

// Two processes with one folder do not get into each other's way, and one with another folder leaves it alone.
func TestSeveralProcesses(t *testing.T) {
	h := newHouse(t)
	for i := range 20 {
		h.send(fmt.Sprint("call-", i), noise(i, 1000))
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	elsewhere, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	far := recording.NewKeeper(h.store, elsewhere, h.objects, log, nil)
	defer far.Close()
	if next := far.Round(t.Context(), noon); !next.IsZero() {
		t.Errorf("a process without the files wants to do something at %v", next)
	}
	if _, err := far.Open(t.Context(), h.key("call-1")); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a recording in another's folder: %v", err)
	}
	before := h.proxy.Requests()
	done := make(chan struct{})
	second := recording.NewKeeper(h.store, h.dir, h.objects, log, nil)
	defer second.Close()
	go func() {
		second.Round(context.Background(), noon)
		close(done)
	}()
	h.keeper.Round(t.Context(), noon)
	<-done
	until(t, "all uploaded", func() bool {
		h.keeper.Round(t.Context(), noon)
		return len(h.files()) == 0
	})
	h.holds(0, 20)
	if n := h.proxy.Requests() - before; n != 60 { // look, put, look
		t.Errorf("%d requests for 20 recordings, want 60", n)
	}
	f, err := far.Open(t.Context(), h.key("call-1"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, noise(1, 1000)) {
		t.Errorf("from the object store: %d bytes, %v", len(got), err)
	}
}

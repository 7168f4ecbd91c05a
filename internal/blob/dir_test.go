package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sidetone/internal/errs"
)

func openDir(t *testing.T, root string) *Dir {
	t.Helper()
	d, err := OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFolderKeepsWhatWasWritten(t *testing.T) {
	d := openDir(t, t.TempDir())
	for _, size := range []int{0, 1, 100_000} {
		data := noise(size)
		s, err := d.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Write(data)
		if _, err := d.Open(s.Key()); !errs.Is(err, errs.NotFound) {
			t.Errorf("visible before it is committed: %v", err)
		}
		rec, err := s.Commit(t.Context())
		sum := sha256.Sum256(data)
		if err != nil || rec.Key != s.Key() || rec.Size != int64(size) || rec.SHA256 != hex.EncodeToString(sum[:]) {
			t.Fatalf("%+v, %v", rec, err)
		}
		s.Abort() // does nothing any more
		f, err := d.Open(rec.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		f.Close()
		if list, err := d.List(rec.Key[:2]); err != nil || len(list) != 1 || list[0].Key != rec.Key || list[0].Size != int64(size) {
			t.Errorf("%v, %v", list, err)
		}
		for range 2 {
			if err := d.Remove(rec.Key); err != nil {
				t.Error(err)
			}
		}
		if _, err := d.Open(rec.Key); !errs.Is(err, errs.NotFound) {
			t.Errorf("removed: %v", err)
		}
	}
	for _, key := range []string{"", "..", "../x", "ab/../../../etc/passwd", "tmp/x", ".folder-id", "AB/" + strings.Repeat("0", 30) + ".ogg"} {
		if _, err := d.Open(key); !errs.Is(err, errs.NotFound) {
			t.Errorf("%q: %v", key, err)
		}
		if err := d.Remove(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	if _, err := os.Stat(filepath.Join(d.root, idFile)); err != nil {
		t.Error(err)
	}
}

// A full disk is said to be one, and the client is told to come back.
func TestFullDisk(t *testing.T) {
	d := openDir(t, t.TempDir())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &staged{dir: d, f: full, key: newKey(), sum: sha256.New()}
	_, err = s.Write([]byte("x"))
	if !errs.Is(err, errs.Unavailable) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "full") {
		t.Errorf("%v", err)
	}
	full.Close()
}

func TestLockIsOneAtATimeAndSurvivesTheRename(t *testing.T) {
	d := openDir(t, t.TempDir())
	s, err := d.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("x"))
	held, err := s.Lock()
	if err != nil || held == nil {
		t.Fatal(held, err)
	}
	if _, err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f, err := d.Lock(s.Key()); f != nil || err != nil {
		t.Errorf("locked twice: %v, %v", f, err)
	}
	held.Close()
	f, err := d.Lock(s.Key())
	if err != nil || f == nil {
		t.Fatalf("not given back: %v, %v", f, err)
	}
	f.Close()
	if _, err := d.Lock(newKey()); !errs.Is(err, errs.NotFound) {
		t.Errorf("nothing to lock: %v", err)
	}
}

func TestEveryProcessReadsTheSameFolderID(t *testing.T) {
	root := t.TempDir()
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			d, err := OpenDir(root)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = d.ID()
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("%q", ids)
		}
	}
	if other := openDir(t, t.TempDir()).ID(); other == ids[0] {
		t.Error("two folders have one id")
	}
	os.WriteFile(filepath.Join(root, idFile), nil, 0o600)
	if _, err := OpenDir(root); err == nil {
		t.Error("a folder with an empty id is used")
	}
}

func TestOnlyOldRemainsAreCleaned(t *testing.T) {
	d := openDir(t, t.TempDir())
	s, err := d.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("x"))
	left := func() int {
		entries, err := os.ReadDir(filepath.Join(d.root, stagingDir))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	if err := d.CleanStaging(time.Now().Add(time.Hour), 6*time.Hour); err != nil || left() != 1 {
		t.Errorf("%d left, %v", left(), err)
	}
	if err := d.CleanStaging(time.Now().Add(7*time.Hour), 6*time.Hour); err != nil || left() != 0 {
		t.Errorf("%d left, %v", left(), err)
	}
}

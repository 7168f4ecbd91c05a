// Package blob keeps recordings. Keys are random and made here, so no path ever comes from a client.
package blob

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// Dir keeps recordings as files of a folder: written under a temporary name, fsynced, renamed.
type Dir struct{ root string }

// keyForm is what a key looks like: two hex digits of spread, then the rest of 16 random bytes.
var keyForm = regexp.MustCompile(`^[0-9a-f]{2}/[0-9a-f]{30}\.ogg$`)

const stagingDir = "tmp"

// OpenDir uses a folder, made when missing.
func OpenDir(root string) (*Dir, error) {
	if err := os.MkdirAll(filepath.Join(root, stagingDir), 0o750); err != nil {
		return nil, fmt.Errorf("create the recordings folder: %w", err)
	}
	return &Dir{root: root}, nil
}

// CleanStaging removes what uploads left behind that died with their process more than age ago. Other processes may be
// writing to the same folder, so younger files stay.
func (d *Dir) CleanStaging(now time.Time, age time.Duration) error {
	entries, err := os.ReadDir(filepath.Join(d.root, stagingDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && now.Sub(info.ModTime()) > age {
			os.Remove(filepath.Join(d.root, stagingDir, e.Name()))
		}
	}
	return nil
}

// Check answers nil when a recording could be written now.
func (d *Dir) Check(context.Context) error {
	f, err := os.CreateTemp(filepath.Join(d.root, stagingDir), "check-*")
	if err != nil {
		return storageError(err)
	}
	f.Close()
	return os.Remove(f.Name())
}

// Create implements session.Recordings.
func (d *Dir) Create(context.Context) (session.StagedRecording, error) {
	f, err := os.CreateTemp(filepath.Join(d.root, stagingDir), "upload-*")
	if err != nil {
		return nil, storageError(err)
	}
	return &stagedFile{dir: d, f: f, sum: sha256.New()}, nil
}

// Open implements session.Recordings.
func (d *Dir) Open(_ context.Context, key string) (io.ReadSeekCloser, error) {
	if !keyForm.MatchString(key) {
		return nil, errs.New(errs.NotFound, "there is no such recording")
	}
	f, err := os.Open(filepath.Join(d.root, filepath.FromSlash(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.Wrap(errs.NotFound, err, "the recording is gone")
	}
	if err != nil {
		return nil, storageError(err)
	}
	return f, nil
}

// Delete implements session.Recordings. A recording that is gone already is no error.
func (d *Dir) Delete(_ context.Context, key string) error {
	if !keyForm.MatchString(key) {
		return nil
	}
	err := os.Remove(filepath.Join(d.root, filepath.FromSlash(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stagedFile is a recording being written into the staging folder.
type stagedFile struct {
	dir  *Dir
	f    *os.File
	sum  hash.Hash
	size int64
	done bool
}

func (s *stagedFile) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	s.sum.Write(p[:n])
	s.size += int64(n)
	if err != nil {
		return n, storageError(err)
	}
	return n, nil
}

// Commit implements session.StagedRecording: the bytes, the name and, for a new folder, the folder are on disk.
func (s *stagedFile) Commit(context.Context) (session.Recording, error) {
	if s.done {
		return session.Recording{}, errs.New(errs.Internal, "the recording is finished already")
	}
	if err := s.f.Sync(); err != nil {
		return session.Recording{}, storageError(err)
	}
	if err := s.f.Close(); err != nil {
		return session.Recording{}, storageError(err)
	}
	key := newKey()
	final := filepath.Join(s.dir.root, filepath.FromSlash(key))
	folder := filepath.Dir(final)
	if err := os.Mkdir(folder, 0o750); err == nil {
		if err := syncDir(s.dir.root); err != nil {
			return session.Recording{}, storageError(err)
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return session.Recording{}, storageError(err)
	}
	if err := os.Rename(s.f.Name(), final); err != nil {
		return session.Recording{}, storageError(err)
	}
	s.done = true
	if err := syncDir(folder); err != nil {
		return session.Recording{}, storageError(err)
	}
	return session.Recording{Key: key, Size: s.size, SHA256: hex.EncodeToString(s.sum.Sum(nil))}, nil
}

// Abort implements session.StagedRecording.
func (s *stagedFile) Abort() {
	if s.done {
		return
	}
	s.done = true
	s.f.Close()
	os.Remove(s.f.Name())
}

func newKey() string {
	var b [16]byte
	rand.Read(b[:])
	h := hex.EncodeToString(b[:])
	return h[:2] + "/" + h[2:] + ".ogg"
}

// syncDir makes the names in a folder durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// storageError says that recordings cannot be stored for now; the client keeps its report and tries again.
func storageError(err error) error {
	msg := "recordings cannot be stored right now"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		msg = "the disk for recordings is full"
	}
	return errs.Wrap(errs.Unavailable, err, "%s", msg)
}

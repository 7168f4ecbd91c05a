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
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/recording"
	"sidetone/internal/session"
)

// Dir keeps recordings as files of a folder: written under a temporary name, fsynced, renamed.
type Dir struct{ root, id string }

// keyForm is what a key looks like: two hex digits of spread, then the rest of 16 random bytes.
var keyForm = regexp.MustCompile(`^[0-9a-f]{2}/[0-9a-f]{30}\.ogg$`)

const (
	stagingDir = "tmp"
	idFile     = ".folder-id"
)

// OpenDir uses a folder, made when missing.
func OpenDir(root string) (*Dir, error) {
	if err := os.MkdirAll(filepath.Join(root, stagingDir), 0o750); err != nil {
		return nil, fmt.Errorf("create the recordings folder: %w", err)
	}
	id, err := folderID(root)
	if err != nil {
		return nil, fmt.Errorf("name the recordings folder: %w", err)
	}
	return &Dir{root: root, id: id}, nil
}

// folderID reads the name that a folder carries with it wherever it is mounted, and gives it one the first time.
func folderID(root string) (string, error) {
	path := filepath.Join(root, idFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := writeOnce(path, rand.Text()); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		b, err = os.ReadFile(path)
	}
	id := strings.TrimSpace(string(b))
	if err == nil && id == "" {
		err = fmt.Errorf("%s is empty", path)
	}
	return id, err
}

// writeOnce makes a file with its content in one step: of two processes one wins, and nobody reads half of it.
func writeOnce(path, content string) error {
	f, err := os.CreateTemp(filepath.Join(filepath.Dir(path), stagingDir), "id-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(content + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// ID is the folder's name for itself: processes that share the folder share it.
func (d *Dir) ID() string { return d.id }

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

// Create starts a new recording under a temporary name.
func (d *Dir) Create(context.Context) (recording.Staged, error) {
	f, err := os.CreateTemp(filepath.Join(d.root, stagingDir), "upload-*")
	if err != nil {
		return nil, storageError(err)
	}
	return &staged{dir: d, f: f, key: newKey(), sum: sha256.New()}, nil
}

// Open reads a recording; NotFound when the folder has none under the key.
func (d *Dir) Open(key string) (recording.File, error) {
	if !keyForm.MatchString(key) {
		return nil, errs.New(errs.NotFound, "there is no such recording")
	}
	f, err := os.Open(d.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.Wrap(errs.NotFound, err, "the recording is gone")
	}
	if err != nil {
		return nil, storageError(err)
	}
	return f, nil
}

// Lock opens a recording that no other goroutine or process has locked; nil when one has. Closing the file, or the end
// of the process, gives the lock back.
func (d *Dir) Lock(key string) (recording.File, error) {
	f, err := d.Open(key)
	if err != nil {
		return nil, err
	}
	return lock(f.(*os.File))
}

func lock(f *os.File) (recording.File, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, storageError(err)
}

// Remove deletes a recording. One that is gone already is no error.
func (d *Dir) Remove(key string) error {
	if !keyForm.MatchString(key) {
		return nil
	}
	err := os.Remove(d.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List names the recordings whose keys begin with two hex digits.
func (d *Dir) List(shard string) ([]recording.Object, error) {
	entries, err := os.ReadDir(filepath.Join(d.root, shard))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []recording.Object
	for _, e := range entries {
		key := shard + "/" + e.Name()
		if !keyForm.MatchString(key) {
			continue
		}
		if info, err := e.Info(); err == nil { // removed meanwhile otherwise
			out = append(out, recording.Object{Key: key, Size: info.Size(), Modified: info.ModTime()})
		}
	}
	return out, err
}

func (d *Dir) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

// staged is a recording being written into the staging folder.
type staged struct {
	dir  *Dir
	f    *os.File
	key  string
	sum  hash.Hash
	size int64
	done bool
}

func (s *staged) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	s.sum.Write(p[:n])
	s.size += int64(n)
	if err != nil {
		return n, storageError(err)
	}
	return n, nil
}

// Key is what the recording will be called.
func (s *staged) Key() string { return s.key }

// SetKey gives the recording the name of one that is stored elsewhere already.
func (s *staged) SetKey(key string) { s.key = key }

// Lock opens the file for reading while it grows and holds its lock, under its final name too.
func (s *staged) Lock() (recording.File, error) {
	f, err := os.Open(s.f.Name())
	if err != nil {
		return nil, storageError(err)
	}
	return lock(f)
}

// Commit implements session.StagedRecording: the bytes, the name and, for a new folder, the folder are on disk.
func (s *staged) Commit(context.Context) (session.Recording, error) {
	if s.done {
		return session.Recording{}, errs.New(errs.Internal, "the recording is finished already")
	}
	if !keyForm.MatchString(s.key) {
		return session.Recording{}, errs.New(errs.Internal, "%q is no key of a recording", s.key)
	}
	if err := s.f.Sync(); err != nil {
		return session.Recording{}, storageError(err)
	}
	if err := s.f.Close(); err != nil {
		return session.Recording{}, storageError(err)
	}
	final := s.dir.path(s.key)
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
		os.Remove(final) // the caller is told that nothing is stored
		return session.Recording{}, storageError(err)
	}
	return session.Recording{Key: s.key, Size: s.size, SHA256: hex.EncodeToString(s.sum.Sum(nil))}, nil
}

// Abort implements session.StagedRecording.
func (s *staged) Abort() {
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

var _ recording.Folder = (*Dir)(nil)

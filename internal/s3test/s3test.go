// Package s3test runs a real S3 server for tests: versitygw, built from its Go module (the go.mod in versitygw/) and run on
// a temporary folder. Nothing installed on the machine is used, and the server ends with the test.
package s3test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Keys of the only user.
const (
	AccessKey = "sidetone-test"
	SecretKey = "sidetone-test-secret"
	Bucket    = "calls"
	Region    = "us-east-1"
)

const startTimeout = 60 * time.Second

// binary builds the server once for a version and a toolchain, in the cache folder of this repository.
var binary = sync.OnceValues(func() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "versitygw")
	cache := filepath.Join(module, "..", "..", "..", ".cache")
	sum, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	version := "unknown"
	for _, f := range strings.Fields(string(sum[bytes.Index(sum, []byte("versity/versitygw v")):])) {
		if strings.HasPrefix(f, "v") && strings.Count(f, ".") >= 2 {
			version = f
			break
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(cache, "versitygw.lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // another test process may be building it
		return "", err
	}
	bin := filepath.Join(cache, "versitygw-"+version+"-"+runtime.Version())
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", bin+".new", "github.com/versity/versitygw/cmd/versitygw")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("s3test: build versitygw: %w\n%s", err, out)
	}
	return bin, os.Rename(bin+".new", bin)
})

// Server is a running S3 server with one bucket.
type Server struct {
	Endpoint string // http://127.0.0.1:port, the same after Stop and Start

	tb     testing.TB
	bin    string
	dir    string // holds one folder per bucket
	addr   string
	cmd    *exec.Cmd
	exited chan struct{}
	log    *os.File
}

// Start runs a server until the test ends.
func Start(tb testing.TB) *Server {
	tb.Helper()
	bin, err := binary()
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, bin: bin, dir: tb.TempDir()}
	if err := os.Mkdir(filepath.Join(s.dir, Bucket), 0o755); err != nil {
		tb.Fatal(err)
	}
	if s.log, err = os.Create(filepath.Join(tb.TempDir(), "log")); err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.Endpoint = "http://" + s.addr
	l.Close()
	tb.Cleanup(func() {
		s.Stop()
		s.log.Close()
		if tb.Failed() {
			b, _ := os.ReadFile(s.log.Name())
			tb.Logf("log of the S3 server:\n%s", b[max(0, len(b)-4000):])
		}
	})
	s.Start()
	return s
}

// Start runs the server again after Stop, on the same address and data.
func (s *Server) Start() {
	s.tb.Helper()
	s.cmd = exec.Command(s.bin, "--port", s.addr, "--access", AccessKey, "--secret", SecretKey, "--region", Region, "posix", s.dir)
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(cmd *exec.Cmd) {
		cmd.Wait()
		close(exited)
	}(s.cmd)
	for end := time.Now().Add(startTimeout); ; {
		if r, err := http.Get(s.Endpoint); err == nil {
			r.Body.Close()
			return
		}
		select {
		case <-exited:
			s.tb.Fatal("the S3 server ended at start")
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			s.tb.Fatal("the S3 server does not answer")
		}
	}
}

// Stop ends the server at once.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	<-s.exited
	s.cmd = nil
}

// Settings are the server's part of the environment of a process that uses the given address for it.
func Settings(endpoint string) []string {
	return []string{"S3_BUCKET=" + Bucket, "S3_ENDPOINT=" + endpoint, "S3_ACCESS_KEY_ID=" + AccessKey, "S3_SECRET_ACCESS_KEY=" + SecretKey}
}

// Objects are the objects of the bucket by key, with their content, read behind the server's back.
func (s *Server) Objects() map[string][]byte {
	s.tb.Helper()
	out := map[string][]byte{}
	s.walk(func(key, path string) {
		b, err := os.ReadFile(path)
		if err == nil {
			out[key] = b
		} else if !errors.Is(err, fs.ErrNotExist) {
			s.tb.Fatal(err)
		}
	})
	return out
}

// Keys are the keys of the objects of the bucket.
func (s *Server) Keys() []string {
	s.tb.Helper()
	var out []string
	s.walk(func(key, _ string) { out = append(out, key) })
	return out
}

func (s *Server) walk(f func(key, path string)) {
	root := filepath.Join(s.dir, Bucket)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".sgw"): // parts of unfinished uploads
			return fs.SkipDir
		case e.IsDir() || strings.HasPrefix(e.Name(), "."):
			return nil
		}
		key, err := filepath.Rel(root, path)
		if err == nil {
			f(filepath.ToSlash(key), path)
		}
		return err
	})
	if err != nil {
		s.tb.Fatal(err)
	}
}

// Remove deletes an object behind the server's back, as somebody with access to the bucket might.
func (s *Server) Remove(key string) {
	s.tb.Helper()
	if err := os.Remove(filepath.Join(s.dir, Bucket, filepath.FromSlash(key))); err != nil {
		s.tb.Fatal(err)
	}
}

// Age makes an object look as old as that.
func (s *Server) Age(key string, age time.Duration) {
	s.tb.Helper()
	then := time.Now().Add(-age)
	if err := os.Chtimes(filepath.Join(s.dir, Bucket, filepath.FromSlash(key)), then, then); err != nil {
		s.tb.Fatal(err)
	}
}

func portOf(addr net.Addr) string { return strconv.Itoa(addr.(*net.TCPAddr).Port) }

// Package apptest runs the whole program for tests: as a process that can be killed, on a free port of 127.0.0.1.
package apptest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sidetone-bin-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "sidetone")
	cmd := exec.Command("go", "build", "-o", bin, "sidetone/cmd/sidetone")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return bin, nil
})

// Binary builds the program once per test process and returns its path.
func Binary(tb testing.TB) string {
	tb.Helper()
	bin, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	return bin
}

// Process is a running sidetone.
type Process struct {
	URL string // http://127.0.0.1:port, "" for a worker

	tb     testing.TB
	cmd    *exec.Cmd
	exited chan struct{}
	err    error

	mu  sync.Mutex
	log strings.Builder
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+)`)

// Start runs `sidetone serve` with the settings ("NAME=value") on a free port and waits until it listens. It is killed
// at the end of the test if it still runs.
func Start(tb testing.TB, settings ...string) *Process {
	tb.Helper()
	return launch(tb, "serve", settings)
}

// StartWorker runs `sidetone worker`.
func StartWorker(tb testing.TB, settings ...string) *Process {
	tb.Helper()
	return launch(tb, "worker", settings)
}

func launch(tb testing.TB, command string, settings []string) *Process {
	tb.Helper()
	p := &Process{tb: tb, exited: make(chan struct{})}
	p.cmd = exec.Command(Binary(tb), command)
	p.cmd.Env = append([]string{"HOST=127.0.0.1", "PORT=0", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, settings...)
	p.cmd.Dir = tb.TempDir()
	out, err := p.cmd.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	addr := make(chan string, 1)
	drained := make(chan struct{})
	go p.readLog(out, addr, drained)
	go func() {
		<-drained
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("log of %s:\n%s", command, tail(p.Log(), 6000))
		}
	})
	if command != "serve" {
		return p
	}
	select {
	case a := <-addr:
		p.URL = "http://" + a
	case <-p.exited:
		tb.Fatalf("sidetone %s ended: %v\n%s", command, p.err, p.Log())
	case <-time.After(30 * time.Second):
		tb.Fatalf("sidetone %s does not listen\n%s", command, p.Log())
	}
	return p
}

func (p *Process) readLog(r io.Reader, addr chan<- string, drained chan<- struct{}) {
	defer close(drained)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		p.mu.Lock()
		p.log.WriteString(line + "\n")
		p.mu.Unlock()
		if m := listening.FindStringSubmatch(line); m != nil {
			addr <- m[1]
		}
	}
}

// Log is what the process wrote so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Kill ends the process at once, as a crash does.
func (p *Process) Kill() {
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) { p.cmd.Process.Signal(s) }

// Wait waits for the end of the process and returns its exit code, -1 when a signal ended it.
func (p *Process) Wait(within time.Duration) (int, error) {
	select {
	case <-p.exited:
	case <-time.After(within):
		return 0, errors.New("the process did not end in time")
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// Stop asks the process to drain and fails the test unless it ends with code 0.
func (p *Process) Stop() {
	p.tb.Helper()
	p.Signal(syscall.SIGTERM)
	if code, err := p.Wait(40 * time.Second); err != nil || code != 0 {
		p.tb.Fatalf("stopping: code %d, %v\n%s", code, err, p.Log())
	}
}

// PeakMemory is the largest resident set the process has had, in bytes.
func (p *Process) PeakMemory() int64 { return p.status("VmHWM:") }

func (p *Process) status(key string) int64 {
	p.tb.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.tb.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				p.tb.Fatal(err)
			}
			return kb << 10
		}
	}
	p.tb.Fatalf("/proc has no %s", key)
	return 0
}

// CPU is the processor time the process has used, user and system.
func (p *Process) CPU() time.Duration {
	p.tb.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.tb.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on Linux
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}

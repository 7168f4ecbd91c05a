// Package apptest runs the whole program for tests: as a process that can be killed, on a free port of 127.0.0.1.
package apptest

import (
	"bufio"
	"context"
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

	"golang.org/x/sys/unix"
)

// built is the temporary folder of the binary, "" until it is made.
var built string

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sidetone-bin-")
	if err != nil {
		return "", err
	}
	built = dir
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

// Main is the TestMain of packages that start the program: it runs the tests and removes the binary they built.
func Main(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// Run runs the program with arguments and settings to its end and returns its exit code and all that it wrote.
func Run(tb testing.TB, args []string, settings ...string) (code int, output string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(tb), args...)
	cmd.Env, cmd.Dir = environment(settings), tb.TempDir()
	out, err := cmd.CombinedOutput()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) || ctx.Err() != nil {
		tb.Fatalf("sidetone %s: %v, %v\n%s", strings.Join(args, " "), err, ctx.Err(), out)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// environment is all that a process sees: nothing that is set around the tests gets in.
func environment(settings []string) []string {
	return append([]string{"HOST=127.0.0.1", "PORT=0", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, settings...)
}

// Eventually waits until ok says true and fails the test when that takes longer than within.
func Eventually(tb testing.TB, within time.Duration, what string, ok func() bool) {
	tb.Helper()
	deadline := time.After(within)
	for !ok() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			tb.Fatalf("not within %v: %s", within, what)
		}
	}
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

// up is the line that a process writes when it has started: a server with its address, a worker without.
var up = regexp.MustCompile(`msg=listening addr=(\S+)|msg=working`)

// Start runs `sidetone serve` with the settings ("NAME=value") on a free port and waits until it listens. It is killed
// at the end of the test if it still runs.
func Start(tb testing.TB, settings ...string) *Process {
	tb.Helper()
	return launch(tb, "serve", settings)
}

// StartWorker runs `sidetone worker` and waits until its loops run.
func StartWorker(tb testing.TB, settings ...string) *Process {
	tb.Helper()
	return launch(tb, "worker", settings)
}

func launch(tb testing.TB, command string, settings []string) *Process {
	tb.Helper()
	p := &Process{tb: tb, exited: make(chan struct{})}
	p.cmd = exec.Command(Binary(tb), command)
	p.cmd.Env, p.cmd.Dir = environment(settings), tb.TempDir()
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
	select {
	case a := <-addr:
		if a != "" {
			p.URL = "http://" + a
		}
	case <-p.exited:
		tb.Fatalf("sidetone %s ended: %v\n%s", command, p.err, p.Log())
	case <-time.After(30 * time.Second):
		tb.Fatalf("sidetone %s does not come up\n%s", command, p.Log())
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
		if m := up.FindStringSubmatch(line); m != nil {
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

// WaitLog waits until the log contains a text.
func (p *Process) WaitLog(text string, within time.Duration) {
	p.tb.Helper()
	Eventually(p.tb, within, "a log line with "+text, func() bool { return strings.Contains(p.Log(), text) })
}

// LimitFileSize makes writes past a size in bytes fail, as on a full disk; a negative one takes the limit away.
func (p *Process) LimitFileSize(bytes int64) {
	p.tb.Helper()
	limit := unix.Rlimit{Cur: uint64(bytes), Max: unix.RLIM_INFINITY}
	if bytes < 0 {
		limit.Cur = unix.RLIM_INFINITY
	}
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		p.tb.Fatal(err)
	}
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

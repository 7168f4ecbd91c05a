// Package pgtest runs private PostgreSQL clusters for tests: nothing installed on the machine is started, stopped or
// changed. A cluster lives in a temporary folder, listens on 127.0.0.1 on a free port, asks for a random password,
// and disappears when the process that launched it ends, however it ends.
package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Install is the command that brings the missing server binaries on Debian.
const Install = "apt-get install postgresql (or run scripts/install-deps)"

const (
	startTimeout = 60 * time.Second // a loaded machine needs seconds, recovery after a kill a few more
	pollEvery    = 20 * time.Millisecond
)

// Cluster is one PostgreSQL server with its own data folder. Its methods but URL are for one goroutine at a time.
type Cluster struct {
	dir      string // temporary folder: data/, log, password
	bin      string // folder of the server binaries
	port     int
	password string
	run      *syscall.Credential // the user that runs the server; nil is the current one

	server *exec.Cmd
	exited chan struct{} // closed when server has ended
	guard  io.Closer     // closing it, or ending this process, removes the cluster
	ended  chan struct{} // closed when the guard has done so
}

// Launch creates a cluster and starts it. The caller closes it; if the process ends before, a guard process does.
func Launch() (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, password: rand.Text()}
	if os.Geteuid() == 0 {
		if c.run, err = unprivileged(); err != nil {
			return nil, err
		}
	}
	if c.dir, err = os.MkdirTemp("", "sidetone-pg-"); err != nil {
		return nil, err
	}
	if err := c.startGuard(); err != nil {
		os.RemoveAll(c.dir)
		return nil, err
	}
	if err := c.init(); err == nil {
		err = c.startOnFreePort()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// binaries finds the newest folder that holds initdb and postgres.
func binaries() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(dirs, func(a, b string) int { return majorOf(b) - majorOf(a) })
	dirs = append(dirs, filepath.SplitList(os.Getenv("PATH"))...)
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errors.New("pgtest: the PostgreSQL server binaries are missing: " + Install)
}

// majorOf is the version in /usr/lib/postgresql/VERSION/bin, 0 when it is no number.
func majorOf(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// unprivileged picks the user for a server launched by root, whom PostgreSQL refuses to run as.
func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("pgtest: PostgreSQL refuses to run as root, and there is no user postgres or nobody")
}

// startGuard starts a shell that waits for the end of its standard input, which comes with Close or with the end of
// this process, then kills the server and removes the folder. It has a session of its own, so that an interrupt from
// the terminal reaches the tests first.
func (c *Cluster) startGuard() error {
	const script = `cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
	kill -QUIT "$pid" 2>/dev/null
	i=0
	while kill -0 "$pid" 2>/dev/null && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done
	kill -KILL "$pid" 2>/dev/null
fi
rm -rf "$1"`
	guard := exec.Command("/bin/sh", "-c", script, "sidetone-pg-guard", c.dir)
	guard.Dir = "/"
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := guard.StdinPipe()
	if err != nil {
		return err
	}
	if err := guard.Start(); err != nil {
		return fmt.Errorf("pgtest: guard: %w", err)
	}
	c.guard, c.ended = stdin, make(chan struct{})
	go func() {
		_ = guard.Wait()
		close(c.ended)
	}()
	return nil
}

// init creates the data folder. The locale is the UTF-8 one without a language, so that case folding in full-text
// search knows more than ASCII, as it does on a usual installation.
func (c *Cluster) init() error {
	password := filepath.Join(c.dir, "password")
	if err := os.WriteFile(password, []byte(c.password+"\n"), 0o600); err != nil {
		return err
	}
	if c.run != nil {
		for _, path := range []string{c.dir, password} {
			if err := os.Chown(path, int(c.run.Uid), int(c.run.Gid)); err != nil {
				return err
			}
		}
	}
	// --no-sync spares only the flush of the fresh folder; the running server syncs as always.
	cmd := c.command("initdb", "--pgdata", filepath.Join(c.dir, "data"), "--username", "postgres", "--pwfile", password,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: initdb: %w\n%s", err, out)
	}
	return nil
}

// command runs a server binary as the right user, away from the interrupts of the terminal.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.run}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") { // PGDATA, PGPORT and the like belong to another server
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// startOnFreePort starts the new cluster, on another port when somebody took the first one in between.
func (c *Cluster) startOnFreePort() error {
	var err error
	for range 5 {
		if c.port, err = freePort(); err != nil {
			return err
		}
		if err = c.Start(); err == nil {
			return nil
		}
	}
	return err
}

// freePort finds a port below the range from which the kernel gives ports to outgoing connections and to :0
// listeners, so that a stopped cluster finds its port free when it starts again.
func freePort() (int, error) {
	for range 100 {
		n, err := rand.Int(rand.Reader, big.NewInt(12000))
		if err != nil {
			return 0, err
		}
		port := 20000 + int(n.Int64())
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("pgtest: no free port")
}

// Start starts a stopped or killed cluster on its old port and data and returns when it takes connections.
func (c *Cluster) Start() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		err := c.tryStart(ctx)
		// The processes of a killed server hold its shared memory for a moment.
		if err == nil || !strings.Contains(err.Error(), "pre-existing shared memory block") {
			return err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return err
		}
	}
}

func (c *Cluster) tryStart(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := c.command("postgres", "-D", filepath.Join(c.dir, "data"),
		"-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(c.port), "-c", "unix_socket_directories="+c.dir,
		"-c", "max_connections=300", "-c", "fsync=on")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	c.server, c.exited = cmd, exited
	var last error
	for {
		conn, err := pgx.Connect(ctx, c.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-exited:
			return fmt.Errorf("pgtest: the server ended at start:\n%s", c.logSince(before))
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("pgtest: the server takes no connections: %w", last), c.Kill())
		case <-time.After(pollEvery):
		}
	}
}

// logSince is what the server wrote after an offset of its log.
func (c *Cluster) logSince(offset int64) []byte {
	b, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(b[min(offset, int64(len(b))):])
}

// URL is the address of a database of this cluster, with the password of its superuser.
func (c *Cluster) URL(database string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", c.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}).String()
}

// Stop ends the server in an orderly way, cutting the connections there are, and keeps its data for Start.
func (c *Cluster) Stop() error { return c.end(syscall.SIGINT) }

// Kill ends the server as a crash would; the next Start recovers from the log of transactions.
func (c *Cluster) Kill() error { return c.end(syscall.SIGKILL) }

func (c *Cluster) end(sig syscall.Signal) error {
	if c.server == nil {
		return nil
	}
	if err := c.server.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("pgtest: %w", err)
	}
	select {
	case <-c.exited:
	case <-time.After(startTimeout):
		return errors.New("pgtest: the server does not stop")
	}
	c.server = nil
	return nil
}

// Close ends the server at once and removes its data.
func (c *Cluster) Close() error {
	err := c.guard.Close()
	<-c.ended
	if c.server != nil {
		<-c.exited
		c.server = nil
	}
	return err
}

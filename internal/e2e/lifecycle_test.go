package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sidetone/internal/apptest"
	"sidetone/internal/pgtest"
)

// halfUpload is a connection on which a report is on its way and stopped in the middle of its recording.
type halfUpload struct {
	conn net.Conn
	rest []byte
	id   string
}

// beginUpload sends the first half of a report with a recording of 200 KB.
func beginUpload(t *testing.T, s *server, id string) halfUpload {
	t.Helper()
	before, after := aroundAudio(id)
	audio := bytes.Repeat([]byte("0123456789"), 20000)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	size := len(before) + len(audio) + len(after)
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: sidetone\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", ingestPath, audioContentType, size)
	if _, err := conn.Write(append(before, audio[:100000]...)); err != nil {
		t.Fatal(err)
	}
	return halfUpload{conn, append(audio[100000:], after...), id}
}

// finish sends the second half and reads the answer.
func (h halfUpload) finish(t *testing.T) int {
	t.Helper()
	if _, err := h.conn.Write(h.rest); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(h.conn), nil)
	if err != nil {
		t.Fatalf("%s was not answered: %v", h.id, err)
	}
	res.Body.Close()
	return res.StatusCode
}

// receiving waits until the server writes so many recordings.
func receiving(t *testing.T, s *server, n int) {
	t.Helper()
	apptest.Eventually(t, patience, fmt.Sprintf("%d recordings are being written", n), func() bool { return len(s.files()) == n })
}

// TestStoppingFinishesUploads sends SIGTERM while uploads are on their way.
func TestStoppingFinishesUploads(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		var halves []halfUpload
		for i := range 8 {
			halves = append(halves, beginUpload(t, s, fmt.Sprintf("in-flight-%d", i)))
		}
		receiving(t, s, len(halves))
		s.Signal(syscall.SIGTERM)
		s.WaitLog("stopping", patience)
		apptest.Eventually(t, patience, "new connections are refused", func() bool {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err == nil {
				conn.Close()
			}
			return err != nil
		})
		for _, h := range halves {
			if status := h.finish(t); status != 200 {
				t.Errorf("%s: %d", h.id, status)
			}
		}
		if code, err := s.Wait(patience); err != nil || code != 0 {
			t.Errorf("exit code %d, %v", code, err)
		}
		s.again()
		for _, h := range halves {
			if r := s.get("/api/sessions/" + h.id + "/recording"); r.status != 200 || len(r.body) != 200000 {
				t.Errorf("%s: %d, %d bytes of recording", h.id, r.status, len(r.body))
			}
		}
		s.Stop()
	})
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		s := start(t, sqliteURL(t))
		beginUpload(t, s, "stuck")
		receiving(t, s, 1)
		s.Signal(sig)
		s.WaitLog("stopping", patience)
		s.Signal(sig)
		// Well before the 30 s that draining may take.
		if code, err := s.Wait(patience / 3); err != nil || code != 130 {
			t.Errorf("%v twice: exit code %d, %v", sig, code, err)
		}
	}
}

func TestSettingProblems(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "worker", "migrate"} {
		code, out := apptest.Run(t, []string{command}, "PORT=99999", "LOG_FORMAT=xml", "MAX_RECORDING_MB=none")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != 2 || len(lines) != 4 {
			t.Errorf("%s: exit code %d and %d lines, want 2 and one line per problem:\n%s", command, code, len(lines), out)
		}
		for _, part := range []string{"DATABASE_URL", "PORT", "99999", "0 to 65535", "LOG_FORMAT", "xml", "json", "MAX_RECORDING_MB", "none"} {
			if !strings.Contains(out, part) {
				t.Errorf("%s does not say %q:\n%s", command, part, out)
			}
		}
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	code, out := apptest.Run(t, []string{"serve"}, "DATABASE_URL="+sqliteURL(t), "PORT="+port)
	if code != 1 || !strings.Contains(out, "PORT "+port) {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestWorkerStartsAndDrains(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		w := apptest.StartWorker(t, "DATABASE_URL="+database)
		if r := start(t, database, "AUTO_MIGRATE=false").get("/ready"); r.status != 200 {
			t.Errorf("after a worker started, /ready says %d %s", r.status, r.body)
		}
		w.Stop()
		if log := w.Log(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "panic") {
			t.Errorf("the worker complains:\n%s", log)
		}
	})
}

func TestMigrateTwice(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		for i, applies := range []bool{true, false} {
			code, out := apptest.Run(t, []string{"migrate"}, "DATABASE_URL="+database)
			if code != 0 || strings.Contains(out, "migration applied") != applies {
				t.Errorf("run %d: exit code %d\n%s", i+1, code, out)
			}
		}
		s := start(t, database, "AUTO_MIGRATE=false")
		if r := s.get("/ready"); r.status != 200 {
			t.Errorf("/ready: %d %s", r.status, r.body)
		}
		r := numbered(3)
		s.mustPost(r.multipart())
		if err := r.check(s); err != nil {
			t.Error(err)
		}
	})
}

// TestProcessesMigrateAtOnce starts several processes on an empty database together.
func TestProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		var workers []*apptest.Process
		for range 3 {
			workers = append(workers, apptest.StartWorker(t, "DATABASE_URL="+database))
		}
		s := start(t, database)
		if r := s.get("/ready"); r.status != 200 {
			t.Errorf("/ready: %d %s", r.status, r.body)
		}
		applied := 0
		for _, w := range workers {
			w.Stop()
			applied += strings.Count(w.Log(), "name=0001_sessions")
		}
		if applied += strings.Count(s.Log(), "name=0001_sessions"); applied != 1 {
			t.Errorf("the first migration was applied %d times", applied)
		}
	})
}

func TestMigrateWithoutDatabase(t *testing.T) {
	t.Parallel()
	cluster := pgtest.NewCluster(t)
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	code, out := apptest.Run(t, []string{"migrate"}, "DATABASE_URL="+cluster.URL("postgres"))
	if code != 1 || !strings.Contains(out, "migrate failed") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if strings.Contains(out, "panic") {
		t.Errorf("it panics:\n%s", out)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	code, out := apptest.Run(t, []string{"version"})
	if code != 0 || !strings.HasPrefix(out, "sidetone ") || strings.Count(out, "\n") != 1 {
		t.Errorf("exit code %d: %q", code, out)
	}
}

// TestSQLiteFolderIsMade starts on a file in folders that are not there.
func TestSQLiteFolderIsMade(t *testing.T) {
	t.Parallel()
	s := start(t, "sqlite:"+filepath.Join(t.TempDir(), "a b", "ü", "calls.db"))
	r := numbered(3)
	s.mustPost(r.multipart())
	if err := r.check(s); err != nil {
		t.Error(err)
	}
}

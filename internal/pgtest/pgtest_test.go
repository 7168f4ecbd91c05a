package pgtest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestURLGivesFreshDatabases(t *testing.T) {
	var first string
	t.Run("first", func(t *testing.T) {
		first = URL(t)
		conn := connect(t, first)
		if _, err := conn.Exec(t.Context(), "CREATE TABLE mine (n integer)"); err != nil {
			t.Fatal(err)
		}
		var folded, fsync string
		if err := conn.QueryRow(t.Context(), "SELECT lower('ÄÉ'), current_setting('fsync')").Scan(&folded, &fsync); err != nil {
			t.Fatal(err)
		}
		if folded != "äé" || fsync != "on" {
			t.Errorf("lower = %q, fsync = %s; want case folding beyond ASCII and durable commits", folded, fsync)
		}
		var tables int
		query := "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
		if err := connect(t, URL(t)).QueryRow(t.Context(), query).Scan(&tables); err != nil || tables != 0 {
			t.Errorf("a second database has %d tables, error %v; want an empty one", tables, err)
		}
	})
	if conn, err := pgx.Connect(t.Context(), first); err == nil {
		conn.Close(t.Context())
		t.Error("the database outlives its test")
	}
}

func TestClusterStopsKillsAndStarts(t *testing.T) {
	c := NewCluster(t)
	address := c.URL("postgres")
	if _, err := connect(t, address).Exec(t.Context(), "CREATE TABLE kept AS SELECT 7 AS n"); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func() error{"Stop": c.Stop, "Kill": c.Kill} {
		if err := end(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if conn, err := pgx.Connect(t.Context(), address); err == nil {
			conn.Close(t.Context())
			t.Fatalf("the server answers after %s", name)
		}
		if err := c.Start(); err != nil {
			t.Fatalf("Start after %s: %v", name, err)
		}
		var n int
		if err := connect(t, address).QueryRow(t.Context(), "SELECT n FROM kept").Scan(&n); err != nil || n != 7 {
			t.Fatalf("after %s: n = %d, %v; want the row that was committed", name, n, err)
		}
	}
	if c.URL("postgres") != address {
		t.Error("the address changed")
	}
}

func TestClusterAsksForItsPassword(t *testing.T) {
	c := NewCluster(t)
	if conn, err := pgx.Connect(t.Context(), strings.Replace(c.URL("postgres"), c.password, "wrong", 1)); err == nil {
		conn.Close(t.Context())
		t.Error("the server takes a wrong password")
	}
}

func TestCloseRemovesEverything(t *testing.T) {
	c, err := Launch()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestGuardOutlivesAKill launches a cluster in another process, kills that process and waits until the cluster is gone.
func TestGuardOutlivesAKill(t *testing.T) {
	if os.Getenv("PGTEST_CHILD") == "1" {
		c, err := Launch()
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("dir=" + c.dir + "\n")
		select {}
	}
	child := exec.Command(os.Args[0], "-test.run=^TestGuardOutlivesAKill$")
	child.Env = append(os.Environ(), "PGTEST_CHILD=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	_, dir, found := strings.Cut(strings.TrimSpace(string(buf[:n])), "dir=")
	if !found {
		child.Process.Kill()
		t.Fatalf("the child says %q, %v", buf[:n], err)
	}
	child.Process.Kill()
	_ = child.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s is still there", dir)
		case <-time.After(pollEvery):
		}
	}
}

package e2e

import (
	"bytes"
	"testing"
	"time"

	"sidetone/internal/pgtest"
)

// The Node SDK posts its log records once, and uploads the report only when they were accepted. A database that is away for
// a moment must cost neither.
func TestLogsOutliveAShortOutage(t *testing.T) {
	t.Parallel()
	cluster := pgtest.NewCluster(t)
	s := start(t, cluster.URL("postgres"))
	logs := readCaptured(t, "livekit-node-1.9.0/01_logs")
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan reply, 1)
	go func() {
		r, err := s.try("POST", logs.URL, logs.Headers, bytes.NewReader(logs.body))
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	// The request has met the stopped database once the pool has tried to connect; starting takes longer than that.
	if err := cluster.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-answered:
		if r.status != 200 {
			t.Fatalf("the log records were answered %d %s", r.status, r.body)
		}
	case <-time.After(patience):
		t.Fatal("the log records were never answered")
	}
	if got := s.get("/api/sessions/RM_capture1"); got.status != 200 {
		t.Errorf("the session: %d %s", got.status, got.body)
	}
}

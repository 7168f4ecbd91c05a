package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// TestKilledInTheMiddleOfUploads kills the server twenty times while 64 clients upload. Whatever was acknowledged is
// complete after each restart and stays so; whatever else is listed is complete too.
func TestKilledInTheMiddleOfUploads(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		var next atomic.Int64
		acknowledged := map[string]bool{}
		for round := range 20 {
			accepted := uploadUntilKilled(t, s, &next, 3+(round*37)%140)
			s.again()
			checkAll(t, s, accepted)
			for _, r := range accepted {
				acknowledged[r.id] = true
			}
			if t.Failed() {
				t.Fatalf("after kill %d", round+1)
			}
		}
		listed := allListed(t, s)
		var stored []report
		for _, id := range listed {
			var n int
			if _, err := fmt.Sscanf(id, "RM_call%06d", &n); err != nil {
				t.Fatalf("a session that nobody sent: %q", id)
			}
			stored = append(stored, numbered(n))
			delete(acknowledged, id)
		}
		if len(acknowledged) > 0 {
			t.Errorf("%d acknowledged sessions are not listed", len(acknowledged))
		}
		checkAll(t, s, stored)
		t.Logf("%d sessions survived 20 kills", len(stored))
	})
}

// uploadUntilKilled lets 64 clients upload, kills the server after so many acknowledgements and returns the reports
// that were acknowledged by then or while it died.
func uploadUntilKilled(t *testing.T, s *server, next *atomic.Int64, after int) []report {
	t.Helper()
	var (
		mu       sync.Mutex
		accepted []report
		enough   = make(chan struct{})
		clients  sync.WaitGroup
	)
	for range 64 {
		clients.Go(func() {
			for {
				r := numbered(int(next.Add(1)))
				got, err := s.tryPost(r.multipart())
				if err != nil {
					return // the server is dead: the test below makes sure that it was the kill
				}
				if got.status != 200 {
					t.Errorf("%s: %d %s", r.id, got.status, got.body)
					return
				}
				mu.Lock()
				accepted = append(accepted, r)
				if len(accepted) == after {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	gone := make(chan struct{})
	go func() { clients.Wait(); close(gone) }()
	select {
	case <-enough:
	case <-gone:
		t.Fatalf("the server ended by itself\n%s", s.Log())
	}
	s.Kill()
	<-gone
	return accepted
}

// allListed pages through the whole list.
func allListed(t *testing.T, s *server) []string {
	t.Helper()
	var ids []string
	path := "/api/sessions"
	for path != "" {
		page := s.json(path)
		for i := range length(page, "objects") {
			id, _ := at(page, fmt.Sprintf("objects.%d.id", i)).(string)
			ids = append(ids, id)
		}
		path, _ = at(page, "meta.next").(string)
	}
	return ids
}

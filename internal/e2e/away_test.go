package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"sidetone/internal/apptest"
	"sidetone/internal/pgtest"
)

// TestDatabaseGoesAndComesBack stops the database under load. Clients are told to come again in words they understand,
// do so with success once it is back, and everything that was answered 200 at any time is there.
func TestDatabaseGoesAndComesBack(t *testing.T) {
	t.Parallel()
	cluster := pgtest.NewCluster(t)
	s := start(t, cluster.URL("postgres"))

	var (
		next                     atomic.Int64
		mu                       sync.Mutex
		accepted                 []report
		stop                     = make(chan struct{})
		clients, refused, served sync.WaitGroup
		back                     atomic.Bool
	)
	const senders = 16
	refused.Add(senders)
	served.Add(senders)
	for range senders {
		clients.Go(func() {
			var sawRefusal, sawReturn bool
			r := numbered(int(next.Add(1)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := s.tryPost(r.multipart())
				switch {
				case err != nil:
					t.Errorf("%s: %v", r.id, err)
					return
				case got.status == 200:
					mu.Lock()
					accepted = append(accepted, r)
					mu.Unlock()
					if back.Load() && !sawReturn {
						sawReturn = true
						served.Done()
					}
					r = numbered(int(next.Add(1)))
				case got.status == 503: // the same report again, as an SDK does
					if !sawRefusal {
						sawRefusal = true
						refused.Done()
					}
				default:
					t.Errorf("%s: %d %s", r.id, got.status, got.body)
					return
				}
			}
		})
	}
	acceptedNow := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(accepted)
	}
	apptest.Eventually(t, patience, "100 reports are accepted", func() bool { return acceptedNow() > 100 })
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	wait(t, "every client is refused", &refused)

	if r := s.get("/health"); r.status != 200 {
		t.Errorf("/health: %d", r.status)
	}
	wantError(t, "/ready", s.get("/ready"), 503, "unavailable")
	wantError(t, "a list", s.get("/api/sessions"), 503, "unavailable")
	wantError(t, "a session", s.get("/api/sessions/x"), 503, "unavailable")
	viaProto, viaJSON := numbered(1_000_001), numbered(1_000_002)
	retryStatus(t, s.post(viaProto.multipart()))
	wantError(t, "a JSON client", s.post(viaJSON.multipart()), 503, "unavailable")

	if err := cluster.Start(); err != nil {
		t.Fatal(err)
	}
	back.Store(true)
	wait(t, "every client is served again", &served)
	close(stop)
	clients.Wait()
	for _, r := range []report{viaProto, viaJSON} {
		s.mustPost(r.multipart())
		accepted = append(accepted, r)
	}
	if r := s.get("/ready"); r.status != 200 {
		t.Errorf("/ready: %d %s", r.status, r.body)
	}
	checkAll(t, s, accepted)
}

// TestServerStartsBeforeItsDatabase starts the server while the database is away.
func TestServerStartsBeforeItsDatabase(t *testing.T) {
	t.Parallel()
	cluster := pgtest.NewCluster(t)
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	s := start(t, cluster.URL("postgres"))
	if r := s.get("/health"); r.status != 200 {
		t.Errorf("/health: %d", r.status)
	}
	wantError(t, "/ready", s.get("/ready"), 503, "unavailable")
	r := numbered(3)
	retryStatus(t, s.post(r.multipart()))
	if err := cluster.Start(); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, patience, "/ready answers 200", func() bool { return s.get("/ready").status == 200 })
	s.mustPost(r.multipart())
	if err := r.check(s); err != nil {
		t.Error(err)
	}
}

// TestDatabaseWithoutSchema: until somebody migrates, clients are asked to come again; nothing is lost.
func TestDatabaseWithoutSchema(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database, "AUTO_MIGRATE=false")
		if r := s.get("/health"); r.status != 200 {
			t.Errorf("/health: %d", r.status)
		}
		wantError(t, "/ready", s.get("/ready"), 503, "unavailable")
		viaProto, viaJSON := numbered(3), numbered(6)
		wantError(t, "a JSON client", s.post(viaJSON.multipart()), 503, "unavailable")
		retryStatus(t, s.post(viaProto.multipart()))
		if code, out := apptest.Run(t, []string{"migrate"}, s.settings...); code != 0 {
			t.Fatalf("migrate: %d\n%s", code, out)
		}
		if r := s.get("/ready"); r.status != 200 {
			t.Errorf("/ready after migrate: %d %s", r.status, r.body)
		}
		for _, r := range []report{viaProto, viaJSON} {
			s.mustPost(r.multipart())
		}
		checkAll(t, s, []report{viaProto, viaJSON})
	})
}

// wait is WaitGroup.Wait with a deadline.
func wait(t *testing.T, what string, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	apptest.Eventually(t, patience, what, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// checkAll looks at every report with a few clients at once.
func checkAll(t *testing.T, s *server, reports []report) {
	t.Helper()
	var wg sync.WaitGroup
	todo := make(chan report)
	errs := make(chan error, len(reports))
	for range 4 {
		wg.Go(func() {
			for r := range todo {
				if err := r.check(s); err != nil {
					errs <- err
				}
			}
		})
	}
	for _, r := range reports {
		todo <- r
	}
	close(todo)
	wg.Wait()
	close(errs)
	failed := 0
	for err := range errs {
		if failed++; failed <= 5 {
			t.Error(err)
		}
	}
	if failed > 0 {
		t.Error(fmt.Sprintf("%d of %d reports are lost or broken", failed, len(reports)))
	}
}

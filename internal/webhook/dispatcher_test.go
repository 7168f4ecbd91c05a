package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// run drives a dispatcher as the program's loop does, until ctx is done, and drains it.
func run(ctx context.Context, d *Dispatcher) error {
	for {
		next, err := d.DeliverDue(ctx, time.Now())
		wait := 5 * time.Second
		if err == nil && !next.IsZero() {
			wait = min(wait, time.Until(next))
		}
		timer := time.NewTimer(max(wait, 0))
		select {
		case <-ctx.Done():
			timer.Stop()
			return d.Drain(ctx)
		case <-timer.C:
		case <-d.Woken():
			timer.Stop()
		}
	}
}

func TestScheduleOfFailingReceivers(t *testing.T) {
	answer := func(status int, err error, takes time.Duration) Send {
		return func(context.Context, Request) (int, error) { time.Sleep(takes); return status, err }
	}
	for _, c := range []struct {
		name, want, text string
		send             Send
	}{
		{"500", "0s 30s 2m30s 12m30s 42m30s 2h42m30s", "the receiver answered 500", answer(500, nil, 0)},
		{"301", "0s 30s 2m30s 12m30s 42m30s 2h42m30s", "the receiver answered 301; redirects are not followed", answer(301, nil, 0)},
		{"199", "0s 30s 2m30s 12m30s 42m30s 2h42m30s", "the receiver answered 199", answer(199, nil, 0)},
		{"hangs", "0s 40s 2m50s 13m0s 43m10s 2h43m20s", "no response within 10 seconds", answer(0, errors.New("no response within 10 seconds"), Timeout)},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			q := &queue{}
			q.add(start, "f", "http://h/")
			// A process lives for 40 minutes and 7 s, then another takes over: restarts change nothing.
			for time.Since(start) < 4*time.Hour {
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute+7*time.Second)
				if err := run(ctx, NewDispatcher(q, c.send, time.Now, quiet)); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
			var times []string
			for i, a := range q.attempts {
				times = append(times, a.CreatedAt.Sub(start).String())
				if a.Number != i+1 || a.OK || a.Error != c.text || a.Kind != KindFiring || a.FiringID != "f" || a.RuleID != "rule-f" || a.RuleName != "name" || a.URL != "http://h/" || a.Method != "POST" || a.ID == "" {
					t.Errorf("%s: attempt %+v", c.name, a)
				}
				if c.name == "hangs" && (a.Duration != Timeout || a.ResponseStatus != 0) {
					t.Errorf("%s: attempt %+v", c.name, a)
				}
			}
			if got := strings.Join(times, " "); got != c.want {
				t.Errorf("%s: attempts at %s, want %s", c.name, got, c.want)
			}
			if f := q.firings["f"]; f.status != Failed || !f.next.IsZero() || f.Attempts != 6 {
				t.Errorf("%s: ends as %s after %d attempts", c.name, f.status, f.Attempts)
			}
		})
	}
}

func TestDeliveryAfterRetriesAndRedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		f := q.add(time.Now(), "f", "http://h/")
		var bodies []string
		ok := false
		d := NewDispatcher(q, func(_ context.Context, r Request) (int, error) {
			bodies = append(bodies, string(r.Body)+r.Header[HeaderFiringID])
			if ok || len(bodies) == 3 {
				return 204, nil
			}
			return 503, nil
		}, time.Now, quiet)
		ctx, cancel := context.WithCancel(t.Context())
		go run(ctx, d)
		time.Sleep(time.Hour)
		synctest.Wait()
		if f.status != Delivered || f.Attempts != 3 || !f.last.OK || f.last.Error != "" || f.last.ResponseStatus != 204 {
			t.Errorf("after an hour: %s after %d attempts", f.status, f.Attempts)
		}
		// Queued again while the receiver is away: the schedule starts anew, the counting goes on.
		q.Lock()
		f.status, f.next, f.Base = Pending, time.Now(), f.Attempts
		q.Unlock()
		again := time.Now()
		d.Wake()
		time.Sleep(4 * time.Hour)
		cancel()
		synctest.Wait()
		if f.status != Failed || f.Attempts != 9 || len(q.attempts) != 9 || q.attempts[8].Number != 9 {
			t.Errorf("after the redelivery: %s after %d attempts", f.status, f.Attempts)
		}
		if took := q.attempts[8].CreatedAt.Sub(again); took != 2*time.Hour+42*time.Minute+30*time.Second {
			t.Errorf("its last attempt came after %s", took)
		}
		if slices.Sort(bodies); bodies[0] != "body of ff" || bodies[8] != bodies[0] {
			t.Errorf("bodies differ: %q", bodies)
		}
	})
}

func TestADeadHostDoesNotStarveTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := &queue{}
		for i := range 1000 { // due first, and each takes ten seconds to fail
			q.add(start.Add(-time.Minute), fmt.Sprintf("dead-%03d", i), "http://dead/")
		}
		for i := range 300 {
			q.add(start, fmt.Sprintf("fine-%03d", i), "http://fine/")
		}
		var mu sync.Mutex
		now, most := map[string]int{}, map[string]int{}
		var lastFine time.Duration
		d := NewDispatcher(q, func(_ context.Context, r Request) (int, error) {
			mu.Lock()
			now[r.URL]++
			most[r.URL] = max(most[r.URL], now[r.URL])
			mu.Unlock()
			defer func() { mu.Lock(); now[r.URL]--; mu.Unlock() }()
			if r.URL == "http://dead/" {
				time.Sleep(Timeout)
				return 0, errors.New("no response")
			}
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			lastFine = time.Since(start)
			mu.Unlock()
			return 200, nil
		}, time.Now, quiet)
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		if err := run(ctx, d); err != nil {
			t.Fatal(err)
		}
		if q.count(Delivered) != 300 || lastFine > 200*time.Millisecond {
			t.Errorf("%d delivered, the last after %s", q.count(Delivered), lastFine)
		}
		if most["http://dead/"] != MaxPerHost || most["http://fine/"] != MaxPerHost {
			t.Errorf("at a time: %v", most)
		}
		if len(q.attempts) != 300+MaxPerHost || d.InFlight() != 0 {
			t.Errorf("%d attempts recorded after draining, %d in flight", len(q.attempts), d.InFlight())
		}
	})
}

func TestAllHostsTogetherAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{takes: 5 * time.Millisecond}
		for i := range 2000 {
			q.add(time.Now(), fmt.Sprint(i), fmt.Sprintf("http://h%d/", i))
		}
		var mu sync.Mutex
		n, most := 0, 0
		d := NewDispatcher(q, func(context.Context, Request) (int, error) {
			mu.Lock()
			n++
			most = max(most, n)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			n--
			mu.Unlock()
			return 200, nil
		}, time.Now, quiet)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := run(ctx, d); err != nil {
			t.Fatal(err)
		}
		if most != MaxInFlight || q.count(Delivered) != 2000 {
			t.Errorf("%d at a time, %d delivered", most, q.count(Delivered))
		}
		if q.records > 40 {
			t.Errorf("%d transactions for 2000 outcomes that end together", q.records)
		}
	})
}

func TestRacingDispatchersDeliverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		for i := range 1000 {
			q.add(time.Now(), fmt.Sprint(i), fmt.Sprintf("http://h%d/", i%7))
		}
		var mu sync.Mutex
		sent := map[string]int{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 8 {
			d := NewDispatcher(q, func(_ context.Context, r Request) (int, error) {
				time.Sleep(time.Millisecond)
				mu.Lock()
				sent[string(r.Body)]++
				mu.Unlock()
				return 200, nil
			}, time.Now, quiet)
			wg.Go(func() { run(ctx, d) })
		}
		wg.Wait()
		if len(sent) != 1000 || len(q.attempts) != 1000 || q.count(Delivered) != 1000 || q.lost != 0 {
			t.Errorf("%d sent, %d attempts, %d delivered, %d leases lost", len(sent), len(q.attempts), q.count(Delivered), q.lost)
		}
	})
}

func TestAKilledProcessIsReplacedAfterItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := &queue{}
		f := q.add(start, "f", "http://h/")
		if claimed, err := q.ClaimDue(t.Context(), start, start.Add(Lease), func(string) bool { return true }); err != nil || len(claimed) != 1 {
			t.Fatal(claimed, err) // claimed, and then killed
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*Lease)
		defer cancel()
		run(ctx, NewDispatcher(q, func(context.Context, Request) (int, error) { return 200, nil }, time.Now, quiet))
		if f.status != Delivered || f.last.CreatedAt.Sub(start) != Lease {
			t.Errorf("%s after %s", f.status, f.last.CreatedAt.Sub(start))
		}
	})
}

func TestOutcomesAreNotLostWhenTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := &queue{failRecord: func([]Outcome) error { return errors.New("away") }}
		for i := range 300 {
			q.add(start, fmt.Sprint(i), "http://h/")
		}
		sent := 0
		var mu sync.Mutex
		d := NewDispatcher(q, func(context.Context, Request) (int, error) {
			mu.Lock()
			sent++
			mu.Unlock()
			return 200, nil
		}, time.Now, quiet)
		time.AfterFunc(20*time.Second, func() { q.Lock(); q.failRecord = nil; q.Unlock() })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		if err := run(ctx, d); err != nil {
			t.Fatal(err)
		}
		if sent != 300 || q.count(Delivered) != 300 || len(q.attempts) != 300 {
			t.Errorf("%d sent, %d delivered, %d attempts", sent, q.count(Delivered), len(q.attempts))
		}
	})
}

func TestOneOutcomeThatCannotBeStoredStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := &queue{failRecord: func(list []Outcome) error {
			if slices.ContainsFunc(list, func(o Outcome) bool { return o.Attempt.FiringID == "13" }) {
				return errors.New("unstorable")
			}
			return nil
		}}
		for i := range 20 {
			q.add(start, fmt.Sprint(i), "http://h/")
		}
		d := NewDispatcher(q, func(context.Context, Request) (int, error) { return 200, nil }, time.Now, quiet)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := run(ctx, d); err == nil || !strings.Contains(err.Error(), "unstorable") {
			t.Errorf("draining says %v", err)
		}
		if q.count(Delivered) != 19 {
			t.Errorf("%d delivered", q.count(Delivered))
		}
		// Once its claim has ended the outcome is given up: the delivery is due again anyway.
		time.Sleep(2 * Lease)
		if err := d.Drain(t.Context()); err != nil {
			t.Errorf("draining after the lease: %v", err)
		}
	})
}

func TestDrainFinishesWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := &queue{}
		q.add(start, "f", "http://h/")
		ctx, cancel := context.WithCancel(t.Context())
		d := NewDispatcher(q, func(ctx context.Context, _ Request) (int, error) {
			cancel() // SIGTERM arrives while the receiver takes its time
			time.Sleep(8 * time.Second)
			return 200, ctx.Err()
		}, time.Now, quiet)
		if err := run(ctx, d); err != nil {
			t.Fatal(err)
		}
		if q.count(Delivered) != 1 || time.Since(start) != 8*time.Second {
			t.Errorf("%d delivered after %s", q.count(Delivered), time.Since(start))
		}
		q.add(start, "late", "http://h/")
		if _, err := d.DeliverDue(ctx, time.Now()); err == nil || q.count(Delivered) != 1 {
			t.Errorf("a stopped dispatcher delivers: %v", err)
		}
	})
}

func TestALostLeaseLeavesTheFiringAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		f := q.add(time.Now(), "f", "http://h/")
		d := NewDispatcher(q, func(context.Context, Request) (int, error) {
			q.Lock()
			f.next = f.next.Add(time.Minute) // somebody else claimed it: this process was asleep for too long
			q.Unlock()
			return 500, nil
		}, time.Now, quiet)
		if _, err := d.DeliverDue(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := d.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.Attempts != 0 || f.status != Pending || q.lost != 1 || len(q.attempts) != 1 {
			t.Errorf("firing has %d attempts, %d lost, %d recorded", f.Attempts, q.lost, len(q.attempts))
		}
	})
}

func TestDeliverDueReportsWhatIsNextAndWhatFailed(t *testing.T) {
	q := &queue{}
	q.add(noon.Add(time.Hour), "later", "http://h/")
	d := NewDispatcher(q, nil, func() time.Time { return noon }, quiet)
	if next, err := d.DeliverDue(t.Context(), noon); err != nil || !next.Equal(noon.Add(time.Hour)) {
		t.Errorf("%v, %v", next, err)
	}
	q.failClaim = errors.New("away")
	if _, err := d.DeliverDue(t.Context(), noon); !errors.Is(err, q.failClaim) {
		t.Errorf("%v", err)
	}
}

func TestTestSend(t *testing.T) {
	for _, c := range []struct {
		status int
		err    error
		want   TestResult
	}{
		{200, nil, TestResult{OK: true, ResponseStatus: 200, Duration: 250 * time.Millisecond}},
		{404, nil, TestResult{ResponseStatus: 404, Error: "the receiver answered 404", Duration: 250 * time.Millisecond}},
		{0, errors.New("the connection was refused"), TestResult{Error: "the connection was refused", Duration: 250 * time.Millisecond}},
	} {
		q := &queue{}
		clock := noon
		var sent Request
		ctx, cancel := context.WithCancel(t.Context())
		send := func(ctx context.Context, r Request) (int, error) {
			cancel() // the client gives up waiting
			if ctx.Err() != nil {
				t.Errorf("the attempt is given up with it: %v", ctx.Err())
			}
			sent = r
			clock = clock.Add(250 * time.Millisecond)
			return c.status, c.err
		}
		got, err := SendTest(ctx, q, send, func() time.Time { return clock }, "r", "n", "latency_stt_p95", Target{URL: "http://h/", Method: "PATCH", Secret: "s"})
		if err != nil || got != c.want {
			t.Errorf("%+v, %v; want %+v", got, err, c.want)
		}
		if _, there := sent.Header[HeaderFiringID]; there || sent.Header[HeaderSignature] != Signature("s", sent.Body) || sent.Header[HeaderRuleID] != "r" || sent.Method != "PATCH" {
			t.Errorf("sent %+v", sent)
		}
		want := Attempt{ID: q.attempts[0].ID, RuleID: "r", RuleName: "n", Kind: KindTest, URL: "http://h/", Method: "PATCH", Number: 1, OK: c.want.OK, ResponseStatus: c.status, Error: c.want.Error,
			Duration: 250 * time.Millisecond, CreatedAt: noon}
		if len(q.attempts) != 1 || q.attempts[0] != want || want.ID == "" {
			t.Errorf("recorded %+v, want %+v", q.attempts, want)
		}
	}
}

// unlucky is a store in which somebody else always wins the race for a claim.
type unlucky struct{ queue }

func (u *unlucky) ClaimDue(_ context.Context, _, _ time.Time, take func(string) bool) ([]Delivery, error) {
	for range MaxPerHost + 1 {
		take("http://h/")
	}
	return nil, nil
}

func TestRefusedForWhatOthersWonIsTriedAgain(t *testing.T) {
	d := NewDispatcher(&unlucky{}, nil, func() time.Time { return noon }, quiet)
	if _, err := d.DeliverDue(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.Woken():
	default:
		t.Error("nothing will look again at the delivery that found no room")
	}
}

package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/webhook"
)

func always(string) bool { return true }

// claim claims everything that is due, for one webhook.Lease.
func (s alertStore) claim(now time.Time) []webhook.Delivery {
	s.t.Helper()
	d, err := s.Alerts.ClaimDue(s.t.Context(), now, now.Add(webhook.Lease), always)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func claimedIDs(ds []webhook.Delivery) []string {
	var ids []string
	for _, d := range ds {
		ids = append(ids, d.FiringID)
	}
	return ids
}

// attempt is the next attempt of a delivery; its id is made of the firing's and the lease.
func attempt(d webhook.Delivery, at time.Time) webhook.Attempt {
	return webhook.Attempt{ID: fmt.Sprintf("%s-%d", d.FiringID, d.Lease.UnixMicro()), RuleID: d.RuleID, RuleName: d.RuleName, FiringID: d.FiringID,
		Kind: webhook.KindFiring, URL: d.Target.URL, Method: d.Target.Method, Number: d.Attempts + 1, Duration: 1234 * time.Microsecond, CreatedAt: at}
}

// refused is an attempt that the receiver answered with 500, to be tried again after 30 seconds.
func refused(d webhook.Delivery, at time.Time) webhook.Outcome {
	a := attempt(d, at)
	a.ResponseStatus, a.Error = 500, "the receiver answered 500"
	return webhook.Outcome{Attempt: a, Lease: d.Lease, Status: webhook.Pending, Next: at.Add(30 * time.Second), At: at.Add(time.Second)}
}

// accepted is an attempt that succeeded.
func accepted(d webhook.Delivery, at time.Time) webhook.Outcome {
	a := attempt(d, at)
	a.OK, a.ResponseStatus = true, 204
	return webhook.Outcome{Attempt: a, Lease: d.Lease, Status: webhook.Delivered, At: at.Add(time.Second)}
}

func testAttempt(rule int) webhook.Attempt {
	return webhook.Attempt{ID: fmt.Sprintf("test-%d", rule), RuleID: alertID(rule), RuleName: "n", Kind: webhook.KindTest, URL: "u", Method: "PUT", Number: 1,
		OK: true, ResponseStatus: 200, Duration: time.Millisecond, CreatedAt: alertNoon}
}

func (s alertStore) record(want []bool, os ...webhook.Outcome) {
	s.t.Helper()
	held, err := s.Alerts.Record(s.t.Context(), os)
	if err != nil || !slices.Equal(held, want) {
		s.t.Errorf("held %v, want %v, %v", held, want, err)
	}
}

func (s alertStore) attempts(f alert.AttemptFilter) []webhook.Attempt {
	s.t.Helper()
	list, total, err := s.Alerts.Attempts(s.t.Context(), f, alert.Page{Limit: 10000})
	if err != nil || total != len(list) {
		s.t.Fatal(total, len(list), err)
	}
	return list
}

func claimFields(t *testing.T, s alertStore) {
	r := fullRule(1)
	r.LastFiredAt, r.WindowMinutes = time.Time{}, 15
	f := newFire(s.create(r), alertID(9), alertNoon)
	f.Firing.Payload, f.Firing.AttemptCount, f.Firing.AttemptBase = []byte("{\"b\":\"\xff\x00\"}"), 5, 2
	s.fire(alertNoon, f)
	until := alertNoon.Add(time.Minute + time.Microsecond)
	got, err := s.Alerts.ClaimDue(t.Context(), alertNoon, until, func(url string) bool { return url == r.WebhookURL })
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	want := webhook.Delivery{FiringID: alertID(9), RuleID: r.ID, RuleName: r.Name, Body: f.Firing.Payload, Target: r.Target(), Attempts: 5, Base: 2, Lease: until}
	noZero(t, want)
	noZero(t, want.Target)
	same(t, "delivery", got[0], want)
	if f := s.firing(1); !f.NextAttemptAt.Equal(until) || f.Status != webhook.Pending || f.AttemptCount != 5 {
		t.Errorf("claimed: %+v", f)
	}
	edited, err := s.Alerts.UpdateRule(t.Context(), r.ID, func(alert.Rule) (alert.Rule, error) { return newRule(1), nil })
	if err != nil {
		t.Fatal(err)
	}
	want.RuleName, want.Target, want.Lease = edited.Name, edited.Target(), until.Add(time.Minute)
	if got, err = s.Alerts.ClaimDue(t.Context(), until, want.Lease, always); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	same(t, "delivery after an edit", got[0], want)
}

func claimOrder(t *testing.T, s alertStore) {
	var fires []alert.Fire
	for n := range 8 {
		f := newFire(s.create(newRule(n)), alertID(100+n), alertNoon)
		f.Firing.NextAttemptAt = alertNoon.Add(-time.Duration(n/2) * time.Second) // ties by id
		switch n {
		case 5:
			f.Firing.Status, f.Firing.NextAttemptAt = webhook.Delivered, time.Time{}
		case 6:
			f.Firing.Status, f.Firing.NextAttemptAt = webhook.Failed, time.Time{}
		case 7:
			f.Firing.NextAttemptAt = alertNoon.Add(time.Microsecond)
		}
		fires = append(fires, f)
	}
	s.fire(alertNoon, fires...)
	asked := []string{}
	got, err := s.Alerts.ClaimDue(t.Context(), alertNoon, alertNoon.Add(time.Minute), func(url string) bool {
		asked = append(asked, url)
		return url != "https://host-2.example/hook"
	})
	order := []int{4, 2, 3, 0, 1}
	for i, n := range order {
		if len(asked) != len(order) || asked[i] != fires[n].Rule.WebhookURL {
			t.Fatalf("asked for %v", asked)
		}
	}
	if want := []string{alertID(104), alertID(103), alertID(100), alertID(101)}; err != nil || !slices.Equal(claimedIDs(got), want) {
		t.Errorf("claimed %v, %v", claimedIDs(got), err)
	}
	if got := claimedIDs(s.claim(alertNoon)); !slices.Equal(got, []string{alertID(102)}) {
		t.Errorf("then %v", got)
	}
	if got := claimedIDs(s.claim(alertNoon.Add(time.Microsecond))); !slices.Equal(got, []string{alertID(107)}) {
		t.Errorf("then %v", got)
	}
}

func claimOnce(t *testing.T, s alertStore) {
	const firings, dispatchers = 600, 8 // more than one statement names
	s.fired(firings)
	var mu sync.Mutex
	claimed := map[string]int{}
	s.together(dispatchers, func(store AlertStores, g int) error {
		for i := range 4 {
			now := alertNoon.Add(time.Duration(g) * time.Millisecond)
			got, err := store.Alerts.ClaimDue(context.Background(), now, now.Add(time.Hour), func(url string) bool { return i == 3 || (len(url)+g+i)%3 == 0 })
			if err != nil {
				return err
			}
			mu.Lock()
			for _, d := range got {
				claimed[d.FiringID]++
				if !d.Lease.Equal(now.Add(time.Hour)) {
					t.Errorf("the lease is %v", d.Lease)
				}
			}
			mu.Unlock()
		}
		return nil
	})
	for _, d := range s.claim(alertNoon.Add(time.Second)) { // what all lost to somebody who had not committed yet
		claimed[d.FiringID]++
	}
	if len(claimed) != firings {
		t.Errorf("%d of %d claimed", len(claimed), firings)
	}
	for id, n := range claimed {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
}

func leaseEnds(t *testing.T, s alertStore) {
	s.fired(1)
	first := s.claim(alertNoon)
	if len(first) != 1 || len(s.claim(first[0].Lease.Add(-time.Microsecond))) != 0 {
		t.Fatal("a claimed delivery was claimed again before its lease ended")
	}
	second := s.claim(first[0].Lease)
	if len(second) != 1 || second[0].Attempts != 0 {
		t.Fatalf("after the lease: %+v", second)
	}
	// The outcome of the lost lease is recorded, and leaves the firing to the second.
	before := s.firing(0)
	s.record([]bool{false}, accepted(first[0], alertNoon))
	same(t, "after a late outcome", s.firing(0), before)
	s.record([]bool{true}, refused(second[0], first[0].Lease))
	if f := s.firing(0); f.Status != webhook.Pending || f.AttemptCount != 1 || f.ResponseStatus != 500 {
		t.Errorf("%+v", f)
	}
	if n := len(s.attempts(alert.AttemptFilter{FiringID: alertID(1000)})); n != 2 {
		t.Errorf("%d attempts recorded", n)
	}
}

func outcomes(t *testing.T, s alertStore) {
	s.fired(4)
	got := s.claim(alertNoon)
	at := alertNoon.Add(time.Second)
	failed := refused(got[2], at)
	failed.Status, failed.Next = webhook.Failed, time.Time{}
	failed.Attempt.ResponseStatus, failed.Attempt.Error = 0, "no answer ü"
	if err := s.Alerts.DeleteRule(t.Context(), got[3].RuleID); err != nil {
		t.Fatal(err)
	}
	all := []webhook.Outcome{accepted(got[0], at), refused(got[1], at), failed, accepted(got[3], at)}
	s.record([]bool{true, true, true, false}, all...)
	for n, want := range []struct {
		status webhook.Status
		next   time.Time
	}{{webhook.Delivered, time.Time{}}, {webhook.Pending, at.Add(30 * time.Second)}, {webhook.Failed, time.Time{}}} {
		f, o := s.firing(n), all[n]
		if f.Status != want.status || !f.NextAttemptAt.Equal(want.next) || f.AttemptCount != 1 || f.AttemptBase != 0 || !f.LastAttemptAt.Equal(o.Attempt.CreatedAt) ||
			f.ResponseStatus != o.Attempt.ResponseStatus || f.LastError != o.Attempt.Error || !f.UpdatedAt.Equal(o.At) || !f.CreatedAt.Equal(alertNoon) {
			t.Errorf("firing %d: %+v", n, f)
		}
	}
	var want []webhook.Attempt
	for _, o := range all[:3] {
		want = append(want, o.Attempt)
	}
	same(t, "attempts", s.attempts(alert.AttemptFilter{}), want)
	if left := s.claim(alertNoon.Add(24 * time.Hour)); !slices.Equal(claimedIDs(left), []string{alertID(1001)}) || left[0].Attempts != 1 {
		t.Errorf("due later: %+v", left)
	}
}

func outcomesTwice(t *testing.T, s alertStore) {
	const n = 150
	s.fired(n)
	var os []webhook.Outcome
	var held []bool
	for _, d := range s.claim(alertNoon) {
		os, held = append(os, refused(d, alertNoon)), append(held, true)
	}
	s.record(held, os...)
	// The same call again, because the answer was lost: nothing is counted twice.
	s.record(make([]bool, n), os...)
	if got := len(s.attempts(alert.AttemptFilter{})); got != n {
		t.Errorf("%d attempts for %d", got, n)
	}
	for i := range n {
		if f := s.firing(i); f.AttemptCount != 1 {
			t.Fatalf("firing %d counts %d attempts", i, f.AttemptCount)
		}
	}
	// One firing twice in a call: an outcome whose lease was lost, and the one that followed.
	lost := s.claim(alertNoon.Add(time.Minute))[0]
	next := s.claim(lost.Lease)
	i := slices.IndexFunc(next, func(d webhook.Delivery) bool { return d.FiringID == lost.FiringID })
	s.record([]bool{false, true}, accepted(lost, alertNoon), accepted(next[i], alertNoon))
	if got := s.attempts(alert.AttemptFilter{FiringID: lost.FiringID}); len(got) != 3 {
		t.Errorf("%+v", got)
	}
}

// outcomesWhileRulesGo must neither fail nor leave anything of a deleted rule behind.
func outcomesWhileRulesGo(t *testing.T, s alertStore) {
	const n = 64
	s.fired(n)
	claimed := s.claim(alertNoon)
	s.together(6, func(store AlertStores, g int) error {
		if g == 0 {
			for i := n - 1; i >= n/2; i-- {
				if err := store.Alerts.DeleteRule(context.Background(), alertID(i)); err != nil {
					return err
				}
			}
			return nil
		}
		for part := range slices.Chunk(claimed, 8) {
			var os []webhook.Outcome
			for _, d := range part {
				o := refused(d, alertNoon)
				o.Attempt.ID += fmt.Sprint("-", g)
				os = append(os, o)
			}
			if g%2 == 0 {
				slices.Reverse(os)
			}
			if _, err := store.Alerts.Record(context.Background(), os); err != nil {
				return err
			}
		}
		return nil
	})
	if got := len(s.attempts(alert.AttemptFilter{})); got != 5*n/2 {
		t.Errorf("%d attempts, want %d", got, 5*n/2)
	}
	for i := range n / 2 {
		if f := s.firing(i); f.AttemptCount != 1 {
			t.Errorf("firing %d counts %d attempts", i, f.AttemptCount)
		}
	}
}

func redeliver(t *testing.T, s alertStore) {
	ctx := t.Context()
	s.fired(3)
	got := s.claim(alertNoon)
	failed := refused(got[1], alertNoon)
	failed.Status, failed.Next = webhook.Failed, time.Time{}
	s.record([]bool{true, true}, accepted(got[0], alertNoon), failed)
	now := alertNoon.Add(time.Hour)
	for n := range 2 {
		before := s.firing(n)
		f, err := s.Alerts.Redeliver(ctx, before.ID, now)
		if err != nil {
			t.Fatal(err)
		}
		before.Status, before.NextAttemptAt, before.AttemptBase, before.UpdatedAt = webhook.Pending, now, 1, now
		same(t, "answered", f, before)
		same(t, "stored", s.firing(n), before)
		again, err := s.Alerts.Redeliver(ctx, before.ID, now.Add(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "two clicks", again, before)
	}
	before := s.firing(2) // under way
	if f, err := s.Alerts.Redeliver(ctx, before.ID, now); err != nil {
		t.Fatal(err)
	} else {
		same(t, "under way", f, before)
	}
	for _, d := range s.claim(now) {
		base := 1
		if d.FiringID == alertID(1002) {
			base = 0 // its lease has ended
		}
		if d.Base != base || d.Attempts != base {
			t.Errorf("%+v", d)
		}
	}
}

func queueAndNextDue(t *testing.T, s alertStore) {
	ctx := t.Context()
	expect := func(what string, now time.Time, want alert.Queue, next time.Time) {
		t.Helper()
		q, err := s.Alerts.Queue(ctx, now)
		if err != nil {
			t.Fatal(err)
		}
		same(t, what, q, want)
		if got, err := s.Alerts.NextDue(ctx, now); err != nil || !got.Equal(next) {
			t.Errorf("%s: next due %v, want %v, %v", what, got, next, err)
		}
	}
	expect("empty", alertNoon, alert.Queue{}, time.Time{})
	s.fired(3)
	expect("before they are due", alertNoon.Add(-time.Microsecond), alert.Queue{Pending: 3}, alertNoon)
	expect("due", alertNoon, alert.Queue{Pending: 3, OldestDue: alertNoon}, time.Time{})
	got := s.claim(alertNoon)
	expect("under way", alertNoon.Add(time.Second), alert.Queue{Pending: 3}, got[0].Lease)
	s.record([]bool{true, true}, accepted(got[0], alertNoon), refused(got[1], alertNoon))
	retry := alertNoon.Add(30 * time.Second)
	expect("one delivered, one refused", alertNoon.Add(time.Second), alert.Queue{Pending: 2, Retrying: 1}, retry)
	expect("the retry is due", retry, alert.Queue{Pending: 2, Retrying: 1, OldestDue: retry}, got[2].Lease)
	expect("all is due", got[2].Lease, alert.Queue{Pending: 2, Retrying: 1, OldestDue: retry}, time.Time{})
}

func attemptPages(t *testing.T, s alertStore) {
	ctx := t.Context()
	s.fired(2)
	s.create(newRule(2))
	for n, d := range s.claim(alertNoon) {
		for i := range 3 {
			d.Lease = d.Lease.Add(time.Microsecond)
			o := refused(d, alertNoon.Add(time.Duration(i)*time.Second))
			if n == 1 && i == 2 {
				o = accepted(d, alertNoon.Add(2*time.Second))
			}
			o.Attempt.ID = fmt.Sprintf("%d.%d", n, i)
			s.record([]bool{false}, o)
		}
	}
	full := testAttempt(0)
	full.FiringID, full.Kind, full.Error, full.ResponseStatus, full.Duration = alertID(1000), webhook.KindTest, "e ü", 599, 100*time.Hour+time.Microsecond
	noZero(t, full)
	for _, a := range []webhook.Attempt{full, testAttempt(2)} {
		if err := s.Alerts.RecordAttempt(ctx, a); err != nil {
			t.Fatal(err)
		}
		if err := s.Alerts.RecordAttempt(ctx, a); err != nil { // the answer was lost
			t.Fatal(err)
		}
	}
	yes, no := true, false
	for _, c := range []struct {
		f     alert.AttemptFilter
		p     alert.Page
		want  []string
		total int
	}{
		{alert.AttemptFilter{}, alert.Page{Limit: 100}, []string{"0.2", "1.2", "0.1", "1.1", "0.0", "1.0", "test-0", "test-2"}, 8},
		{alert.AttemptFilter{}, alert.Page{Limit: 3, Offset: 2}, []string{"0.1", "1.1", "0.0"}, 8},
		{alert.AttemptFilter{}, alert.Page{Limit: 3, Offset: 7}, []string{"test-2"}, 8},
		{alert.AttemptFilter{}, alert.Page{Limit: 3, Offset: 9}, nil, 8},
		{alert.AttemptFilter{RuleID: alertID(1)}, alert.Page{Limit: 100}, []string{"1.2", "1.1", "1.0"}, 3},
		{alert.AttemptFilter{FiringID: alertID(1000)}, alert.Page{Limit: 2}, []string{"0.2", "0.1"}, 4},
		{alert.AttemptFilter{FiringID: alertID(5)}, alert.Page{Limit: 2}, nil, 0},
		{alert.AttemptFilter{OK: &yes}, alert.Page{Limit: 100}, []string{"1.2", "test-0", "test-2"}, 3},
		{alert.AttemptFilter{OK: &no, RuleID: alertID(1)}, alert.Page{Limit: 100}, []string{"1.1", "1.0"}, 2},
		{alert.AttemptFilter{Kind: webhook.KindTest}, alert.Page{Limit: 100}, []string{"test-0", "test-2"}, 2},
	} {
		list, total, err := s.Alerts.Attempts(ctx, c.f, c.p)
		var ids []string
		for _, a := range list {
			ids = append(ids, a.ID)
			if a.ID == full.ID {
				same(t, "attempt", a, full)
			}
		}
		if err != nil || total != c.total || !slices.Equal(ids, c.want) {
			t.Errorf("%+v %+v: %v of %d, want %v of %d, %v", c.f, c.p, ids, total, c.want, c.total, err)
		}
	}
}

func attemptStats(t *testing.T, s alertStore) {
	hour := alertNoon.Truncate(time.Hour)
	for n := range 3 {
		s.create(newRule(n))
	}
	for i, a := range []struct {
		rule  int
		after time.Duration
		ok    bool
		took  time.Duration
	}{
		{2, -time.Microsecond, true, time.Hour}, // before the range
		{0, 0, true, 10 * time.Millisecond},
		{1, time.Hour - time.Microsecond, false, 20 * time.Millisecond},
		{2, time.Hour, false, 30 * time.Millisecond},
		{1, 3 * time.Hour, true, 41 * time.Millisecond},
		{0, 3*time.Hour + time.Minute, false, 10 * time.Second},
		{1, 3*time.Hour + 2*time.Minute, false, time.Millisecond},
	} {
		at := testAttempt(a.rule)
		at.ID, at.RuleName, at.OK, at.Duration, at.CreatedAt = fmt.Sprint(i), "as it was called", a.ok, a.took, hour.Add(a.after)
		if err := s.Alerts.RecordAttempt(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Alerts.AttemptStats(t.Context(), hour, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	count := func(n, ok int) alert.AttemptCount { return alert.AttemptCount{Attempts: n, Accepted: ok} }
	same(t, "stats", got, alert.AttemptStats{AttemptCount: count(6, 2), AvgDuration: 10102 * time.Millisecond / 6 / time.Microsecond * time.Microsecond,
		Buckets: []alert.BucketAttempts{{Start: hour, AttemptCount: count(2, 1)}, {Start: hour.Add(time.Hour), AttemptCount: count(1, 0)},
			{Start: hour.Add(3 * time.Hour), AttemptCount: count(3, 1)}},
		Rules: []alert.RuleAttempts{{RuleID: alertID(1), RuleName: "rule 1", AttemptCount: count(3, 1)}, {RuleID: alertID(0), RuleName: "rule 0", AttemptCount: count(2, 1)},
			{RuleID: alertID(2), RuleName: "rule 2", AttemptCount: count(1, 0)}}})
	if got, err = s.Alerts.AttemptStats(t.Context(), hour.Add(-time.Microsecond), 24*time.Hour); err != nil || got.Attempts != 7 || len(got.Buckets) != 1 || !got.Buckets[0].Start.Equal(hour.Truncate(24*time.Hour)) {
		t.Errorf("a day: %+v, %v", got, err)
	}
}

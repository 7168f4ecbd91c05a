package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/webhook"
)

// newFire is a rule that crossed its threshold, with a firing that is due at once.
func newFire(r alert.Rule, id string, at time.Time) alert.Fire {
	total := int64(10)
	return alert.Fire{Rule: &r, Firing: alert.Firing{ID: id, RuleID: r.ID, WindowStart: at.Add(-r.Window()), WindowEnd: at, MatchedCount: 4, TotalCount: &total,
		ObservedValue: 0.4, SampleSessionIDs: []string{}, Payload: []byte(`{"firing":"` + id + `"}`), Status: webhook.Pending,
		NextAttemptAt: at, CreatedAt: at, UpdatedAt: at}}
}

// fire stores firings that must all win.
func (s alertStore) fire(at time.Time, fires ...alert.Fire) {
	s.t.Helper()
	won, err := s.Alerts.Fire(s.t.Context(), fires, at)
	if err != nil || len(won) != len(fires) || slices.Contains(won, false) {
		s.t.Fatal(won, err)
	}
}

// fired creates rules 0 to n-1 and fires each at noon; the firing of rule i is alertID(1000+i).
func (s alertStore) fired(n int) {
	s.t.Helper()
	var fires []alert.Fire
	for i := range n {
		fires = append(fires, newFire(s.create(newRule(i)), alertID(1000+i), alertNoon))
	}
	s.fire(alertNoon, fires...)
}

func (s alertStore) firings(rule int) []alert.Firing {
	s.t.Helper()
	list, total, err := s.Alerts.Firings(s.t.Context(), alertID(rule), alert.Page{Limit: 100})
	if err != nil || total != len(list) {
		s.t.Fatal(total, len(list), err)
	}
	return list
}

// firing is the only firing of a rule.
func (s alertStore) firing(rule int) alert.Firing {
	s.t.Helper()
	list := s.firings(rule)
	if len(list) != 1 {
		s.t.Fatalf("%d firings of rule %d", len(list), rule)
	}
	return list[0]
}

func everyFiringField(t *testing.T, s alertStore) {
	rate, latency := newFire(s.create(newRule(1)), alertID(11), alertNoon), newFire(s.create(newRule(2)), alertID(12), alertNoon)
	total := int64(1 << 40)
	rate.Firing = alert.Firing{ID: alertID(11), RuleID: alertID(1), WindowStart: alertNoon.Add(-time.Hour), WindowEnd: alertNoon, MatchedCount: 1 << 39, TotalCount: &total,
		ObservedValue: 0.30000000000000004, SampleSessionIDs: []string{"a", `"ü", →`}, Payload: []byte("{\"ü\":\"\\u0000 \xff\"}"), Status: webhook.Failed,
		AttemptCount: 7, AttemptBase: 1, NextAttemptAt: alertNoon.Add(time.Second), LastAttemptAt: alertNoon.Add(2 * time.Second), ResponseStatus: 503,
		LastError: "what ü", CreatedAt: alertNoon.Add(3 * time.Second), UpdatedAt: alertNoon.Add(4 * time.Second)}
	noZero(t, rate.Firing)
	latency.Firing.TotalCount = nil
	s.fire(alertNoon, rate, latency)
	same(t, "rate", s.firing(1), rate.Firing)
	same(t, "latency", s.firing(2), latency.Firing)
	for _, n := range []int{1, 2} {
		if r := s.rule(n); !r.LastFiredAt.Equal(alertNoon) || !r.UpdatedAt.Equal(alertNoon) {
			t.Errorf("rule %d is stamped %v, version %v", n, r.LastFiredAt, r.UpdatedAt)
		}
	}
}

func whoWins(t *testing.T, s alertStore) {
	window := 15 * time.Minute
	year := newRule(6)
	year.WindowMinutes = alert.MaxWindowMinutes
	rules := []alert.Rule{newRule(0), newRule(1), newRule(2), newRule(3), newRule(4), newRule(5), year}
	rules[1].Enabled = false
	rules[2].LastFiredAt = alertNoon.Add(-window) // exactly one window ago
	rules[3].LastFiredAt = alertNoon.Add(-window + time.Microsecond)
	rules[6].LastFiredAt = alertNoon.Add(-year.Window() + time.Microsecond)
	var fires []alert.Fire
	for i, r := range rules {
		if i != 5 { // deleted meanwhile
			s.create(r)
		}
		fires = append(fires, newFire(r, alertID(100+i), alertNoon))
	}
	if _, err := s.Alerts.UpdateRule(t.Context(), alertID(4), func(r alert.Rule) (alert.Rule, error) { r.Threshold = 0.9; return r, nil }); err != nil {
		t.Fatal(err)
	}
	fires = append(fires, newFire(rules[0], alertID(200), alertNoon)) // once more in the same transaction
	won, err := s.Alerts.Fire(t.Context(), fires, alertNoon)
	if want := []bool{true, false, true, false, false, false, false, false}; err != nil || !slices.Equal(won, want) {
		t.Errorf("won %v, %v", won, err)
	}
	for i := range rules {
		if i == 5 {
			continue
		}
		want, stamp := 0, rules[i].LastFiredAt
		if i == 0 || i == 2 {
			want, stamp = 1, alertNoon
		}
		if n := len(s.firings(i)); n != want || !s.rule(i).LastFiredAt.Equal(stamp) {
			t.Errorf("rule %d: %d firings, stamp %v", i, n, s.rule(i).LastFiredAt)
		}
	}
	// An edit does not reset the suppression, and what it says counts when that ends.
	edited, err := s.Alerts.UpdateRule(t.Context(), alertID(0), func(r alert.Rule) (alert.Rule, error) { r.WindowMinutes = 20; return r, nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {window, false}, {20*time.Minute - time.Microsecond, false}, {20 * time.Minute, true}, {20 * time.Minute, false}} {
		at := alertNoon.Add(c.after)
		won, err := s.Alerts.Fire(t.Context(), []alert.Fire{newFire(edited, alertID(300+int(c.after/time.Minute)), at)}, at)
		if err != nil || won[0] != c.want {
			t.Errorf("%v after the stamp: won %v, %v", c.after, won, err)
		}
	}
	// A failed transaction stamps nothing: rule 2's firing has an id that is taken.
	later := alertNoon.Add(window)
	if _, err := s.Alerts.Fire(t.Context(), []alert.Fire{newFire(s.create(newRule(7)), alertID(400), later), newFire(s.rule(2), alertID(100), later)}, later); err == nil {
		t.Error("two firings with one id")
	}
	if len(s.firings(7)) != 0 || !s.rule(7).LastFiredAt.IsZero() || !s.rule(2).LastFiredAt.Equal(alertNoon) {
		t.Error("half of a failed transaction is there")
	}
}

func oneFiring(t *testing.T, s alertStore) {
	const rules, sweepers = 150, 8
	var list []alert.Rule
	for n := range rules {
		list = append(list, s.create(newRule(n)))
	}
	won := make([][]bool, sweepers)
	s.together(sweepers, func(store AlertStores, g int) (err error) {
		var fires []alert.Fire
		for n := range rules {
			if g%4 < 2 { // in different orders
				n = rules - 1 - n
			}
			fires = append(fires, newFire(list[n], fmt.Sprintf("%s-%d", alertID(n), g), alertNoon))
		}
		won[g], err = store.Alerts.Fire(context.Background(), fires, alertNoon.Add(time.Duration(g)*time.Millisecond))
		return err
	})
	winners := 0
	for _, w := range won {
		for _, yes := range w {
			if yes {
				winners++
			}
		}
	}
	if winners != rules {
		t.Errorf("%d winners of %d", winners, rules)
	}
	for n := range rules {
		s.firing(n)
	}
}

func firingPages(t *testing.T, s alertStore) {
	r := s.create(newRule(1))
	s.create(newRule(2))
	var want []string
	for n := range 7 {
		f := newFire(r, alertID(10+n), alertNoon.Add(time.Duration(n)*r.Window()))
		f.Firing.CreatedAt = alertNoon.Add(time.Duration(n/2) * time.Second) // ties by id
		s.fire(f.Firing.WindowEnd, f)
	}
	for _, n := range []int{6, 4, 5, 2, 3, 0, 1} {
		want = append(want, alertID(10+n))
	}
	for _, p := range []alert.Page{{Limit: 100}, {Limit: 3}, {Limit: 3, Offset: 3}, {Limit: 3, Offset: 6}, {Limit: 3, Offset: 7}} {
		list, total, err := s.Alerts.Firings(t.Context(), r.ID, p)
		var ids []string
		for _, f := range list {
			ids = append(ids, f.ID)
		}
		if page := want[min(p.Offset, 7):min(p.Offset+p.Limit, 7)]; err != nil || total != 7 || !slices.Equal(ids, page) {
			t.Errorf("%+v: %v of %d, %v", p, ids, total, err)
		}
	}
	if list := s.firings(2); len(list) != 0 {
		t.Errorf("another rule has %v", list)
	}
}

func deleteCascades(t *testing.T, s alertStore) {
	ctx := t.Context()
	s.fired(2)
	deliveries := s.claim(alertNoon)
	if _, err := s.Alerts.Record(ctx, []webhook.Outcome{refused(deliveries[0], alertNoon), refused(deliveries[1], alertNoon)}); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := s.Alerts.RecordAttempt(ctx, testAttempt(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Alerts.DeleteRule(ctx, alertID(0)); err != nil {
		t.Fatal(err)
	}
	attempts, total, err := s.Alerts.Attempts(ctx, alert.AttemptFilter{}, alert.Page{Limit: 10})
	if err != nil || total != 2 || attempts[0].RuleID != alertID(1) || attempts[1].RuleID != alertID(1) {
		t.Errorf("%d attempts left: %+v, %v", total, attempts, err)
	}
	if q, err := s.Alerts.Queue(ctx, alertNoon); err != nil || q.Pending != 1 {
		t.Errorf("queue %+v, %v", q, err)
	}
	s.firing(1)
	s.create(newRule(0)) // the same id again has nothing of the deleted one
	if r := s.rule(0); len(s.firings(0)) != 0 || !r.LastFiredAt.IsZero() {
		t.Errorf("%+v", r)
	}
}

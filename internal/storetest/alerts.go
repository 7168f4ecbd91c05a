package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/errs"
	"sidetone/internal/eval"
	"sidetone/internal/session"
	"sidetone/internal/webhook"
)

// AlertStores is a store of alerts with the stores whose records its rules count.
type AlertStores struct {
	Alerts   alert.Store
	Sessions session.Store
	Evals    eval.Store
}

// RunAlerts checks a store of alerts. database gives an empty, migrated database; each call of what it returns opens the
// stores on it, as another process would.
func RunAlerts(t *testing.T, database func(t *testing.T) (open func() AlertStores)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s alertStore)
	}{
		{"EveryRuleFieldRoundTrips", everyRuleField},
		{"NothingThere", alertNotFound},
		{"RuleOrderPagesAndFilters", rulePages},
		{"UpdateRule", updateRule},
		{"UpdatesOfOneRuleAtOnce", updatesAtOnce},
		{"Statuses", ruleStatuses},
		{"StatusesWhileRulesGo", statusesWhileRulesGo},
		{"EveryFiringFieldRoundTrips", everyFiringField},
		{"WhoWinsAFiring", whoWins},
		{"OneFiringUnderManySweepers", oneFiring},
		{"FiringOrderAndPages", firingPages},
		{"DeleteCascades", deleteCascades},
		{"ClaimIsWhatTheRuleSaysNow", claimFields},
		{"ClaimOrderAndRoom", claimOrder},
		{"ClaimOnceUnderManyDispatchers", claimOnce},
		{"LeaseEnds", leaseEnds},
		{"Outcomes", outcomes},
		{"OutcomesTwiceAndTogether", outcomesTwice},
		{"OutcomesWhileRulesGo", outcomesWhileRulesGo},
		{"Redeliver", redeliver},
		{"QueueAndNextDue", queueAndNextDue},
		{"AttemptOrderPagesAndFilters", attemptPages},
		{"AttemptStats", attemptStats},
		{"SessionFacts", sessionFacts},
		{"VerdictFacts", verdictFacts},
		{"OutcomeFacts", outcomeFacts},
		{"FactWindowEdges", factEdges},
		{"DeletedFacts", deletedFacts},
		{"FollowingFactsEqualsReadingThem", followFacts},
	} {
		t.Run(test.name, func(t *testing.T) {
			open := database(t)
			test.run(t, alertStore{t, open(), open})
		})
	}
}

type alertStore struct {
	t *testing.T
	AlertStores
	again func() AlertStores // other stores on the same database
}

// together runs f n times at once, in turn on each of two stores of the same database.
func (s alertStore) together(n int, f func(store AlertStores, i int) error) {
	s.t.Helper()
	stores := []AlertStores{s.AlertStores, s.again()}
	failed := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { failed[i] = f(stores[i%2], i) })
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		s.t.Fatal(err)
	}
}

var alertNoon = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)

// alertID is a UUID that sorts by n.
func alertID(n int) string { return fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012x", n) }

// newRule is a rule with nothing but what it must have.
func newRule(n int) alert.Rule {
	return alert.Rule{ID: alertID(n), Name: fmt.Sprintf("rule %d", n), Enabled: true, Metric: alert.OutcomeFailRate, Threshold: 0.3, WindowMinutes: 15,
		MinSamples: 1, EvalSource: alert.SourceAll, WebhookURL: fmt.Sprintf("https://host-%d.example/hook", n), HTTPMethod: "POST",
		CreatedAt: alertNoon, UpdatedAt: alertNoon, Status: alert.Status{RuleID: alertID(n)}}
}

func (s alertStore) create(r alert.Rule) alert.Rule {
	s.t.Helper()
	if err := s.Alerts.CreateRule(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s alertStore) rule(n int) alert.Rule {
	s.t.Helper()
	r, err := s.Alerts.Rule(s.t.Context(), alertID(n))
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// noZero fails when a field of a struct has its zero value: then the test would not see it get lost.
func noZero(t *testing.T, v any) {
	t.Helper()
	for i, r := 0, reflect.ValueOf(v); i < r.NumField(); i++ {
		if r.Field(i).IsZero() {
			t.Fatalf("%T.%s is not set by the test", v, r.Type().Field(i).Name)
		}
	}
}

// fullRule has a value other than zero in every field.
func fullRule(n int) alert.Rule {
	value := 0.1 + 0.2
	return alert.Rule{ID: alertID(n), Name: "Ünïcode → 'quoted\" 返金 %", Enabled: true, Metric: alert.EvalFailRate, Threshold: 0.30000000000000004,
		WindowMinutes: 527040, MinSamples: 1_000_000_000, AgentID: "agent", AccountID: "account", JudgeName: "judge", EvalSource: alert.SourceRuns,
		WebhookURL: "https://example.com/ü?a=b", HTTPMethod: "PATCH", Secret: "secret ü", Headers: map[string]string{"X-A": "ü; \"b\"", "Y": ""},
		CreatedAt: alertNoon, UpdatedAt: alertNoon.Add(time.Microsecond), LastFiredAt: alertNoon.Add(2 * time.Second),
		Status: alert.Status{RuleID: alertID(n), Value: &value, Samples: 1 << 40, Reason: alert.BelowThreshold, EvaluatedAt: alertNoon.Add(3 * time.Second)}}
}

func everyRuleField(t *testing.T, s alertStore) {
	full, plain := fullRule(1), newRule(2)
	noZero(t, full)
	noZero(t, full.Status)
	s.create(full)
	s.create(plain)
	same(t, "full", s.rule(1), full)
	same(t, "plain", s.rule(2), plain)
	list, total, err := s.Alerts.Rules(t.Context(), alert.RuleFilter{}, alert.Page{Limit: 5})
	if err != nil || total != 2 {
		t.Fatal(total, err)
	}
	same(t, "list", list, []alert.Rule{full, plain})
	swept, err := s.Alerts.SweepRules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*alert.Rule{&full, &plain} { // may be left out
		r.Secret, r.Headers, r.WebhookURL, r.HTTPMethod = "", nil, "", ""
	}
	for i := range swept {
		swept[i].Secret, swept[i].Headers, swept[i].WebhookURL, swept[i].HTTPMethod = "", nil, "", ""
	}
	same(t, "for the sweeper", swept, []alert.Rule{full, plain})
	if err := s.Alerts.CreateRule(t.Context(), plain); err == nil {
		t.Error("a second rule with one id")
	}
}

func alertNotFound(t *testing.T, s alertStore) {
	ctx := t.Context()
	s.create(newRule(1))
	for name, call := range map[string]func(id string) error{
		"Rule":      func(id string) error { _, err := s.Alerts.Rule(ctx, id); return err },
		"Delete":    func(id string) error { return s.Alerts.DeleteRule(ctx, id) },
		"Firings":   func(id string) error { _, _, err := s.Alerts.Firings(ctx, id, alert.Page{Limit: 1}); return err },
		"Redeliver": func(id string) error { _, err := s.Alerts.Redeliver(ctx, id, alertNoon); return err },
		"Update": func(id string) error {
			_, err := s.Alerts.UpdateRule(ctx, id, func(alert.Rule) (alert.Rule, error) { t.Error("edited"); return alert.Rule{}, nil })
			return err
		},
		"RecordAttempt": func(id string) error {
			return s.Alerts.RecordAttempt(ctx, webhook.Attempt{ID: alertID(99), RuleID: id})
		},
	} {
		for _, id := range []string{alertID(2), "", "nonsense"} {
			if err := call(id); !errs.Is(err, errs.NotFound) {
				t.Errorf("%s of %q: %v", name, id, err)
			}
		}
	}
	if f, n, err := s.Alerts.Firings(ctx, alertID(1), alert.Page{Limit: 1}); err != nil || n != 0 || len(f) != 0 {
		t.Errorf("firings of a rule that never fired: %v %d %v", f, n, err)
	}
	for _, call := range []func() (int, error){
		func() (int, error) { won, err := s.Alerts.Fire(ctx, nil, alertNoon); return len(won), err },
		func() (int, error) { held, err := s.Alerts.Record(ctx, nil); return len(held), err },
		func() (int, error) { return 0, s.Alerts.SaveStatuses(ctx, nil) },
		func() (int, error) {
			d, err := s.Alerts.ClaimDue(ctx, alertNoon, alertNoon, func(string) bool { return true })
			return len(d), err
		},
		func() (int, error) {
			st, err := s.Alerts.AttemptStats(ctx, alertNoon, time.Hour)
			return st.Attempts + len(st.Buckets) + len(st.Rules), err
		},
		func() (int, error) { q, err := s.Alerts.Queue(ctx, alertNoon); return q.Pending + q.Retrying, err },
	} {
		if n, err := call(); n != 0 || err != nil {
			t.Errorf("of nothing: %d, %v", n, err)
		}
	}
}

func (s alertStore) ruleNumbers(f alert.RuleFilter, p alert.Page) (out []int, total int) {
	s.t.Helper()
	rules, total, err := s.Alerts.Rules(s.t.Context(), f, p)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range rules {
		out = append(out, int(r.ID[len(r.ID)-1]-'0'))
	}
	return out, total
}

func rulePages(t *testing.T, s alertStore) {
	for n := range 8 {
		r := newRule(n)
		r.CreatedAt = alertNoon.Add(time.Duration(n/2) * time.Second) // ties by id
		r.Enabled = n%2 == 0
		if n < 3 {
			r.AgentID, r.Metric = "a", alert.LatencySTT
		}
		if n > 5 {
			r.AccountID = "x"
		}
		s.create(r)
	}
	on, off := true, false
	for _, c := range []struct {
		f     alert.RuleFilter
		p     alert.Page
		want  []int
		total int
	}{
		{alert.RuleFilter{}, alert.Page{Limit: 20}, []int{6, 7, 4, 5, 2, 3, 0, 1}, 8},
		{alert.RuleFilter{}, alert.Page{Limit: 3, Offset: 3}, []int{5, 2, 3}, 8},
		{alert.RuleFilter{}, alert.Page{Limit: 3, Offset: 7}, []int{1}, 8},
		{alert.RuleFilter{}, alert.Page{Limit: 3, Offset: 8}, nil, 8},
		{alert.RuleFilter{AgentID: "a"}, alert.Page{Limit: 20}, []int{2, 0, 1}, 3},
		{alert.RuleFilter{AgentID: "A"}, alert.Page{Limit: 20}, nil, 0},
		{alert.RuleFilter{AccountID: "x", Enabled: &off}, alert.Page{Limit: 20}, []int{7}, 1},
		{alert.RuleFilter{Enabled: &on}, alert.Page{Limit: 20}, []int{6, 4, 2, 0}, 4},
		{alert.RuleFilter{Metric: alert.LatencySTT, Enabled: &on}, alert.Page{Limit: 20}, []int{2, 0}, 2},
	} {
		if got, total := s.ruleNumbers(c.f, c.p); !slices.Equal(got, c.want) || total != c.total {
			t.Errorf("%+v %+v: %v of %d, want %v of %d", c.f, c.p, got, total, c.want, c.total)
		}
	}
	if err := s.Alerts.DeleteRule(t.Context(), alertID(7)); err != nil {
		t.Fatal(err)
	}
	if got, total := s.ruleNumbers(alert.RuleFilter{AccountID: "x"}, alert.Page{Limit: 20}); !slices.Equal(got, []int{6}) || total != 1 {
		t.Errorf("after a deletion: %v of %d", got, total)
	}
}

func updateRule(t *testing.T, s alertStore) {
	old := newRule(1)
	old.LastFiredAt, old.Status = fullRule(1).LastFiredAt, fullRule(1).Status
	s.create(old)
	s.create(newRule(2))
	full := fullRule(1)
	full.UpdatedAt = alertNoon.Add(time.Hour)
	edited := full
	edited.ID, edited.CreatedAt, edited.LastFiredAt, edited.Status = "other", alertNoon.Add(time.Hour), time.Time{}, alert.Status{} // not a client's
	edited.Headers = maps.Clone(full.Headers)
	got, err := s.Alerts.UpdateRule(t.Context(), alertID(1), func(r alert.Rule) (alert.Rule, error) {
		same(t, "given to edit", r, old)
		return edited, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "answered", got, full)
	same(t, "stored", s.rule(1), full)
	same(t, "another rule", s.rule(2), newRule(2))

	no := errors.New("no")
	if _, err := s.Alerts.UpdateRule(t.Context(), alertID(1), func(r alert.Rule) (alert.Rule, error) { r.Name = "x"; return r, no }); err != no {
		t.Errorf("edit refused with %v", err)
	}
	same(t, "after a refusal", s.rule(1), full)

	plain := newRule(1) // everything optional cleared, at a time that is not later
	plain.Enabled, plain.LastFiredAt, plain.Status = false, full.LastFiredAt, full.Status
	if got, err = s.Alerts.UpdateRule(t.Context(), alertID(1), func(alert.Rule) (alert.Rule, error) { return plain, nil }); err != nil {
		t.Fatal(err)
	}
	plain.UpdatedAt = full.UpdatedAt.Add(time.Microsecond)
	same(t, "cleared, with a version of its own", got, plain)
	same(t, "stored so", s.rule(1), plain)
}

func updatesAtOnce(t *testing.T, s alertStore) {
	const clients, edits = 8, 10
	s.create(newRule(1))
	s.together(clients, func(store AlertStores, _ int) error {
		for range edits {
			if _, err := store.Alerts.UpdateRule(context.Background(), alertID(1), func(r alert.Rule) (alert.Rule, error) { r.MinSamples++; return r, nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if r := s.rule(1); r.MinSamples != 1+clients*edits || !r.UpdatedAt.Equal(alertNoon.Add(clients*edits*time.Microsecond)) {
		t.Errorf("%d edits left %d, version %v", clients*edits, r.MinSamples, r.UpdatedAt)
	}
}

func ruleStatuses(t *testing.T, s alertStore) {
	const n = 150
	for i := range n {
		s.create(newRule(i))
	}
	for round := range 2 {
		statuses := []alert.Status{{RuleID: alertID(n + 1), Reason: alert.NoData}, {RuleID: "gone"}}
		for i := range n {
			st := alert.Status{RuleID: alertID(i), Samples: int64(i), EvaluatedAt: alertNoon.Add(time.Duration(round) * time.Minute)}
			if (i+round)%2 == 0 {
				v := float64(i) / 7
				st.Value, st.Reason = &v, alert.BelowThreshold
			}
			statuses = append(statuses, st)
		}
		if err := s.Alerts.SaveStatuses(t.Context(), statuses); err != nil {
			t.Fatal(err)
		}
		rules, err := s.Alerts.SweepRules(t.Context())
		if err != nil || len(rules) != n {
			t.Fatal(len(rules), err)
		}
		slices.SortFunc(rules, func(a, b alert.Rule) int { return int(a.Status.Samples - b.Status.Samples) })
		for i, r := range rules {
			same(t, "status", r.Status, statuses[i+2])
			if !r.UpdatedAt.Equal(alertNoon) {
				t.Fatal("a status changed the version of a rule")
			}
		}
	}
}

func statusesWhileRulesGo(t *testing.T, s alertStore) {
	const n = 100
	var statuses []alert.Status
	for i := range n {
		s.create(newRule(i))
		statuses = append(statuses, alert.Status{RuleID: alertID(i), Reason: alert.NoData})
	}
	backward := slices.Clone(statuses)
	slices.Reverse(backward)
	s.together(4, func(store AlertStores, i int) error {
		for k := range 10 {
			if i == 0 {
				for j := range n / 20 {
					if err := store.Alerts.DeleteRule(context.Background(), alertID(k*n/20+j)); err != nil {
						return err
					}
				}
				continue
			}
			list := statuses
			if i == 1 {
				list = backward
			}
			if err := store.Alerts.SaveStatuses(context.Background(), list); err != nil {
				return err
			}
		}
		return nil
	})
	rules, err := s.Alerts.SweepRules(t.Context())
	if err != nil || len(rules) != n/2 {
		t.Errorf("%d rules, %v", len(rules), err)
	}
	for _, r := range rules {
		if r.Status.Reason != alert.NoData {
			t.Errorf("%s has no status", r.ID)
		}
	}
}

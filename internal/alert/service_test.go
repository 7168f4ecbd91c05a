package alert

import (
	"context"
	"errors"
	"testing"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/webhook"
)

// shelf is a store of one rule; everything that a test does not need panics.
type shelf struct {
	Store
	rule     Rule
	stats    AttemptStats
	from     time.Time
	filter   AttemptFilter
	attempts []webhook.Attempt
}

func (s *shelf) CreateRule(_ context.Context, r Rule) error { s.rule = r; return nil }

func (s *shelf) Rule(_ context.Context, id string) (Rule, error) {
	if id != s.rule.ID {
		return Rule{}, errs.New(errs.NotFound, "no such alert rule")
	}
	return s.rule, nil
}

func (s *shelf) UpdateRule(ctx context.Context, id string, edit func(Rule) (Rule, error)) (Rule, error) {
	r, err := s.Rule(ctx, id)
	if err == nil {
		if r, err = edit(r); err == nil {
			s.rule = r
		}
	}
	return r, err
}

func (s *shelf) Redeliver(_ context.Context, id string, now time.Time) (Firing, error) {
	return Firing{ID: id, NextAttemptAt: now}, nil
}

func (s *shelf) RecordAttempt(_ context.Context, a webhook.Attempt) error {
	s.attempts = append(s.attempts, a)
	return nil
}

func (s *shelf) Attempts(_ context.Context, f AttemptFilter, _ Page) ([]webhook.Attempt, int, error) {
	s.filter = f
	return []webhook.Attempt{{}}, 1, nil
}

func (s *shelf) AttemptStats(_ context.Context, from time.Time, _ time.Duration) (AttemptStats, error) {
	s.from = from
	return s.stats, nil
}

func TestServiceLifeOfARule(t *testing.T) {
	store := &shelf{}
	var sent webhook.Request
	s := NewService(store, func(_ context.Context, r webhook.Request) (int, error) { sent = r; return 500, nil }, func() time.Time { return noon }, func() {})
	r, err := s.Create(t.Context(), body(map[string]string{"secret": `"s"`}), noon)
	if err != nil || len(r.ID) != 36 || store.rule.ID != r.ID {
		t.Fatal(r, err)
	}
	if _, err := s.Create(t.Context(), body(map[string]string{"name": `""`}), noon); !errs.Is(err, errs.Invalid) {
		t.Errorf("an illegal rule: %v", err)
	}
	if _, err := s.Patch(t.Context(), r.ID, []byte(`{"threshold_value":-1}`), noon); !errs.Is(err, errs.Invalid) || store.rule.Threshold != 800 {
		t.Errorf("an illegal patch: %v, threshold %v", err, store.rule.Threshold)
	}
	if p, err := s.Patch(t.Context(), r.ID, []byte(`{"threshold_value":900}`), noon.Add(time.Hour)); err != nil || p.Threshold != 900 || store.rule.UpdatedAt != noon.Add(time.Hour) {
		t.Errorf("a patch: %+v, %v", p, err)
	}
	res, err := s.Test(t.Context(), r.ID)
	if err != nil || res.OK || res.ResponseStatus != 500 || len(store.attempts) != 1 || sent.Header[webhook.HeaderSignature] != webhook.Signature("s", sent.Body) {
		t.Errorf("test send: %+v, %v, sent %+v", res, err, sent)
	}
}

func TestServiceTakesNoIDThatIsNone(t *testing.T) {
	s := NewService(&shelf{}, nil, nil, nil)
	for _, id := range []string{"", "5", "../x", "g0000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-0000000000000", "a\x00b"} {
		_, e1 := s.Rule(t.Context(), id)
		_, e2 := s.Patch(t.Context(), id, []byte("{}"), noon)
		_, e3 := s.Test(t.Context(), id)
		_, _, e4 := s.Firings(t.Context(), id, Page{})
		_, e5 := s.Redeliver(t.Context(), id, noon)
		for i, err := range []error{e1, e2, e3, e4, e5, s.Delete(t.Context(), id)} {
			if !errs.Is(err, errs.NotFound) {
				t.Errorf("%q, call %d: %v", id, i, err)
			}
		}
	}
}

func TestRedeliveryWakesTheDispatcher(t *testing.T) {
	woken := 0
	s := NewService(&shelf{}, nil, nil, func() { woken++ })
	f, err := s.Redeliver(t.Context(), "ABCDEF00-0000-4000-8000-000000000000", noon)
	if err != nil || f.ID != "abcdef00-0000-4000-8000-000000000000" || !f.NextAttemptAt.Equal(noon) || woken != 1 {
		t.Errorf("%+v, %v, woken %d times", f, err, woken)
	}
}

func TestAttemptsByAnIDThatIsNone(t *testing.T) {
	store := &shelf{}
	s := NewService(store, nil, nil, nil)
	if list, total, err := s.Attempts(t.Context(), AttemptFilter{RuleID: "nonsense"}, Page{}); err != nil || total != 0 || len(list) != 0 {
		t.Errorf("%v, %d, %v", list, total, err)
	}
	if _, total, err := s.Attempts(t.Context(), AttemptFilter{FiringID: "ABCDEF00-0000-4000-8000-000000000000"}, Page{}); err != nil || total != 1 || store.filter.FiringID != "abcdef00-0000-4000-8000-000000000000" {
		t.Errorf("%d, %v, %+v", total, err, store.filter)
	}
}

func TestStatsFillGaps(t *testing.T) {
	for name, want := range map[string]struct {
		n           int
		from, start string
	}{
		"24h": {24, "2026-11-20T13:00:00Z", "2026-11-21T12:00:00Z"},
		"7d":  {28, "2026-11-14T18:00:00Z", "2026-11-21T12:00:00Z"},
		"30d": {30, "2026-10-23T00:00:00Z", "2026-11-21T00:00:00Z"},
	} {
		store := &shelf{}
		last, err := time.Parse(time.RFC3339, want.start)
		if err != nil {
			t.Fatal(err)
		}
		store.stats.Buckets = []BucketAttempts{{last, AttemptCount{5, 3}}}
		got, err := NewService(store, nil, nil, nil).Stats(t.Context(), name, noon.Add(20*time.Minute))
		if err != nil || len(got.Buckets) != want.n || store.from.Format(time.RFC3339) != want.from || !got.Buckets[0].Start.Equal(store.from) {
			t.Errorf("%s: %v, %d buckets from %s", name, err, len(got.Buckets), store.from)
			continue
		}
		if b := got.Buckets[want.n-1]; !b.Start.Equal(last) || b.AttemptCount != (AttemptCount{5, 3}) || got.Buckets[0].Attempts != 0 {
			t.Errorf("%s: the last bucket is %+v", name, b)
		}
	}
	var e *errs.Error
	if _, err := NewService(&shelf{}, nil, nil, nil).Stats(t.Context(), "1y", noon); !errors.As(err, &e) || e.Kind != errs.InvalidQuery {
		t.Errorf("an unknown range: %v", err)
	}
}

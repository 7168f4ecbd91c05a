package session

import (
	"context"
	"testing"
	"time"
)

// TestSignalsOfTags holds that what is only known from tags shows as arrived, at the time of the tag, and that a signal
// noted later never hides an earlier arrival.
func TestSignalsOfTags(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tagged := func(at time.Time) *LogSignals {
		return &LogSignals{Tags: []Tag{{Name: "lk.judge.tone:fail", CreatedAt: at}, {Name: "lk.success", CreatedAt: at}}}
	}
	verdicts := &Report{Evaluations: []Evaluation{{JudgeName: "task", Verdict: "pass"}}, Outcome: &Outcome{Outcome: "success"}}
	for _, c := range []struct {
		name  string
		parts parts
		want  time.Time
	}{
		{"nothing", parts{log: &LogSignals{Tags: []Tag{{Name: "vip", CreatedAt: noon}}}}, time.Time{}},
		{"tags of log records", parts{log: tagged(noon)}, noon},
		{"tags of a report", parts{report: &Report{Tags: names("lk.judge.tone:fail", "lk.fail")}, signals: Signals{Report: noon}}, noon},
		{"tags before the rest", parts{log: tagged(noon), signals: Signals{Evaluations: noon.Add(time.Hour), Outcome: noon.Add(time.Hour)}}, noon},
		{"tags after the rest", parts{log: tagged(noon.Add(time.Hour)), signals: Signals{Evaluations: noon, Outcome: noon}}, noon},
		{"a report", parts{report: verdicts, signals: Signals{Report: noon, Evaluations: noon, Outcome: noon}}, noon},
	} {
		got := c.parts.assemble().session.Signals
		if !got.Evaluations.Equal(c.want) || !got.Outcome.Equal(c.want) {
			t.Errorf("%s: evaluations %v, outcome %v; want %v", c.name, got.Evaluations, got.Outcome, c.want)
		}
	}
}

func TestCost(t *testing.T) {
	// A dollar per entry of usage, else a dime per item: it shows what the pricer was given.
	price := func(usage []Usage, items []Item) *float64 {
		usd := float64(len(usage))
		if usd == 0 {
			usd = float64(len(items)) / 10
		}
		if usd == 0 {
			return nil
		}
		return &usd
	}
	reported := &Report{Usage: make([]Usage, 2), HasTranscript: true, Items: make([]Item, 4)}
	logged := &LogSignals{Usage: make([]Usage, 3), Items: []Item{{ID: "a"}}}
	for _, c := range []struct {
		name  string
		parts parts
		want  float64 // 0 is unknown
	}{
		{"nothing", parts{}, 0},
		{"a report", parts{report: reported}, 2},
		{"log records", parts{log: logged}, 3},
		{"both, the totals once", parts{report: reported, log: logged}, 2},
		{"a report without totals", parts{report: &Report{HasTranscript: true, Items: make([]Item, 4)}}, 0.4},
		{"a report without totals, log records with", parts{report: &Report{HasTranscript: true}, log: logged}, 3},
	} {
		c.parts.price = price
		got := 0.0
		if p := c.parts.assemble().session.EstimatedCostUSD; p != nil {
			got = *p
		}
		if got != c.want {
			t.Errorf("%s: cost %v, want %v", c.name, got, c.want)
		}
	}
}

// shelf is a store with one session.
type shelf struct {
	Store
	stored Stored
}

func (s shelf) Get(context.Context, string) (*Stored, error) { return &s.stored, nil }

// TestCostStaysAsStored: the detail shows the cost that lists show, whatever the price table says by now.
func TestCostStaysAsStored(t *testing.T) {
	then, now := 0.5, 0.7
	store := shelf{stored: Stored{Session: Session{ID: "x", EstimatedCostUSD: &then}}}
	service := NewService(store, nil, nil, func([]Usage, []Item) *float64 { return &now }, nil)
	d, err := service.Get(context.Background(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if d.Session.EstimatedCostUSD == nil || *d.Session.EstimatedCostUSD != then {
		t.Errorf("cost %v, want %v", d.Session.EstimatedCostUSD, then)
	}
}

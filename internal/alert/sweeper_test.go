package alert

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sidetone/internal/webhook"
)

func testRule(id string, m Metric, threshold float64) Rule {
	r := defaults()
	r.ID, r.Name, r.Metric, r.Threshold, r.WindowMinutes, r.UpdatedAt = id, "rule "+id, m, threshold, 15, noon.Add(-time.Hour)
	return r
}

func ago(d time.Duration) int64 { return noon.Add(-d).UnixMicro() }

func TestSweepEveryMetric(t *testing.T) {
	h := newHistory()
	ms := func(v ...float64) []float64 { return v }
	h.call(SessionFacts{Num: 1, SessionID: "in", EndedAt: ago(0), AssistantTurns: 4, InterruptedTurns: 2, Perceived: ms(800.4), TTFT: ms(400, 410), TTFB: ms(90), STT: ms(55.5)})
	h.call(SessionFacts{Num: 2, SessionID: "just outside", EndedAt: ago(15 * time.Minute), AssistantTurns: 50, Perceived: ms(1, 1, 1), TTFT: ms(9999), TTFB: ms(9999), STT: ms(9999)})
	h.call(SessionFacts{Num: 3, SessionID: "active", AssistantTurns: 50, InterruptedTurns: 50, Perceived: ms(9999)})
	h.judged(SourceSessions, 1, VerdictFacts{At: ago(time.Minute), Judge: "tone", Verdict: "fail"}, VerdictFacts{At: ago(15 * time.Minute), Judge: "tone", Verdict: "pass"})
	h.judged(SourceRuns, 1, VerdictFacts{At: ago(0), Judge: "facts", Verdict: "Pass"})
	h.outcome(OutcomeFacts{Num: 1, At: ago(1), Outcome: "lk.fail"})
	h.outcome(OutcomeFacts{Num: 2, At: ago(2), Outcome: "success"})
	for _, r := range []Rule{
		testRule("perceived", LatencyPerceived, 800), testRule("perceived at threshold", LatencyPerceived, 800.4),
		testRule("ttft", LatencyTTFT, 409), testRule("ttfb", LatencyTTFB, 90), testRule("stt", LatencySTT, 55),
		testRule("interruptions", InterruptionRate, 0.49), testRule("interruptions at threshold", InterruptionRate, 0.5),
		testRule("verdicts", EvalFailRate, 0.4), testRule("outcomes", OutcomeFailRate, 0.5),
	} {
		h.add(r)
	}
	runs := testRule("runs", EvalFailRate, 0.4)
	runs.EvalSource = SourceRuns
	h.add(runs)
	few := testRule("too few", LatencyTTFT, 1)
	few.MinSamples = 3
	h.add(few)
	agent := testRule("other agent", LatencyTTFT, 1)
	agent.AgentID = "a"
	h.add(agent)
	off := testRule("off", LatencyTTFT, 1)
	off.Enabled = false
	h.add(off)

	woken := 0
	report, err := NewSweeper(h, func() { woken++ }).Sweep(t.Context(), noon)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Report{Rules: 13, Evaluated: 12, Skipped: 1, Fired: 5, FullReads: 3, Sessions: 1, Marks: 4}); report != want {
		t.Errorf("report %+v, want %+v", report, want)
	}
	if woken != 1 {
		t.Errorf("the dispatcher was woken %d times", woken)
	}
	for id, want := range map[string]string{
		"perceived": "800.4 1", "perceived at threshold": "below_threshold 800.4 1", "ttft": "410 2", "ttfb": "below_threshold 90 1", "stt": "55.5 1",
		"interruptions": "0.5 4", "interruptions at threshold": "below_threshold 0.5 4", "verdicts": "0.5 2", "outcomes": "below_threshold 0.5 2",
		"runs": "below_threshold 0 1", "too few": "too_few_samples 410 2", "other agent": "no_data - 0", "off": "disabled - 0",
	} {
		if got := h.status(id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

func TestFiringAndItsPayload(t *testing.T) {
	h := newHistory()
	h.call(SessionFacts{Num: 1, SessionID: "s-1", EndedAt: ago(time.Minute), Agent: "a", Account: "acc", Perceived: []float64{900, 100}})
	h.judged(SourceRuns, 7, VerdictFacts{At: ago(0), Judge: "tone", Verdict: "fail"}, VerdictFacts{At: ago(0), Judge: "tone", Verdict: "fail"}, VerdictFacts{At: ago(0), Judge: "tone", Verdict: "pass"})
	slow := testRule("slow", LatencyPerceived, 800)
	slow.AgentID, slow.AccountID = "a", "acc"
	slow.Name = `<slow> & "ü"`
	h.add(slow)
	tone := testRule("tone", EvalFailRate, 0.5)
	tone.JudgeName = "tone"
	h.add(tone)
	now := noon.Add(123456 * time.Microsecond)
	if _, err := NewSweeper(h, func() {}).Sweep(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if len(h.firings) != 2 {
		t.Fatalf("%d firings", len(h.firings))
	}
	for i, want := range []string{
		`{"type":"alert.triggered","firing_id":"ID","rule":{"id":"slow","name":"<slow> & \"ü\"","metric":"latency_perceived_p95","judge_name":null,"threshold_value":800,"window_minutes":15},` +
			`"window":{"start":"2026-11-21T11:45:00.123Z","end":"2026-11-21T12:00:00.123Z"},"matched_count":2,"total_count":null,"observed_value":900,"agent_id":"a","account_id":"acc",` +
			`"sample_session_ids":["s-1"],"fired_at":"2026-11-21T12:00:00.123Z"}`,
		`{"type":"alert.triggered","firing_id":"ID","rule":{"id":"tone","name":"rule tone","metric":"eval_fail_rate","judge_name":"tone","threshold_value":0.5,"window_minutes":15},` +
			`"window":{"start":"2026-11-21T11:45:00.123Z","end":"2026-11-21T12:00:00.123Z"},"matched_count":2,"total_count":3,"observed_value":0.6666666666666666,"agent_id":null,"account_id":null,` +
			`"sample_session_ids":[],"fired_at":"2026-11-21T12:00:00.123Z"}`,
	} {
		f := h.firings[i]
		if got := strings.Replace(string(f.Payload), f.ID, "ID", 1); got != want {
			t.Errorf("payload\n%s\nwant\n%s", got, want)
		}
		if f.Status != webhook.Pending || !f.NextAttemptAt.Equal(now) || f.AttemptCount != 0 || len(f.ID) != 36 {
			t.Errorf("firing %+v", f)
		}
		if !json.Valid(f.Payload) {
			t.Errorf("payload is not JSON")
		}
	}
}

func TestSuppressionLastsOneWindowAndSurvivesEdits(t *testing.T) {
	h := newHistory()
	r := h.add(testRule("r", OutcomeFailRate, 0.1))
	s := NewSweeper(h, func() {})
	fired := 0
	for tick := range 200 { // 100 minutes of a sustained incident
		now := noon.Add(time.Duration(tick) * Interval)
		h.outcome(OutcomeFacts{Num: int64(tick), At: now.UnixMicro(), Outcome: "fail"})
		if tick == 5 {
			r.Threshold, r.UpdatedAt = 0.2, now
		}
		report, err := s.Sweep(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		fired += report.Fired
		if want := tick%30 == 0; (report.Fired == 1) != want {
			t.Fatalf("tick %d: fired %d", tick, report.Fired)
		}
		if tick == 3 && h.status("r") != "suppressed 1 1" {
			t.Errorf("a suppressed rule shows %q", h.status("r"))
		}
	}
	if fired != 7 {
		t.Errorf("fired %d times", fired)
	}
}

func TestFailuresStayAmongThemselves(t *testing.T) {
	away := errors.New("away")
	build := func() *history {
		h := newHistory()
		h.call(SessionFacts{Num: 1, EndedAt: ago(0), Perceived: []float64{900}})
		h.judged(SourceSessions, 1, VerdictFacts{At: ago(0), Verdict: "fail"})
		h.outcome(OutcomeFacts{Num: 1, At: ago(0), Outcome: "fail"})
		h.add(testRule("call", LatencyPerceived, 800))
		h.add(testRule("judge", EvalFailRate, 0.5))
		h.add(testRule("outcome", OutcomeFailRate, 0.5))
		h.add(testRule("strange", "latency_of_the_future", 0.5))
		return h
	}
	for _, c := range []struct {
		name  string
		spoil func(*history)
		want  string // reasons of call, judge, outcome and strange
	}{
		{"nothing else", func(*history) {}, ", , , error"},
		{"sessions", func(h *history) { h.failSessions = away }, "error, , , error"},
		{"verdicts", func(h *history) { h.failVerdicts = away }, ", error, , error"},
		{"outcomes", func(h *history) { h.failOutcomes = away }, ", , error, error"},
		{"one firing", func(h *history) {
			h.failFire = func(f []Fire) error {
				if slices.ContainsFunc(f, func(f Fire) bool { return f.Rule.ID == "judge" }) {
					return away
				}
				return nil
			}
		}, ", error, , error"},
	} {
		h := build()
		c.spoil(h)
		report, err := NewSweeper(h, func() {}).Sweep(t.Context(), noon)
		if err == nil || !strings.Contains(err.Error(), "latency_of_the_future") || c.name != "nothing else" && !errors.Is(err, away) {
			t.Errorf("%s: error %v", c.name, err)
		}
		var reasons []string
		for _, id := range []string{"call", "judge", "outcome", "strange"} {
			reasons = append(reasons, string(h.rules[id].Status.Reason))
		}
		if got := strings.Join(reasons, ", "); got != c.want {
			t.Errorf("%s fails: reasons %q, want %q", c.name, got, c.want)
		}
		if wrong := strings.Count(c.want, "error"); report.Failed != wrong || report.Fired != 4-wrong || len(h.firings) != 4-wrong {
			t.Errorf("%s fails: %+v with %d firings", c.name, report, len(h.firings))
		}
	}
	h := build()
	h.failRules = away
	if _, err := NewSweeper(h, func() {}).Sweep(t.Context(), noon); !errors.Is(err, away) {
		t.Errorf("reading the rules fails: %v", err)
	}
}

func TestAFailedReadIsForgotten(t *testing.T) {
	h := newHistory()
	h.add(testRule("r", LatencyPerceived, 800))
	s := NewSweeper(h, func() {})
	h.call(SessionFacts{Num: 1, EndedAt: ago(0), Perceived: []float64{100}})
	h.failSessions = errors.New("cut off half way")
	s.Sweep(t.Context(), noon)
	h.failSessions = nil
	report, err := s.Sweep(t.Context(), noon.Add(Interval))
	if err != nil || report.FullReads != 1 || h.status("r") != "below_threshold 100 1" {
		t.Errorf("%+v, %v, %s", report, err, h.status("r"))
	}
}

func TestRacingSweepersFireOnce(t *testing.T) {
	h := newHistory()
	for i := range 250 {
		h.add(testRule(fmt.Sprintf("%03d", i), LatencyPerceived, 800))
	}
	h.call(SessionFacts{Num: 1, EndedAt: ago(0), Perceived: []float64{900}})
	first, second := NewSweeper(h, func() {}), NewSweeper(h, func() {})
	h.failFire = func(fires []Fire) error { // the second sweeps while the first is between evaluating and firing
		h.failFire = nil
		h.Unlock()
		defer h.Lock()
		report, err := second.Sweep(t.Context(), noon)
		if report.Fired != 250 {
			t.Errorf("the second: %+v, %v", report, err)
		}
		return nil
	}
	lost, err := first.Sweep(t.Context(), noon)
	if err != nil || lost.Lost != 250 || lost.Fired != 0 || len(h.firings) != 250 {
		t.Errorf("the first: %+v, %v; %d firings", lost, err, len(h.firings))
	}
	if got := h.status("000"); got != "suppressed 900 1" {
		t.Errorf("status %q", got)
	}
}

func TestAnEditedRuleDoesNotFireByItsOldThreshold(t *testing.T) {
	h := newHistory()
	r := h.add(testRule("r", LatencyPerceived, 800))
	h.call(SessionFacts{Num: 1, EndedAt: ago(0), Perceived: []float64{900}})
	h.failFire = func([]Fire) error {
		r.Threshold, r.UpdatedAt = 1000, noon
		return nil
	}
	if report, err := NewSweeper(h, func() {}).Sweep(t.Context(), noon); err != nil || report.Lost != 1 || len(h.firings) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestIncrementalReadsSeeWhatFullReadsSee lets a sweeper with its cache and one without live through the same random
// history of additions, changes and deletions, and compares every status at every tick.
func TestIncrementalReadsSeeWhatFullReadsSee(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 9))
		h := newHistory()
		for i := range 60 {
			w := world{rng, noon}
			r := w.rule(i)
			r.Threshold = 1e9 // never fires: every tick measures it
			h.add(*r)
		}
		s := NewSweeper(h, func() {})
		incremental := 0
		for tick := range 60 {
			now := noon.Add(time.Duration(tick) * Interval)
			w := world{rng, now}
			for range rng.IntN(20) {
				i := rng.Int64N(200)
				switch rng.IntN(3) {
				case 0:
					h.call(w.call(i))
				case 1:
					h.outcome(w.outcome(i))
				case 2:
					source := w.pick(SourceSessions, SourceRuns)
					list := w.verdicts(source, i)
					if list[0].Verdict == "" {
						list = nil
					}
					h.judged(source, i, list...)
				}
			}
			switch rng.IntN(5) {
			case 0:
				h.deleteCall(rng.Int64N(200))
			case 1:
				h.deleteRun(rng.Int64N(20) * runSize)
			}
			if tick == 30 {
				h.rules["0"].WindowMinutes = 200 // longer than any before
			}
			report, err := s.Sweep(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			incremental += 3 - report.FullReads
			got := map[string]string{}
			for id := range h.rules {
				got[id] = h.status(id)
			}
			if _, err := NewSweeper(h, func() {}).Sweep(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			for id, r := range h.rules {
				if want := h.status(id); got[id] != want {
					t.Fatalf("seed %d, tick %d, %s over %d min: %q from the cache, %q from the store", seed, tick, r.Metric, r.WindowMinutes, got[id], want)
				}
			}
		}
		if incremental < 60 {
			t.Errorf("seed %d: only %d incremental reads: the cache is not at work", seed, incremental)
		}
	}
}

func TestQuietTicksReadOnlyChanges(t *testing.T) {
	h := newHistory()
	h.add(testRule("r", LatencyPerceived, 800))
	s := NewSweeper(h, func() {})
	for tick := range 121 {
		h.next()
		if _, err := s.Sweep(t.Context(), noon.Add(time.Duration(tick)*Interval)); err != nil {
			t.Fatal(err)
		}
	}
	for tick, q := range h.queries {
		want := FactQuery{Since: Mark(tick + 2)} // what the tick before returned
		if tick%120 == 0 {                       // every hour
			want = FactQuery{After: noon.Add(time.Duration(tick)*Interval - 15*time.Minute).UnixMicro(), Until: q.Until}
		}
		if q != want {
			t.Errorf("tick %d asked %+v, want %+v", tick, q, want)
		}
	}
}

func TestWithoutRulesNothingIsRead(t *testing.T) {
	h := newHistory()
	off := testRule("off", LatencyPerceived, 800)
	off.Enabled = false
	h.add(off)
	if _, err := NewSweeper(h, func() {}).Sweep(t.Context(), noon); err != nil || len(h.queries) != 0 {
		t.Errorf("%v, %d reads", err, len(h.queries))
	}
}

func TestALongerWindowSeesWhatWasNotReadBefore(t *testing.T) {
	h := newHistory()
	r := h.add(testRule("r", LatencyPerceived, 800))
	h.call(SessionFacts{Num: 1, EndedAt: ago(40 * time.Minute), Perceived: []float64{100}})
	s := NewSweeper(h, func() {})
	for i, want := range []string{"no_data - 0", "below_threshold 100 1", "no_data - 0", "below_threshold 100 1"} {
		if _, err := s.Sweep(t.Context(), noon.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got := h.status("r"); got != want {
			t.Errorf("tick %d: %q, want %q", i, got, want)
		}
		if r.WindowMinutes = 60; i == 1 {
			r.WindowMinutes = 15
		}
	}
}

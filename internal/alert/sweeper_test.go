package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sidetone/internal/webhook"
)

// history is the smallest store that keeps the contract of SweepStore, with switches to make it fail. The SQL store is
// held to the same contract by its own conformance suite.
type history struct {
	sync.Mutex
	rules     map[string]*Rule
	calls     map[int64]changed[SessionFacts]
	verdicts  map[owner]changed[[]VerdictFacts]
	outcomes  map[int64]changed[OutcomeFacts]
	deletions int64
	firings   []Firing
	queries   []FactQuery // of sessions

	failSessions, failVerdicts, failOutcomes, failDeletions, failRules, failSave error
	failFire                                                                     func([]Fire) error
}

type changed[T any] struct {
	value T
	at    int64
}

func newHistory() *history {
	return &history{rules: map[string]*Rule{}, calls: map[int64]changed[SessionFacts]{}, verdicts: map[owner]changed[[]VerdictFacts]{}, outcomes: map[int64]changed[OutcomeFacts]{}}
}

func (h *history) add(r Rule) *Rule {
	h.rules[r.ID] = &r
	return &r
}

func (h *history) call(f SessionFacts, at time.Time) {
	h.calls[f.Num] = changed[SessionFacts]{f, at.UnixMicro()}
}

func (h *history) judged(source string, num int64, at time.Time, list ...VerdictFacts) {
	for i := range list {
		list[i].Source, list[i].Owner = source, num
	}
	h.verdicts[owner{source == SourceRuns, num}] = changed[[]VerdictFacts]{list, at.UnixMicro()}
}

func (h *history) DeletionCount(context.Context) (int64, error) { return h.deletions, h.failDeletions }

func (q FactQuery) wants(at, changed int64) bool {
	if q.ChangedSince != 0 {
		return changed >= q.ChangedSince
	}
	return at > q.After && at <= q.Until
}

func (h *history) SessionFacts(ctx context.Context, q FactQuery, put func(SessionFacts)) error {
	h.queries = append(h.queries, q)
	for _, c := range h.calls {
		if q.wants(c.value.EndedAt, c.at) {
			put(c.value)
		}
	}
	if _, limited := ctx.Deadline(); !limited {
		return errors.New("a read without a time limit")
	}
	return h.failSessions
}

func (h *history) VerdictFacts(_ context.Context, q FactQuery, put func(VerdictFacts)) error {
	for o, c := range h.verdicts {
		if q.ChangedSince != 0 && len(c.value) == 0 && c.at >= q.ChangedSince {
			source := SourceSessions
			if o.run {
				source = SourceRuns
			}
			put(VerdictFacts{Source: source, Owner: o.num})
		}
		for _, v := range c.value {
			if q.wants(v.At, c.at) {
				put(v)
			}
		}
	}
	return h.failVerdicts
}

func (h *history) OutcomeFacts(_ context.Context, q FactQuery, put func(OutcomeFacts)) error {
	for _, c := range h.outcomes {
		if q.wants(c.value.At, c.at) {
			put(c.value)
		}
	}
	return h.failOutcomes
}

func (h *history) SweepRules(context.Context) ([]Rule, error) {
	var list []Rule
	for _, id := range slices.Sorted(maps.Keys(h.rules)) {
		list = append(list, *h.rules[id])
	}
	return list, h.failRules
}

func (h *history) Fire(_ context.Context, fires []Fire, now time.Time) ([]bool, error) {
	h.Lock()
	defer h.Unlock()
	if h.failFire != nil {
		if err := h.failFire(fires); err != nil {
			return nil, err
		}
	}
	won := make([]bool, len(fires))
	for i, f := range fires {
		r := h.rules[f.Rule.ID]
		if r != nil && r.Enabled && r.UpdatedAt.Equal(f.Rule.UpdatedAt) && !r.Suppressed(now) {
			r.LastFiredAt, won[i] = now, true
			h.firings = append(h.firings, f.Firing)
		}
	}
	return won, nil
}

func (h *history) SaveStatuses(_ context.Context, list []Status) error {
	for _, s := range list {
		h.rules[s.RuleID].Status = s
	}
	return h.failSave
}

// status words what a rule shows: reason, value and samples.
func (h *history) status(id string) string {
	s := h.rules[id].Status
	value := "-"
	if s.Value != nil {
		value = strconv.FormatFloat(*s.Value, 'g', -1, 64)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %d", s.Reason, value, s.Samples))
}

func testRule(id string, m Metric, threshold float64) Rule {
	r := defaults()
	r.ID, r.Name, r.Metric, r.Threshold, r.WindowMinutes, r.UpdatedAt = id, "rule "+id, m, threshold, 15, noon.Add(-time.Hour)
	return r
}

func ago(d time.Duration) int64 { return noon.Add(-d).UnixMicro() }

func TestSweepEveryMetric(t *testing.T) {
	h := newHistory()
	ms := func(v ...float64) []float64 { return v }
	h.call(SessionFacts{Num: 1, SessionID: "in", EndedAt: ago(0), AssistantTurns: 4, InterruptedTurns: 2, Perceived: ms(800.4), TTFT: ms(400, 410), TTFB: ms(90), STT: ms(55.5)}, noon)
	h.call(SessionFacts{Num: 2, SessionID: "just outside", EndedAt: ago(15 * time.Minute), AssistantTurns: 50, Perceived: ms(1, 1, 1), TTFT: ms(9999), TTFB: ms(9999), STT: ms(9999)}, noon)
	h.call(SessionFacts{Num: 3, SessionID: "active", AssistantTurns: 50, InterruptedTurns: 50, Perceived: ms(9999)}, noon)
	h.judged(SourceSessions, 1, noon, VerdictFacts{At: ago(time.Minute), Judge: "tone", Verdict: "fail"}, VerdictFacts{At: ago(15 * time.Minute), Judge: "tone", Verdict: "pass"})
	h.judged(SourceRuns, 1, noon, VerdictFacts{At: ago(0), Judge: "facts", Verdict: "Pass"})
	h.outcomes[1] = changed[OutcomeFacts]{OutcomeFacts{Num: 1, At: ago(1), Outcome: "lk.fail"}, 0}
	h.outcomes[2] = changed[OutcomeFacts]{OutcomeFacts{Num: 2, At: ago(2), Outcome: "success"}, 0}
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
	h.call(SessionFacts{Num: 1, SessionID: "s-1", EndedAt: ago(time.Minute), Agent: "a", Account: "acc", Perceived: []float64{900, 100}}, noon)
	h.judged(SourceRuns, 7, noon, VerdictFacts{At: ago(0), Judge: "tone", Verdict: "fail"}, VerdictFacts{At: ago(0), Judge: "tone", Verdict: "fail"}, VerdictFacts{At: ago(0), Judge: "tone", Verdict: "pass"})
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
		h.outcomes[int64(tick)] = changed[OutcomeFacts]{OutcomeFacts{Num: int64(tick), At: now.UnixMicro(), Outcome: "fail"}, now.UnixMicro()}
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
		h.call(SessionFacts{Num: 1, EndedAt: ago(0), Perceived: []float64{900}}, noon)
		h.judged(SourceSessions, 1, noon, VerdictFacts{At: ago(0), Verdict: "fail"})
		h.outcomes[1] = changed[OutcomeFacts]{OutcomeFacts{Num: 1, At: ago(0), Outcome: "fail"}, 0}
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
		{"deletion count", func(h *history) { h.failDeletions = away }, ", , , error"},
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
	h.call(SessionFacts{Num: 1, EndedAt: ago(0), Perceived: []float64{100}}, noon)
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
	h.call(SessionFacts{Num: 1, EndedAt: ago(0), Perceived: []float64{900}}, noon)
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
	h.call(SessionFacts{Num: 1, EndedAt: ago(0), Perceived: []float64{900}}, noon)
	h.failFire = func([]Fire) error {
		r.Threshold, r.UpdatedAt = 1000, noon
		return nil
	}
	if report, err := NewSweeper(h, func() {}).Sweep(t.Context(), noon); err != nil || report.Lost != 1 || len(h.firings) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestIncrementalReadsSeeWhatFullReadsSee lets a sweeper with its cache and one without live through the same random
// history of additions, changes, deletions and late commits, and compares every status at every tick.
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
				late := now.Add(-time.Duration(rng.Int64N(int64(90 * time.Second)))) // committed later than stamped
				switch rng.IntN(3) {
				case 0:
					h.call(w.call(i), late)
				case 1:
					o := w.outcome(i)
					h.outcomes[i] = changed[OutcomeFacts]{o, late.UnixMicro()}
				case 2:
					list := w.verdicts(SourceRuns, i)
					if list[0].Verdict == "" {
						list = nil
					}
					h.judged(SourceRuns, i, late, list...)
				}
			}
			if rng.IntN(10) == 0 {
				for i := range h.calls {
					delete(h.calls, i)
					delete(h.outcomes, i)
					break
				}
				h.deletions++
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
	for tick := range 21 {
		if _, err := s.Sweep(t.Context(), noon.Add(time.Duration(tick)*Interval)); err != nil {
			t.Fatal(err)
		}
	}
	for tick, q := range h.queries {
		now := noon.Add(time.Duration(tick) * Interval)
		want := FactQuery{ChangedSince: now.Add(-Interval - overlap).UnixMicro()}
		if tick%20 == 0 { // every ten minutes
			want = FactQuery{After: now.Add(-15 * time.Minute).UnixMicro(), Until: q.Until}
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

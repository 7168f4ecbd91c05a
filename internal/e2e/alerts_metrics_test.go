package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"sidetone/internal/stamp"
)

// alertObserver sends, through the ingest routes, one observation of a metric.
type alertObserver struct {
	metric string
	rate   bool
	ended  bool // the window goes by the end of the call, not by arrival
	// observe sends the n-th observation of an agent and an account. Rates: value above 0 counts against them.
	// Latencies: value in ms. at is when it happens.
	observe func(h *alertHouse, n int, agent, account string, value float64, at time.Time)
}

var alertObservers = []alertObserver{
	{metric: "eval_fail_rate", rate: true, observe: func(h *alertHouse, n int, agent, account string, value float64, at time.Time) {
		h.set(at)
		verdict := []string{"pass", "maybe"}[n%2]
		if value > 0 {
			verdict = []string{"fail", "FAIL"}[n%2]
		}
		switch n % 3 {
		case 0:
			h.judge(n, agent, account, "accuracy", verdict)
		case 1:
			h.report(alertCall{id: fmt.Sprint("call-", n), agent: agent, account: account, more: alertObject{"tags": []string{"lk.judge.accuracy:" + verdict}}})
		default:
			h.report(alertCall{id: fmt.Sprint("call-", n), agent: agent, account: account, more: alertObject{"evaluations": []any{alertObject{"name": "accuracy", "verdict": verdict}}}})
		}
	}},
	{metric: "outcome_fail_rate", rate: true, observe: func(h *alertHouse, n int, agent, account string, value float64, at time.Time) {
		h.set(at)
		outcomes := []any{"success", "lk.success", "resolved", "failed over"}
		if value > 0 {
			outcomes = []any{"lk.fail", "Vendor.FAILURE", "fail", alertObject{"outcome": "failure", "reason": "hung up"}}
		}
		more := alertObject{"outcome": outcomes[n%4]}
		if n%5 == 4 {
			more = alertObject{"tags": []string{map[bool]string{true: "lk.fail", false: "lk.success"}[value > 0]}}
		}
		h.report(alertCall{id: fmt.Sprint("call-", n), agent: agent, account: account, more: more})
	}},
	alertLatency("interruption_rate", func(c *alertCall, value float64) { c.interrupted = value > 0 }),
	alertLatency("latency_perceived_p95", func(c *alertCall, value float64) {
		c.perceived, c.ttft = value, 5 // a voice call: what its model took says nothing
		if c.id[len(c.id)-1]%2 == 0 {  // a text-only session has nothing else
			c.perceived, c.ttft, c.transport = 0, value, "text"
		}
	}),
	alertLatency("latency_llm_ttft_p95", func(c *alertCall, value float64) { c.ttft, c.perceived = value, 5000 }),
	alertLatency("latency_tts_ttfb_p95", func(c *alertCall, value float64) { c.ttfb, c.ttft = value, 5000 }),
	alertLatency("latency_stt_p95", func(c *alertCall, value float64) { c.stt, c.ttft = value, 5000 }),
}

// alertLatency observes by reports that come long after their call ended: only the end counts.
func alertLatency(metric string, fill func(*alertCall, float64)) alertObserver {
	return alertObserver{metric: metric, rate: metric == "interruption_rate", ended: true,
		observe: func(h *alertHouse, n int, agent, account string, value float64, at time.Time) {
			c := alertCall{id: fmt.Sprint("call-", n), agent: agent, account: account, transport: "sip", ended: at}
			fill(&c, value)
			h.report(c)
		}}
}

// TestAlertMetrics takes each metric through the whole program: what counts, what does not, and when the rule fires.
func TestAlertMetrics(t *testing.T) {
	alertOnEngines(t, func(t *testing.T, engine string) {
		for _, o := range alertObservers {
			t.Run(o.metric, func(t *testing.T) { alertMetric(t, newAlertHouse(t, engine), o) })
		}
	})
}

func alertMetric(t *testing.T, h *alertHouse, o alertObserver) {
	tick := alertNoon.Add(time.Hour)
	start := tick.Add(-15 * time.Minute) // of the window: what happens just then is outside
	const good, high, higher, terrible = 100, 800, 800.4, 9000
	value := func(latency, rate float64) float64 {
		if o.rate {
			return rate
		}
		return latency
	}
	// Rates: one of four failed. Latencies: the p95 of four is their largest.
	at, below, one, less := value(high, 0.25), value(high-0.001, 0.249), value(higher, 0.4), value(good, 0.001)
	n := 0
	observe := func(agent, account string, v float64, at time.Time) {
		if o.rate && v == good {
			v = 0
		}
		o.observe(h, n, agent, account, v, at)
		n++
	}
	observe("ours", "acme", terrible, start.Add(-time.Hour))
	observe("ours", "acme", terrible, start.Add(-time.Millisecond))
	observe("ours", "acme", terrible, start)
	observe("ours", "acme", good, start.Add(time.Millisecond))
	observe("ours", "acme", high, start.Add(time.Minute))
	observe("ours", "acme", good, tick.Add(-time.Minute))
	observe("theirs", "acme", terrible, tick.Add(-time.Minute))
	observe("ours", "evil", terrible, tick.Add(-time.Minute))
	observe("", "", terrible, tick.Add(-time.Minute))
	observe("ours", "acme", good, tick)
	h.set(tick)
	if o.ended {
		observe("ours", "acme", terrible, tick.Add(20*time.Second)) // by the clock of a client that runs ahead
		h.talk("RM_active", alertCall{perceived: terrible, ttft: terrible, ttfb: terrible, stt: terrible, interrupted: true})
		if got := h.objects("/api/sessions?state=active"); len(got) != 1 {
			t.Fatalf("%d active sessions, want 1", len(got))
		}
	}

	mine := alertObject{"agent_id": "ours", "account_id": "acme"}
	with := func(more alertObject) alertObject {
		out := alertObject{}
		for _, m := range []alertObject{mine, more} {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	}
	exact := h.rule(o.metric, at, mine)
	above := h.rule(o.metric, below, mine)
	short := h.rule(o.metric, less, with(alertObject{"min_samples": 5}))
	enough := h.rule(o.metric, less, with(alertObject{"min_samples": 4}))
	nobody := h.rule(o.metric, less, alertObject{"agent_id": "nobody"})
	off := h.rule(o.metric, less, with(alertObject{"enabled": false}))
	everyone := h.rule(o.metric, less, nil)
	agent := h.rule(o.metric, less, alertObject{"agent_id": "ours"})
	account := h.rule(o.metric, less, alertObject{"account_id": "acme"})

	if r := h.sweep(); r.Rules != 9 || r.Evaluated != 8 || r.Skipped != 1 || r.Fired != 5 {
		t.Errorf("the tick did %+v", r)
	}
	failed := func(share float64) float64 { return value(terrible, share) }
	alertCheck(h, "exactly at the threshold", exact, "below_threshold", at, 4)
	alertCheck(h, "just above it", above, "", at, 4)
	alertCheck(h, "one sample short", short, "too_few_samples", at, 4)
	alertCheck(h, "just enough samples", enough, "", at, 4)
	alertCheck(h, "an agent without calls", nobody, "no_data", -1, 0)
	alertCheck(h, "disabled", off, "disabled", -1, 0)
	alertCheck(h, "all agents and accounts", everyone, "", failed(4./7), 7)
	alertCheck(h, "all accounts of the agent", agent, "", failed(2./5), 5)
	alertCheck(h, "all agents of the account", account, "", failed(2./5), 5)

	f := h.objects("/api/alert-rules/" + above + "/firings")
	if len(f) != 1 {
		t.Fatalf("%d firings, want 1", len(f))
	}
	var total any
	matched := 4.
	if o.rate {
		matched, total = 1, 4.
	}
	wanted := alertObject{"rule_id": above, "matched_count": matched, "total_count": total, "observed_value": at, "status": "pending",
		"window_start": stamp.Of(start).String(), "window_end": stamp.Of(tick).String(), "created_at": stamp.Of(tick).String()}
	for k, want := range wanted {
		if f[0][k] != want {
			t.Errorf("the firing's %s is %v, want %v", k, f[0][k], want)
		}
	}

	// One more, just above: it crosses the threshold and the number of samples.
	observe("ours", "acme", higher, tick)
	h.set(tick)
	if r := h.sweep(); r.Fired != 2 || r.Skipped != 6 {
		t.Errorf("the second tick did %+v", r)
	}
	alertCheck(h, "one above", exact, "", one, 5)
	alertCheck(h, "enough samples now", short, "", one, 5)
	alertCheck(h, "fired before", above, "suppressed", at, 4)

	// One window later everything but what came from a clock ahead has left, and the rules may fire again.
	later := tick.Add(15 * time.Minute)
	h.set(later)
	r := h.sweep()
	wantFired, samples := 0, 0
	if o.ended {
		wantFired, samples = 5, 1 // of the one call that ended after the tick: all but those that want more samples
	}
	if r.Fired != wantFired || r.Skipped != 1 {
		t.Errorf("one window later the tick did %+v, want %d fired", r, wantFired)
	}
	if got := h.get("/api/alert-rules/" + enough); got["last_samples"] != float64(samples) {
		t.Errorf("one window later the window holds %v, want %d", got["last_samples"], samples)
	}
}

// alertCheck holds what a rule shows of its last tick. value -1 is none.
func alertCheck(h *alertHouse, what, id, reason string, value float64, samples int) {
	h.t.Helper()
	got := h.get("/api/alert-rules/" + id)
	var wantReason, wantValue any
	if reason != "" {
		wantReason = reason
	}
	if value >= 0 {
		wantValue = value
	}
	firings := h.get("/api/alert-rules/" + id + "/firings")["meta"].(alertObject)["total_count"]
	fired := reason == "" || reason == "suppressed"
	if got["last_reason"] != wantReason || got["last_value"] != wantValue || got["last_samples"] != float64(samples) ||
		(firings == 1.) != fired || (got["last_fired_at"] != nil) != fired || (got["suppressed_until"] != nil) != fired {
		h.t.Errorf("%s: reason %v, value %v of %v samples, fired %v, %v firings; want %v, %v of %d", what, got["last_reason"], got["last_value"],
			got["last_samples"], got["last_fired_at"], firings, wantReason, wantValue, samples)
	}
}

// TestAlertEvalScopes narrows eval_fail_rate by judge and by where verdicts come from.
func TestAlertEvalScopes(t *testing.T) {
	alertOnEngines(t, func(t *testing.T, engine string) {
		h := newAlertHouse(t, engine)
		evaluate := func(id, judge, verdict string) {
			h.report(alertCall{id: id, agent: "a", more: alertObject{"evaluations": []any{
				alertObject{"name": judge, "verdict": verdict}, alertObject{"name": "tone", "verdict": "pass"}}}})
		}
		evaluate("one", "accuracy", "fail")
		evaluate("two", "accuracy", "pass")
		h.judge(1, "a", "", "accuracy", "fail")
		h.judge(2, "a", "", "safety", "fail")
		rules := map[string]alertObject{
			// Six verdicts: two of accuracy and two of tone in sessions, one of accuracy and one of safety in runs.
			"0.5 6 all": {}, "0.25 4 sessions": {"eval_source": "sessions"}, "1 2 runs": {"eval_source": "runs"},
			"0.6666666666666666 3 accuracy": {"judge_name": "accuracy"}, "0.5 2 accuracy in sessions": {"judge_name": "accuracy", "eval_source": "sessions"},
			"1 1 safety": {"judge_name": "safety"}, "0 2 tone": {"judge_name": "tone"},
		}
		ids := map[string]string{}
		for want, fields := range rules {
			ids[want] = h.rule("eval_fail_rate", 1, fields)
		}
		h.sweep()
		for want, id := range ids {
			got := h.get("/api/alert-rules/" + id)
			var value, samples float64
			fmt.Sscan(want, &value, &samples)
			if got["last_value"] != value || got["last_samples"] != samples || got["last_reason"] != "below_threshold" {
				t.Errorf("%s: %v of %v, %v", want, got["last_value"], got["last_samples"], got["last_reason"])
			}
		}
	})
}

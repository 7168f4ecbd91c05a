package alert

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sidetone/internal/stat"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// naiveCounts measures one rule the slow and obvious way: every fact, in floating point, sorted.
func naiveCounts(r *Rule, now time.Time, calls []SessionFacts, verdicts []VerdictFacts, outcomes []OutcomeFacts) Counts {
	start, end := now.Add(-r.Window()).UnixMicro(), now.UnixMicro()
	in := func(at int64, agent, account string) bool {
		return at > start && at <= end && (r.AgentID == "" || r.AgentID == agent) && (r.AccountID == "" || r.AccountID == account)
	}
	var c Counts
	var samples []float64
	switch r.Metric {
	case EvalFailRate:
		for _, v := range verdicts {
			if v.Verdict != "" && in(v.At, v.Agent, v.Account) && (r.JudgeName == "" || r.JudgeName == v.Judge) && (r.EvalSource == SourceAll || r.EvalSource == v.Source) {
				c.Observations++
				if strings.ToLower(v.Verdict) == "fail" {
					c.Matched++
				}
			}
		}
	case OutcomeFailRate:
		for _, o := range outcomes {
			if o.Outcome != "" && in(o.At, o.Agent, o.Account) {
				c.Observations++
				switch strings.ToLower(o.Outcome) {
				case "fail", "failure", "lk.fail", "vendor.failure":
					c.Matched++
				}
			}
		}
	default:
		for _, s := range calls {
			if s.EndedAt == 0 || !in(s.EndedAt, s.Agent, s.Account) {
				continue
			}
			switch r.Metric {
			case InterruptionRate:
				c.Observations += int64(s.AssistantTurns)
				c.Matched += int64(s.InterruptedTurns)
			case LatencyPerceived:
				samples = append(samples, s.Perceived...)
			case LatencyTTFT:
				samples = append(samples, s.TTFT...)
			case LatencyTTFB:
				samples = append(samples, s.TTFB...)
			case LatencySTT:
				samples = append(samples, s.STT...)
			}
		}
		if r.Metric.IsLatency() {
			c.Observations = int64(len(samples))
			slices.Sort(samples)
			c.P95, _ = stat.Percentile(samples, 95, 100)
		}
	}
	return c
}

// world makes random facts on a coarse grid of times, so that many fall exactly on the edges of windows.
type world struct {
	*rand.Rand
	now time.Time
}

func (w world) at() int64 {
	return w.now.Add(-time.Duration(w.IntN(200)-10) * time.Minute).UnixMicro()
}

func (w world) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w world) samples() []float64 {
	list := make([]float64, w.IntN(8))
	for i := range list {
		switch w.IntN(4) {
		case 0: // few distinct values: many ties, and thresholds hit exactly
			list[i] = float64(w.IntN(20)) * 100
		case 1:
			list[i] = float64(w.IntN(300)) / 1000 // below and around the exact buckets
		default:
			list[i] = math.Round(math.Exp(w.Float64()*14)*1000/10) / 1000
		}
	}
	return list
}

func (w world) call(num int64) SessionFacts {
	s := SessionFacts{Num: num, SessionID: "s" + strconv.FormatInt(num, 10), EndedAt: w.at(), Agent: w.pick("", "a", "b"), Account: w.pick("", "x", "y", "z"),
		AssistantTurns: w.IntN(10), Perceived: w.samples(), TTFT: w.samples(), TTFB: w.samples(), STT: w.samples()}
	s.InterruptedTurns = w.IntN(s.AssistantTurns + 1)
	if w.IntN(10) == 0 {
		s.EndedAt = 0
	}
	return s
}

// verdicts makes what a read hands over about one owner: up to two verdicts, or that there is none.
func (w world) verdicts(source string, num int64) []VerdictFacts {
	f := VerdictFacts{Source: source, Owner: num, Agent: w.pick("", "a", "b"), Account: w.pick("", "x", "y", "z")}
	list := []VerdictFacts{f}
	for i := range w.IntN(3) {
		f.At, f.Judge, f.Verdict = w.at(), w.pick("", "tone", "facts"), w.pick("pass", "fail", "FAIL", "maybe")
		list = append(list[:i], f)
	}
	return list
}

func (w world) outcome(num int64) OutcomeFacts {
	return OutcomeFacts{Num: num, At: w.at(), Outcome: w.pick("", "success", "fail", "Failure", "lk.fail", "vendor.failure", "lk.success", "a.b.fail"),
		Agent: w.pick("", "a", "b"), Account: w.pick("", "x", "y", "z")}
}

func (w world) rule(i int) *Rule {
	r := defaults()
	r.ID = strconv.Itoa(i)
	r.Metric = Metrics[w.IntN(len(Metrics))]
	r.WindowMinutes = 15 + w.IntN(180)
	r.MinSamples = 1 + w.IntN(20)
	r.AgentID, r.AccountID = w.pick("", "", "a", "b", "nobody"), w.pick("", "", "x", "y")
	r.Threshold = w.Float64()
	if r.Metric.IsLatency() {
		r.Threshold = float64(1+w.IntN(20)) * 100
	}
	if r.Metric == EvalFailRate {
		r.JudgeName, r.EvalSource = w.pick("", "", "tone", "facts"), w.pick(SourceAll, SourceAll, SourceSessions, SourceRuns)
	}
	return &r
}

// byMetric splits rules as the sweeper does.
func byMetric(rules []*Rule) (calls, verdicts, outcomes []*Rule) {
	for _, r := range rules {
		switch r.Metric {
		case EvalFailRate:
			verdicts = append(verdicts, r)
		case OutcomeFailRate:
			outcomes = append(outcomes, r)
		default:
			calls = append(calls, r)
		}
	}
	return
}

func TestScanEqualsNaiveEvaluation(t *testing.T) {
	fired := 0
	for seed := range uint64(60) {
		w := world{rand.New(rand.NewPCG(seed, 5)), noon}
		n := w.IntN(300)
		calls, outcomes := make([]SessionFacts, n), make([]OutcomeFacts, n)
		judged := map[owner][]VerdictFacts{}
		var cs Sessions
		var vs, os Marks
		put := func(i int) {
			calls[i], outcomes[i] = w.call(int64(i)), w.outcome(int64(i))
			cs.Put(calls[i])
			os.PutOutcome(outcomes[i])
			for _, source := range []string{SourceSessions, SourceRuns} {
				o := owner{source == SourceRuns, int64(i)}
				judged[o] = w.verdicts(source, int64(i))
				for _, v := range judged[o] {
					vs.PutVerdict(v)
				}
			}
		}
		for i := range n {
			put(i)
		}
		if vs.Len()+os.Len()+cs.Len() > 5*n { // reading the lengths ends the first read
			t.Fatal("more facts held than put")
		}
		// A second read replaces a third of it, as a later tick would: nothing of the first may shine through.
		for _, i := range w.Perm(n)[:n/3] {
			put(i)
		}
		var verdicts []VerdictFacts
		for _, list := range judged {
			verdicts = append(verdicts, list...)
		}
		var rules []*Rule
		for i := range 150 {
			rules = append(rules, w.rule(i))
		}
		check := func(rules []*Rule, got []Counts) {
			t.Helper()
			for i, r := range rules {
				want := naiveCounts(r, noon, calls, verdicts, outcomes)
				if got[i] != want {
					t.Fatalf("seed %d, %s over %d min, agent %q account %q judge %q source %q: counts %+v, want %+v",
						seed, r.Metric, r.WindowMinutes, r.AgentID, r.AccountID, r.JudgeName, r.EvalSource, got[i], want)
				}
				d := Evaluate(r, got[i], noon)
				if d.Fires {
					fired++
				}
				if r.Metric.IsLatency() {
					over := overThreshold(r, calls)
					counted := stat.ExceedsP95(int(want.Observations), over) && want.Observations >= int64(r.MinSamples)
					if d.Fires != counted {
						t.Fatalf("seed %d: fires %v, but %d of %d above %v", seed, d.Fires, over, want.Observations, r.Threshold)
					}
				}
			}
		}
		a, b, c := byMetric(rules)
		check(a, cs.Measure(a, noon))
		check(b, vs.Measure(b, noon))
		check(c, os.Measure(c, noon))
		check(a, cs.Measure(a, noon)) // measuring changes nothing
	}
	if fired < 500 {
		t.Errorf("only %d rules fired over all seeds: the data tests nothing", fired)
	}
}

func overThreshold(r *Rule, calls []SessionFacts) (over int) {
	for _, s := range calls {
		if s.EndedAt == 0 || s.EndedAt > noon.UnixMicro() || s.EndedAt <= noon.Add(-r.Window()).UnixMicro() ||
			r.AgentID != "" && r.AgentID != s.Agent || r.AccountID != "" && r.AccountID != s.Account {
			continue
		}
		for _, ms := range [][]float64{s.Perceived, s.TTFT, s.TTFB, s.STT}[r.Metric.latency()] {
			if ms > r.Threshold {
				over++
			}
		}
	}
	return over
}

func BenchmarkTick(b *testing.B) {
	const turns, perCall = 400_000, 12
	rng := rand.New(rand.NewPCG(1, 1))
	w := world{rng, noon}
	var calls Sessions
	var verdicts, outcomes Marks
	for i := range int64(turns / perCall) {
		agent, account := fmt.Sprintf("agent-%d", rng.IntN(20)), fmt.Sprintf("account-%d", rng.IntN(200))
		list := func() []float64 {
			l := make([]float64, perCall)
			for j := range l {
				l[j] = math.Round(300_000*math.Exp(rng.NormFloat64()*0.5)) / 1000
			}
			return l
		}
		at := noon.Add(-time.Duration(rng.Int64N(int64(15 * time.Minute)))).UnixMicro() // inside every window
		calls.Put(SessionFacts{Num: i, SessionID: strconv.FormatInt(i, 10), EndedAt: at, Agent: agent, Account: account,
			AssistantTurns: perCall, InterruptedTurns: rng.IntN(2), Perceived: list(), TTFT: list(), TTFB: list(), STT: list()})
		for _, judge := range []string{"tone", "facts"} {
			verdicts.PutVerdict(VerdictFacts{Source: SourceSessions, Owner: i, At: at, Judge: judge, Verdict: w.pick("pass", "pass", "fail"), Agent: agent, Account: account})
		}
		outcomes.PutOutcome(OutcomeFacts{Num: i, At: at, Outcome: w.pick("success", "success", "lk.fail"), Agent: agent, Account: account})
	}
	for _, n := range []int{10, 100, 1000} {
		rules := make([]*Rule, n)
		for i := range rules {
			r := defaults()
			r.ID, r.Metric, r.Threshold = strconv.Itoa(i), Metrics[i%len(Metrics)], 1
			if r.Metric.IsLatency() {
				r.Threshold = 5000 + float64(i)
			}
			r.WindowMinutes = 15 + rng.IntN(24*60-15)
			switch i % 3 {
			case 1:
				r.AgentID = fmt.Sprintf("agent-%d", rng.IntN(20))
			case 2:
				r.AccountID = fmt.Sprintf("account-%d", rng.IntN(200))
			}
			rules[i] = &r
		}
		cr, vr, or := byMetric(rules)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				calls.Measure(cr, noon)
				verdicts.Measure(vr, noon)
				outcomes.Measure(or, noon)
			}
		})
	}
}

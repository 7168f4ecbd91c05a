package alert

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestLatenciesCompareLikeTheirDecimals(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 200_000 {
		threshold := rng.Int64N(2_000_000) + 1 // µs
		sample := threshold + rng.Int64N(5) - 2
		parse := func(us int64) float64 {
			v, err := strconv.ParseFloat(fmt.Sprintf("%d.%03d", us/1000, us%1000), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		us, ok := micros(parse(sample))
		if sample < 0 {
			continue
		}
		if !ok || millis(us) != parse(sample) {
			t.Fatalf("%d µs does not survive: %d, %v", sample, us, ok)
		}
		if got := millis(us) > parse(threshold); got != (sample > threshold) {
			t.Fatalf("%d µs > %d µs: %v", sample, threshold, got)
		}
	}
}

func TestMicrosOfHostileValues(t *testing.T) {
	for _, v := range []float64{math.NaN(), -0.001, math.Inf(-1)} {
		if _, ok := micros(v); ok {
			t.Errorf("%v counts as a latency", v)
		}
	}
	for _, v := range []float64{math.Inf(1), 1e300, 4294967.296} {
		if us, ok := micros(v); !ok || us != math.MaxUint32 {
			t.Errorf("%v ms: %d, %v; want the largest", v, us, ok)
		}
	}
	if us, ok := micros(0); !ok || us != 0 {
		t.Errorf("0 ms: %d, %v", us, ok)
	}
}

func TestBucketsAreOrderedAndNarrow(t *testing.T) {
	last := -1
	for us := uint64(0); us <= math.MaxUint32; us += 1 + us/300 {
		b := bucketOf(uint32(us))
		if b < last || b >= buckets {
			t.Fatalf("%d µs is in bucket %d after %d of %d", us, b, last, buckets)
		}
		last = b
	}
	if b := bucketOf(math.MaxUint32); b != buckets-1 {
		t.Errorf("the largest value is in bucket %d of %d", b, buckets)
	}
	for _, us := range []uint32{1000, 800_400, 60_000_000} {
		if bucketOf(us) == bucketOf(us+us/64) {
			t.Errorf("the bucket of %d µs is wider than 1.6 %%", us)
		}
	}
}

func TestOutcomesAndVerdictsThatCount(t *testing.T) {
	for outcome, want := range map[string]bool{
		"fail": true, "failure": true, "FAIL": true, "Failure": true, "lk.fail": true, "vendor.failure": true, "LK.Fail": true,
		"success": false, "lk.success": false, "failed": false, "a.b.fail": false, "": false, "fail.lk": false, "lk.": false, "unfailing": false,
	} {
		if got := failedOutcome(outcome); got != want {
			t.Errorf("outcome %q counts: %v", outcome, got)
		}
	}
	for verdict, want := range map[string]bool{"fail": true, "Fail": true, "FAIL": true, "pass": false, "maybe": false, "failure": false, "lk.fail": false} {
		if got := failedVerdict(verdict); got != want {
			t.Errorf("verdict %q counts: %v", verdict, got)
		}
	}
}

func TestSessionsReplaceLeaveAndExpire(t *testing.T) {
	var w Sessions
	end := noon.UnixMicro()
	w.Put(SessionFacts{Num: 1, SessionID: "one", EndedAt: end, Perceived: []float64{100}, TTFT: []float64{1, 2}, STT: []float64{7}})
	w.Put(SessionFacts{Num: 2, SessionID: "two", EndedAt: end - 10, Perceived: []float64{200}})
	w.Put(SessionFacts{Num: 3, SessionID: "active"})
	rule := defaults()
	rule.Metric, rule.WindowMinutes = LatencyPerceived, 15
	counts := func() Counts { return w.Measure([]*Rule{&rule}, noon)[0] }
	if c := counts(); c != (Counts{Observations: 2, P95: 200}) {
		t.Errorf("two sessions: %+v", c)
	}
	if got := fmt.Sprint(w.order[1].list(0), w.order[1].list(1), w.order[1].list(2), w.order[1].list(3)); got != "[100000] [1000 2000] [] [7000]" {
		t.Errorf("lists %s", got)
	}
	w.Put(SessionFacts{Num: 1, EndedAt: end, Perceived: []float64{300, 301}})
	if c := counts(); c != (Counts{Observations: 3, P95: 301}) {
		t.Errorf("after replacing: %+v", c)
	}
	w.Put(SessionFacts{Num: 1})
	if c := counts(); c != (Counts{Observations: 1, P95: 200}) || w.Len() != 1 {
		t.Errorf("after it became active again: %+v, %d held", c, w.Len())
	}
	w.Put(SessionFacts{Num: 1, EndedAt: end, Perceived: []float64{400}})
	w.dropUntil(end - 11)
	if w.Len() != 2 {
		t.Errorf("dropped too much: %d left", w.Len())
	}
	w.dropUntil(end - 10)
	if c := counts(); c != (Counts{Observations: 1, P95: 400}) || w.Len() != 1 {
		t.Errorf("after dropping the older: %+v, %d held", c, w.Len())
	}
}

func TestSampleSessions(t *testing.T) {
	var w Sessions
	for i := range int64(60) {
		ms := 100.0
		if i%2 == 0 {
			ms = 800.4
		}
		w.Put(SessionFacts{Num: i, SessionID: strconv.FormatInt(i, 10), EndedAt: noon.UnixMicro() - (60-i)*1_000_000, Agent: []string{"a", "b"}[i%4/2], TTFB: []float64{50, ms}})
	}
	w.Put(SessionFacts{Num: 100, SessionID: "future", EndedAt: noon.UnixMicro() + 1, TTFB: []float64{9999}, Agent: "a"})
	w.Put(SessionFacts{Num: 101, SessionID: "edge", EndedAt: noon.UnixMicro() - 15*60_000_000, TTFB: []float64{9999}, Agent: "a"})
	rule := defaults()
	rule.Metric, rule.WindowMinutes, rule.Threshold = LatencyTTFB, 15, 800
	if got := fmt.Sprint(w.Samples(&rule, noon, 20)); got != "[58 56 54 52 50 48 46 44 42 40 38 36 34 32 30 28 26 24 22 20]" {
		t.Errorf("most recent first: %s", got)
	}
	rule.AgentID = "a"
	if got := fmt.Sprint(w.Samples(&rule, noon, 20)); got != "[56 52 48 44 40 36 32 28 24 20 16 12 8 4 0]" {
		t.Errorf("of agent a: %s", got)
	}
	rule.Threshold = 800.4
	if got := w.Samples(&rule, noon, 20); got != nil {
		t.Errorf("exactly at the threshold: %v", got)
	}
}

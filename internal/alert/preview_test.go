package alert

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestPreviewMeasuresLikeTheSweeper(t *testing.T) {
	fired := 0
	for seed := range uint64(40) {
		w := world{rand.New(rand.NewPCG(seed, 3)), noon}
		h := newHistory()
		var calls []SessionFacts
		var verdicts []VerdictFacts
		var outcomes []OutcomeFacts
		for i := range int64(100) {
			c, o, v := w.call(i), w.outcome(i), w.verdicts(SourceRuns, i)
			h.call(c)
			h.outcome(o)
			h.judged(SourceRuns, i, v...)
			calls, outcomes, verdicts = append(calls, c), append(outcomes, o), append(verdicts, v...)
		}
		rule := *w.rule(0)
		req := PreviewRequest{Rule: rule, From: noon.Add(-3 * time.Hour), To: noon, Step: 7 * time.Minute}
		got, err := limited(req, h)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Points) != 26 {
			t.Fatalf("%d points", len(got.Points))
		}
		var want []time.Time
		for i, p := range got.Points {
			at := req.From.Add(time.Duration(i) * req.Step)
			c := naiveCounts(&rule, at, calls, verdicts, outcomes)
			d := Evaluate(&rule, c, at)
			if d.Fires {
				want = append(want, at)
				rule.LastFiredAt = at
			}
			if !p.At.Equal(at) || p.Samples != c.Observations || p.Reason != d.Reason || (p.Value == nil) != (c.Observations == 0) || p.Value != nil && *p.Value != d.Value {
				t.Fatalf("seed %d, %s: point %d is %+v, want %+v %+v", seed, rule.Metric, i, p, c, d)
			}
		}
		if !slices.EqualFunc(got.Fired, want, time.Time.Equal) {
			t.Errorf("seed %d: fired at %v, want %v", seed, got.Fired, want)
		}
		fired += len(want)
	}
	if fired < 20 {
		t.Errorf("only %d firings over all seeds: the data tests nothing", fired)
	}
}

// limited runs a preview with the time limit that the store of these tests insists on.
func limited(req PreviewRequest, h *history) (Preview, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return req.Run(ctx, h)
}

func TestParsePreview(t *testing.T) {
	const rule = `"metric":"latency_stt_p95","threshold_value":500,"window_minutes":30`
	for _, c := range []struct {
		raw  string
		want string // violated fields, or from, to and step
	}{
		{`{` + rule + `}`, "11-20 12:00 11-21 12:00 3m0s"},
		{`{` + rule + `,"name":"x","webhook_url":"not checked"}`, "11-20 12:00 11-21 12:00 3m0s"},
		{`{` + rule + `,"to":"2026-11-15T00:00:00Z"}`, "11-14 00:00 11-15 00:00 3m0s"},
		{`{` + rule + `,"from":"2026-11-07T12:00:00Z"}`, "11-07 12:00 11-21 12:00 40m30s"},
		{`{` + rule + `,"from":"2026-11-21T11:00:00Z"}`, "11-21 11:00 11-21 12:00 30s"},
		{`{` + rule + `,"from":"2026-11-21T11:00:00Z","step_seconds":60}`, "11-21 11:00 11-21 12:00 1m0s"},
		{`{` + rule + `,"from":"2026-11-21T11:00:00Z","step_seconds":29}`, "step_seconds"},
		{`{` + rule + `,"step_seconds":30}`, "step_seconds"}, // 2,880 points
		{`{` + rule + `,"step_seconds":"60"}`, "step_seconds"},
		{`{` + rule + `,"from":"2026-11-07T11:59:59Z"}`, "from"},
		{`{` + rule + `,"from":"2026-11-21T12:00:00Z"}`, "from"},
		{`{` + rule + `,"from":"yesterday","to":5}`, "from to"},
		{`{"metric":"latency_stt_p95","threshold_value":0,"window_minutes":5,"colour":"red"}`, "colour threshold_value window_minutes"},
	} {
		req, err := ParsePreview([]byte(c.raw), noon)
		got := violated(t, err)
		if err == nil {
			got = fmt.Sprintf("%s %s %s", req.From.Format("01-02 15:04"), req.To.Format("01-02 15:04"), req.Step)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.raw, got, c.want, err)
		}
	}
}

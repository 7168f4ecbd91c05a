package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/stamp"
)

const (
	// MaxPreviewRange is the longest range of a preview.
	MaxPreviewRange = 14 * 24 * time.Hour

	// maxPreviewPoints bounds the points of a preview: more than any chart has pixels.
	maxPreviewPoints = 2000

	// wishedPreviewPoints is what the default step aims at.
	wishedPreviewPoints = 500
)

// PreviewRequest asks what a rule would have measured and when it would have fired.
type PreviewRequest struct {
	Rule     Rule
	From, To time.Time
	Step     time.Duration
}

// PreviewPoint is the metric over the window that ends at At.
type PreviewPoint struct {
	At      time.Time
	Value   *float64 // nil when nothing was observed
	Samples int64
	Reason  Reason // why it would not have fired; "" when it would
}

// Preview is the answer.
type Preview struct {
	From, To time.Time
	Step     time.Duration
	Points   []PreviewPoint
	Fired    []time.Time // when it would have fired, at the resolution of Step
}

// ParsePreview reads the body of a preview: the fields of a rule (name and webhook_url may be missing) and
// optionally from and to (RFC 3339; default the last 24 hours) and step_seconds (default: about 500 points). The error lists
// every violated field.
func ParsePreview(raw []byte, now time.Time) (PreviewRequest, error) {
	p, err := ParsePatch(raw)
	if err != nil {
		return PreviewRequest{}, err
	}
	var bad problems
	req := PreviewRequest{Rule: defaults(), To: now}
	moment := func(field string, to *time.Time) {
		v, ok := p[field]
		if delete(p, field); !ok || string(v) == "null" {
			return
		}
		var t stamp.Time
		if json.Unmarshal(v, &t) != nil || t.Year() < 1970 || t.Year() > 9999 {
			bad.add(field, "must be an RFC 3339 time such as 2026-11-21T05:20:00Z")
			return
		}
		*to = t.Time
	}
	moment("to", &req.To)
	req.From = req.To.Add(-24 * time.Hour)
	moment("from", &req.From)
	span := req.To.Sub(req.From)
	switch {
	case span <= 0:
		bad.add("from", "must be before to")
	case span > MaxPreviewRange:
		bad.add("from", "must be at most %d days before to", MaxPreviewRange/(24*time.Hour))
	}

	req.Step = max(Interval, (span / wishedPreviewPoints).Round(Interval))
	if v, ok := p["step_seconds"]; ok && string(v) != "null" {
		least := max(int(Interval/time.Second), int(math.Ceil(span.Seconds()/maxPreviewPoints)))
		n, ok := wholeNumber(v)
		if !ok || n < least || n > int(MaxPreviewRange/time.Second) {
			bad.add("step_seconds", "must be an integer from %d, which gives at most %d points, to %d", least, maxPreviewPoints, int(MaxPreviewRange/time.Second))
		}
		req.Step = time.Duration(n) * time.Second
	}
	delete(p, "step_seconds")

	p.merge(&req.Rule, &bad)
	req.Rule.checkMeasure(&bad)
	return req, errs.InvalidFields(bad.fields)
}

// Run reads the stored history and evaluates the rule at From, From+Step and so on up to To, as the sweeper would have:
// with the same windows, the same decision and the suppression that its own firings would have brought.
func (req PreviewRequest) Run(ctx context.Context, store FactStore) (Preview, error) {
	seen := track{rule: &req.Rule}
	q := FactQuery{After: windowStart(req.From, req.Rule.Window()), Until: req.To.UnixMicro()}
	var err error
	switch req.Rule.Metric {
	case EvalFailRate:
		_, err = store.VerdictFacts(ctx, q, seen.putVerdict)
	case OutcomeFailRate:
		_, err = store.OutcomeFacts(ctx, q, seen.putOutcome)
	default:
		_, err = store.SessionFacts(ctx, q, seen.putSession)
	}
	if err != nil {
		return Preview{}, fmt.Errorf("reading history: %w", err)
	}
	slices.SortFunc(seen.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })

	out := Preview{From: req.From, To: req.To, Step: req.Step, Points: []PreviewPoint{}, Fired: []time.Time{}}
	rule := req.Rule
	rule.Enabled, rule.LastFiredAt = true, time.Time{} // "would have" starts from a clean slate
	slide := newSlide(seen.events, rule.Metric)
	for at := req.From; !at.After(req.To); at = at.Add(req.Step) {
		counts := slide.move(windowStart(at, rule.Window()), at.UnixMicro())
		d := Evaluate(&rule, counts, at)
		point := PreviewPoint{At: at, Samples: counts.Observations, Reason: d.Reason}
		if counts.Observations > 0 {
			point.Value = &d.Value
		}
		out.Points = append(out.Points, point)
		if d.Fires {
			out.Fired = append(out.Fired, at)
			rule.LastFiredAt = at
		}
	}
	return out, nil
}

// event is one observation of the previewed rule, or several that came at once and count the same.
type event struct {
	at    int64  // µs
	value uint32 // latencies: the sample in µs; rates: how many observations
	bad   uint32 // rates: how many of them count against
}

// track collects the observations of one rule.
type track struct {
	rule   *Rule
	events []event
}

func (t *track) inScope(agent, account string) bool {
	return (t.rule.AgentID == "" || t.rule.AgentID == agent) && (t.rule.AccountID == "" || t.rule.AccountID == account)
}

func (t *track) putSession(f SessionFacts) {
	if f.EndedAt == 0 || !t.inScope(f.Agent, f.Account) {
		return
	}
	metric := t.rule.Metric.latency()
	if metric < 0 {
		t.events = append(t.events, event{at: f.EndedAt, value: uint32(f.AssistantTurns), bad: uint32(f.InterruptedTurns)})
		return
	}
	for _, ms := range [latencies][]float64{f.Perceived, f.TTFT, f.TTFB, f.STT}[metric] {
		if us, ok := micros(ms); ok {
			t.events = append(t.events, event{at: f.EndedAt, value: us})
		}
	}
}

func (t *track) putVerdict(f VerdictFacts) {
	r := t.rule
	if f.Verdict == "" || !t.inScope(f.Agent, f.Account) || r.JudgeName != "" && r.JudgeName != f.Judge ||
		r.EvalSource != SourceAll && r.EvalSource != f.Source {
		return
	}
	t.putMark(f.At, failedVerdict(f.Verdict))
}

func (t *track) putOutcome(f OutcomeFacts) {
	if f.Outcome != "" && t.inScope(f.Agent, f.Account) {
		t.putMark(f.At, failedOutcome(f.Outcome))
	}
}

func (t *track) putMark(at int64, bad bool) {
	e := event{at: at, value: 1}
	if bad {
		e.bad = 1
	}
	t.events = append(t.events, e)
}

// slide moves a window forward over events in the order of time. For latencies it keeps the samples of every histogram
// bucket in that order too, so that taking one off is as cheap as adding one and the p95 needs only its own bucket sorted.
type slide struct {
	events   []event
	latency  bool
	from, to int // the events in the window
	n, bad   int64
	hist     []uint32
	samples  [][]uint32 // by bucket
}

func newSlide(events []event, m Metric) *slide {
	s := &slide{events: events, latency: m.IsLatency()}
	if s.latency {
		s.hist, s.samples = make([]uint32, buckets), make([][]uint32, buckets)
	}
	return s
}

// move sets the window to start < t <= end and counts what it holds. Neither edge may go back.
func (s *slide) move(start, end int64) Counts {
	for ; s.to < len(s.events) && s.events[s.to].at <= end; s.to++ {
		s.count(s.events[s.to], 1)
		if e := s.events[s.to]; s.latency {
			b := bucketOf(e.value)
			s.hist[b]++
			s.samples[b] = append(s.samples[b], e.value)
		}
	}
	for ; s.from < s.to && s.events[s.from].at <= start; s.from++ {
		s.count(s.events[s.from], -1)
		if e := s.events[s.from]; s.latency {
			b := bucketOf(e.value)
			s.hist[b]--
			s.samples[b] = s.samples[b][1:]
		}
	}
	c := Counts{Observations: s.n, Matched: s.bad}
	if s.latency && s.n > 0 {
		b, above := locate(s.hist, int(s.n))
		c.P95 = millis(pick(s.samples[b], above))
	}
	return c
}

func (s *slide) count(e event, sign int64) {
	if s.latency {
		s.n += sign
		return
	}
	s.n += sign * int64(e.value)
	s.bad += sign * int64(e.bad)
}

package session

import (
	"slices"
	"time"
)

// parts are all signals known about one session, from which everything else is computed. Assembling is a pure
// function of the parts, so the order in which they arrived cannot matter.
type parts struct {
	job       string // identity
	report    *Report
	recording *Recording
	signals   Signals
	first     time.Time
	last      time.Time
	created   time.Time
}

// items are the conversation: the upload's, which is complete, before what log records repeat of it.
func (p *parts) items() []Item {
	if p.report != nil && p.report.HasTranscript {
		return p.report.Items
	}
	return nil
}

func (p *parts) evaluations() []Evaluation {
	if p.report == nil {
		return nil
	}
	return slices.Clone(p.report.Evaluations)
}

func (p *parts) outcome() *Outcome {
	if p.report == nil || p.report.Outcome == nil {
		return nil
	}
	o := *p.report.Outcome
	return &o
}

func (p *parts) usage() []Usage {
	if p.report == nil {
		return nil
	}
	return p.report.Usage
}

// times derives when the call started and ended and how long it took, as the contract orders the sources.
func (p *parts) times(items []Item) (start, end time.Time, durationMS *int64) {
	r := p.report
	if r != nil {
		start = firstTime(r.HeaderStart, r.AudioStart, r.BodyStart, earliest(items))
		end = firstTime(r.EndedAt, p.signals.Report)
	}
	if start.IsZero() {
		return start, end, nil
	}
	stop := end
	if r != nil && !r.Timestamp.IsZero() && !r.Timestamp.Before(start) {
		stop = r.Timestamp
	}
	if stop.IsZero() || stop.Before(start) {
		return start, end, nil
	}
	ms := stop.Sub(start).Milliseconds()
	return start, end, &ms
}

// assembled is everything computed from the parts; the record keeps a digest of it.
type assembled struct {
	session     Session
	items       []Item
	metrics     Metrics
	evaluations []Evaluation
	outcome     *Outcome
	usage       []Usage
	tags        []Tag
}

func (p *parts) assemble() assembled {
	a := assembled{items: p.items(), evaluations: p.evaluations(), outcome: p.outcome(), usage: p.usage()}
	s := Session{
		JobID: p.job, Recording: p.recording, CreatedAt: p.created, Signals: p.signals,
		FirstSignalAt: p.first, LastSignalAt: p.last,
	}
	if r := p.report; r != nil {
		s.JobID = firstString(p.job, r.BodyJobID)
		s.RoomName, s.SDKVersion = r.RoomName, r.SDKVersion
		s.AccountID, s.AgentID, s.AgentName, s.Transport = r.AccountID, r.AgentID, r.AgentName, r.Transport
		s.AudioStartedAt = r.AudioStart
		a.tags = slices.Clone(r.Tags)
	}
	s.StartedAt, s.EndedAt, s.DurationMS = p.times(a.items)
	a.metrics = Compute(Input{Items: a.items, Usage: a.usage, Transport: s.Transport, StartedAt: s.StartedAt, DurationMS: s.DurationMS})
	s.HasSTT, s.HasLLM, s.HasTTS = Capabilities(a.items, s.Transport)
	s.ToolCallCount = a.metrics.Summary.TotalToolCalls
	s.InterruptionCount = a.metrics.Summary.Interruptions
	s.P95UserPerceivedMS = a.metrics.Summary.P95UserPerceivedMS
	for i := range a.items {
		if a.items[i].Type == ItemMessage && a.items[i].Role == RoleAssistant {
			s.TurnCount++
		}
	}
	for i := range a.evaluations {
		e := &a.evaluations[i]
		e.CreatedAt = firstTime(e.CreatedAt, p.signals.Evaluations, p.signals.Report)
		switch e.Verdict {
		case "pass":
			s.EvalPassCount++
		case "fail":
			s.EvalFailCount++
		}
	}
	for i := range a.tags {
		a.tags[i].CreatedAt = firstTime(a.tags[i].CreatedAt, p.signals.Report)
	}
	if a.outcome != nil {
		a.outcome.CreatedAt = firstTime(a.outcome.CreatedAt, p.signals.Outcome, p.signals.Report)
		s.Outcome = a.outcome.Outcome
	}
	a.session = s
	return a
}

// record digests the parts into what the store keeps.
func (p *parts) record() *Record {
	a := p.assemble()
	rec := &Record{
		Session: a.session, JobKey: p.job, Facts: Facts(a.items), Tokens: Tokens(SearchText(a.items)),
		Docs: map[DocKind][]byte{},
	}
	for _, e := range a.evaluations {
		rec.Verdicts = append(rec.Verdicts, Verdict{Judge: e.JudgeName, Verdict: e.Verdict, At: e.CreatedAt})
	}
	if a.outcome != nil {
		rec.OutcomeAt = a.outcome.CreatedAt
	}
	return rec
}

func earliest(items []Item) time.Time {
	var t time.Time
	for i := range items {
		if c := items[i].CreatedAt; !c.IsZero() && (t.IsZero() || c.Before(t)) {
			t = c
		}
	}
	return t
}

func firstTime(ts ...time.Time) time.Time {
	for _, t := range ts {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

func firstString(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}

// earlier is the earlier of two times, ignoring zero ones.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

package session

import (
	"slices"
	"time"
)

// parts are all signals known about one session, from which everything else is computed. Assembling is a pure
// function of the parts, so the order in which they arrived cannot matter.
type parts struct {
	price     Pricer
	job       string // identity
	report    *Report
	log       *LogSignals
	trace     *TraceSummary
	recording *Recording
	signals   Signals
	first     time.Time
	last      time.Time
	created   time.Time
	abandoned bool // nothing came for so long that the call must be over
}

// assembled is everything computed from the parts; the record keeps a digest of it.
type assembled struct {
	session     Session
	items       []Item
	facts       TurnFacts
	tags        []Tag // by name
	evaluations []Evaluation
	outcome     *Outcome
	usage       []Usage
	options     []byte
}

// noReport and noLog stand for what did not come.
var (
	noReport = &Report{}
	noLog    = &LogSignals{}
	noTrace  = &TraceSummary{}
)

func orElse[T any](p, otherwise *T) *T {
	if p == nil {
		return otherwise
	}
	return p
}

func (p *parts) assemble() assembled {
	r, l, t := orElse(p.report, noReport), orElse(p.log, noLog), orElse(p.trace, noTrace)
	a := assembled{items: p.items(), usage: r.Usage, options: r.Options}
	if len(a.usage) == 0 {
		a.usage = l.Usage
	}
	if len(a.options) == 0 {
		a.options = l.Options
	}
	a.tags = p.tags(r, l)
	a.evaluations = p.evaluations(r, l, a.tags)
	a.outcome = p.outcome(r, l, a.tags)

	who := identity{account: r.AccountID, agent: r.AgentID, agentName: r.AgentName, transport: r.Transport}
	who.orElse(identityOfTags(a.tags))
	who.orElse(identity{agentName: firstString(l.AgentName, t.AgentName)})
	s := Session{
		JobID: firstString(p.job, r.BodyJobID), RoomName: firstString(r.RoomName, l.RoomName, t.RoomName),
		AccountID: who.account, AgentID: who.agent, AgentName: who.agentName, Transport: who.transport,
		AudioStartedAt: r.AudioStart, SDKVersion: firstString(r.SDKVersion, l.SDKVersion),
		Recording: p.recording, CreatedAt: p.created, Signals: p.signals, FirstSignalAt: p.first, LastSignalAt: p.last,
	}
	s.StartedAt = firstTime(l.StartedAt, r.HeaderStart, r.AudioStart, r.BodyStart, earliest(a.items), t.Started, t.First, l.FirstAt)
	s.EndedAt = p.end(r, l, t)
	s.DurationMS = duration(s.StartedAt, s.EndedAt, later(r.Timestamp, l.ReportTimestamp))
	counts, facts := Tally(a.items, s.Transport)
	a.facts = facts
	s.TurnCount, s.InterruptionCount, s.ToolCallCount = counts.Turns, counts.Interruptions, counts.ToolCalls
	s.P95UserPerceivedMS = counts.P95UserPerceivedMS
	s.HasSTT, s.HasLLM, s.HasTTS = counts.HasSTT, counts.HasLLM, counts.HasTTS
	for _, e := range a.evaluations {
		switch e.Verdict {
		case "pass":
			s.EvalPassCount++
		case "fail":
			s.EvalFailCount++
		}
	}
	if a.outcome != nil {
		s.Outcome = a.outcome.Outcome
	}
	// What is only known from tags arrived when the tag did.
	for i := range a.evaluations {
		s.Signals.Evaluations = earlier(s.Signals.Evaluations, a.evaluations[i].CreatedAt)
	}
	if a.outcome != nil {
		s.Signals.Outcome = earlier(s.Signals.Outcome, a.outcome.CreatedAt)
	}
	if p.price != nil {
		s.EstimatedCostUSD = p.price(a.usage, a.items)
	}
	s.Incomplete = p.incomplete(&s, a.items)
	a.session = s
	return a
}

// items are the conversation: the upload's, which is complete, before what log records repeat of it.
func (p *parts) items() []Item {
	if p.report != nil && p.report.HasTranscript {
		return p.report.Items
	}
	return orElse(p.log, noLog).Items
}

func (p *parts) tags(r *Report, l *LogSignals) []Tag {
	tags := slices.Concat(r.Tags, l.Tags)
	for i := range tags {
		received(&tags[i].CreatedAt, p.signals.Report)
	}
	return joinTags(tags)
}

func (p *parts) evaluations(r *Report, l *LogSignals, tags []Tag) []Evaluation {
	all := slices.Concat(r.Evaluations, l.Evaluations)
	for i := range all {
		received(&all[i].CreatedAt, p.signals.Report)
		if all[i].Tag == "" && all[i].JudgeName != "" {
			// The tag is derived from the other two by every SDK; without it the same verdict would be two.
			all[i].Tag = judgePrefix + all[i].JudgeName + ":" + all[i].Verdict
		}
	}
	return addJudgeTags(joinEvaluations(all), tags)
}

func (p *parts) outcome(r *Report, l *LogSignals, tags []Tag) *Outcome {
	var uploaded *Outcome
	if r.Outcome != nil {
		o := *r.Outcome
		received(&o.CreatedAt, p.signals.Report)
		uploaded = &o
	}
	o, tagged := joinOutcomes(uploaded, l.Outcome), outcomeOfTags(tags)
	switch {
	case o == nil:
		return tagged
	case o.Outcome == "" && tagged != nil: // some SDKs send the reason only: livekit-wire.md 5.1
		tagged.Reason, tagged.Raw = o.Reason, o.Raw
		return tagged
	}
	return o
}

// end is when the call ended, zero while it goes on. SDKs upload the report when a call ends; the report's log record
// and certain spans end it too; a call that fell silent ended with its last signal.
func (p *parts) end(r *Report, l *LogSignals, t *TraceSummary) time.Time {
	if p.report != nil {
		return firstTime(r.EndedAt, p.signals.Report)
	}
	end := l.ReportTimestamp
	if t.Ended {
		end = firstTime(end, t.EndedAt)
	}
	if end.IsZero() && p.abandoned {
		end = p.last
	}
	return end
}

// duration is how long the call took in ms: to the report's own timestamp if it makes sense, else to the end.
func duration(start, end, reported time.Time) *int64 {
	if !reported.IsZero() && !reported.Before(start) {
		end = reported
	}
	if start.IsZero() || end.IsZero() || end.Before(start) {
		return nil
	}
	ms := end.Sub(start).Milliseconds()
	return &ms
}

// Reasons why an ended session is not complete.
const (
	IncompleteNoReport     = "the session report never came"
	IncompleteNoTranscript = "no transcript came"
	IncompleteAbandoned    = "nothing came for 30 minutes, and nothing said that the call ended"
)

func (p *parts) incomplete(s *Session, items []Item) (reasons []string) {
	if s.EndedAt.IsZero() {
		return nil
	}
	if p.report == nil {
		reasons = append(reasons, IncompleteNoReport)
	}
	if len(items) == 0 && !orElse(p.report, noReport).HasTranscript {
		reasons = append(reasons, IncompleteNoTranscript)
	}
	if p.report == nil && p.abandoned && s.EndedAt.Equal(p.last) {
		reasons = append(reasons, IncompleteAbandoned)
	}
	return reasons
}

// metrics computes the turns, which only a reader of the whole session wants.
func (a *assembled) metrics() Metrics {
	return Compute(Input{Items: a.items, Usage: a.usage, Transport: a.session.Transport, StartedAt: a.session.StartedAt,
		DurationMS: a.session.DurationMS})
}

// record digests the parts into what the store keeps.
func (p *parts) record() *Record {
	a := p.assemble()
	rec := &Record{
		Session: a.session, JobKey: p.job, Facts: a.facts, Words: Words(SearchText(a.items)),
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

package alert

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"
)

// SessionFacts is what latency and interruption rules count of one session. The store may reuse the slices after handing
// it over.
type SessionFacts struct {
	Num              int64  // the session's number: facts with the same number replace each other
	SessionID        string // as in URLs
	EndedAt          int64  // µs since the epoch; 0 while the session is active, and for one that was deleted
	Agent, Account   string // "" when unknown
	AssistantTurns   int
	InterruptedTurns int

	// One entry per measured turn, ms with up to three decimals.
	Perceived, TTFT, TTFB, STT []float64
}

// VerdictFacts is one verdict of a judge on a session or on an eval case, its owner. What a read hands over about an owner
// replaces everything known about it.
type VerdictFacts struct {
	Source         string // SourceSessions or SourceRuns
	Owner          int64  // number of the session or of the eval case
	At             int64  // µs since the epoch: when it reached us
	Judge          string // api.md, Alerts: judge_name, else name, else intent
	Verdict        string // "" says that the owner has no verdict, or is gone
	Agent, Account string

	// LastOwner, when greater than Owner, makes a fact without Verdict speak of all owners from Owner to LastOwner: the
	// cases of a deleted run.
	LastOwner int64
}

// OutcomeFacts is the outcome of a session.
type OutcomeFacts struct {
	Num            int64  // the session's number: facts with the same number replace each other
	At             int64  // µs since the epoch: when it reached us
	Outcome        string // "" says that the session has none, or is gone
	Agent, Account string
}

// Mark is a place in the order of all changes of the store. It means nothing else.
type Mark int64

// FactQuery says which facts to read.
type FactQuery struct {
	// After and Until bound the time, in µs, that windows go by: After < t <= Until, where t is ended_at for sessions and the
	// time of arrival for verdicts and outcomes. They hold when Since is 0; facts outside may be handed over too.
	After, Until int64
	// Since, when not 0, asks instead for all facts of every owner that changed from that mark on, whatever the facts' own
	// times: also what is out of the window now, active again or deleted.
	Since Mark
}

// FactStore delivers facts. Each method calls put for every fact once, in any order, and fails when it cannot deliver them
// all. It returns the mark from which the next read has to start to miss no change: one from before its own first row, and
// early enough for transactions that were still running then and commit later.
type FactStore interface {
	SessionFacts(ctx context.Context, q FactQuery, put func(SessionFacts)) (Mark, error)
	VerdictFacts(ctx context.Context, q FactQuery, put func(VerdictFacts)) (Mark, error)
	OutcomeFacts(ctx context.Context, q FactQuery, put func(OutcomeFacts)) (Mark, error)
}

// failedVerdict reports whether a verdict counts against eval_fail_rate. Case does not matter (api.md, Alerts).
func failedVerdict(v string) bool { return strings.EqualFold(strings.TrimSpace(v), "fail") }

// failedOutcome reports whether an outcome counts against outcome_fail_rate: fail or failure, after one leading "vendor."
// is taken off, in any case.
func failedOutcome(o string) bool {
	o = strings.TrimSpace(o)
	if _, rest, ok := strings.Cut(o, "."); ok {
		o = rest
	}
	return strings.EqualFold(o, "fail") || strings.EqualFold(o, "failure")
}

// micros is a latency as it is kept and compared: whole microseconds. Facts have at most three decimals of a
// millisecond, so nothing is lost. What does not fit (71 minutes) counts as the largest that does.
func micros(ms float64) (uint32, bool) {
	if math.IsNaN(ms) || ms < 0 {
		return 0, false
	}
	return uint32(min(math.Round(ms*1000), math.MaxUint32)), true
}

// millis is the inverse of micros: the double nearest to the decimal that was reported, so that comparing it with a
// threshold gives what comparing the decimals would.
func millis(us uint32) float64 { return float64(us) / 1000 }

// scope is what rules can be restricted to, of sessions and of verdicts. Fields that do not apply are "".
type scope struct {
	agent, account, judge, source string
}

// interner gives every distinct scope a small number, so that a tick matches rules against scopes, not against facts.
type interner struct {
	index map[scope]int32
	list  []scope
}

func (in *interner) id(s scope) int32 {
	if i, ok := in.index[s]; ok {
		return i
	}
	if in.index == nil {
		in.index = map[scope]int32{}
	}
	i := int32(len(in.list))
	// The strings of facts may be cut from larger buffers; what stays here must not keep those alive.
	s = scope{strings.Clone(s.agent), strings.Clone(s.account), strings.Clone(s.judge), strings.Clone(s.source)}
	in.index[s] = i
	in.list = append(in.list, s)
	return i
}

// latencies is the number of latency metrics.
const latencies = 4

// call is a session in a Sessions window.
type call struct {
	num                int64
	endedAt            int64 // 0 when it left the window
	id                 string
	scope              int32
	turns, interrupted int32
	samples            []uint32       // µs, the four lists one behind the other
	end                [latencies]int // where each list ends
}

// list is the samples of one latency metric.
func (c *call) list(metric int) []uint32 {
	from := 0
	if metric > 0 {
		from = c.end[metric-1]
	}
	return c.samples[from:c.end[metric]]
}

// Sessions holds the ended sessions of the longest window, packed: about 16 bytes per turn and 150 per session.
type Sessions struct {
	scopes interner
	byNum  map[int64]*call
	order  []*call // by endedAt, as of the last sort
	dirty  bool    // order has to be sorted
}

// Put adds a session or replaces what is known about it. One that is active (again) leaves the window.
func (w *Sessions) Put(f SessionFacts) {
	c := w.byNum[f.Num]
	if f.EndedAt == 0 {
		if c != nil {
			delete(w.byNum, f.Num)
			c.endedAt = 0
			w.dirty = true
		}
		return
	}
	if c == nil {
		c = &call{num: f.Num}
		if w.byNum == nil {
			w.byNum = map[int64]*call{}
		}
		w.byNum[f.Num] = c
		w.order = append(w.order, c)
		w.dirty = true
	}
	w.dirty = w.dirty || c.endedAt != f.EndedAt
	c.endedAt = f.EndedAt
	c.id = strings.Clone(f.SessionID)
	c.scope = w.scopes.id(scope{agent: f.Agent, account: f.Account})
	c.turns, c.interrupted = int32(f.AssistantTurns), int32(f.InterruptedTurns)
	c.samples = make([]uint32, 0, len(f.Perceived)+len(f.TTFT)+len(f.TTFB)+len(f.STT))
	for i, list := range [latencies][]float64{f.Perceived, f.TTFT, f.TTFB, f.STT} {
		for _, ms := range list {
			if us, ok := micros(ms); ok {
				c.samples = append(c.samples, us)
			}
		}
		c.end[i] = len(c.samples)
	}
}

// Len is the number of sessions held.
func (w *Sessions) Len() int { return len(w.byNum) }

// dropUntil forgets the sessions that ended at or before a time, in µs.
func (w *Sessions) dropUntil(us int64) {
	w.sort()
	n, _ := slices.BinarySearchFunc(w.order, us+1, func(c *call, us int64) int { return cmp.Compare(c.endedAt, us) })
	for _, c := range w.order[:n] {
		delete(w.byNum, c.num)
	}
	clear(w.order[:n])
	w.order = w.order[n:]
}

// sort brings order up to date.
func (w *Sessions) sort() {
	if !w.dirty {
		return
	}
	w.order = slices.DeleteFunc(w.order, func(c *call) bool { return c.endedAt == 0 })
	slices.SortFunc(w.order, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.endedAt, b.endedAt), cmp.Compare(a.num, b.num))
	})
	w.dirty = false
}

// mark is one verdict or outcome in a Marks window.
type mark struct {
	at    int64
	owner owner
	scope int32
	bad   bool // it counts against the rate
}

type owner struct {
	run bool // an eval case, else a session
	num int64
}

// Marks holds the verdicts or the outcomes of the longest window.
type Marks struct {
	scopes  interner
	marks   []mark // by at, without what was put since the last settle
	pending []mark
	changed map[owner]struct{}
	gone    []ownerRange
}

type ownerRange struct {
	run         bool
	first, last int64
}

// PutVerdict takes part in replacing what is known about the verdict's owner; see VerdictFacts.
func (w *Marks) PutVerdict(f VerdictFacts) {
	if f.LastOwner > f.Owner {
		w.gone = append(w.gone, ownerRange{f.Source == SourceRuns, f.Owner, f.LastOwner})
		return
	}
	w.put(owner{f.Source == SourceRuns, f.Owner}, f.Verdict != "", f.At, failedVerdict(f.Verdict),
		scope{f.Agent, f.Account, f.Judge, f.Source})
}

// PutOutcome replaces the outcome of a session.
func (w *Marks) PutOutcome(f OutcomeFacts) {
	w.put(owner{num: f.Num}, f.Outcome != "", f.At, failedOutcome(f.Outcome), scope{agent: f.Agent, account: f.Account})
}

func (w *Marks) put(o owner, there bool, at int64, bad bool, s scope) {
	if w.changed == nil {
		w.changed = map[owner]struct{}{}
	}
	w.changed[o] = struct{}{}
	if there {
		w.pending = append(w.pending, mark{at, o, w.scopes.id(s), bad})
	}
}

// Len is the number of marks held.
func (w *Marks) Len() int {
	w.settle()
	return len(w.marks)
}

// settle replaces the marks of all owners that were put.
func (w *Marks) settle() {
	if len(w.changed) == 0 && len(w.gone) == 0 {
		return
	}
	w.marks = slices.DeleteFunc(w.marks, func(m mark) bool {
		_, replaced := w.changed[m.owner]
		return replaced || slices.ContainsFunc(w.gone, func(r ownerRange) bool {
			return m.owner.run == r.run && m.owner.num >= r.first && m.owner.num <= r.last
		})
	})
	w.marks = append(w.marks, w.pending...)
	slices.SortFunc(w.marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	w.changed, w.pending, w.gone = nil, nil, nil
}

// dropUntil forgets the marks that arrived at or before a time, in µs.
func (w *Marks) dropUntil(us int64) {
	w.settle()
	n, _ := slices.BinarySearchFunc(w.marks, us+1, func(m mark, us int64) int { return cmp.Compare(m.at, us) })
	w.marks = w.marks[n:]
}

// windowStart is the exclusive start of a window of the given length that ends at now, in µs.
func windowStart(now time.Time, length time.Duration) int64 {
	return now.UnixMicro() - length.Microseconds()
}

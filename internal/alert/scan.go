package alert

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"
	"time"

	"sidetone/internal/stat"
)

// How a tick measures all rules at once: rules that count the same thing (metric and scope) share a group. The facts are
// walked once from the newest back, each adding itself to the groups it belongs to; when the walk passes the start of a
// window, the group's running totals are the counts of that window. So the cost grows with the facts and the distinct
// windows, not with the rules.
//
// For latencies the running total is a histogram with buckets so narrow (0.8 %) that few samples share the one the p95
// falls into. A second walk keeps just the samples of those buckets and picks the exact one.

// group is the rules that count the same facts.
type group struct {
	metric   int       // index of the latency list, -1 for rates
	closings []closing // the distinct windows, shortest first
	next     int       // the closing that the walk reaches next
	n, bad   int64     // running totals
	hist     []uint32  // first walk: samples per bucket; second: 1 + index into kept, 0 for buckets nobody wants
	kept     [][]uint32
}

// closing is one window: what is newer than start.
type closing struct {
	start  int64 // µs, exclusive
	rules  []int // who asked
	n, bad int64
	bucket int // of the p95
	above  int // samples of that bucket that are greater than the p95
	p95    uint32
}

// plan is the groups of one tick, found by the scope of a fact.
type plan struct {
	groups  []*group
	byScope map[scope][]*group
	masks   []scope // which fields the groups restrict: "x" where they do
	cache   [][]*group
	known   []bool
}

// newPlan groups rules by metric, scope and window. now ends every window.
func newPlan(rules []*Rule, now time.Time, scopes int) *plan {
	type key struct {
		metric Metric
		scope  scope
	}
	p := &plan{byScope: map[scope][]*group{}, cache: make([][]*group, scopes), known: make([]bool, scopes)}
	groups := map[key]*group{}
	windows := map[key]map[int64]int{}
	for i, r := range rules {
		k := key{r.Metric, ruleScope(r)}
		g := groups[k]
		if g == nil {
			g = &group{metric: r.Metric.latency()}
			groups[k] = g
			windows[k] = map[int64]int{}
			p.groups = append(p.groups, g)
			p.byScope[k.scope] = append(p.byScope[k.scope], g)
			if m := k.scope.mask(); !slices.Contains(p.masks, m) {
				p.masks = append(p.masks, m)
			}
		}
		start := windowStart(now, r.Window())
		at, ok := windows[k][start]
		if !ok {
			at = len(g.closings)
			windows[k][start] = at
			g.closings = append(g.closings, closing{start: start})
		}
		g.closings[at].rules = append(g.closings[at].rules, i)
	}
	for _, g := range p.groups {
		slices.SortFunc(g.closings, func(a, b closing) int { return cmp.Compare(b.start, a.start) })
	}
	return p
}

func ruleScope(r *Rule) scope {
	s := scope{agent: r.AgentID, account: r.AccountID, judge: r.JudgeName}
	if r.EvalSource != SourceAll {
		s.source = r.EvalSource
	}
	return s
}

// mask has "x" for each field that s restricts.
func (s scope) mask() (m scope) {
	mark := func(to *string, v string) {
		if v != "" {
			*to = "x"
		}
	}
	mark(&m.agent, s.agent)
	mark(&m.account, s.account)
	mark(&m.judge, s.judge)
	mark(&m.source, s.source)
	return m
}

// under is s restricted to the fields of a mask, false when s lacks one of them: a call of an unknown agent belongs to no
// agent's rules.
func (s scope) under(m scope) (scope, bool) {
	keep := func(v *string, m string) bool {
		if m == "" {
			*v = ""
		}
		return m == "" || *v != ""
	}
	ok := keep(&s.agent, m.agent)
	ok = keep(&s.account, m.account) && ok
	ok = keep(&s.judge, m.judge) && ok
	ok = keep(&s.source, m.source) && ok
	return s, ok
}

// of is the groups that count facts of a scope.
func (p *plan) of(scopes []scope, id int32) []*group {
	if !p.known[id] {
		p.known[id] = true
		for _, m := range p.masks {
			if s, ok := scopes[id].under(m); ok {
				p.cache[id] = append(p.cache[id], p.byScope[s]...)
			}
		}
	}
	return p.cache[id]
}

// reach closes the windows that start at or after a fact's time, so that they do not count it. It reports whether any
// window is still open.
func (g *group) reach(at int64, shut func(*group, *closing)) bool {
	for g.next < len(g.closings) && at <= g.closings[g.next].start {
		shut(g, &g.closings[g.next])
		g.next++
	}
	return g.next < len(g.closings)
}

// end closes what is still open after a walk and makes the group ready for another.
func (p *plan) end(shut func(*group, *closing)) {
	for _, g := range p.groups {
		for ; g.next < len(g.closings); g.next++ {
			shut(g, &g.closings[g.next])
		}
		g.next = 0
	}
}

// counts hands the result to the rules.
func (p *plan) counts(rules int) []Counts {
	out := make([]Counts, rules)
	for _, g := range p.groups {
		for _, c := range g.closings {
			for _, r := range c.rules {
				out[r] = Counts{Observations: c.n, Matched: c.bad, P95: millis(c.p95)}
			}
		}
	}
	return out
}

func closeTotals(g *group, c *closing) { c.n, c.bad = g.n, g.bad }

// Measure counts, for each rule, the marks in its window up to and including now. The rules must be of the one metric that
// the marks are of.
func (w *Marks) Measure(rules []*Rule, now time.Time) []Counts {
	w.settle()
	p := newPlan(rules, now, len(w.scopes.list))
	end := now.UnixMicro()
	for i := len(w.marks) - 1; i >= 0; i-- {
		m := &w.marks[i]
		if m.at > end {
			continue
		}
		for _, g := range p.of(w.scopes.list, m.scope) {
			if g.reach(m.at, closeTotals) {
				g.n++
				if m.bad {
					g.bad++
				}
			}
		}
	}
	p.end(closeTotals)
	return p.counts(len(rules))
}

// Measure counts, for each rule, the turns of the sessions that ended in its window up to and including now. The rules must
// be of latency metrics or interruption_rate.
func (w *Sessions) Measure(rules []*Rule, now time.Time) []Counts {
	w.sort()
	p := newPlan(rules, now, len(w.scopes.list))
	w.walk(p, now, func(g *group, c *call) {
		if g.metric < 0 {
			g.n += int64(c.turns)
			g.bad += int64(c.interrupted)
			return
		}
		samples := c.list(g.metric)
		if len(samples) == 0 {
			return
		}
		if g.hist == nil {
			g.hist = make([]uint32, buckets)
		}
		for _, us := range samples {
			g.hist[bucketOf(us)]++
		}
		g.n += int64(len(samples))
	}, func(g *group, c *closing) {
		closeTotals(g, c)
		if g.metric >= 0 && g.n > 0 {
			c.bucket, c.above = locate(g.hist, int(g.n))
		}
	})

	for _, g := range p.groups {
		g.want()
	}
	w.walk(p, now, func(g *group, c *call) {
		if g.kept == nil {
			return
		}
		for _, us := range c.list(g.metric) {
			if k := g.hist[bucketOf(us)]; k > 0 {
				g.kept[k-1] = append(g.kept[k-1], us)
			}
		}
	}, func(g *group, c *closing) {
		if g.kept != nil && c.n > 0 {
			c.p95 = pick(g.kept[g.hist[c.bucket]-1], c.above)
		}
	})
	return p.counts(len(rules))
}

// want turns the histogram into the list of buckets whose samples the second walk keeps: those that hold a p95.
func (g *group) want() {
	clear(g.hist)
	for _, c := range g.closings {
		if g.metric >= 0 && c.n > 0 && g.hist[c.bucket] == 0 {
			g.kept = append(g.kept, nil)
			g.hist[c.bucket] = uint32(len(g.kept))
		}
	}
}

// pick is the sample that exactly `above` others follow in ascending order.
func pick(samples []uint32, above int) uint32 {
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	return sorted[len(sorted)-1-above]
}

// walk visits the sessions from the newest at now backwards, with every group that has a window still open there.
func (w *Sessions) walk(p *plan, now time.Time, add func(*group, *call), shut func(*group, *closing)) {
	end := now.UnixMicro()
	newest := sort.Search(len(w.order), func(i int) bool { return w.order[i].endedAt > end })
	for i := newest - 1; i >= 0; i-- {
		c := w.order[i]
		for _, g := range p.of(w.scopes.list, c.scope) {
			if g.reach(c.endedAt, shut) {
				add(g, c)
			}
		}
	}
	p.end(shut)
}

// Samples names up to limit sessions in a latency rule's window that contain a turn above its threshold, the most recent
// first.
func (w *Sessions) Samples(r *Rule, now time.Time, limit int) []string {
	metric := r.Metric.latency()
	if metric < 0 {
		return nil
	}
	w.sort()
	start, end := windowStart(now, r.Window()), now.UnixMicro()
	newest := sort.Search(len(w.order), func(i int) bool { return w.order[i].endedAt > end })
	var ids []string
	for i := newest - 1; i >= 0 && len(ids) < limit && w.order[i].endedAt > start; i-- {
		c := w.order[i]
		s := w.scopes.list[c.scope]
		if r.AgentID != "" && s.agent != r.AgentID || r.AccountID != "" && s.account != r.AccountID {
			continue
		}
		if slices.ContainsFunc(c.list(metric), func(us uint32) bool { return millis(us) > r.Threshold }) {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// subBits sets the width of a bucket: 1/128 of its value.
const subBits = 7

// buckets is the number of buckets that all uint32 values fall into.
const buckets = (32-subBits-1)<<subBits + 2<<subBits

// bucketOf is the histogram bucket of a value: exact below 256 µs, above that its highest eight bits. Buckets are in the
// order of their values.
func bucketOf(us uint32) int {
	shift := max(bits.Len32(us)-subBits-1, 0)
	return shift<<subBits + int(us>>shift)
}

// locate finds the bucket that holds the nearest-rank p95 of n samples, and how many samples of that bucket are greater
// in rank.
func locate(hist []uint32, n int) (bucket, above int) {
	above = n - stat.Rank(n, 95, 100)
	for b := len(hist) - 1; b > 0; b-- {
		if int(hist[b]) > above {
			return b, above
		}
		above -= int(hist[b])
	}
	return 0, above
}

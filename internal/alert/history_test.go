package alert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// history is the smallest store that keeps the contract of SweepStore, with switches to make it fail. The SQL store is
// held to the same contract by its own conformance suite.
type history struct {
	sync.Mutex
	rules     map[string]*Rule
	calls     map[int64]changed[SessionFacts]
	verdicts  map[owner]changed[[]VerdictFacts]
	outcomes  map[int64]changed[OutcomeFacts]
	mark      Mark // of the last change
	goneCalls map[int64]Mark
	goneRuns  map[int64]Mark
	firings   []Firing
	queries   []FactQuery // of sessions

	failSessions, failVerdicts, failOutcomes, failRules, failSave error
	failFire                                                      func([]Fire) error
}

type changed[T any] struct {
	value T
	mark  Mark
}

func newHistory() *history {
	return &history{rules: map[string]*Rule{}, calls: map[int64]changed[SessionFacts]{}, verdicts: map[owner]changed[[]VerdictFacts]{}, outcomes: map[int64]changed[OutcomeFacts]{},
		goneCalls: map[int64]Mark{}, goneRuns: map[int64]Mark{}, mark: 1}
}

func (h *history) add(r Rule) *Rule {
	h.rules[r.ID] = &r
	return &r
}

func (h *history) next() Mark { h.mark++; return h.mark }

func (h *history) call(f SessionFacts) { h.calls[f.Num] = changed[SessionFacts]{f, h.next()} }

func (h *history) outcome(f OutcomeFacts) { h.outcomes[f.Num] = changed[OutcomeFacts]{f, h.next()} }

func (h *history) judged(source string, num int64, list ...VerdictFacts) {
	for i := range list {
		list[i].Source, list[i].Owner = source, num
	}
	h.verdicts[owner{source == SourceRuns, num}] = changed[[]VerdictFacts]{list, h.next()}
}

// deleteCall deletes a session with what belongs to it.
func (h *history) deleteCall(num int64) {
	delete(h.calls, num)
	delete(h.outcomes, num)
	delete(h.verdicts, owner{false, num})
	h.goneCalls[num] = h.next()
}

// runSize is how many numbers of cases a run of these tests has.
const runSize = 10

// deleteRun deletes the cases from num to num+runSize-1.
func (h *history) deleteRun(num int64) {
	maps.DeleteFunc(h.verdicts, func(o owner, _ changed[[]VerdictFacts]) bool {
		return o.run && o.num >= num && o.num < num+runSize
	})
	h.goneRuns[num] = h.next()
}

func (q FactQuery) wants(at int64, changed Mark) bool {
	if q.Since != 0 {
		return changed >= q.Since
	}
	return at > q.After && at <= q.Until
}

// goneSince is the deleted numbers that an incremental read has to tell.
func goneSince(gone map[int64]Mark, q FactQuery, tell func(int64)) {
	for num, mark := range gone {
		if q.Since != 0 && mark >= q.Since {
			tell(num)
		}
	}
}

func (h *history) SessionFacts(ctx context.Context, q FactQuery, put func(SessionFacts)) (Mark, error) {
	h.queries = append(h.queries, q)
	goneSince(h.goneCalls, q, func(num int64) { put(SessionFacts{Num: num}) })
	for _, c := range h.calls {
		if q.wants(c.value.EndedAt, c.mark) {
			put(c.value)
		}
	}
	if _, limited := ctx.Deadline(); !limited {
		return 0, errors.New("a read without a time limit")
	}
	return h.mark + 1, h.failSessions
}

func (h *history) VerdictFacts(_ context.Context, q FactQuery, put func(VerdictFacts)) (Mark, error) {
	goneSince(h.goneCalls, q, func(num int64) { put(VerdictFacts{Source: SourceSessions, Owner: num}) })
	goneSince(h.goneRuns, q, func(num int64) { put(VerdictFacts{Source: SourceRuns, Owner: num, LastOwner: num + runSize - 1}) })
	for o, c := range h.verdicts {
		if q.Since != 0 && len(c.value) == 0 && c.mark >= q.Since {
			source := SourceSessions
			if o.run {
				source = SourceRuns
			}
			put(VerdictFacts{Source: source, Owner: o.num})
		}
		for _, v := range c.value {
			if q.wants(v.At, c.mark) {
				put(v)
			}
		}
	}
	return h.mark + 1, h.failVerdicts
}

func (h *history) OutcomeFacts(_ context.Context, q FactQuery, put func(OutcomeFacts)) (Mark, error) {
	goneSince(h.goneCalls, q, func(num int64) { put(OutcomeFacts{Num: num}) })
	for _, c := range h.outcomes {
		if q.wants(c.value.At, c.mark) {
			put(c.value)
		}
	}
	return h.mark + 1, h.failOutcomes
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

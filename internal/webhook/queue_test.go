package webhook

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// queue is the smallest store that keeps the contract of Store, with switches to make it fail. The SQL store is held to
// the same contract by its own conformance suite.
type queue struct {
	sync.Mutex
	firings  map[string]*queued
	attempts []Attempt
	lost     int // outcomes whose lease had gone
	records  int // transactions that wrote outcomes

	takes      time.Duration // of each Record
	failRecord func([]Outcome) error
	failClaim  error
}

type queued struct {
	Delivery
	status Status
	next   time.Time
	last   Attempt
}

func (q *queue) add(now time.Time, id, url string) *queued {
	q.Lock()
	defer q.Unlock()
	if q.firings == nil {
		q.firings = map[string]*queued{}
	}
	f := &queued{Delivery: Delivery{FiringID: id, RuleID: "rule-" + id, RuleName: "name", Body: []byte("body of " + id), Target: Target{URL: url, Method: "POST"}}, status: Pending, next: now}
	q.firings[id] = f
	return f
}

func (q *queue) ClaimDue(_ context.Context, now, until time.Time, take func(string) bool) ([]Delivery, error) {
	q.Lock()
	defer q.Unlock()
	if q.failClaim != nil {
		return nil, q.failClaim
	}
	var due []*queued
	for _, f := range q.firings {
		if f.status == Pending && !f.next.After(now) {
			due = append(due, f)
		}
	}
	slices.SortFunc(due, func(a, b *queued) int {
		return cmp.Or(a.next.Compare(b.next), strings.Compare(a.FiringID, b.FiringID))
	})
	var claimed []Delivery
	for _, f := range due {
		if take(f.Target.URL) {
			f.next, f.Lease = until, until
			claimed = append(claimed, f.Delivery)
		}
	}
	return claimed, nil
}

func (q *queue) Record(_ context.Context, outcomes []Outcome) ([]bool, error) {
	time.Sleep(q.takes)
	q.Lock()
	defer q.Unlock()
	if q.failRecord != nil {
		if err := q.failRecord(outcomes); err != nil {
			return nil, err
		}
	}
	q.records++
	held := make([]bool, len(outcomes))
	for i, o := range outcomes {
		f := q.firings[o.Attempt.FiringID]
		q.attempts = append(q.attempts, o.Attempt)
		if held[i] = f.status == Pending && f.next.Equal(o.Lease); !held[i] {
			q.lost++
			continue
		}
		f.status, f.next, f.Attempts, f.last = o.Status, o.Next, f.Attempts+1, o.Attempt
	}
	return held, nil
}

func (q *queue) RecordAttempt(_ context.Context, a Attempt) error {
	q.attempts = append(q.attempts, a)
	return nil
}

func (q *queue) NextDue(_ context.Context, after time.Time) (next time.Time, err error) {
	q.Lock()
	defer q.Unlock()
	for _, f := range q.firings {
		if f.status == Pending && f.next.After(after) && (next.IsZero() || f.next.Before(next)) {
			next = f.next
		}
	}
	return next, nil
}

// count is the number of firings in a state.
func (q *queue) count(s Status) (n int) {
	q.Lock()
	defer q.Unlock()
	for _, f := range q.firings {
		if f.status == s {
			n++
		}
	}
	return n
}

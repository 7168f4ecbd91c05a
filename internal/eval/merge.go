package eval

import (
	"crypto/sha256"
	"fmt"
	"math"
	"time"
)

// StaleAfter is how long after its last post a run that never said it finished reads as completed: the plugin was
// killed. The number is the contract's.
const StaleAfter = time.Hour

// StaleCutoff is the newest last_activity_at at which an unfinished run reads as completed.
//
// It makes the status filter a predicate over columns, with unfinished = status IN ('queued', 'running'):
//
//	completed:         status = 'completed' OR (unfinished AND last_activity_at <= cutoff)
//	queued, running:   status = $status AND last_activity_at > cutoff
//	failed, cancelled: status = $status
func StaleCutoff(now time.Time) time.Time { return now.Add(-StaleAfter) }

// EffectiveStatus is the status readers see.
func (r *Run) EffectiveStatus(now time.Time) string {
	if !finished(r.Status) && !r.LastActivityAt.After(StaleCutoff(now)) {
		return StatusCompleted
	}
	return r.Status
}

func finished(status string) bool { return progress(status) == 2 }

// progress orders states by how far the run is; a run never goes back.
func progress(status string) int {
	switch status {
	case StatusQueued:
		return 0
	case StatusRunning:
		return 1
	}
	return 2
}

// MergeRun is the run after a further post. old is nil for the first one.
//
// What is order-independent: started_at (the earliest), last_activity_at and created_at (latest and earliest
// receipt), status and finished_at (see laterState), and every value that only some posts carry: null never erases.
// Where two posts contradict each other in any other value, the post whose run is further wins (finished over
// running over queued), and between equals the one received later: so a correction sent after the end is taken, and
// a straggler of a running suite changes nothing.
//
// The aggregate is not merged: it is recomputed from the stored cases.
func MergeRun(old *Run, post Run) Run {
	if old == nil {
		return post
	}
	out, fill := post, *old
	if d := progress(old.Status) - progress(post.Status); d > 0 || d == 0 && old.LastActivityAt.After(post.LastActivityAt) {
		out, fill = fill, out
	}
	for _, f := range [][2]*string{
		{&out.Name, &fill.Name}, {&out.AccountID, &fill.AccountID}, {&out.AgentID, &fill.AgentID},
		{&out.AgentName, &fill.AgentName}, {&out.Framework, &fill.Framework}, {&out.FrameworkVersion, &fill.FrameworkVersion},
		{&out.TestingFramework, &fill.TestingFramework}, {&out.TestingFrameworkVersion, &fill.TestingFrameworkVersion},
	} {
		if *f[0] == "" {
			*f[0] = *f[1]
		}
	}
	if out.CI == nil {
		out.CI = fill.CI
	}
	out.Status, out.FinishedAt = laterState(&out, &fill)
	out.StartedAt = earliest(out.StartedAt, fill.StartedAt)
	out.CreatedAt = earliest(out.CreatedAt, fill.CreatedAt)
	if fill.LastActivityAt.After(out.LastActivityAt) {
		out.LastActivityAt = fill.LastActivityAt
	}
	out.RunAggregate = old.RunAggregate
	return out
}

// laterState picks the state of the run that got further; of two finished ones the later end, and of two with the
// same end the worse state, so that the order of arrival does not matter. Parse leaves finished_at zero in
// unfinished runs.
func laterState(a, b *Run) (status string, finishedAt time.Time) {
	d := progress(a.Status) - progress(b.Status)
	if d == 0 {
		d = a.FinishedAt.Compare(b.FinishedAt)
	}
	if d == 0 {
		d = severity(a.Status) - severity(b.Status)
	}
	if d < 0 {
		a, b = b, a
	}
	return a.Status, a.FinishedAt
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// severity orders the outcomes of runs and of cases from harmless to bad.
func severity(status string) int {
	switch status {
	case CasePassed, StatusCompleted:
		return 1
	case StatusCancelled:
		return 2
	case StatusFailed: // of a run, and of a case
		return 3
	case CaseErrored:
		return 4
	}
	return 0 // skipped, and the unfinished states
}

// caseRank orders the versions of one case, whatever the order in which they arrive: the version that finished later
// wins (one without the time loses), then the one with more judgments, then with more events, then with a failure
// block, then with the worse status; what is left is decided by a hash of the bytes, so that there is always one
// winner. A version replaces another whole, never field by field: a transcript and a verdict of two attempts do not
// belong together. Identical bytes have an identical rank, so the repeats that plugins send cost no write.
//
// The rank is lower-case hex of fixed width, so both engines compare it alike under any collation.
func caseRank(c *Case, judgments, events int, raw []byte) string {
	end := uint64(0)
	if !c.FinishedAt.IsZero() {
		end = uint64(c.FinishedAt.UnixMicro())
	}
	failure := 0
	if c.Failure != nil {
		failure = 1
	}
	sum := sha256.Sum256(raw)
	return fmt.Sprintf("%016x%08x%08x%x%x%x", end, min(judgments, math.MaxUint32), min(events, math.MaxUint32),
		failure, severity(c.Status), sum[:8])
}

// MergeCase is the case after a further version of it arrived: the one of greater Rank, known since the first.
// The store need not call it: `UPDATE ... WHERE excluded.rank > eval_cases.rank`, leaving created_at and
// position (the place of the case in the run), is the same.
func MergeCase(old, post Case) Case {
	first := old
	if post.CreatedAt.Before(old.CreatedAt) {
		first = post
	}
	out := old
	if post.Rank > old.Rank {
		out = post
	}
	out.CreatedAt, out.Position = first.CreatedAt, first.Position
	return out
}

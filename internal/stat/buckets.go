package stat

import "time"

// Buckets returns the starts, in UTC, of the buckets of length step that cover [from, to), oldest first. Buckets are
// aligned to multiples of step counted from year 1 (whole hours, whole UTC days), so that a bucket's start does not
// move from one request to the next; the first one may therefore begin before from. It returns nil when step is not
// positive or to is not after from.
func Buckets(from, to time.Time, step time.Duration) []time.Time {
	if step <= 0 || !to.After(from) {
		return nil
	}
	first := BucketStart(from, step)
	starts := make([]time.Time, 0, int(to.Sub(first)/step)+1)
	for t := first; t.Before(to); t = t.Add(step) {
		starts = append(starts, t)
	}
	return starts
}

// BucketStart is the start, in UTC, of the bucket of length step that t falls into; step must be positive.
func BucketStart(t time.Time, step time.Duration) time.Time {
	return t.UTC().Truncate(step)
}

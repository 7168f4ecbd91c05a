package webhook

import "time"

// MaxAttempts is how often a delivery is tried before it has failed (spec, Limits).
const MaxAttempts = 6

// backoff is the wait after each failed attempt but the last (spec, Delivery rules).
var backoff = [MaxAttempts - 1]time.Duration{
	30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour,
}

// NextAttempt says when to try again after the attempt with the given number (1 for the first) failed at now, and false
// when that was the last one.
func NextAttempt(attempt int, now time.Time) (time.Time, bool) {
	if attempt >= MaxAttempts {
		return time.Time{}, false
	}
	return now.Add(backoff[max(attempt, 1)-1]), true
}

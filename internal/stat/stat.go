// Package stat is the arithmetic behind every figure the program shows or alerts on: nearest-rank percentiles, rates
// and time buckets. It is pure and knows nothing of calls.
package stat

import (
	"math"
	"slices"
)

// Rank is the 1-based position of the num/den percentile among n sorted samples: the nearest rank, ceil(n*num/den),
// at least 1. It is integer arithmetic, because 0.95*20 is not 19 in floating point on every machine and one rank is one
// wrong alert. It returns 0 when n is not positive.
func Rank(n, num, den int) int {
	if n <= 0 {
		return 0
	}
	return max(1, (n*num+den-1)/den)
}

// Percentile is the nearest-rank num/den percentile of samples sorted in ascending order (95, 100 for p95): always one
// of the samples, never interpolated. ok is false when there are none.
func Percentile(sorted []float64, num, den int) (v float64, ok bool) {
	if len(sorted) == 0 {
		return 0, false
	}
	return sorted[Rank(len(sorted), num, den)-1], true
}

// ExceedsP95 reports whether the nearest-rank p95 of n samples is strictly above a threshold that over of them exceed.
// The p95 is the ceil(0.95n)-th smallest sample, so it is above the threshold exactly when fewer than that many samples
// are at or below it: counting replaces sorting.
func ExceedsP95(n, over int) bool {
	return n > 0 && over > n-Rank(n, 95, 100)
}

// Distribution summarises samples in the samples' own unit.
type Distribution struct {
	Avg, P50, P90, P95 float64
	Count              int
}

// Describe summarises samples and sorts them in place. ok is false when there are none. The samples must be finite.
func Describe(samples []float64) (d Distribution, ok bool) {
	n := len(samples)
	if n == 0 {
		return Distribution{}, false
	}
	slices.Sort(samples)
	sum := 0.0
	for _, v := range samples {
		sum += v
	}
	at := func(num int) float64 { return samples[Rank(n, num, 100)-1] }
	return Distribution{Avg: sum / float64(n), P50: at(50), P90: at(90), P95: at(95), Count: n}, true
}

// Rate is part/whole, unrounded so that it can be compared with a threshold. ok is false when whole is not positive:
// nothing observed is not a rate of 0.
func Rate(part, whole int) (v float64, ok bool) {
	if whole <= 0 {
		return 0, false
	}
	return float64(part) / float64(whole), true
}

// Round rounds v half away from zero to the given number of decimals. Values too large for the shift are returned as
// they are.
func Round(v float64, decimals int) float64 {
	shift := math.Pow10(decimals)
	if r := math.Round(v*shift) / shift; !math.IsInf(r, 0) && !math.IsNaN(r) {
		return r
	}
	return v
}

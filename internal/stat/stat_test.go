package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestRank(t *testing.T) {
	for _, c := range []struct{ n, num, want int }{
		{0, 95, 0}, {-3, 95, 0}, {1, 95, 1}, {1, 0, 1}, {5, 95, 5}, {19, 95, 19}, {20, 95, 19}, {21, 95, 20},
		{100, 95, 95}, {2, 50, 1}, {3, 50, 2}, {10, 90, 9}, {11, 90, 10}, {10, 100, 10}, {4000000, 95, 3800000},
	} {
		if got := Rank(c.n, c.num, 100); got != c.want {
			t.Errorf("Rank(%d, %d, 100) = %d, want %d", c.n, c.num, got, c.want)
		}
	}
}

// The definition, without any arithmetic of ours: the smallest sample with at least num percent of all at or below it.
func TestPercentileIsTheNearestRank(t *testing.T) {
	for n := 1; n <= 300; n++ {
		sorted := make([]float64, n)
		for i := range sorted {
			sorted[i] = float64(i + 1)
		}
		for num := 1; num <= 100; num++ {
			want := 0.0
			for i := range sorted {
				if (i+1)*100 >= num*n {
					want = sorted[i]
					break
				}
			}
			if got, ok := Percentile(sorted, num, 100); !ok || got != want {
				t.Fatalf("Percentile(1..%d, %d) = %v, %v, want %v", n, num, got, ok, want)
			}
		}
	}
	if _, ok := Percentile(nil, 95, 100); ok {
		t.Error("a percentile of nothing")
	}
}

func TestExceedsP95EqualsSorting(t *testing.T) {
	// Every n up to 400 with every possible number above the threshold.
	for n := 1; n <= 400; n++ {
		sorted := make([]float64, n)
		for over := 0; over <= n; over++ {
			for i := range sorted {
				sorted[i] = 0
				if i >= n-over {
					sorted[i] = 1
				}
			}
			p95, _ := Percentile(sorted, 95, 100)
			if got, want := ExceedsP95(n, over), p95 > 0.5; got != want {
				t.Fatalf("ExceedsP95(%d, %d) = %v, the sorted p95 says %v", n, over, got, want)
			}
		}
	}
	if ExceedsP95(0, 0) {
		t.Error("no samples exceed a threshold")
	}
	// Random samples with ties, the threshold often equal to a sample.
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		samples := make([]float64, 1+rng.IntN(200))
		for i := range samples {
			samples[i] = float64(rng.IntN(30)) / 10
		}
		threshold, over := float64(rng.IntN(30))/10, 0
		for _, v := range samples {
			if v > threshold {
				over++
			}
		}
		d, _ := Describe(slices.Clone(samples))
		if got, want := ExceedsP95(len(samples), over), d.P95 > threshold; got != want {
			t.Fatalf("%v > %v: counted %v, sorted %v", samples, threshold, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	d, ok := Describe([]float64{3702, 1091, 1164, 1420, 1958})
	if want := (Distribution{Avg: 1867, P50: 1420, P90: 3702, P95: 3702, Count: 5}); !ok || d != want {
		t.Errorf("Describe = %+v, %v, want %+v", d, ok, want)
	}
	if d, ok := Describe(nil); ok || d != (Distribution{}) {
		t.Errorf("Describe(nil) = %+v, %v", d, ok)
	}
}

func TestRateAndRound(t *testing.T) {
	if v, ok := Rate(1, 3); !ok || v != 1.0/3 {
		t.Errorf("Rate(1, 3) = %v, %v", v, ok)
	}
	if _, ok := Rate(0, 0); ok {
		t.Error("Rate(0, 0) is a rate")
	}
	for _, c := range []struct {
		v        float64
		decimals int
		want     float64
	}{{1.0 / 3, 4, 0.3333}, {2.0 / 3, 4, 0.6667}, {132.25, 1, 132.3}, {-0.5, 0, -1}, {0, 4, 0}, {math.MaxFloat64, 4, math.MaxFloat64}} {
		if got := Round(c.v, c.decimals); got != c.want {
			t.Errorf("Round(%v, %d) = %v, want %v", c.v, c.decimals, got, c.want)
		}
	}
}

func TestBuckets(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 20, 0, 0, time.FixedZone("elsewhere", 2*3600)) // 03:20 UTC
	for _, c := range []struct {
		span, step  time.Duration
		n           int
		first, last string
	}{
		{24 * time.Hour, time.Hour, 25, "2026-11-20T03:00:00Z", "2026-11-21T03:00:00Z"},
		{7 * 24 * time.Hour, 6 * time.Hour, 29, "2026-11-14T00:00:00Z", "2026-11-21T00:00:00Z"},
		{30 * 24 * time.Hour, 24 * time.Hour, 31, "2026-10-22T00:00:00Z", "2026-11-21T00:00:00Z"},
	} {
		got := Buckets(now.Add(-c.span), now, c.step)
		if len(got) != c.n || got[0].Format(time.RFC3339) != c.first || got[len(got)-1].Format(time.RFC3339) != c.last {
			t.Errorf("%v by %v: %d buckets %v", c.span, c.step, len(got), got)
			continue
		}
		for i := range got[1:] {
			if got[i+1].Sub(got[i]) != c.step {
				t.Errorf("%v by %v: a gap after %v", c.span, c.step, got[i])
			}
		}
		for _, at := range []time.Time{now.Add(-c.span), now.Add(-c.span / 3), now.Add(-time.Microsecond)} {
			if !slices.ContainsFunc(got, BucketStart(at, c.step).Equal) {
				t.Errorf("%v by %v: %v falls into no bucket", c.span, c.step, at)
			}
		}
	}
	midnight := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if got := Buckets(midnight.Add(-48*time.Hour), midnight, 24*time.Hour); len(got) != 2 {
		t.Errorf("two whole days in %d buckets", len(got))
	}
	for _, got := range [][]time.Time{Buckets(now, now, time.Hour), Buckets(now, now.Add(-1), time.Hour), Buckets(now, now.Add(1), 0)} {
		if got != nil {
			t.Errorf("buckets of nothing: %v", got)
		}
	}
}

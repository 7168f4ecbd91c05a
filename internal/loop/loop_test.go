package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// sleeper runs for the given times, one after the other and then 0, and notes when each run began.
type sleeper struct {
	start time.Time
	takes []time.Duration
	began []time.Duration
}

func (s *sleeper) run(_ context.Context, now time.Time) {
	s.began = append(s.began, now.Sub(s.start))
	if len(s.takes) > 0 {
		time.Sleep(s.takes[0])
		s.takes = s.takes[1:]
	}
}

func TestEvery(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name     string
		takes    []time.Duration
		began    string
		overruns string
	}{
		{"quick runs", nil, "[0s 30s 1m0s 1m30s]", "[]"},
		{"a run shorter than the period shifts nothing", []time.Duration{0, 29 * s}, "[0s 30s 1m0s 1m30s]", "[]"},
		{"a run exactly as long as the period", []time.Duration{30 * s, 0}, "[0s 30s 1m0s 1m30s]", "[]"},
		{"a run a little too long skips one", []time.Duration{31 * s}, "[0s 1m0s 1m30s]", "[1 of 31s]"},
		{"a run of two periods skips one", []time.Duration{60 * s}, "[0s 1m0s 1m30s]", "[1 of 1m0s]"},
		{"a long run skips several", []time.Duration{0, 59 * s}, "[0s 30s 1m30s]", "[1 of 59s]"},
		{"two long runs", []time.Duration{45 * s, 29500 * time.Millisecond, 0}, "[0s 1m0s 1m30s]", "[1 of 45s]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 119*s)
			defer cancel()
			sl := &sleeper{start: time.Now(), takes: c.takes}
			var overruns []string
			Every(ctx, 30*s, sl.run, func(missed int, took time.Duration) {
				overruns = append(overruns, fmt.Sprintf("%d of %s", missed, took))
			})
			if got := fmt.Sprint(sl.began); got != c.began {
				t.Errorf("%s: began %s, want %s", c.name, got, c.began)
			}
			if got := fmt.Sprint(overruns); got != c.overruns {
				t.Errorf("%s: overruns %s, want %s", c.name, got, c.overruns)
			}
		})
	}
}

func TestEveryStopsOnlyAfterTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start, finished := time.Now(), false
		time.AfterFunc(10*time.Second, cancel)
		Every(ctx, time.Second, func(ctx context.Context, now time.Time) {
			time.Sleep(25 * time.Second)
			finished = true
		}, nil)
		if took := time.Since(start); !finished || took != 25*time.Second {
			t.Errorf("returned after %s, run finished: %v", took, finished)
		}
	})
}

func TestEveryOfAStoppedProgramRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Every(ctx, time.Second, func(context.Context, time.Time) { t.Error("ran") }, nil)
	OnDemand(ctx, nil, time.Second, func(context.Context, time.Time) time.Time { t.Error("ran"); return time.Time{} })
}

func TestOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 20*s)
		defer cancel()
		start := time.Now()
		woken := make(chan struct{}, 1)
		for _, at := range []time.Duration{1 * s, 8 * s} {
			time.AfterFunc(at, func() { woken <- struct{}{} })
		}
		wishes := []time.Duration{0, 4 * s, 3 * s, 30 * s} // of the 1st, 2nd ... run; 0 is no wish
		var began []time.Duration
		OnDemand(ctx, woken, 5*s, func(_ context.Context, now time.Time) (next time.Time) {
			began = append(began, now.Sub(start))
			if n := len(began) - 1; n < len(wishes) && wishes[n] > 0 {
				next = start.Add(wishes[n])
			}
			return next
		})
		// Start; woken at 1; the wish for 4; the wish for 3 has passed: at once; woken at 8 before idling is over; idle; idle.
		if got := fmt.Sprint(began); got != "[0s 1s 4s 4s 8s 13s 18s]" {
			t.Errorf("began %s", got)
		}
	})
}

func TestPatientlyWaitsForWhatMayGoAway(t *testing.T) {
	away, broken := errors.New("away"), errors.New("broken")
	temporary := func(err error) bool { return err == away }
	for _, c := range []struct {
		name  string
		errs  []error // of each try; after the last one f succeeds
		want  error
		tries int
		took  time.Duration
	}{
		{"at once", nil, nil, 1, 0},
		{"back after three tries", []error{away, away, away}, nil, 4, 3 * time.Second},
		{"broken for good", []error{away, broken, away}, broken, 2, time.Second},
		{"away too long", []error{away, away, away, away, away, away, away, away, away, away, away, away}, away, 8, 7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, tries := time.Now(), 0
				err := Patiently(t.Context(), 8*time.Second, time.Second, temporary, func() error {
					tries++
					if tries > len(c.errs) {
						return nil
					}
					return c.errs[tries-1]
				})
				if err != c.want || tries != c.tries || time.Since(start) != c.took {
					t.Errorf("%v after %d tries and %v; want %v, %d, %v", err, tries, time.Since(start), c.want, c.tries, c.took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := Patiently(ctx, 8*time.Second, time.Second, temporary, func() error { return away })
		if err != away || time.Since(start) != 2500*time.Millisecond {
			t.Errorf("a client that left: %v after %v", err, time.Since(start))
		}
	})
}

package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sidetone/internal/eval"
)

// ids lists the numbers of the runs that a filter gives, in the order of the list.
func (s evalStore) ids(f eval.Filter, p eval.Page, now time.Time) ([]int, int) {
	s.t.Helper()
	runs, total, err := s.List(s.t.Context(), f, p, now)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []int
	for _, r := range runs {
		var n int
		if _, err := fmt.Sscanf(r.ID, "00000000-0000-4000-8000-%012x", &n); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, n)
	}
	return out, total
}

// evalPages lists 57 runs of which several start at the same time, in pages of every size and from every offset.
func evalPages(t *testing.T, s evalStore) {
	var want []int
	for n := range 57 {
		s.post(evalBody(n, fmt.Sprintf(`"started_at":%d,"account_id":"%c"`, 1000+n/5, 'a'+n%2)), evalNoon)
		want = append(want, n)
	}
	slices.SortFunc(want, func(a, b int) int {
		if a/5 != b/5 {
			return b/5 - a/5
		}
		return a - b
	})
	check := func(f eval.Filter, want []int) {
		t.Helper()
		for _, limit := range []int{1, 7, 20} {
			var got []int
			for offset := 0; offset < len(want); offset += limit {
				page, total := s.ids(f, eval.Page{Limit: limit, Offset: offset}, evalNoon)
				if total != len(want) || len(page) != min(limit, len(want)-offset) {
					t.Fatalf("limit %d offset %d: %d rows of %d", limit, offset, len(page), total)
				}
				got = append(got, page...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d\n got %v\nwant %v", limit, got, want)
			}
		}
		if page, total := s.ids(f, eval.Page{Limit: 20, Offset: len(want)}, evalNoon); len(page) != 0 || total != len(want) {
			t.Errorf("behind the end: %v of %d", page, total)
		}
	}
	check(eval.Filter{}, want)
	check(eval.Filter{AccountIDs: []string{"b"}}, slices.DeleteFunc(slices.Clone(want), func(n int) bool { return n%2 == 0 }))
	// A count must not be remembered beyond a change.
	s.post(evalBody(57, `"started_at":2000`), evalNoon)
	check(eval.Filter{}, append([]int{57}, want...))
}

func evalFilters(t *testing.T, s evalStore) {
	at := func(n int) time.Time { return time.Unix(int64(1000+n), 0).UTC() }
	for n, fields := range []string{
		`"account_id":"a","agent_id":"x","framework":"livekit"`,
		`"account_id":"b","agent_id":"x","framework":"pipecat"`,
		`"account_id":"a","agent_id":"y"`,
		`"account_id":"%","agent_id":"'; --","framework":"livekit","testing_framework_version":"1"`,
	} {
		body := evalBody(n, fmt.Sprintf(`"started_at":%d,%s`, 1000+n, fields))
		if n == 1 {
			body = strings.Replace(body, `"pytest"`, `"vitest"`, 1)
		}
		s.post(body, evalNoon)
	}
	for _, tt := range []struct {
		name string
		f    eval.Filter
		want []int
	}{
		{"none", eval.Filter{}, []int{3, 2, 1, 0}},
		{"account", eval.Filter{AccountIDs: []string{"a"}}, []int{2, 0}},
		{"any account", eval.Filter{AccountIDs: []string{"b", "%"}}, []int{3, 1}},
		{"agent", eval.Filter{AgentIDs: []string{"x"}}, []int{1, 0}},
		{"agent that looks like SQL", eval.Filter{AgentIDs: []string{"'; --"}}, []int{3}},
		{"both", eval.Filter{AccountIDs: []string{"a"}, AgentIDs: []string{"x"}}, []int{0}},
		{"framework", eval.Filter{Frameworks: []string{"livekit"}}, []int{3, 0}},
		{"testing framework", eval.Filter{TestingFrameworks: []string{"vitest"}}, []int{1}},
		{"nothing matches", eval.Filter{TestingFrameworks: []string{"VITEST"}}, nil},
		{"from is inclusive", eval.Filter{StartedFrom: at(2)}, []int{3, 2}},
		{"to is inclusive", eval.Filter{StartedTo: at(1)}, []int{1, 0}},
		{"between", eval.Filter{StartedFrom: at(1), StartedTo: at(2)}, []int{2, 1}},
		{"a microsecond", eval.Filter{StartedFrom: at(2).Add(time.Microsecond)}, []int{3}},
		{"with a status", eval.Filter{AccountIDs: []string{"a"}, Statuses: []string{"completed", "failed"}}, []int{2, 0}},
	} {
		if got, total := s.ids(tt.f, eval.Page{Limit: 20}, evalNoon); !slices.Equal(got, tt.want) || total != len(tt.want) {
			t.Errorf("%s: %v of %d, want %v", tt.name, got, total, tt.want)
		}
	}
}

// staleRuns checks every status filter around the moment at which unfinished runs begin to read as completed.
func staleRuns(t *testing.T, s evalStore) {
	for n, status := range eval.RunStatuses {
		s.post(evalBody(n, fmt.Sprintf(`"started_at":%d,"status":%q`, 1000-n, status)), evalNoon)
	}
	// A later post keeps a run alive, even one that says nothing new.
	s.post(evalBody(5, `"started_at":995,"status":"running"`), evalNoon)
	s.post(evalBody(5, `"started_at":995,"status":"running"`), evalNoon.Add(time.Minute))
	for _, tt := range []struct {
		after time.Duration
		want  map[string][]int
	}{
		{time.Hour - time.Microsecond, map[string][]int{"queued": {0}, "running": {1, 5}, "completed": {2}, "failed": {3}, "cancelled": {4}, "running,completed": {1, 2, 5}}},
		{time.Hour, map[string][]int{"queued": nil, "running": {5}, "completed": {0, 1, 2}, "failed": {3}, "cancelled": {4}, "queued,failed": {3}}},
		{time.Hour + time.Minute, map[string][]int{"running": nil, "completed": {0, 1, 2, 5}, "completed,cancelled": {0, 1, 2, 4, 5}}},
	} {
		now := evalNoon.Add(tt.after)
		for status, want := range tt.want {
			f := eval.Filter{Statuses: strings.Split(status, ",")}
			got, total := s.ids(f, eval.Page{Limit: 20}, now)
			if !slices.Equal(got, want) || total != len(want) {
				t.Errorf("%s after %v: %v of %d, want %v", status, tt.after, got, total, want)
			}
			runs, _, err := s.List(t.Context(), f, eval.Page{Limit: 20}, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				if !slices.Contains(f.Statuses, r.EffectiveStatus(now)) {
					t.Errorf("%s after %v lists a run that reads %s", status, tt.after, r.EffectiveStatus(now))
				}
			}
		}
	}
}

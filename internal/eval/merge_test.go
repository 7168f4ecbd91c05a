package eval

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// replay applies posts as the store does: one post after the other, each in its own transaction.
type replay struct {
	run   *Run
	cases map[string]Case
}

func (s *replay) post(t testing.TB, body []byte, now time.Time) {
	t.Helper()
	p, err := Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	p.Run.LastActivityAt, p.Run.CreatedAt = now, now
	merged := MergeRun(s.run, p.Run)
	s.run = &merged
	if s.cases == nil {
		s.cases = map[string]Case{}
	}
	for _, c := range p.Cases {
		c.CreatedAt = now
		if old, ok := s.cases[c.ID]; ok {
			c = MergeCase(old, c)
		}
		s.cases[c.ID] = c
	}
	s.run.RunAggregate = Aggregate(summaries(s.list()))
}

func (s *replay) list() []Case {
	out := make([]Case, 0, len(s.cases))
	for _, c := range s.cases {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Case) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// final is what must not depend on the order of the posts.
func (s *replay) final() (Run, []Case) {
	r := *s.run
	r.LastActivityAt, r.CreatedAt = time.Time{}, time.Time{}
	cases := s.list()
	for i := range cases {
		cases[i].CreatedAt, cases[i].Position = time.Time{}, 0
	}
	return r, cases
}

var start = time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, p := range permutations(n - 1) {
		for i := range n {
			out = append(out, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return out
}

func TestPytestFixturesInEveryOrderAndRepeated(t *testing.T) {
	posts := [][]byte{fixture(t, "pytest-evals/1-running.json"), fixture(t, "pytest-evals/2-one-case.json"), fixture(t, "pytest-evals/3-finished.json")}
	orders := permutations(3)
	for _, p := range permutations(3) {
		for _, q := range permutations(3) {
			orders = append(orders, slices.Concat(p, q), slices.Concat(p, p[:1], q[1:]))
		}
	}
	for _, order := range orders {
		var s replay
		for i, n := range order {
			s.post(t, posts[n], start.Add(time.Duration(i)*time.Second))
		}
		r, cases := s.final()
		if r.Status != StatusCompleted || r.Total != 4 || r.Passed != 1 || r.Failed != 2 || r.Errored != 0 || r.Skipped != 1 || *r.PassRate != 1.0/3 {
			t.Errorf("%v: %s %s", order, r.Status, show(r.Tally))
		}
		if r.StartedAt.UnixMicro() != 1795238753964562 || r.FinishedAt.UnixMicro() != 1795238754079355 || r.AgentID != "northwind-support" || *r.DurationMS() != 115 {
			t.Errorf("%v: %+v", order, r)
		}
		if len(cases) != 4 || string(cases[0].Failure) == "" && string(cases[1].Failure) == "" {
			t.Errorf("%v: %d cases", order, len(cases))
		}
		if s.run.CreatedAt != start || s.run.LastActivityAt != start.Add(time.Duration(len(order)-1)*time.Second) {
			t.Errorf("%v: created %v, last activity %v", order, s.run.CreatedAt, s.run.LastActivityAt)
		}
	}
}

// Any order and any repetition of any posts that do not contradict each other give one run, and so do posts that
// contradict each other in status, times and the content of cases.
func TestMergeDoesNotDependOnTheOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(values ...string) string { return values[rnd.IntN(len(values))] }
	for range 300 {
		var posts [][]byte
		for range 2 + rnd.IntN(4) {
			var b bytes.Buffer
			b.WriteString(`{"version":"v0","run":{"run_id":"` + caseID(0) + `","testing_framework":"pytest","started_at":` + pick("10", "11", "12") +
				`,"finished_at":` + pick("null", "20", "30") + `,"status":"` + pick(RunStatuses...) + `","name":` + pick("null", `"nightly"`) +
				`,"agent_id":` + pick("null", `"a"`) + `,"framework":` + pick("null", `"livekit"`) + `,"ci":` + pick("null", `{"git_sha":"1"}`) + `},"cases":[`)
			for i := range rnd.IntN(3) {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(`{"case_id":"` + caseID(i) + `","name":"n","status":"` + pick(CaseStatuses...) + `","finished_at":` + pick("null", "15", "16") +
					`,"judgments":[` + pick("", `{"verdict":"fail"}`, `{"verdict":"pass"}`) + `],"events":[` + pick("", `{"type":"function_call"}`) +
					`],"failure":` + pick("null", "{}") + `}`)
			}
			b.WriteString(`]}`)
			posts = append(posts, b.Bytes())
		}
		var want replay
		for i, p := range posts {
			want.post(t, p, start.Add(time.Duration(i)*time.Second))
		}
		wantRun, wantCases := want.final()
		for range 10 {
			order := rnd.Perm(len(posts))
			order = append(order, rnd.IntN(len(posts)), rnd.IntN(len(posts)))
			var s replay
			for i, n := range order {
				s.post(t, posts[n], start.Add(time.Duration(i)*time.Second))
			}
			gotRun, gotCases := s.final()
			if !reflect.DeepEqual(gotRun, wantRun) || !reflect.DeepEqual(gotCases, wantCases) {
				t.Fatalf("order %v\n got %+v\n     %+v\nwant %+v\n     %+v\nposts %s", order, gotRun, gotCases, wantRun, wantCases, bytes.Join(posts, []byte("\n")))
			}
		}
	}
}

func TestMergeRunWithContradictingPosts(t *testing.T) {
	at := func(status, name string, sec int) Run {
		return Run{Status: status, Name: name, LastActivityAt: start.Add(time.Duration(sec) * time.Second)}
	}
	for _, tt := range []struct {
		what      string
		old, post Run
		want      string
	}{
		{"later of equals", at("running", "a", 1), at("running", "b", 2), "b"},
		{"later of equals, committed first", at("running", "a", 2), at("running", "b", 1), "a"},
		{"straggler", at("completed", "a", 1), at("running", "b", 2), "a"},
		{"progress", at("running", "a", 1), at("failed", "b", 2), "b"},
		{"correction after the end", at("completed", "a", 1), at("completed", "b", 2), "b"},
		{"null does not erase", at("running", "a", 1), at("completed", "", 2), "a"},
		{"straggler fills", at("completed", "", 1), at("queued", "b", 2), "b"},
	} {
		if got := MergeRun(&tt.old, tt.post); got.Name != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got.Name, tt.want)
		}
	}
}

func TestALateRunningPostDoesNotReopenAFinishedRun(t *testing.T) {
	for _, end := range []string{StatusCompleted, StatusFailed, StatusCancelled} {
		for _, late := range []string{StatusRunning, StatusQueued} {
			old := Run{Status: end, FinishedAt: start, LastActivityAt: start}
			got := MergeRun(&old, Run{Status: late, LastActivityAt: start.Add(time.Minute)})
			if got.Status != end || !got.FinishedAt.Equal(start) || !got.LastActivityAt.Equal(start.Add(time.Minute)) {
				t.Errorf("%s then %s: %+v", end, late, got)
			}
		}
	}
}

func TestEffectiveStatus(t *testing.T) {
	for _, tt := range []struct {
		status string
		after  time.Duration
		want   string
	}{
		{StatusRunning, 0, StatusRunning},
		{StatusRunning, StaleAfter - time.Microsecond, StatusRunning},
		{StatusRunning, StaleAfter, StatusCompleted},
		{StatusQueued, StaleAfter - time.Microsecond, StatusQueued},
		{StatusQueued, 100 * StaleAfter, StatusCompleted},
		{StatusFailed, 100 * StaleAfter, StatusFailed},
		{StatusCancelled, 100 * StaleAfter, StatusCancelled},
		{StatusCompleted, 0, StatusCompleted},
	} {
		r := Run{Status: tt.status, LastActivityAt: start}
		if got := r.EffectiveStatus(start.Add(tt.after)); got != tt.want {
			t.Errorf("%s after %v: %s, want %s", tt.status, tt.after, got, tt.want)
		}
	}
}

func TestRankOfCaseVersions(t *testing.T) {
	ascending := []string{
		`"status":"skipped"`,
		`"status":"passed"`,
		`"status":"failed"`,
		`"status":"errored"`,
		`"status":"failed","failure":{}`,
		`"status":"passed","events":[{}]`,
		`"status":"passed","events":[{},{}]`,
		`"status":"passed","judgments":[{"verdict":"pass"}]`,
		`"status":"skipped","judgments":[{},{}]`,
		`"status":"passed","finished_at":10`,
		`"status":"passed","finished_at":253402300799`,
	}
	var ranks []string
	for _, m := range ascending {
		c := parse(t, `{"version":"v0","run":`+minimalRun+`,"cases":[{"case_id":"`+caseID(1)+`","name":"n",`+m+`}]}`).Cases[0]
		ranks = append(ranks, c.Rank)
		if len(c.Rank) != len(ranks[0]) || strings.Trim(c.Rank, "0123456789abcdef") != "" {
			t.Errorf("%s: rank %q", m, c.Rank)
		}
	}
	for i := 1; i < len(ranks); i++ {
		if ranks[i-1] >= ranks[i] {
			t.Errorf("%s does not beat %s", ascending[i], ascending[i-1])
		}
	}
	a, b := oneCase(t, `,"file":"a"`), oneCase(t, `,"file":"b"`)
	if a.Rank == b.Rank || a.Rank != oneCase(t, `,"file":"a"`).Rank {
		t.Errorf("ranks must differ exactly when the content does: %s %s", a.Rank, b.Rank)
	}
}

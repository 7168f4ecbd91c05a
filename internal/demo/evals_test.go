package demo

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// missing answers 404 on everything but reports and health, as a server of the first release does.
func missing(r *http.Request) int {
	if r.URL.Path == "/observability/recordings/v0" || r.URL.Path == "/health" {
		return 0
	}
	return 404
}

var uuid4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestEvalHistoryTellsItsStory(t *testing.T) {
	ids := map[string]bool{}
	rates := map[string][]float64{}
	ttft := map[string][]float64{}
	for _, run := range evalHistory(1, testNow) {
		last := run.posts[len(run.posts)-1]
		branch := last.Run.CI["git_branch"].(string)
		if ids[run.id] || !uuid4.MatchString(run.id) {
			t.Fatalf("run id %s", run.id)
		}
		ids[run.id] = true
		if last.Run.StartedAt > epoch(testNow) || last.Run.FinishedAt != nil && *last.Run.FinishedAt > epoch(testNow) {
			t.Fatal("a run of the future")
		}
		passed, counted, sum, samples := 0, 0, 0.0, 0
		seen := map[string]bool{}
		for _, post := range run.posts {
			for _, c := range post.Cases {
				if !uuid4.MatchString(c.CaseID) || !slices.Contains([]string{"passed", "failed", "errored", "skipped"}, c.Status) {
					t.Fatalf("case %+v", c)
				}
				if (c.Failure != nil) != (c.Status == "failed" || c.Status == "errored") {
					t.Fatalf("case %s is %s with failure %v", c.Name, c.Status, c.Failure)
				}
				seen[c.CaseID] = true
			}
		}
		for _, c := range last.Cases {
			ok := c.Status == "passed"
			for _, j := range c.Judgments {
				ok = ok && j.Verdict != "fail"
			}
			if c.Status != "skipped" {
				counted++
			}
			if ok {
				passed++
			}
			for _, e := range c.Events {
				if m, is := e["metrics"].(map[string]any); is {
					sum, samples = sum+m["llm_node_ttft"].(float64), samples+1
				}
			}
		}
		n := len(rates[branch])
		killed := branch == "main" && n == mainKilledAt
		if killed != (last.Run.Status == "running") || !killed && (len(seen) != len(evalScripts()) || len(last.Cases) != len(seen)) {
			t.Fatalf("%s %d: status %s with %d of %d cases", branch, n, last.Run.Status, len(last.Cases), len(seen))
		}
		if len(run.posts) > 1 && run.posts[0].Run.Status != "running" {
			t.Fatal("a streamed run does not begin as running")
		}
		rates[branch] = append(rates[branch], float64(passed)/float64(counted))
		ttft[branch] = append(ttft[branch], sum/float64(samples))
	}
	if len(ids) != 2*evalRunsPerBranch {
		t.Fatalf("%d runs", len(ids))
	}
	for branch, at := range map[string]int{"main": mainBreaksAt, "refunds": refundsBreaksAt} {
		if d := rates[branch][at-1] - rates[branch][at]; d < 0.15 {
			t.Errorf("%s: the pass rate falls by %.2f only: %v", branch, d, rates[branch])
		}
		if ttft[branch][at] < 1.3*ttft[branch][at-1] {
			t.Errorf("%s: TTFT %v", branch, ttft[branch])
		}
	}
	if rates["main"][mainRepairedAt] < 0.85 {
		t.Errorf("main is not repaired: %v", rates["main"])
	}
}

func TestEvalRunsArePostedInOrder(t *testing.T) {
	rec, srv := newReceiver(t)
	out, err := testRun(t, srv, "--calls", "0", "--no-telemetry")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "20 eval runs") {
		t.Errorf("output:\n%s", out)
	}
	finished := map[string]bool{}
	for _, body := range rec.bodies["POST /observability/evals/v0"] {
		var p evalPayload
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatal(err)
		}
		if finished[p.Run.RunID] {
			t.Errorf("run %s was posted again after its end", p.Run.RunID)
		}
		finished[p.Run.RunID] = p.Run.FinishedAt != nil
	}
	if len(finished) != 20 || rec.count("DELETE /api/evals") != 1 {
		t.Errorf("%d runs, %d deletes", len(finished), rec.count("DELETE /api/evals"))
	}
	if rec.count("POST "+tracesPath) != 0 {
		t.Error("--no-telemetry sent spans")
	}
}

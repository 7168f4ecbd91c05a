package demo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"sidetone/internal/errs"
)

// evalRunsPerBranch runs are made for each of the two branches: pytest every night on main, Vitest every afternoon on
// refunds.
const evalRunsPerBranch = 10

// The story of the history, by run number within its branch (0 the oldest): the pull request "Reword the refund
// policy" breaks the refund cases and, with its longer prompt, slows the model down; it is merged to main, and main is
// repaired in the last run.
const (
	refundsBreaksAt = 4
	mainBreaksAt    = 6
	mainRepairedAt  = 9
	mainKilledAt    = 3 // the runner of this one died half-way: its run never finished
)

type evalPayload struct {
	Version string     `json:"version"`
	Run     evalRun    `json:"run"`
	Cases   []evalCase `json:"cases"`
}

type evalRun struct {
	RunID                   string         `json:"run_id"`
	Name                    *string        `json:"name"`
	AccountID               string         `json:"account_id"`
	AgentID                 string         `json:"agent_id"`
	AgentName               string         `json:"agent_name"`
	Framework               string         `json:"framework"`
	FrameworkVersion        string         `json:"framework_version"`
	TestingFramework        string         `json:"testing_framework"`
	TestingFrameworkVersion string         `json:"testing_framework_version"`
	StartedAt               float64        `json:"started_at"`
	FinishedAt              *float64       `json:"finished_at"`
	Status                  string         `json:"status"`
	CI                      map[string]any `json:"ci"`
}

type evalCase struct {
	CaseID     string           `json:"case_id"`
	Name       string           `json:"name"`
	File       string           `json:"file"`
	Status     string           `json:"status"`
	StartedAt  *float64         `json:"started_at"`
	FinishedAt *float64         `json:"finished_at"`
	DurationMS *int64           `json:"duration_ms"`
	UserInput  *string          `json:"user_input"`
	Events     []map[string]any `json:"events"`
	Judgments  []evalJudgment   `json:"judgments"`
	Failure    *evalFailure     `json:"failure"`
}

type evalJudgment struct {
	Intent    string `json:"intent"`
	Verdict   string `json:"verdict"`
	Reasoning string `json:"reasoning"`
}

type evalFailure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
}

// An evalHistoryRun is one run as its plugin streams it: posts in order, the last one complete unless it was killed.
type evalHistoryRun struct {
	id    string
	posts []evalPayload
}

// evalHistory makes the runs of both branches, the newest of each before now.
func evalHistory(seed int64, now time.Time) []evalHistoryRun {
	var out []evalHistoryRun
	for n := range evalRunsPerBranch {
		for _, branch := range []string{"main", "refunds"} {
			at := 2*time.Hour + 10*time.Minute
			if branch == "refunds" {
				at = 14*time.Hour + 40*time.Minute
			}
			newest := now.Truncate(24 * time.Hour).Add(at)
			if newest.After(now.Add(-10 * time.Minute)) {
				newest = newest.Add(-24 * time.Hour)
			}
			started := newest.Add(-time.Duration(evalRunsPerBranch-1-n) * 24 * time.Hour)
			out = append(out, makeEvalRun(seed, branch, n, started))
		}
	}
	return out
}

// stableUUID is a version 4 UUID made of its arguments, so that a second run of the demo replaces the first.
func stableUUID(parts ...any) string {
	h := sha256.Sum256([]byte(fmt.Sprintln(parts...)))
	h[6] = h[6]&0x0f | 0x40
	h[8] = h[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

var commitMessages = map[string][]string{
	"main": {"Bump livekit-agents to 1.7.0", "Shorten the greeting", "Log the order id with each tool call", "Retry the refund service once",
		"Fix a typo in the instructions", "Ask for the postcode first", "Merge pull request #482: Reword the refund policy", "Tune end-of-turn delay",
		"Cache carrier look-ups", "Restore the 30 day window in the refund policy"},
	"refunds": {"Start on the refund policy", "Move the policy to its own prompt", "Add test cases for partial refunds", "Polish wording",
		"Reword the refund policy", "Explain exchange rules", "Add examples to the prompt", "Mention gift cards", "Rebase on main", "Answer review comments"},
}

func makeEvalRun(seed int64, branch string, n int, started time.Time) evalHistoryRun {
	id := stableUUID("eval run", seed, branch, n)
	r := rand.New(rand.NewPCG(uint64(seed), uint64(n)<<8|uint64(len(branch))))
	broken := branch == "refunds" && n >= refundsBreaksAt || branch == "main" && n >= mainBreaksAt && n < mainRepairedAt
	run := evalRun{
		RunID: id, AccountID: "northwind", AgentID: "northwind-support", AgentName: "Northwind support",
		Framework: "livekit-agents", FrameworkVersion: "1.7.0", TestingFramework: "pytest", TestingFrameworkVersion: "8.4.2",
		StartedAt: epoch(started), Status: "running",
		CI: map[string]any{
			"provider": "github", "git_branch": branch, "git_sha": id[:7], "commit_message": commitMessages[branch][n],
			"run_url": fmt.Sprintf("https://github.com/northwind/agent/actions/runs/%d", 980+2*n+len(branch)%2),
		},
	}
	name := "nightly"
	if branch == "refunds" {
		name = "PR 482"
		run.CI["pull_request"] = "482"
		run.Framework, run.FrameworkVersion, run.TestingFramework, run.TestingFrameworkVersion = "livekit", "1.9.0", "vitest", "3.2.4"
	}
	run.Name = &name

	w := &evalWriter{r: r, vitest: branch == "refunds", broken: broken, t: epoch(started) + 1.4, id: id}
	var cases []evalCase
	for i, s := range evalScripts() {
		cases = append(cases, w.write(i, s))
	}
	end := run
	finished := micros(w.t + 0.6)
	end.FinishedAt, end.Status = &finished, "completed"
	if w.vitest && w.failed > 0 { // the Vitest plugin calls a run with failures failed, the pytest plugin does not
		end.Status = "failed"
	}
	h := evalHistoryRun{id: id}
	post := func(run evalRun, cases []evalCase) {
		if cases == nil {
			cases = []evalCase{}
		}
		h.posts = append(h.posts, evalPayload{"v0", run, cases})
	}
	switch {
	case branch == "main" && n == mainKilledAt:
		post(run, nil)
		post(run, cases[:5])
	case branch == "main" || n%3 == 0: // streamed: the start, batches of finished cases, everything
		post(run, nil)
		for i := 0; i < len(cases); i += 4 {
			post(run, cases[i:min(i+4, len(cases))])
		}
		post(end, cases)
	default:
		post(end, cases)
	}
	return h
}

// evalWriter plays test cases one after the other. Times are epoch seconds.
type evalWriter struct {
	r      *rand.Rand
	id     string
	vitest bool
	broken bool // the reworded policy is in
	t      float64
	failed int
}

func (w *evalWriter) write(i int, s evalScript) evalCase {
	c := evalCase{CaseID: stableUUID(w.id, i), Name: "test_" + s.name, File: "tests/test_" + s.file + ".py", Events: []map[string]any{}, Judgments: []evalJudgment{}}
	if w.vitest {
		c.Name, c.File = s.file+" > "+strings.ReplaceAll(s.name, "_", " "), "tests/"+s.file+".test.ts"
	}
	if s.skip {
		c.Status = "skipped"
		return c
	}
	started := micros(w.t)
	c.StartedAt = &started
	if s.user == "" || s.flaky && w.r.Float64() < 0.1 { // the fixture failed before the agent said a word
		w.t += 0.2
		w.end(&c, started, "errored", &evalFailure{"error", "ConnectionError: order service did not start", w.stack(c, "ConnectionError: order service did not start")})
		return c
	}
	c.UserInput = &s.user
	bad := s.breaks && w.broken
	reply, verdict, why := s.reply, "pass", s.why
	if bad {
		reply, verdict, why = s.badReply, "fail", s.badWhy
	}
	c.Events = append(c.Events, w.message("user", s.user, nil))
	if s.handoff != "" {
		c.Events = append(c.Events, map[string]any{"type": "agent_handoff", "from_agent": "Greeter", "to_agent": s.handoff})
	}
	if s.tool != "" {
		id := fmt.Sprintf("call_%08x", w.r.Uint32())
		c.Events = append(c.Events,
			map[string]any{"type": "function_call", "name": s.tool, "arguments": s.args, "call_id": id},
			map[string]any{"type": "function_call_output", "call_id": id, "output": s.output, "is_error": false})
		w.t += 0.3 + 0.2*w.r.Float64()
	}
	ttft := lognormal{0.5, 0.25}.draw(w.r)
	prompt := 780 + w.r.IntN(60) + len(s.user)/4
	if w.broken { // the longer prompt
		ttft *= 1.7
		prompt += 640
	}
	completion := len(reply)/4 + 2
	m := map[string]any{"llm_node_ttft": micros(ttft), "llm_metadata": modelJSON{"gpt-4.1-mini", "openai"}}
	if i%3 == 0 { // some plugins report usage per case, the others tokens per message
		c.Events = append(c.Events, w.message("assistant", reply, m),
			map[string]any{"type": "usage", "provider": "openai", "model": "gpt-4.1-mini", "input_tokens": prompt, "output_tokens": completion})
	} else {
		m["llm_prompt_tokens"], m["llm_completion_tokens"], m["llm_total_tokens"] = prompt, completion, prompt+completion
		c.Events = append(c.Events, w.message("assistant", reply, m))
	}
	w.t += ttft + float64(completion)/60 + 0.8
	for k, intent := range s.intents {
		j := evalJudgment{intent, verdict, why}
		if k > 0 { // only the first intent is about what the regression breaks
			j.Verdict, j.Reasoning = "pass", "The reply is short and friendly."
		}
		c.Judgments = append(c.Judgments, j)
		w.t += 0.9
	}
	if !bad {
		w.end(&c, started, "passed", nil)
		return c
	}
	if s.onlyJudge { // the test has no assertion of its own, so it passes and only the verdict says fail
		w.failed++
		w.end(&c, started, "passed", nil)
		return c
	}
	text := "the reply must satisfy: " + s.intents[0]
	w.end(&c, started, "failed", &evalFailure{"judge_failed", text, w.stack(c, "AssertionError: "+text)})
	return c
}

func (w *evalWriter) end(c *evalCase, started float64, status string, f *evalFailure) {
	finished := micros(w.t)
	ms := int64((finished - started) * 1000)
	c.Status, c.FinishedAt, c.DurationMS, c.Failure = status, &finished, &ms, f
	if f != nil {
		w.failed++
	}
	w.t += 0.05
}

func (w *evalWriter) message(role, text string, m map[string]any) map[string]any {
	e := map[string]any{"type": "message", "role": role, "content": text, "interrupted": false,
		"item": map[string]any{"id": fmt.Sprintf("item_%010x", w.r.Uint64()>>24), "type": "message", "role": role, "content": []string{text}}}
	if m != nil {
		e["metrics"] = m
	}
	return e
}

// stack is a traceback in the manner of the test framework.
func (w *evalWriter) stack(c evalCase, message string) string {
	at := 12 + w.r.IntN(80)
	if w.vitest {
		return fmt.Sprintf("%s\n    at %s:%d:9\n    at runTest (node_modules/vitest/dist/runner.js:146:14)", message, c.File, at)
	}
	return fmt.Sprintf("Traceback (most recent call last):\n  File \"/home/ci/agent/%s\", line %d, in %s\n    await result.expect.next_event().is_message(role=\"assistant\").judge(llm, intent=INTENT)\n%s\n", c.File, at, c.Name, message)
}

// sendEvals posts the history, run by run in order. A server without the route is noted, not an error.
func (p *plan) sendEvals(ctx context.Context) (int, error) {
	runs := evalHistory(p.seed, p.now)
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.id
	}
	if err := p.tryDelete(ctx, "/api/evals", "run_ids", ids); err != nil {
		return 0, err
	}
	const path = "/observability/evals/v0"
	err := p.each(ctx, "eval runs", len(runs), func(i int) error {
		for _, post := range runs[i].posts {
			if err := p.client.send(ctx, http.MethodPost, path, map[string]string{"Content-Type": "application/json"}, mustJSON(post)); err != nil {
				return err
			}
		}
		return nil
	})
	if errs.Is(err, errs.NotFound) {
		p.notes = append(p.notes, "this server has no "+path+": no eval runs were sent")
		return 0, nil
	}
	return len(runs), err
}

// Package eval is the domain of eval runs: what a test-framework plugin reports about a run of agent tests, how the
// posts of one run merge whatever their order, and what is computed from them. It knows neither SQL nor HTTP.
package eval

import (
	"encoding/json"
	"time"
)

// The states of a run as plugins send them.
const (
	StatusQueued    = "queued"
	StatusRunning   = "running"
	StatusCompleted = "completed"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
)

// RunStatuses lists the states a run may have, in the order of the contract.
var RunStatuses = []string{StatusQueued, StatusRunning, StatusCompleted, StatusFailed, StatusCancelled}

// The states of a case as plugins send them. StatusFailed is shared with runs.
const (
	CasePassed  = "passed"
	CaseFailed  = StatusFailed
	CaseErrored = "errored"
	CaseSkipped = "skipped"
)

// CaseStatuses lists the states a case may have.
var CaseStatuses = []string{CasePassed, CaseFailed, CaseErrored, CaseSkipped}

// VerdictFail is the verdict that turns a passed case into a failed one.
const VerdictFail = "fail"

// Limits of one payload. Lengths are in characters (Unicode code points).
const (
	MaxCases      = 5000              // cases in one payload: more is errs.TooLarge
	MaxNesting    = 200               // levels of objects and arrays, the document itself being the first
	MaxFields     = 100               // violated rules that one error lists
	MaxIdentifier = 512               // account, agent, frameworks and their versions: as long as an alert rule may name
	MaxName       = 10_000            // name of a run or a case, file of a case: parametrised tests have long ones
	MaxUserInput  = 1_000_000         // user_input of a case
	MaxDurationMS = 1_000_000_000_000 // duration_ms of a case: some 31 years
)

// Run is one run of a test suite. Strings are "" and times are zero when unknown: null in the API.
type Run struct {
	ID                      string // UUID, lower-case
	Name                    string
	AccountID               string
	AgentID                 string
	AgentName               string
	Framework               string // of the agent: livekit, pipecat, ...
	FrameworkVersion        string
	TestingFramework        string // pytest, vitest, ...
	TestingFrameworkVersion string

	StartedAt  time.Time
	FinishedAt time.Time // zero until a post says that the run has finished
	Status     string    // as merged from the posts; EffectiveStatus is what readers see

	CI json.RawMessage // object as sent, nil when null

	LastActivityAt time.Time // receipt of the last post
	CreatedAt      time.Time // receipt of the first post

	RunAggregate // of all stored cases
}

// DurationMS is the time from start to finish in milliseconds, nil while the run has not finished or when its clock
// went backwards.
func (r *Run) DurationMS() *int64 { return spanMS(r.StartedAt, r.FinishedAt) }

// Case is one test of a run.
type Case struct {
	CaseSummary

	RunID      string
	StartedAt  time.Time // zero when unknown
	FinishedAt time.Time // zero when unknown
	UserInput  string    // "" when null

	Events    json.RawMessage // array of objects as sent; nil in a list that leaves events out
	Judgments json.RawMessage // array of objects as sent
	Failure   json.RawMessage // object as sent, nil when null

	// Position is the index of the case in the payload that brought it. Cases of a run are shown by
	// (CreatedAt, Position, ID), which is the order in which they ran.
	Position  int
	CreatedAt time.Time // receipt of the first post that had this case

	// Rank orders the versions of one case: the store replaces a case only by one of greater rank. See caseRank.
	Rank string

	// Usage is the token usage by model, as far as Parse found it. It is not stored: CostUSD is.
	Usage []ModelUsage

	verdicts []Verdict // what Parse found in Judgments, nil when the case comes from the store
}

// CaseSummary is what lists, aggregates and comparisons read of a case without opening its events: typed columns and
// two short lists.
type CaseSummary struct {
	ID     string // UUID, lower-case
	Name   string
	File   string // "" when null
	Status string // as sent: passed, failed, errored, skipped
	// JudgeFailed is set when some judgment's verdict is fail, whatever the status.
	JudgeFailed bool
	DurationMS  *int64 // as sent, else finished minus started

	TTFT []float64 // LLM time to first token of each message, ms with up to three decimals
	TTFB []float64 // TTS time to first byte of each message, ms with up to three decimals

	TurnCount         int // assistant messages
	ToolCallCount     int
	InterruptionCount int // assistant messages that were interrupted
	AgentHandoffCount int

	Tokens Tokens
	// CostUSD is nil when no tokens were reported, and when a model with tokens has no known price.
	CostUSD *float64
}

// Outcome is how the case counts: its status, except that a passed case with a failing judge counts as failed.
func (c *CaseSummary) Outcome() string {
	if c.Status == CasePassed && c.JudgeFailed {
		return CaseFailed
	}
	return c.Status
}

// Tokens counts LLM tokens. Cached is the part of Prompt that was read from a cache.
type Tokens struct {
	Prompt     int64
	Completion int64
	Total      int64
	Cached     int64
}

func (t *Tokens) add(o Tokens) {
	t.Prompt += o.Prompt
	t.Completion += o.Completion
	t.Total += o.Total
	t.Cached += o.Cached
}

// ModelUsage is the usage of one model within a case. Provider and Model are "" when unknown.
type ModelUsage struct {
	Provider string
	Model    string
	Tokens   Tokens
}

// Verdict is one judgment as alert rules count it.
type Verdict struct {
	Judge   string // judge_name, else name, else intent; "" when none is given
	Verdict string // lower-case: pass, fail, maybe, or what the judge said
}

// Payload is one parsed post.
type Payload struct {
	Run   Run
	Cases []Case // distinct ids, in the order sent
}

// Pricer tells what tokens of a model cost in USD; ok is false for an unknown model. input includes cached.
type Pricer func(provider, model string, input, cached, output int64) (usd float64, ok bool)

// Price sets CostUSD from Usage. It never leaves a partial sum: one unknown model makes the cost unknown.
func (c *Case) Price(price Pricer) {
	c.CostUSD = nil
	sum, used := 0.0, false
	for _, u := range c.Usage {
		if u.Tokens == (Tokens{}) {
			continue
		}
		usd, ok := price(u.Provider, u.Model, u.Tokens.Prompt, u.Tokens.Cached, u.Tokens.Completion)
		if !ok {
			return
		}
		sum, used = sum+usd, true
	}
	if used {
		c.CostUSD = &sum
	}
}

func spanMS(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() || to.Before(from) {
		return nil
	}
	ms := to.Sub(from).Round(time.Millisecond).Milliseconds()
	return &ms
}

package httpapi

import (
	"encoding/json"
	"time"

	"sidetone/internal/eval"
	"sidetone/internal/stamp"
)

// EvalRunRow is one eval run as lists show it. An unknown value is null.
type EvalRunRow struct {
	RunID                   string          `json:"run_id"`
	Name                    *string         `json:"name"`
	AccountID               *string         `json:"account_id"`
	AgentID                 *string         `json:"agent_id"`
	AgentName               *string         `json:"agent_name"`
	Framework               *string         `json:"framework" doc:"Of the agent: livekit, pipecat, ..."`
	FrameworkVersion        *string         `json:"framework_version"`
	TestingFramework        string          `json:"testing_framework" doc:"pytest, vitest, ..."`
	TestingFrameworkVersion *string         `json:"testing_framework_version"`
	StartedAt               *stamp.Time     `json:"started_at"`
	FinishedAt              *stamp.Time     `json:"finished_at" doc:"null while the run has not said that it ended"`
	DurationMS              *int64          `json:"duration_ms"`
	Status                  string          `json:"status" enum:"queued,running,completed,failed,cancelled" doc:"A run without a post for an hour that never said it ended is completed"`
	CI                      json.RawMessage `json:"ci" doc:"What the plugin knows of the CI job, as sent, or null"`
	LastActivityAt          *stamp.Time     `json:"last_activity_at" doc:"When the last post of the run arrived"`
	CreatedAt               *stamp.Time     `json:"created_at" doc:"When the first post of the run arrived"`
	eval.Tally
	eval.Metrics
}

func viewEvalRun(r *eval.Run, now time.Time) EvalRunRow {
	return EvalRunRow{
		RunID: r.ID, Name: orNull(r.Name), AccountID: orNull(r.AccountID), AgentID: orNull(r.AgentID), AgentName: orNull(r.AgentName),
		Framework: orNull(r.Framework), FrameworkVersion: orNull(r.FrameworkVersion), TestingFramework: r.TestingFramework,
		TestingFrameworkVersion: orNull(r.TestingFrameworkVersion), StartedAt: stamp.Ptr(r.StartedAt), FinishedAt: stamp.Ptr(r.FinishedAt),
		DurationMS: r.DurationMS(), Status: r.EffectiveStatus(now), CI: orJSONNull(r.CI), LastActivityAt: stamp.Ptr(r.LastActivityAt),
		CreatedAt: stamp.Ptr(r.CreatedAt), Tally: r.Tally, Metrics: r.Metrics,
	}
}

// evalRunDetail is a run with its cases, in the order in which they ran.
type evalRunDetail struct {
	Envelope
	EvalRunRow
	Cases []EvalCaseView `json:"cases"`
}

// EvalCaseView is one case of a run.
type EvalCaseView struct {
	CaseID      string          `json:"case_id"`
	RunID       string          `json:"run_id"`
	Name        string          `json:"name"`
	File        *string         `json:"file"`
	Status      string          `json:"status" enum:"passed,failed,errored,skipped" doc:"As the plugin sent it, whatever the judges said"`
	JudgeFailed bool            `json:"judge_failed" doc:"Some judge said fail: then a passed case counts as failed"`
	StartedAt   *stamp.Time     `json:"started_at"`
	FinishedAt  *stamp.Time     `json:"finished_at"`
	DurationMS  *int64          `json:"duration_ms"`
	UserInput   *string         `json:"user_input"`
	Events      json.RawMessage `json:"events,omitempty" doc:"The transcript as sent; left out in a run's list of cases unless include=events"`
	Judgments   json.RawMessage `json:"judgments" doc:"As sent"`
	Failure     json.RawMessage `json:"failure" doc:"As sent, or null"`
	CreatedAt   stamp.Time      `json:"created_at" doc:"When the first post with this case arrived"`
	eval.Metrics
}

func viewEvalCase(c *eval.Case) EvalCaseView {
	return EvalCaseView{
		CaseID: c.ID, RunID: c.RunID, Name: c.Name, File: orNull(c.File), Status: c.Status, JudgeFailed: c.JudgeFailed,
		StartedAt: stamp.Ptr(c.StartedAt), FinishedAt: stamp.Ptr(c.FinishedAt), DurationMS: c.DurationMS, UserInput: orNull(c.UserInput),
		Events: c.Events, Judgments: orJSONNull(c.Judgments), Failure: orJSONNull(c.Failure), CreatedAt: stamp.Of(c.CreatedAt),
		Metrics: c.CaseSummary.Metrics(),
	}
}

package httpapi

import (
	"encoding/json"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"sidetone/internal/report"
	"sidetone/internal/session"
	"sidetone/internal/stamp"
)

// SessionRow is one session as lists show it. An unknown value is null.
type SessionRow struct {
	ID                 string      `json:"id" doc:"The id used in URLs"`
	SessionID          string      `json:"session_id"`
	JobID              *string     `json:"job_id"`
	AccountID          *string     `json:"account_id"`
	AgentID            *string     `json:"agent_id"`
	AgentName          *string     `json:"agent_name"`
	Transport          *string     `json:"transport"`
	State              string      `json:"state" enum:"active,ended"`
	StartedAt          *stamp.Time `json:"started_at"`
	EndedAt            *stamp.Time `json:"ended_at" doc:"null while the call is active"`
	DurationMS         *int64      `json:"duration_ms"`
	TurnCount          int         `json:"turn_count" doc:"Assistant messages"`
	InterruptionCount  int         `json:"interruption_count"`
	ToolCallCount      int         `json:"tool_call_count"`
	P95UserPerceivedMS *int64      `json:"p95_user_perceived_ms" doc:"Nearest-rank p95 of the latency the user perceived, in ms"`
	HasSTT             bool        `json:"has_stt"`
	HasLLM             bool        `json:"has_llm"`
	HasTTS             bool        `json:"has_tts"`
	Outcome            *string     `json:"outcome"`
	EvalPassCount      int         `json:"eval_pass_count"`
	EvalFailCount      int         `json:"eval_fail_count"`
	RecordURL          *string     `json:"record_url" doc:"Where the recording is, relative to this server, or null"`
	EstimatedCostUSD   *float64    `json:"estimated_cost_usd"`
	CreatedAt          stamp.Time  `json:"created_at"`
	Incomplete         []string    `json:"incomplete" doc:"Why this session is not complete; empty when everything expected arrived"`
	MatchSnippet       *string     `json:"match_snippet,omitempty" doc:"With q: the best passage, HTML-escaped, matches in <mark>"`
}

func viewRow(s *session.Session) SessionRow {
	row := SessionRow{
		ID: s.ID, SessionID: s.ID, JobID: orNull(s.JobID), AccountID: orNull(s.AccountID), AgentID: orNull(s.AgentID),
		AgentName: orNull(s.AgentName), Transport: orNull(s.Transport), State: s.State(), StartedAt: stamp.Ptr(s.StartedAt),
		EndedAt: stamp.Ptr(s.EndedAt), DurationMS: s.DurationMS, TurnCount: s.TurnCount, InterruptionCount: s.InterruptionCount,
		ToolCallCount: s.ToolCallCount, P95UserPerceivedMS: s.P95UserPerceivedMS, HasSTT: s.HasSTT, HasLLM: s.HasLLM,
		HasTTS: s.HasTTS, Outcome: orNull(s.Outcome), EvalPassCount: s.EvalPassCount, EvalFailCount: s.EvalFailCount,
		EstimatedCostUSD: s.EstimatedCostUSD, CreatedAt: stamp.Of(s.CreatedAt), Incomplete: s.Incomplete,
	}
	if row.Incomplete == nil {
		row.Incomplete = []string{}
	}
	if s.Recording != nil {
		u := "/api/sessions/" + url.PathEscape(s.ID) + "/recording"
		row.RecordURL = &u
	}
	return row
}

// sessionDetail is everything about one session.
type sessionDetail struct {
	Envelope
	SessionRow
	RoomName       *string           `json:"room_name"`
	SDKVersion     *string           `json:"sdk_version"`
	AudioStartedAt *stamp.Time       `json:"audio_started_at" doc:"t=0 of the recording"`
	FirstSignalAt  *stamp.Time       `json:"first_signal_at"`
	LastSignalAt   *stamp.Time       `json:"last_signal_at"`
	Signals        signalsView       `json:"signals" doc:"When each kind of signal first arrived, or null"`
	ChatHistory    []json.RawMessage `json:"chat_history" doc:"The items as the SDK sent them, keys in snake_case, times in epoch seconds"`
	SessionMetrics session.Metrics   `json:"session_metrics"`
	RawReport      json.RawMessage   `json:"raw_report" doc:"The report's body as it was sent, or null"`
	Events         json.RawMessage   `json:"events"`
	Options        json.RawMessage   `json:"options"`
	Tags           []tagView         `json:"tags"`
	Evaluations    []evaluationView  `json:"evaluations"`
	Outcome        *outcomeView      `json:"outcome"`
	Usage          []json.RawMessage `json:"usage"`
}

type signalsView struct {
	Report      *stamp.Time `json:"report"`
	Transcript  *stamp.Time `json:"transcript"`
	Audio       *stamp.Time `json:"audio"`
	Logs        *stamp.Time `json:"logs"`
	Traces      *stamp.Time `json:"traces"`
	Metrics     *stamp.Time `json:"metrics"`
	Evaluations *stamp.Time `json:"evaluations"`
	Outcome     *stamp.Time `json:"outcome"`
}

type tagView struct {
	Name       string          `json:"name"`
	Metadata   json.RawMessage `json:"metadata"`
	Source     string          `json:"source" enum:"report,otlp"`
	ObservedAt *stamp.Time     `json:"observed_at"`
	CreatedAt  *stamp.Time     `json:"created_at"`
}

type evaluationView struct {
	Source       string          `json:"source" enum:"report,otlp,tag" doc:"tag: all that came is the tag lk.judge.NAME:VERDICT"`
	JudgeName    *string         `json:"judge_name"`
	Tag          *string         `json:"tag"`
	Verdict      *string         `json:"verdict"`
	Reasoning    *string         `json:"reasoning"`
	Instructions *string         `json:"instructions"`
	ObservedAt   *stamp.Time     `json:"observed_at"`
	Raw          json.RawMessage `json:"raw"`
	CreatedAt    *stamp.Time     `json:"created_at"`
}

type outcomeView struct {
	Source     string          `json:"source" enum:"report,otlp,tag"`
	Outcome    string          `json:"outcome"`
	Reason     *string         `json:"reason"`
	ObservedAt *stamp.Time     `json:"observed_at"`
	Raw        json.RawMessage `json:"raw"`
	CreatedAt  *stamp.Time     `json:"created_at"`
}

// TransformSchema tells the OpenAPI document that there may be no outcome.
func (outcomeView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Nullable = true
	return s
}

func viewDetail(d *session.Detail) sessionDetail {
	s := &d.Session
	sig := s.Signals
	out := sessionDetail{
		SessionRow: viewRow(s), RoomName: orNull(s.RoomName), SDKVersion: orNull(s.SDKVersion),
		AudioStartedAt: stamp.Ptr(s.AudioStartedAt), FirstSignalAt: stamp.Ptr(s.FirstSignalAt), LastSignalAt: stamp.Ptr(s.LastSignalAt),
		Signals: signalsView{stamp.Ptr(sig.Report), stamp.Ptr(sig.Transcript), stamp.Ptr(sig.Audio), stamp.Ptr(sig.Logs),
			stamp.Ptr(sig.Traces), stamp.Ptr(sig.Metrics), stamp.Ptr(sig.Evaluations), stamp.Ptr(sig.Outcome)},
		ChatHistory:    make([]json.RawMessage, len(d.Items)),
		SessionMetrics: d.Metrics, RawReport: jsonNull, Events: orJSONNull(d.Events), Options: orJSONNull(d.Options),
		Tags: []tagView{}, Evaluations: []evaluationView{}, Usage: []json.RawMessage{},
	}
	if d.ReportDoc != nil {
		out.RawReport = orJSONNull(report.RawOf(d.ReportDoc))
	}
	for i, it := range d.Items {
		out.ChatHistory[i] = report.NormalizeItem(it.Raw)
	}
	for _, t := range d.Tags {
		out.Tags = append(out.Tags, tagView{t.Name, orJSONNull(t.Metadata), t.Source, stamp.Ptr(t.ObservedAt), stamp.Ptr(t.CreatedAt)})
	}
	for _, e := range d.Evaluations {
		out.Evaluations = append(out.Evaluations, evaluationView{e.Source, orNull(e.JudgeName), orNull(e.Tag), orNull(e.Verdict),
			orNull(e.Reasoning), orNull(e.Instructions), stamp.Ptr(e.ObservedAt), orJSONNull(e.Raw), stamp.Ptr(e.CreatedAt)})
	}
	if o := d.Outcome; o != nil {
		out.Outcome = &outcomeView{o.Source, o.Outcome, orNull(o.Reason), stamp.Ptr(o.ObservedAt), orJSONNull(o.Raw), stamp.Ptr(o.CreatedAt)}
	}
	for _, u := range d.Usage {
		out.Usage = append(out.Usage, orJSONNull(u.Raw))
	}
	return out
}

var jsonNull = json.RawMessage("null")

func orJSONNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return jsonNull
	}
	return raw
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

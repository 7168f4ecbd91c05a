// Package session is the domain of one call: what was reported about it, how the signals about it merge into one
// session whatever their order, and what is computed from it. It knows neither SQL nor HTTP.
package session

import (
	"encoding/json"
	"time"
)

// Session is what lists show and filters read of one call. Times are zero when unknown; pointers are nil when
// unknown, which is never the same as 0.
type Session struct {
	ID        string // as in URLs: the room, or ROOM:JOB for a second job in the same room
	JobID     string
	RoomName  string
	AccountID string
	AgentID   string
	AgentName string
	Transport string

	StartedAt      time.Time
	EndedAt        time.Time // zero while the call is active
	AudioStartedAt time.Time // t=0 of the recording
	DurationMS     *int64

	TurnCount          int // assistant messages
	InterruptionCount  int
	ToolCallCount      int
	P95UserPerceivedMS *int64
	HasSTT             bool
	HasLLM             bool
	HasTTS             bool

	Outcome          string // lower-case, "" when none
	EvalPassCount    int
	EvalFailCount    int
	EstimatedCostUSD *float64
	SDKVersion       string

	Recording *Recording
	CreatedAt time.Time

	FirstSignalAt time.Time
	LastSignalAt  time.Time
	Signals       Signals
	Incomplete    []string // reasons, empty when everything expected arrived
}

// State is "active" until the call is known to have ended.
func (s *Session) State() string {
	if s.EndedAt.IsZero() {
		return StateActive
	}
	return StateEnded
}

// The states of a session.
const (
	StateActive = "active"
	StateEnded  = "ended"
)

// Recording is a stored audio file.
type Recording struct {
	Key    string // the blob store's name for it, never made from a client's string
	Size   int64  // bytes
	SHA256 string // hex

	Taken *Taken // how a new recording was taken in; nil on one that was stored before
}

// Taken is where the bytes of a new recording are, for the store to note.
type Taken struct {
	Folder  string // id of the folder
	Spooled bool   // to be moved to the object store
	At      time.Time
}

// Report is one uploaded session report, parsed. It is computed from ReportDoc and never stored itself.
type Report struct {
	SessionID string // of a JSON header; "" when the header is protobuf
	RoomID    string
	JobID     string // of the header: part of the identity
	RoomName  string

	AccountID string // each resolved as the contract orders: header, body, tags, tag metadata
	AgentID   string
	AgentName string
	Transport string

	HeaderStart time.Time // start_time of a JSON header: the start of the call
	AudioStart  time.Time // start_time of any header: t=0 of the recording
	EndedAt     time.Time // ended_at of a JSON header
	Timestamp   time.Time // the report's own timestamp: when the SDK made it
	BodyStart   time.Time // started_at of the body, when it has one
	BodyJobID   string    // job_id of the body: shown when the identity has none

	SDKVersion string
	Simulated  bool
	Redacted   bool

	HasTranscript bool // a chat history was there, even an empty one
	Items         []Item
	Tags          []Tag
	Evaluations   []Evaluation
	Outcome       *Outcome
	Usage         []Usage

	Options json.RawMessage // object or null, as sent
	Events  json.RawMessage // array or null, as sent
}

// Item kinds the program understands; any other type is kept and shown.
const (
	ItemMessage      = "message"
	ItemFunctionCall = "function_call"
	ItemFunctionOut  = "function_call_output"
	ItemHandoff      = "agent_handoff"
	ItemConfigUpdate = "agent_config_update"
)

// Message roles.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Item is one entry of a chat history.
type Item struct {
	ID        string
	Type      string
	CreatedAt time.Time // zero when unknown

	Role                 string
	Text                 string // text parts joined by newlines, display markup removed
	Interrupted          bool
	TranscriptConfidence *float64
	Metrics              ItemMetrics

	CallID    string
	Name      string
	Arguments string // JSON text as the model wrote it
	Output    string
	IsError   bool

	// Raw is the item as sent. A report normalises it (snake_case keys, created_at in epoch seconds) when it is shown.
	Raw json.RawMessage
}

// ItemMetrics are the per-message measurements, durations in seconds, nil when not measured.
type ItemMetrics struct {
	StartedSpeakingAt        time.Time
	StoppedSpeakingAt        time.Time
	TranscriptionDelay       *float64
	EndOfTurnDelay           *float64
	OnUserTurnCompletedDelay *float64
	LLMNodeTTFT              *float64
	TTSNodeTTFB              *float64
	E2ELatency               *float64

	LLMPromptTokens     *int64
	LLMCompletionTokens *int64
	LLMTotalTokens      *int64
	LLMCacheReadTokens  *int64
	TTSCharacters       *int64

	LLM, TTS, STT Model
}

// Model names a provider and its model; empty strings when unknown.
type Model struct {
	Provider string
	Name     string
}

// Tag is a label on a session. Name is unique within a session.
type Tag struct {
	Name       string
	Metadata   json.RawMessage // object or null
	Source     string          // "report" or "otlp"
	ObservedAt time.Time       // when it was set, as the client says; zero when unknown
	CreatedAt  time.Time       // when it first reached us
}

// Evaluation is one judge's verdict on a session.
type Evaluation struct {
	Source       string // "report", "otlp", or "tag" when all we have is the tag lk.judge.NAME:VERDICT
	JudgeName    string
	Tag          string
	Verdict      string // lower-case: pass, fail, maybe, or what the judge said
	Reasoning    string
	Instructions string
	ObservedAt   time.Time
	CreatedAt    time.Time       // when it first reached us: alert windows count by this
	Raw          json.RawMessage // as sent
}

// Outcome is how a call ended for the business, with the reason given for it.
type Outcome struct {
	Source     string // "report", "otlp" or "tag"
	Outcome    string // lower-case
	Reason     string
	ObservedAt time.Time
	CreatedAt  time.Time
	Raw        json.RawMessage
}

// Usage is one entry of a session's usage totals. Durations are seconds; zero means not reported.
type Usage struct {
	Type     string // llm_usage, tts_usage, stt_usage, ...
	Provider string
	Model    string

	InputTokens       int64
	InputCachedTokens int64
	OutputTokens      int64
	CharactersCount   int64
	AudioDuration     float64
	SessionDuration   float64

	Raw json.RawMessage // as sent, keys in snake_case
}

// Detail is everything known about one session.
type Detail struct {
	Session     Session
	Items       []Item
	Metrics     Metrics
	ReportDoc   []byte // the stored report document, nil when no report came
	Events      json.RawMessage
	Options     json.RawMessage
	Tags        []Tag
	Evaluations []Evaluation
	Outcome     *Outcome
	Usage       []Usage
}

// Signals says when each kind of signal first arrived; zero when it never did.
type Signals struct {
	Report, Transcript, Audio, Logs, Traces, Metrics, Evaluations, Outcome time.Time
}

package session

import (
	"encoding/json"
	"time"
)

// The stored form of LogSignals: short keys, nothing that is empty. Each type is converted from and to its domain
// type as a whole, so a field added there and forgotten here does not compile instead of being lost.

type signalsDoc struct {
	StartedAt       time.Time       `json:"started_at,omitzero"`
	ReportTimestamp time.Time       `json:"report_timestamp,omitzero"`
	Options         json.RawMessage `json:"options,omitempty"`
	Usage           []usageDoc      `json:"usage,omitempty"`
	SDKVersion      string          `json:"sdk_version,omitempty"`
	AgentName       string          `json:"agent_name,omitempty"`
	RoomName        string          `json:"room_name,omitempty"`
	Tags            []tagDoc        `json:"tags,omitempty"`
	Items           []itemDoc       `json:"items,omitempty"`
	Evaluations     []evaluationDoc `json:"evaluations,omitempty"`
	Outcome         *outcomeDoc     `json:"outcome,omitempty"`
	FirstAt         time.Time       `json:"first_at,omitzero"`
	LastAt          time.Time       `json:"last_at,omitzero"`
}

type usageDoc struct {
	Type              string          `json:"type,omitempty"`
	Provider          string          `json:"provider,omitempty"`
	Model             string          `json:"model,omitempty"`
	InputTokens       int64           `json:"input_tokens,omitempty"`
	InputCachedTokens int64           `json:"input_cached_tokens,omitempty"`
	OutputTokens      int64           `json:"output_tokens,omitempty"`
	CharactersCount   int64           `json:"characters_count,omitempty"`
	AudioDuration     float64         `json:"audio_duration,omitempty"`
	SessionDuration   float64         `json:"session_duration,omitempty"`
	Raw               json.RawMessage `json:"raw,omitempty"`
}

type tagDoc struct {
	Name       string          `json:"name"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Source     string          `json:"source,omitempty"`
	ObservedAt time.Time       `json:"observed_at,omitzero"`
	CreatedAt  time.Time       `json:"created_at,omitzero"`
}

type evaluationDoc struct {
	Source       string          `json:"source,omitempty"`
	JudgeName    string          `json:"judge_name,omitempty"`
	Tag          string          `json:"tag,omitempty"`
	Verdict      string          `json:"verdict,omitempty"`
	Reasoning    string          `json:"reasoning,omitempty"`
	Instructions string          `json:"instructions,omitempty"`
	ObservedAt   time.Time       `json:"observed_at,omitzero"`
	CreatedAt    time.Time       `json:"created_at,omitzero"`
	Raw          json.RawMessage `json:"raw,omitempty"`
}

type outcomeDoc struct {
	Source     string          `json:"source,omitempty"`
	Outcome    string          `json:"outcome,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	ObservedAt time.Time       `json:"observed_at,omitzero"`
	CreatedAt  time.Time       `json:"created_at,omitzero"`
	Raw        json.RawMessage `json:"raw,omitempty"`
}

type itemDoc struct {
	itemFields
	M metricsDoc `json:"metrics,omitzero"`
}

type itemFields struct {
	ID                   string          `json:"id,omitempty"`
	Type                 string          `json:"type,omitempty"`
	CreatedAt            time.Time       `json:"created_at,omitzero"`
	Role                 string          `json:"role,omitempty"`
	Text                 string          `json:"text,omitempty"`
	Interrupted          bool            `json:"interrupted,omitempty"`
	TranscriptConfidence *float64        `json:"transcript_confidence,omitempty"`
	Metrics              ItemMetrics     `json:"-"` // in itemDoc.M
	CallID               string          `json:"call_id,omitempty"`
	Name                 string          `json:"name,omitempty"`
	Arguments            string          `json:"arguments,omitempty"`
	Output               string          `json:"output,omitempty"`
	IsError              bool            `json:"is_error,omitempty"`
	Raw                  json.RawMessage `json:"raw,omitempty"`
}

type metricsDoc struct {
	StartedSpeakingAt        time.Time `json:"started_speaking_at,omitzero"`
	StoppedSpeakingAt        time.Time `json:"stopped_speaking_at,omitzero"`
	TranscriptionDelay       *float64  `json:"transcription_delay,omitempty"`
	EndOfTurnDelay           *float64  `json:"end_of_turn_delay,omitempty"`
	OnUserTurnCompletedDelay *float64  `json:"on_user_turn_completed_delay,omitempty"`
	LLMNodeTTFT              *float64  `json:"llm_node_ttft,omitempty"`
	TTSNodeTTFB              *float64  `json:"tts_node_ttfb,omitempty"`
	E2ELatency               *float64  `json:"e2e_latency,omitempty"`
	LLMPromptTokens          *int64    `json:"llm_prompt_tokens,omitempty"`
	LLMCompletionTokens      *int64    `json:"llm_completion_tokens,omitempty"`
	LLMTotalTokens           *int64    `json:"llm_total_tokens,omitempty"`
	LLMCacheReadTokens       *int64    `json:"llm_cache_read_tokens,omitempty"`
	TTSCharacters            *int64    `json:"tts_characters,omitempty"`
	LLM                      Model     `json:"llm,omitzero"`
	TTS                      Model     `json:"tts,omitzero"`
	STT                      Model     `json:"stt,omitzero"`
}

func newItemDoc(it *Item) itemDoc {
	return itemDoc{itemFields: itemFields(*it), M: metricsDoc(it.Metrics)}
}

func (d *itemDoc) item() Item {
	it := Item(d.itemFields)
	it.Metrics = ItemMetrics(d.M)
	return it
}

package session

import (
	"encoding/json"

	"sidetone/internal/stamp"
)

// Metrics is what is computed from a chat history: session_metrics in the API. Durations are integer milliseconds;
// a field that was not measured is left out, never 0.
type Metrics struct {
	Turns     []Turn     `json:"turns"`
	ToolCalls []ToolCall `json:"tool_calls"`
	Summary   Summary    `json:"summary"`
}

// Turn is one reply of the agent with what led to it, or at the end what got no reply (AgentText nil).
type Turn struct {
	TurnNumber             int         `json:"turn_number" doc:"1 for the first turn"`
	TurnID                 string      `json:"turn_id" doc:"Id of the assistant message, or of the first left-over item of a partial turn"`
	UserText               *string     `json:"user_text"`
	AgentText              *string     `json:"agent_text" doc:"null in a partial last turn that got no reply"`
	AgentFirst             bool        `json:"agent_first" doc:"The agent spoke and no user message came before it in the whole session: a greeting"`
	Interrupted            bool        `json:"interrupted"`
	UserStartedSpeakingAt  *stamp.Time `json:"user_started_speaking_at,omitempty"`
	UserStoppedSpeakingAt  *stamp.Time `json:"user_stopped_speaking_at,omitempty"`
	AgentStartedSpeakingAt *stamp.Time `json:"agent_started_speaking_at,omitempty"`
	AgentStoppedSpeakingAt *stamp.Time `json:"agent_stopped_speaking_at,omitempty"`

	UserPerceivedMS *int64 `json:"user_perceived_ms,omitempty" doc:"e2e_latency, else llm_node_ttft"`
	STTDelayMS      *int64 `json:"stt_delay_ms,omitempty" doc:"End of speech to final transcript"`
	LLMTTFTMS       *int64 `json:"llm_ttft_ms,omitempty" doc:"LLM time to first token"`
	TTSTTFBMS       *int64 `json:"tts_ttfb_ms,omitempty" doc:"TTS time to first byte"`
	TurnDecisionMS  *int64 `json:"turn_decision_ms,omitempty" doc:"End-of-turn delay; includes the wait for the transcript"`
	HookDelayMS     *int64 `json:"hook_delay_ms,omitempty" doc:"Time in the developer's on_user_turn_completed hook"`
	UserSpeechMS    *int64 `json:"user_speech_ms,omitempty"`
	AgentSpeechMS   *int64 `json:"agent_speech_ms,omitempty"`
	TTFAMS          *int64 `json:"ttfa_ms,omitempty" doc:"User stopped to agent started speaking, at least 0"`
	InterTurnGapMS  *int64 `json:"inter_turn_gap_ms,omitempty" doc:"Agent stopped (turn before) to user started speaking, at least 0"`

	UserTranscriptConfidence *float64 `json:"user_transcript_confidence,omitempty"`
	LLMPromptTokens          *int64   `json:"llm_prompt_tokens,omitempty"`
	LLMCompletionTokens      *int64   `json:"llm_completion_tokens,omitempty"`
	LLMTotalTokens           *int64   `json:"llm_total_tokens,omitempty"`
	TTSCharacters            *int64   `json:"tts_characters,omitempty" doc:"Only where TTS ran"`

	ToolCalls   []ToolCall `json:"tool_calls"`
	STTProvider string     `json:"stt_provider,omitempty"`
	STTModel    string     `json:"stt_model,omitempty"`
	LLMProvider string     `json:"llm_provider,omitempty"`
	LLMModel    string     `json:"llm_model,omitempty"`
	TTSProvider string     `json:"tts_provider,omitempty"`
	TTSModel    string     `json:"tts_model,omitempty"`
}

// ToolCall is a function call joined with its output by call_id.
type ToolCall struct {
	Name       string          `json:"name"`
	CallID     string          `json:"call_id"`
	Arguments  json.RawMessage `json:"arguments" doc:"Always an object; {\"_raw\": text} when the model did not write JSON"`
	Output     *string         `json:"output" doc:"null when no output came"`
	IsError    bool            `json:"is_error"`
	TurnNumber int             `json:"turn_number"`
	Timestamp  *stamp.Time     `json:"timestamp"`
}

// Summary aggregates a session's turns.
type Summary struct {
	TotalTurns               int                     `json:"total_turns"`
	TotalLLMTokens           int64                   `json:"total_llm_tokens"`
	TotalLLMPromptTokens     int64                   `json:"total_llm_prompt_tokens"`
	TotalLLMCompletionTokens int64                   `json:"total_llm_completion_tokens"`
	TotalTTSCharacters       int64                   `json:"total_tts_characters"`
	TotalToolCalls           int                     `json:"total_tool_calls"`
	Interruptions            int                     `json:"interruptions"`
	InterruptionRate         *float64                `json:"interruption_rate,omitempty" doc:"Share of agent turns that were interrupted"`
	AvgUserPerceivedMS       *int64                  `json:"avg_user_perceived_ms,omitempty"`
	P95UserPerceivedMS       *int64                  `json:"p95_user_perceived_ms,omitempty"`
	Latency                  map[string]Distribution `json:"latency" doc:"By stage: perceived, llm_ttft, tts_ttfb, stt, turn_decision; a stage without a sample is left out"`
	Voice                    *Voice                  `json:"voice,omitempty" doc:"Left out when nothing was spoken"`
	Providers                Providers               `json:"providers"`
}

// Distribution summarises samples in milliseconds; percentiles are nearest-rank.
type Distribution struct {
	Avg   int64 `json:"avg"`
	P50   int64 `json:"p50"`
	P90   int64 `json:"p90"`
	P95   int64 `json:"p95"`
	Count int   `json:"count"`
}

// Voice holds what only a spoken session has.
type Voice struct {
	TTFA                 *Distribution `json:"ttfa,omitempty"`
	GreetingTTFAMS       *int64        `json:"greeting_ttfa_ms,omitempty" doc:"Start of the call to the agent's first word, when the agent spoke first"`
	UserSpeechMS         *int64        `json:"user_speech_ms,omitempty"`
	AgentSpeechMS        *int64        `json:"agent_speech_ms,omitempty"`
	TalkRatio            *float64      `json:"talk_ratio,omitempty" doc:"Agent speech over all speech"`
	LongestMonologueMS   *int64        `json:"longest_monologue_ms,omitempty" doc:"Longest single stretch of agent speech"`
	LongestMonologueTurn *int          `json:"longest_monologue_turn,omitempty"`
	UserWPM              *float64      `json:"user_wpm,omitempty"`
	AgentWPM             *float64      `json:"agent_wpm,omitempty"`
	DeadAir              DeadAir       `json:"dead_air"`
	SilencePct           *float64      `json:"silence_pct,omitempty" doc:"Share of the call, in percent, in which nobody spoke"`
}

// DeadAir lists the silences longer than the threshold.
type DeadAir struct {
	ThresholdMS int64          `json:"threshold_ms"`
	Count       int            `json:"count"`
	TotalMS     int64          `json:"total_ms"`
	MaxMS       int64          `json:"max_ms"`
	Events      []DeadAirEvent `json:"events"`
}

// DeadAirEvent is one long silence: before the user spoke (inter_turn) or before the agent answered (response).
type DeadAirEvent struct {
	TurnNumber int    `json:"turn_number"`
	Kind       string `json:"kind" enum:"inter_turn,response"`
	GapMS      int64  `json:"gap_ms"`
}

// Providers lists the distinct "provider/model" names seen per stage, in order of first use.
type Providers struct {
	STT []string `json:"stt"`
	LLM []string `json:"llm"`
	TTS []string `json:"tts"`
}

// Counts are the aggregates of a session that lists show and filter by.
type Counts struct {
	Turns              int // assistant messages; a partial last turn is not counted
	Interruptions      int // interrupted assistant messages
	ToolCalls          int
	P95UserPerceivedMS *int64 // nil when no turn was measured
	HasSTT             bool
	HasLLM             bool
	HasTTS             bool
}

// TurnFacts are the samples alert rules count, one list entry per measured turn, in milliseconds with up to three
// decimals: 800.4 ms is above a threshold of 800.
type TurnFacts struct {
	AssistantTurns   int
	InterruptedTurns int
	Perceived        []float64
	TTFT             []float64
	TTFB             []float64
	STT              []float64
}

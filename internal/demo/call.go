package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"mime/multipart"
	"net/textproto"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Call is one session report ready to be sent.
type Call struct {
	SessionID string
	Ended     time.Time

	Header      []byte // JSON: session_id, start_time, ended_at, room_tags, transport, agent_id, agent_name
	HeaderProto []byte // the same call as livekit.MetricsRecordingHeader; it has neither an end nor a transport
	Body        []byte // chat_history part: a whole session report as JSON

	talk *talk // the source of its telemetry; nil for BenchCall
}

// Multipart is the body that the SDKs send for the call, with the JSON header; audio may be nil.
func (c Call) Multipart(audio []byte) (contentType string, body []byte) {
	return encodeMultipart("header.json", "application/json", c.Header, c.Body, audio)
}

// MultipartProto is Multipart with the protobuf header of the LiveKit SDKs.
func (c Call) MultipartProto(audio []byte) (contentType string, body []byte) {
	return encodeMultipart("header.binpb", "application/protobuf", c.HeaderProto, c.Body, audio)
}

func encodeMultipart(headerName, headerType string, header, body, audio []byte) (string, []byte) {
	var b bytes.Buffer
	b.Grow(len(header) + len(body) + len(audio) + 1024)
	w := multipart.NewWriter(&b)
	part := func(name, file, ctype string, data []byte) {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename=%q`, name, file))
		h.Set("Content-Type", ctype)
		h.Set("Content-Length", fmt.Sprint(len(data)))
		p, err := w.CreatePart(h)
		if err == nil {
			_, err = p.Write(data)
		}
		if err != nil { // a bytes.Buffer never fails to take a write
			panic(err)
		}
	}
	part("header", headerName, headerType, header)
	part("chat_history", "chat_history.json", "application/json", body)
	if len(audio) > 0 {
		part("audio", "recording.ogg", "audio/ogg", audio)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return w.FormDataContentType(), b.Bytes()
}

// protoHeader encodes livekit.MetricsRecordingHeader: 1 room_id, 4 start_time, 5 room_tags, 6 room_name, 8 job_id.
func protoHeader(roomID, jobID, roomName string, start time.Time, tags map[string]string) []byte {
	str := func(b []byte, num protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
	}
	ts := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(start.Unix()))
	if ns := start.Nanosecond(); ns > 0 {
		ts = protowire.AppendVarint(protowire.AppendTag(ts, 2, protowire.VarintType), uint64(ns))
	}
	b := str(nil, 1, roomID)
	b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), ts)
	for _, k := range sortedKeys(tags) {
		b = protowire.AppendBytes(protowire.AppendTag(b, 5, protowire.BytesType), str(str(nil, 1, k), 2, tags[k]))
	}
	b = str(b, 6, roomName)
	return str(b, 8, jobID)
}

// The JSON shapes below are those of a session report as agent-transport sends it: times in epoch seconds, durations
// in seconds.

type header struct {
	SessionID string            `json:"session_id"`
	StartTime float64           `json:"start_time"`
	EndedAt   float64           `json:"ended_at"`
	RoomTags  map[string]string `json:"room_tags"`
	Transport string            `json:"transport"`
	AgentID   string            `json:"agent_id"`
	AgentName string            `json:"agent_name"`
}

type reportBody struct {
	JobID       string           `json:"job_id"`
	RoomID      string           `json:"room_id"`
	Room        string           `json:"room"`
	AgentID     string           `json:"agent_id"`
	AgentName   string           `json:"agent_name"`
	Tags        []string         `json:"tags"`
	Evaluations []evaluation     `json:"evaluations,omitempty"`
	Outcome     *outcome         `json:"outcome,omitempty"`
	Events      []event          `json:"events"`
	Options     map[string]any   `json:"options"`
	ChatHistory history          `json:"chat_history"`
	Timestamp   float64          `json:"timestamp"`
	Usage       []map[string]any `json:"usage"`
	SDKVersion  string           `json:"sdk_version"`
}

type history struct {
	Items []item `json:"items"`
}

type evaluation struct {
	Name         string `json:"name"`
	Verdict      string `json:"verdict"`
	Reasoning    string `json:"reasoning"`
	Instructions string `json:"instructions"`
	Tag          string `json:"tag"`
}

type outcome struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
}

type event struct {
	Type      string  `json:"type"`
	CreatedAt float64 `json:"created_at"`
	OldState  string  `json:"old_state,omitempty"`
	NewState  string  `json:"new_state,omitempty"`
	Item      *item   `json:"item,omitempty"`
	Reason    string  `json:"reason,omitempty"`
}

type item struct {
	ID                   string    `json:"id"`
	Type                 string    `json:"type"`
	Role                 string    `json:"role,omitempty"`
	Content              []string  `json:"content,omitempty"`
	Interrupted          *bool     `json:"interrupted,omitempty"`
	CallID               string    `json:"call_id,omitempty"`
	Name                 string    `json:"name,omitempty"`
	Arguments            string    `json:"arguments,omitempty"`
	Output               string    `json:"output,omitempty"`
	IsError              *bool     `json:"is_error,omitempty"`
	OldAgentID           string    `json:"old_agent_id,omitempty"`
	NewAgentID           string    `json:"new_agent_id,omitempty"`
	Instructions         string    `json:"instructions,omitempty"`
	ToolsAdded           []string  `json:"tools_added,omitempty"`
	Extra                *struct{} `json:"extra,omitempty"`
	CreatedAt            float64   `json:"created_at"`
	Metrics              *metrics  `json:"metrics,omitempty"`
	TranscriptConfidence float64   `json:"transcript_confidence,omitempty"`
}

type metrics struct {
	StartedSpeakingAt        float64    `json:"started_speaking_at,omitempty"`
	StoppedSpeakingAt        float64    `json:"stopped_speaking_at,omitempty"`
	TranscriptionDelay       float64    `json:"transcription_delay,omitempty"`
	EndOfTurnDelay           float64    `json:"end_of_turn_delay,omitempty"`
	OnUserTurnCompletedDelay float64    `json:"on_user_turn_completed_delay,omitempty"`
	LLMNodeTTFT              float64    `json:"llm_node_ttft,omitempty"`
	TTSNodeTTFB              float64    `json:"tts_node_ttfb,omitempty"`
	E2ELatency               float64    `json:"e2e_latency,omitempty"`
	LLMPromptTokens          int        `json:"llm_prompt_tokens,omitempty"`
	LLMCompletionTokens      int        `json:"llm_completion_tokens,omitempty"`
	LLMTotalTokens           int        `json:"llm_total_tokens,omitempty"`
	LLM                      *modelJSON `json:"llm_metadata,omitempty"`
	TTS                      *modelJSON `json:"tts_metadata,omitempty"`
	STT                      *modelJSON `json:"stt_metadata,omitempty"`
}

type modelJSON struct {
	Name     string `json:"model_name"`
	Provider string `json:"model_provider"`
}

func (m model) json() *modelJSON { return &modelJSON{m.name, m.provider} }

// mustJSON encodes a value whose type cannot fail to encode.
func mustJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// micros rounds seconds to six decimals, as the SDKs' clocks give them.
func micros(s float64) float64 { return math.Round(s*1e6) / 1e6 }

// epoch is t in seconds since the epoch with six decimals.
func epoch(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// fromEpoch is the inverse of epoch, in UTC.
func fromEpoch(s float64) time.Time { return time.UnixMicro(int64(math.Round(s * 1e6))).UTC() }

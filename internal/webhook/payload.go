package webhook

import (
	"bytes"
	"encoding/json"
	"time"

	"sidetone/internal/stamp"
)

// The event types.
const (
	TypeTriggered = "alert.triggered"
	TypeTest      = "alert.test"
)

// Triggered is the alert.triggered payload (spec, Events).
type Triggered struct {
	Type             string        `json:"type"`
	FiringID         string        `json:"firing_id"`
	Rule             TriggeredRule `json:"rule"`
	Window           Window        `json:"window"`
	MatchedCount     int64         `json:"matched_count"`
	TotalCount       *int64        `json:"total_count"`
	ObservedValue    float64       `json:"observed_value"`
	AgentID          *string       `json:"agent_id"`
	AccountID        *string       `json:"account_id"`
	SampleSessionIDs []string      `json:"sample_session_ids"`
	FiredAt          stamp.Time    `json:"fired_at"`
}

// TriggeredRule is the rule as it was when it fired.
type TriggeredRule struct {
	ID             string  `json:"id"`
	Name           string  `json:"name"`
	Metric         string  `json:"metric"`
	JudgeName      *string `json:"judge_name"`
	ThresholdValue float64 `json:"threshold_value"`
	WindowMinutes  int     `json:"window_minutes"`
}

// Window is the time that was measured: after Start, up to and including End.
type Window struct {
	Start stamp.Time `json:"start"`
	End   stamp.Time `json:"end"`
}

// Body is the payload's JSON: the exact bytes that every attempt sends and signs.
func (p Triggered) Body() ([]byte, error) {
	p.Type = TypeTriggered
	if p.SampleSessionIDs == nil {
		p.SampleSessionIDs = []string{}
	}
	return encode(p)
}

type testPayload struct {
	Type    string     `json:"type"`
	Rule    testRule   `json:"rule"`
	FiredAt stamp.Time `json:"fired_at"`
}

type testRule struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Metric string `json:"metric"`
}

// testBody is the alert.test payload.
func testBody(ruleID, name, metric string, now time.Time) ([]byte, error) {
	return encode(testPayload{TypeTest, testRule{ruleID, name, metric}, stamp.Of(now)})
}

// encode leaves <, > and & as they are, because a rule's name is meant to be read, and adds no newline.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

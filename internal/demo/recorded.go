package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The demo call: one spoken call of 48 s with its recording. Its times are moved as a whole; nothing else changes.
//
//go:embed data/header.json
var demoHeader string

//go:embed data/chat_history.json
var demoBody string

//go:embed data/recording.ogg
var demoAudio []byte

const (
	demoSessionID = "demo-call-44712"
	demoStart     = 1795238400 // epoch s: start_time of data/header.json
	demoLength    = 48076 * time.Millisecond
)

// demoTimes matches every time of the demo call: they all lie in the hundred seconds after demoStart.
var demoTimes = regexp.MustCompile(`\b17952384\d\d(\.\d+)?\b`)

// recordedCall is the demo call with its start moved to the given second, under sessionID.
func recordedCall(sessionID string, start time.Time) Call {
	start = start.UTC().Truncate(time.Second)
	move := func(s string) string {
		return demoTimes.ReplaceAllStringFunc(s, func(old string) string {
			seconds, fraction, _ := strings.Cut(old, ".")
			n, err := strconv.ParseInt(seconds, 10, 64)
			if err != nil { // the pattern matches digits only
				panic(err)
			}
			moved := strconv.FormatInt(n-demoStart+start.Unix(), 10)
			if fraction != "" {
				moved += "." + fraction
			}
			return moved
		})
	}
	head, body := demoHeader, demoBody
	ended := start.Add(demoLength)
	jobID := "AJ_" + sessionID
	if sessionID != demoSessionID {
		head = strings.Replace(head, `"`+demoSessionID+`"`, `"`+sessionID+`"`, 1)
		body = strings.Replace(body, `"`+demoSessionID+`"`, `"`+sessionID+`"`, 1)
		body = strings.Replace(body, `"AJ_demo"`, `"`+jobID+`"`, 1)
		body = strings.Replace(body, `"call-44712"`, `"`+sessionID+`"`, 1)
	}
	// Without ended_at the server takes the time of receipt, which would be minutes after the last word.
	head = strings.Replace(move(head), `"room_tags"`, fmt.Sprintf(`"ended_at": %.3f, "room_tags"`, epoch(ended)), 1)
	body = move(body)

	var r reportBody
	if err := json.Unmarshal([]byte(body), &r); err != nil { // the text is part of the program, and a test reads it
		panic(err)
	}
	t := &talk{sessionID: sessionID, jobID: jobID, room: r.Room, account: "northwind", agentID: r.AgentID, agentName: r.AgentName,
		transport: "sip", language: "en", instructions: "You help customers of Northwind with orders, deliveries and refunds. Be brief and kind.",
		sdk: r.SDKVersion, start: start, end: ended, items: r.ChatHistory.Items, tags: r.Tags, usage: r.Usage,
		llm: model{"openai", "gpt-4.1-mini"}, stt: model{"Deepgram", "nova-3"}, tts: model{"Cartesia", "sonic-3"},
		outcome: &outcome{"success", "refund started after a retry"},
		evaluations: []evaluation{
			{"accuracy", "pass", "The refund amount and the delay match what the tools returned.", "Everything the agent states must be supported by a tool result or its instructions.", "lk.judge.accuracy:pass"},
			{"tool_use", "fail", "start_refund timed out and was repeated without telling the caller why.", "The agent must call the right tool with the right arguments, once.", "lk.judge.tool_use:fail"},
		},
		telemetry: true}
	return Call{
		SessionID:   sessionID,
		Ended:       ended,
		Header:      []byte(head),
		HeaderProto: protoHeader(sessionID, jobID, r.Room, start, map[string]string{"account_id": "northwind", "transport": "sip"}),
		Body:        []byte(body),
		talk:        t,
	}
}

// DemoCall is the recorded call with its start moved to the given second, and its recording (Ogg Opus, stereo, caller
// left, agent right).
func DemoCall(start time.Time) (Call, []byte) { return recordedCall(demoSessionID, start), demoAudio }

package report

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// A stored document is: one byte docWithoutChat or docWithChat, the length of the header as an unsigned varint, the
// header as the JSON of storedHeader, and the chat history part as the client sent it.
const (
	docWithoutChat = 1
	docWithChat    = 2
)

// storedHeader is what a report knows beside its body. Times are microseconds since the epoch.
type storedHeader struct {
	SessionID  string `json:"session_id,omitempty"`
	RoomID     string `json:"room_id,omitempty"`
	JobID      string `json:"job_id,omitempty"`
	RoomName   string `json:"room_name,omitempty"`
	AccountID  string `json:"account_id,omitempty"`
	AgentID    string `json:"agent_id,omitempty"`
	AgentName  string `json:"agent_name,omitempty"`
	Transport  string `json:"transport,omitempty"`
	CallStart  int64  `json:"call_start_us,omitempty"`
	AudioStart int64  `json:"audio_start_us,omitempty"`
	EndedAt    int64  `json:"ended_at_us,omitempty"`
	Simulated  bool   `json:"simulated,omitempty"`
	Redacted   bool   `json:"redacted,omitempty"`
}

// EncodeDoc makes the document to store of an upload and of the report that Parse made of it. ParseDoc gives the same
// report again. The document may share its memory with the upload, of which it is to be made once.
func EncodeDoc(u Upload, r *session.Report) []byte {
	header, err := json.Marshal(storedHeader{
		SessionID: r.SessionID, RoomID: r.RoomID, JobID: r.JobID, RoomName: r.RoomName,
		AccountID: r.AccountID, AgentID: r.AgentID, AgentName: r.AgentName, Transport: r.Transport,
		CallStart: micros(r.HeaderStart), AudioStart: micros(r.AudioStart), EndedAt: micros(r.EndedAt),
		Simulated: r.Simulated, Redacted: r.Redacted,
	})
	if err != nil {
		panic("report: a struct of strings and numbers did not marshal: " + err.Error())
	}
	front := make([]byte, 1, 1+binary.MaxVarintLen64+len(header))
	front[0] = docWithoutChat
	if u.HasChatHistory {
		front[0] = docWithChat
	}
	front = append(binary.AppendUvarint(front, uint64(len(header))), header...)
	if n := len(u.chatRoom) - len(front); n >= 0 { // the chat history stays where it is
		copy(u.chatRoom[n:], front)
		return u.chatRoom[n : len(u.chatRoom)+len(u.ChatHistory)]
	}
	return append(front, u.ChatHistory...)
}

// splitDoc takes a stored document apart; chat is nil when the report had no chat history.
func splitDoc(doc []byte) (header, chat []byte, err error) {
	corrupt := errs.New(errs.Internal, "a stored report is not in the form this program writes")
	if len(doc) == 0 || doc[0] != docWithoutChat && doc[0] != docWithChat {
		return nil, nil, corrupt
	}
	n, size := binary.Uvarint(doc[1:])
	if size <= 0 || n > uint64(len(doc)-1-size) {
		return nil, nil, corrupt
	}
	header, chat = doc[1+size:][:n], doc[1+size:][n:]
	if doc[0] == docWithoutChat {
		chat = nil
	}
	return header, chat, nil
}

// ParseDoc parses what EncodeDoc made. Errors are Internal: what was stored had been parsed before.
func ParseDoc(doc []byte) (*session.Report, error) {
	header, chat, err := splitDoc(doc)
	if err != nil {
		return nil, err
	}
	var s storedHeader
	if err := json.Unmarshal(header, &s); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "the header of a stored report cannot be read")
	}
	r, err := parse(Header{
		SessionID: s.SessionID, RoomID: s.RoomID, JobID: s.JobID, RoomName: s.RoomName,
		Identity:  Identity{AccountID: s.AccountID, AgentID: s.AgentID, AgentName: s.AgentName, Transport: s.Transport},
		CallStart: fromMicros(s.CallStart), AudioStart: fromMicros(s.AudioStart), EndedAt: fromMicros(s.EndedAt),
		Simulated: s.Simulated, Redacted: s.Redacted,
	}, chat, chat != nil)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "a stored report cannot be read")
	}
	return r, nil
}

// RawOf gives raw_report of a stored document: the body as sent, null without one. Only what would not be JSON (NaN,
// invalid UTF-8) is replaced.
func RawOf(doc []byte) json.RawMessage {
	_, chat, err := splitDoc(doc)
	if err != nil || len(chat) == 0 {
		return json.RawMessage("null")
	}
	return clean(chat)
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"sidetone/internal/demo"
)

// report is a small call of which everything is known from its number: what was sent and what must be there later.
type report struct {
	id    string
	n     int
	proto bool // a protobuf header, as the LiveKit SDKs send it, else JSON
	audio []byte
}

// numbered makes a report. Every second one has a protobuf header, every third a recording of up to 20 KB.
func numbered(n int) report {
	r := report{id: fmt.Sprintf("RM_call%06d", n), n: n, proto: n%2 == 1}
	if n%3 == 0 {
		r.audio = make([]byte, 2000+n%18000)
		rand.NewChaCha8(sha256.Sum256([]byte(r.id))).Read(r.audio)
	}
	return r
}

func (r report) turns() int { return 1 + r.n%4 }

func (r report) text(turn int) string { return fmt.Sprintf("answer %d of %s", turn, r.id) }

// multipart is the report as a client sends it.
func (r report) multipart() (contentType string, body []byte) {
	type item map[string]any
	var items []item
	for turn := range r.turns() {
		at := 1795238400 + float64(turn)
		items = append(items,
			item{"id": fmt.Sprint("u", turn), "type": "message", "role": "user", "content": []string{"question"}, "created_at": at},
			item{"id": fmt.Sprint("a", turn), "type": "message", "role": "assistant", "content": []string{r.text(turn)},
				"created_at": at + 0.5, "metrics": item{"llm_node_ttft": 0.25}})
	}
	chat, err := json.Marshal(item{"items": items})
	if err != nil {
		panic(err)
	}
	header := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), r.id) // room_id
	header = protowire.AppendString(protowire.AppendTag(header, 8, protowire.BytesType), "AJ_"+r.id)
	call := demo.Call{Header: fmt.Appendf(nil, `{"session_id":%q,"start_time":1795238400,"transport":"sip"}`, r.id), HeaderProto: header, Body: chat}
	if r.proto {
		return call.MultipartProto(r.audio)
	}
	return call.Multipart(r.audio)
}

// check compares what the server has of the report with what was sent. It may run in any goroutine.
func (r report) check(s *server) error {
	got, err := s.try("GET", "/api/sessions/"+r.id, nil, nil)
	if err != nil {
		return err
	}
	if got.status != 200 {
		return fmt.Errorf("%s: %d %s", r.id, got.status, got.body)
	}
	var doc any
	if err := json.Unmarshal(got.body, &doc); err != nil {
		return fmt.Errorf("%s: %w", r.id, err)
	}
	last := fmt.Sprintf("chat_history.%d.content.0", 2*r.turns()-1)
	if n := length(doc, "chat_history"); n != 2*r.turns() || at(doc, last) != r.text(r.turns()-1) ||
		at(doc, "turn_count") != float64(r.turns()) || length(doc, "session_metrics.turns") != r.turns() {
		return fmt.Errorf("%s is not complete: %d items, last %q, turn_count %v", r.id, n, at(doc, last), at(doc, "turn_count"))
	}
	url, _ := at(doc, "record_url").(string)
	if (url != "") != (r.audio != nil) {
		return fmt.Errorf("%s: record_url is %q, %d bytes were sent", r.id, url, len(r.audio))
	}
	if r.audio == nil {
		return nil
	}
	got, err = s.try("GET", url, nil, nil)
	if err == nil && (got.status != 200 || !bytes.Equal(got.body, r.audio)) {
		err = fmt.Errorf("%s: the recording is answered %d with %d bytes, sent were %d", r.id, got.status, len(got.body), len(r.audio))
	}
	return err
}

// retryStatus reads a 503 the way the LiveKit SDKs do, and fails unless they would retry on it.
func retryStatus(t *testing.T, r reply) {
	t.Helper()
	if ct := r.header.Get("Content-Type"); r.status != 503 || ct != "application/x-protobuf" {
		t.Fatalf("a protobuf client got %d, %s: %s", r.status, ct, r.body)
	}
	var st status.Status
	if err := proto.Unmarshal(r.body, &st); err != nil {
		t.Fatalf("the 503 is no google.rpc.Status: %v", err)
	}
	if st.Code != int32(code.Code_UNAVAILABLE) || len(st.Details) != 1 {
		t.Fatalf("the status is %v", &st)
	}
	var retry errdetails.RetryInfo
	if err := st.Details[0].UnmarshalTo(&retry); err != nil {
		t.Fatalf("the detail is no RetryInfo: %v", err)
	}
	if d := retry.RetryDelay.AsDuration(); d <= 0 || d > patience {
		t.Fatalf("the client is told to wait %v", d)
	}
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

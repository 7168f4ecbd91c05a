package report

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata/*.txtar")

const fixtures = "../../testdata/fixtures/"

// TestCases parses each testdata/*.txtar. Its sections: header (JSON) or header.hex (protobuf; white space and text
// after # are ignored), chat_history, and want.json (the report without its zero values, items normalised) or want.err.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			u, want := caseOf(t, ar)
			r, err := Parse(u)
			var got txtar.File
			if err != nil {
				got = txtar.File{Name: "want.err", Data: []byte(describe(err) + "\n")}
			} else {
				got = txtar.File{Name: "want.json", Data: pretty(t, r)}
				sameAgain(t, u, r)
			}
			if *update {
				ar.Files = append(ar.Files[:want:want], got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want == len(ar.Files) {
				t.Fatal("the case says nothing of what is wanted")
			}
			if w := ar.Files[want]; w.Name != got.Name || !bytes.Equal(w.Data, got.Data) {
				t.Errorf("want %s:\n%s\ngot %s:\n%s", w.Name, w.Data, got.Name, got.Data)
			}
		})
	}
}

// caseOf gives the upload of a case and the index of its want section, which comes last.
func caseOf(t *testing.T, ar *txtar.Archive) (u Upload, want int) {
	for i, f := range ar.Files {
		switch f.Name {
		case "header":
			u.Header = f.Data
		case "header.hex":
			u.HeaderProto = true
			var digits strings.Builder
			for line := range strings.Lines(string(f.Data)) {
				line, _, _ = strings.Cut(line, "#")
				digits.WriteString(strings.Join(strings.Fields(line), ""))
			}
			var err error
			if u.Header, err = hex.DecodeString(digits.String()); err != nil {
				t.Fatal(err)
			}
		case "chat_history":
			u.ChatHistory, u.HasChatHistory = f.Data, true
		case "want.json", "want.err":
			return u, i
		default:
			t.Fatalf("unknown section %s", f.Name)
		}
	}
	return u, len(ar.Files)
}

// sameAgain checks that what is stored of a report gives the same report and the raw body.
func sameAgain(t *testing.T, u Upload, r *session.Report) {
	t.Helper()
	doc := EncodeDoc(u, r)
	again, err := ParseDoc(doc)
	if err != nil {
		t.Fatalf("ParseDoc: %v", err)
	}
	if !reflect.DeepEqual(r, again) {
		t.Errorf("the stored report differs:\n%s\nfrom the sent one:\n%s", pretty(t, again), pretty(t, r))
	}
	raw := RawOf(doc)
	if !json.Valid(raw) {
		t.Errorf("raw_report is not JSON: %q", raw)
	}
	if u.HasChatHistory && json.Valid(u.ChatHistory) && !bytes.Equal(raw, u.ChatHistory) {
		t.Errorf("raw_report is not what was sent: %q", raw)
	}
	if !u.HasChatHistory && string(raw) != "null" {
		t.Errorf("raw_report without a body is %q, want null", raw)
	}
}

var kindNames = map[errs.Kind]string{errs.Invalid: "invalid", errs.InvalidJSON: "invalid_json", errs.TooLarge: "too_large",
	errs.UnsupportedType: "unsupported_type", errs.Internal: "internal", errs.Unavailable: "unavailable"}

func describe(err error) string {
	var e *errs.Error
	if !errors.As(err, &e) {
		return "plain: " + err.Error()
	}
	var b strings.Builder
	b.WriteString(kindNames[e.Kind] + ": " + e.Message)
	for _, f := range e.Fields {
		b.WriteString("\n  " + f.Field + " | " + f.Message)
	}
	return b.String()
}

// pretty writes a report without its zero values, its items as the API shows them.
func pretty(t *testing.T, r *session.Report) []byte {
	t.Helper()
	shown := *r
	shown.Items = make([]session.Item, len(r.Items))
	for i, it := range r.Items {
		it.Raw = NormalizeItem(it.Raw)
		shown.Items[i] = it
	}
	b, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber() // numbers as they were sent
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	dropZero(v)
	if b, err = json.MarshalIndent(v, "", " "); err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// dropZero removes what is zero, except below Raw, Options, Events and Metadata, which are the client's.
func dropZero(v any) (zero bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			clients := k == "Raw" || k == "Options" || k == "Events" || k == "Metadata"
			if e == nil || !clients && dropZero(e) {
				delete(v, k)
			}
		}
		return len(v) == 0
	case []any:
		for _, e := range v {
			dropZero(e)
		}
		return len(v) == 0
	case string:
		return v == "" || v == "0001-01-01T00:00:00Z"
	case bool:
		return !v
	}
	return false
}

func TestDemoCall(t *testing.T) {
	u := Upload{Header: read(t, "demo-call/header.json"), ChatHistory: read(t, "demo-call/chat_history.json"), HasChatHistory: true}
	r, err := Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	sameAgain(t, u, r)
	assistant, interrupted, calls, failed := 0, 0, 0, 0
	for _, it := range r.Items {
		switch {
		case it.Role == session.RoleAssistant:
			assistant++
			if it.Interrupted {
				interrupted++
			}
		case it.Type == session.ItemFunctionCall:
			calls++
		case it.IsError:
			failed++
		}
	}
	if assistant != 6 || interrupted != 1 || calls != 3 || failed != 1 {
		t.Errorf("got %d assistant messages, %d interrupted, %d calls, %d failed; want 6, 1, 3, 1", assistant, interrupted, calls, failed)
	}
	for _, c := range []struct{ field, got, want string }{
		{"SessionID", r.SessionID, "demo-call-44712"}, {"AccountID", r.AccountID, "northwind"},
		{"AgentID", r.AgentID, "northwind-support"}, {"AgentName", r.AgentName, "Northwind support"},
		{"Transport", r.Transport, "sip"}, {"BodyJobID", r.BodyJobID, "AJ_demo"}, {"JobID", r.JobID, ""},
		{"RoomName", r.RoomName, "call-44712"}, {"SDKVersion", r.SDKVersion, "1.5.2"},
		{"HeaderStart", r.HeaderStart.Format(time.RFC3339Nano), "2026-11-21T05:20:00Z"},
		{"AudioStart", r.AudioStart.Format(time.RFC3339Nano), "2026-11-21T05:20:00Z"},
		{"Timestamp", r.Timestamp.Format(time.RFC3339Nano), "2026-11-21T05:20:48.076Z"},
	} {
		if c.got != c.want {
			t.Errorf("%s = %q, want %q", c.field, c.got, c.want)
		}
	}
	if len(r.Evaluations) != 0 || r.Outcome != nil || len(r.Tags) != 6 || r.Tags[5].Name != "lk.judge.tool_use:fail" {
		t.Errorf("the report has tags only; evaluations %+v, outcome %+v, tags %+v", r.Evaluations, r.Outcome, r.Tags)
	}
	if len(r.Usage) != 3 || r.Usage[0].InputTokens != 3120 || r.Usage[2].AudioDuration != 61 {
		t.Errorf("usage: %+v", r.Usage)
	}
	if r.Events[0] != '[' || r.Options[0] != '{' || len(r.Tags) != 6 {
		t.Errorf("events %.20s, options %.20s, %d tags", r.Events, r.Options, len(r.Tags))
	}
}

// TestNodeSDK reads the request that @livekit/agents 1.9.0 made.
func TestNodeSDK(t *testing.T) {
	var req struct{ Headers map[string]string }
	if err := json.Unmarshal(read(t, "livekit-node-1.9.0/02_recordings.headers.json"), &req); err != nil {
		t.Fatal(err)
	}
	body := read(t, "livekit-node-1.9.0/02_recordings.bin")
	u, err := Read(req.Headers["content-type"], bytes.NewReader(body), Limits{Body: int64(len(body)), Part: 1 << 20},
		func(io.Reader) error { return errors.New("there is no audio") })
	if err != nil {
		t.Fatal(err)
	}
	if !u.HeaderProto || u.HasAudio {
		t.Errorf("HeaderProto %v, HasAudio %v; want true, false", u.HeaderProto, u.HasAudio)
	}
	r, err := Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	sameAgain(t, u, r)
	if r.RoomID != "RM_capture1" || r.JobID != "AJ_RM_capture1" || r.SessionID != "" || !r.AudioStart.IsZero() {
		t.Errorf("room %q, job %q, session %q, audio start %v", r.RoomID, r.JobID, r.SessionID, r.AudioStart)
	}
	if len(r.Items) != 8 || r.Items[0].Type != session.ItemHandoff || r.Items[3].Text != "Hello! How can I help you today?" ||
		*r.Items[3].Metrics.LLMNodeTTFT != 0.016878664000000043 || r.Items[3].Metrics.StoppedSpeakingAt.UnixMilli() != 1795238500039 {
		t.Errorf("items: %+v", r.Items)
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(fixtures + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseWithoutHeader(t *testing.T) {
	_, err := Parse(Upload{ChatHistory: []byte(`{"items":[]}`), HasChatHistory: true})
	if got, want := describe(err), "invalid: header: the multipart body has no such part\n  header | the multipart body has no such part"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTooMany(t *testing.T) {
	many := func(n int, element string) string { return strings.Repeat(element+",", n-1) + element }
	for _, c := range []struct{ body, want string }{
		{`[` + many(maxItems, `{}`) + `]`, ""},
		{`[` + many(maxItems+1, `{}`) + `]`, "chat_history: lists too many items"},
		{`{"tags":[` + many(maxLabels, `"a"`) + `]}`, ""},
		{`{"tags":[` + many(maxLabels+1, `"a"`) + `]}`, "chat_history: lists too many tags"},
		{`{"usage":[` + many(maxLabels+1, `{}`) + `]}`, "chat_history: lists too many usage entries"},
		{`{"evaluations":[` + many(maxLabels+1, `{}`) + `]}`, "chat_history: lists too many evaluations"},
	} {
		_, err := Parse(Upload{Header: []byte(`{"session_id":"s"}`), ChatHistory: []byte(c.body), HasChatHistory: true})
		var e *errs.Error
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%.20s...: %v", c.body, err)
		case c.want != "" && (!errors.As(err, &e) || e.Message != c.want || e.Kind != errs.Invalid):
			t.Errorf("%.20s...: got %v, want %q", c.body, err, c.want)
		}
	}
}

func TestStoredDocs(t *testing.T) {
	for _, doc := range [][]byte{nil, {}, {0}, {9}, {1}, {1, 200}, {1, 5, '{'}, {1, 2, '{', '{'}, {2, 2, '{', '}', '['},
		append([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, "{}"...)} {
		if r, err := ParseDoc(doc); err == nil || !errs.Is(err, errs.Internal) || r != nil {
			t.Errorf("ParseDoc(%q) = %v, %v; want an Internal error", doc, r, err)
		}
		if raw := RawOf(doc); !bytes.Equal(raw, []byte("null")) && !bytes.Equal(raw, []byte("[")) {
			t.Errorf("RawOf(%q) = %q", doc, raw)
		}
	}
	if raw := RawOf([]byte("\x02\x02{}[NaN, \"a\xff\"]")); string(raw) != "[null, \"a\uFFFD\"]" {
		t.Errorf("RawOf of what is not quite JSON = %q", raw)
	}
}

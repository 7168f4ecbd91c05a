package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/report"
	"sidetone/internal/session"
	"sidetone/internal/sqlstore"
)

var serviceNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// recordedKeys stands in for the recordings: it notes what happens to each.
type recordedKeys struct {
	t    *testing.T
	last map[string]string
}

func (r recordedKeys) Create(context.Context) (session.StagedRecording, error) {
	r.t.Fatal("nobody asked for a new recording")
	return nil, nil
}
func (r recordedKeys) Open(context.Context, string) (io.ReadSeekCloser, error) {
	return nil, errs.New(errs.NotFound, "gone")
}
func (r recordedKeys) Link(context.Context, string, string) (string, error) { return "", nil }
func (r recordedKeys) Kept(key string)                                      { r.last[key] = "kept" }
func (r recordedKeys) Doubt(key string)                                     { r.last[key] = "doubt" }
func (r recordedKeys) Delete(_ context.Context, key string) error {
	r.last[key] = "deleted"
	return nil
}

// stagedKey is a recording that has arrived under a key; with fails it cannot be made durable.
type stagedKey struct {
	io.Writer
	key     string
	fails   error
	aborted *bool
}

func (s stagedKey) Commit(context.Context) (session.Recording, error) {
	return session.Recording{Key: s.key, Size: 1, SHA256: "x"}, s.fails
}
func (s stagedKey) Abort() { *s.aborted = true }

func newService(t *testing.T) (*session.Service, *sqlstore.Store, recordedKeys) {
	t.Helper()
	store, err := sqlstore.Open("sqlite", filepath.Join(t.TempDir(), "test.db"), "", sqlstore.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Migrate(t.Context(), serviceNow); err != nil {
		t.Fatal(err)
	}
	keys := recordedKeys{t, map[string]string{}}
	return session.NewService(store, keys, report.ParseDoc, nil, slog.New(slog.NewTextHandler(io.Discard, nil))), store, keys
}

func uploadOf(t *testing.T, id, chat string, audio session.StagedRecording) session.Upload {
	t.Helper()
	u := report.Upload{Header: fmt.Appendf(nil, `{"session_id":%q,"ended_at":1795262400}`, id), ChatHistory: []byte(chat), HasChatHistory: chat != ""}
	return session.Upload{Report: parseReport(t, u), Doc: report.EncodeDoc(u, parseReport(t, u)), Audio: audio}
}

func TestWhatHappensToRecordings(t *testing.T) {
	svc, store, keys := newService(t)
	var aborted bool
	ingest := func(key string, fails error) error {
		_, err := svc.Ingest(t.Context(), uploadOf(t, "call", `{"items":[]}`, stagedKey{key: key, fails: fails, aborted: &aborted}), serviceNow)
		return err
	}
	if err := ingest("a", nil); err != nil || keys.last["a"] != "kept" {
		t.Errorf("first: %v, %v", keys.last, err)
	}
	if err := ingest("b", nil); err != nil || keys.last["a"] != "deleted" || keys.last["b"] != "kept" {
		t.Errorf("replaced: %v, %v", keys.last, err)
	}
	if err := ingest("c", errs.New(errs.Unavailable, "disk full")); !errs.Is(err, errs.Unavailable) || !aborted || keys.last["c"] != "" {
		t.Errorf("not durable: %v, %v", keys.last, err)
	}
	if _, err := svc.Ingest(t.Context(), uploadOf(t, "call", `{"items":[]}`, nil), serviceNow); err != nil || keys.last["b"] != "kept" {
		t.Errorf("without audio: %v, %v", keys.last, err)
	}
	if d, err := svc.Get(t.Context(), "call"); err != nil || d.Session.Recording == nil || d.Session.Recording.Key != "b" {
		t.Errorf("%+v, %v", d, err)
	}
	if n, err := svc.Delete(t.Context(), []string{"call"}); n != 1 || err != nil || keys.last["b"] != "deleted" {
		t.Errorf("deleted %d: %v, %v", n, keys.last, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	// Away: whether the row was written is not known, so the recording must not go.
	if err := ingest("d", nil); !errs.Is(err, errs.Unavailable) || keys.last["d"] == "deleted" || keys.last["d"] == "kept" {
		t.Errorf("away: %v, %v", keys.last, err)
	}
}

func TestSnippetsOfASearch(t *testing.T) {
	svc, _, _ := newService(t)
	long := strings.Repeat("nothing to see here. ", 40)
	chat := `{"items":[{"type":"message","role":"user","content":["` + long + `my réfund <now> & 返金 please ` + long + `"]}]}`
	if _, err := svc.Ingest(t.Context(), uploadOf(t, "call", chat, nil), serviceNow); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]string{"refund": "my <mark>réfund</mark> &lt;now&gt; &amp; 返金", "返金": "&amp; <mark>返金</mark> please", `"refund now"`: "<mark>réfund &lt;now</mark>&gt;", "refun*": "<mark>réfund</mark>"} {
		rows, total, err := svc.List(t.Context(), session.Filter{Search: session.ParseQuery(q)}, session.Page{Limit: 20})
		if err != nil || total != 1 || len(rows) != 1 || !strings.Contains(rows[0].MatchSnippet, want) {
			t.Errorf("%s: %+v of %d, %v", q, rows, total, err)
		}
	}
	for _, q := range []string{"", "-refunded"} {
		rows, _, err := svc.List(t.Context(), session.Filter{Search: session.ParseQuery(q)}, session.Page{Limit: 20})
		if err != nil || len(rows) != 1 || rows[0].MatchSnippet != "" {
			t.Errorf("%q: %+v, %v", q, rows, err)
		}
	}
	// A transcript that came by telemetry is searched until the upload brings its own.
	item := session.Item{ID: "i", Type: session.ItemMessage, Role: session.RoleAssistant, Text: "from the logs", Raw: json.RawMessage(`{"id":"i"}`)}
	batch := []session.Telemetry{{Key: session.Key{Room: "live"}, Signals: &session.LogSignals{Items: []session.Item{item}}}}
	if err := svc.IngestTelemetry(t.Context(), batch, serviceNow); err != nil {
		t.Fatal(err)
	}
	find := func(q string) int {
		t.Helper()
		_, n, err := svc.List(t.Context(), session.Filter{Search: session.ParseQuery(q)}, session.Page{Limit: 20})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if find("logs") != 1 {
		t.Error("a live transcript is not found")
	}
	if _, err := svc.Ingest(t.Context(), uploadOf(t, "live", `{"items":[{"type":"message","role":"assistant","content":["uploaded"]}]}`, nil), serviceNow); err != nil {
		t.Fatal(err)
	}
	if err := svc.IngestTelemetry(t.Context(), batch, serviceNow.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if find("logs") != 0 || find("uploaded") != 1 {
		t.Errorf("%d find the logs, %d the upload", find("logs"), find("uploaded"))
	}
}

// TestManySessionsInOneExport: each is stored, and one that cannot be leaves no doubt.
func TestManySessionsInOneExport(t *testing.T) {
	svc, store, _ := newService(t)
	var batch []session.Telemetry
	for i := range 100 {
		at := serviceNow.Add(time.Duration(i) * time.Second)
		batch = append(batch, session.Telemetry{Key: session.Key{Room: fmt.Sprintf("R%02d", i%50), Job: "J"},
			Logs: []session.LogRecord{{Time: at, Body: fmt.Sprint(i)}}, Signals: &session.LogSignals{FirstAt: at, LastAt: at}})
	}
	for range 2 {
		if err := svc.IngestTelemetry(t.Context(), batch, serviceNow); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		logs, n, err := svc.Logs(t.Context(), fmt.Sprintf("R%02d", i), session.Page{Limit: 10})
		if err != nil || n != 2 || logs[0].Body != fmt.Sprint(i) || logs[1].Body != fmt.Sprint(i+50) {
			t.Errorf("R%02d: %+v of %d, %v", i, logs, n, err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := svc.IngestTelemetry(t.Context(), batch, serviceNow); !errs.Is(err, errs.Unavailable) {
		t.Error(err)
	}
}

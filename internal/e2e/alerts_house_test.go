package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/eval"
	"sidetone/internal/httpapi"
	"sidetone/internal/outbound"
	"sidetone/internal/pgtest"
	"sidetone/internal/report"
	"sidetone/internal/session"
	"sidetone/internal/sqlstore"
	"sidetone/internal/webhook"
)

var alertQuiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// alertNoon is where the clock of an alertHouse starts: 2026-11-21 12:00 UTC.
var alertNoon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// alertHouse is all parts of the program that take part in alerting, wired as in a process, but with a clock that the test
// sets and without the loops: the test says when a tick is and when due deliveries are made.
type alertHouse struct {
	t          testing.TB
	engine     string
	path, url  string // of the database
	store      *sqlstore.Store
	handler    http.Handler
	sweeper    *alert.Sweeper
	dispatcher *webhook.Dispatcher

	mu      sync.Mutex
	now     time.Time // what the clock says
	ticking time.Time // when not zero, the clock goes on from now at this real time
}

// alertOnEngines runs a test on each engine, both at the same time.
func alertOnEngines(t *testing.T, test func(t *testing.T, engine string)) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			test(t, engine)
		})
	}
}

func newAlertHouse(t testing.TB, engine string) *alertHouse {
	t.Helper()
	h := &alertHouse{t: t, engine: engine, now: alertNoon, path: filepath.Join(t.TempDir(), "house.db")}
	if engine == "postgres" {
		h.url = pgtest.URL(t)
	}
	h.open(webhook.Timeout)
	t.Cleanup(h.close)
	return h
}

// open starts the house on its database, as a process starts. timeout is that of a webhook.
func (h *alertHouse) open(timeout time.Duration) {
	h.t.Helper()
	var err error
	if h.store, err = sqlstore.Open(h.engine, h.path, h.url, sqlstore.Observer{}); err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.store.Migrate(h.t.Context(), h.clock()); err != nil {
		h.t.Fatal(err)
	}
	alerts := h.store.Alerts()
	sender := outbound.New(outbound.Options{Timeout: timeout, UserAgent: "sidetone/test"})
	h.dispatcher = webhook.NewDispatcher(alerts, sender.Send, h.clock, alertQuiet)
	h.sweeper = alert.NewSweeper(alerts, h.dispatcher.Wake)
	price := func(_, _ string, _, _, _ int64) (float64, bool) { return 0, false }
	h.handler, err = httpapi.New(httpapi.Deps{
		Sessions: session.NewService(h.store, nil, report.ParseDoc, func([]session.Usage, []session.Item) *float64 { return nil }, alertQuiet), Evals: eval.NewService(h.store.Evals(), price),
		Alerts: alert.NewService(alerts, sender.Send, h.clock, h.dispatcher.Wake), Log: alertQuiet, Now: h.clock,
		Auth:    httpapi.NewAuth("", "", "", "", h.clock, httpapi.WriteError),
		Metrics: http.NotFoundHandler(), Dashboard: http.NotFoundHandler(), Observe: func(httpapi.Request) {}, DroppedTelemetry: func(int) {},
		MaxRecordingBytes: 10 << 20,
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *alertHouse) close() {
	if err := h.dispatcher.Drain(h.t.Context()); err != nil {
		h.t.Errorf("drain: %v", err)
	}
	if err := h.store.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
}

func (h *alertHouse) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ticking.IsZero() {
		return h.now
	}
	return h.now.Add(time.Since(h.ticking))
}

// set stops the clock at a time.
func (h *alertHouse) set(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.ticking = now, time.Time{}
}

// run sets the clock and lets it go on.
func (h *alertHouse) run(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.ticking = now, time.Now()
}

// sweep makes one tick at the time of the clock.
func (h *alertHouse) sweep() alert.Report {
	h.t.Helper()
	r, err := h.sweeper.Sweep(h.t.Context(), h.clock())
	if err != nil {
		h.t.Fatalf("sweep: %v", err)
	}
	return r
}

// deliver makes what is due by the clock and waits until it is recorded. It returns when more falls due.
func (h *alertHouse) deliver() time.Time {
	h.t.Helper()
	if _, err := h.dispatcher.DeliverDue(h.t.Context(), h.clock()); err != nil {
		h.t.Fatalf("deliver: %v", err)
	}
	if err := h.dispatcher.Drain(h.t.Context()); err != nil {
		h.t.Fatalf("drain: %v", err)
	}
	next, err := h.store.Alerts().NextDue(h.t.Context(), h.clock())
	if err != nil {
		h.t.Fatal(err)
	}
	return next
}

type alertObject = map[string]any

// ask sends a request and decodes its reply, which must have the status.
func (h *alertHouse) ask(status int, method, target string, body []byte, kind string) alertObject {
	h.t.Helper()
	r := httptest.NewRequest(method, target, bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	var out alertObject
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != status {
		h.t.Fatalf("%s %s: %d %.500s, want %d", method, target, w.Code, w.Body, status)
	}
	return out
}

func (h *alertHouse) get(target string) alertObject {
	h.t.Helper()
	return h.ask(200, "GET", target, nil, "")
}

// rule creates a rule of 15 minutes with more fields and returns its id.
func (h *alertHouse) rule(metric string, threshold float64, fields alertObject) string {
	h.t.Helper()
	return h.ask(201, "POST", "/api/alert-rules", alertRuleBody(metric, threshold, fields), "application/json")["id"].(string)
}

func alertRuleBody(metric string, threshold float64, fields alertObject) []byte {
	rule := alertObject{"name": metric, "metric": metric, "threshold_value": threshold, "window_minutes": 15, "webhook_url": "http://127.0.0.1:9/hook"}
	for k, v := range fields {
		rule[k] = v
	}
	return alertJSON(rule)
}

func alertJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// objects is all rows of a list.
func (h *alertHouse) objects(target string) []alertObject {
	h.t.Helper()
	var out []alertObject
	for _, o := range h.get(target)["objects"].([]any) {
		out = append(out, o.(alertObject))
	}
	return out
}

// alertCall is one session report: a turn with the given milliseconds, and what its judges and its agent say.
type alertCall struct {
	id, agent, account, transport string
	ended                         time.Time // zero: when it arrives
	interrupted                   bool
	perceived, ttft, ttfb, stt    float64 // ms; 0 is not measured
	more                          alertObject
}

// report sends a call the way an SDK does.
func (h *alertHouse) report(c alertCall) {
	h.t.Helper()
	kind, body := alertReport(c)
	h.ask(200, "POST", "/observability/recordings/v0", body, kind)
}

// items is what the caller and the agent said.
func (c *alertCall) items() (heard, said alertObject) {
	seconds := func(m alertObject, key string, ms float64) {
		if ms > 0 {
			m[key] = ms / 1000
		}
	}
	hears, says := alertObject{}, alertObject{}
	seconds(hears, "transcription_delay", c.stt)
	seconds(says, "e2e_latency", c.perceived)
	seconds(says, "llm_node_ttft", c.ttft)
	seconds(says, "tts_node_ttfb", c.ttfb)
	return alertObject{"id": "item_1", "type": "message", "role": "user", "content": []string{"Where is my order?"}, "created_at": 1795260000.5, "metrics": hears},
		alertObject{"id": "item_2", "type": "message", "role": "assistant", "content": []string{"On its way."}, "created_at": 1795260001.5, "interrupted": c.interrupted, "metrics": says}
}

// alertReport is the multipart body of a report and its content type.
func alertReport(c alertCall) (kind string, body []byte) {
	heard, said := c.items()
	chat := alertObject{"items": []any{heard, said}}
	for k, v := range c.more {
		chat[k] = v
	}
	header := alertObject{"session_id": c.id, "start_time": 1795260000, "agent_id": c.agent, "room_tags": alertObject{"account_id": c.account, "transport": c.transport}}
	if !c.ended.IsZero() {
		header["ended_at"] = json.Number(fmt.Sprintf("%d.%06d", c.ended.Unix(), c.ended.Nanosecond()/1000))
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, part := range map[string]any{"header": header, "chat_history": chat} {
		p, _ := w.CreatePart(map[string][]string{"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename="%s.json"`, name, name)}, "Content-Type": {"application/json"}})
		p.Write(alertJSON(part))
	}
	w.Close()
	return w.FormDataContentType(), b.Bytes()
}

// talk sends a turn of a call that is still going on, as log records do.
func (h *alertHouse) talk(room string, c alertCall) {
	h.t.Helper()
	text := func(k, v string) alertObject { return alertObject{"key": k, "value": alertObject{"stringValue": v}} }
	who := []any{text("room_id", room), text("job_id", "AJ_"+room)}
	heard, said := c.items()
	var records []any
	for i, item := range []any{heard, said} {
		records = append(records, alertObject{"timeUnixNano": fmt.Sprint(h.clock().UnixNano() + int64(i)), "body": alertObject{"stringValue": "chat item"},
			"attributes": append([]any{text("chat.item", string(alertJSON(item)))}, who...)})
	}
	h.ask(200, "POST", "/observability/logs/otlp/v0", alertJSON(alertObject{"resourceLogs": []any{alertObject{"scopeLogs": []any{
		alertObject{"scope": alertObject{"name": "chat_history", "attributes": who}, "logRecords": records}}}}}), "application/json")
}

// judge sends an eval run of one case with one judgment.
func (h *alertHouse) judge(n int, agent, account, judge, verdict string) {
	h.t.Helper()
	id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", n)
	body := alertObject{"version": "v0",
		"run": alertObject{"run_id": id, "agent_id": agent, "account_id": account, "testing_framework": "pytest", "started_at": 1795260000, "status": "completed"},
		"cases": []any{alertObject{"case_id": "c" + id[1:], "name": "case", "status": "passed", "judgments": []any{
			alertObject{"judge_name": judge, "verdict": verdict}}}}}
	h.ask(201, "POST", "/observability/evals/v0", alertJSON(body), "application/json")
}

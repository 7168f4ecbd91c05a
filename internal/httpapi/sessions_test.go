package httpapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sidetone/internal/demo"
	"sidetone/internal/errs"
	"sidetone/internal/eval"
	"sidetone/internal/httpapi"
	"sidetone/internal/pgtest"
	"sidetone/internal/report"
	"sidetone/internal/session"
	"sidetone/internal/sqlstore"
)

const recordingsPath = "/observability/recordings/v0"

// heldRecordings keeps recordings in memory.
type heldRecordings struct {
	mu   sync.Mutex
	data map[string][]byte
}

type heldRecording struct {
	bytes.Buffer
	in *heldRecordings
}

func (h *heldRecordings) Create(context.Context) (session.StagedRecording, error) {
	return &heldRecording{in: h}, nil
}

func (r *heldRecording) Commit(context.Context) (session.Recording, error) {
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	sum := sha256.Sum256(r.Bytes())
	key := fmt.Sprintf("key-%d", len(r.in.data))
	r.in.data[key] = r.Bytes()
	return session.Recording{Key: key, Size: int64(r.Len()), SHA256: hex.EncodeToString(sum[:])}, nil
}

func (r *heldRecording) Abort() {}

type heldFile struct{ *bytes.Reader }

func (heldFile) Close() error { return nil }

func (h *heldRecordings) Open(_ context.Context, key string) (io.ReadSeekCloser, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.data[key] == nil {
		return nil, errs.New(errs.NotFound, "the recording is gone")
	}
	return heldFile{bytes.NewReader(h.data[key])}, nil
}

func (h *heldRecordings) Link(context.Context, string, string) (string, error) { return "", nil }
func (h *heldRecordings) Kept(string)                                          {}
func (h *heldRecordings) Doubt(string)                                         {}

func (h *heldRecordings) Delete(_ context.Context, key string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.data[key] = nil
	return nil
}

func (h *heldRecordings) count() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.data {
		if d != nil {
			n++
		}
	}
	return n
}

// sessionServer is the handler of the program on a fresh database, with a clock that the test moves.
type sessionServer struct {
	*evalServer
	engine     string
	store      *sqlstore.Store
	sessions   *session.Service
	recordings *heldRecordings
	dropped    int // records that could be kept nowhere
}

func newSessionServer(t testing.TB, engine string) *sessionServer {
	t.Helper()
	url := ""
	if engine == "postgres" {
		url = pgtest.URL(t)
	}
	s := &sessionServer{engine: engine, evalServer: &evalServer{t: t, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)},
		recordings: &heldRecordings{data: map[string][]byte{}}}
	var err error
	if s.store, err = sqlstore.Open(engine, filepath.Join(t.TempDir(), "test.db"), url, sqlstore.Observer{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.store.Ready(context.Background()) == nil { // a test may have closed it
			s.store.Close()
		}
	})
	if _, err := s.store.Migrate(t.Context(), s.now); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	s.sessions = session.NewService(s.store, s.recordings, report.ParseDoc, nil, log)
	s.handler, err = httpapi.New(httpapi.Deps{
		Sessions: s.sessions, Evals: eval.NewService(s.store.Evals(), nil), Log: log, Now: s.clock,
		Auth:    httpapi.NewAuth("", "", "", "", s.clock, httpapi.WriteError),
		Ready:   s.store.Ready,
		Metrics: http.NotFoundHandler(), Dashboard: http.NotFoundHandler(), Observe: func(httpapi.Request) {},
		DroppedTelemetry: func(n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dropped += n
		},
		MaxRecordingBytes: 100 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func eachEngine(t *testing.T, test func(t *testing.T, s *sessionServer)) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) { test(t, newSessionServer(t, engine)) })
	}
}

// upload posts a report and returns its session id.
func (s *sessionServer) upload(contentType string, body []byte) string {
	s.t.Helper()
	id, _ := s.json(200, "POST", recordingsPath, body, "Content-Type: "+contentType)["session_id"].(string)
	return id
}

// form is a report in multipart; audio nil sends none.
func form(t testing.TB, header, chat string, audio []byte) (contentType string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part := func(name string, data []byte) {
		p, err := w.CreateFormField(name)
		if err == nil {
			_, err = p.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	part("header", []byte(header))
	if chat != "" {
		part("chat_history", []byte(chat))
	}
	if audio != nil {
		part("audio", audio)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.Bytes()
}

func (s *sessionServer) uploadForm(header, chat string, audio []byte) string {
	s.t.Helper()
	return s.upload(form(s.t, header, chat, audio))
}

// demoCall is the fixture of a recorded call.
func (s *sessionServer) demoCall() string {
	s.t.Helper()
	return s.uploadForm(string(evalFixture(s.t, "demo-call/header.json")), string(evalFixture(s.t, "demo-call/chat_history.json")),
		evalFixture(s.t, "demo-call/recording.ogg"))
}

// row is an object of a list or reply.
func rowsOf(reply object) []object {
	var out []object
	for _, o := range reply["objects"].([]any) {
		out = append(out, o.(object))
	}
	return out
}

func TestSessionPages(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		const n = 45
		for i := range n {
			s.upload(demo.BenchCall(i).Multipart(nil))
		}
		for query, want := range map[string][2]int{"": {20, 20}, "?limit=1000": {20, 20}, "?limit=0": {1, 1}, "?limit=-3": {1, 1}, "?limit=7": {7, 7},
			"?offset=40": {20, 5}, "?offset=1000": {20, 0}, "?offset=9223372036854775807": {20, 0}} {
			reply := s.get("/api/sessions" + query)
			meta := reply["meta"].(object)
			if rows := rowsOf(reply); meta["limit"] != float64(want[0]) || len(rows) != want[1] || meta["total_count"] != float64(n) {
				t.Errorf("%q: %d rows, meta %v", query, len(rows), meta)
			}
			if offset := meta["offset"].(float64); (meta["next"] == nil) != (offset+float64(want[0]) >= n) || (meta["previous"] == nil) != (offset == 0) {
				t.Errorf("%q: links of %v", query, meta)
			}
		}
		for _, filters := range []string{"", "account_id=" + url.QueryEscape("account-01,account-02,account-03, account-04"), "transport=sip&q=" + url.QueryEscape(`a -"nobody says this"`),
			"state=ended&started_from=2026-10-01&min_duration_ms=1&agent_name=" + url.QueryEscape("Agent support 00,Agent sales 03,Agent billing 01,Ä&=#,Agent sales 47,Agent reception 02,Agent support 04")} {
			var forth, back []string
			var total float64
			next := "/api/sessions?limit=4&" + filters
			last := ""
			for next != "" {
				reply := s.get(next)
				meta := reply["meta"].(object)
				total = meta["total_count"].(float64)
				for _, row := range rowsOf(reply) {
					forth = append(forth, row["id"].(string))
				}
				want, _ := url.ParseQuery(filters)
				last, next = next, ""
				if link, ok := meta["next"].(string); ok {
					u, err := url.Parse(link)
					if err != nil || u.IsAbs() || u.Path != "/api/sessions" {
						t.Fatalf("next %q, %v", link, err)
					}
					for k := range want {
						if u.Query().Get(k) != want.Get(k) {
							t.Fatalf("next %q lost %s=%q", link, k, want.Get(k))
						}
					}
					next = link
				}
			}
			for previous := last; previous != ""; {
				reply := s.get(previous)
				var page []string
				for _, row := range rowsOf(reply) {
					page = append(page, row["id"].(string))
				}
				back = append(page, back...)
				previous, _ = reply["meta"].(object)["previous"].(string)
			}
			if len(forth) != int(total) || !slices.Equal(forth, back) || len(forth) < 3 {
				t.Errorf("%q: forth %v, back %v of %v", filters, forth, back, total)
			}
			if unique := slices.Compact(slices.Sorted(slices.Values(forth))); len(unique) != len(forth) {
				t.Errorf("%q: a row is repeated in %v", filters, forth)
			}
		}
	})
}

func TestBadSessionQueries(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		for query, field := range map[string]string{
			"limit=x": "limit", "limit=1.5": "limit", "limit=1e1": "limit", "limit=%201": "limit", "offset=-1": "offset", "offset=ten": "offset",
			"started_from=yesterday": "started_from", "started_to=2026-13-01": "started_to", "started_to=2026-11-21T25:00:00Z": "started_to",
			"started_from=1795238400": "started_from", "state=over": "state", "state=ACTIVE": "state", "has_recording=maybe": "has_recording",
			"has_failed_eval=2": "has_failed_eval", "min_duration_ms=-1": "min_duration_ms", "max_duration_ms=1.5": "max_duration_ms", "min_duration_ms=1s": "min_duration_ms",
			"q=" + strings.Repeat("x", 1001): "q", "account_id=%00": "account_id", "agent_id=a,%ff": "agent_id", "transport=" + strings.Repeat("a,b,", 60): "transport",
		} {
			reply := s.json(400, "GET", "/api/sessions?"+query, nil)
			if fields := code(t, reply, "invalid_query"); !slices.Contains(fields, field) {
				t.Errorf("%.60s: details name %v, want %s", query, fields, field)
			}
		}
		both := code(t, s.json(400, "GET", "/api/sessions?limit=x&offset=y", nil), "invalid_query")
		if !slices.Equal(both, []string{"limit", "offset"}) {
			t.Errorf("two wrong fields: %v", both)
		}
		both = code(t, s.json(400, "GET", "/api/sessions?state=x&has_recording=y", nil), "invalid_query")
		if len(both) != 2 {
			t.Errorf("two wrong filters: %v", both)
		}
		// Not errors: what people type into a search box.
		for _, q := range []string{`"`, `-`, `""`, `*`, `-"`, `a AND (`, `%`, `\`, `'; DROP TABLE`, "NEAR(a b)", "a:b", "\x00", "\xff", "返金 👋", `"a" -"b`} {
			s.get("/api/sessions?q=" + url.QueryEscape(q))
		}
		for _, query := range []string{"account_id=", "account_id=,", "unknown=1", "started_from=2026-11-21T05:20:00+01:00", "started_from=2026-11-21T05%3A20%3A00.123456Z"} {
			s.get("/api/sessions?" + query)
		}
	})
}

func TestFiltersOverHTTP(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		s.demoCall()
		s.uploadForm(`{"session_id":"other","start_time":1795190400.123456,"ended_at":1795190410,"room_tags":{"account_id":"acme"}}`,
			`{"items":[{"type":"message","role":"user","content":["where is <b>my</b> refund & order?"],"created_at":1795190401}],"outcome":"Fail","evaluations":[{"name":"j","verdict":"fail"}]}`, nil)
		find := func(query string, want ...string) []object {
			t.Helper()
			rows := rowsOf(s.get("/api/sessions?" + query))
			var got []string
			for _, r := range rows {
				got = append(got, r["id"].(string))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s finds %v, want %v", query, got, want)
			}
			return rows
		}
		const call = "demo-call-44712"
		find("", call, "other")
		find("account_id=northwind", call)
		find("account_id=northwind,acme", call, "other")
		find("account_id=Northwind")
		find("transport=sip", call)
		find("outcome=fail", "other")
		find("outcome=FAIL,nothing", "other")
		find("outcome=success", call)
		find("has_recording=true", call)
		find("has_recording=false", "other")
		find("has_failed_eval=true", call, "other")
		find("has_failed_eval=false")
		find("state=active")
		find("state=ended", call, "other")
		find("min_duration_ms=10001", call)
		find("max_duration_ms=10000", "other")
		find("started_from=2026-11-20&started_to=2026-11-20", "other") // started at 16:00 on the 20th
		find("started_from=2026-11-21", call)
		find("started_to=2026-11-21", call, "other")
		find("started_from=2026-11-20T16:00:00.123Z&started_to=2026-11-20T16:00:00.123Z", "other") // as the list shows it
		find("started_to=2026-11-20T16:00:00.122Z")
		find("started_from=2026-11-20T17:00:00.123%2B01:00&started_to=2026-11-20T17:00:00.123+01:00", "other")
		rows := find("q=refund+order&account_id=acme", "other")
		if len(rows) == 1 && rows[0]["match_snippet"] != "where is &lt;b&gt;my&lt;/b&gt; <mark>refund</mark> &amp; <mark>order</mark>?" {
			t.Errorf("snippet %v", rows[0]["match_snippet"])
		}
		find("q=-where", call)
	})
}

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestUnknownSessionsAre404(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		s.demoCall()
		for _, id := range []string{"nothing", "demo-call-44712:x", "%00", "demo-call-44712%00", "%ff", "a%2Fb", "..%2F..%2Fetc%2Fpasswd", "%20", "%27%22", strings.Repeat("x", 9000), "00000000-0000-4000-8000-000000000000"} {
			for _, what := range []string{"", "/spans", "/logs", "/recording"} {
				reply := s.json(404, "GET", "/api/sessions/"+id+what, nil)
				code(t, reply, "not_found")
				if api := reply["api_id"].(string); !uuidForm.MatchString(api) {
					t.Errorf("api_id %q", api)
				}
			}
		}
		code(t, s.json(404, "GET", "/api/nothing", nil), "not_found")
		code(t, s.json(404, "POST", "/observability/nothing", nil), "not_found")
		for what, field := range map[string]string{"spans?limit=x": "limit", "logs?offset=-1": "offset"} {
			if fields := code(t, s.json(400, "GET", "/api/sessions/demo-call-44712/"+what, nil), "invalid_query"); !slices.Contains(fields, field) {
				t.Errorf("%s: %v", what, fields)
			}
		}
	})
}

func TestDeleteSessions(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		var ids []string
		for i := range 201 {
			ids = append(ids, fmt.Sprintf("s%d", i))
		}
		many, err := json.Marshal(ids)
		if err != nil {
			t.Fatal(err)
		}
		s.demoCall()
		for name, c := range map[string]struct{ body, code, field string }{
			"none":          {`{"session_ids":[]}`, "invalid_payload", "session_ids"},
			"201":           {`{"session_ids":` + string(many) + `}`, "invalid_payload", "session_ids"},
			"missing":       {`{}`, "invalid_payload", "session_ids"},
			"unknown field": {`{"session_ids":["a"],"force":true}`, "invalid_payload", "force"},
			"null":          {`{"session_ids":null}`, "invalid_payload", "session_ids"},
			"text":          {`{"session_ids":"a"}`, "invalid_payload", "session_ids"},
			"numbers":       {`{"session_ids":[1]}`, "invalid_payload", "session_ids[0]"},
			"list":          {`["a"]`, "invalid_payload", ""},
			"no JSON":       {`{"session_ids":`, "invalid_json", ""},
			"nothing":       {``, "invalid_json", ""},
		} {
			reply := s.json(400, "DELETE", "/api/sessions", []byte(c.body), "Content-Type: application/json")
			if fields := code(t, reply, c.code); c.field != "" && !slices.Contains(fields, c.field) {
				t.Errorf("%s: details name %v, want %s", name, fields, c.field)
			}
		}
		if s.recordings.count() != 1 {
			t.Error("a refused request deleted a recording")
		}
		reply := s.json(200, "DELETE", "/api/sessions", []byte(`{"session_ids":["demo-call-44712","gone","demo-call-44712","\u0000"]}`), "Content-Type: application/json")
		if reply["deleted"] != 1.0 || s.recordings.count() != 0 {
			t.Errorf("%v, and %d recordings are left", reply, s.recordings.count())
		}
		s.json(404, "GET", "/api/sessions/demo-call-44712", nil)
		if n := s.get("/api/sessions")["meta"].(object)["total_count"]; n != 0.0 {
			t.Errorf("%v are left", n)
		}
	})
}

// timeForm is how every time leaves the program.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// rowKeys are what shared/api.md promises of a row; detailKeys what it adds for one session.
var (
	rowKeys = strings.Fields(`id session_id job_id account_id agent_id agent_name transport state started_at ended_at duration_ms turn_count
		interruption_count tool_call_count p95_user_perceived_ms has_stt has_llm has_tts outcome eval_pass_count eval_fail_count record_url
		estimated_cost_usd created_at`)
	detailKeys = strings.Fields(`chat_history session_metrics raw_report events options tags evaluations outcome usage sdk_version room_name
		signals incomplete api_id`)
)

func TestSessionShapes(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		s.demoCall()
		s.uploadForm(`{"session_id":"bare"}`, "", nil)
		rows := rowsOf(s.get("/api/sessions"))
		for _, row := range rows {
			d := s.get("/api/sessions/" + row["id"].(string))
			for _, k := range rowKeys {
				if _, ok := row[k]; !ok {
					t.Errorf("a row lacks %s", k)
				}
				if k != "outcome" && fmt.Sprint(d[k]) != fmt.Sprint(row[k]) {
					t.Errorf("%s is %v in the detail and %v in the list", k, d[k], row[k])
				}
			}
			for _, k := range detailKeys {
				if _, ok := d[k]; !ok {
					t.Errorf("a detail lacks %s", k)
				}
			}
			for _, o := range []object{row, d} {
				for k, v := range o {
					if text, ok := v.(string); ok && strings.HasSuffix(k, "_at") && !timeForm.MatchString(text) {
						t.Errorf("%s is %q", k, text)
					}
				}
			}
			if _, ok := row["match_snippet"]; ok {
				t.Error("a snippet without a search")
			}
		}
		bare := s.get("/api/sessions/bare")
		has(t, "a call without a word", bare, object{"job_id": nil, "account_id": nil, "transport": nil, "started_at": nil, "duration_ms": nil,
			"turn_count": 0, "p95_user_perceived_ms": nil, "outcome": nil, "record_url": nil, "estimated_cost_usd": nil, "events": nil, "options": nil,
			"chat_history": []any{}, "tags": []any{}, "evaluations": []any{}, "usage": []any{}, "state": "ended", "ended_at": "2026-11-21T12:00:00.000Z"})
		if summary := bare["session_metrics"].(object)["summary"].(object); summary["p95_user_perceived_ms"] != nil {
			t.Errorf("an unmeasured latency is shown as %v", summary["p95_user_perceived_ms"])
		}
		call := s.get("/api/sessions/demo-call-44712")
		has(t, "the demo call", call, object{"turn_count": 6, "interruption_count": 1, "tool_call_count": 3, "p95_user_perceived_ms": 3702,
			"account_id": "northwind", "transport": "sip", "record_url": "/api/sessions/demo-call-44712/recording"})
	})
}

func TestRecordingOverHTTP(t *testing.T) {
	s := newSessionServer(t, "sqlite")
	audio := evalFixture(t, "demo-call/recording.ogg")
	id := s.demoCall()
	path := "/api/sessions/" + id + "/recording"
	whole := s.do("GET", path, nil)
	if whole.Code != 200 || !bytes.Equal(whole.Body.Bytes(), audio) || whole.Header().Get("Content-Type") != "audio/ogg" || whole.Header().Get("Accept-Ranges") != "bytes" {
		t.Errorf("%d, %d bytes, %v", whole.Code, whole.Body.Len(), whole.Header())
	}
	part := s.do("GET", path, nil, "Range: bytes=10-19")
	if part.Code != 206 || !bytes.Equal(part.Body.Bytes(), audio[10:20]) {
		t.Errorf("range: %d, %d bytes", part.Code, part.Body.Len())
	}
	if w := s.do("GET", path, nil, "If-None-Match: "+whole.Header().Get("ETag")); w.Code != 304 {
		t.Errorf("the same ETag: %d", w.Code)
	}
	if w := s.do("GET", path, nil, "Range: bytes=99999999-"); w.Code != 416 {
		t.Errorf("a range behind the end: %d", w.Code)
	}
	if w := s.do("HEAD", path, nil); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != fmt.Sprint(len(audio)) {
		t.Errorf("HEAD: %d, %v", w.Code, w.Header())
	}
	if w := s.do("GET", path+"?download=1", nil); w.Header().Get("Content-Disposition") != "attachment; filename=demo-call-44712.ogg" {
		t.Errorf("download: %q", w.Header().Get("Content-Disposition"))
	}
	awkward := s.uploadForm(`{"session_id":"../a/b\"c: ü"}`, "", []byte("OggS"))
	link := s.get("/api/sessions/" + url.PathEscape(awkward))["record_url"].(string)
	if w := s.do("GET", link+"?download=1", nil); w.Code != 200 || strings.ContainsAny(strings.TrimPrefix(w.Header().Get("Content-Disposition"), "attachment; filename"), `/\`) {
		t.Errorf("%s: %d, %q", link, w.Code, w.Header().Get("Content-Disposition"))
	}
	// A report sent again with another recording: the old file goes. Without one: the recording stays.
	s.uploadForm(string(evalFixture(t, "demo-call/header.json")), string(evalFixture(t, "demo-call/chat_history.json")), []byte("OggS again"))
	s.uploadForm(string(evalFixture(t, "demo-call/header.json")), string(evalFixture(t, "demo-call/chat_history.json")), nil)
	if w := s.do("GET", path, nil); w.Body.String() != "OggS again" || s.recordings.count() != 2 {
		t.Errorf("%q, %d recordings kept", w.Body, s.recordings.count())
	}
}

// TestHostileReports posts what no SDK would: an answer that the client can use, and nothing stored.
func TestHostileReports(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		for name, header := range map[string]string{
			"no id": `{"start_time":1}`, "empty id": `{"session_id":""}`, "id of 600 bytes": `{"session_id":"` + strings.Repeat("x", 600) + `"}`,
			"no JSON": `{"session_id":`, "a list": `[]`, "id is a number": `{"session_id":7}`, "protobuf garbage": "\xff\xff\xff",
		} {
			kind, body := form(t, header, "", nil)
			w := s.do("POST", recordingsPath, body, "Content-Type: "+kind)
			var reply object
			if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != 400 {
				t.Errorf("%s: %d %.200s", name, w.Code, w.Body)
			}
		}
		if n := s.get("/api/sessions")["meta"].(object)["total_count"]; n != 0.0 {
			t.Fatalf("%v sessions of refused reports", n)
		}
		// Text that a database might choke on is stored, not refused with a 500.
		long := strings.Repeat("長い", 200)
		for name, header := range map[string]string{
			"NUL": `{"session_id":"a\u0000b","room_tags":{"account_id":"x\u0000y","transport":"\u0000"},"agent_name":"\u0000"}`, "lone surrogate": `{"session_id":"a\ud800b","agent_id":"\udfff"}`,
			"broken UTF-8": "{\"session_id\":\"c\xffd\",\"agent_name\":\"\xc3\"}", "right to left": `{"session_id":"\u202eabc","agent_name":"שלום"}`,
			"long names": `{"session_id":"long","agent_name":"` + long + `","agent_id":"` + strings.Repeat("x", 512) + `"}`,
		} {
			kind, body := form(t, header, `{"items":[{"type":"message","role":"user","content":["a\u0000b \ud800 `+long+`"]},{"type":"\u0000","id":"\u0000"}],"tags":["\u0000","t\u0000:x",{"name":"m","metadata":{"\u0000":"\u0000"}}],
				"evaluations":[{"name":"\u0000","verdict":"\u0000"}],"outcome":{"outcome":"\u0000x","reason":"\u0000"},"events":["\u0000"],"options":{"\u0000":1},"usage":[{"type":"\u0000"}],"sdk_version":"\u0000"}`, nil)
			w := s.do("POST", recordingsPath, body, "Content-Type: "+kind)
			if w.Code != 200 && (w.Code != 400 || name != "long names" && name != "NUL" && name != "lone surrogate" && name != "broken UTF-8") {
				t.Errorf("%s: %d %.300s", name, w.Code, w.Body)
			}
		}
		for _, row := range rowsOf(s.get("/api/sessions?limit=20")) {
			s.get("/api/sessions/" + url.PathEscape(row["id"].(string)))
		}
		s.get("/api/sessions?q=a")
	})
}

func TestDatabaseAway(t *testing.T) {
	eachEngine(t, func(t *testing.T, s *sessionServer) {
		s.demoCall()
		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/api/sessions", "/api/sessions?q=x", "/api/sessions/demo-call-44712", "/api/sessions/demo-call-44712/spans",
			"/api/sessions/demo-call-44712/logs", "/api/sessions/demo-call-44712/recording"} {
			code(t, s.json(503, "GET", path, nil), "unavailable")
		}
		code(t, s.json(503, "DELETE", "/api/sessions", []byte(`{"session_ids":["x"]}`), "Content-Type: application/json"), "unavailable")
		kind, body := demo.BenchCall(1).Multipart(nil)
		code(t, s.json(503, "POST", recordingsPath, body, "Content-Type: "+kind), "unavailable")
		if w := s.do("GET", "/health", nil); w.Code != 200 {
			t.Errorf("/health: %d", w.Code)
		}
	})
}

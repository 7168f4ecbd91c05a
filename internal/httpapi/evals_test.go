package httpapi_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"sidetone/internal/eval"
	"sidetone/internal/httpapi"
	"sidetone/internal/pgtest"
	"sidetone/internal/sqlstore"
)

const evalsPath = "/observability/evals/v0"

// evalServer is the handler of the program on a fresh database, with a clock that the test moves.
type evalServer struct {
	t       testing.TB
	handler http.Handler
	mu      sync.Mutex
	now     time.Time
}

func (s *evalServer) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *evalServer) wait(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func newEvalServer(t testing.TB, engine, url, user string) *evalServer {
	t.Helper()
	s := &evalServer{t: t, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	store, err := sqlstore.Open(engine, filepath.Join(t.TempDir(), "test.db"), url, sqlstore.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if _, err := store.Migrate(t.Context(), s.now); err != nil {
		t.Fatal(err)
	}
	price := func(_, _ string, _, _, _ int64) (float64, bool) { return 0, false }
	s.handler, err = httpapi.New(httpapi.Deps{
		Evals: eval.NewService(store.Evals(), price), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: s.clock,
		Auth:    httpapi.NewAuth(user, user, "", "", s.clock, httpapi.WriteError),
		Metrics: http.NotFoundHandler(), Dashboard: http.NotFoundHandler(), Observe: func(httpapi.Request) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// onBothEngines runs a test against the real handler on each engine.
func onBothEngines(t *testing.T, test func(t *testing.T, s *evalServer)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newEvalServer(t, "sqlite", "", "")) })
	t.Run("postgres", func(t *testing.T) { test(t, newEvalServer(t, "postgres", pgtest.URL(t), "")) })
}

// do sends a request; headers are "Name: value".
func (s *evalServer) do(method, target string, body []byte, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, bytes.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

type object = map[string]any

// json sends a request and decodes its reply, which must have the status and an api_id.
func (s *evalServer) json(status int, method, target string, body []byte, headers ...string) object {
	s.t.Helper()
	w := s.do(method, target, body, headers...)
	var out object
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != status {
		s.t.Fatalf("%s %s: %d %.500s, want %d", method, target, w.Code, w.Body, status)
	}
	if id, _ := out["api_id"].(string); id == "" || id != w.Header().Get("X-Request-Id") {
		s.t.Fatalf("%s %s: api_id %q, x-request-id %q", method, target, id, w.Header().Get("X-Request-Id"))
	}
	return out
}

func (s *evalServer) get(target string) object {
	s.t.Helper()
	return s.json(200, "GET", target, nil)
}

func (s *evalServer) post(body []byte) object {
	s.t.Helper()
	return s.json(201, "POST", evalsPath, body, "Content-Type: application/json")
}

// has checks some fields of an object; numbers are written as JSON has them.
func has(t testing.TB, what string, got object, want object) {
	t.Helper()
	for k, v := range want {
		raw, _ := json.Marshal(v)
		var w any
		json.Unmarshal(raw, &w)
		if g, ok := got[k]; !ok || !reflect.DeepEqual(g, w) {
			t.Errorf("%s: %s is %v, want %v", what, k, g, w)
		}
	}
}

// code checks the error code of a reply and returns the fields its details name.
func code(t testing.TB, reply object, want string) (fields []string) {
	t.Helper()
	e, _ := reply["error"].(object)
	if e["code"] != want || e["message"] == "" {
		t.Errorf("error %v, want code %s", e, want)
	}
	details, _ := e["details"].([]any)
	for _, d := range details {
		fields = append(fields, d.(object)["field"].(string))
	}
	return fields
}

func evalFixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../../testdata/fixtures/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func evalUUID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

func evalRun(n int, fields string, cases ...string) []byte {
	return fmt.Appendf(nil, `{"version":"v0","run":{"run_id":%q,"testing_framework":"pytest","started_at":%d%s},"cases":[%s]}`,
		evalUUID(n), 1795262400+n, fields, strings.Join(cases, ","))
}

func evalCase(n int, name, status, fields string) string {
	return fmt.Sprintf(`{"case_id":%q,"name":%q,"status":%q%s}`, evalUUID(n), name, status, fields)
}

func TestPytestFixturesInOrderInReverseAndRepeated(t *testing.T) {
	const id = "5c305e5a-7029-475d-92cd-8fa1073e77f7"
	onBothEngines(t, func(t *testing.T, s *evalServer) {
		var first object
		for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {1, 1, 2, 2, 3, 3}, {3, 1, 2, 3}} {
			s.json(200, "DELETE", "/api/evals", []byte(`{"run_ids":["`+id+`"]}`))
			for _, n := range order {
				got := s.post(evalFixture(t, "pytest-evals/"+[]string{"1-running", "2-one-case", "3-finished"}[n-1]+".json"))
				has(t, "receipt", got, object{"run_id": id, "case_count": []int{0, 1, 4}[n-1]})
			}
			run := s.get("/api/evals/" + id)
			has(t, fmt.Sprint("run after ", order), run, object{"status": "completed", "total": 4, "passed": 1, "skipped": 1, "failed": 2,
				"errored": 0, "pass_rate": 1.0 / 3, "testing_framework": "pytest", "agent_id": "northwind-support", "account_id": nil})
			cases := map[string]any{}
			for _, c := range run["cases"].([]any) {
				c := c.(object)
				if _, ok := c["events"]; ok {
					t.Error("a run carries the events of its cases without being asked")
				}
				cases[c["case_id"].(string)] = c
			}
			run["cases"], run["api_id"] = cases, nil
			if first == nil {
				first = run
			}
			if !reflect.DeepEqual(run, first) || len(cases) != 4 {
				t.Errorf("after %v\n got %v\nwant %v", order, run, first)
			}
		}
	})
}

func TestVitestFixtureAndLegacyRun(t *testing.T) {
	const id = "7a0d4b61-52c1-4a57-9a5e-0c7b3b1f6f10"
	onBothEngines(t, func(t *testing.T, s *evalServer) {
		body := evalFixture(t, "vitest-evals/run.json")
		s.post(body)
		s.post(body)
		run := s.get("/api/evals/" + id + "?include=events")
		has(t, "run", run, object{"run_id": id, "name": "PR 482", "total": 4, "passed": 1, "failed": 2, "skipped": 1, "errored": 0, "pass_rate": 1.0 / 3,
			"ttft_p50_ms": 612, "ttft_p95_ms": 1204, "tool_call_count": 1, "interruption_count": 1, "agent_handoff_count": 1, "status": "failed",
			"duration_ms": 8700, "started_at": "2026-11-21T05:20:00.500Z", "framework": "livekit", "testing_framework_version": "3.2.4", "estimated_cost_usd": nil,
			"last_activity_at": "2026-11-21T12:00:00.000Z", "created_at": "2026-11-21T12:00:00.000Z"})
		has(t, "ci", run["ci"].(object), object{"git_branch": "refunds", "pull_request": "482"})
		var sent struct{ Cases []object }
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		tokens, judged := 0.0, 0
		for i, c := range run["cases"].([]any) {
			c := c.(object)
			// Every field of a case comes back as it was sent.
			one := s.get(fmt.Sprintf("/api/evals/%s/cases/%s", id, c["case_id"]))
			for _, field := range []string{"case_id", "name", "file", "status", "user_input", "events", "judgments", "failure", "duration_ms"} {
				want := sent.Cases[i][field]
				if list, ok := c[field].([]any); ok && want == nil && len(list) == 0 {
					continue
				}
				if !reflect.DeepEqual(c[field], want) || !reflect.DeepEqual(one[field], want) {
					t.Errorf("case %d: %s is %v and %v, want %v", i, field, c[field], one[field], want)
				}
			}
			tokens += c["total_tokens"].(float64)
			if c["status"] == "passed" && c["judge_failed"] == true {
				judged++
			}
		}
		if judged != 1 || tokens == 0 || tokens != run["total_tokens"] {
			t.Errorf("%d cases failed by their judge alone; %v tokens in the cases, %v in the run", judged, tokens, run["total_tokens"])
		}

		s.post(evalFixture(t, "vitest-evals/legacy-run.json"))
		list := s.get("/api/evals?framework=livekit&testing_framework=pytest")["objects"].([]any)
		if len(list) != 1 {
			t.Fatalf("%d legacy runs", len(list))
		}
		has(t, "legacy", list[0].(object), object{"testing_framework": "pytest", "framework": "livekit"})
	})
}

func TestKilledRunReadsCompletedAfterAnHour(t *testing.T) {
	onBothEngines(t, func(t *testing.T, s *evalServer) {
		s.post(evalRun(1, `,"status":"running"`, evalCase(1, "a", "passed", "")))
		s.wait(30 * time.Minute)
		s.post(evalRun(1, `,"status":"running"`, evalCase(2, "b", "passed", "")))
		for _, step := range []struct {
			wait   time.Duration
			status string
		}{{time.Hour - time.Millisecond, "running"}, {time.Millisecond, "completed"}, {24 * time.Hour, "completed"}} {
			s.wait(step.wait)
			has(t, "run", s.get("/api/evals/"+evalUUID(1)), object{"status": step.status, "finished_at": nil, "total": 2, "last_activity_at": "2026-11-21T12:30:00.000Z"})
			for _, status := range []string{"running", "completed"} {
				list := s.get("/api/evals?status=" + status)["objects"].([]any)
				if (len(list) == 1) != (status == step.status) {
					t.Errorf("status=%s lists %d runs while the run reads %s", status, len(list), step.status)
				}
			}
		}
		// The plugin was alive after all.
		s.post(evalRun(1, `,"status":"running"`))
		has(t, "run", s.get("/api/evals/"+evalUUID(1)), object{"status": "running"})
		s.post(evalRun(1, `,"status":"failed","finished_at":1795349400`))
		s.post(evalRun(1, `,"status":"running","name":null`))
		has(t, "run", s.get("/api/evals/"+evalUUID(1)), object{"status": "failed", "finished_at": "2026-11-22T12:10:00.000Z", "total": 2})
	})
}

func TestMalformedPayloadsStoreNothing(t *testing.T) {
	data, err := os.ReadFile("../eval/testdata/malformed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	onBothEngines(t, func(t *testing.T, s *evalServer) {
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 1<<20)
		n := 0
		for ; lines.Scan(); n++ {
			var m struct {
				Name, Field, Kind, Body string
				BodyBase64              []byte `json:"body_base64"`
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatal(err)
			}
			body := m.BodyBase64
			if body == nil {
				body = []byte(m.Body)
			}
			t.Run(m.Name, func(t *testing.T) {
				inner := &evalServer{t: t, handler: s.handler}
				fields := code(t, inner.json(400, "POST", evalsPath, body, "Content-Type: application/json"), m.Kind)
				for _, f := range fields {
					if f == m.Field {
						return
					}
				}
				t.Errorf("the details name %q, want %q", fields, m.Field)
			})
		}
		if n < 100 {
			t.Errorf("only %d payloads", n)
		}
		has(t, "list", s.get("/api/evals")["meta"].(object), object{"total_count": 0})
	})
}

func TestSameRunPostedByManyClientsAtOnce(t *testing.T) {
	onBothEngines(t, func(t *testing.T, s *evalServer) {
		final := evalFixture(t, "vitest-evals/run.json")
		var wg sync.WaitGroup
		for client := range 8 {
			wg.Go(func() {
				for n := range 10 {
					bodies := [][]byte{final, evalRun(1, `,"status":"running"`, evalCase(client*100+n, "n", "passed", ""), evalCase(9999, "n", "failed", fmt.Sprintf(`,"finished_at":%d`, client*10+n+1)))}
					for _, body := range bodies {
						if w := s.do("POST", evalsPath, body); w.Code != 201 {
							t.Errorf("%d %s", w.Code, w.Body)
						}
					}
				}
			})
		}
		wg.Wait()
		has(t, "the same run", s.get("/api/evals/7a0d4b61-52c1-4a57-9a5e-0c7b3b1f6f10"), object{"total": 4, "passed": 1, "failed": 2, "skipped": 1})
		run := s.get("/api/evals/" + evalUUID(1))
		has(t, "the same run with different cases", run, object{"total": 81, "passed": 80, "failed": 1, "status": "running"})
		has(t, "the contested case", s.get("/api/evals/"+evalUUID(1)+"/cases/"+evalUUID(9999)), object{"finished_at": "1970-01-01T00:01:20.000Z"})
		has(t, "list", s.get("/api/evals")["meta"].(object), object{"total_count": 2})
	})
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func TestEvalBodies(t *testing.T) {
	s := newEvalServer(t, "postgres", pgtest.URL(t), "")
	const limit = 32 << 20
	good := evalRun(1, "")
	// Not JSON from the first byte on, so that what is refused for its size can be told from what is read quickly.
	padded := func(n int) []byte { return append([]byte(`x"`), bytes.Repeat([]byte("a"), n-2)...) }
	// The same as gzip: members one behind the other, so that little has to be compressed.
	const member = 1 << 20
	chunk := zipped(bytes.Repeat([]byte("a"), member))
	paddedGzip := func(n int) []byte {
		out := zipped(padded(2 + (n-2)%member))
		return append(out, bytes.Repeat(chunk, (n-2)/member)...)
	}
	many := func(n int) []byte {
		cases := make([]string, n)
		for i := range cases {
			cases[i] = evalCase(i, "n", "passed", "")
		}
		return evalRun(2, "", cases...)
	}
	const kind, gz = "Content-Type: application/json", "Content-Encoding: gzip"
	for _, tt := range []struct {
		name    string
		body    []byte
		status  int
		code    string
		headers []string
	}{
		{"no content type", good, 201, "", nil},
		{"JSON", good, 201, "", []string{kind}},
		{"JSON with a charset", good, 201, "", []string{"Content-Type: application/json; charset=utf-8"}},
		{"text", good, 415, "unsupported_media_type", []string{"Content-Type: text/plain"}},
		{"a form", good, 415, "unsupported_media_type", []string{"Content-Type: multipart/form-data; boundary=x"}},
		{"no media type", good, 415, "unsupported_media_type", []string{"Content-Type: ;;"}},
		{"gzip", zipped(good), 201, "", []string{kind, gz}},
		{"identity", good, 201, "", []string{kind, "Content-Encoding: identity"}},
		{"brotli", good, 415, "unsupported_media_type", []string{kind, "Content-Encoding: br"}},
		{"not gzip", good, 400, "invalid_payload", []string{kind, gz}},
		{"gzip that breaks off", zipped(good)[:40], 400, "invalid_payload", []string{kind, gz}},
		{"gzip of nothing", zipped(nil), 400, "invalid_json", []string{kind, gz}},
		{"the largest body", padded(limit), 400, "invalid_json", []string{kind}},
		{"one byte more", padded(limit + 1), 413, "payload_too_large", []string{kind}},
		{"the largest body, gzip", paddedGzip(limit), 400, "invalid_json", []string{kind, gz}},
		{"one byte more, gzip", paddedGzip(limit + 1), 413, "payload_too_large", []string{kind, gz}},
		{"a bomb", bytes.Repeat(chunk, 2000), 413, "payload_too_large", []string{kind, gz}},
		{"5000 cases", many(5000), 201, "", []string{kind}},
		{"5001 cases", many(5001), 413, "payload_too_large", []string{kind}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inner := &evalServer{t: t, handler: s.handler}
			reply := inner.json(tt.status, "POST", evalsPath, tt.body, tt.headers...)
			if tt.code != "" {
				code(t, reply, tt.code)
			}
		})
	}
	// A length that is not announced is bounded too.
	r := httptest.NewRequest("POST", evalsPath, io.MultiReader(bytes.NewReader(padded(limit+1))))
	r.ContentLength = -1
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != 413 {
		t.Errorf("chunked: %d", w.Code)
	}
	has(t, "the large run", s.get("/api/evals/"+evalUUID(2)), object{"total": 5000})
}

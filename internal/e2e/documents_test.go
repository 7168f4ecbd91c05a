package e2e

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sidetone/internal/apptest"
)

// TestMetrics looks for every series that the guides promise, after some traffic.
func TestMetrics(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		contentType, body := numbered(3).multipart()
		s.mustPost(contentType, body)
		s.post("text/plain", nil)
		s.get("/api/sessions/nobody")
		page := s.get("/metrics")
		if ct := page.header.Get("Content-Type"); page.status != 200 || !strings.HasPrefix(ct, "text/plain") {
			t.Fatalf("%d %s", page.status, ct)
		}
		engine, _, _ := strings.Cut(database, ":")
		ingest := `{method="POST",route="POST /observability/recordings/v0",status="200"}`
		for _, line := range []string{
			"sidetone_http_requests_total" + ingest + " 1",
			`sidetone_http_requests_total{method="POST",route="POST /observability/recordings/v0",status="415"} 1`,
			"sidetone_http_request_duration_seconds_count" + ingest + " 1",
			fmt.Sprintf("sidetone_http_request_bytes_total%s %v", ingest, asFloat(len(body))),
			"sidetone_http_response_bytes_total" + ingest,
			`sidetone_group_commit_size_count{kind="sessions"} 1`,
			`engine="` + engine + `"`,
			"sidetone_build_info{", "sidetone_db_connections_open{", "sidetone_db_connections_in_use{",
			"sidetone_db_connection_waits_total{", "sidetone_db_connection_wait_seconds_total{",
			"process_resident_memory_bytes", "go_goroutines",
		} {
			if !strings.Contains(string(page.body), line) {
				t.Errorf("/metrics lacks %s", line)
			}
		}
		if strings.Contains(string(page.body), "nobody") {
			t.Error("an id of a request became a label")
		}
	})
}

// asFloat writes a count as Prometheus does.
func asFloat(n int) string { return fmt.Sprint(float64(n)) }

// TestOpenAPI checks the document as far as the specification's rules can be told without a library: its version, its
// parts, that every reference and every path parameter resolves, and that it holds the routes that are served.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t))
	doc := s.json("/openapi.json")
	if v, _ := at(doc, "openapi").(string); !strings.HasPrefix(v, "3.1.") {
		t.Errorf("openapi is %q", v)
	}
	for _, path := range []string{"info.title", "info.version"} {
		if v, _ := at(doc, path).(string); v == "" {
			t.Errorf("%s is missing", path)
		}
	}
	paths, _ := at(doc, "paths").(map[string]any)
	if len(paths) == 0 {
		t.Fatal("no paths")
	}
	ids := map[string]string{}
	for path, item := range paths {
		for method, op := range item.(map[string]any) {
			where := strings.ToUpper(method) + " " + path
			if !slices.Contains([]string{"get", "put", "post", "delete", "patch", "head", "options"}, method) {
				t.Errorf("%s is no operation", where)
				continue
			}
			checkOperation(t, where, path, op)
			id, _ := at(op, "operationId").(string)
			if other := ids[id]; id == "" || other != "" {
				t.Errorf("%s: operationId %q, which %q has too", where, id, other)
			}
			ids[id] = where
		}
	}
	checkReferences(t, doc, doc, "#")

	for _, route := range []string{
		"POST /observability/recordings/v0", "GET /health", "GET /ready", "GET /metrics", "GET /api/sessions",
		"DELETE /api/sessions", "GET /api/sessions/{id}", "GET /api/sessions/{id}/recording", "GET /api/sessions/{id}/spans",
		"GET /api/sessions/{id}/logs", "POST /observability/evals/v0", "GET /api/evals", "DELETE /api/evals",
		"GET /api/evals/{run_id}", "GET /api/evals/{run_id}/cases/{case_id}", "GET /api/alert-rules", "POST /api/alert-rules",
		"GET /api/alert-rules/{id}", "PATCH /api/alert-rules/{id}", "DELETE /api/alert-rules/{id}",
		"GET /api/alert-rules/{id}/firings", "POST /api/alert-rules/{id}/test", "GET /api/alerts/webhook-attempts",
		"GET /api/alerts/webhook-stats", "POST /observability/logs/otlp/v0", "POST /v1/logs",
		"POST /observability/traces/otlp/v0", "POST /v1/traces", "POST /observability/metrics/otlp/v0", "POST /v1/metrics",
	} {
		method, path, _ := strings.Cut(route, " ")
		item, _ := paths[path].(map[string]any)
		if _, ok := item[strings.ToLower(method)]; !ok {
			t.Errorf("%s is not in the document", route)
		}
		served := s.do(method, strings.NewReplacer("{", "", "}", "").Replace(path), map[string]string{"Content-Type": "application/json"}, strings.NewReader("{}"))
		if served.status == 405 || served.status == 404 && strings.Contains(string(served.body), "there is no such") && strings.Contains(string(served.body), "route") {
			t.Errorf("%s is not served: %d %s", route, served.status, served.body)
		}
	}
}

var pathParameter = regexp.MustCompile(`\{([^}]+)\}`)

func checkOperation(t *testing.T, where, path string, op any) {
	t.Helper()
	responses, _ := at(op, "responses").(map[string]any)
	if len(responses) == 0 {
		t.Errorf("%s has no responses", where)
	}
	for status, r := range responses {
		if d, _ := at(r, "description").(string); d == "" {
			t.Errorf("%s: the response %s has no description", where, status)
		}
		if !regexp.MustCompile(`^([1-5]\d\d|[1-5]XX|default)$`).MatchString(status) {
			t.Errorf("%s: %q is no status", where, status)
		}
	}
	declared := map[string]bool{}
	for i := range max(0, length(op, "parameters")) {
		p := at(op, fmt.Sprintf("parameters.%d", i))
		name, _ := at(p, "name").(string)
		in, _ := at(p, "in").(string)
		if !slices.Contains([]string{"path", "query", "header", "cookie"}, in) || name == "" || at(p, "schema") == nil {
			t.Errorf("%s: the parameter %v is not complete", where, p)
		}
		if in == "path" {
			declared[name] = true
			if at(p, "required") != true {
				t.Errorf("%s: the path parameter %s must be required", where, name)
			}
		}
	}
	for _, m := range pathParameter.FindAllStringSubmatch(path, -1) {
		if !declared[m[1]] {
			t.Errorf("%s: the path parameter %s is not declared", where, m[1])
		}
		delete(declared, m[1])
	}
	for name := range declared {
		t.Errorf("%s: the path has no parameter %s", where, name)
	}
	if body := at(op, "requestBody"); body != nil {
		if content, _ := at(body, "content").(map[string]any); len(content) == 0 {
			t.Errorf("%s: the request body has no content", where)
		}
	}
}

// checkReferences walks the whole document: references lead somewhere, types are types.
func checkReferences(t *testing.T, doc, node any, where string) {
	t.Helper()
	switch v := node.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			steps, local := strings.CutPrefix(ref, "#/")
			if !local || at(doc, strings.ReplaceAll(steps, "/", ".")) == nil {
				t.Errorf("%s: %s leads nowhere", where, ref)
			}
		}
		for key, child := range v {
			checkReferences(t, doc, child, where+"/"+key)
		}
	case []any:
		for i, child := range v {
			checkReferences(t, doc, child, fmt.Sprintf("%s/%d", where, i))
		}
	}
}

// loads matches what makes a browser fetch something: attributes, styles, scripts.
var loads = regexp.MustCompile(`(?i)(?:src|srcset|action|data|poster)\s*=\s*["']?([^"'\s>]+)|<link[^>]+href\s*=\s*["']?([^"'\s>]+)|url\(\s*["']?([^"')]+)|@import\s+["']?([^"';]+)|fetch\(\s*["']([^"']+)`)

// TestPagesLoadNothingFromOtherHosts reads the page for people and the entry of the dashboard.
func TestPagesLoadNothingFromOtherHosts(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t))
	for _, path := range []string{"/docs", "/"} {
		page := s.get(path)
		if page.status != 200 || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", path, page.status, page.header.Get("Content-Type"))
		}
		for _, m := range loads.FindAllStringSubmatch(string(page.body), -1) {
			target := strings.Join(m[1:], "")
			u, err := url.Parse(target)
			if err != nil || u.Host != "" || u.Scheme != "" && u.Scheme != "data" {
				t.Errorf("%s loads %s", path, target)
			}
		}
		if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") && !strings.Contains(policy, "default-src 'self'") {
			t.Errorf("%s: the Content-Security-Policy is %q", path, policy)
		}
	}
	docs := string(s.get("/docs").body)
	for _, route := range []string{"/observability/recordings/v0", "/api/sessions/{id}/recording", "p95_user_perceived_ms", "/openapi.json"} {
		if !strings.Contains(docs, route) {
			t.Errorf("/docs does not mention %s", route)
		}
	}
}

// TestReplies checks what every reply has in common, and the pages of a list.
func TestReplies(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		var sent []report
		for n := range 45 {
			sent = append(sent, numbered(n))
			s.mustPost(sent[n].multipart())
		}
		ids := allListed(t, s)
		slices.Sort(ids)
		if len(ids) != 45 || len(slices.Compact(ids)) != 45 {
			t.Errorf("paging gives %d sessions of 45", len(ids))
		}
		want(t, s.json("/api/sessions?limit=500"), map[string]any{"meta.limit": 20})
		want(t, s.json("/api/sessions?limit=0"), map[string]any{"meta.limit": 1})
		middle := s.json("/api/sessions?transport=sip&limit=5&offset=5")
		want(t, middle, map[string]any{"meta.total_count": 23, "meta.offset": 5})
		for link, offset := range map[string]string{"next": "10", "previous": "0"} {
			u, err := url.Parse(fmt.Sprint(at(middle, "meta."+link)))
			if err != nil || u.Host != "" || u.Query().Get("offset") != offset || u.Query().Get("transport") != "sip" {
				t.Errorf("%s is %v", link, u)
			}
		}
		for _, path := range []string{"/api/sessions?limit=x", "/api/sessions?offset=-1", "/api/sessions?offset=1.5", "/api/sessions?started_from=yesterday",
			"/api/sessions?state=gone", "/api/sessions?has_recording=maybe", "/api/sessions?min_duration_ms=x"} {
			wantError(t, path, s.get(path), 400, "invalid_query")
		}
		wantError(t, "an unknown session", s.get("/api/sessions/nobody"), 404, "not_found")
		wantError(t, "an unknown route", s.get("/api/nothing"), 404, "not_found")
		wantError(t, "an unknown ingest route", s.do("POST", "/observability/nothing", nil, nil), 404, "not_found")
		wantError(t, "no recording", s.get("/api/sessions/"+sent[1].id+"/recording"), 404, "not_found")
		for _, q := range []string{`"`, `-`, `a"b`, `""`, `-"x`, `*`, `a AND`, `(`, `NEAR(`, `%`, `'`, `:*`, `!`, `&|`, "\u0000", `answer -question`} {
			if r := s.get("/api/sessions?q=" + url.QueryEscape(q)); r.status != 200 {
				t.Errorf("searching for %q: %d %s", q, r.status, r.body)
			}
		}
		want(t, s.json("/api/sessions?q="+url.QueryEscape(`"answer 0 of RM_call000007"`)), map[string]any{"meta.total_count": 1, "objects.0.id": "RM_call000007"})
		for name, body := range map[string]string{"invalid_json": "{", "invalid_payload": `{"session_ids":"x"}`, "too_many": tooManyIDs} {
			r := s.do("DELETE", "/api/sessions", map[string]string{"Content-Type": "application/json"}, strings.NewReader(body))
			if code := at(decode(t, r.body), "error.code"); r.status != 400 || name != "too_many" && code != name {
				t.Errorf("DELETE with %.40s: %d %s, want %s", body, r.status, r.body, name)
			}
		}
		if n := s.total(); n != 45 {
			t.Errorf("%d sessions after requests that delete nothing", n)
		}
	})
}

// tooManyIDs asks to delete one session more than a request may.
var tooManyIDs = `{"session_ids":["x"` + strings.Repeat(`,"x"`, 200) + `]}`

// TestDemoCommand runs what `make demo` runs.
func TestDemoCommand(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t))
	code, out := apptest.Run(t, []string{"demo", "--url", s.URL, "--calls", "30"})
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	want(t, s.json("/api/sessions/demo-call-44712"), map[string]any{"turn_count": 6, "interruption_count": 1, "tool_call_count": 3,
		"p95_user_perceived_ms": 3702})
	if n := s.total(); n < 31 {
		t.Errorf("%d sessions", n)
	}
	if r := s.do("GET", "/api/sessions/demo-call-44712/recording", map[string]string{"Range": "bytes=0-9"}, nil); r.status != 206 {
		t.Errorf("the recording: %d", r.status)
	}
	// Again replaces what it sent before.
	before := s.total()
	if code, out := apptest.Run(t, []string{"demo", "--url", s.URL, "--calls", "30"}); code != 0 {
		t.Fatalf("again: exit code %d\n%s", code, out)
	}
	if n := s.total(); n != before {
		t.Errorf("%d sessions, were %d", n, before)
	}
}

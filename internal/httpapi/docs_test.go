package httpapi_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// document is /openapi.json, to check replies against.
type document struct {
	t    *testing.T
	root object
}

func (s *sessionServer) document() document {
	s.t.Helper()
	w := s.do("GET", "/openapi.json", nil)
	d := document{t: s.t.(*testing.T)}
	if err := json.Unmarshal(w.Body.Bytes(), &d.root); err != nil || w.Code != 200 {
		s.t.Fatalf("%d, %v", w.Code, err)
	}
	return d
}

// at follows keys; a missing one gives nil.
func at(v any, keys ...string) any {
	for _, k := range keys {
		o, _ := v.(object)
		v = o[k]
	}
	return v
}

// follow finds what a $ref means.
func (d document) follow(schema object) object {
	for {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		name, local := strings.CutPrefix(ref, "#/components/schemas/")
		next, ok := at(d.root, "components", "schemas", name).(object)
		if !local || !ok {
			d.t.Fatalf("$ref %q leads nowhere", ref)
		}
		schema = next
	}
}

// check reports where a value is not what its schema says: types, required and unknown keys, enums, items.
func (d document) check(where string, schema object, v any) {
	d.t.Helper()
	schema = d.follow(schema)
	var types []string
	switch kind := schema["type"].(type) {
	case string:
		types = []string{kind}
	case []any:
		for _, k := range kind {
			types = append(types, k.(string))
		}
	}
	for _, alternatives := range []string{"oneOf", "anyOf"} {
		if list, ok := schema[alternatives].([]any); ok {
			for _, one := range list {
				if o, ok := one.(object); ok && (o["type"] == "null") == (v == nil) {
					d.check(where, o, v)
					return
				}
			}
		}
	}
	is := map[string]bool{}
	switch v := v.(type) {
	case nil:
		is["null"] = true
	case bool:
		is["boolean"] = true
	case string:
		is["string"] = true
	case float64:
		is["number"], is["integer"] = true, v == float64(int64(v))
	case []any:
		is["array"] = true
	case object:
		is["object"] = true
	}
	if len(types) > 0 && !slices.ContainsFunc(types, func(k string) bool { return is[k] }) {
		d.t.Errorf("%s is %.60v, the document says %v", where, v, types)
		return
	}
	if enum, ok := schema["enum"].([]any); ok && v != nil && !slices.Contains(enum, v) {
		d.t.Errorf("%s is %v, the document allows %v", where, v, enum)
	}
	switch v := v.(type) {
	case string:
		if schema["format"] == "date-time" && !timeForm.MatchString(v) {
			d.t.Errorf("%s is %q, no time as the document says", where, v)
		}
	case []any:
		if items, ok := schema["items"].(object); ok {
			for i, e := range v {
				d.check(fmt.Sprintf("%s[%d]", where, i), items, e)
			}
		}
	case object:
		properties, _ := schema["properties"].(object)
		required, _ := schema["required"].([]any)
		for _, k := range required {
			if _, ok := v[k.(string)]; !ok {
				d.t.Errorf("%s lacks %v, which the document requires", where, k)
			}
		}
		for k, e := range v {
			if p, ok := properties[k].(object); ok {
				d.check(where+"."+k, p, e)
			} else if schema["additionalProperties"] == false {
				d.t.Errorf("%s has %s, of which the document knows nothing", where, k)
			}
		}
	}
}

func TestTheDocumentTellsTheTruth(t *testing.T) {
	s := newSessionServer(t, "sqlite")
	s.demoCall()
	for _, r := range append(nodeRequests(t), captured(t, "livekit-python-logs/logs")) {
		s.mustSend(r)
	}
	s.mustSend(protobuf(t, tracesPath, spansOf([]*commonpb.KeyValue{attr("room_id", "live")}, span(1, 1, "user_turn", s.clock(), s.clock()))))
	s.uploadForm(`{"session_id":"bare"}`, "", nil)
	d := s.document()
	if v, _ := d.root["openapi"].(string); !strings.HasPrefix(v, "3.1") {
		t.Errorf("openapi %q", v)
	}
	if at(d.root, "info", "title") == nil || at(d.root, "info", "version") == nil {
		t.Error("the document has no title or version")
	}
	for _, c := range []struct {
		status                 int
		method, route, request string
		body                   string
	}{
		{200, "GET", "/api/sessions", "/api/sessions", ""},
		{200, "GET", "/api/sessions", "/api/sessions?q=refund", ""},
		{200, "GET", "/api/sessions/{id}", "/api/sessions/demo-call-44712", ""},
		{200, "GET", "/api/sessions/{id}", "/api/sessions/RM_capture1", ""},
		{200, "GET", "/api/sessions/{id}", "/api/sessions/bare", ""},
		{200, "GET", "/api/sessions/{id}", "/api/sessions/live", ""},
		{200, "GET", "/api/sessions/{id}/spans", "/api/sessions/RM_capture1/spans", ""},
		{200, "GET", "/api/sessions/{id}/logs", "/api/sessions/RM_capture1/logs", ""},
		{200, "GET", "/api/evals", "/api/evals", ""},
		{400, "GET", "/api/sessions", "/api/sessions?limit=x", ""},
		{400, "GET", "/api/sessions", "/api/sessions?q=" + strings.Repeat("x", 2000), ""},
		{404, "GET", "/api/sessions/{id}", "/api/sessions/nothing", ""},
		{400, "DELETE", "/api/sessions", "/api/sessions", `{"ids":1}`},
		{200, "DELETE", "/api/sessions", "/api/sessions", `{"session_ids":["bare"]}`},
	} {
		schema, ok := at(d.root, "paths", c.route, strings.ToLower(c.method), "responses", fmt.Sprint(c.status), "content", "application/json", "schema").(object)
		if !ok {
			t.Errorf("%s %s: the document knows no %d: %v", c.method, c.route, c.status, at(d.root, "paths", c.route, strings.ToLower(c.method), "responses"))
			continue
		}
		reply := s.json(c.status, c.method, c.request, []byte(c.body), "Content-Type: application/json")
		d.check(c.method+" "+c.request, schema, reply)
	}
	// The check itself notices.
	probe := document{&testing.T{}, d.root}
	row := at(d.root, "paths", "/api/sessions/{id}", "get", "responses", "200", "content", "application/json", "schema").(object)
	good := s.get("/api/sessions/live")
	for name, spoil := range map[string]func(o object){
		"a missing key": func(o object) { delete(o, "turn_count") },
		"a wrong type":  func(o object) { o["turn_count"] = "1" },
		"a wrong state": func(o object) { o["state"] = "over" },
	} {
		bad := object{}
		for k, v := range good {
			bad[k] = v
		}
		spoil(bad)
		probe.t = &testing.T{}
		if probe.check("probe", row, bad); !probe.t.Failed() {
			t.Errorf("the check overlooks %s", name)
		}
	}
}

// TestEveryRouteIsDocumented asks for the routes that clients use.
func TestEveryRouteIsDocumented(t *testing.T) {
	s := newSessionServer(t, "sqlite")
	d := s.document()
	for _, route := range strings.Fields(`post/observability/recordings/v0 post/observability/evals/v0 post/observability/logs/otlp/v0
		post/observability/traces/otlp/v0 post/observability/metrics/otlp/v0 post/v1/logs post/v1/traces post/v1/metrics get/api/sessions
		delete/api/sessions get/api/sessions/{id} get/api/sessions/{id}/recording get/api/sessions/{id}/spans get/api/sessions/{id}/logs
		get/api/evals get/api/evals/{run_id} get/api/evals/{run_id}/cases/{case_id} delete/api/evals get/health get/ready get/metrics`) {
		method, path, _ := strings.Cut(route, "/")
		op, _ := at(d.root, "paths", "/"+path, method).(object)
		if op["summary"] == nil || op["operationId"] == nil {
			t.Errorf("%s /%s is not documented", method, path)
		}
	}
	var params []string
	for _, p := range at(d.root, "paths", "/api/sessions", "get", "parameters").([]any) {
		params = append(params, p.(object)["name"].(string))
	}
	for _, want := range strings.Fields("limit offset account_id agent_id agent_name transport started_from started_to state outcome has_recording min_duration_ms max_duration_ms q") {
		if !slices.Contains(params, want) {
			t.Errorf("the filter %s is not documented", want)
		}
	}
	ids := map[string]string{}
	for path, item := range d.root["paths"].(object) {
		for method, op := range item.(object) {
			id := at(op, "operationId").(string)
			if other, ok := ids[id]; ok {
				t.Errorf("%s is the id of %s and of %s %s", id, other, method, path)
			}
			ids[id] = method + " " + path
		}
	}
}

func TestThePageLoadsNothing(t *testing.T) {
	s := newSessionServer(t, "sqlite")
	w := s.do("GET", "/docs", nil)
	page := w.Body.String()
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || !strings.Contains(page, "/api/sessions/{id}/recording") {
		t.Fatalf("%d %s", w.Code, w.Header())
	}
	if found := regexp.MustCompile(`(?i)(<script[^>]+src|<link[^>]+href|<img|@import|url\()[^>]*`).FindString(page); found != "" {
		t.Errorf("the page loads %s", found)
	}
}

// TestEveryErrorHasOneShape: whoever refuses, the reply has the same form, the request's id and no internals.
func TestEveryErrorHasOneShape(t *testing.T) {
	s := newSessionServer(t, "sqlite")
	for _, c := range []struct {
		status               int
		method, target, body string
		headers              []string
	}{
		{404, "GET", "/api/sessions/x", "", nil},
		{404, "GET", "/api/nothing/at/all", "", nil},
		{400, "GET", "/api/sessions?limit=x", "", nil},
		{400, "DELETE", "/api/sessions", `{`, []string{"Content-Type: application/json"}},
		{400, "DELETE", "/api/sessions", `{"session_ids":[1]}`, []string{"Content-Type: application/json"}},
		{415, "DELETE", "/api/sessions", `<x/>`, []string{"Content-Type: application/xml"}},
		{413, "DELETE", "/api/sessions", `{"session_ids":["` + strings.Repeat("x", 3<<20) + `"]}`, []string{"Content-Type: application/json"}},
		{415, "POST", recordingsPath, `{}`, []string{"Content-Type: application/json"}},
		{400, "POST", recordingsPath, ``, []string{"Content-Type: multipart/form-data; boundary=x"}},
		{404, "GET", "/api/evals/x", "", nil},
	} {
		w := s.do(c.method, c.target, []byte(c.body), c.headers...)
		var reply struct {
			APIID string `json:"api_id"`
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
			t.Errorf("%s %.60s: %d %.200s", c.method, c.target, w.Code, w.Body)
			continue
		}
		if w.Code != c.status || reply.Error.Code == "" || reply.Error.Message == "" || reply.APIID != w.Header().Get("X-Request-Id") || !uuidForm.MatchString(reply.APIID) {
			t.Errorf("%s %.60s: %d %.300s, want %d", c.method, c.target, w.Code, w.Body, c.status)
		}
	}
}

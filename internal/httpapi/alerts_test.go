package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/eval"
	"sidetone/internal/httpapi"
	"sidetone/internal/pgtest"
	"sidetone/internal/sqlstore"
	"sidetone/internal/webhook"
)

const rulesPath = "/api/alert-rules"

// alertServer is an evalServer with alerting, whose webhooks go to a function instead of the network.
type alertServer struct {
	*evalServer
	sweeper    *alert.Sweeper
	dispatcher *webhook.Dispatcher
	log        bytes.Buffer

	sending sync.Mutex
	sent    []webhook.Request
	answer  func(webhook.Request) (int, error)
}

func newAlertServer(t testing.TB, engine, url string) *alertServer {
	t.Helper()
	s := &alertServer{evalServer: &evalServer{t: t, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)},
		answer: func(webhook.Request) (int, error) { return 204, nil }}
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
	log := slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	send := func(_ context.Context, r webhook.Request) (int, error) {
		s.sending.Lock()
		defer s.sending.Unlock()
		s.sent = append(s.sent, r)
		s.wait(25 * time.Millisecond) // every receiver takes so long
		return s.answer(r)
	}
	s.dispatcher = webhook.NewDispatcher(store.Alerts(), send, s.clock, log)
	s.sweeper = alert.NewSweeper(store.Alerts(), s.dispatcher.Wake)
	price := func(_, _ string, _, _, _ int64) (float64, bool) { return 0, false }
	s.handler, err = httpapi.New(httpapi.Deps{
		Evals: eval.NewService(store.Evals(), price), Alerts: alert.NewService(store.Alerts(), send, s.clock, s.dispatcher.Wake), Log: log, Now: s.clock,
		Auth:    httpapi.NewAuth("", "", "", "", s.clock, httpapi.WriteError),
		Metrics: http.NotFoundHandler(), Dashboard: http.NotFoundHandler(), Observe: func(httpapi.Request) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func alertsOnBothEngines(t *testing.T, test func(t *testing.T, s *alertServer)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newAlertServer(t, "sqlite", "")) })
	t.Run("postgres", func(t *testing.T) { test(t, newAlertServer(t, "postgres", pgtest.URL(t))) })
}

// send makes a request with a JSON body.
func (s *alertServer) send(status int, method, target string, body any) object {
	s.t.Helper()
	raw, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		raw = string(b)
	}
	return s.json(status, method, target, []byte(raw), "Content-Type: application/json")
}

// fire makes one failed verdict, ticks and delivers what is due.
func (s *alertServer) fire(runs ...int) alert.Report {
	s.t.Helper()
	for _, n := range runs {
		s.post(evalRun(n, `,"agent_id":"a","account_id":"acme"`, evalCase(n, "n", "passed", `,"judgments":[{"judge_name":"tone","verdict":"fail"}]`)))
	}
	r, err := s.sweeper.Sweep(s.t.Context(), s.clock())
	if err != nil {
		s.t.Fatal(err)
	}
	s.deliver()
	return r
}

func (s *alertServer) deliver() {
	s.t.Helper()
	if _, err := s.dispatcher.DeliverDue(s.t.Context(), s.clock()); err != nil {
		s.t.Fatal(err)
	}
	if err := s.dispatcher.Drain(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func minimalRule(more object) object {
	rule := object{"name": "n", "metric": "eval_fail_rate", "threshold_value": 0.5, "window_minutes": 15, "webhook_url": "https://example.com/hook"}
	maps.Copy(rule, more)
	return rule
}

// exactly holds an object to exactly these fields; those with the value anything are not compared.
func exactly(t testing.TB, what string, got, want object) {
	t.Helper()
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: unexpected field %s", what, k)
		}
	}
	known := maps.Clone(want)
	for k, v := range want {
		if _, ok := got[k]; v == anything && ok {
			delete(known, k)
		}
	}
	has(t, what, got, known)
}

const anything = "\x00anything"

const noon = "2026-11-21T12:00:00.000Z"

func TestAlertRuleFields(t *testing.T) {
	alertsOnBothEngines(t, func(t *testing.T, s *alertServer) {
		want := object{"api_id": anything, "id": anything, "name": "n", "enabled": true, "metric": "eval_fail_rate", "threshold_value": 0.5, "window_minutes": 15, "min_samples": 1,
			"agent_id": nil, "account_id": nil, "judge_name": nil, "eval_source": "all", "webhook_url": "https://example.com/hook", "http_method": "POST", "headers": nil,
			"has_secret": false, "last_fired_at": nil, "suppressed_until": nil, "last_value": nil, "last_samples": 0, "last_reason": nil, "last_evaluated_at": nil,
			"created_at": noon, "updated_at": noon}
		minimal := s.send(201, "POST", rulesPath, minimalRule(nil))
		exactly(t, "a rule with defaults", minimal, want)
		if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(minimal["id"].(string)) {
			t.Errorf("id %v is no UUID", minimal["id"])
		}

		full := object{"name": strings.Repeat("ü", 200), "enabled": false, "metric": "eval_fail_rate", "threshold_value": 1, "window_minutes": 1440, "min_samples": 20,
			"agent_id": "a", "account_id": "acme", "judge_name": "tone", "eval_source": "runs", "webhook_url": "http://10.0.0.1:8080/x?y=z", "http_method": "PATCH",
			"headers": object{"X-Team": "voice", "authorization": "Bearer ü"}}
		sent := maps.Clone(full)
		sent["secret"] = "hush hush"
		got := s.send(201, "POST", rulesPath, sent)
		all := maps.Clone(want)
		maps.Copy(all, full)
		all["has_secret"] = true
		exactly(t, "a full rule", got, all)
		id := got["id"].(string)
		for _, target := range []string{rulesPath + "/" + id, rulesPath + "/" + strings.ToUpper(id)} {
			exactly(t, "read again", s.get(target), all)
		}

		// What was read may be sent back whole, and says the same.
		s.wait(time.Minute)
		got["threshold_value"] = 0.25
		all["threshold_value"], all["updated_at"] = 0.25, "2026-11-21T12:01:00.000Z"
		exactly(t, "sent back", s.send(200, "PATCH", rulesPath+"/"+id, got), all)

		// An absent key keeps, null clears.
		exactly(t, "an empty patch", s.send(200, "PATCH", rulesPath+"/"+id, object{}), all)
		cleared := object{"agent_id": nil, "account_id": nil, "judge_name": nil, "eval_source": "all", "headers": nil, "http_method": "POST", "min_samples": 1, "enabled": true}
		for field, value := range cleared {
			all[field] = value
			exactly(t, field+" is cleared", s.send(200, "PATCH", rulesPath+"/"+id, object{field: nil}), all)
		}
		all["has_secret"] = false
		exactly(t, "the secret is cleared", s.send(200, "PATCH", rulesPath+"/"+id, object{"secret": nil}), all)
		changes := object{"name": "other", "enabled": false, "metric": "latency_stt_p95", "threshold_value": 1500.5, "window_minutes": 20, "min_samples": 2, "agent_id": "b",
			"account_id": "c", "webhook_url": "https://other.example", "http_method": "PUT", "headers": object{"A": "b"}}
		for _, field := range slices.Sorted(maps.Keys(changes)) { // metric comes before threshold_value
			value := changes[field]
			all[field] = value
			exactly(t, field+" is changed", s.send(200, "PATCH", rulesPath+"/"+id, object{field: value}), all)
		}

		exactly(t, "deleted", s.json(200, "DELETE", rulesPath+"/"+id, nil), object{"api_id": anything, "deleted": true})
		for _, method := range []string{"GET", "DELETE"} {
			code(t, s.json(404, method, rulesPath+"/"+id, nil), "not_found")
		}
		if strings.Contains(s.log.String(), "hush") {
			t.Error("the secret is in the log")
		}
	})
}

func TestAlertRuleValidation(t *testing.T) {
	alertsOnBothEngines(t, func(t *testing.T, s *alertServer) {
		for _, c := range []struct {
			body object
			want []string
		}{
			{object{}, []string{"metric", "name", "threshold_value", "webhook_url", "window_minutes"}},
			{minimalRule(object{"name": "", "threshold_value": 0, "window_minutes": 14, "min_samples": 0, "webhook_url": "ftp://x", "http_method": "GET"}),
				[]string{"http_method", "min_samples", "name", "threshold_value", "webhook_url", "window_minutes"}},
			{minimalRule(object{"name": 5, "enabled": "yes", "metric": "p99", "threshold_value": "much", "window_minutes": 15.5, "min_samples": "1", "agent_id": 7, "account_id": "",
				"judge_name": []string{}, "eval_source": "both", "webhook_url": nil, "secret": 9, "headers": "none"}),
				[]string{"account_id", "agent_id", "enabled", "eval_source", "headers", "judge_name", "metric", "min_samples", "name", "secret", "threshold_value", "webhook_url", "window_minutes"}},
			{minimalRule(object{"name": strings.Repeat("x", 201), "threshold_value": 1.001, "agent_id": strings.Repeat("x", 513), "secret": strings.Repeat("x", 1025),
				"webhook_url": "https://x/" + strings.Repeat("x", 2040)}), []string{"agent_id", "name", "secret", "threshold_value", "webhook_url"}},
			{minimalRule(object{"metric": "latency_stt_p95", "threshold_value": 1500, "judge_name": "tone", "eval_source": "runs"}), []string{"eval_source", "judge_name"}},
			{minimalRule(object{"headers": object{"host": "x", "Content-Length": "1", "transfer-encoding": "x", "connection": "x", "X-Alert-Rule-Id": "x", "bad name": "x", "a": "line\nbreak", "b": nil, "ok": "x"}}),
				[]string{"headers.Content-Length", "headers.X-Alert-Rule-Id", "headers.a", "headers.b", "headers.bad name", "headers.connection", "headers.host", "headers.transfer-encoding"}},
			{minimalRule(object{"secret": "whsec_%%%"}), []string{"secret"}},
			{minimalRule(object{"thresold_value": 3, "name": "nul\x00"}), []string{"name", "thresold_value"}},
		} {
			got := code(t, s.send(400, "POST", rulesPath, c.body), "invalid_payload")
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("%v: refused for %q, want %q", c.body, got, c.want)
			}
		}
		if got := s.send(400, "POST", rulesPath, minimalRule(object{"threshold_value": 30})); !strings.Contains(fmt.Sprint(got), "rate thresholds are fractions: use 0.3 for 30%") {
			t.Errorf("30 as a rate: %v", got)
		}
		code(t, s.send(400, "POST", rulesPath, `{"name":`), "invalid_json")
		for _, body := range []string{`[]`, `null`, `"rule"`} {
			code(t, s.send(400, "POST", rulesPath, body), "invalid_payload")
		}
		code(t, s.send(413, "POST", rulesPath, minimalRule(object{"name": strings.Repeat("x", 2<<20)})), "payload_too_large")
		s.json(400, "POST", rulesPath, nil, "Content-Type: application/json")

		// The merged rule is what counts.
		id := s.send(201, "POST", rulesPath, minimalRule(object{"judge_name": "tone"}))["id"].(string)
		for body, want := range map[string]string{`{"metric":"outcome_fail_rate"}`: "judge_name", `{"threshold_value":500}`: "threshold_value", `{"metric":null}`: "metric",
			`{"window_minutes":null}`: "window_minutes", `{"name":null}`: "name"} {
			if got := code(t, s.send(400, "PATCH", rulesPath+"/"+id, body), "invalid_payload"); len(got) != 1 || got[0] != want {
				t.Errorf("%s: refused for %q, want %s", body, got, want)
			}
		}
		s.send(200, "PATCH", rulesPath+"/"+id, `{"metric":"latency_stt_p95","judge_name":null,"threshold_value":500}`)
		has(t, "list", s.get(rulesPath)["meta"].(object), object{"total_count": 1})
	})
}

func TestAlertIDsThatAreNot(t *testing.T) {
	alertsOnBothEngines(t, func(t *testing.T, s *alertServer) {
		for _, id := range []string{"nope", "00000000-0000-4000-8000-000000000000", "%00", "%ff", "1", strings.Repeat("a", 3000), "'%20OR%201=1"} {
			for _, r := range [][2]string{{"GET", rulesPath + "/" + id}, {"PATCH", rulesPath + "/" + id}, {"DELETE", rulesPath + "/" + id}, {"GET", rulesPath + "/" + id + "/firings"},
				{"POST", rulesPath + "/" + id + "/test"}, {"POST", "/api/alerts/firings/" + id + "/redeliver"}} {
				code(t, s.send(404, r[0], r[1], object{}), "not_found")
			}
		}
		has(t, "attempts of no rule", s.get("/api/alerts/webhook-attempts?rule_id=nope")["meta"].(object), object{"total_count": 0})
	})
}

func TestAlertRuleList(t *testing.T) {
	alertsOnBothEngines(t, func(t *testing.T, s *alertServer) {
		for n := range 130 {
			s.send(201, "POST", rulesPath, minimalRule(object{"name": fmt.Sprint(n), "agent_id": fmt.Sprint("ag ", n%2), "account_id": fmt.Sprint(n % 3), "enabled": n%5 > 0,
				"metric": []string{"eval_fail_rate", "interruption_rate"}[n%2]}))
			if n%10 == 0 { // ten rules at a time are equally old
				s.wait(time.Second)
			}
		}
		seen := map[string]bool{}
		pages := 0
		for target := rulesPath + "?limit=9&agent_id=ag+1&metric=interruption_rate"; target != ""; pages++ {
			page := s.get(target)
			last := ""
			for _, o := range page["objects"].([]any) {
				r := o.(object)
				if seen[r["id"].(string)] || last != "" && last < r["created_at"].(string) || r["agent_id"] != "ag 1" || r["secret"] != nil {
					t.Fatalf("row %v", r)
				}
				seen[r["id"].(string)], last = true, r["created_at"].(string)
			}
			has(t, "meta", page["meta"].(object), object{"limit": 9, "offset": 9 * pages, "total_count": 65})
			target, _ = page["meta"].(object)["next"].(string)
			if u, err := url.Parse(target); err != nil || target != "" && u.Query().Get("metric") != "interruption_rate" {
				t.Fatalf("next %q lost a filter", target)
			}
		}
		if len(seen) != 65 || pages != 8 {
			t.Errorf("%d rules on %d pages", len(seen), pages)
		}
		for query, want := range map[string]int{"": 20, "limit=0": 1, "limit=101": 100, "limit=100&offset=100": 30, "offset=130": 0, "enabled=true&limit=100&account_id=0": 35,
			"enabled=false&limit=100": 26, "agent_id=ag": 0, "account_id=1&agent_id=ag+0&limit=100": 21} {
			if got := len(s.get(rulesPath + "?" + query)["objects"].([]any)); got != want {
				t.Errorf("%q: %d rules, want %d", query, got, want)
			}
		}
		for query, field := range map[string]string{"limit=x": "limit", "offset=-1": "offset", "enabled=maybe": "enabled", "metric=p99": "metric"} {
			if got := code(t, s.json(400, "GET", rulesPath+"?"+query, nil), "invalid_query"); len(got) != 1 || got[0] != field {
				t.Errorf("%s names %v", query, got)
			}
		}
	})
}

func TestAlertFiringsAndAttempts(t *testing.T) {
	alertsOnBothEngines(t, func(t *testing.T, s *alertServer) {
		rule := func(name, secret string) string {
			return s.send(201, "POST", rulesPath, minimalRule(object{"name": name, "secret": secret, "webhook_url": "https://" + name + ".example/hook"}))["id"].(string)
		}
		fine, broken, other := rule("fine", "hush"), rule("broken", "hush"), rule("other", "hush")
		s.send(200, "PATCH", rulesPath+"/"+other, object{"enabled": false})
		s.answer = func(r webhook.Request) (int, error) {
			switch {
			case strings.Contains(r.URL, "fine"):
				return 204, nil
			case strings.Contains(r.URL, "broken"):
				return 500, nil
			}
			return 0, errors.New("the connection was refused")
		}
		if r := s.fire(1, 2); r.Fired != 2 {
			t.Fatalf("%+v", r)
		}
		firing := object{"id": anything, "rule_id": fine, "window_start": "2026-11-21T11:45:00.000Z", "window_end": noon, "matched_count": 2, "total_count": 2, "observed_value": 1,
			"sample_session_ids": []string{}, "status": "delivered", "attempt_count": 1, "next_attempt_at": nil, "last_attempt_at": anything, "response_status": 204, "last_error": nil,
			"created_at": noon, "updated_at": anything}
		list := s.get(rulesPath + "/" + fine + "/firings")
		exactly(t, "list", list, object{"api_id": anything, "objects": anything, "meta": object{"limit": 20, "offset": 0, "total_count": 1, "next": nil, "previous": nil}})
		first := list["objects"].([]any)[0].(object)
		exactly(t, "a firing", first, firing)
		failed := s.get(rulesPath + "/" + broken + "/firings")["objects"].([]any)[0].(object)
		maps.Copy(firing, object{"rule_id": broken, "status": "pending", "next_attempt_at": anything, "response_status": 500, "last_error": "the receiver answered 500"})
		exactly(t, "a firing to be tried again", failed, firing)
		has(t, "the rule", s.get(rulesPath+"/"+fine), object{"last_fired_at": noon, "suppressed_until": "2026-11-21T12:15:00.000Z", "last_value": 1, "last_samples": 2, "last_reason": nil, "last_evaluated_at": noon})
		has(t, "a disabled rule", s.get(rulesPath+"/"+other), object{"last_fired_at": nil, "last_reason": "disabled"})

		attempt := object{"id": anything, "rule_id": broken, "rule_name": "broken", "firing_id": failed["id"], "kind": "firing", "url": "https://broken.example/hook", "http_method": "POST",
			"attempt_number": 1, "ok": false, "response_status": 500, "error": "the receiver answered 500", "duration_ms": anything, "created_at": anything}
		got := s.get("/api/alerts/webhook-attempts?rule_id=" + broken)["objects"].([]any)
		if len(got) != 1 {
			t.Fatalf("%d attempts", len(got))
		}
		exactly(t, "an attempt", got[0].(object), attempt)
		if ms := got[0].(object)["duration_ms"].(float64); ms < 25 {
			t.Errorf("it took %v ms", ms)
		}

		// The test send, also of a disabled rule.
		s.sent = nil
		exactly(t, "test of a working webhook", s.send(200, "POST", rulesPath+"/"+fine+"/test", nil), object{"api_id": anything, "ok": true, "response_status": 204, "error": nil, "duration_ms": 25})
		exactly(t, "test of a broken one", s.send(200, "POST", rulesPath+"/"+broken+"/test", nil), object{"api_id": anything, "ok": false, "response_status": 500, "error": "the receiver answered 500", "duration_ms": 25})
		exactly(t, "test of nobody", s.send(200, "POST", rulesPath+"/"+other+"/test", nil), object{"api_id": anything, "ok": false, "response_status": nil, "error": "the connection was refused", "duration_ms": 25})
		var payload object
		if err := json.Unmarshal(s.sent[0].Body, &payload); err != nil {
			t.Fatal(err)
		}
		exactly(t, "the test's payload", payload, object{"type": "alert.test", "rule": object{"id": fine, "name": "fine", "metric": "eval_fail_rate"}, "fired_at": anything})
		if want := map[string]string{"Content-Type": "application/json", "X-Alert-Rule-Id": fine, "X-Alert-Signature": webhook.Signature("hush", s.sent[0].Body)}; !maps.Equal(s.sent[0].Header, want) {
			t.Errorf("the test's headers are %v, want %v", s.sent[0].Header, want)
		}
		tests := s.get("/api/alerts/webhook-attempts?kind=test")["objects"].([]any)
		if len(tests) != 3 {
			t.Fatalf("%d tests recorded", len(tests))
		}
		maps.Copy(attempt, object{"rule_id": other, "rule_name": "other", "firing_id": nil, "kind": "test", "url": "https://other.example/hook", "response_status": nil, "error": "the connection was refused", "duration_ms": 25})
		exactly(t, "a test's attempt", tests[0].(object), attempt)

		// Redelivery: of a pending firing nothing, of a delivered one once more, with its attempts going on counting.
		again := func(status int, id any) object {
			t.Helper()
			return s.send(status, "POST", fmt.Sprintf("/api/alerts/firings/%v/redeliver", id), nil)
		}
		has(t, "a pending one", again(200, failed["id"]), object{"status": "pending", "attempt_count": 1, "next_attempt_at": failed["next_attempt_at"]})
		maps.Copy(firing, object{"api_id": anything, "rule_id": fine, "status": "pending", "response_status": 204, "last_error": nil})
		exactly(t, "a delivered one", again(200, first["id"]), firing)
		again(200, first["id"])
		select {
		case <-s.dispatcher.Woken():
		default:
			t.Error("a redelivery does not wake the dispatcher")
		}
		s.sent = nil
		s.deliver()
		if len(s.sent) != 1 || s.sent[0].Header["X-Alert-Firing-Id"] != first["id"] {
			t.Errorf("two clicks sent %d webhooks", len(s.sent))
		}
		has(t, "redelivered", s.get(rulesPath + "/" + fine + "/firings")["objects"].([]any)[0].(object), object{"status": "delivered", "attempt_count": 2})

		for query, want := range map[string]int{"": 6, "kind=firing": 3, "kind=test": 3, "ok=true": 3, "ok=false": 3, "rule_id=" + fine: 3, "firing_id=" + fmt.Sprint(first["id"]): 2,
			"firing_id=" + strings.ToUpper(fmt.Sprint(first["id"])): 2, "ok=true&kind=test&rule_id=" + fine: 1, "rule_id=" + evalUUID(9): 0, "firing_id=x": 0} {
			if n := s.get("/api/alerts/webhook-attempts?" + query)["meta"].(object)["total_count"]; n != float64(want) {
				t.Errorf("%q: %v attempts, want %d", query, n, want)
			}
		}
		for query, field := range map[string]string{"limit=1.5": "limit", "ok=1x": "ok", "kind=retry": "kind"} {
			if fields := code(t, s.json(400, "GET", "/api/alerts/webhook-attempts?"+query, nil), "invalid_query"); len(fields) != 1 || fields[0] != field {
				t.Errorf("%s names %v", query, fields)
			}
		}

		// Pages hold every attempt once, newest first.
		seen := map[any]bool{}
		for target := "/api/alerts/webhook-attempts?limit=4"; target != ""; {
			page := s.get(target)
			for _, o := range page["objects"].([]any) {
				seen[o.(object)["id"]] = true
			}
			target, _ = page["meta"].(object)["next"].(string)
		}
		if len(seen) != 6 {
			t.Errorf("%d attempts on the pages", len(seen))
		}

		// Deleting a rule takes its firings and attempts along, and no delivery is made any more.
		s.json(200, "DELETE", rulesPath+"/"+broken, nil)
		s.sent = nil
		s.wait(time.Hour)
		s.deliver()
		again(404, failed["id"])
		code(t, s.json(404, "GET", rulesPath+"/"+broken+"/firings", nil), "not_found")
		if n := s.get("/api/alerts/webhook-attempts")["meta"].(object)["total_count"]; n != 4. || len(s.sent) != 0 {
			t.Errorf("after the rule was deleted: %v attempts are left, %d webhooks were sent", n, len(s.sent))
		}
		if strings.Contains(s.log.String(), "hush") {
			t.Error("the secret is in the log")
		}
	})
}

func TestAlertFiringPages(t *testing.T) {
	alertsOnBothEngines(t, func(t *testing.T, s *alertServer) {
		id := s.send(201, "POST", rulesPath, minimalRule(nil))["id"].(string)
		for n := range 5 {
			s.fire(n)
			s.wait(15 * time.Minute)
		}
		var ends []string
		for target := rulesPath + "/" + id + "/firings?limit=2"; target != ""; {
			page := s.get(target)
			for _, o := range page["objects"].([]any) {
				ends = append(ends, o.(object)["window_end"].(string))
			}
			target, _ = page["meta"].(object)["next"].(string)
		}
		if len(ends) != 5 || !slices.IsSortedFunc(ends, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("firings at %v", ends)
		}
		code(t, s.json(400, "GET", rulesPath+"/"+id+"/firings?limit=x", nil), "invalid_query")
	})
}

func TestAlertStats(t *testing.T) {
	alertsOnBothEngines(t, func(t *testing.T, s *alertServer) {
		stats := func(query string) object { t.Helper(); return s.get("/api/alerts/webhook-stats" + query) }
		none := stats("")
		exactly(t, "without attempts", none, object{"api_id": anything, "range": "7d", "total_attempts": 0, "accepted": 0, "acceptance_rate": nil, "avg_duration_ms": nil, "buckets": anything, "rule_breakdown": []any{}})
		one := s.send(201, "POST", rulesPath, minimalRule(object{"name": "one"}))["id"].(string)
		two := s.send(201, "POST", rulesPath, minimalRule(object{"name": "two"}))["id"].(string)
		test := func(id string, status int) {
			s.answer = func(webhook.Request) (int, error) { return status, nil }
			s.send(200, "POST", rulesPath+"/"+id+"/test", nil)
		}
		test(one, 200) // 20 days ago
		s.wait(15 * 24 * time.Hour)
		test(one, 500) // 5 days ago
		s.wait(5 * 24 * time.Hour)
		test(two, 200)
		test(two, 404)
		for _, c := range []struct {
			query          string
			total, ok, len int
			rules          []any
			step           time.Duration
		}{
			{"?range=24h", 2, 1, 24, []any{object{"rule_id": two, "rule_name": "two", "attempts": 2., "accepted": 1.}}, time.Hour},
			{"?range=7d", 3, 1, 28, []any{object{"rule_id": two, "rule_name": "two", "attempts": 2., "accepted": 1.}, object{"rule_id": one, "rule_name": "one", "attempts": 1., "accepted": 0.}}, 6 * time.Hour},
			{"?range=30d", 4, 2, 30, nil, 24 * time.Hour},
		} {
			got := stats(c.query)
			has(t, c.query, got, object{"range": strings.TrimPrefix(c.query, "?range="), "total_attempts": c.total, "accepted": c.ok, "acceptance_rate": float64(c.ok) / float64(c.total), "avg_duration_ms": 25})
			buckets := got["buckets"].([]any)
			attempts, accepted := 0., 0.
			for i, b := range buckets {
				b := b.(object)
				attempts, accepted = attempts+b["attempts"].(float64), accepted+b["accepted"].(float64)
				at, err := time.Parse(time.RFC3339, b["bucket_start"].(string))
				if err != nil || len(b) != 3 || !at.Equal(at.Truncate(c.step)) {
					t.Errorf("%s: bucket %v", c.query, b)
				}
				if i > 0 && buckets[i-1].(object)["bucket_start"] != at.Add(-c.step).Format("2006-01-02T15:04:05.000Z") {
					t.Errorf("%s: bucket %v follows %v", c.query, b, buckets[i-1])
				}
			}
			if len(buckets) != c.len || attempts != float64(c.total) || accepted != float64(c.ok) || buckets[c.len-1].(object)["attempts"] != 2. {
				t.Errorf("%s: %d buckets with %v attempts", c.query, len(buckets), attempts)
			}
			if c.rules != nil && !reflect.DeepEqual(got["rule_breakdown"], c.rules) {
				t.Errorf("%s: rules %v", c.query, got["rule_breakdown"])
			}
		}
		for _, query := range []string{"?range=1h", "?range=7D"} {
			code(t, s.json(400, "GET", "/api/alerts/webhook-stats"+query, nil), "invalid_query")
		}
	})
}

func TestAlertPreview(t *testing.T) {
	alertsOnBothEngines(t, func(t *testing.T, s *alertServer) {
		s.post(evalRun(1, "", evalCase(1, "n", "passed", `,"judgments":[{"judge_name":"tone","verdict":"fail"},{"judge_name":"tone","verdict":"pass"}]`)))
		s.wait(40 * time.Minute)
		body := object{"metric": "eval_fail_rate", "threshold_value": 0.4, "window_minutes": 15, "step_seconds": 300}
		ask := func(more object) object {
			t.Helper()
			b := maps.Clone(body)
			maps.Copy(b, more)
			return s.send(200, "POST", rulesPath+"/preview", b)
		}
		got := ask(object{"from": "2026-11-21T11:50:00Z", "to": "2026-11-21T13:20:00+01:00"})
		reason := func(at string, value any, samples int, why any) object {
			return object{"at": "2026-11-21T" + at + ":00.000Z", "value": value, "samples": samples, "reason": why}
		}
		exactly(t, "preview", got, object{"api_id": anything, "from": "2026-11-21T11:50:00.000Z", "to": "2026-11-21T12:20:00.000Z", "step_seconds": 300, "fired_at": []string{noon},
			"points": []object{reason("11:50", nil, 0, "no_data"), reason("11:55", nil, 0, "no_data"), reason("12:00", 0.5, 2, nil), reason("12:05", 0.5, 2, "suppressed"),
				reason("12:10", 0.5, 2, "suppressed"), reason("12:15", nil, 0, "no_data"), reason("12:20", nil, 0, "no_data")}})
		has(t, "few samples", ask(object{"min_samples": 3}), object{"fired_at": []string{}, "from": "2026-11-20T12:40:00.000Z", "to": "2026-11-21T12:40:00.000Z"})
		has(t, "at the threshold", ask(object{"threshold_value": 0.5}), object{"fired_at": []string{}})
		if n := len(s.send(200, "POST", rulesPath+"/preview", object{"metric": "latency_stt_p95", "threshold_value": 1, "window_minutes": 60})["points"].([]any)); n < 400 || n > 600 {
			t.Errorf("%d points by default", n)
		}
		fields := code(t, s.send(400, "POST", rulesPath+"/preview", object{"metric": "p99", "threshold_value": -1, "window_minutes": 1, "from": "2026-11-01T00:00:00Z", "to": "soon", "step_seconds": 1}), "invalid_payload")
		if slices.Sort(fields); !slices.Equal(fields, []string{"from", "metric", "step_seconds", "threshold_value", "to", "window_minutes"}) {
			t.Errorf("refused for %v", fields)
		}
		code(t, s.send(400, "POST", rulesPath+"/preview", `{`), "invalid_json")
		has(t, "nothing is stored", s.get(rulesPath)["meta"].(object), object{"total_count": 0})
	})
}

func TestAlertRoutesAreDocumentedAndGuarded(t *testing.T) {
	s := newAlertServer(t, "sqlite", "")
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
		// The schema of a rule, as clients are generated from it.
		Components struct {
			Schemas map[string]struct {
				Required   []string
				Properties map[string]any
			}
		}
	}
	if err := json.Unmarshal(s.do("GET", "/openapi.json", nil).Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	guarded := newEvalServer(t, "sqlite", "", "watch")
	for path, methods := range map[string][]string{rulesPath: {"get", "post"}, rulesPath + "/{id}": {"get", "patch", "delete"}, rulesPath + "/{id}/firings": {"get"}, rulesPath + "/{id}/test": {"post"},
		rulesPath + "/preview": {"post"}, "/api/alerts/firings/{id}/redeliver": {"post"}, "/api/alerts/webhook-attempts": {"get"}, "/api/alerts/webhook-stats": {"get"}} {
		for _, method := range methods {
			if doc.Paths[path][method].OperationID == "" {
				t.Errorf("%s %s is not in openapi.json", method, path)
			}
			code(t, guarded.json(401, strings.ToUpper(method), strings.Replace(path, "{id}", evalUUID(1), 1), nil), "unauthorized")
		}
	}
	fields := doc.Components.Schemas["RuleFields"]
	if slices.Sort(fields.Required); !slices.Equal(fields.Required, []string{"metric", "name", "threshold_value", "webhook_url", "window_minutes"}) {
		t.Errorf("openapi.json requires %v of a rule", fields.Required)
	}
	if _, shown := doc.Components.Schemas["RuleView"].Properties["secret"]; shown {
		t.Error("openapi.json promises the secret")
	}
}

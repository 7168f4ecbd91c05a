package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"sidetone/internal/pgtest"
)

func TestEvalLists(t *testing.T) {
	onBothEngines(t, func(t *testing.T, s *evalServer) {
		for n := range 45 {
			s.post(evalRun(n, fmt.Sprintf(`,"account_id":"acc,%d","agent_id":"ag %d","framework":"livekit","status":"failed"`, n%2, n%3)))
		}
		seen := map[string]bool{}
		target, pages := "/api/evals?limit=7&account_id=&framework=livekit,pipecat&status=failed&started_from=2026-11-21", 0
		for target != "" {
			page := s.get(target)
			pages++
			objects := page["objects"].([]any)
			for i, o := range objects {
				run := o.(object)
				if seen[run["run_id"].(string)] {
					t.Fatalf("run %v twice", run["run_id"])
				}
				seen[run["run_id"].(string)] = true
				if _, ok := run["cases"]; ok || i > 0 && objects[i-1].(object)["started_at"].(string) < run["started_at"].(string) {
					t.Fatalf("row %v", run)
				}
			}
			meta := page["meta"].(object)
			has(t, "meta", meta, object{"limit": 7, "offset": 7 * (pages - 1), "total_count": 45})
			target, _ = meta["next"].(string)
			if u, err := url.Parse(target); err != nil || target != "" && u.Query().Get("framework") != "livekit,pipecat" {
				t.Fatalf("next %q lost a filter, %v", target, err)
			}
			if (meta["previous"] == nil) != (pages == 1) {
				t.Errorf("page %d: previous %v", pages, meta["previous"])
			}
		}
		if pages != 7 || len(seen) != 45 {
			t.Errorf("%d runs on %d pages", len(seen), pages)
		}
		for query, want := range map[string]int{
			"limit=0": 1, "limit=-5": 1, "limit=1000": 20, "": 20, "offset=40": 5, "offset=45": 0, "agent_id=ag+1": 15, "agent_id=ag+1,ag+2&limit=20&offset=20": 10,
			"status=completed": 0, "status=completed,failed": 20, "started_to=2026-11-20": 0, "started_from=2026-11-21T12:00:40Z": 5, "account_id=nobody": 0, "testing_framework=vitest": 0,
		} {
			if got := len(s.get("/api/evals?" + query)["objects"].([]any)); got != want {
				t.Errorf("%s: %d rows, want %d", query, got, want)
			}
		}
		for query, field := range map[string]string{"limit=x": "limit", "offset=-1": "offset", "offset=1.5": "offset", "status=done": "status", "started_from=yesterday": "started_from",
			"account_id=%00": "account_id", "agent_id=a,%ff": "agent_id"} {
			if got := code(t, s.json(400, "GET", "/api/evals?"+query, nil), "invalid_query"); len(got) != 1 || got[0] != field {
				t.Errorf("%s names %v", query, got)
			}
		}
	})
}

func TestEvalIDsThatAreNot(t *testing.T) {
	onBothEngines(t, func(t *testing.T, s *evalServer) {
		s.post(evalRun(1, "", evalCase(1, "n", "passed", "")))
		for _, target := range []string{
			"/api/evals/nope", "/api/evals/" + evalUUID(2), "/api/evals/%00", "/api/evals/" + strings.Repeat("9", 3000), "/api/evals/'%20OR%201=1", "/api/evals/%ff%fe",
			"/api/evals/" + evalUUID(1) + "/cases/nope", "/api/evals/" + evalUUID(1) + "/cases/" + evalUUID(2), "/api/evals/nope/cases/" + evalUUID(1),
			"/api/evals/" + evalUUID(2) + "/cases/" + evalUUID(1), "/api/evals/compare?base=nope&head=" + evalUUID(1), "/api/evals/compare?base=" + evalUUID(1) + "&head=" + evalUUID(2),
			"/api/evals/" + evalUUID(1) + "/nope",
		} {
			code(t, s.json(404, "GET", target, nil), "not_found")
		}
		// A UUID may be written in capitals.
		s.get("/api/evals/" + strings.ToUpper(evalUUID(1)) + "/cases/" + strings.ToUpper(evalUUID(1)))
		code(t, s.json(400, "GET", "/api/evals/"+evalUUID(1)+"?include=everything", nil), "invalid_query")
	})
}

func TestCompareEvals(t *testing.T) {
	onBothEngines(t, func(t *testing.T, s *evalServer) {
		ttft := func(s float64) string {
			return fmt.Sprintf(`,"file":"t.py","events":[{"type":"message","role":"assistant","metrics":{"llm_node_ttft":%g}}]`, s)
		}
		s.post(evalRun(1, `,"name":"before"`, evalCase(1, "same", "passed", ttft(0.2)), evalCase(2, "broke", "passed", ttft(0.4)), evalCase(3, "fixed", "errored", ttft(0.3)),
			evalCase(4, "broken", "failed", ttft(0.3)), evalCase(5, "gone", "passed", "")))
		s.post(evalRun(2, `,"name":"after"`, evalCase(12, "broke", "passed", ttft(0.9)+`,"judgments":[{"verdict":"fail"}]`), evalCase(11, "same", "passed", ttft(0.5)),
			evalCase(13, "fixed", "passed", ttft(0.6)), evalCase(14, "broken", "errored", ttft(0.5)), evalCase(15, "new", "skipped", "")))
		got := s.get("/api/evals/compare?base=" + evalUUID(1) + "&head=" + evalUUID(2))
		names := object{}
		for _, list := range []string{"newly_failing", "newly_passing", "still_failing", "added", "removed"} {
			text := ""
			for _, c := range got[list].([]any) {
				c := c.(object)
				text += fmt.Sprint(c["name"], " ", c["base_status"], ">", c["head_status"], ";")
			}
			names[list] = text
		}
		has(t, "lists", names, object{"newly_failing": "broke passed>failed;", "newly_passing": "fixed errored>passed;", "still_failing": "broken failed>errored;",
			"added": "new <nil>>skipped;", "removed": "gone passed><nil>;"})
		base, head := 0.6, 0.5
		has(t, "comparison", got, object{"unchanged": 1, "ttft_p50_ms": object{"base": 300, "head": 500, "change": 200}, "pass_rate": object{"base": base, "head": head, "change": head - base}})
		has(t, "base", got["base"].(object), object{"run_id": evalUUID(1), "name": "before", "passed": 3})
		has(t, "head", got["head"].(object), object{"run_id": evalUUID(2), "name": "after", "failed": 1})
		for query, field := range map[string]string{"": "base", "base=" + evalUUID(1): "head"} {
			if fields := code(t, s.json(400, "GET", "/api/evals/compare?"+query, nil), "invalid_query"); len(fields) != 1 || fields[0] != field {
				t.Errorf("%q names %v", query, fields)
			}
		}
	})
}

func TestDeleteEvals(t *testing.T) {
	onBothEngines(t, func(t *testing.T, s *evalServer) {
		ids := func(n int) []byte {
			list := make([]string, n)
			for i := range list {
				list[i] = evalUUID(i)
			}
			b, _ := json.Marshal(object{"run_ids": list})
			return b
		}
		for n := range 3 {
			s.post(evalRun(n, "", evalCase(1, "n", "passed", "")))
		}
		const kind = "Content-Type: application/json"
		code(t, s.json(400, "DELETE", "/api/evals", ids(201), kind), "too_many")
		if got := code(t, s.json(400, "DELETE", "/api/evals", []byte(`{"run_ids":["`+evalUUID(0)+`","x"]}`), kind), "invalid_payload"); len(got) != 1 || got[0] != "run_ids[1]" {
			t.Errorf("names %v", got)
		}
		for _, body := range []string{`{"run_ids":[]}`, `{}`, `{"run_ids":"all"}`} {
			code(t, s.json(400, "DELETE", "/api/evals", []byte(body), kind), "invalid_payload")
		}
		s.json(400, "DELETE", "/api/evals", nil, kind)
		s.json(400, "DELETE", "/api/evals", []byte(`{"run_ids`), kind)
		has(t, "nothing is deleted yet", s.get("/api/evals")["meta"].(object), object{"total_count": 3})
		has(t, "reply", s.json(200, "DELETE", "/api/evals", ids(2), kind), object{"deleted": 2})
		has(t, "the same again with more", s.json(200, "DELETE", "/api/evals", ids(200), kind), object{"deleted": 1})
		s.json(404, "GET", "/api/evals/"+evalUUID(0), nil)
	})
}

func TestEvalRoutesAreGuarded(t *testing.T) {
	s := newEvalServer(t, "sqlite", "", "watch")
	const basic = "Authorization: Basic d2F0Y2g6d2F0Y2g=" // watch:watch
	for _, r := range [][2]string{{"POST", evalsPath}, {"GET", "/api/evals"}, {"GET", "/api/evals/" + evalUUID(1)}, {"GET", "/api/evals/compare"}, {"DELETE", "/api/evals"}} {
		code(t, s.json(401, r[0], r[1], evalRun(1, "")), "unauthorized")
	}
	s.json(201, "POST", evalsPath, evalRun(1, ""), basic)
	s.json(200, "GET", "/api/evals/"+evalUUID(1), nil, basic)
}

func TestEvalsWhileTheDatabaseIsAway(t *testing.T) {
	cluster := pgtest.NewCluster(t)
	s := newEvalServer(t, "postgres", cluster.URL("postgres"), "")
	s.post(evalRun(1, ""))
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]string{{"POST", evalsPath}, {"GET", "/api/evals"}, {"GET", "/api/evals/" + evalUUID(1)}, {"GET", "/api/evals/" + evalUUID(1) + "/cases/" + evalUUID(1)}, {"GET", "/api/evals/compare?base=" + evalUUID(1) + "&head=" + evalUUID(1)}} {
		code(t, s.json(503, r[0], r[1], evalRun(2, "")), "unavailable")
	}
	if err := cluster.Start(); err != nil {
		t.Fatal(err)
	}
	s.post(evalRun(3, ""))
	has(t, "list", s.get("/api/evals")["meta"].(object), object{"total_count": 2})
}

func TestEvalRoutesAreDocumented(t *testing.T) {
	s := newEvalServer(t, "sqlite", "", "")
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(s.do("GET", "/openapi.json", nil).Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, method := range map[string]string{evalsPath: "post", "/api/evals": "get", "/api/evals/{run_id}": "get", "/api/evals/{run_id}/cases/{case_id}": "get", "/api/evals/compare": "get"} {
		if doc.Paths[path][method].OperationID == "" {
			t.Errorf("%s %s is not in openapi.json", method, path)
		}
	}
}

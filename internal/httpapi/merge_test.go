package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"sidetone/internal/demo"
)

// TestOrderDoesNotMatter posts the signals of sessions in random order, split into batches at random, with random
// repetitions and from several clients at once, and always reads the same sessions.
func TestOrderDoesNotMatter(t *testing.T) {
	worlds := map[string]func(t *testing.T) []request{
		"python": func(t *testing.T) []request {
			return []request{demoUpload(t), captured(t, "livekit-python-logs/logs")}
		},
		"node":      nodeRequests,
		"generated": func(t *testing.T) []request { return demoTraffic(t, "6", "3") },
		"logs only": func(t *testing.T) []request { return only(demoTraffic(t, "4", "5"), logsPath) },
		"no report": func(t *testing.T) []request {
			return only(demoTraffic(t, "4", "7"), logsPath, tracesPath, metricsPath)
		},
	}
	for name, world := range worlds {
		t.Run(name, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, s *sessionServer) {
				all := world(t)
				s.mustSend(all...)
				want := s.readAll()
				if len(want) == 0 {
					t.Fatal("nothing was stored")
				}
				rounds := map[string]uint64{"sqlite": 10, "postgres": 4}[s.engine]
				if name == "generated" { // twenty requests and many splits of each
					rounds /= 2
				}
				for seed := range rounds {
					s.deleteAll(want)
					s.wait(time.Hour)
					r := rand.New(rand.NewPCG(seed, 99))
					s.sendTogether(1+r.IntN(5), shuffled(t, r, all))
					got := s.readAll()
					for id := range want {
						compare(t, fmt.Sprintf("seed %d: %s", seed, id), got[id], want[id])
					}
					if len(got) != len(want) {
						t.Errorf("seed %d: %d sessions, want %d", seed, len(got), len(want))
					}
					if t.Failed() {
						return
					}
				}
			})
		})
	}
}

// sendTogether posts requests from several clients at once; the clock goes on meanwhile.
func (s *sessionServer) sendTogether(clients int, rs []request) {
	s.t.Helper()
	queue := make(chan request)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for r := range queue {
				s.wait(time.Millisecond)
				if status, body, _ := s.send(r); status != 200 {
					s.t.Errorf("%s: %d %.300s", r.path, status, body)
				}
			}
		})
	}
	for _, r := range rs {
		queue <- r
	}
	close(queue)
	wg.Wait()
}

func (s *sessionServer) deleteAll(sessions map[string]object) {
	s.t.Helper()
	ids := []string{}
	for id := range sessions {
		ids = append(ids, id)
	}
	body, err := json.Marshal(map[string]any{"session_ids": ids})
	if err != nil {
		s.t.Fatal(err)
	}
	if n := s.json(200, "DELETE", "/api/sessions", body, "Content-Type: application/json")["deleted"]; n != float64(len(ids)) {
		s.t.Fatalf("deleted %v of %d", n, len(ids))
	}
}

// readAll is everything that can be read of all sessions, without what tells when it arrived.
func (s *sessionServer) readAll() map[string]object {
	s.t.Helper()
	out := map[string]object{}
	for offset := 0; ; offset += 20 {
		rows := rowsOf(s.get(fmt.Sprintf("/api/sessions?offset=%d", offset)))
		for _, row := range rows {
			id := row["id"].(string)
			path := "/api/sessions/" + url.PathEscape(id)
			d := s.get(path)
			arrived, _ := d["signals"].(object)["report"].(string)
			for _, o := range []object{row, d} {
				if o["ended_at"] == arrived { // no signal says when the call ended
					o["ended_at"] = "with its report"
				}
				for _, k := range []string{"api_id", "created_at", "first_signal_at", "last_signal_at"} {
					delete(o, k)
				}
			}
			for _, list := range []string{"tags", "evaluations"} {
				for _, e := range d[list].([]any) {
					came(e.(object), "created_at")
				}
			}
			if o, ok := d["outcome"].(object); ok {
				came(o, "created_at")
			}
			for k := range d["signals"].(object) {
				came(d["signals"].(object), k)
			}
			found := rowsOf(s.get("/api/sessions?limit=20&q=" + url.QueryEscape(firstWords(d))))
			out[id] = object{"detail": d, "row": row, "spans": s.get(path + "/spans?limit=1000")["objects"], "logs": s.get(path + "/logs?limit=1000")["objects"],
				"found": slices.ContainsFunc(found, func(o object) bool { return o["id"] == id })}
		}
		if len(rows) < 20 {
			return out
		}
	}
}

// firstWords is something that was said in the call.
func firstWords(d object) string {
	for _, turn := range d["session_metrics"].(object)["turns"].([]any) {
		if text, _ := turn.(object)["agent_text"].(string); text != "" {
			return `"` + strings.ReplaceAll(text, `"`, " ") + `"`
		}
	}
	return ""
}

// came replaces a time of arrival by whether there is one.
func came(o object, key string) { o[key] = o[key] != nil }

// compare tells where two values differ.
func compare(t *testing.T, where string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	g, isObject := got.(object)
	if w, ok := want.(object); ok && isObject {
		for k := range w {
			compare(t, where+"."+k, g[k], w[k])
		}
		for k := range g {
			if _, ok := w[k]; !ok {
				t.Errorf("%s.%s is there now", where, k)
			}
		}
		return
	}
	gl, isList := got.([]any)
	if wl, ok := want.([]any); ok && isList && len(gl) == len(wl) {
		for i := range wl {
			compare(t, fmt.Sprintf("%s[%d]", where, i), gl[i], wl[i])
		}
		return
	}
	t.Errorf("%s\n got %.400v\nwant %.400v", where, got, want)
}

func demoUpload(t *testing.T) request {
	kind, body := form(t, string(evalFixture(t, "demo-call/header.json")), string(evalFixture(t, "demo-call/chat_history.json")), evalFixture(t, "demo-call/recording.ogg"))
	return request{recordingsPath, kind, "", body}
}

func nodeRequests(t *testing.T) (all []request) {
	for _, name := range []string{"01_logs", "02_recordings", "03_logs", "04_traces"} {
		all = append(all, captured(t, "livekit-node-1.9.0/"+name))
	}
	return all
}

func only(all []request, paths ...string) []request {
	return slices.DeleteFunc(all, func(r request) bool { return !slices.Contains(paths, r.path) })
}

// demoTraffic is what `sidetone demo` sends for some calls: reports, spans, logs and metrics, and calls that go on.
func demoTraffic(t *testing.T, calls, seed string) (all []request) {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", "Sat, 21 Nov 2026 12:00:00 GMT")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method == http.MethodPost {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, request{r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), body})
		}
		w.Write([]byte(`{}`))
	}))
	defer server.Close()
	if err := demo.Run(t.Context(), []string{"--url", server.URL, "--calls", calls, "--seed", seed, "--no-evals", "--concurrency", "1"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	return all
}

// shuffled is the requests split, repeated and in another order.
func shuffled(t *testing.T, r *rand.Rand, all []request) []request {
	t.Helper()
	var out []request
	for _, whole := range all {
		pieces := split(t, r, whole)
		for range r.IntN(2) { // another client splits otherwise
			pieces = append(pieces, split(t, r, whole)...)
		}
		for _, p := range pieces {
			for range 1 + max(0, r.IntN(4)-2) {
				out = append(out, p)
			}
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// split divides an export into some of the same records each. Uploads stay whole.
func split(t *testing.T, r *rand.Rand, whole request) []request {
	t.Helper()
	if whole.path == recordingsPath {
		return []request{whole}
	}
	body := whole.body
	if whole.encoding == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(z)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n := 1 + r.IntN(4)
	to := func() int { return r.IntN(n) }
	var out []request
	for _, piece := range splitBody(t, whole, body, n, to) {
		next := request{path: whole.path, contentType: whole.contentType, body: piece}
		if r.IntN(2) == 0 {
			next.encoding, next.body = "gzip", zip(t, piece)
		}
		if r.IntN(3) == 0 { // the standard path is the same
			next.path = "/v1/" + strings.Split(whole.path, "/")[2]
		}
		out = append(out, next)
	}
	return out
}

// splitBody deals the records of an export to n bodies, each with the resources and scopes of the whole.
func splitBody(t *testing.T, whole request, body []byte, n int, to func() int) (out [][]byte) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(whole.contentType, "json") {
		// Which record goes where is decided once, in the order in which they are met.
		var deal []int
		for piece := range n {
			var doc map[string]any
			d := json.NewDecoder(bytes.NewReader(body))
			d.UseNumber()
			must(d.Decode(&doc))
			i := 0
			for _, rl := range doc["resourceLogs"].([]any) {
				for _, sl := range rl.(object)["scopeLogs"].([]any) {
					scope := sl.(object)
					var kept []any
					for _, rec := range scope["logRecords"].([]any) {
						if i == len(deal) {
							deal = append(deal, to())
						}
						if deal[i] == piece {
							kept = append(kept, rec)
						}
						i++
					}
					scope["logRecords"] = kept
				}
			}
			b, err := json.Marshal(doc)
			must(err)
			out = append(out, b)
		}
		return out
	}
	pieces := make([]proto.Message, n)
	switch whole.path {
	case logsPath:
		var data logspb.LogsData
		must(proto.Unmarshal(body, &data))
		for i := range pieces {
			pieces[i] = &logspb.LogsData{}
		}
		for _, rl := range data.ResourceLogs {
			for _, sl := range rl.ScopeLogs {
				for _, rec := range sl.LogRecords {
					p := pieces[to()].(*logspb.LogsData)
					p.ResourceLogs = append(p.ResourceLogs, &logspb.ResourceLogs{Resource: rl.Resource, ScopeLogs: []*logspb.ScopeLogs{{Scope: sl.Scope, LogRecords: []*logspb.LogRecord{rec}}}})
				}
			}
		}
	case tracesPath:
		var data tracepb.TracesData
		must(proto.Unmarshal(body, &data))
		for i := range pieces {
			pieces[i] = &tracepb.TracesData{}
		}
		for _, rs := range data.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, sp := range ss.Spans {
					p := pieces[to()].(*tracepb.TracesData)
					p.ResourceSpans = append(p.ResourceSpans, &tracepb.ResourceSpans{Resource: rs.Resource, ScopeSpans: []*tracepb.ScopeSpans{{Scope: ss.Scope, Spans: []*tracepb.Span{sp}}}})
				}
			}
		}
	default:
		var data metricspb.MetricsData
		must(proto.Unmarshal(body, &data))
		for i := range pieces {
			pieces[i] = &metricspb.MetricsData{}
		}
		for _, rm := range data.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, m := range sm.Metrics {
					p := pieces[to()].(*metricspb.MetricsData)
					p.ResourceMetrics = append(p.ResourceMetrics, &metricspb.ResourceMetrics{Resource: rm.Resource, ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: sm.Scope, Metrics: []*metricspb.Metric{m}}}})
				}
			}
		}
	}
	for _, p := range pieces {
		b, err := proto.Marshal(p)
		must(err)
		out = append(out, b)
	}
	return out
}

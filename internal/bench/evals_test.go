package bench

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sidetone/internal/apptest"
)

const (
	evalPageRuns = 1000 // runs that are there when pages are measured
	evalRunCases = 100  // cases of each run
	evalBatch    = 10   // finished cases that a plugin sends at a time while its suite runs
)

// BenchmarkEvalIngest posts runs of 100 cases of about 2.4 KB: whole, as a plugin does at the end of a suite, and
// streamed, as a plugin does that posts the start, every ten cases, and at the end everything once more.
func BenchmarkEvalIngest(b *testing.B) {
	for _, engine := range engines {
		for _, way := range []struct {
			name  string
			conns int
			posts func(run int) [][]byte
		}{{"whole/1conn", 1, wholeRun}, {"whole/8conns", 8, wholeRun}, {"streamed/8conns", 8, streamedRun}} {
			b.Run(engine+"/"+way.name, func(b *testing.B) {
				p := apptest.Start(b, database(b, engine)...)
				postRuns(b, p.URL, 1_000_000, 20, way.conns, way.posts) // warm up
				cpu := p.CPU()
				b.ResetTimer()
				took := postRuns(b, p.URL, 0, b.N, way.conns, way.posts)
				b.StopTimer()
				cases := float64(b.N * evalRunCases)
				b.ReportMetric(cases/b.Elapsed().Seconds(), "cases/s")
				b.ReportMetric((p.CPU()-cpu).Seconds()*1e6/cases, "server-cpu-µs/case")
				reportLatency(b, took)
			})
		}
	}
}

// BenchmarkEvalPages asks for pages of a server that holds 1,000 runs of 100 cases, one request at a time.
func BenchmarkEvalPages(b *testing.B) {
	for _, engine := range engines {
		b.Run(engine, func(b *testing.B) {
			p := apptest.Start(b, database(b, engine)...)
			postRuns(b, p.URL, 0, evalPageRuns, 8, wholeRun)
			for _, page := range []struct {
				name string
				path func(run int) string
			}{
				{"run", func(n int) string { return "/api/evals/" + benchRunID(n) }},
				{"run with events", func(n int) string { return "/api/evals/" + benchRunID(n) + "?include=events" }},
				{"case", func(n int) string { return "/api/evals/" + benchRunID(n) + "/cases/" + benchCaseID(n, n%evalRunCases) }},
				{"list", func(n int) string { return fmt.Sprintf("/api/evals?limit=20&offset=%d", n) }},
				{"list of an account by status", func(n int) string {
					return fmt.Sprintf("/api/evals?limit=20&account_id=account-%d&status=completed,failed", n%10)
				}},
				{"compare", func(n int) string {
					return "/api/evals/compare?base=" + benchRunID(n) + "&head=" + benchRunID((n+1)%evalPageRuns)
				}},
			} {
				b.Run(page.name, func(b *testing.B) {
					took := make([]time.Duration, 0, b.N)
					var size int64
					for i := 0; b.Loop(); i++ {
						start := time.Now()
						size = fetch(b, p.URL+page.path(i*7919%evalPageRuns))
						took = append(took, time.Since(start))
					}
					reportLatency(b, took)
					b.ReportMetric(float64(size)/1000, "KB/page")
				})
			}
		})
	}
}

// fetch reads a page whole and returns its size in bytes.
func fetch(b *testing.B, url string) int64 {
	res, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("%s: status %d, %v", url, res.StatusCode, err)
	}
	return n
}

func reportLatency(b *testing.B, took []time.Duration) {
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	at := func(p int) float64 { return float64(took[(len(took)*p+99)/100-1].Microseconds()) / 1000 }
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
}

// postRuns sends n runs, each run's posts one after the other, over conns connections. It returns the latency of every
// post.
func postRuns(b *testing.B, url string, first, n, conns int, posts func(run int) [][]byte) []time.Duration {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
	defer client.CloseIdleConnections()
	pool := make([][][]byte, min(n, 200)) // made beforehand: the generator shares the machine with the server
	for i := range pool {
		pool[i] = posts(first + i)
	}
	var mu sync.Mutex
	var took []time.Duration
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range conns {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				for _, body := range pool[i%len(pool)] {
					if i >= len(pool) { // the same texts as another run
						body = bytes.ReplaceAll(body, []byte(benchRunID(first+i%len(pool))), []byte(benchRunID(first+i)))
					}
					start := time.Now()
					res, err := client.Post(url+"/observability/evals/v0", "application/json", bytes.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if res.StatusCode != http.StatusCreated {
						b.Errorf("status %d", res.StatusCode)
						return
					}
					mu.Lock()
					took = append(took, time.Since(start))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return took
}

func benchRunID(run int) string { return fmt.Sprintf("0000%04x-0000-4000-8000-%012x", run&0xffff, run) }

// benchCaseID counts cases within their run: the runs of a suite would have other ids, but as many.
func benchCaseID(run, n int) string { return fmt.Sprintf("c0000000-0000-4000-8000-%012x", n) }

func wholeRun(run int) [][]byte {
	return [][]byte{benchPost(run, "completed", benchCases(run))}
}

func streamedRun(run int) [][]byte {
	cases := benchCases(run)
	out := [][]byte{benchPost(run, "running", nil)}
	for i := 0; i < len(cases); i += evalBatch {
		out = append(out, benchPost(run, "running", cases[i:i+evalBatch]))
	}
	return append(out, benchPost(run, "completed", cases))
}

func benchPost(run int, status string, cases [][]byte) []byte {
	body := fmt.Appendf(nil, `{"version":"v0","run":{"run_id":%q,"name":"nightly %d","account_id":"account-%d","agent_id":"agent-%d","framework":"livekit","testing_framework":"pytest","started_at":%d,"status":%q,"ci":{"git_branch":"main","git_sha":"%07x"}},"cases":[`,
		benchRunID(run), run, run%10, run%20, 1795000000+run, status, run)
	return append(append(body, bytes.Join(cases, []byte(","))...), `]}`...)
}

func benchCases(run int) [][]byte {
	r := rand.New(rand.NewPCG(0xe7a1, uint64(run)))
	out := make([][]byte, evalRunCases)
	for i := range out {
		var events []byte
		for turn := range 3 {
			if turn > 0 {
				events = append(events, ',')
			}
			events = fmt.Appendf(events, `{"type":"message","role":"user","content":%q,"interrupted":false},{"type":"function_call","name":"look_up","call_id":"call_%08x","arguments":{"order":%d}},{"type":"function_call_output","call_id":"call_%08x","output":"{\"state\":\"shipped\"}","is_error":false},{"type":"message","role":"assistant","content":%q,"interrupted":false,"metrics":{"llm_node_ttft":%.6f,"tts_node_ttfb":%.6f,"llm_prompt_tokens":%d,"llm_completion_tokens":%d,"llm_metadata":{"model_name":"gpt-4.1-mini","model_provider":"openai"}}}`,
				benchText(r, 10), r.Uint32(), r.IntN(99999), r.Uint32(), benchText(r, 24), 0.3+r.Float64(), 0.1+r.Float64()/5, 700+r.IntN(900), 20+r.IntN(60))
		}
		status, verdict, failure := "passed", "pass", "null"
		if r.IntN(12) == 0 {
			status, verdict = "failed", "fail"
			failure = fmt.Sprintf(`{"kind":"judge_failed","message":%q,"stack":%q}`, benchText(r, 12), benchText(r, 60))
		}
		out[i] = fmt.Appendf(nil, `{"case_id":%q,"name":"test_case_%d","file":"tests/test_%d.py","status":%q,"started_at":%d,"finished_at":%d,"user_input":%q,"events":[%s],"judgments":[{"intent":"is polite","verdict":%q,"reasoning":%q},{"intent":"is right","verdict":"pass","reasoning":%q}],"failure":%s}`,
			benchCaseID(run, i), i, i/10, status, 1795000000+run+i, 1795000002+run+i, benchText(r, 10), events, verdict, benchText(r, 14), benchText(r, 14), failure)
	}
	return out
}

// benchText is words that compress about as prose does.
func benchText(r *rand.Rand, words int) string {
	var b []byte
	for i := range words {
		if i > 0 {
			b = append(b, ' ')
		}
		for range 1 + r.IntN(3) {
			b = append(b, "re mi la so ka ton der ing est al or un ter ver com"[3*r.IntN(17):][:3]...)
		}
	}
	return string(b)
}

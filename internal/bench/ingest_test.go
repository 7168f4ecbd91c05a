// Package bench measures the whole program, load generator beside it on the same machine: `make bench`.
package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sidetone/internal/apptest"
	"sidetone/internal/demo"
	"sidetone/internal/pgtest"
)

var engines = []string{"sqlite", "postgres"}

// database gives the settings of a fresh database.
func database(b *testing.B, engine string) []string {
	dir := b.TempDir()
	url := "sqlite:" + dir + "/bench.db"
	if engine == "postgres" {
		url = pgtest.URL(b)
	}
	return []string{"DATABASE_URL=" + url, "RECORDINGS_DIR=" + dir + "/recordings", "ALERT_SWEEPER=off"}
}

// BenchmarkIngest posts reports of about 35 KB and 12 turns from 1, 16 and 64 connections.
func BenchmarkIngest(b *testing.B) {
	for _, engine := range engines {
		for _, conns := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/%dconns", engine, conns), func(b *testing.B) {
				p := apptest.Start(b, database(b, engine)...)
				post(b, p.URL, 0, 200, conns) // warm up
				cpu := p.CPU()
				b.ResetTimer()
				took := post(b, p.URL, 1000, b.N, conns)
				b.StopTimer()
				report(b, took, b.Elapsed(), p.CPU()-cpu)
			})
		}
	}
}

// post sends n reports over conns connections and returns each one's latency.
func post(b *testing.B, url string, first, n, conns int) []time.Duration {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, DisableCompression: true}}
	defer client.CloseIdleConnections()
	type request struct {
		kind string
		body []byte
	}
	// Made beforehand: the generator shares the machine with the server.
	pool := make([]request, min(n, 4000))
	for i := range pool {
		c := demo.BenchCall(first + i)
		pool[i].kind, pool[i].body = c.Multipart(nil)
	}
	took := make([]time.Duration, n)
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
				r := pool[i%len(pool)]
				start := time.Now()
				res, err := client.Post(url+"/observability/recordings/v0", r.kind, bytes.NewReader(r.body))
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				took[i] = time.Since(start)
				if res.StatusCode != http.StatusOK {
					b.Errorf("status %d", res.StatusCode)
					return
				}
			}
		})
	}
	wg.Wait()
	return took
}

func report(b *testing.B, took []time.Duration, elapsed, cpu time.Duration) {
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	at := func(p int) float64 { return float64(took[(len(took)*p+99)/100-1].Microseconds()) / 1000 }
	b.ReportMetric(float64(len(took))/elapsed.Seconds(), "reports/s")
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
	b.ReportMetric(cpu.Seconds()*1e6/float64(len(took)), "server-cpu-µs/report")
}

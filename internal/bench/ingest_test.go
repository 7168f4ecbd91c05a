// Package bench measures the whole program, load generator beside it on the same machine: `make bench`.
package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sort"
	"strings"
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

// post sends n reports over conns connections and returns each one's latency. Requests are made beforehand and written
// to the sockets as they are: the generator shares the machine with the server.
func post(b *testing.B, url string, first, n, conns int) []time.Duration {
	address := strings.TrimPrefix(url, "http://")
	pool := make([][]byte, min(n, 4000))
	for i := range pool {
		kind, body := demo.BenchCall(first + i).Multipart(nil)
		pool[i] = fmt.Appendf(nil, "POST /observability/recordings/v0 HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", address, kind, len(body))
		pool[i] = append(pool[i], body...)
	}
	took := make([]time.Duration, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range conns {
		wg.Go(func() {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			answers := bufio.NewReader(conn)
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				request := pool[i%len(pool)]
				if i >= len(pool) { // as another session: the same one again would be a merge
					request = bytes.ReplaceAll(request, demo.BenchID(first+i%len(pool)), demo.BenchID(first+i))
				}
				start := time.Now()
				if err := roundTrip(conn, answers, request); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	return took
}

// roundTrip sends one request and reads its answer, which must be 200.
func roundTrip(conn net.Conn, answers *bufio.Reader, request []byte) error {
	if _, err := conn.Write(request); err != nil {
		return err
	}
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", res.StatusCode, body)
	}
	return nil
}

func report(b *testing.B, took []time.Duration, elapsed, cpu time.Duration) {
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	at := func(p int) float64 { return float64(took[(len(took)*p+99)/100-1].Microseconds()) / 1000 }
	b.ReportMetric(float64(len(took))/elapsed.Seconds(), "reports/s")
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
	b.ReportMetric(at(100), "max-ms")
	b.ReportMetric(cpu.Seconds()*1e6/float64(len(took)), "server-cpu-µs/report")
}

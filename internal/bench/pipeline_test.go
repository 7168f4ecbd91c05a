package bench

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sidetone/internal/app"
	"sidetone/internal/config"
	"sidetone/internal/demo"
	"sidetone/internal/pgtest"
)

// BenchmarkPipeline is BenchmarkIngest without sockets and without a second process: what a profile of the server's
// own work per report is taken from (go test -bench Pipeline -cpuprofile).
func BenchmarkPipeline(b *testing.B) {
	for _, engine := range engines {
		b.Run(engine, func(b *testing.B) {
			h := handler(b, engine)
			reports := make([][]byte, min(b.N, 8000))
			kinds := make([]string, len(reports))
			for i := range reports {
				kinds[i], reports[i] = demo.BenchCall(i).Multipart(nil)
			}
			next := make(chan int)
			go func() {
				for i := range b.N {
					next <- i
				}
				close(next)
			}()
			b.SetParallelism(16)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := <-next % len(reports)
					r := httptest.NewRequest(http.MethodPost, "/observability/recordings/v0", bytes.NewReader(reports[i]))
					r.Header.Set("Content-Type", kinds[i])
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if w.Code != http.StatusOK {
						b.Errorf("%d %s", w.Code, w.Body)
					}
				}
			})
		})
	}
}

func handler(b *testing.B, engine string) http.Handler {
	dir := b.TempDir()
	env := map[string]string{"DATABASE_URL": "sqlite:" + dir + "/bench.db", "RECORDINGS_DIR": dir + "/recordings", "PORT": "0", "HOST": "127.0.0.1", "ALERT_SWEEPER": "off"}
	if engine == "postgres" {
		env["DATABASE_URL"] = pgtest.URL(b)
	}
	cfg, _, err := config.Load(func(k string) string { return env[k] }, nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Hour)
	a, err := app.NewServer(ctx, cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stop(); a.Close() })
	return a.Handler()
}

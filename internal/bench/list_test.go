package bench

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"sidetone/internal/app"
	"sidetone/internal/config"
	"sidetone/internal/demo"
	"sidetone/internal/pgtest"
	parse "sidetone/internal/report"
	"sidetone/internal/session"
	"sidetone/internal/sqlstore"
)

// where is a database under measurement.
type where struct{ engine, path, url string }

func newDatabase(b *testing.B, engine string) where {
	b.Helper()
	w := where{engine: engine, path: filepath.Join(b.TempDir(), "bench.db")}
	if engine == "postgres" {
		w.url = pgtest.URL(b)
	}
	return w
}

func (w where) open(b *testing.B) *sqlstore.Store {
	b.Helper()
	s, err := sqlstore.Open(w.engine, w.path, w.url, sqlstore.Observer{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if _, err := s.Migrate(b.Context(), time.Now()); err != nil {
		b.Fatal(err)
	}
	return s
}

// handler is the whole program on the database, without a socket.
func (w where) handler(b *testing.B) http.Handler {
	b.Helper()
	dir := b.TempDir()
	env := map[string]string{"DATABASE_URL": "sqlite:" + w.path, "RECORDINGS_DIR": dir, "PORT": "0", "HOST": "127.0.0.1", "ALERT_SWEEPER": "off"}
	if w.engine == "postgres" {
		env["DATABASE_URL"] = w.url
	}
	cfg, _, err := config.Load(func(k string) string { return env[k] }, nil)
	if err != nil {
		b.Fatal(err)
	}
	a, err := app.NewServer(b.Context(), cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { a.Close() })
	return a.Handler()
}

// size is how many bytes the database takes on disk, write-ahead log apart.
func (w where) size(b *testing.B) int64 {
	b.Helper()
	if w.engine == "sqlite" {
		db, err := sql.Open("sqlite", "file:"+w.path)
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(`PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(w.path)
		if err != nil {
			b.Fatal(err)
		}
		return info.Size()
	}
	db, err := sql.Open("pgx", w.url)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var n int64
	if err := db.QueryRow(`SELECT pg_database_size(current_database())`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// rest does what PostgreSQL's autovacuum would do within a minute: without it, lists are planned by guess and read rows
// where an index would do.
func (w where) rest(b *testing.B) {
	b.Helper()
	if w.engine != "postgres" {
		return
	}
	db, err := sql.Open("pgx", w.url)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`VACUUM (ANALYZE)`); err != nil {
		b.Fatal(err)
	}
}

// variety is how many different reports fill a database. Each is stored many times under other ids and times.
const variety = 400

// restamped stores what it is given under another id and at another time.
type restamped struct {
	session.Store
	id    string
	shift time.Duration
}

// Apply stores a copy of the record under another id and at another time.
func (r restamped) Apply(ctx context.Context, c session.Change) (session.Applied, error) {
	rec := *c.Fresh
	s := &rec.Session
	for _, t := range []*time.Time{&s.StartedAt, &s.EndedAt, &s.AudioStartedAt, &s.CreatedAt, &s.FirstSignalAt, &s.LastSignalAt} {
		if !t.IsZero() {
			*t = t.Add(r.shift)
		}
	}
	c.Key.Room, c.Fresh = r.id, &rec
	return r.Store.Apply(ctx, c)
}

// fill stores n sessions through the domain and the store, as uploads do, without HTTP and decoding.
func fill(b *testing.B, store *sqlstore.Store, n int) {
	b.Helper()
	uploads := make([]session.Upload, variety)
	for i := range uploads {
		kind, body := demo.BenchCall(i).Multipart(nil)
		up, err := parse.Read(kind, bytes.NewReader(body), parse.Limits{Body: 1 << 20, Part: 1 << 20}, func(io.Reader) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
		rep, err := parse.Parse(up)
		if err != nil {
			b.Fatal(err)
		}
		uploads[i] = session.Upload{Report: rep, Doc: parse.EncodeDoc(up, rep)}
	}
	records := make([]session.Change, variety)
	for i, up := range uploads {
		// The record is made once, by the domain itself.
		svc := session.NewService(capture{store, &records[i]}, nil, parse.ParseDoc, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
		if _, err := svc.Ingest(b.Context(), up, up.Report.EndedAt); err != nil {
			b.Fatal(err)
		}
	}
	done := make(chan struct{})
	var indexing sync.WaitGroup
	indexing.Go(func() { // as the program does beside answering
		for {
			select {
			case <-done:
				return
			case <-store.IndexWanted():
				if err := store.IndexWords(context.Background()); err != nil {
					b.Error(err)
				}
			}
		}
	})
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				k := i * 7919 % variety
				to := restamped{store, fmt.Sprintf("RM_list%08d", i), time.Duration(i-k) * demo.BenchStep}
				if _, err := to.Apply(context.Background(), records[k]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(done)
	indexing.Wait()
	if err := store.IndexWords(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// capture keeps what a service would store.
type capture struct {
	session.Store
	to *session.Change
}

func (c capture) Apply(_ context.Context, change session.Change) (session.Applied, error) {
	*c.to = change
	return session.Applied{ID: change.Key.Room}, nil
}

// BenchmarkRead measures lists and details with many sessions stored. A list is asked for in two states: unchanged since
// the last time, as when people page, and written to before each request, as under load ("busy").
func BenchmarkRead(b *testing.B) {
	for _, engine := range engines {
		for _, n := range []int{1000, 100000} {
			b.Run(fmt.Sprintf("%s/%d", engine, n), func(b *testing.B) { benchmarkRead(b, engine, n) })
		}
	}
}

func benchmarkRead(b *testing.B, engine string, n int) {
	w := newDatabase(b, engine)
	store := w.open(b)
	empty := w.size(b)
	fill(b, store, n)
	h := w.handler(b)
	stored := float64(w.size(b)-empty) / float64(n)
	w.rest(b)
	b.Run("stored", func(b *testing.B) { // only a benchmark without others inside is printed
		b.ReportMetric(stored, "B/report")
		b.ReportMetric(0, "ns/op")
	})
	get := func(b *testing.B, target string) {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != http.StatusOK {
			b.Fatalf("%s: %d %.200s", target, rec.Code, rec.Body)
		}
	}
	middle := demo.BenchEpoch.Add(time.Duration(n/2) * demo.BenchStep).Format(time.RFC3339)
	late := demo.BenchEpoch.Add(time.Duration(n-n/10) * demo.BenchStep).Format(time.RFC3339)
	lists := []struct{ name, query string }{
		{"first", ""}, {"middle-page", fmt.Sprintf("offset=%d", n/2)}, {"last-page", fmt.Sprintf("offset=%d", n-20)},
		{"account", "account_id=account-07"}, {"accounts", "account_id=account-07,account-08,account-09"}, {"agent", "agent_id=agent-11"},
		{"agent-name", "agent_name=" + url.QueryEscape("Agent sales 11")}, {"transport", "transport=webrtc"}, {"outcome", "outcome=fail"}, {"state-active", "state=active"}, {"state-ended", "state=ended"},
		{"started", "started_from=" + url.QueryEscape(middle) + "&started_to=" + url.QueryEscape(late)}, {"failed-eval", "has_failed_eval=true"}, {"recording", "has_recording=true"},
		{"duration", "min_duration_ms=200000&max_duration_ms=220000"}, {"account+outcome", "account_id=account-07&outcome=fail&transport=sip"},
		{"search-word", "q=refund"}, {"search-phrase", "q=" + url.QueryEscape(`"tracking number"`)}, {"search-rare", "q=" + url.QueryEscape("8999 refund")}, {"search+account", "account_id=account-07&q=invoice"},
	}
	extra := atomic.Int64{}
	write := func() {
		c := demo.BenchCall(int(extra.Add(1)) + 10_000_000)
		kind, body := c.Multipart(nil)
		r := httptest.NewRequest(http.MethodPost, "/observability/recordings/v0", bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != http.StatusOK {
			b.Fatalf("%d %s", rec.Code, rec.Body)
		}
	}
	for _, l := range lists {
		target := "/api/sessions?" + l.query
		b.Run("list-"+l.name, func(b *testing.B) { latency(b, nil, func(int) { get(b, target) }) })
		b.Run("busy-list-"+l.name, func(b *testing.B) { latency(b, write, func(int) { get(b, target) }) })
	}
	b.Run("detail", func(b *testing.B) {
		latency(b, nil, func(i int) { get(b, fmt.Sprintf("/api/sessions/RM_list%08d", i*7919%n)) })
	})
}

// latency runs f b.N times, before between the measured parts, and reports percentiles in ms.
func latency(b *testing.B, before func(), f func(i int)) {
	b.Helper()
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	for i := range took {
		if before != nil {
			b.StopTimer()
			before()
			b.StartTimer()
		}
		start := time.Now()
		f(i)
		took[i] = time.Since(start)
	}
	b.StopTimer()
	slices.Sort(took)
	at := func(p int) float64 { return float64(took[(len(took)*p+99)/100-1].Microseconds()) / 1000 }
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
}

// rawInsert measures how fast the machine writes bodies as they are into one column, each row its own transaction from 16
// connections, with the durability the program has: what to compare ingest with.
func rawInsert(b *testing.B, w where, column string, bodies [][]byte, unit string) {
	b.Helper()
	var db *sql.DB
	var err error
	if w.engine == "sqlite" {
		db, err = sql.Open("sqlite", "file:"+w.path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_txlock=immediate")
	} else {
		db, err = sql.Open("pgx", w.url)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	kind := strings.NewReplacer("JSONB", map[string]string{"sqlite": "BLOB", "postgres": "JSONB"}[w.engine], "BYTEA", map[string]string{"sqlite": "BLOB", "postgres": "BYTEA"}[w.engine]).Replace(column)
	if _, err := db.Exec(`CREATE TABLE raw (body ` + kind + ` NOT NULL)`); err != nil {
		b.Fatal(err)
	}
	value := "$1"
	if column == "JSONB" && w.engine == "sqlite" {
		value = "jsonb($1)"
	}
	insert, err := db.Prepare(`INSERT INTO raw (body) VALUES (` + value + `)`)
	if err != nil {
		b.Fatal(err)
	}
	defer insert.Close()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range 16 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < b.N; i = int(next.Add(1)) - 1 {
				var arg any = bodies[i%len(bodies)]
				if column == "JSONB" {
					arg = string(bodies[i%len(bodies)])
				}
				if _, err := insert.Exec(arg); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), unit)
}

// BenchmarkRawJSONB inserts the bodies that BenchmarkIngest posts into one JSONB column.
func BenchmarkRawJSONB(b *testing.B) {
	bodies := make([][]byte, 1000)
	for i := range bodies {
		bodies[i] = demo.BenchCall(i).Body
	}
	for _, engine := range engines {
		b.Run(engine, func(b *testing.B) { rawInsert(b, newDatabase(b, engine), "JSONB", bodies, "reports/s") })
	}
}

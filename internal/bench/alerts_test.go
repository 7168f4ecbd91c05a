package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sidetone/internal/alert"
	"sidetone/internal/loop"
	"sidetone/internal/outbound"
	"sidetone/internal/pgtest"
	"sidetone/internal/session"
	"sidetone/internal/sqlstore"
	"sidetone/internal/webhook"
)

const (
	alertTurns    = 12
	alertSessions = 400_000/alertTurns + 1 // in the windows of all rules
	alertFresh    = alertSessions / 30     // sessions that end in 30 s at that rate, were all windows 15 minutes
)

// alertTick is the time of every tick. All sessions ended in the 14 minutes before it, so that the shortest window holds them.
var alertTick = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// BenchmarkAlerts measures one evaluation of all rules over 400,000 turns, in seconds of processor time of this process,
// which is the server's part, and of the database server. cold is the first tick of a process, which reads everything; warm
// is any other in which nothing was new; fresh is one after as many calls as end in 30 s. burst lets 1,000 rules fire in one
// warm tick and measures the time from the tick to the last webhook received, all by one receiver.
func BenchmarkAlerts(b *testing.B) {
	for _, engine := range engines {
		b.Run(engine, func(b *testing.B) {
			db := openAlerts(b, engine)
			added := 0
			add := func(b *testing.B, n int, ended func(i int) time.Time) {
				db.add(b, added, n, ended)
				added += n
			}
			add(b, alertSessions, func(i int) time.Time { return alertTick.Add(-14 * time.Minute * time.Duration(i) / alertSessions) })
			for _, rules := range []int{10, 100, 1000} {
				db.setRules(b, rules, func(i int, r *alert.Rule) {
					if r.Threshold = 1; r.Metric.IsLatency() { // never above
						r.Threshold = 1e6
					}
				})
				b.Run(fmt.Sprintf("%drules/cold", rules), func(b *testing.B) {
					db.measure(b, rules, func() *alert.Sweeper { return alert.NewSweeper(db.store.Alerts(), func() {}) }, func() {})
				})
				sweeper := alert.NewSweeper(db.store.Alerts(), func() {})
				db.sweep(b, sweeper, rules)
				same := func() *alert.Sweeper { return sweeper }
				b.Run(fmt.Sprintf("%drules/warm", rules), func(b *testing.B) { db.measure(b, rules, same, func() {}) })
				b.Run(fmt.Sprintf("%drules/fresh", rules), func(b *testing.B) {
					db.measure(b, rules, same, func() { add(b, alertFresh, func(int) time.Time { return alertTick }) })
				})
			}
			b.Run("1000rules/burst", db.burst)
		})
	}
}

func (db *alertDB) burst(b *testing.B) {
	const rules = 1000
	var received atomic.Int64
	all := make(chan time.Time, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if received.Add(1) == rules {
			all <- time.Now()
		}
	}))
	defer receiver.Close()
	sender := outbound.New(outbound.Options{Timeout: webhook.Timeout})
	defer sender.Close()
	begin := time.Now()
	clock := func() time.Time { return alertTick.Add(time.Since(begin)) }
	dispatcher := webhook.NewDispatcher(db.store.Alerts(), sender.Send, clock, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		loop.OnDemand(ctx, dispatcher.Woken(), time.Minute, func(ctx context.Context, _ time.Time) (next time.Time) {
			if _, err := dispatcher.DeliverDue(ctx, clock()); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
			return next
		})
	})
	defer running.Wait()
	defer stop()
	var swept, took time.Duration
	for n := 0; n < b.N; n++ {
		b.StopTimer()
		received.Store(0)
		db.setRules(b, rules, func(i int, r *alert.Rule) {
			r.Threshold, r.WebhookURL, r.Secret, r.MinSamples = 1e-6, receiver.URL, "secret", alert.MaxMinSamples
		})
		sweeper := alert.NewSweeper(db.store.Alerts(), dispatcher.Wake)
		db.sweep(b, sweeper, rules)
		side(b, rules, 8, func(i int) error {
			_, err := db.store.Alerts().UpdateRule(ctx, db.rules[i], func(r alert.Rule) (alert.Rule, error) {
				r.MinSamples = 1
				return r, nil
			})
			return err
		})
		b.StartTimer()
		start := time.Now()
		report, err := sweeper.Sweep(ctx, alertTick)
		swept += time.Since(start)
		if err != nil || report.Fired != rules {
			b.Fatalf("%+v, %v", report, err)
		}
		select {
		case at := <-all:
			took += at.Sub(start)
		case <-time.After(time.Minute):
			b.Fatalf("%d of %d webhooks arrived", received.Load(), rules)
		}
		b.StopTimer()
		if err := dispatcher.Drain(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(swept.Seconds()*1000/float64(b.N), "tick-ms")
	b.ReportMetric(took.Seconds()*1000/float64(b.N), "to-last-webhook-ms")
}

// alertDB is a database that is filled and swept without HTTP.
type alertDB struct {
	store *sqlstore.Store
	pg    int // process id of the database server, 0 without one
	rules []string
}

func openAlerts(b *testing.B, engine string) *alertDB {
	db := &alertDB{}
	url := ""
	if engine == "postgres" {
		url = pgtest.URL(b)
	}
	var err error
	if db.store, err = sqlstore.Open(engine, filepath.Join(b.TempDir(), "bench.db"), url, sqlstore.Observer{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.store.Close() })
	if _, err := db.store.Migrate(context.Background(), alertTick); err != nil {
		b.Fatal(err)
	}
	if url != "" {
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close(context.Background())
		var backend int
		if err := conn.QueryRow(context.Background(), "SELECT pg_backend_pid()").Scan(&backend); err != nil {
			b.Fatal(err)
		}
		db.pg = parentOf(backend)
	}
	return db
}

// add stores sessions first, first+1 and so on, through the same transactions as reports.
func (db *alertDB) add(b *testing.B, first, n int, ended func(i int) time.Time) {
	b.Helper()
	side(b, n, 64, func(i int) error {
		r := rand.New(rand.NewPCG(0xa1e7, uint64(first+i)))
		at := ended(i)
		samples := func(median, sigma float64) []float64 {
			out := make([]float64, alertTurns)
			for j := range out {
				out[j] = math.Round(median*math.Exp(sigma*r.NormFloat64())*1000) / 1000
			}
			return out
		}
		s := session.Session{AgentID: fmt.Sprintf("agent-%02d", r.IntN(50)), AccountID: fmt.Sprintf("account-%02d", r.IntN(20)), Transport: "sip", StartedAt: at.Add(-3 * time.Minute),
			EndedAt: at, TurnCount: alertTurns, Outcome: []string{"success", "success", "fail"}[r.IntN(3)], CreatedAt: at, FirstSignalAt: at, LastSignalAt: at}
		_, err := db.store.Apply(context.Background(), session.Change{Key: session.Key{Room: fmt.Sprintf("RM_alert%08d", first+i)}, Fresh: &session.Record{
			Session: s, OutcomeAt: at, Verdicts: []session.Verdict{{Judge: "accuracy", Verdict: []string{"pass", "pass", "pass", "fail"}[r.IntN(4)], At: at}},
			Facts: session.TurnFacts{AssistantTurns: alertTurns, InterruptedTurns: r.IntN(3), Perceived: samples(1200, 0.3), TTFT: samples(450, 0.4), TTFB: samples(180, 0.2), STT: samples(250, 0.2)},
		}})
		return err
	})
}

// setRules replaces all rules. They mix the metrics and windows from 15 minutes to a day; of three, one is for all calls, one
// for an agent and one for an account.
func (db *alertDB) setRules(b *testing.B, n int, set func(i int, r *alert.Rule)) {
	b.Helper()
	side(b, len(db.rules), 8, func(i int) error { return db.store.Alerts().DeleteRule(context.Background(), db.rules[i]) })
	db.rules = make([]string, n)
	windows := []int{15, 30, 60, 240, 720, 1440}
	side(b, n, 8, func(i int) error {
		r := alert.Rule{ID: webhook.NewID(), Name: fmt.Sprint("rule ", i), Enabled: true, Metric: alert.Metrics[i%len(alert.Metrics)], WindowMinutes: windows[i/len(alert.Metrics)%len(windows)],
			MinSamples: 1, EvalSource: alert.SourceAll, WebhookURL: "http://127.0.0.1:9/", HTTPMethod: "POST", CreatedAt: alertTick, UpdatedAt: alertTick}
		switch i % 3 {
		case 1:
			r.AgentID = fmt.Sprintf("agent-%02d", i%50)
		case 2:
			r.AccountID = fmt.Sprintf("account-%02d", i%20)
		}
		set(i, &r)
		db.rules[i] = r.ID
		return db.store.Alerts().CreateRule(context.Background(), r)
	})
}

func (db *alertDB) sweep(b *testing.B, s *alert.Sweeper, rules int) alert.Report {
	b.Helper()
	r, err := s.Sweep(context.Background(), alertTick)
	if err != nil || r.Evaluated != rules || r.Fired != 0 || r.Sessions < alertSessions {
		b.Fatalf("%+v, %v", r, err)
	}
	return r
}

// measure makes b.N ticks, each with the sweeper that next gives, and calls before, unmeasured, before each.
func (db *alertDB) measure(b *testing.B, rules int, next func() *alert.Sweeper, before func()) {
	var own, server time.Duration
	for n := 0; n < b.N; n++ {
		b.StopTimer()
		before()
		sweeper := next()
		ownBefore, serverBefore := ownCPU(), db.serverCPU(b)
		b.StartTimer()
		db.sweep(b, sweeper, rules)
		b.StopTimer()
		own, server = own+ownCPU()-ownBefore, server+db.serverCPU(b)-serverBefore
	}
	b.ReportMetric(own.Seconds()/float64(b.N), "server-cpu-s/tick")
	b.ReportMetric(server.Seconds()/float64(b.N), "database-cpu-s/tick")
}

// side runs f for 0 to n-1, some at a time.
func side(b *testing.B, n, atOnce int, f func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || b.Failed() {
					return
				}
				if err := f(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// ownCPU is the processor time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no way to fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverCPU is the processor time of the database server: of its processes that are alive, to the nanosecond, and of those
// that have ended, such as parallel workers, to 10 ms.
func (db *alertDB) serverCPU(b *testing.B) (sum time.Duration) {
	if db.pg == 0 {
		return 0
	}
	f := statOf(db.pg)
	for _, ticks := range f[13:15] { // cutime and cstime: proc(5), without the two fields that statOf leaves out
		n, _ := strconv.ParseInt(ticks, 10, 64)
		sum += time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100 on Linux
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.Fatal(err)
	}
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if pid != db.pg && parentOf(pid) != db.pg {
			continue
		}
		text, err := os.ReadFile(dir + "/schedstat") // nanoseconds on a processor come first
		if err != nil {
			continue // it has just ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// parentOf is the parent of a process, 0 when it is gone.
func parentOf(pid int) int {
	f := statOf(pid)
	if f == nil {
		return 0
	}
	parent, _ := strconv.Atoi(f[1])
	return parent
}

// statOf is /proc/PID/stat from the state on, nil when the process is gone.
func statOf(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // the name before may contain anything
}

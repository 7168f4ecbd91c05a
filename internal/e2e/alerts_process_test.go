package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/apptest"
	"sidetone/internal/pgtest"
	"sidetone/internal/webhook"
)

// alertPatience bounds each wait of these tests for a process; none of them comes near it unless something is broken.
const alertPatience = 40 * time.Second

// alertDatabase is the settings of processes that share a fresh database.
func alertDatabase(t *testing.T, engine string) (settings []string, path, url string) {
	dir := t.TempDir()
	path = dir + "/shared.db"
	if engine == "postgres" {
		url = pgtest.URL(t)
		return []string{"DATABASE_URL=" + url, "RECORDINGS_DIR=" + dir + "/recordings"}, path, url
	}
	return []string{"DATABASE_URL=sqlite://" + path, "RECORDINGS_DIR=" + dir + "/recordings"}, path, url
}

// alertSend makes one request to a process, which must answer with the status.
func alertSend(t testing.TB, status int, method, url, kind string, body []byte) alertObject {
	t.Helper()
	out, err := alertTry(status, method, url, kind, body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func alertTry(status int, method, url, kind string, body []byte) (out alertObject, err error) {
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil || res.StatusCode != status {
		return nil, fmt.Errorf("%s %s: %d %.500s, %v; want %d", method, url, res.StatusCode, b, err, status)
	}
	return out, nil
}

// alertPrepare fills a database, through a process that does not sweep, with a failed call and rules that will fire.
func alertPrepare(t *testing.T, settings []string, hook string, rules int) []string {
	t.Helper()
	p := apptest.Start(t, append(settings, "ALERT_SWEEPER=off")...)
	kind, body := alertReport(alertCall{id: "failed-call", agent: "a", account: "b", more: alertObject{"outcome": "lk.fail"}})
	alertSend(t, 200, "POST", p.URL+"/observability/recordings/v0", kind, body)
	ids := make([]string, rules)
	next := make(chan int)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for i := range next {
				rule := alertRuleBody("outcome_fail_rate", 0.5, alertObject{"name": fmt.Sprint("rule ", i), "webhook_url": hook})
				got, err := alertTry(201, "POST", p.URL+"/api/alert-rules", "application/json", rule)
				if err != nil {
					t.Error(err)
				}
				ids[i], _ = got["id"].(string)
			}
		})
	}
	for i := range rules {
		next <- i
	}
	close(next)
	wg.Wait()
	p.Stop()
	return ids
}

// alertGate is a receiver that keeps count by rule and firing. While it is held, requests wait inside.
type alertGate struct {
	*httptest.Server
	mu      sync.Mutex
	arrived *sync.Cond
	inside  int
	total   int
	held    bool
	free    int                       // requests that may leave while it is held
	seen    map[string]map[string]int // rule -> firing -> requests
}

func newAlertGate(t *testing.T, held bool) *alertGate {
	g := &alertGate{held: held, seen: map[string]map[string]int{}}
	g.arrived = sync.NewCond(&g.mu)
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		g.mu.Lock()
		defer g.mu.Unlock()
		rule := r.Header.Get("X-Alert-Rule-Id")
		if g.seen[rule] == nil {
			g.seen[rule] = map[string]int{}
		}
		g.seen[rule][r.Header.Get("X-Alert-Firing-Id")]++
		g.total++
		g.inside++
		g.arrived.Broadcast()
		defer context.AfterFunc(r.Context(), g.arrived.Broadcast)()
		for g.held && g.free == 0 && r.Context().Err() == nil { // who has died no longer waits
			g.arrived.Wait()
		}
		if g.held && r.Context().Err() == nil {
			g.free--
		}
		g.inside--
	}))
	t.Cleanup(func() { g.hold(false); g.Close() })
	return g
}

// hold makes requests wait, or lets go those that do.
func (g *alertGate) hold(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = on
	g.arrived.Broadcast()
}

// let allows some of the requests to leave.
func (g *alertGate) let(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += n
	g.arrived.Broadcast()
}

// await waits until enough of the receiver's state is reached.
func (g *alertGate) await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	late := time.AfterFunc(alertPatience, func() { g.arrived.Broadcast() })
	defer late.Stop()
	deadline := time.Now().Add(alertPatience)
	g.mu.Lock()
	defer g.mu.Unlock()
	for !reached() {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s: %d requests of %d rules", what, g.total, len(g.seen))
		}
		g.arrived.Wait()
	}
}

// alertUntil asks again until it is true.
func alertUntil(t *testing.T, what string, f func() bool) {
	t.Helper()
	apptest.Eventually(t, alertPatience, what, f)
}

// alertVerify looks into the database after the processes have ended: each rule fired once, was delivered, and every
// request that arrived belongs to its one firing. atMost bounds the requests of one firing.
func alertVerify(t *testing.T, h *alertHouse, g *alertGate, ids []string, atMost int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		f := h.objects("/api/alert-rules/" + id + "/firings")
		if len(f) != 1 || f[0]["status"] != "delivered" || f[0]["attempt_count"] == 0. {
			t.Errorf("rule %s has %d firings, %v", id, len(f), f)
			continue
		}
		if n := g.seen[id][f[0]["id"].(string)]; n < 1 || n > atMost || len(g.seen[id]) != 1 {
			t.Errorf("rule %s: its firing arrived %d times; want 1 to %d; all that arrived: %v", id, n, atMost, g.seen[id])
		}
	}
	if len(g.seen) != len(ids) {
		t.Errorf("webhooks of %d rules arrived, want %d", len(g.seen), len(ids))
	}
}

// openAlertHouse looks into a database that processes have used, by the real clock.
func openAlertHouse(t *testing.T, engine, path, url string) *alertHouse {
	t.Helper()
	h := &alertHouse{t: t, engine: engine, path: path, url: url}
	h.run(time.Now())
	h.open(webhook.Timeout)
	t.Cleanup(h.close)
	return h
}

const alertRules = 200

// TestAlertsOfManyProcesses starts several processes at once on rules that fire: each fires once and arrives once.
func TestAlertsOfManyProcesses(t *testing.T) {
	for _, c := range []struct {
		engine          string
		servers, worker int
	}{{"postgres", 4, 4}, {"sqlite", 2, 0}} {
		t.Run(c.engine, func(t *testing.T) {
			t.Parallel()
			settings, path, url := alertDatabase(t, c.engine)
			g := newAlertGate(t, true) // nothing is finished before all take part
			ids := alertPrepare(t, settings, g.URL, alertRules)
			var all []*apptest.Process
			for range c.worker {
				all = append(all, apptest.StartWorker(t, settings...))
			}
			for range c.servers {
				all = append(all, apptest.Start(t, settings...))
			}
			g.hold(false)
			g.await(t, "all webhooks", func() bool { return len(g.seen) == alertRules })
			for _, p := range all { // their end is orderly: what is in flight is recorded
				p.Stop()
			}
			h := openAlertHouse(t, c.engine, path, url)
			h.deliver() // would send whatever were still due
			alertVerify(t, h, g, ids, 1)
			if n := h.get("/api/alerts/webhook-attempts")["meta"].(alertObject)["total_count"]; n != float64(alertRules) {
				t.Errorf("%v attempts recorded, want %d", n, alertRules)
			}
		})
	}
}

// TestAlertsSurviveKills kills processes at random, with deliveries in flight and while they start, evaluate and record.
func TestAlertsSurviveKills(t *testing.T) {
	for _, c := range []struct {
		engine           string
		servers, workers int
		kills            int
	}{{"postgres", 4, 4, 16}, {"sqlite", 2, 0, 8}} {
		t.Run(c.engine, func(t *testing.T) {
			t.Parallel()
			settings, path, url := alertDatabase(t, c.engine)
			g := newAlertGate(t, true)
			ids := alertPrepare(t, settings, g.URL, alertRules)
			r := rand.New(rand.NewPCG(5, 2026))
			start := func(i int) *apptest.Process {
				if i < c.workers {
					return apptest.StartWorker(t, settings...)
				}
				return apptest.Start(t, settings...)
			}
			all := make([]*apptest.Process, c.workers+c.servers)
			for i := range all {
				all[i] = start(i)
				if r.IntN(3) == 0 { // some die as soon as they live
					<-time.After(time.Duration(r.IntN(30)) * time.Millisecond)
					all[i].Kill()
					all[i] = start(i)
				}
			}
			h := openAlertHouse(t, c.engine, path, url)
			inside := func() int {
				g.mu.Lock()
				defer g.mu.Unlock()
				return g.inside
			}
			// done says that every rule fired and nothing is left that a living process would deliver.
			done := func() bool {
				if inside() > 0 || slices.ContainsFunc(h.allRules(), func(rule alertObject) bool { return rule["last_fired_at"] == nil }) {
					return false
				}
				q, err := h.store.Alerts().Queue(t.Context(), h.clock())
				return err == nil && q.OldestDue.IsZero()
			}
			kills := 0
			for ; kills < c.kills && !done(); kills++ {
				// The requests of a process that is killed now were received and will never be recorded.
				alertUntil(t, "a delivery in flight", func() bool { return inside() > 0 || done() })
				i := r.IntN(len(all))
				all[i].Kill()
				// Some of those that wait are answered, so the next kill finds processes that record and claim.
				g.let(r.IntN(20))
				all[i] = start(i)
			}
			g.hold(false)

			alertUntil(t, "all rules to fire and what is not claimed to be delivered", done)
			for _, p := range all {
				p.Stop()
			}
			left, err := h.store.Alerts().Queue(t.Context(), h.clock())
			if err != nil || left.Pending == 0 {
				t.Errorf("the kills left %+v, %v; want deliveries that were claimed and never recorded", left, err)
			}
			t.Logf("%d kills with deliveries in flight; %d deliveries of the dead are left", kills, left.Pending)
			// Their claims end: for the house, the clock runs that much ahead.
			h.run(time.Now().Add(webhook.Lease))
			for q := (alert.Queue{Pending: 1}); q.Pending > 0 && err == nil; q, err = h.store.Alerts().Queue(t.Context(), h.clock()) {
				h.deliver() // as many as one host may have at a time
			}
			alertVerify(t, h, g, ids, 3)
		})
	}
}

// allRules is every rule, page by page.
func (h *alertHouse) allRules() (all []alertObject) {
	for next := "/api/alert-rules?limit=100"; next != ""; {
		page := h.get(next)
		for _, o := range page["objects"].([]any) {
			all = append(all, o.(alertObject))
		}
		next, _ = page["meta"].(alertObject)["next"].(string)
	}
	return all
}

// TestAlertDrain ends processes while their deliveries are in flight.
func TestAlertDrain(t *testing.T) {
	for _, command := range []string{"serve", "worker"} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(fmt.Sprint(command, " ", sig), func(t *testing.T) {
				settings, path, _ := alertDatabase(t, "sqlite")
				g := newAlertGate(t, true)
				ids := alertPrepare(t, settings, g.URL, 5)
				start := func() *apptest.Process {
					if command == "worker" {
						return apptest.StartWorker(t, settings...)
					}
					return apptest.Start(t, settings...)
				}
				p := start()
				g.await(t, "the deliveries", func() bool { return g.inside == 5 })
				p.Signal(sig)
				alertUntil(t, "the process to stop", func() bool { return strings.Contains(p.Log(), "stopping") })
				if _, err := p.Wait(50 * time.Millisecond); err == nil {
					t.Fatal("the process did not wait for its deliveries")
				}
				if sig == syscall.SIGINT { // once more: it ends at once, and the deliveries are somebody else's
					p.Signal(sig)
					if code, err := p.Wait(5 * time.Second); err != nil || code != 130 {
						t.Fatalf("the second signal: code %d, %v", code, err)
					}
					g.hold(false)
					h := openAlertHouse(t, "sqlite", path, "")
					h.run(time.Now().Add(webhook.Lease))
					h.deliver()
					alertVerify(t, h, g, ids, 2)
					return
				}
				g.hold(false)
				if code, err := p.Wait(alertPatience); err != nil || code != 0 {
					t.Fatalf("the end: code %d, %v", code, err)
				}
				h := openAlertHouse(t, "sqlite", path, "")
				alertVerify(t, h, g, ids, 1)
				if attempts := h.objects("/api/alerts/webhook-attempts?ok=true"); len(attempts) != 5 || attempts[0]["response_status"] != 200. {
					t.Errorf("%d attempts recorded", len(attempts))
				}
			})
		}
	}
}

// TestAlertSweeperPlacement runs a server that does not sweep beside a worker, which always does.
func TestAlertSweeperPlacement(t *testing.T) {
	alertOnEngines(t, func(t *testing.T, engine string) {
		settings, path, url := alertDatabase(t, engine)
		settings = append(settings, "LOG_LEVEL=debug", "ALERT_SWEEPER=off")
		g := newAlertGate(t, false)
		off := apptest.Start(t, settings...)
		kind, body := alertReport(alertCall{id: "failed-call", more: alertObject{"outcome": "fail"}})
		alertSend(t, 200, "POST", off.URL+"/observability/recordings/v0", kind, body)
		secret := "the secret of the rule"
		rule := alertRuleBody("outcome_fail_rate", 0.5, alertObject{"webhook_url": g.URL, "secret": secret})
		id := alertSend(t, 201, "POST", off.URL+"/api/alert-rules", "application/json", rule)["id"].(string)
		beside := apptest.Start(t, settings...) // rules are evaluated at start, if at all
		worker := apptest.StartWorker(t, settings...)
		g.await(t, "the webhook", func() bool { return g.total > 0 })

		// A server without a sweeper still sends tests, and leaves redeliveries to the worker.
		if got := alertSend(t, 200, "POST", off.URL+"/api/alert-rules/"+id+"/test", "application/json", nil); got["ok"] != true {
			t.Errorf("test send: %v", got)
		}
		firing := func() alertObject {
			list := alertSend(t, 200, "GET", off.URL+"/api/alert-rules/"+id+"/firings", "", nil)["objects"].([]any)
			if len(list) != 1 {
				t.Fatalf("%d firings, want 1", len(list))
			}
			return list[0].(alertObject)
		}
		alertUntil(t, "the delivery to be recorded", func() bool { return firing()["status"] == "delivered" })
		alertSend(t, 200, "POST", off.URL+"/api/alerts/firings/"+firing()["id"].(string)+"/redeliver", "application/json", nil)
		alertUntil(t, "the redelivery", func() bool { return firing()["attempt_count"] == 2. })
		for _, p := range []*apptest.Process{off, beside} {
			if log := p.Log(); strings.Contains(log, "alert rules evaluated") || strings.Contains(log, "fired") {
				t.Errorf("a server with ALERT_SWEEPER=off evaluated:\n%s", log)
			}
			p.Stop()
		}
		worker.Stop()
		if log := worker.Log(); !strings.Contains(log, "alert rules evaluated") || !strings.Contains(log, "fired") {
			t.Errorf("the worker's log says nothing of its tick:\n%s", log)
		}
		for _, p := range []*apptest.Process{off, beside, worker} {
			if strings.Contains(p.Log(), secret) {
				t.Error("the secret of a rule is in the log")
			}
		}
		h := openAlertHouse(t, engine, path, url)
		if got := h.get("/api/alert-rules/" + id); got["last_fired_at"] == nil {
			t.Errorf("the rule is %v", got)
		}
	})
}

// TestAlertsOnTheMetricsPage lets one rule be delivered, one be refused and one not be answered.
func TestAlertsOnTheMetricsPage(t *testing.T) {
	settings, _, _ := alertDatabase(t, "sqlite")
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	for _, hook := range []string{newAlertGate(t, false).URL, refusing.URL, nobody.URL} {
		alertPrepare(t, settings, hook, 1)
	}
	p := apptest.Start(t, settings...)
	page := ""
	alertUntil(t, "the deliveries on the metrics page", func() bool {
		res, err := http.Get(p.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		page = string(b)
		return err == nil && strings.Count(page, "sidetone_webhook_attempts_total{") == 3 && strings.Contains(page, "sidetone_webhook_queue_pending 2\n")
	})
	for _, want := range []string{`sidetone_alert_ticks_total{result="ok"} 1`, "sidetone_alert_tick_duration_seconds_count 1", "sidetone_alert_rules_evaluated_total 3", "sidetone_alert_firings_total 3",
		`sidetone_webhook_attempts_total{result="ok"} 1`, `sidetone_webhook_attempts_total{result="refused"} 1`, `sidetone_webhook_attempts_total{result="error"} 1`,
		"sidetone_webhook_attempt_duration_seconds_count 3", "sidetone_webhook_queue_pending 2", "sidetone_webhook_queue_retrying 2", "sidetone_webhook_oldest_due_seconds 0"} {
		if !strings.Contains(page, "\n"+want+"\n") {
			t.Errorf("the page lacks %q", want)
		}
	}
}

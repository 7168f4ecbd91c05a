package e2e_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sidetone/internal/alert"
	"sidetone/internal/loop"
	"sidetone/internal/webhook"
)

// alertPost is one webhook as it arrived.
type alertPost struct {
	method, path string
	header       http.Header
	body         []byte
}

// alertInbox is a receiver that accepts everything and keeps it.
type alertInbox struct {
	*httptest.Server
	mu    sync.Mutex
	posts []alertPost
}

func newAlertInbox(t testing.TB) *alertInbox {
	in := &alertInbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the body of a webhook broke off: %v", err)
		}
		in.mu.Lock()
		in.posts = append(in.posts, alertPost{r.Method, r.URL.RequestURI(), r.Header, body})
		in.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(in.Close)
	return in
}

// take returns what has arrived since the last time.
func (in *alertInbox) take() []alertPost {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := in.posts
	in.posts = nil
	return out
}

// one is the only webhook that has arrived since the last time.
func (in *alertInbox) one(t testing.TB) alertPost {
	t.Helper()
	posts := in.take()
	if len(posts) != 1 {
		t.Fatalf("%d webhooks arrived, want 1", len(posts))
	}
	return posts[0]
}

// TestAlertWebhook compares payload and headers with the tables of the spec, field by field.
func TestAlertWebhook(t *testing.T) {
	alertOnEngines(t, func(t *testing.T, engine string) {
		h, in := newAlertHouse(t, engine), newAlertInbox(t)
		for i := range 25 { // more than the payload may name
			h.report(alertCall{id: fmt.Sprintf("call-%02d", i), agent: "ours", account: "acme", perceived: 900 + float64(i), ended: alertNoon.Add(time.Duration(i) * time.Second)})
		}
		h.report(alertCall{id: "fast", agent: "ours", account: "acme", perceived: 5, ended: alertNoon.Add(time.Minute)})
		h.report(alertCall{id: "judged", agent: "ours", account: "acme", ended: alertNoon, more: alertObject{"evaluations": []any{alertObject{"name": "tone & \"style\" <ü>", "verdict": "fail"}}}})
		tick := alertNoon.Add(5*time.Minute + 123*time.Millisecond + 456*time.Microsecond)
		var newest []any
		for i := 24; i > 4; i-- {
			newest = append(newest, fmt.Sprintf("call-%02d", i))
		}
		h.set(tick)
		for _, c := range []struct {
			name, metric, method string
			threshold            float64
			fields, want         alertObject
		}{
			{"late <replies> & more ü", "latency_perceived_p95", "POST", 899.5, alertObject{"agent_id": "ours", "account_id": "acme", "secret": "s3cret ü"},
				alertObject{"judge_name": nil, "matched_count": 26., "total_count": nil, "observed_value": 923., "sample_session_ids": newest, "agent_id": "ours", "account_id": "acme"}},
			{"bad", "eval_fail_rate", "PUT", 0.3, alertObject{"judge_name": "tone & \"style\" <ü>", "headers": map[string]string{
				"content-type": "text/plain", "X-Team": "voice, ü", "Authorization": "Bearer abc", "Webhook-Id": "mine", "User-Agent": "theirs"}},
				alertObject{"judge_name": "tone & \"style\" <ü>", "matched_count": 1., "total_count": 1., "observed_value": 1., "sample_session_ids": []any{}, "agent_id": nil, "account_id": nil}},
			{"standard", "eval_fail_rate", "PATCH", 0.5, alertObject{"secret": "whsec_" + base64.StdEncoding.EncodeToString([]byte("twenty-four bytes of key")), "headers": map[string]string{
				"webhook-signature": "v1,forged", "webhook-timestamp": "1"}},
				alertObject{"judge_name": nil, "matched_count": 1., "total_count": 1., "observed_value": 1., "sample_session_ids": []any{}, "agent_id": nil, "account_id": nil}},
		} {
			fields := alertObject{"name": c.name, "http_method": c.method, "webhook_url": in.URL + "/hook?team=voice"}
			maps.Copy(fields, c.fields)
			id := h.rule(c.metric, c.threshold, fields)
			if r := h.sweep(); r.Fired != 1 {
				t.Fatalf("%s: %+v", c.name, r)
			}
			h.deliver()
			got := in.one(t)
			firing := h.objects("/api/alert-rules/" + id + "/firings")[0]
			if firing["status"] != "delivered" || firing["response_status"] != 202. || firing["attempt_count"] != 1. || firing["next_attempt_at"] != nil {
				t.Errorf("%s: the firing is %v", c.name, firing)
			}

			var payload alertObject
			if err := json.Unmarshal(got.body, &payload); err != nil {
				t.Fatal(err)
			}
			want := alertObject{"type": "alert.triggered", "firing_id": firing["id"],
				"rule":     alertObject{"id": id, "name": c.name, "metric": c.metric, "judge_name": c.want["judge_name"], "threshold_value": c.threshold, "window_minutes": 15.},
				"window":   alertObject{"start": "2026-11-21T11:50:00.123Z", "end": "2026-11-21T12:05:00.123Z"},
				"fired_at": "2026-11-21T12:05:00.123Z"}
			for k, v := range c.want {
				if k != "judge_name" {
					want[k] = v
				}
			}
			if !reflect.DeepEqual(payload, want) {
				t.Errorf("%s: payload\n%s, want\n%s", c.name, got.body, alertJSON(want))
			}

			headers := map[string]string{"Content-Type": "application/json", "X-Alert-Rule-Id": id, "X-Alert-Firing-Id": firing["id"].(string),
				"User-Agent": "sidetone/test", "Content-Length": fmt.Sprint(len(got.body))}
			secret, _ := c.fields["secret"].(string)
			if extra, ok := c.fields["headers"].(map[string]string); ok {
				for name, value := range extra {
					if name = http.CanonicalHeaderKey(name); name != "Content-Type" {
						headers[name] = value
					}
				}
			}
			if secret != "" {
				mac := hmac.New(sha256.New, []byte(secret))
				mac.Write(got.body)
				headers["X-Alert-Signature"] = "sha256=" + hex.EncodeToString(mac.Sum(nil))
			}
			if key, ok := strings.CutPrefix(secret, "whsec_"); ok {
				raw, _ := base64.StdEncoding.DecodeString(key)
				headers["Webhook-Id"], headers["Webhook-Timestamp"] = firing["id"].(string), strconv.FormatInt(tick.Unix(), 10)
				mac := hmac.New(sha256.New, raw)
				fmt.Fprintf(mac, "%s.%s.%s", headers["Webhook-Id"], headers["Webhook-Timestamp"], got.body)
				headers["Webhook-Signature"] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
			}
			arrived := map[string]string{}
			for name, values := range got.header {
				arrived[name] = strings.Join(values, " | ")
			}
			if !maps.Equal(arrived, headers) {
				t.Errorf("%s: headers\n%v, want\n%v", c.name, arrived, headers)
			}
			if got.method != c.method || got.path != "/hook?team=voice" {
				t.Errorf("%s: arrived as %s %s", c.name, got.method, got.path)
			}
			if bytes.Contains(got.body, []byte("\\u003c")) {
				t.Errorf("%s: the name is written for HTML: %s", c.name, got.body)
			}
		}
	})
}

// TestAlertTargetIsReadAtDelivery changes URL, secret, headers and method between an attempt and its retry.
func TestAlertTargetIsReadAtDelivery(t *testing.T) {
	alertOnEngines(t, func(t *testing.T, engine string) {
		h, in := newAlertHouse(t, engine), newAlertInbox(t)
		h.report(alertCall{id: "a", more: alertObject{"outcome": "fail"}})
		id := h.rule("outcome_fail_rate", 0.5, alertObject{"webhook_url": "http://127.0.0.1:9/gone", "secret": "old", "headers": map[string]string{"x-old": "1"}})
		h.sweep()
		next := h.deliver()
		h.ask(200, "PATCH", "/api/alert-rules/"+id, alertJSON(alertObject{"webhook_url": in.URL, "secret": "new", "http_method": "PUT", "enabled": false, "name": "renamed",
			"headers": map[string]string{"x-new": "2"}}), "application/json")
		h.set(next)
		h.deliver()
		got := in.one(t)
		if got.method != "PUT" || got.header.Get("X-New") != "2" || got.header.Get("X-Old") != "" || got.header.Get("X-Alert-Signature") != webhook.Signature("new", got.body) {
			t.Errorf("the retry arrived as %s with %v", got.method, got.header)
		}
		if !bytes.Contains(got.body, []byte(`"name":"outcome_fail_rate"`)) {
			t.Errorf("the payload is not that of the firing: %s", got.body)
		}
	})
}

// alertBackoff is the wait after each failed attempt: spec, Delivery rules.
var alertBackoff = []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour}

// TestAlertReceiversThatFail delivers to seven kinds of bad receivers over real sockets. Between attempts the clock
// jumps to the next one, and twice the process is restarted.
func TestAlertReceiversThatFail(t *testing.T) {
	// A receiver may take this long here; the ten seconds of the spec are kept in TestAlertScheduleByTheClock.
	const timeout = time.Second
	alertOnEngines(t, func(t *testing.T, engine string) {
		h := newAlertHouse(t, engine)
		h.close()
		h.open(timeout)
		h.report(alertCall{id: "a", more: alertObject{"outcome": "fail"}})

		gone := make(chan struct{})
		stop := sync.OnceFunc(func() { close(gone) })
		serve := func(f http.HandlerFunc) string {
			s := httptest.NewServer(f)
			t.Cleanup(func() { stop(); s.CloseClientConnections(); s.Close() })
			return s.URL
		}
		nobody := httptest.NewServer(nil)
		nobody.Close()
		endless := func(status int) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				for r.Context().Err() == nil {
					if _, err := w.Write(make([]byte, 32<<10)); err != nil {
						return
					}
				}
			}
		}
		kinds := []struct {
			name, url string
			status    any
			why       string
		}{
			{"answers 500", serve(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }), 500., "^the receiver answered 500$"},
			{"redirects", serve(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", 301) }), 301., "^the receiver answered 301; redirects are not followed$"},
			{"hangs", serve(func(http.ResponseWriter, *http.Request) { <-gone }), nil, "^no response within 1s$"},
			{"closes the connection", serve(func(w http.ResponseWriter, r *http.Request) {
				c, _, _ := w.(http.Hijacker).Hijack()
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
			}), nil, "^the connection was closed before a response came$"},
			{"answers 503 without end", serve(endless(503)), 503., "^the receiver answered 503$"},
			{"is not there", nobody.URL, nil, "^the connection was refused$"},
			{"has no address", "http://no-such-host.invalid/", nil, "^the host name (does not resolve|could not be resolved)$|^no response within 1s$"},
		}
		ids := make([]string, len(kinds))
		for i, k := range kinds {
			ids[i] = h.rule("outcome_fail_rate", 0.5, alertObject{"name": k.name, "webhook_url": k.url})
		}
		talkative := h.rule("outcome_fail_rate", 0.5, alertObject{"webhook_url": serve(endless(200))})
		if r := h.sweep(); r.Fired != len(kinds)+1 {
			t.Fatalf("%+v", r)
		}
		h.run(alertNoon)
		for n := 1; n <= 6; n++ {
			next := h.deliver()
			if (n == 6) != next.IsZero() {
				t.Fatalf("after attempt %d more is due at %v", n, next)
			}
			var last time.Time
			for i, k := range kinds {
				f := h.objects("/api/alert-rules/" + ids[i] + "/firings")[0]
				attempts := h.objects("/api/alerts/webhook-attempts?rule_id=" + ids[i])
				a := attempts[0]
				status := map[bool]string{false: "pending", true: "failed"}[n == 6]
				if f["status"] != status || f["attempt_count"] != float64(n) || f["response_status"] != k.status || f["last_error"] != a["error"] || f["last_attempt_at"] == nil {
					t.Fatalf("%s: after attempt %d the firing is %v", k.name, n, f)
				}
				took := time.Duration(a["duration_ms"].(float64)) * time.Millisecond
				if len(attempts) != n || a["attempt_number"] != float64(n) || a["ok"] != false || a["response_status"] != k.status || !regexp.MustCompile(k.why).MatchString(fmt.Sprint(a["error"])) ||
					a["firing_id"] != f["id"] || a["kind"] != "firing" || a["rule_name"] != k.name || a["url"] != k.url || a["http_method"] != "POST" ||
					took > 5*time.Second || k.name == "hangs" && took < timeout {
					t.Fatalf("%s: %d attempts, the last is %v", k.name, len(attempts), a)
				}
				if n == 6 {
					continue
				}
				due := alertTime(t, f["next_attempt_at"])
				if wait := due.Sub(alertTime(t, a["created_at"]).Add(took)); (wait - alertBackoff[n-1]).Abs() > 3*time.Millisecond { // three times rounded to a millisecond
					t.Errorf("%s: attempt %d follows after %v, want %v", k.name, n+1, wait, alertBackoff[n-1])
				}
				if due.After(last) {
					last = due
				}
			}
			if f := h.objects("/api/alert-rules/" + talkative + "/firings")[0]; f["status"] != "delivered" || f["attempt_count"] != 1. {
				t.Fatalf("a receiver that says 200 and talks on: %v", f)
			}
			if n == 6 {
				break
			}
			h.set(next.Add(-time.Second))
			if n == 2 || n == 5 { // another process takes over
				h.close()
				h.open(timeout)
			}
			if again := h.deliver(); !again.Equal(next) {
				t.Fatalf("a second before attempt %d it is due at %v, not %v", n+1, again, next)
			}
			h.run(last.Add(time.Millisecond))
		}
		if got := h.get("/api/alerts/webhook-attempts?ok=false")["meta"].(alertObject)["total_count"]; got != float64(6*len(kinds)) {
			t.Errorf("%v failed attempts, want %d", got, 6*len(kinds))
		}
		h.set(h.clock().Add(24 * time.Hour))
		if next := h.deliver(); !next.IsZero() {
			t.Errorf("failed firings are due at %v", next)
		}
	})
}

func alertTime(t testing.TB, v any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(v))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestAlertScheduleByTheClock runs the loops of the process on the real store in simulated time, with receivers that take
// the full ten seconds, and restarts the process every 25 minutes.
func TestAlertScheduleByTheClock(t *testing.T) {
	for name, want := range map[string]string{
		"500":   "0s 30s 2m30s 12m30s 42m30s 2h42m30s",
		"hangs": "0s 40s 2m50s 13m0s 43m10s 2h43m20s",
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			h := &alertHouse{t: t, engine: "sqlite", path: dir + "/" + name + ".db", now: time.Now()}
			h.open(webhook.Timeout)
			h.ticking = time.Now()
			start := time.Now()
			h.report(alertCall{id: "a", more: alertObject{"outcome": "fail"}})
			id := h.rule("outcome_fail_rate", 0.5, alertObject{"window_minutes": 600})
			sent := []string{}
			send := func(context.Context, webhook.Request) (int, error) {
				sent = append(sent, time.Since(start).Round(time.Millisecond).String())
				if name == "hangs" {
					time.Sleep(webhook.Timeout)
					return 0, context.DeadlineExceeded
				}
				return 500, nil
			}
			for process := 0; time.Since(start) < 4*time.Hour; process++ {
				if process > 0 {
					h.open(webhook.Timeout)
				}
				d := webhook.NewDispatcher(h.store.Alerts(), send, time.Now, alertQuiet)
				sweeper := alert.NewSweeper(h.store.Alerts(), d.Wake)
				ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
				var loops sync.WaitGroup
				loops.Go(func() {
					loop.OnDemand(ctx, d.Woken(), 5*time.Second, func(ctx context.Context, now time.Time) time.Time {
						next, _ := d.DeliverDue(ctx, now)
						return next
					})
				})
				loops.Go(func() {
					loop.Every(ctx, alert.Interval, func(ctx context.Context, now time.Time) { sweeper.Sweep(ctx, now) }, nil)
				})
				loops.Wait()
				cancel()
				if err := d.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				if time.Since(start) < 4*time.Hour {
					h.close()
				}
			}
			f := h.objects("/api/alert-rules/" + id + "/firings")
			if got := strings.Join(sent, " "); got != want || len(f) != 1 || f[0]["status"] != "failed" || f[0]["attempt_count"] != 6. {
				t.Errorf("%s: attempts at %s, want %s; the firing is %v", name, got, want, f)
			}
			attempts := h.objects("/api/alerts/webhook-attempts")
			slices.Reverse(attempts)
			for i, a := range attempts {
				ms := map[string]float64{"500": 0, "hangs": 10000}[name]
				if a["attempt_number"] != float64(i+1) || a["duration_ms"] != ms {
					t.Errorf("%s: attempt %v", name, a)
				}
			}
			h.close()
		})
	}
}

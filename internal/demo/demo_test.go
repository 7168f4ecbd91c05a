package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sidetone/internal/errs"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// A receiver records what the demo sends. Its clock is testNow.
type receiver struct {
	t      *testing.T
	mu     sync.Mutex
	bodies map[string][][]byte // by method and path
	parts  map[string]map[string][]byte
	answer func(r *http.Request) int // 0: the route's own success
}

func newReceiver(t *testing.T) (*receiver, *httptest.Server) {
	rec := &receiver{t: t, bodies: map[string][][]byte{}, parts: map[string]map[string][]byte{}}
	srv := httptest.NewServer(rec)
	t.Cleanup(srv.Close)
	return rec, srv
}

func (rec *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", testNow.Format(http.TimeFormat))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away: nothing arrived
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.answer != nil {
		if status := rec.answer(r); status != 0 {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"api_id":"x","error":{"code":"c","message":"the reason"}}`)
			return
		}
	}
	key := r.Method + " " + r.URL.Path
	rec.bodies[key] = append(rec.bodies[key], body)
	if r.URL.Path == "/observability/recordings/v0" {
		parts := readParts(rec.t, r.Header.Get("Content-Type"), body)
		var h header
		if err := json.Unmarshal(parts["header"], &h); err != nil {
			rec.t.Error(err)
		}
		rec.parts[h.SessionID] = parts
	}
	fmt.Fprint(w, `{"api_id":"x"}`)
}

func (rec *receiver) count(key string) int {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return len(rec.bodies[key])
}

// testRun is Run against srv without waiting between retries.
func testRun(t *testing.T, srv *httptest.Server, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	s, err := parseArgs(append([]string{"--url", srv.URL}, args...), func(string) string { return "" }, &out)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{base: s.url, http: srv.Client(), creds: s.creds, wait: time.Microsecond}
	err = run(context.Background(), s, c, &out)
	return out.String(), err
}

func TestRunSendsEverything(t *testing.T) {
	rec, srv := newReceiver(t)
	out, err := testRun(t, srv, "--calls", "60", "--no-evals")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rec.parts); n < 60 || n > 68 {
		t.Errorf("%d sessions", n)
	}
	if got := rec.parts[demoSessionID]; !bytes.Equal(got["audio"], demoAudio) {
		t.Error("the demo call came without its recording")
	}
	for _, want := range []string{"synthetic calls: ", "Done: 4 calls with audio", srv.URL + "/sessions/" + demoSessionID} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\r") || strings.Contains(out, "\x1b") {
		t.Error("control characters in the output to a file")
	}

	before := len(rec.parts)
	if _, err := testRun(t, srv, "--calls", "60", "--no-evals"); err != nil {
		t.Fatal(err)
	}
	if len(rec.parts) != before {
		t.Errorf("a second run made %d new sessions", len(rec.parts)-before)
	}
}

func TestUnavailableIsRetried(t *testing.T) {
	rec, srv := newReceiver(t)
	failed := map[string]int{}
	rec.answer = func(r *http.Request) int {
		if r.URL.Path == "/observability/recordings/v0" && failed[r.Header.Get("Content-Type")] < 2 {
			failed[r.Header.Get("Content-Type")]++ // the boundary tells the calls apart
			return http.StatusServiceUnavailable
		}
		return 0
	}
	if _, err := testRun(t, srv, "--calls", "10", "--no-telemetry", "--no-evals"); err != nil {
		t.Fatal(err)
	}
	if n := len(rec.parts); n < 10 {
		t.Errorf("%d sessions arrived", n)
	}
	rec.answer = func(r *http.Request) int {
		if r.URL.Path == "/observability/recordings/v0" {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	_, err := testRun(t, srv, "--calls", "10", "--no-telemetry", "--no-evals")
	if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("error %v", err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	_, gone := newReceiver(t)
	gone.Close()
	_, err := testRun(t, gone, "--calls", "1")
	if err == nil || !strings.Contains(err.Error(), "make run") || !strings.Contains(err.Error(), gone.URL) {
		t.Errorf("refused connection: %v", err)
	}

	for challenge, want := range map[string]string{
		`Basic realm="x"`: "AGENT_OBSERVABILITY_USER",
		`Bearer`:          "LIVEKIT_API_KEY",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/health" {
				w.Header().Set("WWW-Authenticate", challenge)
				w.WriteHeader(401)
			}
		}))
		_, err := testRun(t, srv, "--calls", "1")
		if !errs.Is(err, errs.Unauthorized) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", challenge, err)
		}
		if challenge == `Bearer` {
			_, err = testRun(t, srv, "--calls", "1", "--user", "a", "--pass", "b")
			if err == nil || !strings.Contains(err.Error(), "LIVEKIT_API_SECRET") {
				t.Errorf("basic on a bearer server: %v", err)
			}
		}
		srv.Close()
	}

	rec, srv := newReceiver(t)
	rec.answer = func(r *http.Request) int {
		if r.URL.Path == "/observability/recordings/v0" {
			return 400
		}
		return 0
	}
	_, err = testRun(t, srv, "--calls", "1")
	if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("refused report: %v", err)
	}
	rec.answer = func(r *http.Request) int { return 502 }
	if _, err = testRun(t, srv, "--calls", "1"); err == nil || !strings.Contains(err.Error(), "/health answered 502") {
		t.Errorf("bad gateway: %v", err)
	}
}

func TestCredentialsAreSent(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/health" {
			seen = append(seen, r.Header.Get("Authorization"))
		}
	}))
	defer srv.Close()
	if _, err := testRun(t, srv, "--calls", "1", "--user", "u", "--pass", "p", "--no-telemetry"); err != nil {
		t.Fatal(err)
	}
	for _, h := range seen {
		if h != "Basic dTpw" {
			t.Fatalf("Authorization %q", h)
		}
	}
	seen = nil
	c := &client{base: srv.URL, http: srv.Client(), creds: credentials{apiKey: "key", secret: "secret"}, wait: time.Microsecond}
	s := settings{url: srv.URL, calls: 1, days: 1, seed: 1, concurrency: 1, noTelemetry: true, noEvals: true}
	if err := run(context.Background(), s, c, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, h := range seen {
		if !strings.HasPrefix(h, "Bearer ") || strings.Count(h, ".") != 2 {
			t.Fatalf("Authorization %q", h)
		}
	}
}

func TestArguments(t *testing.T) {
	env := func(k string) string {
		return map[string]string{"AGENT_OBSERVABILITY_USER": "u", "AGENT_OBSERVABILITY_PASS": "p"}[k]
	}
	s, err := parseArgs(nil, env, io.Discard)
	if err != nil || s.creds.user != "u" || s.creds.pass != "p" || s.calls != 300 || s.url != "http://localhost:9090" {
		t.Errorf("defaults %+v: %v", s, err)
	}
	for args, want := range map[string]string{
		"--calls -1":      "--calls",
		"--days 0":        "--days",
		"--url ftp://x":   "--url",
		"--concurrency 0": "--concurrency",
		"extra":           "extra",
		"--colour blue":   "colour",
	} {
		if _, err := parseArgs(strings.Fields(args), env, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	var help bytes.Buffer
	if err := Run(context.Background(), []string{"-h"}, &help); err != nil || !strings.Contains(help.String(), "-concurrency") {
		t.Errorf("help: %v\n%s", err, help.String())
	}
}

func TestCancelStops(t *testing.T) {
	rec, srv := newReceiver(t)
	ctx, cancel := context.WithCancel(context.Background())
	rec.answer = func(r *http.Request) int {
		if r.URL.Path == "/observability/recordings/v0" {
			cancel()
		}
		return 0
	}
	c := &client{base: srv.URL, http: srv.Client(), wait: time.Microsecond}
	err := run(ctx, settings{url: srv.URL, calls: 50, days: 1, seed: 1, concurrency: 2}, c, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n := rec.count("POST /observability/recordings/v0"); n > 10 {
		t.Errorf("%d reports after the cancel", n)
	}
}

// Package demo fills a server with a synthetic day of traffic, as the SDKs would send it: session reports, a recorded
// call, eval runs and telemetry. It is a client and speaks to the server over HTTP only. Its Generator also feeds
// benchmarks and tests.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"sidetone/internal/errs"
)

// settings are the parsed flags.
type settings struct {
	url         string
	creds       credentials
	calls       int
	seed        int64
	days        int
	concurrency int
	noTelemetry bool
	noEvals     bool
}

// Run parses args, posts the demo data to the server and writes progress and a summary to stdout. Running it again
// with the same seed replaces what the first run sent. An error is one clear sentence that says what to do.
func Run(ctx context.Context, args []string, stdout io.Writer) error {
	s, err := parseArgs(args, os.Getenv, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = s.concurrency
	defer transport.CloseIdleConnections()
	c := &client{base: s.url, http: &http.Client{Transport: transport, Timeout: 2 * time.Minute}, creds: s.creds, wait: 200 * time.Millisecond}
	return run(ctx, s, c, stdout)
}

func parseArgs(args []string, getenv func(string) string, out io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("sidetone demo", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller shows the error; only -h prints
	fs.StringVar(&s.url, "url", "http://localhost:9090", "base URL of the server")
	fs.StringVar(&s.creds.user, "user", getenv("AGENT_OBSERVABILITY_USER"), "user, default $AGENT_OBSERVABILITY_USER")
	fs.StringVar(&s.creds.pass, "pass", "", "password, default $AGENT_OBSERVABILITY_PASS")
	fs.IntVar(&s.calls, "calls", 300, "synthetic calls per day, 0 to 9999")
	fs.Int64Var(&s.seed, "seed", 1, "seed of the synthetic calls; another seed gives other calls beside the first ones")
	fs.IntVar(&s.days, "days", 1, "days of traffic before now, 1 to 90")
	fs.IntVar(&s.concurrency, "concurrency", 4, "requests at a time, 1 to 64")
	fs.BoolVar(&s.noTelemetry, "no-telemetry", false, "send no spans, logs and live calls")
	fs.BoolVar(&s.noEvals, "no-evals", false, "send no eval runs")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: sidetone demo [flags]\n\nSends sample calls, their telemetry and eval runs to a running server.")
			fs.SetOutput(out)
			fs.PrintDefaults()
			return s, err
		}
		return s, errs.New(errs.Invalid, "%v (sidetone demo -h lists the flags)", err)
	}
	if s.creds.pass == "" { // not as the flag's default: the usage text would show it
		s.creds.pass = getenv("AGENT_OBSERVABILITY_PASS")
	}
	s.creds.apiKey, s.creds.secret = getenv("LIVEKIT_API_KEY"), getenv("LIVEKIT_API_SECRET")

	var bad []errs.Field
	check := func(ok bool, field, format string, args ...any) {
		if !ok {
			bad = append(bad, errs.Field{Field: field, Message: fmt.Sprintf(format, args...)})
		}
	}
	u, err := url.Parse(s.url)
	check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "", "--url", "%q is not an http or https URL", s.url)
	check(s.calls >= 0 && s.calls <= 9999, "--calls", "must be 0 to 9999, not %d", s.calls)
	check(s.days >= 1 && s.days <= 90, "--days", "must be 1 to 90, not %d", s.days)
	check(s.concurrency >= 1 && s.concurrency <= 64, "--concurrency", "must be 1 to 64, not %d", s.concurrency)
	check(fs.NArg() == 0, "arguments", "unexpected: %s", strings.Join(fs.Args(), " "))
	s.url = strings.TrimRight(s.url, "/")
	return s, errs.InvalidFields(bad)
}

// run does the work of Run against a client.
func run(ctx context.Context, s settings, c *client, out io.Writer) error {
	now, err := c.serverTime(ctx)
	if err != nil {
		return err
	}
	if c.clock == nil { // tokens are checked against the server's clock
		c.clock = func() time.Time { return now }
	}
	fmt.Fprintf(out, "Filling %s with %s of calls up to %s UTC.\n", s.url, plural(s.days, "day"), now.Format("2006-01-02 15:04"))
	p := plan{settings: s, client: c, out: out, now: now, gen: NewGenerator(s.seed)}
	return p.send(ctx)
}

// A plan is everything one run sends.
type plan struct {
	settings
	client *client
	out    io.Writer
	now    time.Time
	gen    *Generator
	notes  []string // what was left out, and why
}

func (p *plan) send(ctx context.Context) error {
	slots := schedule(p.seed, p.now.Add(-5*time.Minute), p.days, p.calls)
	recorded := p.recorded()
	if err := p.forget(ctx); err != nil {
		return err
	}
	err := p.each(ctx, "recorded calls", len(recorded), func(i int) error { return p.postCall(ctx, recorded[i], demoAudio) })
	if err != nil {
		return err
	}
	err = p.each(ctx, "synthetic calls", len(slots), func(i int) error {
		return p.postCall(ctx, p.gen.Call(slots[i].index, slots[i].ended), nil)
	})
	if err != nil {
		return err
	}
	sum := sent{recorded: len(recorded), calls: len(slots)}
	if !p.noTelemetry {
		if sum.traced, sum.spans, err = p.sendTelemetry(ctx, recorded, slots); err != nil {
			return err
		}
	}
	if !p.noEvals {
		if sum.evals, err = p.sendEvals(ctx); err != nil {
			return err
		}
	}
	p.summary(sum)
	return nil
}

// recorded are the demo call, just over, and the same conversation three more times earlier in the day, so that more
// than one call of the list can be listened to.
func (p *plan) recorded() []Call {
	first, _ := DemoCall(p.now.Add(-3 * time.Minute))
	out := []Call{first}
	for i, before := range []time.Duration{2, 7, 16} {
		start := p.now.Add(-before * time.Hour)
		out = append(out, recordedCall(fmt.Sprintf("demo-recorded-%d", i+1), start))
	}
	return out
}

func (p *plan) postCall(ctx context.Context, c Call, audio []byte) error {
	ctype, body := c.Multipart(audio)
	return p.client.send(ctx, http.MethodPost, "/observability/recordings/v0", map[string]string{"Content-Type": ctype}, body)
}

// forget deletes what moves with the time of the run, so that a second run does not mix its telemetry with the
// first's. A server that cannot delete loses nothing but that.
func (p *plan) forget(ctx context.Context) error {
	ids := []string{"live-call-1", "live-call-2"}
	for _, c := range p.recorded() {
		ids = append(ids, c.SessionID)
	}
	return p.tryDelete(ctx, "/api/sessions", "session_ids", ids)
}

// tryDelete deletes records by id; only errors that would stop everything else too are returned.
func (p *plan) tryDelete(ctx context.Context, path, key string, ids []string) error {
	err := p.client.send(ctx, http.MethodDelete, path, map[string]string{"Content-Type": "application/json"}, mustJSON(map[string]any{key: ids}))
	if k := errs.KindOf(err); err != nil && (k == errs.Unauthorized || k == errs.Unavailable || ctx.Err() != nil) {
		return err
	}
	return nil
}

// each runs f for 0 to n-1 with the plan's concurrency and stops at the first error.
func (p *plan) each(ctx context.Context, label string, n int, f func(i int) error) error {
	if n == 0 {
		return nil
	}
	bar := newProgress(p.out, label, n)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		next  int
		first error
	)
	for range min(p.concurrency, n) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := first != nil || i >= n || ctx.Err() != nil
				mu.Unlock()
				if stop {
					return
				}
				if err := f(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
					return
				}
				bar.step()
			}
		})
	}
	wg.Wait()
	if first == nil {
		first = ctx.Err()
	}
	if first != nil {
		bar.abandon()
	}
	return first
}

// sent counts what arrived.
type sent struct{ recorded, calls, traced, spans, evals int }

func (p *plan) summary(s sent) {
	fmt.Fprintf(p.out, "\nDone: %s with audio, %s", plural(s.recorded, "call"), plural(s.calls, "synthetic call"))
	if s.traced > 0 {
		fmt.Fprintf(p.out, ", %s and the logs of %s (2 of them still going on)", plural(s.spans, "span"), plural(s.traced, "call"))
	}
	if s.evals > 0 {
		fmt.Fprintf(p.out, ", %s", plural(s.evals, "eval run"))
	}
	fmt.Fprintln(p.out, ".")
	for _, n := range p.notes {
		fmt.Fprintf(p.out, "Note: %s\n", n)
	}
	fmt.Fprintf(p.out, `
Look at it:
  %[1]s/sessions                         all calls; from 13:20 to 14:50 UTC the LLM of %[3]s was slow
  %[1]s/sessions/%[2]s         the recorded call: an interrupted third reply, a slow fifth
  curl %[1]s/api/sessions/%[2]s
`, p.url, demoSessionID, incidentAgent)
	if s.evals > 0 {
		fmt.Fprintf(p.out, "  %s/evals                            eval runs: refund cases break on the branch refunds, then on main\n", p.url)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

package webhook

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// Send makes one HTTP request and answers with the status, 0 when no response came. A status outside 2xx is not an
// error; err says in words fit for the audit table why there is no response.
type Send func(ctx context.Context, r Request) (status int, err error)

// TestResult is the answer of a test send.
type TestResult struct {
	OK             bool
	ResponseStatus int    // 0 when no response came
	Error          string // "" when OK
	Duration       time.Duration
}

// SendTest sends an alert.test for a rule, waits for the answer and records the attempt. An error means that the attempt
// could not be recorded; a receiver that fails is a result.
func SendTest(ctx context.Context, store Store, send Send, now func() time.Time, ruleID, name, metric string, t Target) (TestResult, error) {
	body, err := testBody(ruleID, name, metric, now())
	if err != nil {
		return TestResult{}, err
	}
	a := Attempt{ID: NewID(), RuleID: ruleID, RuleName: name, Kind: KindTest, Number: 1}
	// A client that gives up waiting must not leave an attempt that was made unrecorded.
	ctx = context.WithoutCancel(ctx)
	a.run(ctx, send, now, t, Message{ID: a.ID, RuleID: ruleID, Body: body})
	if err := store.RecordAttempt(ctx, a); err != nil {
		return TestResult{}, err
	}
	return TestResult{a.OK, a.ResponseStatus, a.Error, a.Duration}, nil
}

// run makes the attempt and fills in how it went.
func (a *Attempt) run(ctx context.Context, send Send, now func() time.Time, t Target, m Message) {
	a.URL, a.Method, a.CreatedAt = t.URL, t.Method, now()
	status, err := send(ctx, NewRequest(t, m, a.CreatedAt))
	a.Duration = now().Sub(a.CreatedAt)
	a.ResponseStatus = status
	switch {
	case err != nil:
		a.Error = cleanText(err.Error())
	case status >= 300 && status < 400:
		a.Error = fmt.Sprintf("the receiver answered %d; redirects are not followed", status)
	case status < 200 || status > 299:
		a.Error = fmt.Sprintf("the receiver answered %d", status)
	default:
		a.OK = true
	}
}

// cleanText makes any text fit for a column: valid UTF-8, no NUL (PostgreSQL stores none), at most 500 bytes. One
// unstorable error text would otherwise fail the whole group it is recorded with.
func cleanText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
	if len(s) > 500 {
		s = s[:500]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return s
}

// hostOf is the host and port that the per-host limit counts by.
func hostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return rawURL
	}
	host := strings.ToLower(u.Host)
	if u.Port() == "" {
		host += ":" + u.Scheme
	}
	return host
}

package demo

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"sidetone/internal/errs"
)

// A client sends to one server. Its errors are of package errs and worded for the person at the terminal.
type client struct {
	base  string // without a trailing slash
	http  *http.Client
	creds credentials
	wait  time.Duration // before the first retry of a 503; doubles each time
	clock func() time.Time
}

// credentials hold the Basic pair, the LiveKit pair, or neither. Basic is used when both are there, because only it
// opens every route.
type credentials struct {
	user, pass     string
	apiKey, secret string
}

// retries of a request that the server could not take at the moment (503).
const retries = 5

func (c *client) authorize(r *http.Request, now time.Time) {
	switch {
	case c.creds.user != "" || c.creds.pass != "":
		r.SetBasicAuth(c.creds.user, c.creds.pass)
	case c.creds.apiKey != "" && c.creds.secret != "":
		r.Header.Set("Authorization", "Bearer "+observabilityToken(c.creds.apiKey, c.creds.secret, now))
	}
}

// observabilityToken is the token a LiveKit agent sends: HS256 over the issuer, the validity (6 hours, as the SDKs ask
// for) and the one grant.
func observabilityToken(key, secret string, now time.Time) string {
	enc := base64.RawURLEncoding
	claims := mustJSON(map[string]any{"iss": key, "nbf": now.Unix(), "exp": now.Add(6 * time.Hour).Unix(), "observability": map[string]bool{"write": true}})
	signed := enc.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + enc.EncodeToString(mac.Sum(nil))
}

// serverTime asks the server whether it is up and what time it has. The demo's "last 24 hours" are the server's.
func (c *client) serverTime(ctx context.Context) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/health", nil)
	if err != nil {
		return time.Time{}, errs.New(errs.Invalid, "--url %q is not a URL: %v", c.base, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return time.Time{}, c.unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return time.Time{}, errs.New(errs.Unavailable, "%s/health answered %s: is that the Sidetone server? Start it with: make run", c.base, resp.Status)
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return time.Time{}, errs.New(errs.Unavailable, "%s/health told no time (Date %q): is that the Sidetone server?", c.base, resp.Header.Get("Date"))
	}
	return now.UTC(), nil
}

func (c *client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return errs.New(errs.Unavailable, "no server at %s (connection refused): start it with: make run   (or name another server with --url)", c.base)
	}
	return errs.Wrap(errs.Unavailable, err, "cannot reach %s", c.base)
}

// send makes one request and repeats it while the server answers 503, at most retries times. A 404 is an error of
// kind errs.NotFound.
func (c *client) send(ctx context.Context, method, path string, headers map[string]string, body []byte) error {
	wait := c.wait
	for try := 0; ; try++ {
		status, reply, challenge, err := c.once(ctx, method, path, headers, body)
		if err != nil {
			return err
		}
		if status == http.StatusServiceUnavailable && try < retries {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
			}
			wait *= 2
			continue
		}
		return c.explain(method, path, status, reply, challenge)
	}
}

func (c *client) once(ctx context.Context, method, path string, headers map[string]string, body []byte) (status int, reply []byte, challenge string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	c.authorize(req, c.clock())
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, "", c.unreachable(err)
	}
	defer resp.Body.Close()
	reply, err = io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // enough for every error; the rest of a long reply is of no use here
	if err != nil {
		return 0, nil, "", c.unreachable(err)
	}
	return resp.StatusCode, reply, strings.Join(resp.Header.Values("WWW-Authenticate"), ", "), nil
}

func (c *client) explain(method, path string, status int, reply []byte, challenge string) error {
	switch {
	case status < 300:
		return nil
	case status == http.StatusUnauthorized:
		return errs.New(errs.Unauthorized, "%s wants credentials: %s", c.base, c.credentialHint(challenge))
	case status == http.StatusNotFound:
		return errs.New(errs.NotFound, "%s %s: the server has no such route", method, path)
	case status == http.StatusServiceUnavailable:
		return errs.New(errs.Unavailable, "%s %s: still unavailable after %d tries: %s", method, path, retries+1, message(reply))
	case status >= 500:
		return errs.New(errs.Internal, "%s %s: the server failed (%d): %s", method, path, status, message(reply))
	}
	return errs.New(errs.Invalid, "%s %s: refused (%d): %s", method, path, status, message(reply))
}

// credentialHint names the variables to set, going by what the server offers and what was tried.
func (c *client) credentialHint(challenge string) string {
	basic := strings.Contains(strings.ToLower(challenge), "basic")
	bearer := strings.Contains(strings.ToLower(challenge), "bearer")
	switch {
	case c.creds.user != "" || c.creds.pass != "":
		if bearer && !basic {
			return "it does not take a user and password but a LiveKit token: unset AGENT_OBSERVABILITY_USER and AGENT_OBSERVABILITY_PASS, and set LIVEKIT_API_KEY and LIVEKIT_API_SECRET as on the server"
		}
		return fmt.Sprintf("it refused the user %q: AGENT_OBSERVABILITY_USER and AGENT_OBSERVABILITY_PASS (or --user and --pass) must be the server's", c.creds.user)
	case bearer && !basic:
		return "set LIVEKIT_API_KEY and LIVEKIT_API_SECRET to the values the server has"
	}
	return "set AGENT_OBSERVABILITY_USER and AGENT_OBSERVABILITY_PASS to the values the server has, or pass --user and --pass"
}

// message finds the error message in a reply, whatever its form.
func message(reply []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
			Details []struct {
				Field   string `json:"field"`
				Message string `json:"message"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(reply, &e) == nil && e.Error.Message != "" {
		m := e.Error.Message
		for _, d := range e.Error.Details {
			m += fmt.Sprintf("; %s: %s", d.Field, d.Message)
		}
		return m
	}
	text := strings.ToValidUTF8(strings.TrimSpace(string(reply)), "?")
	if text == "" {
		return "(no message)"
	}
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "..."
	}
	return text
}

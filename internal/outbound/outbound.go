// Package outbound sends webhooks over HTTP: one attempt per call, within a time limit, to allowed addresses only.
package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"sidetone/internal/webhook"
)

// maxResponse is how much of a response body is read (api.md, Alerts). Reading it lets the connection be used again.
const maxResponse = 2 << 10

// Options are the settings of a Sender.
type Options struct {
	Timeout      time.Duration // for one whole attempt: name resolution, connecting, headers and body; webhook.Timeout in production
	BlockPrivate bool          // also refuse loopback, private and other addresses that are not public
	UserAgent    string        // sent unless the rule sets its own
}

// Sender makes webhook requests. It keeps connections to receivers open between attempts and is safe for concurrent use.
type Sender struct {
	client    *http.Client
	timeout   time.Duration
	userAgent string
}

// New makes a Sender.
func New(o Options) *Sender {
	dialer := &net.Dialer{
		KeepAlive: 30 * time.Second,
		// Control sees every address after name resolution and right before connecting, so that no name, no second
		// answer of a DNS server and no way of writing an address gets around the policy.
		Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(address, o.BlockPrivate) },
	}
	return &Sender{
		timeout:   o.Timeout,
		userAgent: o.UserAgent,
		client: &http.Client{
			Timeout: o.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse // a 3xx is the answer
			},
			Transport: &http.Transport{
				Proxy:                  nil, // a proxy would connect on our behalf to addresses we never see
				DialContext:            dialer.DialContext,
				ForceAttemptHTTP2:      true,
				DisableCompression:     true,
				MaxIdleConns:           webhook.MaxInFlight,
				MaxIdleConnsPerHost:    webhook.MaxPerHost,
				IdleConnTimeout:        90 * time.Second,
				TLSHandshakeTimeout:    o.Timeout,
				MaxResponseHeaderBytes: 64 << 10,
			},
		},
	}
}

// Send makes the request and answers with the status. The error says in a few words, without any internals, why there
// is no response; it wraps nothing.
func (s *Sender) Send(ctx context.Context, r webhook.Request) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return 0, errors.New("the webhook URL or method cannot be used")
	}
	req.Header.Set("User-Agent", s.userAgent)
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, errors.New(s.explain(err))
	}
	defer resp.Body.Close()
	// The status is the answer. A body that breaks off or never ends changes nothing about it.
	io.CopyN(io.Discard, resp.Body, maxResponse)
	return resp.StatusCode, nil
}

// Close drops idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// explain words an error of the HTTP client for the person who owns the rule.
func (s *Sender) explain(err error) string {
	var (
		refused  *refusedAddress
		dns      *net.DNSError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		record   tls.RecordHeaderError
		alert    tls.AlertError
		netErr   net.Error
	)
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host name does not resolve"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Sprintf("no response within %s", limit(s.timeout))
	case errors.Is(err, context.Canceled):
		return "the attempt was cancelled"
	case errors.As(err, &dns):
		return "the host name could not be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "the host cannot be reached"
	case errors.As(err, &unknown):
		return "the TLS certificate is signed by an unknown authority"
	case errors.As(err, &hostname):
		return "the TLS certificate is not valid for this host"
	case errors.As(err, &invalid):
		return "the TLS certificate has expired or is not valid"
	case errors.As(err, &record), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "the receiver does not speak TLS"
	case errors.As(err, &alert), strings.Contains(err.Error(), "tls: "):
		return "the TLS handshake failed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed before a response came"
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "server response headers exceeded"):
		return "the response is not valid HTTP"
	default:
		return "the request failed"
	}
}

// limit words a duration: "10 seconds" for whole seconds, else as Go does.
func limit(d time.Duration) string {
	if d%time.Second == 0 && d != time.Second {
		return fmt.Sprintf("%d seconds", d/time.Second)
	}
	return d.String()
}

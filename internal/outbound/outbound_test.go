package outbound

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sidetone/internal/webhook"
)

func sender(t *testing.T, o Options) *Sender {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = webhook.Timeout
	}
	o.UserAgent = "sidetone-test"
	s := New(o)
	t.Cleanup(s.Close)
	return s
}

func post(url string) webhook.Request {
	return webhook.Request{Method: "POST", URL: url, Body: []byte(`{"a":1}`), Header: map[string]string{"Content-Type": "application/json", "X-Alert-Rule-Id": "r"}}
}

func receiver(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

func TestWhatArrives(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "PATCH"} {
		var got *http.Request
		var body []byte
		srv := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			got = r
			w.WriteHeader(http.StatusAccepted)
		})
		r := post(srv.URL + "/hook?a=b")
		r.Method = method
		r.Header["X-Team"] = "voice, ü"
		status, err := sender(t, Options{}).Send(t.Context(), r)
		if err != nil || status != 202 {
			t.Fatalf("%s: %d, %v", method, status, err)
		}
		if got.Method != method || got.RequestURI != "/hook?a=b" || string(body) != `{"a":1}` || got.ContentLength != 7 {
			t.Errorf("arrived as %s %s with %q", got.Method, got.RequestURI, body)
		}
		for name, want := range map[string]string{"Content-Type": "application/json", "X-Alert-Rule-Id": "r", "X-Team": "voice, ü", "User-Agent": "sidetone-test", "Accept-Encoding": ""} {
			if v := strings.Join(got.Header.Values(name), "|"); v != want {
				t.Errorf("%s: %s %q, want %q", method, name, v, want)
			}
		}
	}
}

func TestARuleMayNameItsOwnUserAgent(t *testing.T) {
	var got string
	srv := receiver(t, func(w http.ResponseWriter, r *http.Request) { got = r.UserAgent() })
	r := post(srv.URL)
	r.Header["User-Agent"] = "mine"
	if _, err := sender(t, Options{}).Send(t.Context(), r); err != nil || got != "mine" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestStatusesAreAnswersNotErrors(t *testing.T) {
	for _, want := range []int{200, 204, 400, 404, 429, 500, 503} {
		srv := receiver(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(want) })
		if status, err := sender(t, Options{}).Send(t.Context(), post(srv.URL)); status != want || err != nil {
			t.Errorf("%d arrives as %d, %v", want, status, err)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		var followed atomic.Int32
		target := receiver(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
		srv := receiver(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL, code) })
		status, err := sender(t, Options{}).Send(t.Context(), post(srv.URL))
		if status != code || err != nil || followed.Load() != 0 {
			t.Errorf("%d: %d, %v, followed %d times", code, status, err, followed.Load())
		}
	}
}

// raw answers every connection with f on the bare connection.
func raw(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f(c)
		}
	}()
	return "http://" + l.Addr().String()
}

func TestReceiversThatFail(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	read := func(c net.Conn) { c.Read(make([]byte, 4096)) }
	hang := raw(t, func(c net.Conn) { <-release; c.Close() })
	closes := raw(t, func(c net.Conn) { read(c); c.Close() })
	slowHeaders := raw(t, func(c net.Conn) { read(c); io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: "); <-release; c.Close() })
	garbage := raw(t, func(c net.Conn) { read(c); io.WriteString(c, "220 mail.example.com ESMTP\r\n"); c.Close() })
	longHeaders := raw(t, func(c net.Conn) {
		read(c)
		io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for range 100 {
			if _, err := io.WriteString(c, "X-A: "+strings.Repeat("a", 8000)+"\r\n"); err != nil {
				break
			}
		}
		c.Close()
	})
	dead := httptest.NewServer(nil)
	nobody := dead.URL
	dead.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := receiver(t, func(http.ResponseWriter, *http.Request) {})

	for _, c := range []struct{ name, url, want string }{
		{"hangs", hang, "no response within 200ms"},
		{"hangs within the headers", slowHeaders, "no response within 200ms"},
		{"closes the connection", closes, "the connection was closed before a response came"},
		{"is not there", nobody, "the connection was refused"},
		{"does not speak HTTP", garbage, "the response is not valid HTTP"},
		{"sends endless headers", longHeaders, "the response is not valid HTTP"},
		{"has an unknown certificate", secure.URL, "the TLS certificate is signed by an unknown authority"},
		{"does not speak TLS", strings.Replace(plain.URL, "http:", "https:", 1), "the receiver does not speak TLS"},
		{"has a name that does not exist", "http://receiver.invalid/", "the host name does not resolve"},
		{"has an impossible URL", "http://[::1/", "the webhook URL or method cannot be used"},
	} {
		timeout := webhook.Timeout // of which the machine may need some when it is busy
		switch {
		case strings.HasPrefix(c.name, "hangs"):
			timeout = 200 * time.Millisecond
		case strings.HasPrefix(c.name, "has a name"):
			timeout = 2 * time.Second
		}
		status, err := sender(t, Options{Timeout: timeout}).Send(t.Context(), post(c.url))
		switch {
		case err == nil || status != 0:
			t.Errorf("%s: %d, %v", c.name, status, err)
		case c.name == "has a name that does not exist" && (err.Error() == "the host name could not be resolved" || strings.HasPrefix(err.Error(), "no response")):
			// A machine without a name server cannot tell that a name does not exist.
		case err.Error() != c.want:
			t.Errorf("%s: %q, want %q", c.name, err, c.want)
		}
	}
}

func TestTheTimeoutIsWordedInSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{10 * time.Second: "10 seconds", time.Second: "1s", 1500 * time.Millisecond: "1.5s"} {
		if got := limit(d); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
}

func TestOnlyTheStartOfABodyIsRead(t *testing.T) {
	var sent atomic.Int64
	ended := make(chan struct{})
	srv := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		chunk := []byte(strings.Repeat("a", 64<<10))
		for {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	status, err := sender(t, Options{}).Send(t.Context(), post(srv.URL))
	if status != 200 || err != nil {
		t.Errorf("an endless body: %d, %v", status, err)
	}
	<-ended // the connection was closed on it
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

func TestABodyThatStopsShortIsStillAnAnswer(t *testing.T) {
	url := raw(t, func(c net.Conn) {
		c.Read(make([]byte, 4096))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
		c.Close()
	})
	if status, err := sender(t, Options{}).Send(t.Context(), post(url)); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	var opened atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "thanks") }))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	s := sender(t, Options{})
	for range 20 {
		if _, err := s.Send(t.Context(), post(srv.URL)); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for 20 requests", n)
	}
}

func TestAddressPolicyIsAppliedAfterResolution(t *testing.T) {
	called := false
	srv := receiver(t, func(http.ResponseWriter, *http.Request) { called = true })
	port := srv.URL[strings.LastIndex(srv.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"} {
		_, err := sender(t, Options{BlockPrivate: true, Timeout: time.Second}).Send(t.Context(), post("http://"+host+port))
		if err == nil || called {
			t.Errorf("%s was called (%v)", host, err)
		}
		if host != "127.1" && (err == nil || !strings.Contains(err.Error(), "is not called")) { // 127.1 is no address to Go
			t.Errorf("%s: %v", host, err)
		}
	}
	if status, err := sender(t, Options{}).Send(t.Context(), post("http://localhost"+port)); status != 200 || err != nil {
		t.Errorf("without blocking: %d, %v", status, err)
	}
	for _, url := range []string{"http://169.254.169.254/latest/meta-data", "http://[fe80::1%25lo]/", "http://[::ffff:169.254.169.254]/"} {
		_, err := sender(t, Options{Timeout: time.Second}).Send(t.Context(), post(url))
		if err == nil || !strings.Contains(err.Error(), "is link-local and is not called") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestCancelling(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	srv := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // the server notices that the client left only once the body is read
		cancel()
		<-r.Context().Done()
	})
	if _, err := sender(t, Options{}).Send(ctx, post(srv.URL)); err == nil || err.Error() != "the attempt was cancelled" {
		t.Errorf("%v", err)
	}
}

func TestErrorsHideInternals(t *testing.T) {
	s := sender(t, Options{})
	for _, err := range []error{tls.AlertError(40), io.ErrShortWrite, &net.OpError{Op: "dial", Err: io.ErrClosedPipe}} {
		if text := s.explain(err); text != "the TLS handshake failed" && text != "the request failed" {
			t.Errorf("%v is told as %q", err, text)
		}
	}
}

// BenchmarkThousandWebhooks sends 1,000 webhooks to one receiver, as many at a time as the dispatcher does.
func BenchmarkThousandWebhooks(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer srv.Close()
	s := New(Options{Timeout: webhook.Timeout})
	defer s.Close()
	for b.Loop() {
		var wg sync.WaitGroup
		var left atomic.Int32
		left.Store(1000)
		for range webhook.MaxPerHost {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					if status, err := s.Send(b.Context(), post(srv.URL)); err != nil || status != 200 {
						b.Error(status, err)
					}
				}
			})
		}
		wg.Wait()
	}
}

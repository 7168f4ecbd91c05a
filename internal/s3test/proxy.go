package s3test

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Fault is how a proxy misbehaves.
type Fault struct {
	// Status answers every request with it; 0 passes them on.
	Status int
	// Hang answers nothing until the fault is taken back; then it closes the connections.
	Hang bool
	// CutAfter breaks the connection after so many bytes of a request's body, and CutReplyAfter of a reply's; 0 does not.
	CutAfter, CutReplyAfter int64
}

// Proxy stands between a client and an S3 server and breaks what passes.
type Proxy struct {
	URL string

	mu       sync.Mutex
	fault    Fault
	changed  chan struct{} // closed when the fault changes
	requests atomic.Int64
	broken   atomic.Int64
}

// NewProxy starts a proxy that passes everything on.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	to, err := url.Parse(target)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{URL: "http://127.0.0.1:" + portOf(l.Addr()), changed: make(chan struct{})}
	back := &httputil.ReverseProxy{
		// The signature covers the Host that the client used.
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		Transport:      &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32},
		ModifyResponse: p.cutReply,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		FlushInterval:  -1,
		ErrorLog:       log.New(io.Discard, "", 0), // it would tell of every cut
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(back, w, r) })}
	go server.Serve(l)
	tb.Cleanup(func() {
		p.Set(Fault{})
		server.Close()
	})
	return p
}

// Set changes how the proxy misbehaves, from the next request on.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
}

// Requests is how many requests came, Broken how many of them did not get what they asked for.
func (p *Proxy) Requests() int64 { return p.requests.Load() }
func (p *Proxy) Broken() int64   { return p.broken.Load() }

func (p *Proxy) state() (Fault, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault, p.changed
}

func (p *Proxy) serve(back http.Handler, w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	f, changed := p.state()
	switch {
	case f.Status > 0:
		p.broken.Add(1)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(f.Status)
		io.WriteString(w, `<?xml version="1.0"?><Error><Code>InternalError</Code><Message>try later</Message></Error>`)
		return
	case f.Hang:
		p.broken.Add(1)
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case f.CutAfter > 0:
		r.Body = &cut{ReadCloser: r.Body, left: f.CutAfter, broken: &p.broken}
	}
	back.ServeHTTP(w, r)
}

func (p *Proxy) cutReply(r *http.Response) error {
	if f, _ := p.state(); f.CutReplyAfter > 0 && r.ContentLength > f.CutReplyAfter {
		r.Body = &cut{ReadCloser: r.Body, left: f.CutReplyAfter, broken: &p.broken}
	}
	return nil
}

// cut is a body that breaks off.
type cut struct {
	io.ReadCloser
	left   int64
	broken *atomic.Int64
}

func (c *cut) Read(p []byte) (int, error) {
	if c.left <= 0 {
		c.broken.Add(1)
		return 0, errors.New("cut")
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

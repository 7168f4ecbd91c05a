package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"sidetone/internal/errs"
)

// Request is what is measured of one request.
type Request struct {
	Route    string // the pattern, never the path: bounded cardinality
	Method   string
	Status   int
	BytesIn  int64
	BytesOut int64
	Duration time.Duration
}

// requestState travels in the context of one request.
type requestState struct {
	id  string
	err error // noted by the error mapping, for the log line
}

type requestKey struct{}

// apiID is the id of the request's reply.
func apiID(ctx context.Context) string {
	if s, ok := ctx.Value(requestKey{}).(*requestState); ok {
		return s.id
	}
	return uuid.NewString()
}

// note keeps an error for the log line of the request.
func note(ctx context.Context, err error) {
	if s, ok := ctx.Value(requestKey{}).(*requestState); ok {
		s.err = err
	}
}

// observed wraps everything: the id of the reply, the log line, the measurements, and the end of any panic.
func observed(next http.Handler, log *slog.Logger, now func() time.Time, observe func(Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := now()
		state := &requestState{id: uuid.NewString()}
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, state))
		w.Header().Set("X-Request-Id", state.id)
		body := &countedBody{ReadCloser: r.Body}
		r.Body = body
		rec := &recorder{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				log.Error("a handler panicked", "api_id", state.id, "panic", p)
				if rec.status == 0 {
					WriteError(rec, r, errs.New(errs.Internal, "panic"))
				}
			}
			if rec.status == 0 {
				rec.status = http.StatusOK
			}
			took := now().Sub(start)
			route := r.Pattern
			if route == "" {
				route = "none"
			}
			observe(Request{Route: route, Method: r.Method, Status: rec.status, BytesIn: body.n.Load(), BytesOut: rec.n, Duration: took})
			logRequest(log, r, state, rec, took)
		}()
		next.ServeHTTP(rec, r)
	})
}

func logRequest(log *slog.Logger, r *http.Request, state *requestState, rec *recorder, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case rec.status >= 500:
		level = slog.LevelError
	case rec.status >= 400:
		level = slog.LevelWarn
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		level = slog.LevelInfo
	}
	if !log.Enabled(r.Context(), level) {
		return
	}
	attrs := []any{"api_id", state.id, "method", r.Method, "path", r.URL.Path, "status", rec.status, "bytes", rec.n,
		"duration_ms", float64(took.Microseconds()) / 1000, "remote", r.RemoteAddr}
	if state.err != nil {
		attrs = append(attrs, "error", state.err.Error())
	}
	log.Log(r.Context(), level, "request", attrs...)
}

// recorder remembers what was answered. Unwrap lets http.ResponseController reach the connection.
type recorder struct {
	http.ResponseWriter
	status int
	n      int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.n += int64(n)
	return n, err
}

// ReadFrom keeps the fast path from a file to the connection.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := io.Copy(r.ResponseWriter, src)
	r.n += n
	return n, err
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// countedBody counts what was read of a request.
type countedBody struct {
	io.ReadCloser
	n atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

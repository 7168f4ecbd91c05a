// Package httpapi is the HTTP face of the program: routes and who may use them, decoding, one domain call, encoding.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/klauspost/compress/gzhttp"

	"sidetone/internal/alert"
	"sidetone/internal/errs"
	"sidetone/internal/eval"
	"sidetone/internal/session"
)

// Deps is everything the handlers need; all fields are required unless said otherwise.
type Deps struct {
	Sessions *session.Service
	Evals    *eval.Service
	Alerts   *alert.Service
	Auth     *Auth
	Log      *slog.Logger
	Now      func() time.Time

	// Ready answers nil when the program can do its work.
	Ready func(context.Context) error
	// Recordings tells what waits for the object store.
	Recordings func(context.Context) (RecordingsState, error)
	// RedirectRecordings sends players to the object store instead of streaming to them.
	RedirectRecordings bool
	// Metrics serves the Prometheus page, Dashboard everything that no other route takes.
	Metrics, Dashboard http.Handler
	// Observe is told of every request.
	Observe func(Request)
	// Patiently runs f again for some seconds while it fails because the database is away; nil runs it once.
	Patiently func(ctx context.Context, f func() error) error
	// DroppedTelemetry is told of records that could be kept nowhere.
	DroppedTelemetry func(n int)

	Version           string
	BasicAuth         bool // reading needs a password
	LiveKitAuth       bool // sending needs a token
	MaxRecordingBytes int64
	AllowedOrigins    []string // foreign origins whose pages may use the API
}

type server struct {
	Deps
	spec []byte // openapi.json, made once
	docs []byte // the page at /docs, made once
}

// access says which credentials a route asks for.
type access int

const (
	open   access = iota // always open
	ingest               // what SDKs and test plugins post
	read                 // the API, the dashboard and the documents
)

// New builds the whole handler.
func New(d Deps) (http.Handler, error) {
	s := &server{Deps: d}
	api := http.NewServeMux()
	if err := s.registerAPI(api); err != nil {
		return nil, err
	}
	foreign, err := s.foreignOrigins()
	if err != nil {
		return nil, err
	}
	zip, err := gzhttp.NewWrapper(gzhttp.MinSize(1400), gzhttp.CompressionLevel(1),
		gzhttp.ExceptContentTypes([]string{"audio/ogg", "text/event-stream"}))
	if err != nil {
		return nil, err
	}
	api.HandleFunc("GET /api/sessions/{id}/recording", s.getRecording)
	api.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		WriteError(w, r, errs.New(errs.NotFound, "there is no such route; /docs lists them"))
	})

	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern string
		access  access
		handler http.Handler
	}{
		{"GET /health", open, http.HandlerFunc(s.getHealth)},
		{"GET /ready", open, http.HandlerFunc(s.getReady)},
		{"GET /metrics", read, d.Metrics},
		{"GET /openapi.json", read, http.HandlerFunc(s.getOpenAPI)},
		{"GET /docs", read, http.HandlerFunc(s.getDocs)},
		{"POST /observability/recordings/v0", ingest, http.HandlerFunc(s.postRecording)},
		{"POST /observability/logs/otlp/v0", ingest, http.HandlerFunc(s.postLogs)},
		{"POST /observability/traces/otlp/v0", ingest, http.HandlerFunc(s.postTraces)},
		{"POST /observability/metrics/otlp/v0", ingest, http.HandlerFunc(s.postMetrics)},
		{"POST /v1/logs", ingest, http.HandlerFunc(s.postLogs)},
		{"POST /v1/traces", ingest, http.HandlerFunc(s.postTraces)},
		{"POST /v1/metrics", ingest, http.HandlerFunc(s.postMetrics)},
		{"POST /observability/evals/v0", ingest, http.HandlerFunc(s.postEval)},
		{"/observability/", ingest, http.HandlerFunc(s.noSuchIngest)},
		{"/api/", open, foreign(d.Auth.Read(zip(api)))}, // a preflight request carries no credentials
		{"/", read, d.Dashboard},
	} {
		h := route.handler
		switch route.access {
		case ingest:
			h = d.Auth.Ingest(h)
		case read:
			h = d.Auth.Read(h)
		}
		mux.Handle(route.pattern, h)
	}
	return observed(oneSlash(mux), d.Log, d.Now, d.Observe), nil
}

// registerAPI puts the JSON routes on the mux; types, validation and the OpenAPI document come from the same place.
func (s *server) registerAPI(mux *http.ServeMux) error {
	cfg := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Sidetone", Version: s.Version,
				Description: "The observability server for voice and text AI agents. Times are RFC 3339 UTC with milliseconds; durations are integer milliseconds."},
			Components: &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)},
		},
		Formats:       huma.DefaultFormats,
		DefaultFormat: "application/json",
	}
	api := humago.New(mux, cfg)
	s.registerSessions(api)
	s.registerEvals(api)
	s.registerTelemetry(api)
	s.registerAlerts(api)
	s.registerStatus(api)
	s.describeStreams(api.OpenAPI())
	if err := s.renderDocs(api.OpenAPI()); err != nil {
		return err
	}
	return s.renderSpec(api.OpenAPI())
}

// register adds a JSON route. Errors of the domain get their status in one place.
func register[I, O any](api huma.API, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	if op.Errors == nil {
		op.Errors = []int{400, 401, 404, 503}
	}
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, mapError(ctx, err)
		}
		return out, nil
	})
}

// oneSlash accepts //observability/...: the Python SDK joins its base URL and the path as they are.
func oneSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "//") {
			r.URL.Path = "/" + strings.TrimLeft(r.URL.Path, "/")
			r.URL.RawPath = ""
		}
		next.ServeHTTP(w, r)
	})
}

// foreignOrigins refuses state changes from pages of other origins, except the allowed ones, which also get the CORS
// headers their browsers ask for.
func (s *server) foreignOrigins() (func(http.Handler) http.Handler, error) {
	protection := http.NewCrossOriginProtection()
	allowed := make(map[string]bool)
	for _, o := range s.AllowedOrigins {
		if err := protection.AddTrustedOrigin(o); err != nil {
			return nil, err
		}
		allowed[o] = true
	}
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := mapError(r.Context(), errs.New(errs.Unauthorized, "requests that change something are not accepted from pages of another origin"))
		writeJSON(w, http.StatusForbidden, e)
	}))
	return func(next http.Handler) http.Handler {
		guarded := protection.Handler(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if origin := r.Header.Get("Origin"); allowed[origin] {
				h := w.Header()
				h.Set("Access-Control-Allow-Origin", origin)
				h.Set("Access-Control-Allow-Credentials", "true")
				h.Set("Access-Control-Expose-Headers", "X-Request-Id")
				h.Add("Vary", "Origin")
				if r.Method == http.MethodOptions {
					h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PATCH, DELETE")
					h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
					w.WriteHeader(http.StatusNoContent)
					return
				}
			}
			guarded.ServeHTTP(w, r)
		})
	}, nil
}

func (s *server) noSuchIngest(w http.ResponseWriter, r *http.Request) {
	WriteError(w, r, errs.New(errs.NotFound, "there is no such ingest route"))
}

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/klauspost/compress/gzip"

	"sidetone/internal/errs"
	"sidetone/internal/eval"
)

const (
	// maxEvalPage is how many rows a page has at most: spec.md "Limits".
	maxEvalPage = 20
	// maxEvalBody bounds a post of an eval run, in bytes, as sent and decompressed.
	maxEvalBody = 32 << 20
)

func (s *server) registerEvals(api huma.API) {
	register(api, huma.Operation{OperationID: "list-evals", Method: http.MethodGet, Path: "/api/evals", Tags: []string{"Evals"},
		Summary: "List eval runs", Description: "Newest start first. All filters are combined with AND."}, s.listEvals)
	register(api, huma.Operation{OperationID: "get-eval", Method: http.MethodGet, Path: "/api/evals/{run_id}", Tags: []string{"Evals"},
		Summary:     "One eval run with its cases",
		Description: "Each case carries its judgments and failure; its events only with include=events."}, s.getEval)
	register(api, huma.Operation{OperationID: "get-eval-case", Method: http.MethodGet, Path: "/api/evals/{run_id}/cases/{case_id}", Tags: []string{"Evals"},
		Summary: "Everything about one case of a run"}, s.getEvalCase)
	register(api, huma.Operation{OperationID: "compare-evals", Method: http.MethodGet, Path: "/api/evals/compare", Tags: []string{"Evals"},
		Summary: "What changed from one run to another", Description: "Cases are matched by file and name."}, s.compareEvals)
	register(api, huma.Operation{OperationID: "delete-evals", Method: http.MethodDelete, Path: "/api/evals", Tags: []string{"Evals"},
		Summary: "Delete eval runs with their cases"}, s.deleteEvals)
	api.OpenAPI().AddOperation(&huma.Operation{OperationID: "post-eval", Method: http.MethodPost, Path: "/observability/evals/v0",
		Tags: []string{"Ingest"}, Summary: "Receive an eval run, or a part of it",
		Description: "Answers 201 only when the post is durable. The same run may be posted many times, while it runs and when it has ended, in any order; gzip is accepted.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{
			Type: "object", Required: []string{"version", "run", "cases"}, Properties: map[string]*huma.Schema{
				"version": {Type: "string", Enum: []any{"v0"}},
				"run":     {Type: "object", Description: "run_id, testing_framework, started_at, status, ..."},
				"cases":   {Type: "array", Items: &huma.Schema{Type: "object"}, Description: "case_id, name, status, events, judgments, failure, ...; at most 5000"},
			}}}}},
		Responses: map[string]*huma.Response{"201": {Description: "{\"api_id\",\"run_id\",\"case_count\"}",
			Content: map[string]*huma.MediaType{"application/json": {}}}}})
}

// postEval takes a post of an eval run.
func (s *server) postEval(w http.ResponseWriter, r *http.Request) {
	body, err := s.readEvalBody(w, r)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	// The body belongs to the store from here on: it is not reused.
	got, err := s.Evals.Ingest(r.Context(), body, s.Now())
	if err != nil {
		WriteError(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, struct {
		APIID     string `json:"api_id"`
		RunID     string `json:"run_id"`
		CaseCount int    `json:"case_count"`
	}{apiID(r.Context()), got.RunID, got.CaseCount})
}

var evalInflaters = sync.Pool{New: func() any { return new(gzip.Reader) }}

// readEvalBody reads a JSON body whole, plain or gzip, within the cap.
func (s *server) readEvalBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		media, _, err := mime.ParseMediaType(kind)
		if err != nil || media != "application/json" {
			return nil, errs.New(errs.UnsupportedType, "the Content-Type of an eval run is application/json")
		}
	}
	if r.ContentLength > maxEvalBody {
		return nil, evalTooLarge()
	}
	var src io.Reader = &patientReader{body: http.MaxBytesReader(w, r.Body, maxEvalBody), rc: http.NewResponseController(w), now: s.Now}
	switch strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))) {
	case "", "identity":
	case "gzip", "x-gzip":
		z := evalInflaters.Get().(*gzip.Reader)
		defer evalInflaters.Put(z)
		if err := z.Reset(src); err != nil {
			return nil, bodyError(err)
		}
		src = z
	default:
		return nil, errs.New(errs.UnsupportedType, "the Content-Encoding of an eval run is gzip or none")
	}
	var body bytes.Buffer
	// What a client announces is not reserved before it comes, beyond what most runs have.
	body.Grow(int(min(max(r.ContentLength, 0), 1<<20)) + bytes.MinRead)
	if _, err := body.ReadFrom(io.LimitReader(src, maxEvalBody+1)); err != nil {
		return nil, bodyError(err)
	}
	if body.Len() > maxEvalBody {
		return nil, evalTooLarge()
	}
	return body.Bytes(), nil
}

func evalTooLarge() error {
	return errs.New(errs.TooLarge, "the body is larger than %d MB: send the cases in several posts of the same run", maxEvalBody>>20)
}

// bodyError takes what our own readers say as it is, and everything else as the client's doing.
func bodyError(err error) error {
	var known *errs.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return errs.Wrap(errs.Invalid, err, "the body is not gzip as Content-Encoding says")
	}
	return errs.Wrap(errs.Invalid, err, "the body breaks off or cannot be decompressed")
}

type listEvalsInput struct {
	RequestURL
	PageParams
	AccountID        string `query:"account_id" doc:"Exact; several separated by commas mean any of them"`
	AgentID          string `query:"agent_id" doc:"Exact; several separated by commas mean any of them"`
	Framework        string `query:"framework" doc:"Of the agent. Exact; several separated by commas mean any of them"`
	TestingFramework string `query:"testing_framework" doc:"Exact; several separated by commas mean any of them"`
	Status           string `query:"status" doc:"queued, running, completed, failed, cancelled; several separated by commas mean any of them"`
	StartedFrom      string `query:"started_from" doc:"RFC 3339 or YYYY-MM-DD, inclusive"`
	StartedTo        string `query:"started_to" doc:"RFC 3339 or YYYY-MM-DD, inclusive"`
}

func (in *listEvalsInput) filter() (eval.Filter, error) {
	var q queryReader
	f := eval.Filter{
		AccountIDs: q.list("account_id", in.AccountID), AgentIDs: q.list("agent_id", in.AgentID),
		Frameworks: q.list("framework", in.Framework), TestingFrameworks: q.list("testing_framework", in.TestingFramework),
		Statuses:    q.list("status", in.Status),
		StartedFrom: q.time("started_from", in.StartedFrom, false), StartedTo: q.time("started_to", in.StartedTo, true),
	}
	for _, st := range f.Statuses {
		if !slices.Contains(eval.RunStatuses, st) {
			q.bad("status", "must be one of %s", strings.Join(eval.RunStatuses, ", "))
			break
		}
	}
	return f, q.err()
}

func (s *server) listEvals(ctx context.Context, in *listEvalsInput) (*listOutput[EvalRunRow], error) {
	limit, offset, err := in.page(maxEvalPage)
	if err != nil {
		return nil, err
	}
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	now := s.Now()
	runs, total, err := s.Evals.List(ctx, f, eval.Page{Limit: limit, Offset: offset}, now)
	if err != nil {
		return nil, err
	}
	rows := make([]EvalRunRow, len(runs))
	for i := range runs {
		rows[i] = viewEvalRun(&runs[i], now)
	}
	return newList(ctx, in.url, limit, offset, total, rows), nil
}

type getEvalInput struct {
	RunID   string `path:"run_id" doc:"UUID of the run"`
	Include string `query:"include" doc:"events: each case with its events"`
}

type evalRunOutput struct{ Body evalRunDetail }

func (s *server) getEval(ctx context.Context, in *getEvalInput) (*evalRunOutput, error) {
	var q queryReader
	events := q.oneOf("include", in.Include, "events") != ""
	if err := q.err(); err != nil {
		return nil, err
	}
	run, cases, err := s.Evals.Get(ctx, in.RunID, events)
	if err != nil {
		return nil, err
	}
	out := &evalRunOutput{Body: evalRunDetail{Envelope: envelopeOf(ctx), EvalRunRow: viewEvalRun(run, s.Now()), Cases: make([]EvalCaseView, len(cases))}}
	for i := range cases {
		out.Body.Cases[i] = viewEvalCase(&cases[i])
	}
	return out, nil
}

type evalCasePath struct {
	RunID  string `path:"run_id" doc:"UUID of the run"`
	CaseID string `path:"case_id" doc:"UUID of the case"`
}

type evalCaseOutput struct {
	Body struct {
		Envelope
		EvalCaseView
	}
}

func (s *server) getEvalCase(ctx context.Context, in *evalCasePath) (*evalCaseOutput, error) {
	c, err := s.Evals.Case(ctx, in.RunID, in.CaseID)
	if err != nil {
		return nil, err
	}
	out := &evalCaseOutput{}
	out.Body.Envelope, out.Body.EvalCaseView = envelopeOf(ctx), viewEvalCase(c)
	return out, nil
}

type compareEvalsInput struct {
	Base string `query:"base" doc:"UUID of the run to compare with"`
	Head string `query:"head" doc:"UUID of the run to compare"`
}

type comparisonOutput struct {
	Body struct {
		Envelope
		Base EvalRunRow `json:"base"`
		Head EvalRunRow `json:"head"`
		eval.Comparison
	}
}

func (s *server) compareEvals(ctx context.Context, in *compareEvalsInput) (*comparisonOutput, error) {
	c, err := s.Evals.Compare(ctx, in.Base, in.Head)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	out := &comparisonOutput{}
	out.Body.Envelope, out.Body.Comparison = envelopeOf(ctx), c.Comparison
	out.Body.Base, out.Body.Head = viewEvalRun(c.Base, now), viewEvalRun(c.Head, now)
	return out, nil
}

type deleteEvalsInput struct {
	Body struct {
		RunIDs []string `json:"run_ids" doc:"Ids of the runs to delete, 1 to 200"`
	}
}

func (s *server) deleteEvals(ctx context.Context, in *deleteEvalsInput) (*deletedOutput, error) {
	n, err := s.Evals.Delete(ctx, in.Body.RunIDs)
	if err != nil {
		return nil, err
	}
	out := &deletedOutput{}
	out.Body.Envelope, out.Body.Deleted = envelopeOf(ctx), n
	return out, nil
}

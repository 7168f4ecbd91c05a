package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"sidetone/internal/session"
	"sidetone/internal/stamp"
)

// maxTelemetryPage is how many spans or log lines a page has at most: a waterfall wants a whole call at once.
const maxTelemetryPage = 1000

type spanView struct {
	TraceID       string          `json:"trace_id"`
	SpanID        string          `json:"span_id"`
	ParentSpanID  *string         `json:"parent_span_id" doc:"null for a root"`
	Name          string          `json:"name"`
	Kind          *string         `json:"kind"`
	Scope         *string         `json:"scope"`
	StartedAt     *stamp.Time     `json:"started_at"`
	EndedAt       *stamp.Time     `json:"ended_at" doc:"null when the span never ended"`
	DurationMS    *float64        `json:"duration_ms" doc:"With microseconds; null when the span never ended"`
	Status        *string         `json:"status" doc:"ok, error or null"`
	StatusMessage *string         `json:"status_message"`
	Attributes    json.RawMessage `json:"attributes" doc:"As the SDK sent them"`
	Events        json.RawMessage `json:"events" doc:"[{name, time, attributes}]"`
}

type logView struct {
	Time           *stamp.Time     `json:"time"`
	ObservedAt     *stamp.Time     `json:"observed_at"`
	SeverityNumber int             `json:"severity_number" doc:"OpenTelemetry's 1 (trace) to 24 (fatal), 0 when unspecified"`
	Severity       *string         `json:"severity"`
	Body           string          `json:"body"`
	Event          *string         `json:"event"`
	Logger         *string         `json:"logger"`
	TraceID        *string         `json:"trace_id"`
	SpanID         *string         `json:"span_id"`
	Attributes     json.RawMessage `json:"attributes" doc:"As the SDK sent them"`
}

func (s *server) registerTelemetry(api huma.API) {
	register(api, huma.Operation{OperationID: "list-spans", Method: http.MethodGet, Path: "/api/sessions/{id}/spans", Tags: []string{"Sessions"},
		Summary: "The spans the SDK exported for a session, by start time", Description: "limit goes up to 1000."}, s.listSpans)
	register(api, huma.Operation{OperationID: "list-logs", Method: http.MethodGet, Path: "/api/sessions/{id}/logs", Tags: []string{"Sessions"},
		Summary: "The application logs of a session, by time", Description: "limit goes up to 1000."}, s.listLogs)
}

type telemetryInput struct {
	RequestURL
	SessionPath
	PageParams
}

func (s *server) listSpans(ctx context.Context, in *telemetryInput) (*listOutput[spanView], error) {
	limit, offset, err := in.page(maxTelemetryPage)
	if err != nil {
		return nil, err
	}
	spans, total, err := s.Sessions.Spans(ctx, in.ID, session.Page{Limit: limit, Offset: offset})
	if err != nil {
		return nil, err
	}
	views := make([]spanView, len(spans))
	for i := range spans {
		sp := &spans[i]
		views[i] = spanView{TraceID: sp.TraceID, SpanID: sp.SpanID, ParentSpanID: orNull(sp.ParentSpanID), Name: sp.Name,
			Kind: orNull(sp.Kind), Scope: orNull(sp.Scope), StartedAt: stamp.Ptr(sp.Start), EndedAt: stamp.Ptr(sp.End),
			Status: orNull(sp.StatusCode), StatusMessage: orNull(sp.StatusMessage), Attributes: orEmptyObject(sp.Attributes),
			Events: orEmptyArray(sp.Events)}
		if !sp.End.IsZero() {
			ms := float64(sp.Duration().Microseconds()) / 1000
			views[i].DurationMS = &ms
		}
	}
	return newList(ctx, in.url, limit, offset, total, views), nil
}

func (s *server) listLogs(ctx context.Context, in *telemetryInput) (*listOutput[logView], error) {
	limit, offset, err := in.page(maxTelemetryPage)
	if err != nil {
		return nil, err
	}
	logs, total, err := s.Sessions.Logs(ctx, in.ID, session.Page{Limit: limit, Offset: offset})
	if err != nil {
		return nil, err
	}
	views := make([]logView, len(logs))
	for i := range logs {
		l := &logs[i]
		views[i] = logView{Time: stamp.Ptr(l.Time), ObservedAt: stamp.Ptr(l.ObservedAt), SeverityNumber: l.SeverityNumber,
			Severity: orNull(l.SeverityText), Body: l.Body, Event: orNull(l.Event), Logger: orNull(l.Logger),
			TraceID: orNull(l.TraceID), SpanID: orNull(l.SpanID), Attributes: orEmptyObject(l.Attributes)}
	}
	return newList(ctx, in.url, limit, offset, total, views), nil
}

func orEmptyObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func orEmptyArray(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("[]")
	}
	return raw
}

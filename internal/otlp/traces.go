package otlp

import (
	"encoding/json"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"sidetone/internal/session"
)

var spanKinds = map[tracepb.Span_SpanKind]string{
	tracepb.Span_SPAN_KIND_INTERNAL: "internal", tracepb.Span_SPAN_KIND_SERVER: "server", tracepb.Span_SPAN_KIND_CLIENT: "client",
	tracepb.Span_SPAN_KIND_PRODUCER: "producer", tracepb.Span_SPAN_KIND_CONSUMER: "consumer",
}

var statusCodes = map[tracepb.Status_StatusCode]string{
	tracepb.Status_STATUS_CODE_OK: "ok", tracepb.Status_STATUS_CODE_ERROR: "error",
}

// convertTraces groups the spans of a batch by session.
func convertTraces(data *tracepb.TracesData) *Traces {
	out := &Traces{}
	var found groups[TraceGroup]
	var w writer
	for _, rs := range data.GetResourceSpans() {
		resource := levelOf(rs.GetResource().GetAttributes(), false)
		for _, ss := range rs.GetScopeSpans() {
			scope := levelOf(ss.GetScope().GetAttributes(), false).under(resource)
			scopeName := text(ss.GetScope().GetName())
			for _, sp := range ss.GetSpans() {
				s := span(&w, sp)
				if s.TraceID == "" || s.SpanID == "" {
					out.Dropped++
					continue
				}
				s.Scope = scopeName
				o := levelOf(sp.GetAttributes(), true).under(scope).origin(s.TraceID)
				g := found.get(groupKey{o.Key, o.TraceID, ""}, func() *TraceGroup { return &TraceGroup{Origin: o} })
				g.name(o)
				g.Spans = append(g.Spans, s)
			}
		}
	}
	out.Groups = found.values()
	for i := range out.Groups {
		g := &out.Groups[i]
		g.Summary = session.Summarize(g.Spans)
		g.Summary.RoomName, g.Summary.AgentName = g.RoomName, g.AgentName
	}
	return out
}

func span(w *writer, sp *tracepb.Span) session.Span {
	return session.Span{
		TraceID: hexID(sp.GetTraceId(), traceIDSize), SpanID: hexID(sp.GetSpanId(), spanIDSize),
		ParentSpanID: hexID(sp.GetParentSpanId(), spanIDSize),
		Name:         text(sp.GetName()), Kind: spanKinds[sp.GetKind()],
		Start: nanos(sp.GetStartTimeUnixNano()), End: nanos(sp.GetEndTimeUnixNano()),
		StatusCode: statusCodes[sp.GetStatus().GetCode()], StatusMessage: text(sp.GetStatus().GetMessage()),
		Attributes: w.object(sp.GetAttributes()), Events: w.events(sp.GetEvents()),
	}
}

// events writes span events as a JSON array, nil when there are none.
func (w *writer) events(events []*tracepb.Span_Event) json.RawMessage {
	if len(events) == 0 {
		return nil
	}
	dst := append(w.scratch[:0], '[')
	for i, e := range events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = appendString(dst, e.GetName())
		dst = append(dst, `,"time":`...)
		dst = appendTime(dst, nanos(e.GetTimeUnixNano()))
		dst = append(dst, `,"attributes":`...)
		dst = appendObject(dst, e.GetAttributes(), 1)
		dst = append(dst, '}')
	}
	w.scratch = append(dst, ']')
	return append(make(json.RawMessage, 0, len(w.scratch)), w.scratch...)
}

// appendTime writes RFC 3339 with microseconds: events of one span are often less than a millisecond apart.
func appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	return t.AppendFormat(dst, `"2006-01-02T15:04:05.000000Z07:00"`)
}

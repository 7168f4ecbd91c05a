package otlp

import (
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"

	"sidetone/internal/session"
)

// convertLogs groups the records of a batch by session and tells the special records from application logs.
func convertLogs(data *logspb.LogsData) *Logs {
	out := &Logs{}
	var found groups[LogGroup]
	var w writer
	for _, rl := range data.GetResourceLogs() {
		resource := levelOf(rl.GetResource().GetAttributes(), false)
		for _, sl := range rl.GetScopeLogs() {
			scope := levelOf(sl.GetScope().GetAttributes(), false).under(resource)
			for _, r := range sl.GetLogRecords() {
				traceID := hexID(r.GetTraceId(), traceIDSize)
				o := levelOf(r.GetAttributes(), true).under(scope).origin(traceID)
				if o.Key == (session.Key{}) && traceID == "" {
					out.Dropped++
					continue
				}
				g := found.get(groupKey{o.Key, o.TraceID, ""}, func() *LogGroup { return &LogGroup{Origin: o} })
				g.name(o)
				g.add(&w, sl.GetScope().GetName(), r, traceID)
			}
		}
	}
	out.Groups = found.values()
	for i := range out.Groups {
		g := &out.Groups[i]
		g.Signals.Append(session.LogSignals{RoomName: g.RoomName, AgentName: g.AgentName})
		g.Signals.Merge(session.LogSignals{})
	}
	return out
}

// add takes one record into the group.
func (g *LogGroup) add(w *writer, scope string, r *logspb.LogRecord, traceID string) {
	observed := nanos(r.GetObservedTimeUnixNano())
	at := nanos(r.GetTimeUnixNano())
	if at.IsZero() {
		at = observed
	}
	logger := text(scope)
	if logger == "" { // a Collector may have flattened the scopes
		logger = text(find(r.GetAttributes(), "logger.name").GetStringValue())
	}
	said, special := specialRecord(w, logger, at, r)
	said.FirstAt, said.LastAt = at, at
	g.Signals.Append(said)
	if special {
		return
	}
	rec := session.LogRecord{
		Time: at, ObservedAt: observed,
		SeverityNumber: int(r.GetSeverityNumber()), SeverityText: text(r.GetSeverityText()),
		Body: bodyText(w, r.GetBody()), Event: text(r.GetEventName()), Logger: logger,
		TraceID: traceID, SpanID: hexID(r.GetSpanId(), spanIDSize),
		Attributes: w.object(r.GetAttributes()),
	}
	rec.SetKey()
	g.Records = append(g.Records, rec)
}

// bodyText is a text body as it is and any other as JSON.
func bodyText(w *writer, v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case nil:
		return ""
	case *commonpb.AnyValue_StringValue:
		return text(v.StringValue)
	}
	return string(w.value(v))
}

// The units of a time written as a number, told apart by magnitude: 1e11 s is the year 5138 and 1e11 ms is 1973.
const (
	leastMillis = 1e11
	leastMicros = 1e14
	leastNanos  = 1e17
	pastNanos   = 9.2e18 // in the year 2261
	pastYear    = 2262   // the first that nanoseconds in 64 bits do not reach to its end
)

// epoch reads a time written as a number since 1970 (seconds in Python, milliseconds in Node) or as RFC 3339, to the
// microsecond. What is none of these gives the zero time.
func epoch(v *commonpb.AnyValue) time.Time {
	n, ok := number(v)
	if !ok {
		if t, err := time.Parse(time.RFC3339Nano, v.GetStringValue()); err == nil && t.Unix() > 0 && t.UTC().Year() < pastYear {
			return t.UTC().Round(time.Microsecond)
		}
		return time.Time{}
	}
	switch {
	case !(n > 0) || n >= pastNanos:
		return time.Time{}
	case n >= leastNanos:
		n /= 1e3
	case n >= leastMicros:
	case n >= leastMillis:
		n *= 1e3
	default:
		n *= 1e6
	}
	return time.UnixMicro(int64(n + 0.5)).UTC()
}

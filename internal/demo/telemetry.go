package demo

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"sidetone/internal/errs"
)

const (
	tracesPath  = "/observability/traces/otlp/v0"
	logsPath    = "/observability/logs/otlp/v0"
	metricsPath = "/observability/metrics/otlp/v0"
)

// traceRequest wraps spans as the SDK exports them. TracesData is an ExportTraceServiceRequest on the wire, without gRPC.
func (t *talk) traceRequest(spans []*tracepb.Span) *tracepb.TracesData {
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource:   t.resource(),
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "livekit-agents"}, Spans: spans}},
	}}}
}

func (t *talk) resource() *resourcepb.Resource {
	return &resourcepb.Resource{Attributes: append([]*commonpb.KeyValue{text("service.name", "livekit-agents")}, t.identity()...)}
}

// A logbook collects a call's log records by scope.
type logbook struct {
	talk   *talk
	scopes map[string]*logspb.ScopeLogs
	order  []string
}

func (l *logbook) add(scope, body string, at float64, severity logspb.SeverityNumber, span *tracepb.Span, attrs ...*commonpb.KeyValue) {
	s := l.scopes[scope]
	if s == nil {
		s = &logspb.ScopeLogs{Scope: &commonpb.InstrumentationScope{Name: scope}}
		if scope == "chat_history" || scope == "evaluations" {
			s.Scope.Attributes = append(l.talk.identity()[:2], text("room", l.talk.room))
		}
		l.scopes[scope] = s
		l.order = append(l.order, scope)
	}
	r := &logspb.LogRecord{
		TimeUnixNano: nanos(at), ObservedTimeUnixNano: nanos(at + 0.001), SeverityNumber: severity, SeverityText: severityText[severity],
		Body:       &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: body}},
		Attributes: append(append(l.talk.identity(), text("logger.name", scope)), attrs...),
	}
	if span != nil {
		r.TraceId, r.SpanId = span.TraceId, span.SpanId
	}
	s.LogRecords = append(s.LogRecords, r)
}

// severityText names the levels as Python's logging does; the report's own records have none.
var severityText = map[logspb.SeverityNumber]string{
	logspb.SeverityNumber_SEVERITY_NUMBER_UNSPECIFIED: "unspecified",
	logspb.SeverityNumber_SEVERITY_NUMBER_DEBUG:       "DEBUG",
	logspb.SeverityNumber_SEVERITY_NUMBER_INFO:        "INFO",
	logspb.SeverityNumber_SEVERITY_NUMBER_WARN:        "WARNING",
	logspb.SeverityNumber_SEVERITY_NUMBER_ERROR:       "ERROR",
}

const (
	unspecified = logspb.SeverityNumber_SEVERITY_NUMBER_UNSPECIFIED
	debug       = logspb.SeverityNumber_SEVERITY_NUMBER_DEBUG
	info        = logspb.SeverityNumber_SEVERITY_NUMBER_INFO
	warning     = logspb.SeverityNumber_SEVERITY_NUMBER_WARN
	failure     = logspb.SeverityNumber_SEVERITY_NUMBER_ERROR
)

func (l *logbook) request() *logspb.LogsData {
	out := &logspb.ResourceLogs{Resource: l.talk.resource()}
	for _, name := range l.order {
		out.ScopeLogs = append(out.ScopeLogs, l.scopes[name])
	}
	return &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{out}}
}

// applicationLogs are what the agent's own code and the SDK wrote until the given time, tied to their spans.
func applicationLogs(t *talk, tr *tracer, until float64) *logbook {
	l := &logbook{talk: t, scopes: map[string]*logspb.ScopeLogs{}}
	start := epoch(t.start)
	l.add("livekit.agents", "received job request", start-0.4, info, nil, text("agent_name", t.agentName))
	l.add("livekit.agents", "initializing agent session", start-0.05, debug, nil, text("stt", t.stt.name), text("llm", t.llm.name), text("tts", t.tts.name))
	for _, s := range tr.spans {
		at := float64(s.EndTimeUnixNano) / 1e9
		if at > until {
			continue
		}
		attr := func(key string) *commonpb.AnyValue {
			for _, kv := range s.Attributes {
				if kv.Key == key {
					return kv.Value
				}
			}
			return &commonpb.AnyValue{}
		}
		switch s.Name {
		case "function_tool":
			name := attr("lk.function_tool.name").GetStringValue()
			if attr("lk.function_tool.is_error").GetBoolValue() {
				l.add("agent.tools", name+" failed: "+attr("lk.pii.function_tool.output").GetStringValue(), at, failure, s,
					text("exception.type", "ToolError"), text("exception.message", attr("lk.pii.function_tool.output").GetStringValue()),
					text("code.file.path", "/app/tools.py"), text("code.function.name", name), count("code.line.number", 57))
			} else {
				l.add("agent.tools", name+" done", at, info, s, number("seconds", float64(s.EndTimeUnixNano-s.StartTimeUnixNano)/1e9))
			}
		case "llm_node":
			if ttft := attr("lk.response.ttft").GetDoubleValue(); ttft > 2 {
				l.add("livekit.agents", fmt.Sprintf("slow LLM response: %.2f s to the first token", ttft), at, warning, s, number("ttft", ttft))
			}
		case "agent_turn":
			if attr("lk.interrupted").GetBoolValue() {
				l.add("livekit.agents", "speech interrupted by the user", at, info, s, text("speech_id", attr("lk.speech_id").GetStringValue()))
			}
		case "user_turn":
			if c := attr("lk.transcript_confidence").GetDoubleValue(); c > 0 && c < 0.88 {
				l.add("agent.stt", fmt.Sprintf("low transcript confidence: %.2f", c), at, warning, s, number("confidence", c))
			}
		case "llm_request_run":
			if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
				l.add("livekit.agents", "failed to generate LLM completion, retrying in 0.1s", at, warning, s,
					text("exception.type", "APITimeoutError"), text("exception.message", s.Status.Message), count("attempt", 1))
			}
		}
	}
	return l
}

// reportLogs adds to the application logs the records by which the SDK tells about the call as a whole.
func reportLogs(t *talk, tr *tracer) *logbook {
	end := epoch(t.end)
	l := applicationLogs(t, tr, end)
	l.add("livekit.agents", "session closed", end+0.05, info, nil, text("reason", "participant_disconnected"))
	tags := make([]any, len(t.tags))
	for i, tag := range t.tags {
		tags[i] = tag
	}
	usage := make([]any, len(t.usage))
	for i, u := range t.usage {
		usage[i] = u
	}
	l.add("chat_history", "session report", epoch(t.start), unspecified, nil,
		anyAttr("session.options", t.options()), number("session.report_timestamp", end), anyAttr("session.tags", tags),
		text("agent_name", t.agentName), text("sdk_version", t.sdk), anyAttr("usage", usage))
	l.add("evaluations", "tag", end-0.01, unspecified, nil, anyAttr("tag", map[string]any{"name": "region:eu", "metadata": map[string]any{"worker": "eu-west-2"}}))
	for _, e := range t.evaluations {
		severity := unspecified
		if e.Verdict == "fail" {
			severity = failure
		}
		l.add("evaluations", "evaluation", end, severity, nil, anyAttr("evaluation", map[string]any{"name": e.Name, "tag": e.Tag, "verdict": e.Verdict,
			"reasoning": e.Reasoning, "instructions": e.Instructions}))
	}
	if t.outcome != nil {
		severity := unspecified
		if t.outcome.Outcome == "fail" {
			severity = failure
		}
		l.add("evaluations", "outcome", end, severity, nil, anyAttr("outcome", map[string]any{"outcome": t.outcome.Outcome, "reason": t.outcome.Reason}))
	}
	return l
}

// anyAttr encodes what encoding/json would decode: maps, lists, strings, numbers and booleans.
func anyAttr(key string, v any) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: anyValue(v)}
}

func anyValue(v any) *commonpb.AnyValue {
	switch v := v.(type) {
	case string:
		return text("", v).Value
	case bool:
		return truth("", v).Value
	case int:
		return count("", v).Value
	case float64:
		return number("", v).Value
	case []any:
		list := &commonpb.ArrayValue{}
		for _, e := range v {
			list.Values = append(list.Values, anyValue(e))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	case map[string]any:
		m := &commonpb.KeyValueList{}
		for _, k := range sortedKeys(v) {
			m.Values = append(m.Values, anyAttr(k, v[k]))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: m}}
	}
	return &commonpb.AnyValue{} // as the SDKs send None
}

// liveTalks are two calls that are going on, begun less than a minute ago.
func (p *plan) liveTalks() []*talk {
	var out []*talk
	for i := range 2 {
		// A call of the generator is moved so that it is going on now: the first spoken one that lasts long enough.
		t := p.gen.talk(1, p.now)
		for n := 2; t.transport == "text" || t.end.Sub(t.start) < 50*time.Second || i == 1 && t.agentID == out[0].agentID; n++ {
			t = p.gen.talk(n, p.now)
		}
		t.sessionID = fmt.Sprintf("live-call-%d", i+1)
		t.jobID, t.room = "AJ_"+t.sessionID, t.agentID+"-"+t.sessionID
		begin := p.now.Add(-time.Duration(30+12*i) * time.Second)
		t.shift(epoch(begin) - epoch(t.start))
		t.start, t.end = begin, begin.Add(t.end.Sub(t.start))
		out = append(out, t)
	}
	return out
}

// sendTelemetry posts spans, logs and metrics of the recorded calls and of every fourth synthetic one, and what is known of the
// calls going on. A server without the routes is noted, not an error. It returns the number of calls and of spans.
func (p *plan) sendTelemetry(ctx context.Context, recorded []Call, slots []slot) (calls, spans int, err error) {
	type batch struct {
		t    *talk
		live bool
	}
	var batches []batch
	for _, c := range recorded {
		batches = append(batches, batch{t: c.talk})
	}
	for _, s := range slots {
		if t := p.gen.talk(s.index, s.ended); t.telemetry {
			batches = append(batches, batch{t: t})
		}
	}
	for _, t := range p.liveTalks() {
		batches = append(batches, batch{t: t, live: true})
	}
	counts := make([]int, len(batches))
	err = p.each(ctx, "spans and logs", len(batches), func(i int) error {
		t := batches[i].t
		tr := traceTalk(t)
		logs := reportLogs(t, tr)
		if batches[i].live {
			now := epoch(p.now)
			logs = applicationLogs(t, tr, now)
			tr.endedBefore(now)
		}
		counts[i] = len(tr.spans)
		if err := p.postOTLP(ctx, tracesPath, t.traceRequest(tr.spans)); err != nil {
			return err
		}
		if err := p.postOTLP(ctx, logsPath, logs.request()); err != nil || batches[i].live {
			return err
		}
		return p.postOTLP(ctx, metricsPath, t.metricsData()) // the SDK sends these when the session ends
	})
	if errs.Is(err, errs.NotFound) {
		p.notes = append(p.notes, "this server takes no telemetry (no "+tracesPath+", no logs or no metrics beside it): no spans and logs were sent")
		return 0, 0, nil
	}
	for _, n := range counts {
		spans += n
	}
	return len(batches), spans, err
}

// endedBefore drops the spans that are still open at the given time: they would not have been exported yet.
func (tr *tracer) endedBefore(at float64) {
	var kept []*tracepb.Span
	for _, s := range tr.spans {
		if s.EndTimeUnixNano <= nanos(at) {
			kept = append(kept, s)
		}
	}
	tr.spans = kept
}

// postOTLP sends a request as the Python SDK does: protobuf, gzip.
func (p *plan) postOTLP(ctx context.Context, path string, m proto.Message) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "cannot encode a request for %s", path)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err = z.Write(raw); err == nil {
		err = z.Close()
	}
	if err != nil {
		return errs.Wrap(errs.Internal, err, "cannot compress a request for %s", path)
	}
	return p.client.send(ctx, http.MethodPost, path, map[string]string{"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}, b.Bytes())
}

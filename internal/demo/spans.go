package demo

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// A tracer builds the span tree that LiveKit agents 1.8 export for one call. Times are epoch seconds.
type tracer struct {
	talk    *talk
	traceID []byte
	spans   []*tracepb.Span
}

func newTracer(t *talk) *tracer {
	id := sha256.Sum256([]byte("trace " + t.sessionID))
	return &tracer{talk: t, traceID: id[:16]}
}

// span adds a span below parent (nil for a root) and returns it. The ids are the same in every run.
func (tr *tracer) span(parent *tracepb.Span, name string, from, to float64, attrs ...*commonpb.KeyValue) *tracepb.Span {
	id := sha256.Sum256(fmt.Appendf(nil, "%s %d", tr.talk.sessionID, len(tr.spans)))
	s := &tracepb.Span{
		TraceId: tr.traceID, SpanId: id[:8], Name: name, Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanos(from), EndTimeUnixNano: nanos(max(from, to)),
		Attributes: append(tr.talk.identity(), attrs...),
	}
	if parent != nil {
		s.ParentSpanId = parent.SpanId
	}
	tr.spans = append(tr.spans, s)
	return s
}

// fail marks a span as failed with an exception event, as OpenTelemetry records one.
func fail(s *tracepb.Span, at float64, kind, message string) {
	attrs := []*commonpb.KeyValue{text("exception.type", kind), text("exception.message", message),
		text("exception.stacktrace", "Traceback (most recent call last):\n  File \"agent.py\", line 88, in _run\n"+kind+": "+message)}
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: message}
	s.Events = append(s.Events, &tracepb.Span_Event{TimeUnixNano: nanos(at), Name: "exception", Attributes: attrs})
	s.Attributes = append(s.Attributes, attrs...)
}

// An exchange is one reply of the agent with what led to it.
type exchange struct {
	user  *item
	tools []toolUse
	agent *item // nil when no reply came
}

type toolUse struct{ call, output *item }

// exchanges groups a conversation's items by reply.
func exchanges(items []item) []exchange {
	var out []exchange
	var x exchange
	for i := range items {
		it := &items[i]
		switch {
		case it.Type == "message" && it.Role == "user":
			if x.user != nil || len(x.tools) > 0 {
				out, x = append(out, x), exchange{}
			}
			x.user = it
		case it.Type == "message" && it.Role == "assistant":
			x.agent = it
			out, x = append(out, x), exchange{}
		case it.Type == "function_call":
			x.tools = append(x.tools, toolUse{call: it})
		case it.Type == "function_call_output":
			for k := range x.tools {
				if x.tools[k].call.CallID == it.CallID {
					x.tools[k].output = it
				}
			}
		}
	}
	if x.user != nil || len(x.tools) > 0 {
		out = append(out, x)
	}
	return out
}

// traceTalk builds all spans of a call, in order of their ends, because a span is exported when it ends.
func traceTalk(t *talk) *tracer {
	tr := newTracer(t)
	start, end := epoch(t.start), epoch(t.end)
	job := tr.span(nil, "job_entrypoint", start-0.42, end+0.9, text("lk.job_id", t.jobID), text("lk.pii.room_name", t.room),
		number("lk.job.assignment_latency", 0.031), number("lk.job.launch_latency", 0.118))
	session := tr.span(job, "agent_session", start-0.05, end+0.05, text("lk.agent_label", t.agentID), text("lk.pii.room_name", t.room),
		text("lk.job_id", t.jobID), text("gen_ai.conversation.id", t.sessionID), text("lk.close_reason", "participant_disconnected"))
	opening := tr.span(session, "session_start", start-0.04, start+0.3)
	tr.span(opening, "room_connect", start-0.03, start+0.12, text("lk.room_sid", t.sessionID))
	activity := tr.span(opening, "start_agent_activity", start+0.12, start+0.28, text("lk.agent_label", t.agentID))
	tr.span(activity, "on_enter", start+0.15, start+0.27, text("lk.agent_label", t.agentID))

	silentSince := start + 0.3
	for i, x := range exchanges(t.items) {
		silentSince = tr.exchange(session, x, i+1, silentSince)
	}
	tr.span(session, "session_close", end-0.02, end+0.04, text("lk.close_reason", "participant_disconnected"))
	shutdown := tr.span(job, "job_shutdown", end+0.06, end+0.88, text("lk.shutdown.reason", "session closed"))
	at := end + 0.1
	for _, e := range t.evaluations {
		tr.span(shutdown, "judge_evaluation", at, end+0.55, text("gen_ai.operation.name", "judge"), text("gen_ai.request.model", "gpt-4.1"),
			text("gen_ai.provider.name", "openai"), text("lk.judge.name", e.Name), text("lk.judge.verdict", e.Verdict))
	}
	tr.span(shutdown, "session_end_upload", end+0.56, end+0.8)
	tr.sort()
	return tr
}

func (tr *tracer) sort() {
	slices.SortStableFunc(tr.spans, func(a, b *tracepb.Span) int {
		switch {
		case a.EndTimeUnixNano < b.EndTimeUnixNano:
			return -1
		case a.EndTimeUnixNano > b.EndTimeUnixNano:
			return 1
		}
		return 0
	})
}

// exchange adds the spans of one reply and returns when the agent fell silent.
func (tr *tracer) exchange(session *tracepb.Span, x exchange, n int, silentSince float64) float64 {
	t := tr.talk
	replying := silentSince // when the agent began to work on its reply
	said := ""
	if x.user != nil {
		replying = tr.userTurn(session, x.user)
		said = x.user.Content[0]
	}
	if x.agent == nil {
		return tr.silentTurn(session, x, replying)
	}
	m := x.agent.Metrics
	if m == nil {
		m = &metrics{}
	}
	starts, stops := m.StartedSpeakingAt, m.StoppedSpeakingAt
	voice := starts != 0
	reply := x.agent.Content[0]
	if !voice {
		starts = x.agent.CreatedAt
		stops = starts + float64(utf8.RuneCountInString(reply))/200
	}
	thinking := starts - m.TTSNodeTTFB - m.LLMNodeTTFT // the latest moment at which the model can have been asked
	if x.user == nil && len(x.tools) == 0 {
		replying = thinking
	}
	from, to := min(replying, thinking), stops
	for _, u := range x.tools {
		from = min(from, u.call.CreatedAt-0.05)
		if u.output != nil {
			to = max(to, u.output.CreatedAt)
		}
	}
	attrs := []*commonpb.KeyValue{
		text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", t.agentID), text("lk.speech_id", fmt.Sprintf("speech_%s_%d", t.sessionID, n)),
		truth("lk.interrupted", x.agent.Interrupted != nil && *x.agent.Interrupted), text("lk.pii.response.text", reply), count("lk.generation_count", len(x.tools)+1),
	}
	if said != "" {
		attrs = append(attrs, text("lk.pii.user_input", said))
	}
	if m.E2ELatency != 0 {
		attrs = append(attrs, number("lk.e2e_latency", m.E2ELatency))
	}
	turn := tr.span(session, "agent_turn", from, to, attrs...)

	at := tr.toolSteps(turn, x.tools, from)
	if m.LLMNodeTTFT != 0 {
		asked := max(thinking-0.1, min(at, thinking))
		written := asked + m.LLMNodeTTFT + float64(utf8.RuneCountInString(reply))/260 // 260 characters, 65 tokens, a second
		tr.llm(turn, asked, min(written, to), m.LLMNodeTTFT, reply, nil)
	}
	if voice {
		tr.speak(turn, m, reply, starts, stops)
	}
	return stops
}

// silentTurn adds the spans of tool calls after which the agent said nothing.
func (tr *tracer) silentTurn(session *tracepb.Span, x exchange, from float64) float64 {
	if len(x.tools) == 0 {
		return from
	}
	to := from
	for _, u := range x.tools {
		from, to = min(from, u.call.CreatedAt-0.05), max(to, u.call.CreatedAt)
		if u.output != nil {
			to = max(to, u.output.CreatedAt)
		}
	}
	turn := tr.span(session, "agent_turn", from, to, text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", tr.talk.agentID))
	return tr.toolSteps(turn, x.tools, from)
}

// toolSteps adds, for each tool call, the model's decision to make it and the call itself; it returns the last end.
func (tr *tracer) toolSteps(turn *tracepb.Span, tools []toolUse, at float64) float64 {
	for _, u := range tools {
		tr.llm(turn, at, u.call.CreatedAt, 0, "", u.call)
		at = u.call.CreatedAt
		if u.output != nil {
			tr.tool(turn, u)
			at = u.output.CreatedAt
		}
	}
	return at
}

// userTurn adds the caller's turn and returns when it was handed to the agent.
func (tr *tracer) userTurn(session *tracepb.Span, u *item) float64 {
	t, m := tr.talk, u.Metrics
	said := u.Content[0]
	if m == nil || m.StartedSpeakingAt == 0 {
		tr.span(session, "user_turn", u.CreatedAt-0.01, u.CreatedAt, text("lk.pii.user_transcript", said))
		return u.CreatedAt
	}
	decided := m.StoppedSpeakingAt + m.EndOfTurnDelay
	done := decided + m.OnUserTurnCompletedDelay
	turn := tr.span(session, "user_turn", m.StartedSpeakingAt, done, text("lk.pii.user_transcript", said), number("lk.transcript_confidence", u.TranscriptConfidence),
		number("lk.transcription_delay", m.TranscriptionDelay), number("lk.end_of_turn_delay", m.EndOfTurnDelay), number("lk.on_user_turn_completed_delay", m.OnUserTurnCompletedDelay),
		text("gen_ai.request.model", t.stt.name), text("gen_ai.provider.name", t.stt.provider), text("lk.participant_kind", t.transport))
	tr.span(turn, "user_speaking", m.StartedSpeakingAt, m.StoppedSpeakingAt, text("lk.participant_id", "PA_"+t.sessionID), text("lk.pii.participant_identity", "caller"))
	wait := tr.span(turn, "eou_wait", m.StoppedSpeakingAt, decided, number("lk.eou.wait_duration", m.EndOfTurnDelay), text("lk.eou.outcome", "committed"))
	tr.span(wait, "eou_detection", m.StoppedSpeakingAt+m.TranscriptionDelay, min(decided, m.StoppedSpeakingAt+m.TranscriptionDelay+0.024),
		number("lk.eou.probability", 0.5+u.TranscriptConfidence/2.1), number("lk.eou.unlikely_threshold", 0.15), text("lk.eou.language", t.language), text("lk.eou.source", "stt"))
	tr.span(turn, "on_user_turn_completed", decided, done)
	return done
}

// llm adds one request to the model. A first token after more than 3.5 s is told as a time-out and a second try.
func (tr *tracer) llm(turn *tracepb.Span, from, to, ttft float64, reply string, call *item) {
	t := tr.talk
	names := []*commonpb.KeyValue{text("gen_ai.request.model", t.llm.name), text("gen_ai.provider.name", t.llm.provider)}
	attrs := slices.Clone(names)
	if ttft != 0 {
		attrs = append(attrs, number("lk.response.ttft", ttft))
	}
	if reply != "" {
		attrs = append(attrs, text("lk.pii.response.text", reply))
	}
	if call != nil {
		attrs = append(attrs, text("lk.pii.response.function_calls", string(mustJSON([]map[string]string{{"name": call.Name, "call_id": call.CallID, "arguments": call.Arguments}}))))
	}
	node := tr.span(turn, "llm_node", from, to, attrs...)
	request := tr.span(node, "llm_request", from+0.002, to, append(slices.Clone(names), text("gen_ai.operation.name", "chat"), truth("gen_ai.request.stream", true),
		count("gen_ai.usage.output_tokens", utf8.RuneCountInString(reply)/4+6))...)
	tries := 0
	begin := from + 0.003
	if ttft > 3.5 {
		timeout := from + ttft - 1
		first := tr.span(request, "llm_request_run", begin, timeout, count("lk.retry_count", 0))
		fail(first, timeout, "APITimeoutError", "the model sent no token in time")
		tries, begin = 1, timeout+0.01
	}
	tr.span(request, "llm_request_run", begin, to, count("lk.retry_count", tries))
}

func (tr *tracer) tool(turn *tracepb.Span, u toolUse) {
	failed := u.output.IsError != nil && *u.output.IsError
	s := tr.span(turn, "function_tool", u.call.CreatedAt, u.output.CreatedAt, text("lk.function_tool.id", u.call.CallID), text("lk.function_tool.name", u.call.Name),
		truth("lk.function_tool.is_error", failed), text("lk.pii.function_tool.arguments", u.call.Arguments), text("lk.pii.function_tool.output", u.output.Output),
		text("gen_ai.tool.name", u.call.Name), text("gen_ai.tool.call.id", u.call.CallID))
	if failed {
		fail(s, u.output.CreatedAt, "ToolError", u.output.Output)
	}
}

func (tr *tracer) speak(turn *tracepb.Span, m *metrics, reply string, starts, stops float64) {
	t := tr.talk
	names := []*commonpb.KeyValue{text("gen_ai.request.model", t.tts.name), text("gen_ai.provider.name", t.tts.provider)}
	from, to := starts-m.TTSNodeTTFB, starts+0.55*(stops-starts) // synthesis runs ahead of the speech
	node := tr.span(turn, "tts_node", from, to, append(slices.Clone(names), number("lk.response.ttfb", m.TTSNodeTTFB))...)
	request := tr.span(node, "tts_request", from, to, append(slices.Clone(names), truth("lk.tts.streaming", true), text("lk.pii.input_text", reply))...)
	tr.span(request, "tts_request_run", from+0.001, to, count("lk.retry_count", 0))
	tr.span(turn, "agent_speaking", starts, stops)
}

// identity are the attributes that every span and log record of a call carries.
func (t *talk) identity() []*commonpb.KeyValue {
	return []*commonpb.KeyValue{text("room_id", t.sessionID), text("job_id", t.jobID), text("lk.agent_name", t.agentName)}
}

func text(key, s string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}}
}

func number(key string, f float64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: micros(f)}}}
}

func count(key string, n int) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(n)}}}
}

func truth(key string, b bool) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: b}}}
}

func nanos(epochSeconds float64) uint64 {
	return uint64(fromEpoch(epochSeconds).UnixNano())
}

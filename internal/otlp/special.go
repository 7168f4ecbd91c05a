package otlp

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"

	"sidetone/internal/report"
	"sidetone/internal/session"
)

// The scopes in which the SDKs write special records, and the bodies that tell them apart.
const (
	scopeChat        = "chat_history"
	scopeEvaluations = "evaluations"

	bodyReport     = "session report"
	bodyItem       = "chat item"
	bodyEvaluation = "evaluation"
	bodyTag        = "tag"
	bodyOutcome    = "outcome"
)

// specialRecord reads a record that says something about the session itself. ok is false for application logs, and for
// special records that cannot be understood, which are kept as such.
func specialRecord(w *writer, scope string, at time.Time, r *logspb.LogRecord) (said session.LogSignals, ok bool) {
	if scope != scopeChat && scope != scopeEvaluations {
		return said, false
	}
	attrs := r.GetAttributes()
	switch r.GetBody().GetStringValue() {
	case bodyReport:
		return sessionReport(w, at, attrs), true
	case bodyItem:
		it, ok := chatItem(w, at, find(attrs, "chat.item"))
		if !ok {
			return said, false
		}
		said.Items = []session.Item{it}
	case bodyEvaluation:
		e, ok := evaluation(w, at, find(attrs, bodyEvaluation))
		if !ok {
			return said, false
		}
		said.Evaluations = []session.Evaluation{e}
	case bodyTag:
		t, ok := tag(w, at, find(attrs, bodyTag))
		if !ok {
			return said, false
		}
		said.Tags = []session.Tag{t}
	case bodyOutcome:
		o, ok := outcome(w, at, r)
		if !ok {
			return said, false
		}
		said.Outcome = o
	default:
		return said, false
	}
	return said, true
}

func sessionReport(w *writer, at time.Time, attrs []*commonpb.KeyValue) session.LogSignals {
	said := session.LogSignals{StartedAt: at.Round(time.Microsecond)} // JavaScript leaves it up to 64 ns off
	for _, kv := range attrs {
		v := kv.GetValue()
		switch kv.GetKey() {
		case "session.options":
			if v.GetKvlistValue() != nil {
				said.Options = w.value(v)
			}
		case "session.report_timestamp":
			said.ReportTimestamp = epoch(v)
		case "session.tags":
			for _, e := range v.GetArrayValue().GetValues() {
				if name := cleanText(e); name != "" {
					said.Tags = append(said.Tags, session.Tag{Name: name, Source: session.SourceOTLP})
				}
			}
		case "usage":
			for _, e := range v.GetArrayValue().GetValues() {
				if kvs := e.GetKvlistValue(); kvs != nil {
					said.Usage = append(said.Usage, usage(w, kvs.GetValues()))
				}
			}
		case "agent_name":
			said.AgentName = shortText(kv)
		case "sdk_version":
			said.SDKVersion = shortText(kv)
		}
	}
	return said
}

// cleanText is a text value without NUL and surrounding white space.
func cleanText(v *commonpb.AnyValue) string { return strings.TrimSpace(text(v.GetStringValue())) }

// chatItem reads the map under chat.item, or the JSON text of it. SDKs with a millisecond clock give several items the
// same created_at and then push the times of their records apart by a microsecond each; that order is kept.
func chatItem(w *writer, at time.Time, v *commonpb.AnyValue) (session.Item, bool) {
	raw := json.RawMessage(v.GetStringValue())
	if kvs := v.GetKvlistValue(); kvs != nil {
		raw = w.object(snakeWrapper(kvs.GetValues()))
	}
	it, err := report.ParseItem(raw)
	if err != nil || (it.ID == "" && it.Type == "") {
		return it, false
	}
	for _, t := range []*time.Time{&it.CreatedAt, &it.Metrics.StartedSpeakingAt, &it.Metrics.StoppedSpeakingAt} {
		if t.Year() >= pastYear { // one that JSON may be unable to write
			*t = time.Time{}
		}
	}
	// The record's nanoseconds went through a float in JavaScript and are off by up to 64.
	recorded := at.Round(time.Microsecond)
	if pushed := recorded.Sub(it.CreatedAt); it.CreatedAt.IsZero() || (pushed > 0 && pushed < time.Millisecond) {
		it.CreatedAt = recorded
	}
	return it, true
}

// snakeWrapper renames the camelCase wrapper of older Node SDKs: {"functionCall": {...}}.
func snakeWrapper(kvs []*commonpb.KeyValue) []*commonpb.KeyValue {
	if len(kvs) != 1 || kvs[0].GetValue().GetKvlistValue() == nil {
		return kvs
	}
	key := snake(kvs[0].GetKey())
	if key == kvs[0].GetKey() {
		return kvs
	}
	return []*commonpb.KeyValue{{Key: key, Value: kvs[0].GetValue()}}
}

// snake turns camelCase into snake_case.
func snake(key string) string {
	if strings.ToLower(key) == key {
		return key
	}
	var b strings.Builder
	for i, c := range key {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func evaluation(w *writer, at time.Time, v *commonpb.AnyValue) (session.Evaluation, bool) {
	kvs := v.GetKvlistValue().GetValues()
	e := session.Evaluation{
		Source: session.SourceOTLP, JudgeName: cleanText(find(kvs, "name")), Tag: cleanText(find(kvs, "tag")),
		Verdict: strings.ToLower(cleanText(find(kvs, "verdict"))), Reasoning: text(find(kvs, "reasoning").GetStringValue()),
		Instructions: text(find(kvs, "instructions").GetStringValue()), ObservedAt: at,
	}
	if judge, verdict, ok := session.JudgeOfTag(e.Tag); ok {
		e.JudgeName, e.Verdict = cmp.Or(e.JudgeName, judge), cmp.Or(e.Verdict, verdict)
	}
	if e.Verdict == "" {
		return e, false
	}
	e.Raw = w.value(v)
	return e, true
}

func tag(w *writer, at time.Time, v *commonpb.AnyValue) (session.Tag, bool) {
	kvs := v.GetKvlistValue().GetValues()
	t := session.Tag{Name: cleanText(find(kvs, "name")), Source: session.SourceOTLP, ObservedAt: at}
	if meta := find(kvs, "metadata"); meta.GetKvlistValue() != nil {
		t.Metadata = w.value(meta)
	}
	return t, t.Name != ""
}

// outcome reads an outcome. Python 1.4.0 to 1.5.1 sent only the reason; then an error severity means a fail, and
// otherwise the outcome stays empty for the tags lk.success and lk.fail to tell.
func outcome(w *writer, at time.Time, r *logspb.LogRecord) (*session.Outcome, bool) {
	v := find(r.GetAttributes(), bodyOutcome)
	kvs := v.GetKvlistValue().GetValues()
	o := &session.Outcome{Source: session.SourceOTLP, Outcome: strings.ToLower(cleanText(find(kvs, "outcome"))),
		Reason: text(find(kvs, "reason").GetStringValue()), ObservedAt: at}
	if v.GetKvlistValue() == nil {
		o.Outcome = strings.ToLower(cleanText(v))
	}
	if o.Outcome == "" && r.GetSeverityNumber() >= logspb.SeverityNumber_SEVERITY_NUMBER_ERROR {
		o.Outcome = "fail"
	}
	if o.Outcome == "" && o.Reason == "" {
		return nil, false
	}
	o.Raw = w.value(v)
	return o, true
}

// usage reads one entry of the usage totals. Node writes camelCase with durations in milliseconds; all are kept in
// snake_case with seconds.
func usage(w *writer, kvs []*commonpb.KeyValue) session.Usage {
	var u session.Usage
	normal := make([]*commonpb.KeyValue, 0, len(kvs))
	for _, kv := range kvs {
		key, v := snake(kv.GetKey()), kv.GetValue()
		if base, ok := strings.CutSuffix(key, "_duration_ms"); ok {
			if ms, ok := number(v); ok {
				key = base + "_duration"
				v = &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: ms / 1000}}
			}
		}
		normal = append(normal, &commonpb.KeyValue{Key: key, Value: v})
		switch key {
		case "type":
			u.Type = cleanText(v)
		case "provider":
			u.Provider = cleanText(v)
		case "model":
			u.Model = cleanText(v)
		case "input_tokens":
			u.InputTokens = count(v)
		case "input_cached_tokens":
			u.InputCachedTokens = count(v)
		case "output_tokens":
			u.OutputTokens = count(v)
		case "characters_count":
			u.CharactersCount = count(v)
		case "audio_duration":
			u.AudioDuration = seconds(v)
		case "session_duration":
			u.SessionDuration = seconds(v)
		}
	}
	u.Raw = w.object(normal)
	return u
}

// count reads a number of things; what is not one is 0.
func count(v *commonpb.AnyValue) int64 {
	f, ok := number(v)
	if !ok || f < 0 || f > 1<<53 {
		return 0
	}
	return int64(math.Round(f))
}

// seconds reads a duration; what is not one is 0.
func seconds(v *commonpb.AnyValue) float64 {
	f, ok := number(v)
	if !ok || f < 0 {
		return 0
	}
	return f
}

package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Span is one finished step of a call's trace. Its identity is (TraceID, SpanID).
type Span struct {
	TraceID      string // 32 lower-case hex digits
	SpanID       string // 16 lower-case hex digits
	ParentSpanID string // "" for a root
	Scope        string // instrumentation scope
	Name         string
	Kind         string // internal, server, client, producer, consumer, or "" when unspecified

	Start time.Time
	End   time.Time // zero when the span never ended

	StatusCode    string // "", ok or error
	StatusMessage string

	Attributes json.RawMessage // object, keys as sent; read it with Attr
	Events     json.RawMessage // array of {name, time, attributes}, nil when there are none
}

// LogRecord is one application log line of a call.
type LogRecord struct {
	// Key is the same for the same record however often it is sent; see SetKey.
	Key [16]byte

	Time       time.Time // when it happened; the observed time when the client gave none
	ObservedAt time.Time // when the client's logger saw it

	SeverityNumber int    // OpenTelemetry's 1 (trace) to 24 (fatal), 0 when unspecified
	SeverityText   string // as sent
	Body           string // text; a structured body as JSON text
	Event          string // event name, "" for plain log lines
	Logger         string // instrumentation scope, else the attribute logger.name
	TraceID        string // lower-case hex, "" outside a span
	SpanID         string

	Attributes json.RawMessage // object, keys as sent; read it with Attr
}

// SetKey derives Key from everything but the observed time, which an exporter may renew when it sends again.
func (r *LogRecord) SetKey() {
	r.Key = contentKey(r.Time, time.Time{}, r.SeverityNumber,
		r.SeverityText, r.Body, r.Event, r.Logger, r.TraceID, r.SpanID, string(r.Attributes))
}

// Kinds of metric points.
const (
	MetricGauge        = "gauge"
	MetricSum          = "sum"
	MetricHistogram    = "histogram"
	MetricExpHistogram = "exponential_histogram"
	MetricSummary      = "summary"
)

// MetricPoint is one data point of a metric that an SDK exported. It never feeds alert metrics: SDKs report the same
// turns per message as well.
type MetricPoint struct {
	// Key is the same for the same point however often it is sent; see SetKey.
	Key [16]byte

	Name        string
	Unit        string
	Kind        string // one of the Metric constants
	Temporality string // delta, cumulative, or "" where it has no meaning
	Monotonic   bool
	Scope       string

	Start time.Time // zero when not given
	Time  time.Time

	Attributes json.RawMessage // object, keys as sent
	// Value is a number for gauges and sums, and an object for the others: count, sum, min, max with bounds and
	// bucket_counts (histogram), the sparse form (exponential_histogram) or quantiles (summary).
	Value json.RawMessage
}

// SetKey derives Key from the whole point.
func (p *MetricPoint) SetKey() {
	p.Key = contentKey(p.Time, p.Start, 0, p.Name, p.Unit, p.Kind, p.Temporality, p.Scope, string(p.Attributes), string(p.Value))
}

// contentKey hashes length-prefixed parts, so that no two different records can read the same.
func contentKey(t, start time.Time, n int, parts ...string) (key [16]byte) {
	size := 24
	for _, p := range parts {
		size += 4 + len(p)
	}
	buf := make([]byte, 0, size)
	buf = binary.BigEndian.AppendUint64(buf, uint64(unixNano(t)))
	buf = binary.BigEndian.AppendUint64(buf, uint64(unixNano(start)))
	buf = binary.BigEndian.AppendUint64(buf, uint64(n))
	for _, p := range parts {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(p)))
		buf = append(buf, p...)
	}
	sum := sha256.Sum256(buf)
	copy(key[:], sum[:])
	return key
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Attrs are the attributes of a span or log record by key.
type Attrs map[string]json.RawMessage

// ParseAttrs reads an attributes object; anything else gives no attributes.
func ParseAttrs(attrs json.RawMessage) Attrs {
	var a Attrs
	if json.Unmarshal(attrs, &a) != nil {
		return nil
	}
	return a
}

// Get finds an attribute by its key without "pii" segments and with or without the prefix "lk.": "user_transcript"
// finds lk.pii.user_transcript (SDK 1.7 and later) and lk.user_transcript (before). The newer name wins.
func (a Attrs) Get(name string) (json.RawMessage, bool) {
	name = plainKey(name)
	bestKey, found := "", false
	for k := range a {
		p := plainKey(k)
		if p != name && strings.TrimPrefix(p, "lk.") != name {
			continue
		}
		if !found || len(k) > len(bestKey) || (len(k) == len(bestKey) && k < bestKey) {
			bestKey, found = k, true
		}
	}
	return a[bestKey], found
}

// Text is the attribute as text: a string's value, any other value's JSON, "" when it is missing.
func (a Attrs) Text(name string) string {
	raw, ok := a.Get(name)
	if !ok {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// Attr finds one attribute as Attrs.Get does. To read several of one object, parse it once with ParseAttrs.
func Attr(attrs json.RawMessage, name string) (json.RawMessage, bool) {
	return ParseAttrs(attrs).Get(name)
}

// plainKey drops the "pii" segments that SDK 1.7 added to the keys of content attributes.
func plainKey(key string) string {
	if !strings.Contains(key, "pii") {
		return key
	}
	segments := slices.DeleteFunc(strings.Split(key, "."), func(s string) bool { return s == "pii" })
	return strings.Join(segments, ".")
}

// endingSpans are the spans whose end means that the call is over. job_entrypoint is not among them: before SDK 1.8 it
// ends when the developer's function returns, which is usually right after the session started.
var endingSpans = map[string]bool{"agent_session": true, "session_close": true, "job_shutdown": true}

// maxToolErrors bounds TraceSummary.ToolErrors.
const maxToolErrors = 100

// TraceSummary is what the spans of a session say about the call as a whole. Merging summaries gives the same result
// in any order and however often a span is seen; so it holds no counts, which the store takes from its rows.
type TraceSummary struct {
	First time.Time `json:"first,omitzero"` // earliest start of a span
	Last  time.Time `json:"last,omitzero"`  // latest start or end of a span

	Ended     bool      `json:"ended,omitempty"`   // a span that ends with the call has ended
	EndedAt   time.Time `json:"ended_at,omitzero"` // latest end of such a span
	Started   time.Time `json:"started,omitzero"`  // start of the agent_session span
	RoomName  string    `json:"room_name,omitempty"`
	AgentName string    `json:"agent_name,omitempty"`

	ToolErrors []ToolError `json:"tool_errors,omitempty"` // by time, at most 100
}

// ToolError is a function_tool span that failed.
type ToolError struct {
	At     time.Time `json:"at"`
	SpanID string    `json:"span_id"`
	Tool   string    `json:"tool"`
}

// Summarize makes the summary of some spans of one session. Room and agent are for the caller to fill in.
func Summarize(spans []Span) TraceSummary {
	var s TraceSummary
	var failed []ToolError
	for i := range spans {
		if e := s.add(&spans[i]); e != nil {
			failed = append(failed, *e)
		}
	}
	s.addToolErrors(failed)
	return s
}

// add takes one span into the summary and returns its tool error, if it is one.
func (s *TraceSummary) add(sp *Span) (failed *ToolError) {
	s.First = earlier(s.First, sp.Start)
	s.Last = later(s.Last, later(sp.Start, sp.End))
	switch {
	case sp.Name == "agent_session":
		s.Started = earlier(s.Started, sp.Start)
	case sp.Name == "function_tool":
		attrs := ParseAttrs(sp.Attributes)
		if sp.StatusCode == "error" || attrs.Text("function_tool.is_error") == "true" {
			tool := cmp.Or(attrs.Text("function_tool.name"), attrs.Text("gen_ai.tool.name"))
			failed = &ToolError{At: sp.Start, SpanID: sp.SpanID, Tool: tool}
		}
	}
	if endingSpans[sp.Name] && !sp.End.IsZero() {
		s.Ended = true
		s.EndedAt = later(s.EndedAt, sp.End)
	}
	return failed
}

// Merge takes another summary of the same session into this one.
func (s *TraceSummary) Merge(o TraceSummary) {
	s.First, s.Last = earlier(s.First, o.First), later(s.Last, o.Last)
	s.Started = earlier(s.Started, o.Started)
	s.Ended = s.Ended || o.Ended
	s.EndedAt = later(s.EndedAt, o.EndedAt)
	s.RoomName, s.AgentName = max(s.RoomName, o.RoomName), max(s.AgentName, o.AgentName)
	s.addToolErrors(o.ToolErrors)
}

func (s *TraceSummary) addToolErrors(add []ToolError) {
	if len(add) == 0 {
		return
	}
	all := slices.Concat(s.ToolErrors, add)
	slices.SortFunc(all, func(a, b ToolError) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.SpanID, b.SpanID), cmp.Compare(a.Tool, b.Tool))
	})
	all = slices.CompactFunc(all, func(a, b ToolError) bool {
		return a.At.Equal(b.At) && a.SpanID == b.SpanID && a.Tool == b.Tool
	})
	s.ToolErrors = all[:min(len(all), maxToolErrors)]
}

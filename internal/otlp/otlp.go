// Package otlp reads what OpenTelemetry SDKs and Collectors export (logs, traces and metrics, as protobuf or JSON,
// gzipped or not) and turns it into the records of package session, grouped by the session they belong to. It is pure:
// a body in, records out.
//
// Decoding is lenient about records and strict about bodies. A record that makes no sense is counted as dropped, or
// kept as a plain log line; only a body that is not OTLP at all, or that is too large, is an error. The SDKs throw a
// refused batch away, and one of them then does not even upload its report.
package otlp

import (
	"io"

	"google.golang.org/protobuf/proto"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"sidetone/internal/session"
)

// Encoding is how a body is written. Replies use the encoding of the request.
type Encoding int

// The two encodings of OTLP over HTTP.
const (
	Protobuf Encoding = iota
	JSON
)

// ContentType is the media type of the encoding as replies name it.
func (e Encoding) ContentType() string {
	if e == JSON {
		return "application/json"
	}
	return "application/x-protobuf"
}

// Origin says what a group of records is about.
type Origin struct {
	// Key is the session. Its Room is empty when the client named only a job; both are empty when it named neither,
	// and then TraceID or Service is set.
	Key     session.Key
	TraceID string // lower-case hex; only for logs and spans without a session
	Service string // service.name of the resource, "" when not given

	RoomName  string // "" when not given
	AgentName string
}

// Logs is one decoded batch of log records.
type Logs struct {
	Groups  []LogGroup // in order of first appearance
	Dropped int        // records with neither a session nor a trace
}

// LogGroup is what a batch says about one session or trace.
type LogGroup struct {
	Origin
	Signals session.LogSignals  // what the special records say
	Records []session.LogRecord // application logs
}

// Traces is one decoded batch of spans.
type Traces struct {
	Groups  []TraceGroup
	Dropped int // spans without a valid trace and span id
}

// TraceGroup is what a batch says about one session or trace.
type TraceGroup struct {
	Origin
	Spans   []session.Span
	Summary session.TraceSummary
}

// Metrics is one decoded batch of metric points.
type Metrics struct {
	Groups  []MetricGroup
	Dropped int // points with neither a session nor a service
}

// MetricGroup is what a batch says about one session, or about one service outside of sessions.
type MetricGroup struct {
	Origin
	Points []session.MetricPoint
}

// DecodeLogs reads a log export. contentType and contentEncoding are the request's headers; at most maxBytes are read
// after decompression. The encoding is valid even with an error, for the reply. Errors are UnsupportedType (media type
// or content encoding), TooLarge (bytes, or more records and attributes than are decoded at once) and Invalid.
//
// The messages of OTLP's collector service are wire-identical to LogsData, TracesData and MetricsData, and the
// packages of the former would bring gRPC with them.
func DecodeLogs(contentType, contentEncoding string, body io.Reader, maxBytes int64) (*Logs, Encoding, error) {
	var data logspb.LogsData
	enc, err := decode(contentType, contentEncoding, body, maxBytes, logsShape, &data)
	if err != nil {
		return nil, enc, err
	}
	return convertLogs(&data), enc, nil
}

// DecodeTraces reads a span export; otherwise like DecodeLogs.
func DecodeTraces(contentType, contentEncoding string, body io.Reader, maxBytes int64) (*Traces, Encoding, error) {
	var data tracepb.TracesData
	enc, err := decode(contentType, contentEncoding, body, maxBytes, tracesShape, &data)
	if err != nil {
		return nil, enc, err
	}
	return convertTraces(&data), enc, nil
}

// DecodeMetrics reads a metric export; otherwise like DecodeLogs.
func DecodeMetrics(contentType, contentEncoding string, body io.Reader, maxBytes int64) (*Metrics, Encoding, error) {
	var data metricspb.MetricsData
	enc, err := decode(contentType, contentEncoding, body, maxBytes, metricsShape, &data)
	if err != nil {
		return nil, enc, err
	}
	return convertMetrics(&data), enc, nil
}

func decode(contentType, contentEncoding string, body io.Reader, maxBytes int64, s *shape, into proto.Message) (Encoding, error) {
	enc, err := encodingOf(contentType)
	if err != nil {
		return enc, err
	}
	buf, err := readBody(contentEncoding, body, maxBytes)
	if err != nil {
		return enc, err
	}
	defer buf.release() // nothing decoded refers to the body: protobuf and JSON both copy
	if enc == JSON {
		return enc, unmarshalJSON(buf.Bytes(), into)
	}
	return enc, unmarshalProtobuf(buf.Bytes(), s, into)
}

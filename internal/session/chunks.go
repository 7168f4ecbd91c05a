package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// ChunkKind says what a chunk holds. The numbers are stored.
type ChunkKind int

// The kinds of chunks.
const (
	ChunkSpans   ChunkKind = 1
	ChunkLogs    ChunkKind = 2
	ChunkMetrics ChunkKind = 3
)

// Chunk is some spans, log records or metric points that arrived together: stored whole, read whole. A call is read far
// more rarely than its spans arrive, so they are not rows of their own.
type Chunk struct {
	Kind ChunkKind
	Data []byte // JSON array of Span, LogRecord or MetricPoint
}

// chunks packs the batch.
func (t *Telemetry) chunks() ([]Chunk, error) {
	var out []Chunk
	for _, c := range []struct {
		kind ChunkKind
		n    int
		list any
	}{{ChunkSpans, len(t.Spans), t.Spans}, {ChunkLogs, len(t.Logs), withoutKeys(t.Logs)}, {ChunkMetrics, len(t.Points), t.Points}} {
		if c.n == 0 {
			continue
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(c.list); err != nil {
			return nil, err
		}
		out = append(out, Chunk{Kind: c.kind, Data: b.Bytes()})
	}
	return out, nil
}

// withoutKeys drops what can be computed again: random bytes do not compress.
func withoutKeys(logs []LogRecord) []LogRecord {
	out := slices.Clone(logs)
	for i := range out {
		out[i].Key = [16]byte{}
	}
	return out
}

// Spans answers the spans of a session by start time, each once, and how many there are in all. Spans of its traces
// that named no session are among them.
func (s *Service) Spans(ctx context.Context, id string, page Page) ([]Span, int, error) {
	chunks, err := s.store.Chunks(ctx, id, ChunkSpans)
	if err != nil {
		return nil, 0, err
	}
	spans, err := decodeChunks[Span](chunks)
	if err != nil {
		return nil, 0, err
	}
	var traces []string
	for i := range spans {
		if !slices.Contains(traces, spans[i].TraceID) {
			traces = append(traces, spans[i].TraceID)
		}
	}
	more, err := ownedByTraces[Span](ctx, s.store, traces, ChunkSpans)
	if err != nil {
		return nil, 0, err
	}
	type key struct{ trace, span string }
	spans = join(append(spans, more...), func(sp *Span) key { return key{sp.TraceID, sp.SpanID} }, fuller, func(a, b Span) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.TraceID, b.TraceID), cmp.Compare(a.SpanID, b.SpanID))
	})
	return slicePage(spans, page), len(spans), nil
}

// fuller decides between two versions of one span: the ended one, then the one that says more.
func fuller(a, b Span) Span {
	c := cmp.Or(a.End.Compare(b.End), cmp.Compare(len(a.Attributes)+len(a.Events), len(b.Attributes)+len(b.Events)),
		bytes.Compare(a.Attributes, b.Attributes), bytes.Compare(a.Events, b.Events), cmp.Compare(a.Name, b.Name))
	if c < 0 {
		return b
	}
	return a
}

// Logs answers the application logs of a session by time, each once, and how many there are in all.
func (s *Service) Logs(ctx context.Context, id string, page Page) ([]LogRecord, int, error) {
	chunks, err := s.store.Chunks(ctx, id, ChunkLogs)
	if err != nil {
		return nil, 0, err
	}
	logs, err := decodeChunks[LogRecord](chunks)
	if err != nil {
		return nil, 0, err
	}
	for i := range logs {
		logs[i].SetKey()
	}
	logs = join(logs, func(r *LogRecord) [16]byte { return r.Key },
		func(a, b LogRecord) LogRecord {
			a.ObservedAt = earlier(a.ObservedAt, b.ObservedAt)
			return a
		},
		func(a, b LogRecord) int { return cmp.Or(a.Time.Compare(b.Time), bytes.Compare(a.Key[:], b.Key[:])) })
	return slicePage(logs, page), len(logs), nil
}

func ownedByTraces[T any](ctx context.Context, store Store, traces []string, kind ChunkKind) ([]T, error) {
	if len(traces) == 0 {
		return nil, nil
	}
	chunks, err := store.TraceChunks(ctx, traces[:min(len(traces), 50)], kind)
	if err != nil {
		return nil, err
	}
	return decodeChunks[T](chunks)
}

func decodeChunks[T any](chunks [][]byte) ([]T, error) {
	var all []T
	for _, c := range chunks {
		var some []T
		if err := json.Unmarshal(c, &some); err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func slicePage[T any](list []T, p Page) []T {
	from := min(p.Offset, len(list))
	return list[from:min(from+p.Limit, len(list))]
}

// Duration of a span; zero when it never ended.
func (s *Span) Duration() time.Duration {
	if s.End.IsZero() {
		return 0
	}
	return s.End.Sub(s.Start)
}

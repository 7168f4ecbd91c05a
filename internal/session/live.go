package session

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
)

// silence is how long a session may go without a signal before it is taken to be over.
const silence = 30 * time.Minute

// endBatch is how many silent sessions one call of EndSilent ends at most.
const endBatch = 500

// Telemetry is what one export says about one session, trace or service.
type Telemetry struct {
	Key     Key    // the session; an empty room means none was named
	TraceID string // what to keep spans and logs under without a session
	Service string // what to keep metrics under without a session

	RoomName  string
	AgentName string

	Signals *LogSignals   // what log records say; nil when none came
	Trace   *TraceSummary // nil when no spans came
	Spans   []Span
	Logs    []LogRecord
	Points  []MetricPoint
}

// ingestAtOnce is how many sessions of one export are stored at a time.
const ingestAtOnce = 16

// IngestTelemetry stores what exports said, durably. Sending the same again changes nothing. A Collector exports for a
// whole fleet at once: its sessions are stored side by side, so that they share the store's transactions.
func (s *Service) IngestTelemetry(ctx context.Context, batch []Telemetry, now time.Time) error {
	if len(batch) == 1 {
		return s.ingestOne(ctx, &batch[0], now)
	}
	failed := make([]error, len(batch))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(ingestAtOnce, len(batch)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(batch); i = int(next.Add(1)) - 1 {
				if failed[i] = s.ingestOne(ctx, &batch[i], now); failed[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) ingestOne(ctx context.Context, t *Telemetry, now time.Time) error {
	chunks, err := t.chunks()
	if err != nil {
		return err
	}
	if t.Key.Room == "" {
		return s.store.AppendChunks(ctx, t.owner(), chunks)
	}
	arrived := t.arrived(now)
	fresh := parts{price: s.price, job: t.Key.Job, signals: arrived, first: now, last: now, created: now}
	if err := t.addTo(&fresh, now); err != nil {
		return err
	}
	rec, err := fresh.recordWithDocs()
	if err != nil {
		return err
	}
	_, err = s.store.Apply(ctx, Change{Key: t.Key, Fresh: rec, Chunks: chunks, Merge: func(prior Prior) (*Record, error) {
		p, err := s.load(prior)
		if err != nil {
			return nil, err
		}
		p.add(t.Key.Job, arrived, now)
		if err := t.addTo(p, now); err != nil {
			return nil, err
		}
		rec, err := p.recordWithDocs()
		if err != nil {
			return nil, err
		}
		rec.SameWords = p.report != nil && p.report.HasTranscript
		return rec, nil
	}})
	return err
}

// owner is what a batch without a session is kept under.
func (t *Telemetry) owner() string {
	if t.TraceID != "" {
		return TraceOwner(t.TraceID)
	}
	return "service:" + t.Service
}

// TraceOwner is what spans and logs without a session are kept under.
func TraceOwner(traceID string) string { return "trace:" + traceID }

func (t *Telemetry) arrived(now time.Time) Signals {
	sig := Signals{Logs: timeIf(len(t.Logs) > 0 || t.Signals != nil, now), Traces: timeIf(len(t.Spans) > 0, now),
		Metrics: timeIf(len(t.Points) > 0, now)}
	if l := t.Signals; l != nil {
		sig.Transcript = timeIf(len(l.Items) > 0, now)
		sig.Evaluations = timeIf(len(l.Evaluations) > 0, now)
		sig.Outcome = timeIf(l.Outcome != nil, now)
	}
	return sig
}

// addTo merges the batch into the parts of its session. Nothing the parts hold is shared with t afterwards.
func (t *Telemetry) addTo(p *parts, now time.Time) error {
	log := LogSignals{AgentName: t.AgentName, RoomName: t.RoomName}
	if t.Signals != nil {
		// Merging sorts and stamps in place, and this may run more than once.
		doc, err := MarshalLogSignals(t.Signals)
		if err != nil {
			return err
		}
		own, err := UnmarshalLogSignals(doc)
		if err != nil {
			return err
		}
		own.Received(now)
		log.Merge(*own)
	}
	if p.log != nil {
		log.Merge(*p.log)
	}
	p.log = &log
	if t.Trace != nil {
		trace := TraceSummary{RoomName: t.RoomName, AgentName: t.AgentName}
		trace.Merge(*t.Trace)
		if p.trace != nil {
			trace.Merge(*p.trace)
		}
		p.trace = &trace
	}
	return nil
}

// recordWithDocs is the record together with the documents of what telemetry said.
func (p *parts) recordWithDocs() (*Record, error) {
	rec := p.record()
	if p.log != nil && (p.log.HasContent() || p.log.AgentName != "" || p.log.RoomName != "" || !p.log.FirstAt.IsZero()) {
		doc, err := MarshalLogSignals(p.log)
		if err != nil {
			return nil, err
		}
		rec.Docs[DocLog] = doc
	}
	if p.trace != nil {
		doc, err := json.Marshal(p.trace)
		if err != nil {
			return nil, err
		}
		rec.Docs[DocTrace] = doc
	}
	return rec, nil
}

// EndSilent ends the sessions that have been silent too long and returns how many. A signal that comes after all opens
// the session again.
func (s *Service) EndSilent(ctx context.Context, now time.Time) (int, error) {
	keys, err := s.store.Silent(ctx, now.Add(-silence), endBatch)
	if err != nil {
		return 0, err
	}
	ended := 0
	for _, key := range keys {
		_, err := s.store.Apply(ctx, Change{Key: key, OnlyExisting: true, Merge: func(prior Prior) (*Record, error) {
			p, err := s.load(prior)
			if err != nil {
				return nil, err
			}
			// A signal may have come since the session was found silent.
			p.abandoned = p.abandoned || !p.last.After(now.Add(-silence))
			rec := p.record()
			rec.SameWords = true
			return rec, nil
		}})
		if err != nil {
			return ended, err
		}
		ended++
	}
	return ended, nil
}

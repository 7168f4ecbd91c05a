package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"sidetone/internal/errs"
)

// ReportParser parses a stored report document; package report provides it.
type ReportParser func(doc []byte) (*Report, error)

// Pricer estimates what a call cost in USD from its usage totals or, when there are none, from its messages; nil when
// that is not known as a whole. Package price provides it.
type Pricer func(usage []Usage, items []Item) *float64

// Service is what the program can do with sessions.
type Service struct {
	store      Store
	recordings Recordings
	parse      ReportParser
	price      Pricer
	log        *slog.Logger
}

// NewService wires the domain to its store, its recordings, the parser of stored reports and the prices of models.
func NewService(store Store, recordings Recordings, parse ReportParser, price Pricer, log *slog.Logger) *Service {
	return &Service{store: store, recordings: recordings, parse: parse, price: price, log: log}
}

// Upload is one received session report, ready to be stored.
type Upload struct {
	Report *Report
	Doc    []byte          // what Report was parsed from, in the form the ReportParser reads
	Audio  StagedRecording // nil when none came
}

// NewRecording starts writing a recording.
func (s *Service) NewRecording(ctx context.Context) (StagedRecording, error) {
	return s.recordings.Create(ctx)
}

// Ingest stores an upload and returns its session id. When it returns nil the report and its recording are durable.
// The upload's audio is committed or aborted in every case.
func (s *Service) Ingest(ctx context.Context, up Upload, now time.Time) (id string, err error) {
	var rec *Recording
	if up.Audio != nil {
		r, err := up.Audio.Commit(ctx)
		if err != nil {
			up.Audio.Abort()
			return "", err
		}
		if r.Taken != nil {
			r.Taken.At = now
		}
		rec = &r
	}
	r := up.Report
	key := Key{Room: r.RoomID, Job: r.JobID}
	if r.SessionID != "" {
		key = Key{Room: r.SessionID, Job: r.JobID, Exact: true}
	}
	arrived := Signals{Report: now, Audio: timeIf(rec != nil, now), Transcript: timeIf(r.HasTranscript, now),
		Evaluations: timeIf(len(r.Evaluations) > 0, now), Outcome: timeIf(r.Outcome != nil, now)}
	p := parts{price: s.price, job: key.Job, report: r, recording: rec, signals: arrived, first: now, last: now, created: now}
	fresh := p.record()
	fresh.Docs[DocReport] = up.Doc
	applied, err := s.store.Apply(ctx, Change{Key: key, Fresh: fresh, Merge: func(prior Prior) (*Record, error) {
		p, err := s.load(prior)
		if err != nil {
			return nil, err
		}
		p.report = r
		if rec != nil {
			p.recording = rec
		}
		p.add(key.Job, arrived, now)
		out := p.record()
		out.Docs[DocReport] = up.Doc
		return out, nil
	}})
	if err != nil {
		// An unavailable database may have committed all the same: then the row needs its recording, so the file stays
		// until the database has made up its mind.
		switch {
		case rec == nil:
		case errs.Is(err, errs.Unavailable):
			s.recordings.Doubt(rec.Key)
		default:
			s.deleteRecording(ctx, rec.Key)
		}
		return "", err
	}
	if rec != nil {
		s.recordings.Kept(rec.Key)
	}
	if applied.Dropped != nil {
		s.deleteRecording(ctx, applied.Dropped.Key)
	}
	return applied.ID, nil
}

// load gathers the stored parts of a session.
func (s *Service) load(prior Prior) (*parts, error) {
	old := prior.Session
	p := &parts{price: s.price, job: prior.JobKey, recording: old.Recording, signals: old.Signals,
		first: old.FirstSignalAt, last: old.LastSignalAt, created: old.CreatedAt}
	doc, err := prior.Doc(DocReport)
	if err != nil {
		return nil, err
	}
	if doc != nil {
		if p.report, err = s.parse(doc); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "a stored report cannot be read")
		}
	}
	if doc, err = prior.Doc(DocLog); err != nil {
		return nil, err
	}
	if doc != nil {
		if p.log, err = UnmarshalLogSignals(doc); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "stored signals cannot be read")
		}
	}
	if doc, err = prior.Doc(DocTrace); err != nil {
		return nil, err
	}
	if doc != nil {
		p.trace = new(TraceSummary)
		if err := json.Unmarshal(doc, p.trace); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "a stored trace summary cannot be read")
		}
	}
	// An end that no signal explains was given to a session that fell silent.
	p.abandoned = !old.EndedAt.IsZero() && p.end(orElse(p.report, noReport), orElse(p.log, noLog), orElse(p.trace, noTrace)).IsZero()
	return p, nil
}

// add notes that signals arrived.
func (p *parts) add(job string, arrived Signals, now time.Time) {
	p.job = firstString(p.job, job)
	p.signals = p.signals.merge(arrived)
	p.first, p.last = earlier(p.first, now), later(p.last, now)
	p.abandoned = false
}

// merge keeps the first arrival of each signal.
func (s Signals) merge(o Signals) Signals {
	return Signals{
		Report: earlier(s.Report, o.Report), Transcript: earlier(s.Transcript, o.Transcript), Audio: earlier(s.Audio, o.Audio),
		Logs: earlier(s.Logs, o.Logs), Traces: earlier(s.Traces, o.Traces), Metrics: earlier(s.Metrics, o.Metrics),
		Evaluations: earlier(s.Evaluations, o.Evaluations), Outcome: earlier(s.Outcome, o.Outcome),
	}
}

// ListRow is one row of a session list.
type ListRow struct {
	Session
	MatchSnippet string // "" unless the list was a search
}

// List answers one page of sessions, newest end first and active ones before all.
func (s *Service) List(ctx context.Context, f Filter, page Page) ([]ListRow, int, error) {
	listed, total, err := s.store.List(ctx, f, page)
	if err != nil {
		return nil, 0, err
	}
	rows := make([]ListRow, len(listed))
	failed := make([]error, len(listed))
	var snippets sync.WaitGroup
	for i, l := range listed {
		rows[i].Session = l.Session
		if l.Docs == nil {
			continue
		}
		// Each passage is cut from a whole report that has to be parsed: most of the work of a search.
		snippets.Go(func() { rows[i].MatchSnippet, failed[i] = s.snippet(l, f.Search) })
	}
	snippets.Wait()
	return rows, total, errors.Join(failed...)
}

func (s *Service) snippet(l Listed, q Query) (string, error) {
	p, err := s.load(Prior{Session: l.Session, Doc: docsOf(l.Docs)})
	if err != nil {
		return "", err
	}
	return Snippet(SearchText(p.items()), q), nil
}

// Get answers everything about one session.
func (s *Service) Get(ctx context.Context, id string) (*Detail, error) {
	st, err := s.store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	p, err := s.load(Prior{Session: st.Session, JobKey: st.JobKey, Doc: docsOf(st.Docs)})
	if err != nil {
		return nil, err
	}
	a := p.assemble()
	a.session.ID = st.Session.ID
	// A call keeps the cost it was stored with: prices may have changed since, and lists show the stored one.
	a.session.EstimatedCostUSD = st.Session.EstimatedCostUSD
	d := &Detail{Session: a.session, Items: a.items, Metrics: a.metrics(), Tags: a.tags,
		Evaluations: a.evaluations, Outcome: a.outcome, Usage: a.usage, Options: a.options}
	if p.report != nil {
		d.Events = p.report.Events
		d.ReportDoc = st.Docs[DocReport]
	}
	return d, nil
}

// Recording opens the recording of a session.
func (s *Service) Recording(ctx context.Context, id string) (Session, io.ReadSeekCloser, error) {
	st, err := s.store.Get(ctx, id)
	if err != nil {
		return Session{}, nil, err
	}
	if st.Session.Recording == nil {
		return Session{}, nil, errs.New(errs.NotFound, "this session has no recording")
	}
	f, err := s.recordings.Open(ctx, st.Session.Recording.Key)
	return st.Session, f, err
}

// RecordingLink is an address at which a client may fetch the recording of a session itself for a while, "" when it must
// be streamed. name, unless "", is what the client saves it as.
func (s *Service) RecordingLink(ctx context.Context, id, name string) (string, error) {
	st, err := s.store.Get(ctx, id)
	if err != nil {
		return "", err
	}
	if st.Session.Recording == nil {
		return "", errs.New(errs.NotFound, "this session has no recording")
	}
	return s.recordings.Link(ctx, st.Session.Recording.Key, name)
}

// Delete removes sessions with their recordings and returns how many there were.
func (s *Service) Delete(ctx context.Context, ids []string) (int, error) {
	n, recs, err := s.store.Delete(ctx, ids)
	if err != nil {
		return 0, err
	}
	for _, r := range recs {
		s.deleteRecording(ctx, r.Key)
	}
	return n, nil
}

// deleteRecording removes a recording that no session refers to any more. A failure costs disk space, not correctness.
func (s *Service) deleteRecording(ctx context.Context, key string) {
	if err := s.recordings.Delete(context.WithoutCancel(ctx), key); err != nil {
		s.log.Warn("an unused recording could not be deleted", "key", key, "error", err)
	}
}

func docsOf(docs map[DocKind][]byte) func(DocKind) ([]byte, error) {
	return func(k DocKind) ([]byte, error) { return docs[k], nil }
}

func timeIf(ok bool, t time.Time) time.Time {
	if ok {
		return t
	}
	return time.Time{}
}

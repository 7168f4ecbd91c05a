package eval

import (
	"context"
	"fmt"
	"time"

	"sidetone/internal/errs"
)

// Filter selects runs; zero fields do not filter. All are combined with AND, lists are any-of.
type Filter struct {
	AccountIDs, AgentIDs, Frameworks, TestingFrameworks []string

	// Statuses are effective ones: see StaleCutoff for the predicate.
	Statuses               []string
	StartedFrom, StartedTo time.Time // inclusive
}

// Page selects a slice of a list.
type Page struct{ Limit, Offset int }

// Store keeps eval runs. A case is identified by its run and its own id, so that no run can touch another's cases.
// Errors are of the kinds of package errs: Unavailable when the database is away, NotFound for an unknown id.
type Store interface {
	// Upsert makes one post durable, in one transaction: the run becomes MergeRun(stored, post.Run), each case of the
	// post replaces the stored one of the same run and id if its Rank is greater (keeping created_at and position), and
	// when any case changed the run's aggregate becomes Aggregate over the summaries of all its stored cases. The
	// Verdicts of a case are kept for alert rules with the receipt of the post that brought this version of the case.
	Upsert(ctx context.Context, post *Payload) error
	// List gives runs with the newest start first, ties by id; now decides what StaleCutoff says.
	List(ctx context.Context, f Filter, p Page, now time.Time) (runs []Run, total int, err error)
	Get(ctx context.Context, runID string) (*Run, error)
	// Cases gives all cases of a run in the order of Case.Position; without events, Events is nil.
	Cases(ctx context.Context, runID string, events bool) ([]Case, error)
	// Summaries gives the same in the same order, without any document.
	Summaries(ctx context.Context, runID string) ([]CaseSummary, error)
	Case(ctx context.Context, runID, caseID string) (*Case, error)
	// Delete removes runs with their cases; unknown ids are not an error.
	Delete(ctx context.Context, runIDs []string) (deleted int, err error)
}

// Service is what the program can do with eval runs.
type Service struct {
	store Store
	price Pricer
}

// NewService wires the domain to its store and to the prices of models.
func NewService(store Store, price Pricer) *Service { return &Service{store: store, price: price} }

// Receipt answers a post.
type Receipt struct {
	RunID     string
	CaseCount int // distinct cases in the post
}

// Ingest stores one post, received at now. When it returns nil the post is durable. body must not be changed later:
// the post aliases it, and after an error of the store it may still be on its way there. Errors are those of Parse and
// of the store.
func (s *Service) Ingest(ctx context.Context, body []byte, now time.Time) (Receipt, error) {
	post, err := Parse(body)
	if err != nil {
		return Receipt{}, err
	}
	post.Run.LastActivityAt, post.Run.CreatedAt = now, now
	for i := range post.Cases {
		c := &post.Cases[i]
		c.CreatedAt = now
		c.Price(s.price)
	}
	if err := s.store.Upsert(ctx, post); err != nil {
		return Receipt{}, err
	}
	return Receipt{RunID: post.Run.ID, CaseCount: len(post.Cases)}, nil
}

// List gives one page of runs and how many there are.
func (s *Service) List(ctx context.Context, f Filter, p Page, now time.Time) ([]Run, int, error) {
	return s.store.List(ctx, f, p, now)
}

// Get gives a run with its cases; with events only if asked. NotFound also for what is not a UUID.
func (s *Service) Get(ctx context.Context, runID string, events bool) (*Run, []Case, error) {
	id, ok := ParseID(runID)
	if !ok {
		return nil, nil, notFound("eval run")
	}
	run, err := s.store.Get(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	cases, err := s.store.Cases(ctx, id, events)
	if err != nil {
		return nil, nil, err
	}
	return run, cases, nil
}

// Case gives one case whole. NotFound also for what is not a UUID.
func (s *Service) Case(ctx context.Context, runID, caseID string) (*Case, error) {
	run, ok1 := ParseID(runID)
	id, ok2 := ParseID(caseID)
	if !ok1 || !ok2 {
		return nil, notFound("eval case")
	}
	return s.store.Case(ctx, run, id)
}

// Compared is a comparison with its two runs.
type Compared struct {
	Base, Head *Run
	Comparison
}

// Compare compares two runs. InvalidQuery names a parameter that is missing, NotFound a run that is.
func (s *Service) Compare(ctx context.Context, base, head string) (*Compared, error) {
	var out Compared
	var cases [2][]CaseSummary
	for i, side := range []struct {
		name, id string
		run      **Run
	}{{"base", base, &out.Base}, {"head", head, &out.Head}} {
		if side.id == "" {
			return nil, &errs.Error{Kind: errs.InvalidQuery, Message: side.name + " is required: the id of a run",
				Fields: []errs.Field{{Field: side.name, Message: "is required: the id of a run"}}}
		}
		id, ok := ParseID(side.id)
		if !ok {
			return nil, notFound(side.name + " run")
		}
		run, err := s.store.Get(ctx, id)
		if err != nil {
			if errs.Is(err, errs.NotFound) {
				return nil, notFound(side.name + " run")
			}
			return nil, err
		}
		*side.run = run
		if cases[i], err = s.store.Summaries(ctx, id); err != nil {
			return nil, err
		}
	}
	out.Comparison = Compare(cases[0], cases[1])
	return &out, nil
}

// MaxDelete is how many runs one request may delete: the contract's number.
const MaxDelete = 200

// Delete removes runs with all their cases and says how many there were. Errors: Invalid naming run_ids, TooMany.
func (s *Service) Delete(ctx context.Context, runIDs []string) (int, error) {
	if len(runIDs) == 0 {
		return 0, errs.InvalidField("run_ids", "must name at least one run")
	}
	if len(runIDs) > MaxDelete {
		return 0, errs.New(errs.TooMany, "run_ids: at most %d runs can be deleted at once", MaxDelete)
	}
	var bad []errs.Field
	ids := make([]string, len(runIDs))
	for i, raw := range runIDs {
		id, ok := ParseID(raw)
		if !ok {
			bad = append(bad, errs.Field{Field: fmt.Sprintf("run_ids[%d]", i), Message: "must be a UUID"})
		}
		ids[i] = id
	}
	if err := errs.InvalidFields(bad); err != nil {
		return 0, err
	}
	return s.store.Delete(ctx, ids)
}

func notFound(what string) error { return errs.New(errs.NotFound, "no such %s", what) }

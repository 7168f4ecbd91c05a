package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sidetone/internal/errs"
)

func TestCompare(t *testing.T) {
	c := func(id, file, name, status string, ttft ...float64) CaseSummary {
		return CaseSummary{ID: id, File: file, Name: name, Status: status, TTFT: ttft}
	}
	judged := c("h9", "j", "judged", CasePassed)
	judged.JudgeFailed = true
	base := []CaseSummary{
		c("b1", "a", "broke", CasePassed, 100), c("b2", "a", "fixed", CaseErrored, 200), c("b3", "a", "broken", CaseFailed), c("b4", "a", "fine", CasePassed),
		c("b5", "", "gone", CaseFailed), c("b6", "a", "unskipped", CaseSkipped), c("b7", "a", "skipped now", CaseFailed),
		c("b8", "a", "twice", CasePassed), c("b8x", "a", "twice", CaseFailed), c("b9", "j", "judged", CasePassed), c("b10", "a", "fails unskipped", CaseSkipped),
		c("b11", "old.py", "moved", CasePassed),
	}
	head := []CaseSummary{
		judged, c("h1", "a", "broke", CaseErrored, 150), c("h2", "a", "fixed", CasePassed, 250, 300), c("h3", "a", "broken", CaseErrored), c("h4", "a", "fine", CasePassed),
		c("h6", "a", "unskipped", CasePassed), c("h7", "a", "skipped now", CaseSkipped), c("h8", "a", "twice", CaseFailed), c("h8x", "a", "twice", CasePassed), c("h8y", "a", "twice", CasePassed),
		c("h10", "a", "fails unskipped", CaseFailed), c("h11", "new.py", "moved", CasePassed),
	}
	got := Compare(base, head)
	list := func(cases []ComparedCase) string {
		var b strings.Builder
		for _, c := range cases {
			fmt.Fprintf(&b, "%s/%s %s>%s %s>%s; ", deref(c.File), c.Name, deref(c.BaseCaseID), deref(c.HeadCaseID), deref(c.BaseStatus), deref(c.HeadStatus))
		}
		return strings.TrimSuffix(b.String(), "; ")
	}
	for _, tt := range []struct{ what, got, want string }{
		{"newly failing", list(got.NewlyFailing), "a/broke b1>h1 passed>errored; a/fails unskipped b10>h10 skipped>failed; a/twice b8>h8 passed>failed; j/judged b9>h9 passed>failed"},
		{"newly passing", list(got.NewlyPassing), "a/fixed b2>h2 errored>passed; a/twice b8x>h8x failed>passed"},
		{"still failing", list(got.StillFailing), "a/broken b3>h3 failed>errored"},
		{"added", list(got.Added), "a/twice >h8y >passed; new.py/moved >h11 >passed"},
		{"removed", list(got.Removed), "/gone b5> failed>; old.py/moved b11> passed>"},
		{"unchanged", fmt.Sprint(got.Unchanged), "3"},
		{"p50", show(got.TTFTP50), `{"base":100,"head":250,"change":150}`},
		{"p95", show(got.TTFTP95), `{"base":200,"head":300,"change":100}`},
		{"avg", show(got.TTFTAvg), `{"base":150,"head":233,"change":83}`},
		{"pass rate", show(got.PassRate), `{"base":0.5,"head":0.5454545454545454,"change":0.045454545454545414}`},
	} {
		if tt.got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.what, tt.got, tt.want)
		}
	}
	if got.Removed[0].File != nil {
		t.Error("a case without a file has a null file")
	}
	const empty = `{"newly_failing":[],"newly_passing":[],"still_failing":[],"added":[],"removed":[],"unchanged":0,` +
		`"pass_rate":{"base":null,"head":null,"change":null},"ttft_p50_ms":{"base":null,"head":null,"change":null},` +
		`"ttft_p95_ms":{"base":null,"head":null,"change":null},"ttft_avg_ms":{"base":null,"head":null,"change":null}}`
	if got := show(Compare(nil, nil)); got != empty {
		t.Errorf("two empty runs: %s", got)
	}
}

// stub answers what a test sets and fails on everything else.
type stub struct {
	Store // nil: any other call panics
	posts []*Payload
	runs  map[string]*Run
	gone  []string
}

func (s *stub) Upsert(_ context.Context, p *Payload) error {
	s.posts = append(s.posts, p)
	return nil
}

func (s *stub) Get(_ context.Context, id string) (*Run, error) {
	if r := s.runs[id]; r != nil {
		return r, nil
	}
	return nil, errs.New(errs.NotFound, "no such thing")
}

func (s *stub) Summaries(context.Context, string) ([]CaseSummary, error) { return nil, nil }

func (s *stub) Delete(_ context.Context, ids []string) (int, error) {
	s.gone = ids
	return len(ids), nil
}

func TestServiceIngest(t *testing.T) {
	var store stub
	s := NewService(&store, func(_, model string, _, _, _ int64) (float64, bool) { return 0.25, model == "gpt-4.1-mini" })
	now := start.Add(time.Hour)
	got, err := s.Ingest(t.Context(), fixture(t, "vitest-evals/run.json"), now)
	if err != nil || got != (Receipt{RunID: "7a0d4b61-52c1-4a57-9a5e-0c7b3b1f6f10", CaseCount: 4}) {
		t.Fatalf("%+v %v", got, err)
	}
	p := store.posts[0]
	if p.Run.LastActivityAt != now || p.Run.CreatedAt != now || p.Cases[3].CreatedAt != now || show(p.Cases[0].CostUSD) != "0.25" || p.Cases[2].CostUSD != nil {
		t.Errorf("%+v", p)
	}
	if _, err := s.Ingest(t.Context(), []byte("{}"), now); !errs.Is(err, errs.Invalid) || len(store.posts) != 1 {
		t.Errorf("a refused post reached the store: %v", err)
	}
}

func TestServiceRefusesWrongIDs(t *testing.T) {
	store := stub{runs: map[string]*Run{caseID(1): {ID: caseID(1)}, caseID(2): {ID: caseID(2)}}}
	s := NewService(&store, nil)
	ctx := t.Context()
	if _, _, err := s.Get(ctx, "nope", false); !errs.Is(err, errs.NotFound) {
		t.Errorf("get: %v", err)
	}
	for _, ids := range [][2]string{{"nope", caseID(1)}, {caseID(1), "nope"}} {
		if _, err := s.Case(ctx, ids[0], ids[1]); !errs.Is(err, errs.NotFound) {
			t.Errorf("case %v: %v", ids, err)
		}
	}
	for _, tt := range []struct {
		base, head string
		kind       errs.Kind
		names      string
	}{
		{"", caseID(1), errs.InvalidQuery, "base"},
		{caseID(1), "", errs.InvalidQuery, "head"},
		{"nope", caseID(1), errs.NotFound, "base"},
		{caseID(1), caseID(3), errs.NotFound, "head"},
	} {
		if _, err := s.Compare(ctx, tt.base, tt.head); !errs.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.names) {
			t.Errorf("compare %q %q: %v", tt.base, tt.head, err)
		}
	}
	if got, err := s.Compare(ctx, caseID(1), strings.ToUpper(caseID(2))); err != nil || got.Base.ID != caseID(1) || got.Head.ID != caseID(2) {
		t.Errorf("compare: %+v %v", got, err)
	}
	var e *errs.Error
	if _, err := s.Delete(ctx, []string{caseID(1), "nope"}); !errors.As(err, &e) || e.Fields[0].Field != "run_ids[1]" {
		t.Errorf("delete: %v", err)
	}
	if _, err := s.Delete(ctx, nil); !errs.Is(err, errs.Invalid) {
		t.Errorf("delete nothing: %v", err)
	}
	if _, err := s.Delete(ctx, make([]string, MaxDelete+1)); !errs.Is(err, errs.TooMany) {
		t.Errorf("delete too many: %v", err)
	}
	if n, err := s.Delete(ctx, []string{strings.ToUpper(caseID(1))}); n != 1 || err != nil || store.gone[0] != caseID(1) {
		t.Errorf("delete: %d %v %v", n, err, store.gone)
	}
}

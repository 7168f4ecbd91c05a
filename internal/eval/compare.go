package eval

import (
	"cmp"
	"slices"
)

// Comparison is what changed from one run to another. Lists are ordered by file, name and place in the run.
type Comparison struct {
	NewlyFailing []ComparedCase `json:"newly_failing" doc:"Fails or errs in head, did not in base"`
	NewlyPassing []ComparedCase `json:"newly_passing" doc:"Passes in head, failed or erred in base"`
	StillFailing []ComparedCase `json:"still_failing" doc:"Fails or errs in both"`
	Added        []ComparedCase `json:"added" doc:"Only in head, whatever the result"`
	Removed      []ComparedCase `json:"removed" doc:"Only in base, whatever the result"`
	Unchanged    int            `json:"unchanged" doc:"Cases of both runs that are in none of the lists"`

	PassRate Change `json:"pass_rate"`
	TTFTP50  Change `json:"ttft_p50_ms"`
	TTFTP95  Change `json:"ttft_p95_ms"`
	TTFTAvg  Change `json:"ttft_avg_ms"`
}

// ComparedCase is one test in both runs. The base or head fields are null where the run does not have it.
type ComparedCase struct {
	File       *string `json:"file"`
	Name       string  `json:"name"`
	BaseCaseID *string `json:"base_case_id"`
	HeadCaseID *string `json:"head_case_id"`
	BaseStatus *string `json:"base_status" doc:"As it counts: a passed case that a judge failed is failed"`
	HeadStatus *string `json:"head_status"`
}

// Change is one number in both runs; Change is head minus base. Each is null where it is not known.
type Change struct {
	Base   *float64 `json:"base"`
	Head   *float64 `json:"head"`
	Change *float64 `json:"change"`
}

type testKey struct{ file, name string }

// Compare matches the cases of two runs by file and name. Cases that share both are paired in the order given, which
// should be the order in which they ran.
func Compare(base, head []CaseSummary) Comparison {
	out := Comparison{NewlyFailing: []ComparedCase{}, NewlyPassing: []ComparedCase{}, StillFailing: []ComparedCase{},
		Added: []ComparedCase{}, Removed: []ComparedCase{}}

	waiting := make(map[testKey][]*CaseSummary, len(base))
	for i := range base {
		k := testKey{base[i].File, base[i].Name}
		waiting[k] = append(waiting[k], &base[i])
	}
	matched := make(map[*CaseSummary]bool, len(base))
	for i := range head {
		h := &head[i]
		k := testKey{h.File, h.Name}
		if len(waiting[k]) == 0 {
			out.Added = append(out.Added, compared(nil, h))
			continue
		}
		b := waiting[k][0]
		waiting[k] = waiting[k][1:]
		matched[b] = true
		switch {
		case failing(h) && failing(b):
			out.StillFailing = append(out.StillFailing, compared(b, h))
		case failing(h):
			out.NewlyFailing = append(out.NewlyFailing, compared(b, h))
		case failing(b) && h.Outcome() == CasePassed:
			out.NewlyPassing = append(out.NewlyPassing, compared(b, h))
		default:
			out.Unchanged++
		}
	}
	for i := range base {
		if b := &base[i]; !matched[b] {
			out.Removed = append(out.Removed, compared(b, nil))
		}
	}
	for _, list := range [][]ComparedCase{out.NewlyFailing, out.NewlyPassing, out.StillFailing, out.Added, out.Removed} {
		slices.SortStableFunc(list, func(a, b ComparedCase) int {
			return cmp.Or(cmp.Compare(deref(a.File), deref(b.File)), cmp.Compare(a.Name, b.Name))
		})
	}

	b, h := Aggregate(base), Aggregate(head)
	out.PassRate = change(b.PassRate, h.PassRate)
	out.TTFTP50 = change(asFloat(b.TTFTP50MS), asFloat(h.TTFTP50MS))
	out.TTFTP95 = change(asFloat(b.TTFTP95MS), asFloat(h.TTFTP95MS))
	out.TTFTAvg = change(asFloat(b.TTFTAvgMS), asFloat(h.TTFTAvgMS))
	return out
}

func failing(c *CaseSummary) bool {
	o := c.Outcome()
	return o == CaseFailed || o == CaseErrored
}

func compared(base, head *CaseSummary) ComparedCase {
	one := head
	if one == nil {
		one = base
	}
	out := ComparedCase{Name: one.Name}
	if one.File != "" {
		out.File = &one.File
	}
	if base != nil {
		status := base.Outcome()
		out.BaseCaseID, out.BaseStatus = &base.ID, &status
	}
	if head != nil {
		status := head.Outcome()
		out.HeadCaseID, out.HeadStatus = &head.ID, &status
	}
	return out
}

func change(base, head *float64) Change {
	c := Change{Base: base, Head: head}
	if base != nil && head != nil {
		d := *head - *base
		c.Change = &d
	}
	return c
}

func asFloat(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

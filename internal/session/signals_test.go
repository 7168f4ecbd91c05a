package session

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

var signalsBase = time.Date(2026, 11, 21, 5, 20, 0, 123456000, time.UTC)

// someSignals is one random record's worth of signals. The ranges are small on purpose, so that keys and times clash.
func someSignals(r *rand.Rand) LogSignals {
	at := func() time.Time {
		if r.IntN(4) == 0 {
			return time.Time{}
		}
		return signalsBase.Add(time.Duration(r.IntN(3)) * time.Second)
	}
	pick := func(ss ...string) string { return ss[r.IntN(len(ss))] }
	raw := func() json.RawMessage {
		return json.RawMessage(pick(`{"a":1}`, `{"a":2}`, `{"a":"<b>&\u2028é"}`, `{"a":1,"b":[]}`))
	}
	maybeRaw := func() json.RawMessage {
		if r.IntN(2) == 0 {
			return nil
		}
		return raw()
	}
	s := LogSignals{FirstAt: at(), AgentName: pick("", "support", "sales"), RoomName: pick("", "room-1")}
	s.LastAt = s.FirstAt
	switch r.IntN(5) {
	case 0:
		s.StartedAt, s.ReportTimestamp, s.Options, s.SDKVersion = at(), at(), maybeRaw(), pick("", "1.7.0", "1.8.0")
		for range r.IntN(3) {
			u := Usage{Type: "llm_usage", AudioDuration: 0.1, Raw: raw()}
			u.InputTokens = int64(u.Raw[5]) // what is parsed follows from the raw form, as in life
			s.Usage = append(s.Usage, u)
		}
		s.Tags = []Tag{{Name: pick("lk.success", "a:b"), Source: SourceOTLP, CreatedAt: at()}}
	case 1:
		s.Tags = []Tag{{Name: pick("a:b", "c"), Metadata: maybeRaw(), Source: pick(SourceOTLP, "report"), ObservedAt: at(), CreatedAt: at()}}
	case 2:
		s.Evaluations = []Evaluation{{Source: SourceOTLP, JudgeName: pick("j", "k"), Tag: pick("", "t"), Verdict: pick("pass", "fail"),
			Reasoning: pick("", "why"), ObservedAt: at(), CreatedAt: at(), Raw: raw()}}
	case 3:
		s.Outcome = &Outcome{Source: SourceOTLP, Outcome: pick("", "success", "fail"), Reason: pick("", "r"), ObservedAt: at(), CreatedAt: at(), Raw: raw()}
	default:
		it := Item{ID: pick("", "i1", "i2", "i3"), CreatedAt: at(), Raw: raw()}
		it.Text = "text of " + string(it.Raw)
		if len(it.Raw) > 8 {
			confidence := float64(len(it.Raw)) / 7
			it.TranscriptConfidence = &confidence
			it.Metrics = ItemMetrics{StartedSpeakingAt: signalsBase, LLM: Model{Provider: "openai", Name: "gpt"}}
		}
		it.Type = fmt.Sprint("t", len(it.Raw)%2)
		s.Items = []Item{it}
	}
	return s
}

func mustDoc(t *testing.T, s *LogSignals) string {
	t.Helper()
	doc, err := MarshalLogSignals(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// TestLogSignalsMergeIsASemilattice merges the same records in many orders, with repetitions, split into batches that
// are merged among themselves first, some of them through the stored document, and always expects the same result.
func TestLogSignalsMergeIsASemilattice(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		records := make([]LogSignals, 1+r.IntN(12))
		var want LogSignals
		for i := range records {
			records[i] = someSignals(r)
			want.Merge(records[i])
		}
		wantDoc := mustDoc(t, &want)
		for round := range 8 {
			var again []LogSignals
			for _, i := range r.Perm(len(records)) {
				for range 1 + r.IntN(2) {
					again = append(again, records[i])
				}
			}
			r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			got := mergeSplit(t, r, again)
			if doc := mustDoc(t, &got); doc != wantDoc {
				t.Fatalf("seed %d round %d: order changed the result\ngot  %s\nwant %s", seed, round, doc, wantDoc)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d round %d: equal documents but different values\ngot  %+v\nwant %+v", seed, round, got, want)
			}
		}
	}
}

// mergeSplit merges a list as a random tree.
func mergeSplit(t *testing.T, r *rand.Rand, list []LogSignals) LogSignals {
	var out LogSignals
	switch {
	case len(list) == 0:
	case len(list) < 3 || r.IntN(4) == 0:
		for _, s := range list {
			out.Append(s)
		}
		out.Merge(LogSignals{})
	default:
		cut := 1 + r.IntN(len(list)-1)
		out = mergeSplit(t, r, list[:cut])
		out.Merge(mergeSplit(t, r, list[cut:]))
	}
	if r.IntN(2) == 0 {
		back, err := UnmarshalLogSignals([]byte(mustDoc(t, &out)))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*back, out) {
			t.Fatalf("the document lost something\ngot  %+v\nwant %+v", *back, out)
		}
		out = *back
	}
	return out
}

func TestMergeLeavesItsArgumentAlone(t *testing.T) {
	a := LogSignals{Tags: []Tag{{Name: "a", CreatedAt: signalsBase.Add(time.Hour)}}, Outcome: &Outcome{Outcome: "fail"}}
	before := mustDoc(t, &a)
	var s LogSignals
	s.Merge(a)
	s.Received(signalsBase)
	s.Merge(LogSignals{Tags: []Tag{{Name: "a", CreatedAt: signalsBase}, {Name: "b"}}})
	if got := mustDoc(t, &a); got != before {
		t.Fatalf("changed to %s, was %s", got, before)
	}
}

func TestMergeChoices(t *testing.T) {
	early, late := signalsBase, signalsBase.Add(time.Minute)
	report := func(at time.Time, version string) LogSignals {
		return LogSignals{StartedAt: at, ReportTimestamp: at, SDKVersion: version, Usage: []Usage{{Type: version}}}
	}
	var s LogSignals
	s.Merge(report(late, "1.7"))
	s.Merge(report(early, "9.9"))
	if s.SDKVersion != "1.7" || s.Usage[0].Type != "1.7" || !s.StartedAt.Equal(early) || !s.ReportTimestamp.Equal(late) {
		t.Errorf("the latest report does not win: %+v", s)
	}
	s.Merge(LogSignals{Tags: []Tag{{Name: "t", CreatedAt: early}}})
	s.Merge(LogSignals{Tags: []Tag{{Name: "t", Metadata: json.RawMessage(`{}`), CreatedAt: late}}})
	if tag := s.Tags[0]; len(s.Tags) != 1 || tag.Metadata == nil || !tag.CreatedAt.Equal(early) {
		t.Errorf("metadata does not beat none, or the first arrival is lost: %+v", s.Tags)
	}
	eval := Evaluation{JudgeName: "j", Verdict: "fail", CreatedAt: late}
	s.Merge(LogSignals{Evaluations: []Evaluation{eval}})
	eval.CreatedAt = early
	s.Merge(LogSignals{Evaluations: []Evaluation{eval}})
	if len(s.Evaluations) != 1 || !s.Evaluations[0].CreatedAt.Equal(early) {
		t.Errorf("the same verdict twice: %+v", s.Evaluations)
	}
	eval.Verdict = "pass"
	s.Merge(LogSignals{Evaluations: []Evaluation{eval}})
	if len(s.Evaluations) != 2 {
		t.Errorf("another verdict of the same judge is lost: %+v", s.Evaluations)
	}
	short, long := Item{ID: "i", Raw: json.RawMessage(`{"id":"i"}`)}, Item{ID: "i", Text: "more", Raw: json.RawMessage(`{"id":"i","x":1}`)}
	s.Merge(LogSignals{Items: []Item{long}})
	s.Merge(LogSignals{Items: []Item{short}})
	if len(s.Items) != 1 || s.Items[0].Text != "more" {
		t.Errorf("the richer item does not win: %+v", s.Items)
	}
}

func TestItemsOfTheSameInstantKeepACallBeforeItsOutput(t *testing.T) {
	var s LogSignals
	s.Merge(LogSignals{Items: []Item{
		{ID: "a", Type: ItemFunctionOut, CreatedAt: signalsBase}, {ID: "z", Type: ItemFunctionCall, CreatedAt: signalsBase},
		{ID: "m", Type: ItemMessage, CreatedAt: signalsBase.Add(-time.Second)},
	}})
	if got := s.Items[0].ID + s.Items[1].ID + s.Items[2].ID; got != "mza" {
		t.Errorf("order %s, want mza", got)
	}
}

func TestHasContentAndReceived(t *testing.T) {
	s := LogSignals{AgentName: "a", RoomName: "r", FirstAt: signalsBase, LastAt: signalsBase}
	if s.HasContent() {
		t.Error("names and times alone are no content")
	}
	s.Merge(LogSignals{Outcome: &Outcome{Outcome: "success"}, Tags: []Tag{{Name: "t"}}, Evaluations: []Evaluation{{JudgeName: "j"}}})
	if !s.HasContent() {
		t.Error("an outcome is content")
	}
	s.Received(signalsBase)
	s.Received(signalsBase.Add(time.Hour))
	if !s.Outcome.CreatedAt.Equal(signalsBase) || !s.Tags[0].CreatedAt.Equal(signalsBase) || !s.Evaluations[0].CreatedAt.Equal(signalsBase) {
		t.Errorf("arrival times: %+v", s)
	}
}

package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// LogSignals is what the special log records of a session say (the scopes chat_history and evaluations), merged. It
// is stored as one document per session (MarshalLogSignals). Signals combine with Merge: the result is the same in any
// order, with any repetition and however the records were split into batches.
type LogSignals struct {
	StartedAt       time.Time // time of the "session report" record: when the session started
	ReportTimestamp time.Time // when the SDK made that report: when the session ended

	// Options, Usage and SDKVersion come from the same report: the one with the latest timestamp.
	Options    json.RawMessage // object, as sent
	Usage      []Usage
	SDKVersion string

	AgentName string
	RoomName  string

	Tags        []Tag        // by name
	Items       []Item       // as they were said
	Evaluations []Evaluation // by time
	Outcome     *Outcome

	FirstAt, LastAt time.Time // earliest and latest time of any log record of the session, as the client says
}

// HasContent reports whether there is more here than names and times, so that it is worth storing the document.
func (s *LogSignals) HasContent() bool {
	return !s.StartedAt.IsZero() || !s.ReportTimestamp.IsZero() || s.Options != nil || s.SDKVersion != "" || len(s.Usage) > 0 ||
		len(s.Tags) > 0 || len(s.Items) > 0 || len(s.Evaluations) > 0 || s.Outcome != nil
}

// Received stamps everything that has no arrival time yet. Merging keeps the earliest.
func (s *LogSignals) Received(now time.Time) {
	for i := range s.Tags {
		s.Tags[i].CreatedAt = firstTime(s.Tags[i].CreatedAt, now)
	}
	for i := range s.Evaluations {
		s.Evaluations[i].CreatedAt = firstTime(s.Evaluations[i].CreatedAt, now)
	}
	if s.Outcome != nil {
		s.Outcome.CreatedAt = firstTime(s.Outcome.CreatedAt, now)
	}
}

// Merge takes what other signals of the same session say into s. It is idempotent, commutative and associative:
// every field is a minimum, a maximum or a union by key whose clashes are decided by a total order.
func (s *LogSignals) Merge(o LogSignals) {
	s.mergeScalars(&o)
	s.Tags = joinTags(slices.Concat(s.Tags, o.Tags))
	s.Items = joinItems(slices.Concat(s.Items, o.Items))
	s.Evaluations = joinEvaluations(slices.Concat(s.Evaluations, o.Evaluations))
}

// Append is Merge without the joining and sorting of lists, for a decoder that takes many records one by one. s owns
// its lists until the last Append, which a Merge must follow (with the zero value if there is nothing else to merge).
func (s *LogSignals) Append(o LogSignals) {
	s.mergeScalars(&o)
	s.Tags = append(s.Tags, o.Tags...)
	s.Items = append(s.Items, o.Items...)
	s.Evaluations = append(s.Evaluations, o.Evaluations...)
}

func (s *LogSignals) mergeScalars(o *LogSignals) {
	if s.compareReport(o) < 0 {
		s.Options, s.Usage, s.SDKVersion = o.Options, o.Usage, o.SDKVersion
	}
	s.StartedAt = earlier(s.StartedAt, o.StartedAt)
	s.ReportTimestamp = later(s.ReportTimestamp, o.ReportTimestamp)
	s.AgentName, s.RoomName = max(s.AgentName, o.AgentName), max(s.RoomName, o.RoomName)
	s.FirstAt, s.LastAt = earlier(s.FirstAt, o.FirstAt), later(s.LastAt, o.LastAt)
	s.Outcome = joinOutcomes(s.Outcome, o.Outcome)
}

// compareReport orders two reports by their timestamp, and equal ones by content so that the choice is always the same.
func (s *LogSignals) compareReport(o *LogSignals) int {
	return cmp.Or(s.ReportTimestamp.Compare(o.ReportTimestamp),
		bytes.Compare(s.Options, o.Options),
		slices.CompareFunc(s.Usage, o.Usage, func(a, b Usage) int { return bytes.Compare(a.Raw, b.Raw) }),
		cmp.Compare(s.SDKVersion, o.SDKVersion))
}

// join makes one entry per key out of a list and orders it. combine makes one out of two entries with the same key; it
// must be idempotent, commutative and associative, and order total over keys.
func join[T any, K comparable](list []T, key func(*T) K, combine func(a, b T) T, order func(a, b T) int) []T {
	if len(list) == 0 {
		return nil
	}
	out := make([]T, 0, len(list))
	at := make(map[K]int, len(list))
	for i := range list {
		k := key(&list[i])
		if j, ok := at[k]; ok {
			out[j] = combine(out[j], list[i])
			continue
		}
		at[k] = len(out)
		out = append(out, list[i])
	}
	slices.SortFunc(out, order)
	return slices.Clip(out)
}

// joinTags makes one tag per name: metadata beats none, then the later setting wins.
func joinTags(list []Tag) []Tag {
	return join(list, func(t *Tag) string { return t.Name },
		func(a, b Tag) Tag {
			created := earlier(a.CreatedAt, b.CreatedAt)
			c := cmp.Or(compareBools(a.Metadata != nil, b.Metadata != nil), a.ObservedAt.Compare(b.ObservedAt),
				bytes.Compare(a.Metadata, b.Metadata), cmp.Compare(a.Source, b.Source))
			if c < 0 {
				a = b
			}
			a.CreatedAt = created
			return a
		},
		func(a, b Tag) int { return cmp.Compare(a.Name, b.Name) })
}

// joinItems makes one item per id: of two versions the longer one, which says more, wins.
func joinItems(list []Item) []Item {
	return join(list, itemKey,
		func(a, b Item) Item {
			if cmp.Or(cmp.Compare(len(a.Raw), len(b.Raw)), bytes.Compare(a.Raw, b.Raw), a.CreatedAt.Compare(b.CreatedAt)) < 0 {
				return b
			}
			return a
		},
		compareItems)
}

// itemKey is the id; an item without one is only ever equal to itself.
func itemKey(it *Item) string {
	if it.ID != "" {
		return it.ID
	}
	return "\x00" + string(it.Raw)
}

// compareItems orders a conversation. SDKs with millisecond clocks give a call and its output the same time.
func compareItems(a, b Item) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(itemRank(a.Type), itemRank(b.Type)),
		cmp.Compare(a.ID, b.ID), bytes.Compare(a.Raw, b.Raw))
}

func itemRank(kind string) int {
	switch kind {
	case ItemHandoff, ItemConfigUpdate:
		return 0
	case ItemFunctionCall:
		return 1
	case ItemFunctionOut:
		return 2
	}
	return 3
}

type evaluationKey struct{ judge, tag, verdict, reasoning, instructions string }

// joinEvaluations keeps one row per distinct verdict, with its first times.
func joinEvaluations(list []Evaluation) []Evaluation {
	return join(list,
		func(e *Evaluation) evaluationKey {
			return evaluationKey{e.JudgeName, e.Tag, e.Verdict, e.Reasoning, e.Instructions}
		},
		func(a, b Evaluation) Evaluation {
			a.CreatedAt = earlier(a.CreatedAt, b.CreatedAt)
			a.ObservedAt = earlier(a.ObservedAt, b.ObservedAt)
			a.Source = max(a.Source, b.Source)
			if bytes.Compare(a.Raw, b.Raw) < 0 {
				a.Raw = b.Raw
			}
			return a
		},
		func(a, b Evaluation) int {
			return cmp.Or(a.ObservedAt.Compare(b.ObservedAt), cmp.Compare(a.JudgeName, b.JudgeName), cmp.Compare(a.Tag, b.Tag),
				cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Reasoning, b.Reasoning), cmp.Compare(a.Instructions, b.Instructions))
		})
}

// joinOutcomes keeps the latest outcome; the same one twice keeps its first arrival.
func joinOutcomes(a, b *Outcome) *Outcome {
	if a == nil && b == nil {
		return nil
	}
	won := cmp.Or(a, b)
	if a != nil && b != nil {
		c := cmp.Or(a.ObservedAt.Compare(b.ObservedAt), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Reason, b.Reason),
			bytes.Compare(a.Raw, b.Raw), cmp.Compare(a.Source, b.Source))
		switch {
		case c < 0:
			won = b
		case c == 0:
			same := *a
			same.CreatedAt = earlier(a.CreatedAt, b.CreatedAt)
			return &same
		}
	}
	copied := *won
	return &copied
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// SourceOTLP marks what came by telemetry rather than in an upload.
const SourceOTLP = "otlp"

// MarshalLogSignals encodes the document to store. Encoding is exact: times keep nanoseconds and embedded JSON keeps
// its bytes, so a document read back merges like the signals it was made from.
func MarshalLogSignals(s *LogSignals) ([]byte, error) {
	d := signalsDoc{StartedAt: s.StartedAt, ReportTimestamp: s.ReportTimestamp, Options: s.Options, SDKVersion: s.SDKVersion,
		AgentName: s.AgentName, RoomName: s.RoomName, Outcome: (*outcomeDoc)(s.Outcome), FirstAt: s.FirstAt, LastAt: s.LastAt}
	for _, u := range s.Usage {
		d.Usage = append(d.Usage, usageDoc(u))
	}
	for _, t := range s.Tags {
		d.Tags = append(d.Tags, tagDoc(t))
	}
	for _, e := range s.Evaluations {
		d.Evaluations = append(d.Evaluations, evaluationDoc(e))
	}
	for i := range s.Items {
		d.Items = append(d.Items, newItemDoc(&s.Items[i]))
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // would rewrite embedded JSON
	if err := enc.Encode(d); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// UnmarshalLogSignals reads a document that MarshalLogSignals wrote.
func UnmarshalLogSignals(doc []byte) (*LogSignals, error) {
	var d signalsDoc
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, err
	}
	s := &LogSignals{StartedAt: d.StartedAt, ReportTimestamp: d.ReportTimestamp, Options: d.Options, SDKVersion: d.SDKVersion,
		AgentName: d.AgentName, RoomName: d.RoomName, Outcome: (*Outcome)(d.Outcome), FirstAt: d.FirstAt, LastAt: d.LastAt}
	for _, u := range d.Usage {
		s.Usage = append(s.Usage, Usage(u))
	}
	for _, t := range d.Tags {
		s.Tags = append(s.Tags, Tag(t))
	}
	for _, e := range d.Evaluations {
		s.Evaluations = append(s.Evaluations, Evaluation(e))
	}
	for i := range d.Items {
		s.Items = append(s.Items, d.Items[i].item())
	}
	return s, nil
}

package session

import (
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"sidetone/internal/stamp"
)

// Input is what Compute reads of a session.
type Input struct {
	Items      []Item
	Usage      []Usage // used where no message carries the figure
	Transport  string
	StartedAt  time.Time // start of the call; zero when unknown
	DurationMS *int64
}

// Compute derives session_metrics from a chat history, in the order in which the items are given.
//
// Rules the contract leaves open, all of them decided for "never show what was not measured":
//   - A value that is negative, not a number, or a day long or longer is not a measurement (see measured).
//   - Several user messages before one reply: their texts are joined by newlines, speech runs from the earliest start to
//     the latest stop, and of each delay the last measured one counts.
//   - An item that repeats an earlier one in every respect is dropped (see distinct). System and developer messages,
//     handoffs and unknown types are no part of any turn.
//   - Speaking times are used only where somebody spoke (see spoken): text sessions carry them too.
//   - TTS characters are those of the message, else the length of the agent's text in runes where TTS ran. The total is
//     their sum, or that of usage when no turn has any; the same holds for tokens, so nothing is counted twice.
//   - Providers are those that messages name, else those of usage, per stage.
func Compute(in Input) Metrics {
	items := distinct(in.Items)
	b := newBuilder(items)
	_, _, b.hasTTS = Capabilities(items, in.Transport)
	if b.spoken = spoken(items, in.Transport); b.spoken {
		b.voice.speech = make([]interval, 0, len(items))
	}
	for i := range items {
		it := &items[i]
		switch {
		case isUser(it):
			b.user(it)
		case isAssistant(it):
			b.agent(it)
		case it.Type == ItemFunctionCall:
			b.call(it)
		case it.Type == ItemFunctionOut:
			b.join.output(b.calls, it)
		}
	}
	b.leftOver()
	for i := range b.turns {
		from, to := b.callRange[i][0], b.callRange[i][1]
		b.turns[i].ToolCalls = b.calls[from:to:to]
	}
	m := Metrics{Turns: b.turns, ToolCalls: b.calls}
	m.Summary = b.summary(in)
	return m
}

func isUser(it *Item) bool      { return it.Type == ItemMessage && it.Role == RoleUser }
func isAssistant(it *Item) bool { return it.Type == ItemMessage && it.Role == RoleAssistant }

// maxMeasuredMS bounds every duration: nobody waits, speaks or is silent for a day on one call, but clients have sent
// epoch times and uninitialised values as durations. It also keeps every sum far from overflow.
const maxMeasuredMS = 24 * 60 * 60 * 1000

// measured is a duration of the wire format, in seconds, as milliseconds. ok is false for what is not a measurement:
// absent, negative (the SDKs write -1 for "none"), NaN, infinite, a day or longer.
func measured(seconds *float64) (ms float64, ok bool) {
	if seconds == nil || !(*seconds >= 0 && *seconds < maxMeasuredMS/1000) {
		return 0, false
	}
	return *seconds * 1000, true
}

// perceived is how long the caller waited for this message: e2e_latency, else llm_node_ttft.
func perceived(m *ItemMetrics) *float64 {
	if _, ok := measured(m.E2ELatency); ok {
		return m.E2ELatency
	}
	return m.LLMNodeTTFT
}

// arena hands out pointers to values, which a turn has two dozen of, from shared blocks: one allocation for many.
type arena[T any] struct{ free []T }

func (a *arena[T]) put(v T) *T {
	if len(a.free) == 0 {
		a.free = make([]T, 32)
	}
	p := &a.free[0]
	*p, a.free = v, a.free[1:]
	return p
}

// builder gathers turns. cur holds what came since the last reply.
type builder struct {
	ints   arena[int64]
	times  arena[stamp.Time]
	texts  arena[string]
	hasTTS bool
	spoken bool

	turns     []Turn
	calls     []ToolCall
	callRange [][2]int // of each turn, in calls: outputs may still come after the turn is complete
	join      callJoin

	cur       Turn
	curFirst  *Item // first item of the turn that is not a reply yet, nil when there is none
	curCalls  int   // index in calls of the first one of this turn
	userTexts []string
	userSaid  bool // in this turn
	userEver  bool // in this session

	userSpeech time.Duration // sum over the messages of this turn
	lastStop   time.Time     // when the agent of the turn before stopped speaking; zero when unknown

	voice   voiceTally
	samples []float64 // reused by distribution
}

func newBuilder(items []Item) *builder {
	turns, calls := 1, 0
	for i := range items {
		switch {
		case isAssistant(&items[i]):
			turns++
		case items[i].Type == ItemFunctionCall:
			calls++
		}
	}
	return &builder{
		turns:     make([]Turn, 0, turns),
		calls:     make([]ToolCall, 0, calls),
		callRange: make([][2]int, 0, turns),
		samples:   make([]float64, 0, turns),
	}
}

// ms is a measured duration in whole milliseconds, or nil.
func (b *builder) ms(seconds *float64) *int64 {
	v, ok := measured(seconds)
	if !ok {
		return nil
	}
	return b.ints.put(int64(math.Round(v)))
}

// between is the whole milliseconds from one known time to another, 0 when they are the wrong way round, and nil when one
// is unknown or the distance is no measurement.
func (b *builder) between(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	ms := max(0, to.Sub(from).Round(time.Millisecond).Milliseconds())
	if ms >= maxMeasuredMS {
		return nil
	}
	return b.ints.put(ms)
}

// time is a known time, or nil.
func (b *builder) time(t time.Time) *stamp.Time {
	if t.IsZero() {
		return nil
	}
	return b.times.put(stamp.Of(t))
}

func (b *builder) begin(it *Item) {
	if b.curFirst == nil {
		b.curFirst = it
	}
}

func (b *builder) user(it *Item) {
	b.begin(it)
	b.userSaid, b.userEver = true, true
	if it.Text != "" {
		b.userTexts = append(b.userTexts, it.Text)
	}
	t, m := &b.cur, &it.Metrics
	keep(&t.STTDelayMS, b.ms(m.TranscriptionDelay))
	keep(&t.TurnDecisionMS, b.ms(m.EndOfTurnDelay))
	keep(&t.HookDelayMS, b.ms(m.OnUserTurnCompletedDelay))
	if c := it.TranscriptConfidence; c != nil && *c >= 0 && *c <= 1 {
		v := math.Abs(*c) // no -0
		t.UserTranscriptConfidence = &v
	}
	if m.STT != (Model{}) {
		t.STTProvider, t.STTModel = m.STT.Provider, m.STT.Name
	}
	if b.spoken {
		b.userSpoke(it)
	}
}

func (b *builder) agent(it *Item) {
	t, m := &b.cur, &it.Metrics
	t.TurnID = it.ID
	t.AgentText = b.texts.put(it.Text)
	t.AgentFirst = !b.userEver
	t.Interrupted = it.Interrupted
	t.UserPerceivedMS = b.ms(perceived(m))
	t.LLMTTFTMS = b.ms(m.LLMNodeTTFT)
	t.TTSTTFBMS = b.ms(m.TTSNodeTTFB)
	t.LLMPromptTokens = b.count(m.LLMPromptTokens)
	t.LLMCompletionTokens = b.count(m.LLMCompletionTokens)
	t.LLMTotalTokens = b.count(m.LLMTotalTokens)
	if t.LLMTotalTokens == nil && (t.LLMPromptTokens != nil || t.LLMCompletionTokens != nil) {
		t.LLMTotalTokens = b.ints.put(addCapped(value(t.LLMPromptTokens), value(t.LLMCompletionTokens)))
	}
	t.TTSCharacters = b.count(m.TTSCharacters)
	if t.TTSCharacters == nil && b.ttsRan(m) {
		t.TTSCharacters = b.ints.put(int64(utf8.RuneCountInString(it.Text)))
	}
	t.LLMProvider, t.LLMModel = m.LLM.Provider, m.LLM.Name
	t.TTSProvider, t.TTSModel = m.TTS.Provider, m.TTS.Name
	if b.spoken {
		b.agentSpoke(it)
	}
	b.finish()
	b.lastStop = it.Metrics.StoppedSpeakingAt
}

// ttsRan tells whether this message was synthesised: it has a time to first byte or, where that was lost, was spoken by a
// named TTS model. Speaking times alone do not say so: a speech-to-speech model has them too.
func (b *builder) ttsRan(m *ItemMetrics) bool {
	if _, ok := measured(m.TTSNodeTTFB); ok {
		return true
	}
	return b.hasTTS && m.TTS != (Model{}) && !m.StartedSpeakingAt.IsZero()
}

// count is a count as reported, nil when absent or negative.
func (b *builder) count(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	return b.ints.put(*n)
}

func (b *builder) call(it *Item) {
	b.begin(it)
	b.calls = append(b.calls, ToolCall{
		Name:       it.Name,
		CallID:     it.CallID,
		Arguments:  argumentsObject(it.Arguments),
		TurnNumber: len(b.turns) + 1,
		Timestamp:  b.time(it.CreatedAt),
	})
	b.join.call(b.calls)
}

// leftOver makes the partial turn of what got no reply.
func (b *builder) leftOver() {
	if b.curFirst == nil {
		return
	}
	b.cur.TurnID = b.curFirst.ID
	b.finish()
}

// finish completes the current turn and begins the next.
func (b *builder) finish() {
	t := &b.cur
	t.TurnNumber = len(b.turns) + 1
	if b.userSaid {
		t.UserText = b.texts.put(strings.Join(b.userTexts, "\n"))
	}
	if b.spoken {
		b.finishSpeech()
	}
	b.turns = append(b.turns, *t)
	b.callRange = append(b.callRange, [2]int{b.curCalls, len(b.calls)})
	b.cur, b.curFirst, b.curCalls = Turn{}, nil, len(b.calls)
	b.userTexts, b.userSaid, b.userSpeech = b.userTexts[:0], false, 0
}

// keep overwrites a value by a later measured one.
func keep(at **int64, v *int64) {
	if v != nil {
		*at = v
	}
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// addCapped adds two non-negative counts and stops at the largest integer: clients may send any count.
func addCapped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// argumentsObject is a call's arguments as an object: as written when the model wrote one, {} when it wrote nothing or
// null, else {"_raw": text}.
func argumentsObject(text string) json.RawMessage {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed == "null" {
		return json.RawMessage("{}")
	}
	if trimmed[0] == '{' && utf8.ValidString(trimmed) {
		if raw := json.RawMessage(trimmed); json.Valid(raw) {
			return raw
		}
	}
	raw, err := json.Marshal(struct {
		Raw string `json:"_raw"`
	}{text})
	if err != nil { // a struct of one string always marshals
		panic(err)
	}
	return raw
}

// callJoin joins outputs with calls by call_id, or by name where a client sends no ids. Some models number their calls
// anew in each reply, so an id may come back: an output belongs to the earliest unanswered call before it; when all are
// answered it is a later word on the last one; an output before any call waits for the next call; one without a call
// belongs to no turn and stays in the chat history only.
type callJoin struct {
	byID map[callKey]*callQueue
}

type callKey struct{ id, name string }

type callQueue struct {
	open  []int // indexes of unanswered calls
	last  int   // index of the last answered call, -1 when there is none
	early []*Item
}

func (j *callJoin) queue(id, name string) *callQueue {
	key := callKey{id: id}
	if id == "" {
		key.name = name
	}
	q := j.byID[key]
	if q == nil {
		if j.byID == nil {
			j.byID = make(map[callKey]*callQueue)
		}
		q = &callQueue{last: -1}
		j.byID[key] = q
	}
	return q
}

// call registers the newest call.
func (j *callJoin) call(calls []ToolCall) {
	i := len(calls) - 1
	q := j.queue(calls[i].CallID, calls[i].Name)
	if len(q.early) > 0 {
		answer(&calls[i], q.early[0])
		q.early, q.last = q.early[1:], i
		return
	}
	q.open = append(q.open, i)
}

func (j *callJoin) output(calls []ToolCall, it *Item) {
	q := j.queue(it.CallID, it.Name)
	switch {
	case len(q.open) > 0:
		q.last, q.open = q.open[0], q.open[1:]
		answer(&calls[q.last], it)
	case q.last >= 0:
		answer(&calls[q.last], it)
	default:
		q.early = append(q.early, it)
	}
}

func answer(c *ToolCall, it *Item) {
	out := it.Output
	c.Output, c.IsError = &out, it.IsError
}

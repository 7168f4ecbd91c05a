package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Generator makes the calls of a synthetic day. It is safe for concurrent use: a call depends only on the seed, the
// call's number and the day and time it ended.
type Generator struct {
	seed      int64
	agents    []agent
	scenarios []scenario
}

// NewGenerator makes a generator; the same seed gives the same calls.
func NewGenerator(seed int64) *Generator {
	s, err := parseScenarios(scenarioText)
	if err != nil { // the text is part of the program, and a test reads it
		panic(err)
	}
	return &Generator{seed: seed, agents: agents(), scenarios: s}
}

// Call is the i-th call of the day on which ended falls (UTC), ending at ended. Its session id is made of the day, the
// seed and i.
func (g *Generator) Call(i int, ended time.Time) Call {
	return g.talk(i, ended).call()
}

func (g *Generator) talk(i int, ended time.Time) *talk {
	ended = ended.UTC().Truncate(time.Microsecond)
	day := ended.Truncate(24 * time.Hour)
	r := rand.New(rand.NewPCG(uint64(g.seed), uint64(day.Unix())<<20|uint64(i)))
	a := g.pickAgent(r)
	s := g.pickScenario(r, a.id)
	b := &builder{
		r: r, agent: a, scenario: s, slots: drawSlots(r, s.language, ended),
		voice: true, slow: inIncident(a.id, ended), failRate: a.toolFails, context: len(a.instructions) / 4,
	}
	transport := a.transports[r.IntN(len(a.transports))]
	b.voice = transport != "text"
	if b.slow {
		b.failRate = incidentToolFails
	}
	b.run()

	t := &talk{
		sessionID:    fmt.Sprintf("call-%s-%d-%04d", day.Format("20060102"), g.seed, i),
		account:      a.account,
		agentID:      a.id,
		agentName:    a.name,
		transport:    transport,
		language:     s.language,
		instructions: a.instructions,
		sdk:          a.sdk,
		end:          ended,
		items:        b.items,
		llm:          a.llm, stt: a.stt, tts: a.tts,
	}
	t.jobID = "AJ_" + t.sessionID
	t.room = a.id + "-" + t.sessionID
	t.start = ended.Add(-time.Duration(micros(b.t)*1e6) * time.Microsecond)
	t.shift(epoch(t.start))
	t.usage = b.usageEntries()
	t.judge(r, s, b.hungUp)
	// Every fourth call is reported as a stock SDK does: verdicts with their reasoning come as log records, and the
	// report has only the tags.
	t.telemetry = i%4 == 0
	return t
}

func (g *Generator) pickAgent(r *rand.Rand) agent {
	total := 0.0
	for _, a := range g.agents {
		total += a.weight
	}
	x := r.Float64() * total
	for _, a := range g.agents {
		if x -= a.weight; x < 0 {
			return a
		}
	}
	return g.agents[len(g.agents)-1]
}

func (g *Generator) pickScenario(r *rand.Rand, agentID string) scenario {
	var fit []scenario
	for _, s := range g.scenarios {
		if slices.Contains(s.agents, agentID) {
			fit = append(fit, s)
		}
	}
	return fit[r.IntN(len(fit))]
}

// A talk is one finished conversation, the source of a report and of its telemetry.
type talk struct {
	sessionID, jobID, room      string
	account, agentID, agentName string
	transport, language         string
	instructions, sdk           string
	llm, stt, tts               model
	start, end                  time.Time
	items                       []item
	tags                        []string
	evaluations                 []evaluation
	outcome                     *outcome
	usage                       []map[string]any
	telemetry                   bool // verdicts travel as log records, with spans and logs beside them
}

// shift adds seconds to every time of the items.
func (t *talk) shift(seconds float64) {
	add := func(f *float64) {
		if *f != 0 {
			*f = micros(*f + seconds)
		}
	}
	for i := range t.items {
		add(&t.items[i].CreatedAt)
		if m := t.items[i].Metrics; m != nil {
			add(&m.StartedSpeakingAt)
			add(&m.StoppedSpeakingAt)
		}
	}
}

// call encodes the talk as a report.
func (t *talk) call() Call {
	tags := map[string]string{"account_id": t.account, "transport": t.transport}
	body := reportBody{
		JobID: t.jobID, RoomID: t.sessionID, Room: t.room, AgentID: t.agentID, AgentName: t.agentName,
		Tags: t.tags, Events: t.events(), Options: t.options(), ChatHistory: history{t.items},
		Timestamp: epoch(t.end), Usage: t.usage, SDKVersion: t.sdk,
	}
	if !t.telemetry {
		body.Evaluations, body.Outcome = t.evaluations, t.outcome
	}
	return Call{
		SessionID: t.sessionID,
		Ended:     t.end,
		Header: mustJSON(header{SessionID: t.sessionID, StartTime: epoch(t.start), EndedAt: epoch(t.end), RoomTags: tags,
			Transport: t.transport, AgentID: t.agentID, AgentName: t.agentName}),
		HeaderProto: protoHeader(t.sessionID, t.jobID, t.room, t.start, tags),
		Body:        mustJSON(body),
		talk:        t,
	}
}

func (t *talk) options() map[string]any {
	return map[string]any{
		"allow_interruptions": true, "min_endpointing_delay": 0.5, "max_endpointing_delay": 3.0,
		"min_interruption_duration": 0.5, "max_tool_steps": 3, "user_away_timeout": 15.0, "preemptive_generation": false,
	}
}

// events are what the session emitted: each item as it was added, the state changes around speech, and the close.
func (t *talk) events() []event {
	var out []event
	for i := range t.items {
		it := &t.items[i]
		if m := it.Metrics; m != nil && m.StartedSpeakingAt != 0 {
			kind := "agent_state_changed"
			if it.Role == "user" {
				kind = "user_state_changed"
			}
			out = append(out,
				event{Type: kind, CreatedAt: m.StartedSpeakingAt, OldState: "listening", NewState: "speaking"},
				event{Type: kind, CreatedAt: m.StoppedSpeakingAt, OldState: "speaking", NewState: "listening"})
		}
		out = append(out, event{Type: "conversation_item_added", CreatedAt: it.CreatedAt, Item: it})
	}
	slices.SortStableFunc(out, func(a, b event) int {
		switch {
		case a.CreatedAt < b.CreatedAt:
			return -1
		case a.CreatedAt > b.CreatedAt:
			return 1
		}
		return 0
	})
	return append(out, event{Type: "close", CreatedAt: epoch(t.end), Reason: "participant_disconnected"})
}

// drawSlots draws the values of a conversation's {slots}.
func drawSlots(r *rand.Rand, language string, ended time.Time) map[string]string {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	order := fmt.Sprint(10000 + r.IntN(90000))
	card := fmt.Sprintf("%04d", r.IntN(10000))
	return map[string]string{
		"order": order, "order_words": spell(order),
		"card": card, "card_words": spell(card),
		"ref":     fmt.Sprint(1000 + r.IntN(9000)),
		"amount":  fmt.Sprintf("%d.%02d", 9+r.IntN(240), []int{0, 50, 90, 95, 99}[r.IntN(5)]),
		"flight":  fmt.Sprintf("KA%d", 100+r.IntN(800)),
		"name":    pick(namesByLanguage[language]),
		"day":     pick(daysByLanguage[language]),
		"time":    fmt.Sprintf("%02d:%02d", 8+r.IntN(10), 15*r.IntN(4)),
		"date":    ended.AddDate(0, 0, 2+r.IntN(6)).Format(time.DateOnly),
		"past":    ended.AddDate(0, 0, -1-r.IntN(3)).Format(time.DateOnly),
		"product": pick(products),
		"city":    pick(cities),
		"street":  pick(streets),
	}
}

// A judge is a model that reads a finished call and gives a verdict.
type judge struct {
	name, instructions string
	reasons            map[string][]string // by verdict
}

func judges() []judge {
	return []judge{
		{"accuracy", "Everything the agent states must be supported by a tool result or its instructions.", map[string][]string{
			"pass":  {"Every figure the agent gave appears in a tool result.", "The dates and amounts match what the tools returned."},
			"maybe": {"The delivery estimate was rounded; hard to call it wrong.", "One statement cannot be checked from the transcript."},
			"fail":  {"The agent stated a policy that no tool result and no instruction supports.", "The amount the agent gave differs from the tool's."}}},
		{"tool_use", "The agent must call the right tool with the right arguments, once.", map[string][]string{
			"pass":  {"One look-up, one action, both with the caller's own numbers.", "The tools were called in the expected order."},
			"maybe": {"The tool was called twice with the same arguments."},
			"fail":  {"A tool failed and the caller was not told why.", "The agent acted before the caller had agreed."}}},
		{"politeness", "The agent stays friendly and brief whatever the caller says.", map[string][]string{
			"pass":  {"Friendly throughout, no lecturing.", "It apologised once and moved on."},
			"maybe": {"Correct but a little curt."},
			"fail":  {"It repeated the same sentence to an upset caller."}}},
		{"task_completion", "The caller's request is done, or handed to someone who can do it.", map[string][]string{
			"pass":  {"The caller got what they asked for and said so.", "The request was completed on this call."},
			"maybe": {"The caller left before confirming."},
			"fail":  {"The caller left without a solution.", "The request was neither done nor handed over."}}},
	}
}

// judge gives the talk its tags, outcome and verdicts. About one call in eight has no outcome and one in four no
// verdicts, as in a real deployment where not every agent is judged.
func (t *talk) judge(r *rand.Rand, s scenario, hungUp bool) {
	t.tags = []string{"agent_id:" + t.agentID, "account_id:" + t.account, "transport:" + t.transport, "lang:" + t.language, "goal:" + s.name}
	result, reason := s.outcome, s.reason
	if hungUp {
		result, reason = "fail", "caller hung up"
	}
	if r.Float64() < 0.88 {
		t.outcome = &outcome{result, reason}
		t.tags = append(t.tags, "lk."+result)
	}
	if r.Float64() < 0.25 {
		return
	}
	for _, j := range judges() {
		if r.Float64() < 0.35 {
			continue
		}
		verdict, x := "pass", r.Float64()
		failP := 0.05
		if result == "fail" && j.name != "politeness" {
			failP = 0.55
		}
		switch {
		case x < failP:
			verdict = "fail"
		case x < failP+0.06:
			verdict = "maybe"
		}
		reasons := j.reasons[verdict]
		tag := "lk.judge." + j.name + ":" + verdict
		t.evaluations = append(t.evaluations, evaluation{j.name, verdict, reasons[r.IntN(len(reasons))], j.instructions, tag})
		t.tags = append(t.tags, tag)
	}
}

// sortedKeys are m's keys in order, for output that does not change from run to run.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}

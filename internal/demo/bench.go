package demo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// BenchEpoch is when BenchCall(0) ended; each further call ended BenchStep later, so that 100,000 calls span about
// ten days.
var BenchEpoch = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// BenchStep is the time between the ends of two successive BenchCalls.
const BenchStep = 8640 * time.Millisecond

// benchTurns is how many times caller and agent speak in a BenchCall.
const benchTurns = 12

// BenchCall is a session report for benchmarks: a body of about 35 KB with 12 turns and three tool calls, shaped like
// the recorded demo call (events repeat every item) and written without spaces, as SDKs write it. Its text is put
// together from some 130,000 different clauses and its measurements have six decimals, so it compresses like real
// speech and not like a repeated sample. The same i gives the same call; the calls spread over 20 accounts and 50
// agents. It is cheap (some tens of microseconds), so that a load generator does not measure itself.
func BenchCall(i int) Call {
	r := rand.New(rand.NewPCG(0x5eed, uint64(i)))
	b := &benchWriter{r: r, id: string(BenchID(i))}
	b.end = BenchEpoch.Add(time.Duration(i) * BenchStep)
	b.account = fmt.Sprintf("account-%02d", r.IntN(20))
	agentNo := r.IntN(50)
	b.agentID = fmt.Sprintf("agent-%02d", agentNo)
	b.agentName = fmt.Sprintf("Agent %s %02d", []string{"support", "billing", "reception", "sales"}[agentNo%4], agentNo)
	b.transport = []string{"sip", "sip", "webrtc"}[r.IntN(3)]
	b.models = benchModels[agentNo%len(benchModels)]
	return b.call()
}

// BenchID is the session id of BenchCall(i), always of the same length.
func BenchID(i int) []byte { return fmt.Appendf(nil, "RM_bench%08d", i) }

// benchModels are the LLM, STT and TTS of an agent, as JSON.
var benchModels = [...][3]string{
	{`{"model_name":"gpt-4.1-mini","model_provider":"openai"}`, `{"model_name":"nova-3","model_provider":"Deepgram"}`, `{"model_name":"sonic-3","model_provider":"Cartesia"}`},
	{`{"model_name":"claude-haiku-4-5","model_provider":"anthropic"}`, `{"model_name":"universal-streaming","model_provider":"AssemblyAI"}`, `{"model_name":"eleven_flash_v2_5","model_provider":"ElevenLabs"}`},
	{`{"model_name":"gemini-2.5-flash","model_provider":"google"}`, `{"model_name":"chirp_3","model_provider":"google"}`, `{"model_name":"chirp3-hd","model_provider":"google"}`},
}

type benchWriter struct {
	r                                                 *rand.Rand
	id, account, agentID, agentName, transport, jobID string
	models                                            [3]string
	end                                               time.Time
	items                                             []byte // the items, comma-separated
	events                                            []byte // the same inside conversation_item_added
	t                                                 float64
	n                                                 int
}

func (b *benchWriter) call() Call {
	b.jobID = "AJ_" + b.id
	b.items, b.events = make([]byte, 0, 18<<10), make([]byte, 0, 20<<10)
	// The length is not known before the turns are drawn: play them from an assumed start and take what it gives as end.
	start := b.end.Add(-time.Duration(180+b.r.IntN(60)) * time.Second)
	b.t = epoch(start) + 1.2
	for turn := range benchTurns {
		if turn > 0 {
			b.user()
			if turn%4 == 1 {
				b.tool()
			}
		}
		b.agent(turn)
	}
	b.user()
	b.end = fromEpoch(micros(b.t + 1.5))

	verdict := []string{"pass", "pass", "pass", "fail"}[b.r.IntN(4)]
	result := []string{"success", "success", "fail"}[b.r.IntN(3)]
	body := make([]byte, 0, len(b.items)+len(b.events)+2048)
	body = fmt.Appendf(body, `{"job_id":%q,"room_id":%q,"room":"room-%s","agent_id":%q,"agent_name":%q,"tags":["agent_id:%s","account_id:%s","transport:%s","lk.%s","lk.judge.accuracy:%s"],`,
		b.jobID, b.id, b.id, b.agentID, b.agentName, b.agentID, b.account, b.transport, result, verdict)
	body = append(append(append(body, `"events":[`...), b.events...), `],`...)
	body = append(body, `"options":{"allow_interruptions":true,"min_endpointing_delay":0.5,"max_endpointing_delay":3.0,"max_tool_steps":3,"preemptive_generation":false},`...)
	body = append(append(append(body, `"chat_history":{"items":[`...), b.items...), `]},`...)
	body = append(b.appendFloat(append(body, `"timestamp":`...), epoch(b.end)),
		fmt.Sprintf(`,"usage":[{"type":"llm_usage","provider":"openai","model":"gpt-4.1-mini","input_tokens":%d,"input_cached_tokens":%d,"output_tokens":%d},{"type":"tts_usage","provider":"Cartesia","model":"sonic-3","characters_count":%d,"audio_duration":%.6f},{"type":"stt_usage","provider":"Deepgram","model":"nova-3","audio_duration":%.6f}],"sdk_version":"1.7.0"}`,
			9000+b.r.IntN(9000), 1024*b.r.IntN(6), 400+b.r.IntN(600), 1500+b.r.IntN(1200), 60+60*b.r.Float64(), 120+60*b.r.Float64())...)

	tags := map[string]string{"account_id": b.account, "transport": b.transport, "agent_id": b.agentID}
	return Call{
		SessionID: b.id,
		Ended:     b.end,
		Header: fmt.Appendf(nil, `{"session_id":%q,"start_time":%s,"ended_at":%s,"room_tags":{"account_id":%q,"transport":%q},"transport":%q,"agent_id":%q,"agent_name":%q}`,
			b.id, b.appendFloat(nil, epoch(start)), b.appendFloat(nil, epoch(b.end)), b.account, b.transport, b.transport, b.agentID, b.agentName),
		HeaderProto: protoHeader(b.id, b.jobID, "room-"+b.id, start, tags),
		Body:        body,
	}
}

func (b *benchWriter) appendFloat(dst []byte, f float64) []byte {
	return strconv.AppendFloat(dst, micros(f), 'f', -1, 64)
}

// item files one encoded item under both lists.
func (b *benchWriter) item(at float64, encoded []byte) {
	if b.n > 0 {
		b.items, b.events = append(b.items, ','), append(b.events, ',')
	}
	b.n++
	b.items = append(b.items, encoded...)
	b.events = b.appendFloat(append(b.events, `{"type":"conversation_item_added","created_at":`...), at)
	b.events = append(append(append(b.events, `,"item":`...), encoded...), '}')
}

// open begins an item with what all kinds share.
func (b *benchWriter) open(kind string, at float64) []byte {
	e := append(make([]byte, 0, 1024), `{"id":"item_`...)
	e = appendHex(e, b.r.Uint64())
	e = append(append(append(e, `","type":"`...), kind...), `","created_at":`...)
	return b.appendFloat(e, at)
}

func (b *benchWriter) message(role string, at float64, interrupted bool, sentences int) []byte {
	e := b.open("message", at)
	e = append(append(append(e, `,"role":"`...), role...), `","content":["`...)
	for s := range sentences {
		if s > 0 {
			e = append(e, ' ')
		}
		e = b.clause(e)
	}
	e = append(e, `"],"interrupted":`...)
	e = strconv.AppendBool(e, interrupted)
	return append(e, `,"extra":{},"metrics":{`...)
}

func (b *benchWriter) number(e []byte, key string, f float64) []byte {
	e = append(append(append(e, '"'), key...), `":`...)
	return append(b.appendFloat(e, f), ',')
}

func (b *benchWriter) user() {
	start := b.t + 0.4 + 0.8*b.r.Float64()
	// Some 30 words take 6 to 11 seconds.
	stop := start + 6 + 5*b.r.Float64()
	stt := 0.15 + 0.2*b.r.Float64()
	e := b.message("user", stop, false, 2)
	e = b.number(e, "started_speaking_at", start)
	e = b.number(e, "stopped_speaking_at", stop)
	e = b.number(e, "transcription_delay", stt)
	e = b.number(e, "end_of_turn_delay", stt+0.2+0.3*b.r.Float64())
	e = b.number(e, "on_user_turn_completed_delay", 0.0003+0.001*b.r.Float64())
	e = append(append(append(e, `"stt_metadata":`...), b.models[1]...), `},"transcript_confidence":`...)
	e = append(b.appendFloat(e, 0.85+0.149*b.r.Float64()), '}')
	b.item(stop, e)
	b.t = stop
}

func (b *benchWriter) agent(turn int) {
	ttft := 0.45 * math.Exp(0.4*b.r.NormFloat64())
	ttfb := 0.18 * math.Exp(0.2*b.r.NormFloat64())
	start := b.t + 0.6 + ttft + ttfb
	stop := start + 6 + 5*b.r.Float64()
	e := b.message("assistant", start, b.r.Float64() < 0.08, 2+b.r.IntN(2))
	e = b.number(e, "started_speaking_at", start)
	e = b.number(e, "stopped_speaking_at", stop)
	e = b.number(e, "tts_node_ttfb", ttfb)
	if turn > 0 {
		e = b.number(e, "llm_node_ttft", ttft)
		e = b.number(e, "e2e_latency", start-b.t)
		e = append(append(append(e, `"llm_metadata":`...), b.models[0]...), ',')
	}
	e = append(append(append(e, `"tts_metadata":`...), b.models[2]...), "}}"...)
	b.item(start, e)
	b.t = stop
}

func (b *benchWriter) tool() {
	id := 100000 + b.r.IntN(900000)
	e := b.open("function_call", b.t+0.35)
	e = fmt.Appendf(e, `,"call_id":"call_%d","name":"lookup_order","arguments":"{\"order_id\": \"%d\", \"postcode\": \"%05d\"}","extra":{}}`, id, b.r.IntN(99999), b.r.IntN(99999))
	b.item(b.t+0.35, e)
	e = b.open("function_call_output", b.t+0.62)
	e = fmt.Appendf(e, `,"call_id":"call_%d","name":"lookup_order","output":"{\"status\": \"delayed\", \"carrier\": \"DHL\", \"amount\": \"%d.%02d\"}","is_error":%t}`, id, b.r.IntN(300), b.r.IntN(100), b.r.Float64() < 0.05)
	b.item(b.t+0.62, e)
	b.t += 0.7
}

// clause appends one sentence of ten to fifteen words: 26 openers x 72 middles x 72 ends, with numbers and names in
// some of them.
func (b *benchWriter) clause(e []byte) []byte {
	for i, part := range [...]string{benchOpeners[b.r.IntN(len(benchOpeners))], benchMiddles[b.r.IntN(len(benchMiddles))], benchEnds[b.r.IntN(len(benchEnds))]} {
		if i > 0 {
			e = append(e, ' ')
		}
		for _, c := range []byte(part) {
			switch c {
			case '#':
				e = strconv.AppendInt(e, int64(2+b.r.IntN(9000)), 10)
			case '@':
				e = append(e, benchNames[b.r.IntN(len(benchNames))]...)
			default:
				e = append(e, c)
			}
		}
	}
	return append(e, '.')
}

func appendHex(e []byte, v uint64) []byte {
	const digits = "0123456789abcdef"
	for range 12 {
		e = append(e, digits[v&15])
		v >>= 4
	}
	return e
}

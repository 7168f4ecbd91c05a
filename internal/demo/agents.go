package demo

import (
	"math"
	"math/rand/v2"
	"time"
)

// A model names a provider and one of its models.
type model struct{ provider, name string }

// lognormal is a latency distribution in seconds, given by its median and the sigma of its logarithm.
type lognormal struct{ median, sigma float64 }

func (d lognormal) draw(r *rand.Rand) float64 {
	return d.median * math.Exp(d.sigma*r.NormFloat64())
}

// An agent is one deployed voice or text agent of the synthetic traffic.
type agent struct {
	id, name, account string
	instructions      string
	weight            float64 // share of the traffic
	transports        []string
	llm, stt, tts     model
	ttft, ttfb        lognormal
	sttDelay, eou     lognormal
	interrupted       float64 // probability that a reply is cut off
	toolFails         float64 // probability that a tool call fails at first
	sdk               string
	tokensPerMessage  bool // sends token counts with each message, as agent-transport does
}

// agents are the invented customers' agents. The latencies are in the range that production voice agents show: LLM
// first tokens around half a second, TTS first bytes around 0.2 s.
func agents() []agent {
	return []agent{
		{id: "northwind-support", name: "Northwind support", account: "northwind", weight: 0.26, transports: []string{"sip", "sip", "webrtc"},
			instructions: "You help customers of Northwind with orders, deliveries and refunds. Be brief and kind.",
			llm:          model{"openai", "gpt-4.1-mini"}, stt: model{"Deepgram", "nova-3"}, tts: model{"Cartesia", "sonic-3"},
			ttft: lognormal{0.45, 0.35}, ttfb: lognormal{0.18, 0.15}, sttDelay: lognormal{0.20, 0.2}, eou: lognormal{0.54, 0.12},
			interrupted: 0.07, toolFails: 0.05, sdk: "1.7.0"},
		{id: "northwind-billing", name: "Northwind billing", account: "northwind", weight: 0.20, transports: []string{"webrtc", "sip"},
			instructions: "You answer billing questions for Northwind. Never take card numbers by voice.",
			llm:          model{"openai", "gpt-4.1"}, stt: model{"Deepgram", "nova-3"}, tts: model{"Cartesia", "sonic-3"},
			ttft: lognormal{0.62, 0.38}, ttfb: lognormal{0.19, 0.15}, sttDelay: lognormal{0.21, 0.2}, eou: lognormal{0.56, 0.12},
			interrupted: 0.06, toolFails: 0.04, sdk: "1.7.0"},
		{id: "lakeside-reception", name: "Lakeside Dental reception", account: "lakeside-dental", weight: 0.18, transports: []string{"sip"},
			instructions: "You are the receptionist of Lakeside Dental. Book, move and cancel appointments; hand emergencies over.",
			llm:          model{"anthropic", "claude-haiku-4-5"}, stt: model{"AssemblyAI", "universal-streaming"}, tts: model{"ElevenLabs", "eleven_flash_v2_5"},
			ttft: lognormal{0.58, 0.30}, ttfb: lognormal{0.24, 0.2}, sttDelay: lognormal{0.28, 0.22}, eou: lognormal{0.60, 0.15},
			interrupted: 0.05, toolFails: 0.03, sdk: "1.6.10"},
		{id: "aurora-outages", name: "Aurora Energy outages", account: "aurora-energy", weight: 0.16, transports: []string{"sip"},
			instructions: "You take reports of power cuts for Aurora Energy, in English and German.",
			llm:          model{"google", "gemini-2.5-flash"}, stt: model{"google", "chirp_3"}, tts: model{"google", "chirp3-hd"},
			ttft: lognormal{0.52, 0.42}, ttfb: lognormal{0.31, 0.22}, sttDelay: lognormal{0.36, 0.28}, eou: lognormal{0.66, 0.16},
			interrupted: 0.13, toolFails: 0.06, sdk: "1.7.0"},
		{id: "kestrel-chat", name: "Kestrel Air chat", account: "kestrel-air", weight: 0.12, transports: []string{"text"},
			instructions: "You are the chat assistant of Kestrel Air. Answer in the traveller's language; emoji are welcome.",
			llm:          model{"openai", "gpt-4.1-mini"}, ttft: lognormal{0.49, 0.4}, toolFails: 0.05, sdk: "1.9.0"},
		{id: "medina-desk", name: "مصرف المدينة", account: "medina-bank", weight: 0.08, transports: []string{"webrtc"},
			instructions: "أنت موظف خدمة العملاء في مصرف المدينة. أجب باختصار وبلطف.",
			llm:          model{"openai", "gpt-4.1-mini"}, stt: model{"Speechmatics", "enhanced"}, tts: model{"azure", "ar-AE-FatimaNeural"},
			ttft: lognormal{0.55, 0.33}, ttfb: lognormal{0.27, 0.2}, sttDelay: lognormal{0.33, 0.25}, eou: lognormal{0.64, 0.15},
			interrupted: 0.06, toolFails: 0.03, sdk: "1.7.0", tokensPerMessage: true},
	}
}

// The incident of every synthetic day: from 13:20 to 14:50 UTC the language model behind incidentAgent answers slowly
// and its tools time out, so that latency and failure alerts have something to find.
const (
	incidentAgent = "northwind-billing"
	incidentFrom  = 13*time.Hour + 20*time.Minute
	incidentTo    = 14*time.Hour + 50*time.Minute

	incidentSlowdown  = 5.5
	incidentToolFails = 0.35
)

// inIncident reports whether a call of the agent that ended then fell into the day's incident.
func inIncident(agentID string, ended time.Time) bool {
	t := ended.UTC()
	sinceMidnight := t.Sub(t.Truncate(24 * time.Hour))
	return agentID == incidentAgent && sinceMidnight >= incidentFrom && sinceMidnight < incidentTo
}

// hourWeights is how busy each hour of the day (UTC) is: quiet nights, a morning and an afternoon peak.
var hourWeights = [24]float64{1, 1, 1, 1, 1.5, 2.5, 4, 6, 8, 9.5, 9, 8, 7.5, 9, 9.5, 8.5, 7, 6, 5, 4, 3, 2.5, 2, 1.5}

// timeOfDay maps a share of the day's calls (0 to 1) to the time of day at which that share has ended.
func timeOfDay(share float64) time.Duration {
	total := 0.0
	for _, w := range hourWeights {
		total += w
	}
	left := share * total
	for h, w := range hourWeights {
		if left < w {
			return time.Duration((float64(h) + left/w) * float64(time.Hour))
		}
		left -= w
	}
	return 24*time.Hour - time.Millisecond
}

// slot is a call of the synthetic traffic: its number within its day, and when it ended.
type slot struct {
	index int
	ended time.Time
}

// schedule lists the calls that ended in the days before until, perDay of them in each calendar day (UTC), oldest
// first. A call's time depends on the seed, its day and its number only, so two runs hours apart agree on the calls
// that both cover.
func schedule(seed int64, until time.Time, days, perDay int) []slot {
	from := until.Add(-time.Duration(days) * 24 * time.Hour)
	var out []slot
	for day := from.UTC().Truncate(24 * time.Hour); day.Before(until); day = day.Add(24 * time.Hour) {
		r := rand.New(rand.NewPCG(uint64(seed), uint64(day.Unix())))
		for i := range perDay {
			ended := day.Add(timeOfDay((float64(i) + r.Float64()) / float64(perDay))).Truncate(time.Millisecond)
			if ended.After(from) && !ended.After(until) {
				out = append(out, slot{i, ended})
			}
		}
	}
	return out
}

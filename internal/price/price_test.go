package price

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"sidetone/internal/errs"
	"sidetone/internal/eval"
	"sidetone/internal/report"
	"sidetone/internal/session"
)

func load(t testing.TB, override string) *Table {
	t.Helper()
	var doc []byte
	if override != "" {
		doc = []byte(override)
	}
	table, err := Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func near(got, want float64) bool { return math.Abs(got-want) < 5e-10 }

func check(t *testing.T, got *float64, want any) {
	t.Helper()
	switch want := want.(type) {
	case nil:
		if got != nil {
			t.Errorf("costs %v, want unknown", *got)
		}
	case float64:
		if got == nil {
			t.Errorf("cost unknown, want %v", want)
		} else if !near(*got, want) {
			t.Errorf("costs %v, want %v", *got, want)
		}
	}
}

// TestNames looks up what SDKs call models. The wanted number is the price of input, of characters or of a minute.
func TestNames(t *testing.T) {
	table := load(t, "")
	for _, c := range []struct {
		kind, provider, model string
		want                  float64 // 0 is unknown
	}{
		{"llm", "openai", "gpt-4.1-mini", 0.4},
		{"llm", "OpenAI", " GPT-4.1-Mini ", 0.4},
		{"llm", "api.openai.com", "gpt-4.1-mini-2025-04-14", 0.4},
		{"llm", "api.openai.com:443", "gpt-4.1", 2},
		{"llm", "north.openai.azure.com", "gpt-4o", 2.5},
		{"llm", "openai", "gpt-4o-2024-05-13", 5}, // a version with a price of its own
		{"llm", "openai", "gpt-4o-2024-08-06", 2.5},
		{"llm", "openai", "gpt-5-chat-latest", 1.25},
		{"llm", "openai", "gpt-5-pro", 0}, // another model, not a version of gpt-5
		{"llm", "openai", "gpt-4o-audio-preview", 0},
		{"llm", "openai", "", 0},
		{"llm", "openai", strings.Repeat("x", 10_000), 0},
		{"llm", "openai.evil.example", "gpt-4o", 0},
		{"llm", "my-proxy.internal", "gpt-4o", 0},
		{"llm", "openai", "openai/gpt-4o", 2.5},
		{"llm", "livekit", "openai/gpt-4.1-mini", 0.4},
		{"llm", "agent-gateway.livekit.cloud", "google/gemini-2.5-flash", 0.3},
		{"llm", "", "openai/gpt-4.1-mini", 0.4},
		{"llm", "", "gpt-4.1-mini", 0.4},
		{"llm", "livekit", "gpt-4.1-mini", 0.4},
		{"llm", "openrouter", "anthropic/claude-sonnet-4.5", 3},
		{"llm", "openrouter", "anthropic/claude-sonnet-4.5:free", 0},
		{"llm", "groq", "openai/gpt-oss-120b", 0.15},
		{"llm", "livekit", "openai/gpt-oss-120b", 0}, // groq's price is not everybody's
		{"llm", "", "openai/gpt-oss-120b", 0},
		{"llm", "groq", "openai/gpt-4o", 0},
		{"llm", "groq", "moonshotai/kimi-k2-instruct-0905", 1},
		{"llm", "Anthropic", "claude-opus-4-20250514", 15},
		{"llm", "Anthropic", "claude-opus-4-5-20251101", 5},
		{"llm", "Vertex AI", "gemini-2.0-flash-001", 0.1},
		{"llm", "Gemini", "models/gemini-2.5-pro", 1.25},
		{"llm", "google", "gemini-2.5-flash-native-audio-preview-09-2025", 0.5},
		{"tts", "Cartesia", "sonic-3", 37.4},
		{"tts", "livekit", "cartesia/sonic-3:9626c31c-bec5-4cca-baa8-f8ba9e84c8bc", 37.4},
		{"tts", "cartesia", "sonic-2-2025-03-07", 37.4},
		{"tts", "ElevenLabs", "eleven_turbo_v2_5", 60},
		{"tts", "Deepgram", "aura-2-andromeda-en", 30}, // the longest prefix
		{"tts", "Deepgram", "aura-asteria-en", 15},
		{"tts", "Deepgram", "nova-3", 0}, // not a voice
		{"stt", "Deepgram", "nova-3", 0.0077},
		{"stt", "livekit", "deepgram/nova-3:en", 0.0077},
		{"stt", "livekit", "deepgram/nova-3:multi", 0.0092},
		{"stt", "deepgram", "nova-2-phonecall", 0.0058},
		{"stt", "livekit", "assemblyai/universal-streaming:en", 0.0025},
		{"avatar", "openai", "gpt-4o", 0},
	} {
		got := 0.0
		if p := table.find(c.kind, c.provider, c.model); p != nil {
			for _, v := range []*float64{p.Input, p.Characters, p.Minute} {
				if v != nil {
					got = *v
					break
				}
			}
		}
		if got != c.want {
			t.Errorf("%s %q %.80q: price %v, want %v", c.kind, c.provider, c.model, got, c.want)
		}
	}
}

func llm(model string, in, cached, out int64) session.Usage {
	return session.Usage{Type: "llm_usage", Provider: "openai", Model: model, InputTokens: in, InputCachedTokens: cached, OutputTokens: out}
}

func TestUsage(t *testing.T) {
	table := load(t, "")
	tts := session.Usage{Type: "tts_usage", Provider: "Cartesia", Model: "sonic-3", CharactersCount: 512, AudioDuration: 31.2}
	stt := session.Usage{Type: "stt_usage", Provider: "Deepgram", Model: "nova-3", AudioDuration: 61}
	idle := session.Usage{Type: "llm_usage", Provider: "nobody", Model: "nothing"}
	turns := session.Usage{Type: "eot_usage", Provider: "livekit", Model: "turn-detector", AudioDuration: 3}
	claude := session.Usage{Type: "llm_usage", Provider: "anthropic", Model: "claude-sonnet-4-5", InputTokens: 10_000, InputCachedTokens: 6_000,
		OutputTokens: 100, Raw: json.RawMessage(`{"input_cache_creation_tokens":3000}`)}
	realtime := func(raw string) session.Usage {
		return session.Usage{Type: "llm_usage", Provider: "api.openai.com", Model: "gpt-realtime", InputTokens: 5000, InputCachedTokens: 1500,
			OutputTokens: 900, SessionDuration: 60, Raw: json.RawMessage(raw)}
	}
	for _, c := range []struct {
		name  string
		usage []session.Usage
		want  any
	}{
		{"nothing", nil, nil},
		{"only idle entries", []session.Usage{idle, turns}, nil},
		// (1,000,000 - 400,000) x 0.40 + 400,000 x 0.10 + 100,000 x 1.60, per million
		{"cached tokens are part of the input", []session.Usage{llm("gpt-4.1-mini", 1_000_000, 400_000, 100_000)}, 0.24 + 0.04 + 0.16},
		{"more cached than input", []session.Usage{llm("gpt-4.1-mini", 1000, 5000, 0)}, 1000 * 0.1 / 1e6},
		{"negative counts", []session.Usage{llm("gpt-4.1-mini", -5, -5, 1000)}, 1000 * 1.6 / 1e6},
		{"no cached price", []session.Usage{llm("gpt-4-turbo", 1000, 500, 0)}, 1000 * 10 / 1e6},
		{"unknown model", []session.Usage{llm("gpt-99", 1, 0, 1)}, nil},
		{"never a partial sum", []session.Usage{llm("gpt-4.1-mini", 1000, 0, 10), tts, llm("gpt-99", 1, 0, 1)}, nil},
		{"idle entries do not matter", []session.Usage{idle, turns, stt}, 61.0 / 60 * 0.0077},
		{"unknown type", []session.Usage{stt, {Type: "avatar_usage", Provider: "x", Model: "y", AudioDuration: 3}}, nil},
		{"unknown type without quantity", []session.Usage{stt, {Type: "avatar_usage", Provider: "x", Model: "y"}}, 61.0 / 60 * 0.0077},
		{"time alone", []session.Usage{{Type: "llm_usage", Provider: "openai", Model: "gpt-4o", SessionDuration: 60}}, nil},
		{"speech without characters", []session.Usage{{Type: "tts_usage", Provider: "cartesia", Model: "sonic-3", AudioDuration: 3}}, nil},
		{"transcription without time", []session.Usage{{Type: "stt_usage", Provider: "deepgram", Model: "nova-3", InputTokens: 3}}, nil},
		{"speech by token", []session.Usage{{Type: "tts_usage", Provider: "openai", Model: "gpt-4o-mini-tts", InputTokens: 100, OutputTokens: 2000,
			AudioDuration: 60}}, (100*0.6 + 2000*12) / 1e6},
		{"speech by the minute when tokens are missing", []session.Usage{{Type: "tts_usage", Provider: "openai", Model: "gpt-4o-mini-tts",
			InputTokens: 100, AudioDuration: 60}}, 0.015},
		{"cache writes", []session.Usage{claude}, (1000*3 + 6000*0.3 + 3000*3.75 + 100*15) / 1e6},
		{"speech to speech", []session.Usage{realtime(`{"input_text_tokens":2000,"input_audio_tokens":3000,"input_cached_text_tokens":500,
			"input_cached_audio_tokens":1000,"output_text_tokens":200,"output_audio_tokens":700}`)},
			(1500*4 + 500*0.4 + 200*16 + 2000*32 + 1000*0.4 + 700*64) / 1e6},
		{"speech to speech that does not say which tokens", []session.Usage{realtime(`{"input_tokens":5000}`)}, nil},
		{"speech to speech with images", []session.Usage{realtime(`{"input_text_tokens":1000,"input_audio_tokens":3000,"input_image_tokens":1000,
			"input_cached_text_tokens":500,"input_cached_audio_tokens":1000,"output_text_tokens":200,"output_audio_tokens":700}`)}, nil},
		{"audio in a text model", []session.Usage{{Type: "llm_usage", Provider: "google", Model: "gemini-2.5-flash", InputTokens: 9,
			Raw: json.RawMessage(`{"input_audio_tokens":4}`)}}, nil},
		{"details that are no numbers", []session.Usage{realtime(`{"input_audio_tokens":"many"}`)}, nil},
		{"no end of speech", []session.Usage{stt, {Type: "stt_usage", Provider: "deepgram", Model: "nova-3", AudioDuration: math.Inf(1)}}, nil},
		{"no number of seconds", []session.Usage{{Type: "stt_usage", Provider: "deepgram", Model: "nova-3", AudioDuration: math.NaN()}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, table.Usage(c.usage), c.want) })
	}
}

// TestDemoCall prices the recorded call by hand: gpt-4.1-mini with 3120 input tokens (1024 cached) and 214 output tokens,
// sonic-3 with 512 characters, nova-3 with 61 s.
func TestDemoCall(t *testing.T) {
	body, err := os.ReadFile("../../testdata/fixtures/demo-call/chat_history.json")
	if err != nil {
		t.Fatal(err)
	}
	header, err := os.ReadFile("../../testdata/fixtures/demo-call/header.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Parse(report.Upload{Header: header, ChatHistory: body, HasChatHistory: true})
	if err != nil {
		t.Fatal(err)
	}
	const (
		llm = 0.0012832      // (3120-1024) x 0.40 + 1024 x 0.10 + 214 x 1.60 = 1283.2 millionths
		tts = 0.0191488      // 512 x 37.4 = 19148.8 millionths
		stt = 0.007828333333 // 61/60 x 0.0077
	)
	table := load(t, "")
	check(t, table.Session(r.Usage, r.Items), llm+tts+stt)
	// Without the totals the messages do not say how much was heard: no cost rather than a part of it.
	check(t, table.Session(nil, r.Items), nil)
}

func TestMessages(t *testing.T) {
	table := load(t, "")
	reply := func(model string, prompt, cached, completion, characters int64, voice string) session.Item {
		it := session.Item{Type: session.ItemMessage, Role: session.RoleAssistant}
		if model != "" {
			it.Metrics.LLM = session.Model{Provider: "openai", Name: model}
			it.Metrics.LLMPromptTokens, it.Metrics.LLMCompletionTokens, it.Metrics.LLMCacheReadTokens = &prompt, &completion, &cached
		}
		if voice != "" {
			it.Metrics.TTS = session.Model{Provider: "cartesia", Name: voice}
			it.Metrics.TTSCharacters = &characters
		}
		return it
	}
	user := session.Item{Type: session.ItemMessage, Role: session.RoleUser, Text: "hello"}
	delay := 0.2
	heard := user
	heard.Metrics.TranscriptionDelay = &delay
	uncounted := session.Item{Type: session.ItemMessage, Role: session.RoleAssistant}
	uncounted.Metrics.LLMNodeTTFT = &delay
	unspoken := reply("gpt-4.1-mini", 10, 0, 10, 0, "")
	unspoken.Metrics.TTSNodeTTFB = &delay
	half := reply("gpt-4.1-mini", 10, 0, 10, 0, "")
	half.Metrics.LLMCompletionTokens = nil
	for _, c := range []struct {
		name  string
		items []session.Item
		want  any
	}{
		{"none", nil, nil},
		{"nothing measured", []session.Item{user}, nil},
		{"text", []session.Item{user, reply("gpt-4.1-mini", 1000, 400, 50, 0, ""), user, reply("gpt-4o", 100, 0, 10, 0, "")},
			(600*0.4 + 400*0.1 + 50*1.6 + 100*2.5 + 10*10) / 1e6},
		{"speech", []session.Item{reply("", 0, 0, 0, 100, "sonic-3"), reply("gpt-4.1-mini", 10, 0, 1, 40, "sonic-3")}, (140*37.4 + 10*0.4 + 1.6) / 1e6},
		{"one unknown model", []session.Item{reply("gpt-4.1-mini", 10, 0, 1, 0, ""), reply("gpt-99", 10, 0, 1, 0, "")}, nil},
		{"one unknown voice", []session.Item{reply("gpt-4.1-mini", 10, 0, 1, 40, "murmur")}, nil},
		{"one reply without tokens", []session.Item{reply("gpt-4.1-mini", 10, 0, 1, 0, ""), uncounted}, nil},
		{"one reply with half its tokens", []session.Item{half}, nil},
		{"spoken without characters", []session.Item{unspoken}, nil},
		{"heard", []session.Item{heard, reply("gpt-4.1-mini", 10, 0, 1, 0, "")}, nil},
		{"speech to speech", []session.Item{reply("gpt-realtime", 10, 0, 1, 0, "")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, table.Session(nil, c.items), c.want)
			// Totals that have nothing to price leave it to the messages, any others decide alone.
			check(t, table.Session([]session.Usage{{Type: "interruption_usage", Model: "x"}}, c.items), c.want)
			check(t, table.Session([]session.Usage{llm("gpt-4o", 1_000_000, 0, 0)}, c.items), 2.5)
			check(t, table.Session([]session.Usage{llm("gpt-99", 1, 0, 0)}, c.items), nil)
		})
	}
}

func TestEvals(t *testing.T) {
	body, err := os.ReadFile("../../testdata/fixtures/vitest-evals/run.json")
	if err != nil {
		t.Fatal(err)
	}
	table := load(t, "")
	price := func(t *testing.T, body []byte) *float64 {
		t.Helper()
		post, err := eval.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		var cases []eval.CaseSummary
		for i := range post.Cases {
			post.Cases[i].Price(table.LLM)
			cases = append(cases, post.Cases[i].CaseSummary)
		}
		return eval.Aggregate(cases).EstimatedCostUSD
	}
	// One case counts per message (812, of them 256 cached, and 18), the other in a usage event (1452 and 27) that its
	// messages repeat; both gpt-4.1-mini.
	check(t, price(t, body), (556*0.4+256*0.1+18*1.6+1452*0.4+27*1.6)/1e6)
	check(t, price(t, []byte(strings.Replace(string(body), `"gpt-4.1-mini"`, `"gpt-99"`, 1))), nil)
	if usd, ok := table.LLM("openai", "gpt-4o", 0, 0, 0); ok {
		t.Errorf("no tokens cost %v, want unknown", usd)
	}
}

func TestOverride(t *testing.T) {
	const own = `{"as_of": "2026-11-01", "note": "negotiated",
		"providers": {"ours": ["llm.internal"], "azure": ["openai.azure.com"]},
		"prices": [
			{"kind": "llm", "provider": "openai", "models": ["gpt-4o"], "input_per_1m": 1, "output_per_1m": 2},
			{"kind": "llm", "provider": "azure", "models": ["gpt-4o*"], "input_per_1m": 3, "output_per_1m": 4},
			{"kind": "llm", "provider": "ours", "models": ["llama-3.3-70b", "free"], "input_per_1m": 0, "output_per_1m": 0},
			{"kind": "stt", "provider": "new one", "models": ["ear"], "per_minute": 0.6}
		]}`
	table := load(t, own)
	if table.AsOf != "2026-11-01" {
		t.Errorf("as of %q", table.AsOf)
	}
	for _, c := range []struct {
		provider, model string
		want            any
	}{
		{"openai", "gpt-4o", 3.0},
		{"api.openai.com", "gpt-4o-2024-08-06", 3.0},
		{"openai", "gpt-4o-mini", 0.75}, // built in
		{"eu.openai.azure.com", "gpt-4o-mini", 7.0},
		{"llm.internal", "free", 0.0},
		{"llm.internal", "gpt-4o", nil},
	} {
		var got *float64
		if usd, ok := table.LLM(c.provider, c.model, 1e6, 0, 1e6); ok {
			got = &usd
		}
		t.Run(c.provider+" "+c.model, func(t *testing.T) { check(t, got, c.want) })
	}
	check(t, table.Usage([]session.Usage{{Type: "stt_usage", Provider: "New One", Model: "ear", AudioDuration: 30}}), 0.3)

	only := load(t, `{"replace": true, "prices": [{"kind": "llm", "provider": "openai", "models": ["gpt-4o"], "input_per_1m": 1, "output_per_1m": 2}]}`)
	if _, ok := only.LLM("openai", "gpt-4o-mini", 1, 0, 1); ok || only.AsOf != "" {
		t.Error("a replaced built-in price is still known")
	}
	if _, ok := only.LLM("api.openai.com", "gpt-4o", 1, 0, 1); !ok {
		t.Error("replacing prices lost the names of providers")
	}
}

func TestBadOverride(t *testing.T) {
	entry := func(fields string) string {
		return `{"prices": [{"kind": "tts", "provider": "cartesia", "models": ["sonic-3"], "characters_per_1m": 1}, {` + fields + `}]}`
	}
	for _, c := range []struct {
		doc  string
		want string // part of the message
	}{
		{``, "not a price table"},
		{`[]`, "not a price table"},
		{`{} {}`, "something follows"},
		{`{"price": []}`, `unknown field "price"`},
		{`{"as_of": 2026}`, "as_of: is of type number; text is wanted"},
		{`{"replace": "yes"}`, "replace: is of type string; true or false is wanted"},
		{`{"providers": []}`, "providers: is of type array; an object is wanted"},
		{`{"as_of": "May"}`, `as_of: "May" is not a date`},
		{`{"prices": [{"kind": "llm"`, "not a price table"},
		{`{"prices": {}}`, "prices: is of type object; a list is wanted"},
		{`{"providers": {"": []}}`, "providers: a provider has an empty name"},
		{`{"providers": {"a": [""]}}`, "providers.a[0]: must not be empty"},
		{`{"providers": {"a": ["b"], "b": []}}`, "providers.a[0]: "},
		{`{"gateways": ["nobody"]}`, `gateways[0]: "nobody" is not one of the providers`},
		{entry(`"kind": "video", "provider": "x", "models": ["y"]`), `prices[1].kind: is "video"`},
		{entry(`"kind": "llm", "models": ["y"]`), "prices[1].provider: must name"},
		{entry(`"kind": "llm", "provider": "x"`), "prices[1].models: must name"},
		{entry(`"kind": "llm", "provider": "x", "models": [" "], "input_per_1m": 1, "output_per_1m": 1`), "prices[1] (x  ).models[0]: "},
		{entry(`"kind": "llm", "provider": "x", "models": ["a*b"], "input_per_1m": 1, "output_per_1m": 1`), "prices[1] (x a*b).models[0]: "},
		{entry(`"kind": "llm", "provider": "x", "models": "y"`), "prices[1].models: is of type string; a list is wanted"},
		{entry(`"kind": "llm", "provider": "x", "models": ["y"], "input_per_1m": "1"`), "prices[1].input_per_1m: is of type string; a number is wanted"},
		{entry(`"kind": "llm", "provider": "x", "models": ["y"], "input": 1`), `prices[1]: unknown field "input"`},
		{entry(`"kind": "llm", "provider": "x", "models": ["y"], "output_per_1m": 1`), "prices[1] (x y).input_per_1m: is missing"},
		{entry(`"kind": "llm", "provider": "x", "models": ["y"], "input_per_1m": 1`), "prices[1] (x y).output_per_1m: is missing"},
		{entry(`"kind": "llm", "provider": "x", "models": ["y"], "input_per_1m": -1, "output_per_1m": 1`), "prices[1] (x y).input_per_1m: is -1; allowed is 0 to 100000"},
		{entry(`"kind": "llm", "provider": "x", "models": ["y"], "input_per_1m": 1, "output_per_1m": 1e6`), "prices[1] (x y).output_per_1m: is 1e+06"},
		{entry(`"kind": "llm", "provider": "x", "models": ["y"], "input_per_1m": 1, "output_per_1m": 1, "per_minute": 1`), "prices[1] (x y).per_minute: has no meaning"},
		{entry(`"kind": "llm", "provider": "x", "models": ["y"], "input_per_1m": 1, "output_per_1m": 1, "audio_input_per_1m": 1`), "go together"},
		{entry(`"kind": "llm", "provider": "x", "models": ["y"], "input_per_1m": 1, "output_per_1m": 1, "cached_audio_input_per_1m": 1`), "needs audio_input_per_1m"},
		{entry(`"kind": "stt", "provider": "x", "models": ["y"]`), "prices[1] (x y): needs per_minute"},
		{entry(`"kind": "tts", "provider": "x", "models": ["y"]`), "prices[1] (x y): needs characters_per_1m"},
		{entry(`"kind": "tts", "provider": "cartesia.ai", "models": ["Sonic-3"], "per_minute": 1`), `prices[1] (cartesia.ai Sonic-3).models[0]: "Sonic-3" has a price already`},
	} {
		_, err := Load([]byte(c.doc))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nsays %v, want %q", c.doc, err, c.want)
		}
		if kind := errs.KindOf(err); err != nil && kind != errs.Invalid && kind != errs.InvalidJSON {
			t.Errorf("%s\nis an error of kind %v", c.doc, kind)
		}
	}
}

// TestBuiltIn holds what the table says about itself.
func TestBuiltIn(t *testing.T) {
	table := load(t, "")
	if table.AsOf == "" {
		t.Error("the built-in prices have no date")
	}
	for k, p := range table.layers[0].exact {
		if _, known := table.provider(k.provider); !known {
			t.Errorf("%v: the provider has no names", k)
		}
		if p.CachedInput != nil && *p.CachedInput > *p.Input {
			t.Errorf("%v: cached input costs more than input", k)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(builtin)
	f.Add([]byte(`{"providers":{"a":["b"]},"prices":[{"kind":"llm","provider":"b","models":["x*"],"input_per_1m":1,"output_per_1m":1}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		table, err := Load(doc)
		if (table == nil) == (err == nil) {
			t.Fatalf("table %v with error %v", table, err)
		}
	})
}

func BenchmarkUsage(b *testing.B) {
	table := load(b, "")
	usage := []session.Usage{llm("gpt-4.1-mini", 3120, 1024, 214),
		{Type: "tts_usage", Provider: "Cartesia", Model: "sonic-3", CharactersCount: 512, AudioDuration: 31.2},
		{Type: "stt_usage", Provider: "Deepgram", Model: "nova-3", AudioDuration: 61}}
	b.ReportAllocs()
	for b.Loop() {
		if table.Usage(usage) == nil {
			b.Fatal("no cost")
		}
	}
}

// TestGuide holds that the example in the guide is a valid file.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/prices.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(guide), "```json\n")
	example, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("docs/prices.md has no JSON example")
	}
	table := load(t, example)
	if usd, ok := table.LLM("llm.internal.example.com", "llama-3.3-70b", 1000, 0, 1000); !ok || usd != 0 {
		t.Errorf("the guide's own model costs %v, %v", usd, ok)
	}
}

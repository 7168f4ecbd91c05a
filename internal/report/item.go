package report

import (
	"encoding/json"
	"strings"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// item reads the object at the position into it. The caller has checked that it is one. An item that names no type is
// read as unwrapItem completes it.
func (p *parser) item(it *session.Item) {
	p.itemFields(it)
	if it.Type != "" || p.err != nil {
		return
	}
	if raw, changed := unwrapItem(it.Raw); changed {
		*it = session.Item{}
		completed := parser{scanner: scanner{b: raw}}
		completed.itemFields(it)
	}
}

func (p *parser) itemFields(it *session.Item) {
	p.peek()
	start := p.i
	for p.enter('{'); p.more('}'); {
		switch string(p.key()) {
		case "id":
			it.ID = p.str()
		case "type":
			it.Type = p.word()
		case "created_at", "createdAt":
			it.CreatedAt = p.time()
		case "role":
			it.Role = strings.ToLower(p.word())
		case "content":
			it.Text = p.content()
		case "interrupted":
			it.Interrupted = p.boolean()
		case "transcript_confidence", "transcriptConfidence":
			it.TranscriptConfidence = p.measure()
		case "metrics":
			p.metrics(&it.Metrics)
		case "call_id", "callId":
			it.CallID = p.str()
		case "name":
			it.Name = p.word()
		case "arguments", "args":
			it.Arguments = p.strOrJSON()
		case "output":
			it.Output = p.strOrJSON()
		case "is_error", "isError":
			it.IsError = p.boolean()
		default:
			p.skip()
		}
	}
	if p.err == nil {
		it.Raw = json.RawMessage(p.b[start:p.i:p.i])
	}
}

// strOrJSON reads a string, or any other value but null as its JSON text.
func (p *parser) strOrJSON() string {
	switch p.peek() {
	case '"':
		return p.str()
	case 'n':
		p.skip()
		return ""
	}
	return string(withoutNUL(p.value()))
}

// content reads the content of a message: a string, a part, or a list of these. Texts are joined by newlines.
func (p *parser) content() string {
	if !p.enter('[') {
		return stripMarkup(p.contentPart())
	}
	p.texts = p.texts[:0]
	for p.more(']') {
		if text := p.contentPart(); text != "" {
			p.texts = append(p.texts, text)
		}
	}
	return stripMarkup(strings.Join(p.texts, "\n"))
}

// contentPart reads one part: a string, {text}, or instructions ({type: "instructions", audio, text?}: the text
// variant, else the one meant for speech). Images, audio and anything else have no text.
func (p *parser) contentPart() string {
	if p.peek() != '{' {
		return p.str()
	}
	var kind, text, spoken string
	for p.enter('{'); p.more('}'); {
		switch string(p.key()) {
		case "type":
			kind = p.word()
		case "text":
			text = p.str()
		case "audio":
			spoken = p.str()
		default:
			p.skip()
		}
	}
	switch {
	case strings.HasPrefix(kind, "image"), strings.HasPrefix(kind, "audio"):
		return ""
	case text == "" && kind == "instructions":
		return spoken
	}
	return text
}

// stripMarkup removes the delivery marks that an expressive TTS gets inside the text (SDK 1.6.5 and later):
// <expr .../> alone, and <expr ...> and </expr> around words that stay. Where a mark stood between two spaces one of
// them goes too.
func stripMarkup(text string) string {
	if !strings.Contains(text, "<expr") && !strings.Contains(text, "</expr") {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		n := markLen(text[i:])
		if n == 0 {
			out = append(out, text[i])
			i++
			continue
		}
		i += n
		if i < len(text) && text[i] == ' ' && (len(out) == 0 || out[len(out)-1] == ' ' || out[len(out)-1] == '\n') {
			i++
		}
	}
	return strings.TrimSpace(string(out))
}

// markLen is the length of the expr mark at the start of s, 0 if there is none. A '>' inside quotes does not end it.
func markLen(s string) int {
	n := len("<expr")
	switch {
	case strings.HasPrefix(s, "<expr"):
	case strings.HasPrefix(s, "</expr"):
		n++
	default:
		return 0
	}
	if n < len(s) && !strings.ContainsRune(" \t\r\n/>", rune(s[n])) {
		return 0 // another tag, like <expression>
	}
	var quote byte
	for ; n < len(s); n++ {
		switch c := s[n]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return n + 1
		case c == '<':
			return 0
		}
	}
	return 0
}

// metrics reads the measurements of a message. Values of the wrong type, and negative ones, which some SDK versions
// write for "not measured", are taken as not measured.
func (p *parser) metrics(m *session.ItemMetrics) {
	if !p.enter('{') {
		p.skip()
		return
	}
	for p.more('}') {
		switch string(p.key()) {
		case "started_speaking_at", "startedSpeakingAt":
			m.StartedSpeakingAt = p.time()
		case "stopped_speaking_at", "stoppedSpeakingAt":
			m.StoppedSpeakingAt = p.time()
		case "transcription_delay", "transcriptionDelay":
			m.TranscriptionDelay = p.measure()
		case "end_of_turn_delay", "endOfTurnDelay":
			m.EndOfTurnDelay = p.measure()
		case "on_user_turn_completed_delay", "onUserTurnCompletedDelay":
			m.OnUserTurnCompletedDelay = p.measure()
		case "llm_node_ttft", "llmNodeTtft", "llmNodeTTFT":
			m.LLMNodeTTFT = p.measure()
		case "tts_node_ttfb", "ttsNodeTtfb", "ttsNodeTTFB":
			m.TTSNodeTTFB = p.measure()
		case "e2e_latency", "e2eLatency":
			m.E2ELatency = p.measure()
		case "llm_prompt_tokens", "llmPromptTokens":
			m.LLMPromptTokens = p.tokens()
		case "llm_completion_tokens", "llmCompletionTokens":
			m.LLMCompletionTokens = p.tokens()
		case "llm_total_tokens", "llmTotalTokens":
			m.LLMTotalTokens = p.tokens()
		case "llm_cache_read_tokens", "llmCacheReadTokens":
			m.LLMCacheReadTokens = p.tokens()
		case "tts_characters", "ttsCharacters", "tts_characters_count", "ttsCharactersCount":
			m.TTSCharacters = p.tokens()
		case "llm_metadata", "llmMetadata":
			m.LLM = p.model()
		case "tts_metadata", "ttsMetadata":
			m.TTS = p.model()
		case "stt_metadata", "sttMetadata":
			m.STT = p.model()
		default:
			p.skip()
		}
	}
}

func (p *parser) model() (m session.Model) {
	if !p.enter('{') {
		p.skip()
		return m
	}
	for p.more('}') {
		switch string(p.key()) {
		case "model_name", "modelName":
			m.Name = p.word()
		case "model_provider", "modelProvider":
			m.Provider = p.word()
		default:
			p.skip()
		}
	}
	return m
}

// ParseItem reads one chat item on its own: an element of a chat history, or the proto-JSON form that the SDKs put
// into log records, with or without its one-key wrapper ({"message": {...}}). In that form a role is an upper-case
// enum name, absent for the developer, content is a list of {text} objects and times are RFC 3339. Item.Raw is without
// the wrapper. What is not a JSON object is an Invalid or InvalidJSON error.
func ParseItem(raw []byte) (session.Item, error) {
	p := parser{scanner: scanner{b: clean(raw)}}
	var it session.Item
	isObject := p.peek() == '{'
	if isObject {
		p.item(&it)
	} else {
		p.skip()
	}
	switch p.end(); {
	case p.err != nil:
		return session.Item{}, invalidPart(errs.InvalidJSON, "item", "not valid JSON: %v", p.err)
	case !isObject:
		return session.Item{}, invalidPart(errs.Invalid, "item", "must be a JSON object")
	}
	return it, nil
}

// unwrapItem gives a checked item as it would stand in a chat history: without the one-key wrapper, and with the type
// and the role that proto-JSON leaves out. It reports whether that changed anything.
func unwrapItem(raw []byte) (item []byte, changed bool) {
	o := outlineOf(raw)
	if o.keys == 1 && o.inner != nil {
		kind := o.wrapper
		raw, o, changed = o.inner, outlineOf(o.inner), true
		o.kind = kind
	}
	if o.typed || o.kind == "" {
		return raw, changed
	}
	s := scanner{b: raw}
	s.enter('{')
	rest := s.b[s.i:]
	out := append(make([]byte, 0, len(raw)+64), `{"type":"`+o.kind+`"`...)
	if o.kind == session.ItemMessage && !o.role {
		out = append(out, `,"role":"developer"`...)
	}
	if s.more('}') {
		out = append(out, ',')
	}
	return append(out, rest...), true
}

// outline is what unwrapItem needs to know of an item.
type outline struct {
	keys        int
	typed, role bool   // whether it has these keys
	kind        string // as one of its keys tells
	wrapper     string // a key that names an item type and holds an object
	inner       []byte // that object
}

func outlineOf(raw []byte) (o outline) {
	s := scanner{b: raw}
	for s.enter('{'); s.more('}'); o.keys++ {
		key := string(s.key())
		o.typed = o.typed || key == "type"
		o.role = o.role || key == "role"
		switch kind := kindOfKey[key]; {
		case kind != "" && kind == key && s.peek() == '{':
			o.wrapper, o.inner = kind, s.value()
			continue
		case kind != key && o.kind == "":
			o.kind = kind
		}
		s.skip()
	}
	return o
}

// kindOfKey maps the keys of wrappers to themselves, and the keys that only one type of item has to that type.
var kindOfKey = map[string]string{
	session.ItemMessage:      session.ItemMessage,
	session.ItemFunctionCall: session.ItemFunctionCall,
	session.ItemFunctionOut:  session.ItemFunctionOut,
	session.ItemHandoff:      session.ItemHandoff,
	session.ItemConfigUpdate: session.ItemConfigUpdate,

	"role": session.ItemMessage, "content": session.ItemMessage,
	"arguments": session.ItemFunctionCall, "args": session.ItemFunctionCall,
	"output":       session.ItemFunctionOut,
	"new_agent_id": session.ItemHandoff, "newAgentId": session.ItemHandoff,
	"instructions": session.ItemConfigUpdate,
	"tools_added":  session.ItemConfigUpdate, "toolsAdded": session.ItemConfigUpdate,
	"tools_removed": session.ItemConfigUpdate, "toolsRemoved": session.ItemConfigUpdate,
}

package report

import (
	"bytes"
	"encoding/json"
	"strings"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// Bounds on what one report may list. The longest real sessions have a few thousand items; without a bound a body of
// empty objects would take two hundred times its size in memory.
const (
	maxItems  = 50_000
	maxLabels = 2_000 // tags, evaluations and usage entries, each
	maxTag    = 1024  // bytes of a tag's name, of a judge's name, a verdict or an outcome; the rest is cut off
)

// Parse makes a report out of an upload. The errors, all Invalid or InvalidJSON, name the part.
//
// AccountID, AgentID, AgentName and Transport are each taken from the first place that has them: the header, then its
// room_tags, the top level of the body. What tags say beyond that is the domain's to read, because tags also arrive by
// other ways.
func Parse(u Upload) (*session.Report, error) {
	if u.Header == nil {
		return nil, errNoHeader()
	}
	h, err := ParseHeader(u.Header, u.HeaderProto)
	if err != nil {
		return nil, err
	}
	return parse(h, u.ChatHistory, u.HasChatHistory)
}

func errNoHeader() error {
	return invalidPart(errs.Invalid, partHeader, "the multipart body has no such part")
}

func parse(h Header, chat []byte, hasChat bool) (*session.Report, error) {
	if h.SessionID == "" && h.RoomID == "" {
		return nil, invalidPart(errs.Invalid, partHeader, "has neither session_id nor room_id")
	}
	r := &session.Report{
		SessionID: h.SessionID, RoomID: h.RoomID, JobID: h.JobID, RoomName: h.RoomName,
		HeaderStart: h.CallStart, AudioStart: h.AudioStart, EndedAt: h.EndedAt,
		Simulated: h.Simulated, Redacted: h.Redacted,
	}
	if hasChat {
		p := parser{scanner: scanner{b: clean(chat)}, report: r}
		if err := p.body(); err != nil {
			return nil, err
		}
		h.Identity.orElse(p.who)
	}
	r.AccountID, r.AgentID, r.AgentName, r.Transport = h.AccountID, h.AgentID, h.AgentName, h.Transport
	return r, checkIDs(r)
}

// checkIDs refuses identifiers that are too long to be indexed, and the two that no URL can name: clients resolve them
// as steps in a path, even when they are escaped.
func checkIDs(r *session.Report) error {
	var fields []errs.Field
	for _, f := range []struct{ name, value string }{
		{"session_id", r.SessionID}, {"room_id", r.RoomID}, {"job_id", r.JobID}, {"account_id", r.AccountID},
		{"agent_id", r.AgentID}, {"agent_name", r.AgentName}, {"transport", r.Transport},
	} {
		if len(f.value) > maxID {
			fields = append(fields, errs.Field{Field: f.name, Message: "may have at most 512 bytes"})
		}
		if (f.name == "session_id" || f.name == "room_id") && (f.value == "." || f.value == "..") {
			fields = append(fields, errs.Field{Field: f.name, Message: "may not be . or .., which URLs cannot hold"})
		}
	}
	return errs.InvalidFields(fields)
}

// parser reads a chat history body in one pass.
type parser struct {
	scanner
	report  *session.Report
	who     Identity // as the top level of the body says
	tooMany string   // what the body lists too many of

	texts    []string // scratch of content
	words    []string // see word
	measures []float64
	counts   []int64
}

// body reads the whole body: a list of items, {items}, or a whole session report with its chat_history inside.
func (p *parser) body() error {
	switch p.peek() {
	case '[':
		p.items()
	case '{':
		p.topLevel()
	default:
		if len(bytes.TrimSpace(p.b)) == 0 {
			return invalidPart(errs.InvalidJSON, partChat, "the part is empty, expected a JSON object")
		}
		p.skip()
		if p.end(); p.err == nil {
			return invalidPart(errs.Invalid, partChat, "must be a JSON object or a list of items")
		}
	}
	p.end()
	switch {
	case p.tooMany != "":
		return invalidPart(errs.Invalid, partChat, "lists too many %s", p.tooMany)
	case p.err != nil:
		return invalidPart(errs.InvalidJSON, partChat, "not valid JSON: %v", p.err)
	}
	return nil
}

func (p *parser) topLevel() {
	r := p.report
	var nested bool // chat_history wins over items beside it
	for p.enter('{'); p.more('}'); {
		switch key := string(p.key()); key {
		case "items":
			if nested {
				p.skip()
			} else {
				p.items()
			}
		case "chat_history", "chatHistory":
			nested = p.chatHistory() || nested
		case "events":
			r.Events = p.valueOf('[')
		case "options":
			r.Options = p.valueOf('{')
		case "tags":
			p.tags()
		case "evaluations":
			p.evaluations()
		case "outcome":
			p.outcome()
		case "usage":
			p.usage()
		case "job_id", "jobId":
			r.BodyJobID = clip(p.str(), maxID)
		case "room", "room_name", "roomName":
			if name := clip(p.str(), maxID); r.RoomName == "" {
				r.RoomName = name
			}
		case "timestamp":
			r.Timestamp = p.time()
		case "started_at", "startedAt":
			r.BodyStart = p.time()
		case "audio_recording_started_at", "audioRecordingStartedAt":
			if t := p.time(); r.AudioStart.IsZero() {
				r.AudioStart = t
			}
		case "sdk_version", "sdkVersion":
			r.SDKVersion = clip(p.str(), maxID)
		case "account_id", "accountId", "agent_id", "agentId", "agent_name", "agentName", "transport":
			p.who.set(key, p.text())
		default:
			p.skip()
		}
	}
}

// chatHistory reads {items} or a bare list; it reports whether it was one of these.
func (p *parser) chatHistory() bool {
	switch p.peek() {
	case '[':
		p.items()
		return true
	case '{':
		p.report.HasTranscript, p.report.Items = true, nil
		for p.enter('{'); p.more('}'); {
			if string(p.key()) == "items" {
				p.items()
			} else {
				p.skip()
			}
		}
		return true
	}
	p.skip()
	return false
}

// items reads the list of items. Elements that are not objects are no items and are dropped.
func (p *parser) items() {
	if !p.enter('[') {
		p.skip()
		return
	}
	p.report.HasTranscript = true
	items := make([]session.Item, 0, min(4+(len(p.b)-p.i)/600, 256)) // an item takes 400 bytes, or 800 with its event
	for p.more(']') {
		if p.peek() != '{' {
			p.skip()
			continue
		}
		if len(items) == maxItems {
			p.overflow("items")
			break
		}
		items = append(items, session.Item{})
		p.item(&items[len(items)-1])
	}
	p.report.Items = items
}

// overflow ends the parsing of a body that lists more of something than is allowed.
func (p *parser) overflow(what string) {
	p.tooMany = what
	p.fail("too many %s", what)
}

// valueOf gives the next value if it is an object or an array, as open says; any other value is skipped.
func (p *parser) valueOf(open byte) json.RawMessage {
	if p.peek() != open {
		p.skip()
		return nil
	}
	return p.value()
}

// list calls read for each object of an array, and text, if there is one, for each string.
func (p *parser) list(what string, read func(), text func(string)) {
	if !p.enter('[') {
		p.skip()
		return
	}
	for n := 0; p.more(']'); n++ {
		switch c := p.peek(); {
		case n == maxLabels:
			p.overflow(what)
		case c == '{':
			read()
		case c == '"' && text != nil:
			text(p.str())
		default:
			p.skip()
		}
	}
}

func (p *parser) usage() {
	p.report.Usage = nil
	p.list("usage entries", func() {
		var u session.Usage
		s := p.scanner // the keys are normalised from the same bytes below
		count := func(to *int64) {
			if n, ok := p.count(); ok {
				*to = n
			}
		}
		seconds := func(to *float64, unit float64) {
			if v, ok := p.num(); ok && v >= 0 {
				*to = v / unit
			}
		}
		for p.enter('{'); p.more('}'); {
			switch string(p.key()) {
			case "type":
				u.Type = p.word()
			case "provider":
				u.Provider = p.word()
			case "model":
				u.Model = p.word()
			case "input_tokens", "inputTokens":
				count(&u.InputTokens)
			case "input_cached_tokens", "inputCachedTokens":
				count(&u.InputCachedTokens)
			case "output_tokens", "outputTokens":
				count(&u.OutputTokens)
			case "characters_count", "charactersCount":
				count(&u.CharactersCount)
			case "audio_duration", "audioDuration":
				seconds(&u.AudioDuration, 1)
			case "audio_duration_ms", "audioDurationMs":
				seconds(&u.AudioDuration, 1000)
			case "session_duration", "sessionDuration":
				seconds(&u.SessionDuration, 1)
			case "session_duration_ms", "sessionDurationMs":
				seconds(&u.SessionDuration, 1000)
			default:
				p.skip()
			}
		}
		if p.err == nil {
			u.Raw = withoutNUL(appendSnake(nil, &s))
			p.report.Usage = append(p.report.Usage, u)
		}
	}, nil)
}

// measure reads a number of at least 0; any other value is skipped and gives nil. The pointers of one report point
// into a few shared arrays, which saves an allocation for each.
func (p *parser) measure() *float64 {
	v, ok := p.num()
	if !ok || v < 0 {
		return nil
	}
	if len(p.measures) == cap(p.measures) {
		p.measures = make([]float64, 0, 64)
	}
	p.measures = append(p.measures, v)
	return &p.measures[len(p.measures)-1]
}

// tokens reads a whole number of at least 0 likewise.
func (p *parser) tokens() *int64 {
	v, ok := p.count()
	if !ok {
		return nil
	}
	if len(p.counts) == cap(p.counts) {
		p.counts = make([]int64, 0, 32)
	}
	p.counts = append(p.counts, v)
	return &p.counts[len(p.counts)-1]
}

// word reads a string of which a report repeats few different ones (types, roles, models, tools), and gives the same
// Go string for each repetition.
func (p *parser) word() string {
	if p.peek() != '"' {
		p.skip()
		return ""
	}
	raw, escaped := p.quoted()
	if escaped {
		return unescape(raw)
	}
	for _, w := range p.words {
		if w == string(raw) {
			return w
		}
	}
	w := string(raw)
	if len(p.words) < 32 && len(w) <= 64 {
		p.words = append(p.words, w)
	}
	return w
}

// lower is how verdicts and outcomes are kept and compared.
func lower(s string) string { return clip(strings.ToLower(strings.TrimSpace(s)), maxTag) }

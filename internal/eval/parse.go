package eval

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"sidetone/internal/errs"
)

// Parse reads one post. It walks the body once; events, judgments, failure and ci alias the body and are exactly as
// sent. What is computed from the events and judgments is in each case's CaseSummary and Usage.
//
// Errors, each naming the field: errs.InvalidJSON for what is not JSON or not UTF-8; errs.Invalid for broken rules, all
// of them or the first MaxFields; errs.TooLarge for more than MaxCases cases.
//
// Rules beyond the contract: an empty string is null. A number is refused when a float64 cannot hold it, a time when it
// is not after 1970 or is past the year 9999. finished_at of a run that is queued or running is ignored. NUL is refused
// in identifiers and becomes U+FFFD in names, file and user_input, because PostgreSQL text cannot hold it. A case id that
// comes twice keeps its first place and its last content. Unknown keys of the payload, run and cases are ignored.
func Parse(body []byte) (*Payload, error) {
	if err := checkText(body); err != nil {
		return nil, err
	}
	if err := checkNesting(body); err != nil {
		return nil, err
	}
	p := &parser{reader: newReader(body), caseIndex: -1}
	p.document()
	p.end()
	switch {
	case p.tooMany:
		msg := fmt.Sprintf("holds more than %d cases: send them in several posts of the same run", MaxCases)
		return nil, &errs.Error{Kind: errs.TooLarge, Message: "cases " + msg, Fields: []errs.Field{{Field: "cases", Message: msg}}}
	case p.bads > MaxFields:
		return nil, &errs.Error{Kind: errs.Invalid, Fields: p.fields,
			Message: fmt.Sprintf("the payload breaks more than %d rules; these are the first %d", MaxFields, MaxFields)}
	case p.err != nil:
		return nil, syntaxError(body, p.err)
	case p.bads > 0:
		return nil, errs.InvalidFields(p.fields)
	}
	for i := range p.cases {
		p.cases[i].RunID = p.run.ID
	}
	return &Payload{Run: p.run, Cases: p.cases}, nil
}

type parser struct {
	*reader
	run    Run
	legacy struct{ sdk, sdkVersion string }
	cases  []Case
	index  map[string]int // case id -> index in cases

	fields    []errs.Field // the violated rules, at most MaxFields
	bads      int          // how many there are, at most one more
	inRun     bool
	caseIndex int // of the case being read, -1 outside
	tooMany   bool
}

// errStop ends the walk when what follows cannot change the answer.
var errStop = errors.New("stopped")

// bad records a violated rule of the field that key names in the object being read.
func (p *parser) bad(key, format string, args ...any) {
	if p.err != nil {
		return
	}
	if p.bads++; p.bads > MaxFields {
		p.fail(errStop)
		return
	}
	switch {
	case p.caseIndex >= 0 && key == "":
		key = fmt.Sprintf("cases[%d]", p.caseIndex)
	case p.caseIndex >= 0:
		key = fmt.Sprintf("cases[%d].%s", p.caseIndex, key)
	case p.inRun:
		key = "run." + key
	}
	p.fields = append(p.fields, errs.Field{Field: key, Message: fmt.Sprintf(format, args...)})
}

// strict walks an object in which every known key may come only once and some must come. field reads the value of a
// known key and reports false, reading nothing, for an unknown one.
func (p *parser) strict(required []string, field func(key string) bool) {
	var seen [16]string // more than any object has known keys
	n := 0
	p.object(func(key []byte) {
		name := p.name(key)
		if !field(name) {
			p.value()
			return
		}
		for _, s := range seen[:n] {
			if s == name {
				p.bad(name, "appears twice")
				return
			}
		}
		seen[n] = name
		n++
	})
	for _, want := range required {
		found := false
		for _, s := range seen[:n] {
			found = found || s == want
		}
		if !found {
			p.bad(want, "is required")
		}
	}
}

func (p *parser) document() {
	if k := p.kind(); k != '{' {
		if p.value(); k != 0 {
			p.bad("body", "must be a JSON object with version, run and cases")
		}
		return
	}
	p.strict([]string{"version", "run", "cases"}, func(key string) bool {
		switch key {
		case "version":
			if s, ok := p.string(); !ok || string(s) != "v0" {
				p.bad("version", `must be "v0"`)
			}
		case "run":
			p.readRun()
		case "cases":
			p.readCases()
		default:
			return false
		}
		return true
	})
}

func (p *parser) readRun() {
	if p.kind() != '{' {
		p.value()
		p.bad("run", "must be an object")
		return
	}
	p.inRun = true
	defer func() { p.inRun = false }()
	r := &p.run
	*r = Run{Status: StatusCompleted}
	frameworkBad := false
	p.strict([]string{"run_id", "started_at"}, func(key string) bool {
		switch key {
		case "run_id":
			r.ID = p.uuid(key)
		case "name":
			r.Name = p.text(key, MaxName)
		case "account_id":
			r.AccountID = p.identifier(key)
		case "agent_id":
			r.AgentID = p.identifier(key)
		case "agent_name":
			r.AgentName = p.identifier(key)
		case "framework":
			r.Framework = p.identifier(key)
		case "framework_version":
			r.FrameworkVersion = p.identifier(key)
		case "testing_framework":
			before := p.bads
			r.TestingFramework = p.identifier(key)
			frameworkBad = p.bads > before
		case "testing_framework_version":
			r.TestingFrameworkVersion = p.identifier(key)
		case "sdk":
			p.legacy.sdk = p.identifier(key)
		case "sdk_version":
			p.legacy.sdkVersion = p.identifier(key)
		case "started_at":
			if p.kind() == 'n' {
				p.bad(key, "is required: a number of seconds since 1970")
			}
			r.StartedAt = p.time(key)
		case "finished_at":
			r.FinishedAt = p.time(key)
		case "status":
			if s := p.oneOf(key, RunStatuses, true); s != "" {
				r.Status = s
			}
		case "ci":
			r.CI = p.objectOrNull(key)
		default:
			return false
		}
		return true
	})
	p.frameworks()
	if r.TestingFramework == "" && !frameworkBad {
		p.bad("testing_framework", "is required: the name of the test framework, such as pytest or vitest")
	}
	if !finished(r.Status) {
		r.FinishedAt = time.Time{}
	}
}

// frameworks applies the legacy field names and the aliases of agent frameworks.
func (p *parser) frameworks() {
	r := &p.run
	if r.TestingFramework == "" && (r.Framework == "pytest" || r.Framework == "vitest") {
		r.TestingFramework, r.TestingFrameworkVersion = r.Framework, r.FrameworkVersion
		r.Framework, r.FrameworkVersion = p.legacy.sdk, p.legacy.sdkVersion
	}
	switch r.Framework {
	case "livekit-agents":
		r.Framework = "livekit"
	case "pipecat-ai", "pipecat-ai-flows":
		r.Framework = "pipecat"
	}
}

func (p *parser) readCases() {
	if p.kind() != '[' {
		p.value()
		p.bad("cases", "must be an array")
		return
	}
	p.cases, p.index = []Case{}, map[string]int{}
	p.array(func(i int) {
		if i >= MaxCases {
			p.tooMany = true
			p.fail(errStop)
			return
		}
		p.caseIndex = i
		p.readCase(i)
		p.caseIndex = -1
	})
	p.caseIndex = -1
}

func (p *parser) readCase(i int) {
	if p.kind() != '{' {
		p.value()
		p.bad("", "must be an object")
		return
	}
	c := Case{Position: i, Events: emptyArray, Judgments: emptyArray}
	var judgments, events int
	raw := p.raw(func() {
		p.strict([]string{"case_id", "name", "status"}, func(key string) bool {
			switch key {
			case "case_id":
				c.ID = p.uuid(key)
			case "name":
				before := p.bads
				c.Name = p.text(key, MaxName)
				if p.bads == before && strings.TrimSpace(c.Name) == "" {
					p.bad(key, "must be a string that is not blank")
				}
			case "file":
				c.File = p.text(key, MaxName)
			case "status":
				c.Status = p.oneOf(key, CaseStatuses, false)
			case "started_at":
				c.StartedAt = p.time(key)
			case "finished_at":
				c.FinishedAt = p.time(key)
			case "duration_ms":
				c.DurationMS = p.durationMS(key)
			case "user_input":
				c.UserInput = p.text(key, MaxUserInput)
			case "events":
				c.Events, events = p.readEvents(&c)
			case "judgments":
				c.Judgments, judgments = p.readJudgments(&c)
			case "failure":
				c.Failure = p.objectOrNull(key)
			default:
				return false
			}
			return true
		})
	})
	if p.err != nil {
		return
	}
	if c.DurationMS == nil {
		c.DurationMS = spanMS(c.StartedAt, c.FinishedAt)
	}
	c.Rank = caseRank(&c, judgments, events, raw)
	if at, twice := p.index[c.ID]; twice {
		c.Position = p.cases[at].Position
		p.cases[at] = c
		return
	}
	p.index[c.ID] = len(p.cases)
	p.cases = append(p.cases, c)
}

var emptyArray = []byte("[]")

// text reads a string for people: null and "" give "", NUL becomes U+FFFD.
func (p *parser) text(key string, limit int) string {
	s, ok := p.stringOrNull(key)
	if !ok || len(s) == 0 {
		return ""
	}
	if len(s) > limit && utf8.RuneCount(s) > limit {
		p.bad(key, "must be at most %d characters long", limit)
		return ""
	}
	if bytes.IndexByte(s, 0) >= 0 {
		s = bytes.ReplaceAll(s, []byte{0}, []byte("\uFFFD"))
	}
	return string(s)
}

// identifier reads a string that people filter by: null and "" give "", NUL is refused.
func (p *parser) identifier(key string) string {
	s, ok := p.stringOrNull(key)
	switch {
	case !ok || len(s) == 0:
		return ""
	case bytes.IndexByte(s, 0) >= 0:
		p.bad(key, "must not contain a NUL character")
	case utf8.RuneCount(s) > MaxIdentifier:
		p.bad(key, "must be at most %d characters long", MaxIdentifier)
	default:
		return string(s)
	}
	return ""
}

func (p *parser) stringOrNull(key string) (s []byte, ok bool) {
	if p.kind() == 'n' {
		p.value()
		return nil, true
	}
	if s, ok = p.string(); !ok {
		p.bad(key, "must be a string or null")
	}
	return s, ok
}

func (p *parser) oneOf(key string, allowed []string, nullable bool) string {
	if nullable && p.kind() == 'n' {
		p.value()
		return ""
	}
	if s, ok := p.string(); ok {
		for _, a := range allowed {
			if string(s) == a {
				return a
			}
		}
	}
	p.bad(key, "must be one of %s", strings.Join(allowed, ", "))
	return ""
}

func (p *parser) uuid(key string) string {
	if s, ok := p.string(); ok {
		if id, ok := ParseID(string(s)); ok {
			return id
		}
	}
	p.bad(key, "must be a UUID such as 7a0d4b61-52c1-4a57-9a5e-0c7b3b1f6f10")
	return ""
}

// ParseID gives the lower-case form of a UUID in its 36 character form; ok is false for anything else.
func ParseID(s string) (id string, ok bool) {
	if len(s) != 36 {
		return "", false
	}
	for i := range len(s) {
		c := s[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if dash != (c == '-') || !dash && !hex {
			return "", false
		}
	}
	return strings.ToLower(s), true
}

// Times are seconds since the epoch; from msFrom on the number can only be milliseconds (livekit-wire.md: decide by
// magnitude). maxTime is the end of the year 9999 in seconds: RFC 3339 cannot write a later time.
const (
	msFrom  = 1e11
	maxTime = 253402300800
)

// time reads a time; null gives the zero time. The result has microseconds.
func (p *parser) time(key string) time.Time {
	if p.kind() == 'n' {
		p.value()
		return time.Time{}
	}
	f, ok := p.number()
	unit := 1e6 // microseconds
	if f > msFrom {
		unit = 1e3
	}
	if !ok || f*unit < 1 || f*unit >= maxTime*1e6 {
		p.bad(key, "must be a time as a number of seconds (or milliseconds) since 1970, before the year 10000")
		return time.Time{}
	}
	whole, part := math.Modf(f) // apart, because their product with unit can exceed what a float64 holds exactly
	return time.UnixMicro(int64(whole)*int64(unit) + int64(math.Round(part*unit))).UTC()
}

func (p *parser) durationMS(key string) *int64 {
	if p.kind() == 'n' {
		p.value()
		return nil
	}
	f, ok := p.number()
	if !ok || f < 0 || f > MaxDurationMS {
		p.bad(key, "must be a number of milliseconds from 0 to %d, or null", int64(MaxDurationMS))
		return nil
	}
	ms := int64(math.Round(f))
	return &ms
}

func (p *parser) objectOrNull(key string) []byte {
	switch p.kind() {
	case 'n':
		p.value()
		return nil
	case '{':
		return p.value()
	}
	p.value()
	p.bad(key, "must be an object or null")
	return nil
}

// objects reads an array of objects; null gives an empty one. It returns the bytes as sent and the number of elements.
func (p *parser) objects(key string, element func()) (raw []byte, n int) {
	switch p.kind() {
	case 'n':
		p.value()
		return emptyArray, 0
	case '[':
	default:
		p.value()
		p.bad(key, "must be an array of objects")
		return emptyArray, 0
	}
	raw = p.raw(func() {
		p.array(func(i int) {
			n++
			if p.kind() == '{' {
				element()
				return
			}
			p.value()
			p.bad(fmt.Sprintf("%s[%d]", key, i), "must be an object")
		})
	})
	return raw, n
}

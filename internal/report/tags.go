package report

import (
	"encoding/json"
	"strings"

	"sidetone/internal/session"
)

// Where a tag, an evaluation or an outcome came from.
const (
	sourceReport = "report"
	sourceTag    = "tag"
)

// The tags with a meaning of their own.
const (
	tagSession = "agent.session" // its metadata says whose call it was
	tagSuccess = "lk.success"
	tagFail    = "lk.fail"
	judgeTag   = "lk.judge." // followed by NAME:VERDICT
)

// tags reads the list of tags: strings, or objects {name, metadata}. A name that repeats is one tag; it keeps the first
// metadata given.
func (p *parser) tags() {
	r := p.report
	r.Tags = nil
	index := map[string]int{}
	add := func(name string, metadata json.RawMessage) {
		if name = clip(strings.TrimSpace(name), maxTag); name == "" {
			return
		}
		i, known := index[name]
		if !known {
			index[name] = len(r.Tags)
			r.Tags = append(r.Tags, session.Tag{Name: name, Metadata: metadata, Source: sourceReport})
		} else if r.Tags[i].Metadata == nil {
			r.Tags[i].Metadata = metadata
		}
	}
	p.list("tags", func() {
		var name string
		var metadata json.RawMessage
		for p.enter('{'); p.more('}'); {
			switch string(p.key()) {
			case "name":
				name = p.str()
			case "metadata":
				metadata = withoutNUL(p.valueOf('{'))
			default:
				p.skip()
			}
		}
		add(name, metadata)
	}, func(name string) { add(name, nil) })
}

// tagIdentity reads whose call it was from the tags, and what they do not say from the metadata of agent.session.
func tagIdentity(tags []session.Tag) (id Identity) {
	var meta Identity
	for _, t := range tags {
		if t.Name == tagSession && t.Metadata != nil {
			s := scanner{b: t.Metadata}
			s.identity(&meta)
			continue
		}
		key, value, ok := strings.Cut(t.Name, ":")
		if !ok {
			continue
		}
		if key == "agent.name" {
			key = "agent_name"
		}
		var one Identity
		if one.set(key, value) {
			id.orElse(one)
		}
	}
	id.orElse(meta)
	return id
}

// evaluations reads the verdicts of judges: objects {name, verdict, reasoning, instructions, tag}. One without a
// verdict is none.
func (p *parser) evaluations() {
	r := p.report
	r.Evaluations = nil
	p.list("evaluations", func() {
		p.peek()
		start := p.i
		e := session.Evaluation{Source: sourceReport}
		for p.enter('{'); p.more('}'); {
			switch string(p.key()) {
			case "name", "judge_name", "judgeName":
				e.JudgeName = clip(p.str(), maxTag)
			case "verdict":
				e.Verdict = lower(p.str())
			case "reasoning":
				e.Reasoning = p.str()
			case "instructions":
				e.Instructions = p.str()
			case "tag":
				e.Tag = clip(p.str(), maxTag)
			default:
				p.skip()
			}
		}
		if p.err != nil {
			return
		}
		if judge, verdict, ok := judgeVerdict(e.Tag); ok {
			if e.JudgeName == "" {
				e.JudgeName = judge
			}
			if e.Verdict == "" {
				e.Verdict = verdict
			}
		}
		if e.Verdict == "" {
			return
		}
		e.Raw = withoutNUL(p.b[start:p.i:p.i])
		r.Evaluations = append(r.Evaluations, e)
	}, nil)
}

// judgeVerdict takes a tag lk.judge.NAME:VERDICT apart.
func judgeVerdict(tag string) (judge, verdict string, ok bool) {
	rest, ok := strings.CutPrefix(tag, judgeTag)
	colon := strings.LastIndexByte(rest, ':')
	if !ok || colon < 1 {
		return "", "", false
	}
	verdict = lower(rest[colon+1:])
	return rest[:colon], verdict, verdict != ""
}

// withTagVerdicts adds an evaluation without reasoning for each judge of whom only a tag came.
func withTagVerdicts(evals []session.Evaluation, tags []session.Tag) []session.Evaluation {
	known := make(map[string]bool, len(evals))
	for _, e := range evals {
		known[e.JudgeName] = true
	}
	for _, t := range tags {
		judge, verdict, ok := judgeVerdict(t.Name)
		if !ok || known[judge] {
			continue
		}
		known[judge] = true
		evals = append(evals, session.Evaluation{Source: sourceTag, JudgeName: judge, Tag: t.Name, Verdict: verdict})
	}
	return evals
}

// outcome reads {outcome, reason} or a string.
func (p *parser) outcome() {
	p.report.Outcome = nil
	o := session.Outcome{Source: sourceReport}
	p.peek()
	start := p.i
	switch p.peek() {
	case '"':
		o.Outcome = lower(p.str())
	case '{':
		for p.enter('{'); p.more('}'); {
			switch string(p.key()) {
			case "outcome":
				o.Outcome = lower(p.str())
			case "reason":
				o.Reason = p.str()
			default:
				p.skip()
			}
		}
	default:
		p.skip()
		return
	}
	if p.err == nil && (o.Outcome != "" || o.Reason != "") {
		o.Raw = withoutNUL(p.b[start:p.i:p.i])
		p.report.Outcome = &o
	}
}

// outcomeOrTag takes the outcome from the tags lk.success and lk.fail when the report names none; fail wins over
// success. A reason that came without an outcome is kept.
func outcomeOrTag(o *session.Outcome, tags []session.Tag) *session.Outcome {
	if o != nil && o.Outcome != "" {
		return o
	}
	var named string
	for _, t := range tags {
		switch t.Name {
		case tagFail:
			named = "fail"
		case tagSuccess:
			if named == "" {
				named = "success"
			}
		}
	}
	if named == "" {
		return nil
	}
	out := &session.Outcome{Source: sourceTag, Outcome: named}
	if o != nil {
		out.Reason, out.Raw = o.Reason, o.Raw
	}
	return out
}

package report

import (
	"encoding/json"
	"strings"

	"sidetone/internal/session"
)

// sourceReport marks what an upload said.
const sourceReport = "report"

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
		if judge, verdict, ok := session.JudgeOfTag(e.Tag); ok {
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

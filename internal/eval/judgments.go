package eval

import "strings"

// judgment is what counts of one judgment.
type judgment struct{ judgeName, name, intent, verdict []byte }

// readJudgments reads the judgments of a case.
func (p *parser) readJudgments(c *Case) (raw []byte, n int) {
	c.verdicts = []Verdict{}
	raw, n = p.objects("judgments", func() {
		if v, ok := p.readJudgment(); ok {
			c.verdicts = append(c.verdicts, v)
			c.JudgeFailed = c.JudgeFailed || v.Verdict == VerdictFail
		}
	})
	return raw, n
}

// readJudgment reads one judgment; ok is false when it carries no verdict.
func (r *reader) readJudgment() (v Verdict, ok bool) {
	var j judgment
	r.object(func(key []byte) {
		switch string(key) {
		case "judge_name":
			j.judgeName, _ = r.string()
		case "name":
			j.name, _ = r.string()
		case "intent":
			j.intent, _ = r.string()
		case "verdict":
			j.verdict, _ = r.string()
		default:
			r.value()
		}
	})
	for _, judge := range [][]byte{j.judgeName, j.name, j.intent} {
		if len(judge) > 0 {
			v.Judge = r.name(judge)
			break
		}
	}
	v.Verdict = strings.ToLower(strings.TrimSpace(string(j.verdict)))
	return v, v.Verdict != ""
}

// Verdicts lists the judgments that carry a verdict, in order.
func (c *Case) Verdicts() []Verdict {
	if c.verdicts != nil || len(c.Judgments) <= len("[]") {
		return c.verdicts
	}
	var out []Verdict
	r := newReader(c.Judgments)
	if r.kind() != '[' {
		return nil
	}
	r.array(func(int) {
		if r.kind() != '{' {
			r.value()
			return
		}
		if v, ok := r.readJudgment(); ok {
			out = append(out, v)
		}
	})
	return out
}

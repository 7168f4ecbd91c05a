package session

import (
	"encoding/json"
	"strings"
	"time"
)

// The tags with a meaning of their own: livekit-wire.md 5.1.
const (
	tagSession  = "agent.session" // its metadata says whose call it was
	tagSuccess  = "lk.success"
	tagFail     = "lk.fail"
	judgePrefix = "lk.judge." // followed by NAME:VERDICT
	sourceTag   = "tag"
)

// identity says whose call it was.
type identity struct{ account, agent, agentName, transport string }

// orElse fills what is still unknown.
func (id *identity) orElse(o identity) {
	id.account = firstString(id.account, o.account)
	id.agent = firstString(id.agent, o.agent)
	id.agentName = firstString(id.agentName, o.agentName)
	id.transport = firstString(id.transport, o.transport)
}

// identityOfTags reads account_id:, agent_id:, agent_name: (or agent.name:) and transport: tags, and where they say
// nothing the metadata of the tag agent.session. tags are in order of their names, so the result is always the same.
func identityOfTags(tags []Tag) (id identity) {
	var meta identity
	for _, t := range tags {
		if t.Name == tagSession && t.Metadata != nil {
			meta.orElse(identityOfMetadata(t.Metadata))
			continue
		}
		key, value, ok := strings.Cut(t.Name, ":")
		value = strings.TrimSpace(value)
		if !ok || value == "" {
			continue
		}
		switch key {
		case "account_id":
			id.orElse(identity{account: value})
		case "agent_id":
			id.orElse(identity{agent: value})
		case "agent_name", "agent.name":
			id.orElse(identity{agentName: value})
		case "transport":
			id.orElse(identity{transport: value})
		}
	}
	id.orElse(meta)
	return id
}

func identityOfMetadata(raw json.RawMessage) identity {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return identity{}
	}
	text := func(keys ...string) string {
		for _, k := range keys {
			if s, ok := m[k].(string); ok && s != "" {
				return s
			}
		}
		return ""
	}
	return identity{account: text("account_id", "accountId"), agent: text("agent_id", "agentId"),
		agentName: text("agent_name", "agentName", "agent.name"), transport: text("transport")}
}

// JudgeOfTag splits a tag lk.judge.NAME:VERDICT; the verdict comes back in lower case.
func JudgeOfTag(name string) (judge, verdict string, ok bool) {
	rest, ok := strings.CutPrefix(name, judgePrefix)
	if !ok {
		return "", "", false
	}
	i := strings.LastIndexByte(rest, ':')
	if i <= 0 || i == len(rest)-1 {
		return "", "", false
	}
	return rest[:i], strings.ToLower(rest[i+1:]), true
}

// addJudgeTags completes the evaluations with the verdicts that are only known from tags: those of judges of which no
// evaluation came. A verdict that came both ways counts from its first arrival.
func addJudgeTags(evaluations []Evaluation, tags []Tag) []Evaluation {
	known := make(map[string]bool, len(evaluations))
	for _, e := range evaluations {
		known[e.JudgeName] = true
	}
	for _, t := range tags {
		judge, verdict, ok := JudgeOfTag(t.Name)
		if !ok {
			continue
		}
		if !known[judge] {
			evaluations = append(evaluations, Evaluation{Source: sourceTag, JudgeName: judge, Tag: t.Name, Verdict: verdict,
				ObservedAt: t.ObservedAt, CreatedAt: t.CreatedAt})
			continue
		}
		for i := range evaluations {
			if e := &evaluations[i]; e.JudgeName == judge && e.Verdict == verdict {
				e.CreatedAt = earlier(e.CreatedAt, t.CreatedAt)
			}
		}
	}
	return evaluations
}

// outcomeOfTags is what lk.success or lk.fail says; a session with both has failed.
func outcomeOfTags(tags []Tag) *Outcome {
	var out *Outcome
	for _, t := range tags {
		switch t.Name {
		case tagFail:
			return &Outcome{Source: sourceTag, Outcome: "fail", ObservedAt: t.ObservedAt, CreatedAt: t.CreatedAt}
		case tagSuccess:
			out = &Outcome{Source: sourceTag, Outcome: "success", ObservedAt: t.ObservedAt, CreatedAt: t.CreatedAt}
		}
	}
	return out
}

// received gives things of a report their arrival time.
func received(at *time.Time, now time.Time) { *at = firstTime(*at, now) }

package session

import (
	"encoding/json"
	"testing"
	"time"
)

func names(tags ...string) []Tag {
	out := make([]Tag, len(tags))
	for i, t := range tags {
		out[i] = Tag{Name: t}
	}
	return joinTags(out)
}

func TestIdentityOfTags(t *testing.T) {
	meta := Tag{Name: "agent.session", Metadata: json.RawMessage(`{"account_id":"meta","agent_id":"m1","transport":"sip"}`)}
	for _, c := range []struct {
		name string
		tags []Tag
		want identity
	}{
		{"plain", names("account_id:acme:eu", "agent_id: a1", "agent.name:Ann Lee", "transport:web"), identity{"acme:eu", "a1", "Ann Lee", "web"}},
		{"agent_name", names("agent_name:Ann"), identity{agentName: "Ann"}},
		{"empty values and other tags say nothing", names("account_id:", "vip", "goal:x:y"), identity{}},
		{"metadata fills what tags leave open", append(names("account_id:tag"), meta), identity{"tag", "m1", "", "sip"}},
		{"metadata of the wrong form", []Tag{{Name: "agent.session", Metadata: json.RawMessage(`[1]`)}}, identity{}},
	} {
		if got := identityOfTags(c.tags); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestJudgeOfTag(t *testing.T) {
	for tag, want := range map[string][2]string{
		"lk.judge.tone:PASS": {"tone", "pass"}, "lk.judge.a:b:maybe": {"a:b", "maybe"},
		"lk.judge.tone": {}, "lk.judge.:pass": {}, "lk.judge.tone:": {}, "judge.tone:pass": {},
	} {
		judge, verdict, ok := JudgeOfTag(tag)
		if judge != want[0] || verdict != want[1] || ok != (want[0] != "") {
			t.Errorf("%s: %q %q %v", tag, judge, verdict, ok)
		}
	}
}

func TestAVerdictCountsOnceFromItsFirstArrival(t *testing.T) {
	first, second := time.Unix(100, 0), time.Unix(200, 0)
	tags := []Tag{{Name: "lk.judge.tone:fail", CreatedAt: first}, {Name: "lk.judge.facts:pass", CreatedAt: first}}
	evals := addJudgeTags([]Evaluation{{Source: "otlp", JudgeName: "tone", Verdict: "fail", Reasoning: "rude", CreatedAt: second}}, tags)
	if len(evals) != 2 {
		t.Fatalf("%d evaluations, want the judge's and one from a tag", len(evals))
	}
	if e := evals[0]; e.Reasoning != "rude" || !e.CreatedAt.Equal(first) {
		t.Errorf("the judge's evaluation: %+v", e)
	}
	if e := evals[1]; e.Source != "tag" || e.JudgeName != "facts" || e.Verdict != "pass" || !e.CreatedAt.Equal(first) {
		t.Errorf("the tag's evaluation: %+v", e)
	}
}

func TestOutcomeOfTags(t *testing.T) {
	if o := outcomeOfTags(names("vip")); o != nil {
		t.Errorf("no outcome tag gave %+v", o)
	}
	if o := outcomeOfTags(names("lk.success")); o == nil || o.Outcome != "success" {
		t.Errorf("lk.success gave %+v", o)
	}
	if o := outcomeOfTags(names("lk.success", "lk.fail")); o == nil || o.Outcome != "fail" {
		t.Errorf("both tags gave %+v", o)
	}
	p := parts{report: &Report{Outcome: &Outcome{Reason: "asked twice"}, Tags: names("lk.fail")}}
	if o := p.assemble().outcome; o == nil || o.Outcome != "fail" || o.Reason != "asked twice" {
		t.Errorf("a reason without an outcome: %+v", o)
	}
}

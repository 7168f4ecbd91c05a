package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"sidetone/internal/errs"
)

// malformed is one line of testdata/malformed.jsonl, which the HTTP tests read too: a body, the field that the error
// must name, and the error code of the reply.
type malformed struct {
	Name       string `json:"name"`
	Field      string `json:"field"`
	Kind       string `json:"kind"` // invalid_json or invalid_payload
	Body       string `json:"body"`
	BodyBase64 []byte `json:"body_base64"` // for what is not UTF-8
}

func (m malformed) bytes() []byte {
	if m.BodyBase64 != nil {
		return m.BodyBase64
	}
	return []byte(m.Body)
}

func readMalformed(t testing.TB) []malformed {
	t.Helper()
	data, err := os.ReadFile("testdata/malformed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []malformed
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m malformed
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatalf("malformed.jsonl: %v", err)
		}
		out = append(out, m)
	}
	return out
}

func TestParseRefusesMalformedPayloads(t *testing.T) {
	table := readMalformed(t)
	if len(table) < 100 {
		t.Fatalf("only %d malformed payloads", len(table))
	}
	kinds := map[string]errs.Kind{"invalid_json": errs.InvalidJSON, "invalid_payload": errs.Invalid}
	for _, m := range table {
		t.Run(m.Name, func(t *testing.T) {
			p, err := Parse(m.bytes())
			if err == nil {
				t.Fatalf("accepted: %+v", p)
			}
			var e *errs.Error
			if !errors.As(err, &e) || e.Kind != kinds[m.Kind] {
				t.Fatalf("want %s, got %v (kind %v)", m.Kind, err, errs.KindOf(err))
			}
			for _, f := range e.Fields {
				if f.Message == "" {
					t.Errorf("no message for %s", f.Field)
				}
				if f.Field == m.Field {
					return
				}
			}
			t.Errorf("want field %q, got %v", m.Field, e.Fields)
		})
	}
}

func TestParseListsEveryBadField(t *testing.T) {
	_, err := Parse([]byte(`{"version":"v9","run":{"run_id":"x","name":3,"started_at":-1,"status":"odd","ci":[]},"cases":[
		{"case_id":"7a0d4b61-52c1-4a57-9a5e-0c7b3b1f6f10","name":"ok","status":"passed"},
		{"name":"","status":"odd","duration_ms":-5,"events":[1],"judgments":{},"failure":"no"}]}`))
	want := []string{"version", "run.run_id", "run.name", "run.started_at", "run.status", "run.ci", "run.testing_framework",
		"cases[1].name", "cases[1].status", "cases[1].duration_ms", "cases[1].events[0]", "cases[1].judgments",
		"cases[1].failure", "cases[1].case_id"}
	var got []string
	var e *errs.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	for _, f := range e.Fields {
		got = append(got, f.Field)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestParseCapsTheListOfBadFields(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"version":"v0","run":{},"cases":[`)
	for i := range 500 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"status":"odd"}`)
	}
	b.WriteString(`]}`)
	_, err := Parse([]byte(b.String()))
	var e *errs.Error
	if !errors.As(err, &e) || len(e.Fields) != MaxFields {
		t.Fatalf("got %d fields: %v", len(e.Fields), e.Message)
	}
	if !strings.Contains(e.Message, "more than 100") {
		t.Errorf("the message does not say that there are more: %s", e.Message)
	}
}

func TestParseBoundsTheNumberOfCases(t *testing.T) {
	body := func(n int) []byte {
		var b bytes.Buffer
		b.WriteString(`{"version":"v0","run":` + minimalRun + `,"cases":[`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"case_id":"` + caseID(i) + `","name":"n","status":"passed"}`)
		}
		b.WriteString(`]}`)
		return b.Bytes()
	}
	if p, err := Parse(body(MaxCases)); err != nil || len(p.Cases) != MaxCases {
		t.Errorf("%d cases: %v", MaxCases, err)
	}
	_, err := Parse(body(MaxCases + 1))
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.TooLarge || len(e.Fields) != 1 || e.Fields[0].Field != "cases" {
		t.Errorf("%d cases: %v", MaxCases+1, err)
	}
}

func TestParseBoundsNesting(t *testing.T) {
	// The document, cases, the case, events and the event are five levels.
	body := func(levels int) []byte {
		return []byte(`{"version":"v0","run":` + minimalRun + `,"cases":[{"case_id":"` + caseID(1) + `","name":"n","status":"passed","events":[{"x":` +
			strings.Repeat("[", levels-5) + `"a \" [[ { \\"` + strings.Repeat("]", levels-5) + `}]}]}`)
	}
	if _, err := Parse(body(MaxNesting)); err != nil {
		t.Errorf("%d levels: %v", MaxNesting, err)
	}
	if _, err := Parse(body(MaxNesting + 1)); !errs.Is(err, errs.Invalid) {
		t.Errorf("%d levels: %v", MaxNesting+1, err)
	}
}

func TestErrorsRepeatLittleOfTheClientsText(t *testing.T) {
	key := strings.Repeat("k", 5000)
	_, err := Parse([]byte(`{"` + key + `":{"` + key + `":NaN}}`))
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("%d characters", len(err.Error()))
	}
}

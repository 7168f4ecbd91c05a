package report

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestGrammar compares what the scanner accepts with encoding/json.
func TestGrammar(t *testing.T) {
	for _, in := range []string{
		`0`, `-0`, `-`, `01`, `1.`, `.5`, `1.5`, `1e5`, `1E+5`, `1e`, `1e+`, `-1.25e-3`, `+1`, `0x10`, `1_000`, `1.2.3`, `--1`, `1-`,
		`true`, `false`, `null`, `tru`, `trueish`, `nul`, `True`, `nan`,
		`""`, `"a`, `"`, `"\"`, `"\\"`, `"\u12"`, `"\u12g4"`, `"\u1234"`, `"\ud800"`, `"\x"`, `"\`, "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"a\nb\"",
		`"1234567"`, `"12345678"`, `"123456789"`, `"1234567\n"`, `"12345678\n123456789"`, "\"12345678\t\"", `"äöü日本語😀"`,
		`[]`, `[ ]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1,2]`, `[`, `]`, `[[]`, `[}`, `[1}`, ` [ 1 , 2 ] `,
		`{}`, `{ }`, `{"a":1}`, `{"a":1,}`, `{,"a":1}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{"a":1 "b":2}`, `{1:2}`, `{"a":1]`, `{`, `}`, `{"a":{"b":[{}]}}`,
		``, ` `, `1 1`, `{}{}`, `{} `, "\v1", "\u00a01", `/**/1`, `'a'`, "\ufeff1",
		strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		s := scanner{b: []byte(in)}
		s.skip()
		s.end()
		if want := json.Valid([]byte(in)); (s.err == nil) != want {
			t.Errorf("%q: %v, want valid %v", in, s.err, want)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, open := range []string{"[", `{"a":`, `[{"a":`} {
		levels := strings.Count(open, "[") + strings.Count(open, "{")
		deep := func(n int) []byte {
			text := strings.Repeat(open, n)
			end := strings.NewReplacer("[", "]", "{", "}", `"a":`, "").Replace(open)
			if levels == 2 {
				end = "}]"
			}
			return []byte(text + "1" + strings.Repeat(end, n))
		}
		s := scanner{b: deep(maxDepth / levels)}
		if s.skip(); s.err != nil || s.depth != 0 || s.i != len(s.b) {
			t.Errorf("%s to the limit: %v, depth %d", open, s.err, s.depth)
		}
		s = scanner{b: deep(maxDepth/levels + 1)}
		if s.skip(); s.err == nil {
			t.Errorf("%s beyond the limit passed", open)
		}
	}
	s := scanner{b: []byte(strings.Repeat("[", 10_000_000))}
	if s.skip(); s.err == nil {
		t.Error("ten million brackets passed")
	}
}

// TestPlainText holds the eight-byte step against a plain loop, at every offset.
func TestPlainText(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			b := []byte(strings.Repeat("é!", 7))
			b[at] = byte(c)
			want := at
			if c >= 0x20 && c != '"' && c != '\\' {
				want = len(b)
			}
			if got := plainText(b, 0); got != want {
				t.Fatalf("byte %#x at %d: found at %d, want %d", c, at, got, want)
			}
			if at > 0 && plainText(b, 1) != want {
				t.Fatalf("byte %#x at %d: from 1 found at %d, want %d", c, at, plainText(b, 1), want)
			}
		}
	}
}

func TestStrings(t *testing.T) {
	for _, in := range []string{`"plain"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\u65e5"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`, `"\uD83D\uDE00!"`} {
		var want string
		if err := json.Unmarshal([]byte(in), &want); err != nil {
			t.Fatal(err)
		}
		s := scanner{b: []byte(in)}
		if got := s.str(); got != want || s.err != nil {
			t.Errorf("%s gives %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{`"a\u0000b"`: "ab", `"\\u0000"`: `\u0000`, `12`: "", `null`: "", `["a"]`: ""} {
		s := scanner{b: []byte(in)}
		if got := s.str(); got != want || s.i != len(in) {
			t.Errorf("%s gives %q and stops at %d, want %q", in, got, s.i, want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"\xef\xbb\xbf{}":          "{}",
		"{\"a\":\"\xff\xfe\"}":    "{\"a\":\"\uFFFD\"}",
		`[NaN,-Infinity,1]`:       `[null,null,1]`,
		`["NaN",NaN,"\"NaN"]`:     `["NaN",null,"\"NaN"]`,
		`{"NaN":Infinity}`:        `{"NaN":null}`,
		`["Infinity`:              `["Infinity`,
		`["Infinity\`:             `["Infinity\`,
		`-NaN`:                    `-null`,
		`{"a":"Infinity and on"}`: `{"a":"Infinity and on"}`,
	} {
		if got := string(clean([]byte(in))); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWithoutNUL(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, `"\u0000"`: `""`, `"a\u0000b\u0001"`: `"ab\u0001"`, `"\\u0000"`: `"\\u0000"`, `"\\\u0000"`: `"\\"`, `"\"\u0000\""`: `"\"\""`,
	} {
		if got := string(withoutNUL([]byte(in))); got != want {
			t.Errorf("withoutNUL(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for n, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé", "aé😀", "aé😀"} {
		if got := clip("aé😀", n); got != want || !utf8.ValidString(got) {
			t.Errorf("clip to %d gives %q, want %q", n, got, want)
		}
	}
}

package report

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

var bom = []byte("\xef\xbb\xbf")

// clean makes a body fit for the scanner and for our own JSON output: it drops a byte order mark, replaces invalid
// UTF-8 by U+FFFD, and writes null for NaN and Infinity, which Python's json module emits though JSON has no such
// tokens. A body that needs none of it, as nearly all do, is returned as it is.
func clean(b []byte) []byte {
	b = bytes.TrimPrefix(b, bom)
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	if bytes.Contains(b, []byte("NaN")) || bytes.Contains(b, []byte("Infinity")) {
		b = nullNonFinite(b)
	}
	return b
}

// nullNonFinite writes null for NaN, Infinity and -Infinity outside strings.
func nullNonFinite(b []byte) []byte {
	out := make([]byte, 0, len(b)+8)
	for i := 0; i < len(b); {
		rest := b[i:]
		n := 1
		switch {
		case b[i] == '"':
			n = quotedLen(rest)
		case bytes.HasPrefix(rest, []byte("NaN")):
			n = len("NaN")
		case bytes.HasPrefix(rest, []byte("Infinity")):
			n = len("Infinity")
		case bytes.HasPrefix(rest, []byte("-Infinity")):
			n = len("-Infinity")
		}
		if n > 1 && b[i] != '"' {
			out = append(out, "null"...)
		} else {
			out = append(out, rest[:n]...)
		}
		i += n
	}
	return out
}

// quotedLen is the length of the string that b starts with, its quotes included; all of b when it does not end.
func quotedLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// withoutNUL drops the escape \u0000 from a checked JSON value that may be stored in a column PostgreSQL would refuse
// it in. Values without it are returned as they are.
func withoutNUL(raw []byte) json.RawMessage {
	if !bytes.Contains(raw, []byte(`\u0000`)) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		n := 1
		if raw[i] == '\\' {
			n = escapeLen(raw[i:])
			if bytes.HasPrefix(raw[i:], []byte(`\u0000`)) {
				i += n
				continue
			}
		}
		out = append(out, raw[i:i+n]...)
		i += n
	}
	return out
}

// clip cuts s to at most n bytes at a character boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

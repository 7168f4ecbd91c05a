package report

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may nest. Real reports nest about eight levels; the limit keeps hostile ones
// from exhausting the stack here and in everything that reads our output.
const maxDepth = 256

// scanner reads a JSON text once, front to back, and hands out sub-slices of it. It checks the whole grammar of
// RFC 8259, because what it skips is stored and later shown as it is. An error sticks: it moves the position to the
// end, so that every later call is a cheap no-op and callers check err once.
//
// Measured on the demo call this takes half the time of struct decoding with go-json-experiment/json, because most of
// a report (events, extra, options) is only kept and never decoded.
type scanner struct {
	b     []byte
	i     int
	depth int
	first bool // just inside a bracket: no comma is due
	err   error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%s at byte %d", fmt.Sprintf(format, args...), s.i)
	}
	s.i = len(s.b)
}

// unexpected reports the byte at the position, or the end of the text.
func (s *scanner) unexpected(want string) {
	if s.i >= len(s.b) {
		s.fail("unexpected end, expected %s", want)
		return
	}
	s.fail("unexpected %q, expected %s", rune(s.b[s.i]), want)
}

// peek skips white space and gives the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// enter opens an object or an array if that is what comes next.
func (s *scanner) enter(open byte) bool {
	if s.peek() != open || s.i >= len(s.b) {
		return false
	}
	if s.depth++; s.depth > maxDepth {
		s.fail("nested deeper than %d levels", maxDepth)
		return false
	}
	s.i++
	s.first = true
	return true
}

// more says whether the open object or array (named by its closing byte) has another member, and closes it if not.
func (s *scanner) more(end byte) bool {
	c := s.peek()
	if c == end && s.err == nil {
		s.i++
		s.depth--
		s.first = false
		return false
	}
	if s.first {
		s.first = false
		return s.err == nil
	}
	if c != ',' {
		s.unexpected("',' or '" + string(rune(end)) + "'")
		return false
	}
	s.i++
	if s.peek() == end {
		s.unexpected("a value after ','")
		return false
	}
	return true
}

// key reads a member's name and its colon.
func (s *scanner) key() []byte {
	raw, escaped := s.rawKey()
	if escaped {
		return []byte(unescape(raw))
	}
	return raw
}

// rawKey does the same without decoding escapes.
func (s *scanner) rawKey() (raw []byte, escaped bool) {
	if s.peek() != '"' {
		s.unexpected("a member name")
		return nil, false
	}
	raw, escaped = s.quoted()
	if s.peek() != ':' {
		s.unexpected("':'")
		return nil, false
	}
	s.i++
	return raw, escaped
}

// quoted reads the string that starts at the position and gives its inside.
func (s *scanner) quoted() (raw []byte, escaped bool) {
	s.i++
	start := s.i
	for {
		s.i = plainText(s.b, s.i)
		if s.i >= len(s.b) {
			s.fail("unexpected end inside a string")
			return nil, false
		}
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], escaped
		case c == '\\':
			escaped = true
			n := escapeLen(s.b[s.i:])
			if n == 0 {
				s.fail("invalid escape in a string")
				return nil, false
			}
			s.i += n
		default:
			s.fail("control character %q inside a string", rune(c))
			return nil, false
		}
	}
}

// plainText gives the first index from i on that holds a quote, a backslash or a control character. It looks at eight
// bytes at a time: x-0x01.. borrows into the high bit of exactly the lowest zero byte of x, so the lowest hit is exact.
func plainText(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		hit := ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
			return i
		}
	}
	return i
}

// escapeLen is the length of the escape sequence at the start of b, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads the sequence \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unescape decodes the inside of a string that was checked. NUL characters are dropped, because PostgreSQL stores no
// text with them; half a surrogate pair becomes U+FFFD.
func unescape(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			out = append(out, c)
			i++
			continue
		}
		switch e := raw[i+1]; e {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(raw[i:])
			i += 6
			if utf16.IsSurrogate(r) {
				low, ok := hex4(raw[i:])
				if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
					i += 6
				}
			}
			if r != 0 {
				out = utf8.AppendRune(out, r)
			}
			continue
		default:
			out = append(out, e)
		}
		i += 2
	}
	return string(out)
}

// value checks and skips the next value and gives its bytes.
func (s *scanner) value() []byte {
	s.peek()
	start := s.i
	s.skip()
	if s.err != nil {
		return nil
	}
	return s.b[start:s.i:s.i]
}

// skip checks the next value and moves behind it.
func (s *scanner) skip() {
	switch c := s.peek(); c {
	case '"':
		s.quoted()
	case '{':
		if s.enter('{') {
			for s.more('}') {
				s.key()
				s.skip()
			}
		}
	case '[':
		if s.enter('[') {
			for s.more(']') {
				s.skip()
			}
		}
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.number()
	}
}

func (s *scanner) literal(want string) {
	if end := s.i + len(want); end <= len(s.b) && string(s.b[s.i:end]) == want {
		s.i = end
		return
	}
	s.unexpected("a value")
}

// number checks a number and gives its text.
func (s *scanner) number() []byte {
	start := s.i
	if s.i < len(s.b) && s.b[s.i] == '-' {
		s.i++
	}
	switch {
	case s.i < len(s.b) && s.b[s.i] == '0':
		s.i++
	case s.digits() == 0:
		s.unexpected("a value")
		return nil
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if s.digits() == 0 {
			s.unexpected("a digit")
			return nil
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			s.unexpected("a digit")
			return nil
		}
	}
	return s.b[start:s.i]
}

func (s *scanner) digits() int {
	start := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	return s.i - start
}

// end checks that nothing but white space is left.
func (s *scanner) end() {
	if s.peek(); s.err == nil && s.i < len(s.b) {
		s.unexpected("the end")
	}
}

// str reads a string; any other value is skipped and gives "".
func (s *scanner) str() string {
	if s.peek() != '"' {
		s.skip()
		return ""
	}
	raw, escaped := s.quoted()
	if escaped {
		return unescape(raw)
	}
	return string(raw)
}

// text reads a string, or a number as it is written; any other value is skipped and gives "".
func (s *scanner) text() string {
	if c := s.peek(); c == '-' || c-'0' <= 9 {
		return string(s.number())
	}
	return s.str()
}

// boolean reads true or false; any other value is skipped and gives false.
func (s *scanner) boolean() bool {
	isTrue := s.peek() == 't'
	s.skip()
	return isTrue && s.err == nil
}

// num reads a finite number; any other value is skipped.
func (s *scanner) num() (float64, bool) {
	if c := s.peek(); c != '-' && c-'0' > 9 {
		s.skip()
		return 0, false
	}
	raw := s.number()
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil && s.err == nil
}

// count reads a whole number that is not negative; any other value is skipped.
func (s *scanner) count() (int64, bool) {
	f, ok := s.num()
	if !ok || f < 0 || f > 1<<53 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

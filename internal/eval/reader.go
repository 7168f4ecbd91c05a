package eval

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"sidetone/internal/errs"
)

// reader walks one JSON document once. Its values alias the body. The first syntax error sticks: every later read is
// a no-op, so that callers need not check.
type reader struct {
	body []byte
	dec  *jsontext.Decoder
	err  error
	// names holds strings that come again and again, such as keys and models.
	names map[string]string
}

// newReader reads body, which must be valid UTF-8. Lone surrogate escapes are tolerated, because JavaScript plugins
// cut long texts in the middle of an emoji, and so are duplicate names, because what is stored as sent is not judged.
func newReader(body []byte) *reader {
	return &reader{body: body, dec: jsontext.NewDecoder(bytes.NewBuffer(body),
		jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))}
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// kind is the kind of the next value: n t f " 0 { [, or 0 when there is none.
func (r *reader) kind() jsontext.Kind {
	if r.err != nil {
		return 0
	}
	k := r.dec.PeekKind()
	if k == 0 {
		_, err := r.dec.ReadToken()
		r.fail(err)
	}
	return k
}

// value reads the next value whole; nil after a syntax error.
func (r *reader) value() jsontext.Value {
	if r.err != nil {
		return nil
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		r.fail(err)
		return nil
	}
	end := int(r.dec.InputOffset())
	return jsontext.Value(r.body[end-len(v) : end : end])
}

// object walks the members of an object; field must read the value of each. The next value must be an object.
func (r *reader) object(field func(key []byte)) {
	r.token()
	for r.err == nil && r.kind() != '}' {
		name := r.value()
		if name == nil {
			return
		}
		field(unquote(name))
	}
	r.token()
}

// array walks the elements of an array; element must read each. The next value must be an array.
func (r *reader) array(element func(i int)) {
	r.token()
	for i := 0; r.err == nil && r.kind() != ']'; i++ {
		if r.err == nil {
			element(i)
		}
	}
	r.token()
}

func (r *reader) token() {
	if r.err == nil {
		_, err := r.dec.ReadToken()
		r.fail(err)
	}
}

// raw reads the next value with walk and returns its bytes as sent.
func (r *reader) raw(walk func()) []byte {
	if r.kind() == 0 {
		return nil
	}
	// The decoder stands behind the value before: what follows are white space and one delimiter.
	start := int(r.dec.InputOffset())
	walk()
	if r.err != nil {
		return nil
	}
	end := int(r.dec.InputOffset())
	start += bytes.IndexAny(r.body[start:end], "{[")
	return r.body[start:end:end]
}

// string reads the next value if it is a string and skips it otherwise.
func (r *reader) string() (s []byte, ok bool) {
	if r.kind() != '"' {
		r.value()
		return nil, false
	}
	return unquote(r.value()), r.err == nil
}

// bool reads the next value; anything but true is false.
func (r *reader) bool() bool { return string(r.value()) == "true" }

// number reads the next value if it is a number that a float64 can hold, and skips it otherwise.
func (r *reader) number() (f float64, ok bool) {
	if r.kind() != '0' {
		r.value()
		return 0, false
	}
	f, err := strconv.ParseFloat(string(r.value()), 64)
	return f, err == nil && r.err == nil
}

// maxNames bounds what hostile input can make name remember.
const maxNames = 1000

// name interns a string.
func (r *reader) name(s []byte) string {
	if known, ok := r.names[string(s)]; ok {
		return known
	}
	n := string(s)
	if r.names == nil {
		r.names = make(map[string]string)
	}
	if len(r.names) < maxNames {
		r.names[n] = n
	}
	return n
}

// unquote gives the text of a JSON string; without escapes it aliases v.
func unquote(v jsontext.Value) []byte {
	if len(v) < 2 {
		return nil
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	// The value was validated when it was read; what AppendUnquote still reports are lone surrogates, and those it
	// has replaced by U+FFFD.
	s, _ := jsontext.AppendUnquote(nil, v)
	return s
}

// end checks that nothing but white space follows.
func (r *reader) end() {
	if r.err != nil {
		return
	}
	if _, err := r.dec.ReadToken(); err != io.EOF {
		r.fail(fmt.Errorf("more data after the end of the document at byte %d", r.dec.InputOffset()))
	}
}

// syntaxError turns what the decoder said into an InvalidJSON error that names the field and the byte.
func syntaxError(body []byte, err error) error {
	var se *jsontext.SyntacticError
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return invalidJSON("body", "is empty; a JSON object is expected")
	case !errors.As(err, &se):
		return invalidJSON("body", "%s", err)
	case errors.Is(se.Err, io.ErrUnexpectedEOF):
		return invalidJSON(path(se.JSONPointer, MaxNesting), "the body ends in the middle of it, at byte %d", se.ByteOffset)
	}
	return invalidJSON(path(se.JSONPointer, MaxNesting), "%s at byte %d", se.Err, se.ByteOffset)
}

func invalidJSON(field, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	return &errs.Error{Kind: errs.InvalidJSON, Message: "the body is not valid JSON: " + field + ": " + msg,
		Fields: []errs.Field{{Field: field, Message: msg}}}
}

// An error repeats this much of the client's own keys.
const (
	maxPath    = 120 // bytes
	deepTokens = 3   // of the path to something that nests too deep
)

// path writes a JSON pointer as paths are written in errors: cases[3].status. The document itself, and what is in it
// when it is an array, is "body".
func path(p jsontext.Pointer, maxTokens int) string {
	var b strings.Builder
	for tok := range p.Tokens() {
		_, err := strconv.ParseUint(tok, 10, 32)
		index := err == nil
		switch {
		case index && b.Len() == 0:
			return "body"
		case maxTokens == 0:
			return b.String()
		case b.Len()+len(tok) > maxPath:
			return b.String() + "..."
		case index:
			b.WriteString("[" + tok + "]")
		case b.Len() == 0:
			b.WriteString(tok)
		default:
			b.WriteString("." + tok)
		}
		maxTokens--
	}
	if b.Len() == 0 {
		return "body"
	}
	return b.String()
}

// fieldAt names the field that was being read when the first n bytes of the body ended, with at most maxTokens steps.
func fieldAt(body []byte, n, maxTokens int) string {
	r := newReader(body[:n])
	_, err := r.dec.ReadValue()
	var se *jsontext.SyntacticError
	if errors.As(err, &se) {
		return path(se.JSONPointer, maxTokens)
	}
	return "body"
}

// checkText refuses a body that is not UTF-8, naming the field.
func checkText(body []byte) error {
	if utf8.Valid(body) {
		return nil
	}
	n := 0
	for n < len(body) {
		c, size := utf8.DecodeRune(body[n:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return invalidJSON(fieldAt(body, n, MaxNesting), "invalid UTF-8 at byte %d", n)
}

// checkNesting refuses a body that nests deeper than MaxNesting, naming the field.
func checkNesting(body []byte) error {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = stringEnd(body, i)
		case '{', '[':
			if depth++; depth > MaxNesting {
				return errs.InvalidField(fieldAt(body, i, deepTokens), "nests more than %d levels deep, at byte %d", MaxNesting, i)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// stringEnd is the index of the quote that closes the string opened at i, or the end of the body.
func stringEnd(body []byte, i int) int {
	for {
		n := bytes.IndexByte(body[i+1:], '"')
		if n < 0 {
			return len(body)
		}
		i += 1 + n
		slashes := 0
		for body[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

package session

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxTokens is how many tokens of a session are indexed, enough for ten hours of talk. What comes later in a session is
// not found.
const MaxTokens = 100_000

// maxTokenText is how many bytes the tokens of a session have together, give or take the last: a tsvector of PostgreSQL has
// at most 1,048,575.
const maxTokenText = 900_000

// maxTokenBytes is where a token is cut, at a rune border, in texts and in queries alike: PostgreSQL's limit is 2,046
// bytes, and nothing longer than this is a word.
const maxTokenBytes = 64

// SearchText is the text of a session that search sees and snippets quote: what user and agent said and the names of the
// tools called, one line each, in the order of the items. Arguments and outputs of tools are left out: they are data,
// often large, and would bury what was said.
func SearchText(items []Item) string {
	size := 0
	for i := range items {
		size += len(searchLine(&items[i])) + 1
	}
	var b strings.Builder
	b.Grow(size)
	for i := range items {
		line := searchLine(&items[i])
		if line == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return b.String()
}

func searchLine(it *Item) string {
	switch {
	case isUser(it), isAssistant(it):
		return it.Text
	case it.Type == ItemFunctionCall:
		return it.Name
	}
	return ""
}

// Words are the tokens of a text as both SQL engines index them: lower case, without diacritics, in order, with a space
// between. A token is a run of letters and digits of any script; in scripts written without spaces (Chinese, Japanese,
// Korean, Thai, ...) every character is a token of its own, so that a word inside a sentence is found. Tokens hold
// letters, digits and marks only, are valid UTF-8 of at most 64 bytes, and there are at most MaxTokens of them, fewer if
// they are very long.
func Words(text string) string {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.scan(text)
	return string(s.buf)
}

// scanners keep their room from one text to the next: every report passes through Words.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

func words(folded string, toks []token) []string {
	ws := make([]string, len(toks))
	for i, t := range toks {
		ws[i] = folded[t.from:t.to]
	}
	return ws
}

// token is one word: where it is in the folded text and where it came from.
type token struct {
	from, to       int // bytes of the folded text
	start, end     int // bytes of the source
	startAt, endAt int // the same as start and end, in runes
}

// scan finds the tokens of text. The folded text holds them with a space between.
func scan(text string) (folded string, toks []token) {
	var s scanner
	s.scan(text)
	return string(s.buf), s.toks
}

func (s *scanner) scan(text string) {
	*s = scanner{text: text, buf: s.buf[:0], toks: s.toks[:0]}
	for i := 0; i < len(text) && !s.full; {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(text[i:])
			s.wide += n - 1
			s.rune(r, i, i+n)
			i += n
			continue
		}
		if asciiFold[c] == 0 {
			s.open = false
			i++
			continue
		}
		j := i + 1
		for j < len(text) && text[j] < utf8.RuneSelf && asciiFold[text[j]] != 0 {
			j++
		}
		if s.open && !s.single || s.begin(i, 1) {
			s.add(text[i:j], j)
		}
		i = j
	}
	s.text = "" // the scanner may live longer
}

type scanner struct {
	text string
	buf  []byte
	toks []token
	wide int  // bytes so far beyond one per rune: byte offset - wide = rune offset
	open bool // the last token may still grow

	single bool // the open token is one character of a script without spaces: only marks may join it
	cut    bool // the open token has reached its longest
	full   bool // MaxTokens or maxTokenText reached and another began
}

// asciiFold maps an ASCII letter or digit to its lower case and everything else to 0.
var asciiFold = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z':
			t[c] = byte(c)
		case 'A' <= c && c <= 'Z':
			t[c] = byte(c) + 'a' - 'A'
		}
	}
	return t
}()

// begin opens a token at a rune of n bytes that starts at byte i; it reports false when there are too many.
func (s *scanner) begin(i, n int) bool {
	if len(s.toks) == MaxTokens || len(s.buf) > maxTokenText {
		s.full, s.open = true, false
		return false
	}
	if len(s.buf) > 0 {
		s.buf = append(s.buf, ' ')
	}
	at := len(s.buf)
	startAt := i + n - 1 - s.wide // wide already counts this rune
	s.toks = append(s.toks, token{from: at, to: at, start: i, startAt: startAt})
	s.open, s.single, s.cut = true, false, false
	return true
}

// add appends ASCII letters and digits to the open token, whose source now ends at byte end.
func (s *scanner) add(run string, end int) {
	t := &s.toks[len(s.toks)-1]
	t.end, t.endAt = end, end-s.wide
	if s.cut {
		return
	}
	if room := maxTokenBytes - (t.to - t.from); len(run) > room {
		run, s.cut = run[:room], true
	}
	for i := range len(run) {
		s.buf = append(s.buf, asciiFold[run[i]])
	}
	t.to = len(s.buf)
}

// addRune is add for any rune.
func (s *scanner) addRune(r rune, end int) {
	t := &s.toks[len(s.toks)-1]
	t.end, t.endAt = end, end-s.wide
	if s.cut || t.to-t.from+utf8.RuneLen(r) > maxTokenBytes {
		s.cut = true
		return
	}
	s.buf = utf8.AppendRune(s.buf, r)
	t.to = len(s.buf)
}

// rune takes one non-ASCII rune of text[i:j]: decomposed into base letters and marks, as Unicode defines for
// compatibility (NFKD), so that all ways to write a character give the same token.
func (s *scanner) rune(r rune, i, j int) {
	if r >= hangulFirst && r <= hangulLast { // norm leaves syllables whole, though jamo may come apart
		n := r - hangulFirst
		s.part(jamoL+n/jamoPerL, i, j)
		s.part(jamoV+n%jamoPerL/jamoTs, i, j)
		if t := n % jamoTs; t > 0 {
			s.part(jamoT+t, i, j)
		}
		return
	}
	d := norm.NFKD.PropertiesString(s.text[i:j]).Decomposition()
	if d == nil {
		s.part(r, i, j)
		return
	}
	for len(d) > 0 {
		p, n := utf8.DecodeRune(d)
		s.part(p, i, j)
		d = d[n:]
	}
}

// Hangul syllables and the jamo they are made of, by the arithmetic of the Unicode standard, section 3.12.
const (
	hangulFirst, hangulLast = 0xAC00, 0xD7A3
	jamoL, jamoV, jamoT     = 0x1100, 0x1161, 0x11A7
	jamoTs                  = 28          // final consonants, "none" included
	jamoPerL                = 21 * jamoTs // syllables per initial consonant
	jamoVFirst, jamoTLast   = 0x1160, 0x11FF
)

// part takes one rune of a decomposition.
func (s *scanner) part(r rune, i, j int) {
	switch {
	case unicode.Is(dropped, r):
		if s.open {
			t := &s.toks[len(s.toks)-1]
			t.end, t.endAt = j, j-s.wide
		}
	case unicode.IsMark(r) || r >= jamoVFirst && r <= jamoTLast:
		if s.open { // vowel signs and the like belong to the letter before them
			s.addRune(r, j)
		}
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		if r == 'ς' { // the final form: upper case knows only one sigma
			r = 'σ'
		}
		single := isSingle(r)
		if (!s.open || s.single || single) && !s.begin(i, j-i) {
			return
		}
		s.single = single
		if spelt := letterFold(r); spelt != "" {
			s.add(spelt, j)
		} else if r < utf8.RuneSelf {
			s.add(string(r), j)
		} else {
			s.addRune(unicode.ToLower(r), j)
		}
	default:
		s.open = false
	}
}

// letterFold spells in ASCII the Latin letters that people type without their stroke or as two letters, though Unicode
// does not decompose them; "" for all others.
func letterFold(r rune) string {
	switch r {
	case 'ß', 'ẞ':
		return "ss"
	case 'æ', 'Æ':
		return "ae"
	case 'œ', 'Œ':
		return "oe"
	case 'ø', 'Ø':
		return "o"
	case 'ł', 'Ł':
		return "l"
	case 'đ', 'Đ', 'ð', 'Ð':
		return "d"
	case 'þ', 'Þ':
		return "th"
	case 'ı':
		return "i"
	}
	return ""
}

// isSingle tells whether a letter is a token of its own.
func isSingle(r rune) bool {
	return r >= 0x0E00 && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// dropped are the runes that do not change a word: diacritics of the European scripts, points of Hebrew, signs of
// Arabic with its stretching stroke, and invisible formatting (but not the zero-width space, which ends a word). The
// marks of other scripts, such as vowel signs in Devanagari, make another word and are kept.
var dropped = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00AD, Hi: 0x00AD, Stride: 1},
		{Lo: 0x0300, Hi: 0x036F, Stride: 1},
		{Lo: 0x0483, Hi: 0x0489, Stride: 1},
		{Lo: 0x0591, Hi: 0x05BD, Stride: 1},
		{Lo: 0x05BF, Hi: 0x05BF, Stride: 1},
		{Lo: 0x05C1, Hi: 0x05C2, Stride: 1},
		{Lo: 0x05C4, Hi: 0x05C5, Stride: 1},
		{Lo: 0x05C7, Hi: 0x05C7, Stride: 1},
		{Lo: 0x0610, Hi: 0x061A, Stride: 1},
		{Lo: 0x0640, Hi: 0x0640, Stride: 1},
		{Lo: 0x064B, Hi: 0x065F, Stride: 1},
		{Lo: 0x0670, Hi: 0x0670, Stride: 1},
		{Lo: 0x06D6, Hi: 0x06DC, Stride: 1},
		{Lo: 0x1AB0, Hi: 0x1AFF, Stride: 1},
		{Lo: 0x1DC0, Hi: 0x1DFF, Stride: 1},
		{Lo: 0x200C, Hi: 0x200F, Stride: 1},
		{Lo: 0x2060, Hi: 0x2060, Stride: 1},
		{Lo: 0x20D0, Hi: 0x20FF, Stride: 1},
		{Lo: 0xFE00, Hi: 0xFE0F, Stride: 1},
		{Lo: 0xFE20, Hi: 0xFE2F, Stride: 1},
		{Lo: 0xFEFF, Hi: 0xFEFF, Stride: 1},
	},
	LatinOffset: 1,
}

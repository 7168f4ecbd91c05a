package session

import (
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Query is a parsed transcript search. A session matches when its tokens contain every phrase of Must and none of Not; so
// a query with exclusions only matches every session without them, and the empty query matches everything.
type Query struct {
	Must []Phrase
	Not  []Phrase
}

// Phrase is tokens that must follow each other directly, at least one. With Prefix the last of them may be the
// beginning of a word.
type Phrase struct {
	Tokens []string
	Prefix bool
}

// What is read of a query, generous for a person and cheap for the engines; the rest is ignored.
const (
	maxQueryBytes   = 4096
	maxPhrases      = 32
	maxPhraseTokens = 64
)

// ParseQuery reads what people type into a search box. Words must all be there; "quoted words" must follow each other;
// -word and -"quoted words" must not be there; a * right behind a word makes it a prefix (refun*). Words are folded as
// Words does, and one that falls into several tokens (e-mail, don't, 返金) is a phrase. Nothing is an error: a quote
// that is not closed ends with the query, a lone - and words of punctuation only are ignored.
func ParseQuery(q string) Query {
	if len(q) > maxQueryBytes {
		q = strings.ToValidUTF8(q[:maxQueryBytes], "")
	}
	var query Query
	for {
		q = strings.TrimLeftFunc(q, unicode.IsSpace)
		if q == "" || len(query.Must)+len(query.Not) == maxPhrases {
			return query
		}
		word := strings.TrimLeft(q, "-")
		to := &query.Must
		if len(word) < len(q) {
			to = &query.Not
		}
		var content string
		if r, n := utf8.DecodeRuneInString(word); isQuote(r) {
			word = word[n:]
			end := strings.IndexFunc(word, isQuote)
			if end < 0 {
				content, q = word, ""
			} else {
				_, n = utf8.DecodeRuneInString(word[end:])
				content, q = word[:end], word[end+n:]
				if strings.HasPrefix(q, "*") { // "quoted wor"* means the same as "quoted wor*"
					content += "*"
					q = strings.TrimLeft(q, "*")
				}
			}
		} else {
			end := strings.IndexFunc(word, func(r rune) bool { return isQuote(r) || unicode.IsSpace(r) })
			if end < 0 {
				end = len(word)
			}
			content, q = word[:end], word[end:]
		}
		if p := newPhrase(content); len(p.Tokens) > 0 && !slices.ContainsFunc(*to, p.equal) {
			*to = append(*to, p)
		}
	}
}

// isQuote knows the straight quote and those that phones and word processors put in its place.
func isQuote(r rune) bool {
	return r == '"' || r == '“' || r == '”' || r == '„'
}

func newPhrase(content string) Phrase {
	text := strings.TrimRight(content, "*")
	folded, toks := scan(text)
	p := Phrase{Tokens: words(folded, toks)}
	if len(toks) > maxPhraseTokens {
		p.Tokens = p.Tokens[:maxPhraseTokens]
	} else if len(toks) > 0 {
		p.Prefix = len(text) < len(content) && toks[len(toks)-1].end == len(text)
	}
	return p
}

func (p Phrase) equal(o Phrase) bool {
	return p.Prefix == o.Prefix && slices.Equal(p.Tokens, o.Tokens)
}

// at tells whether the phrase stands at tokens[i:].
func (p Phrase) at(tokens []string, i int) bool {
	last := len(p.Tokens) - 1
	if i+last >= len(tokens) {
		return false
	}
	for k, want := range p.Tokens {
		got := tokens[i+k]
		if got != want && !(k == last && p.Prefix && strings.HasPrefix(got, want)) {
			return false
		}
	}
	return true
}

func (p Phrase) in(tokens []string) bool {
	for i := range tokens {
		if p.at(tokens, i) {
			return true
		}
	}
	return false
}

// Empty tells whether the query filters nothing.
func (q Query) Empty() bool { return len(q.Must) == 0 && len(q.Not) == 0 }

// Matches tells whether a session with these words, as Words gives them, matches. It is the meaning of a query, which the
// full-text search of each SQL engine must reproduce.
func (q Query) Matches(words string) bool {
	tokens := strings.Fields(words)
	for _, p := range q.Must {
		if !p.in(tokens) {
			return false
		}
	}
	for _, p := range q.Not {
		if p.in(tokens) {
			return false
		}
	}
	return true
}

// Sizes of a snippet, in runes.
const (
	snippetRunes = 160
	focusRunes   = 120 // matches this close to each other are shown together
	borderRunes  = 20  // how much of a cut end may go so that no word is cut
)

// Snippet quotes the passage of at most 160 characters of text in which most phrases of q are found, or the beginning of
// text when none is. The quote is escaped HTML with each match in <mark>...</mark>, and "…" where text was cut off;
// without those it is text verbatim (bytes that are not UTF-8 appear as U+FFFD).
func Snippet(text string, q Query) string {
	folded, toks := scan(text)
	matches, first, last := bestMatches(words(folded, toks), toks, q.Must)
	lo, hi := 0, 0
	if len(matches) > 0 {
		lo, hi = toks[first].start, toks[first].start
	}
	// A third of what the matches leave free goes before them.
	room := snippetRunes
	if len(matches) > 0 {
		room -= toks[last].endAt - toks[first].startAt
	}
	lo, before := back(text, lo, max(0, room)/3)
	hi, after := forward(text, hi, snippetRunes-before)
	lo, _ = back(text, lo, snippetRunes-before-after)
	focus := [2]int{lo, lo}
	if len(matches) > 0 {
		focus = [2]int{toks[first].start, min(hi, toks[last].end)}
	}
	lo, hi = atWords(text, lo, hi, focus)

	var b strings.Builder
	b.Grow(hi - lo + 64)
	if lo > 0 {
		b.WriteString("…")
	}
	at := lo
	for i := 0; i < len(matches); {
		start, end := toks[matches[i].from].start, toks[matches[i].to-1].end
		for i++; i < len(matches) && toks[matches[i].from].start <= end; i++ { // overlapping and touching ones are one mark
			end = max(end, toks[matches[i].to-1].end)
		}
		if start, end = max(lo, start), min(hi, end); start < end {
			writeText(&b, text[at:start])
			b.WriteString("<mark>")
			writeText(&b, text[start:end])
			b.WriteString("</mark>")
			at = end
		}
	}
	writeText(&b, text[at:hi])
	if hi < len(text) {
		b.WriteString("…")
	}
	return b.String()
}

// match is a phrase at tokens[from:to].
type match struct{ phrase, from, to int }

// bestMatches finds all matches, in order, and the span of tokens [first, last] of those to show: the group within
// focusRunes with most different phrases, then most matches, then earliest.
func bestMatches(tokens []string, toks []token, phrases []Phrase) (all []match, first, last int) {
	for i := range tokens {
		for k := range phrases {
			if phrases[k].at(tokens, i) {
				all = append(all, match{k, i, i + len(phrases[k].Tokens)})
			}
		}
	}
	seen := make([]int, len(phrases)) // matches of each phrase in the group all[i:j]
	best, distinct, j := 0, 0, 0
	for i, m := range all {
		for ; j < len(all) && (j == i || toks[all[j].to-1].endAt-toks[m.from].startAt <= focusRunes); j++ {
			if seen[all[j].phrase]++; seen[all[j].phrase] == 1 {
				distinct++
			}
		}
		if score := distinct<<32 + (j - i); score > best {
			best, first, last = score, m.from, m.to-1
			for _, in := range all[i:j] {
				last = max(last, in.to-1)
			}
		}
		if seen[m.phrase]--; seen[m.phrase] == 0 {
			distinct--
		}
	}
	return all, first, last
}

// back steps up to n runes back from byte i; it returns where it came to and how many it took.
func back(text string, i, n int) (at, steps int) {
	for ; steps < n && i > 0; steps++ {
		_, size := utf8.DecodeLastRuneInString(text[:i])
		i -= size
	}
	return i, steps
}

// forward is back in the other direction.
func forward(text string, i, n int) (at, steps int) {
	for ; steps < n && i < len(text); steps++ {
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return i, steps
}

// atWords moves the ends of a quote inward so that they cut no word, where there is white space within borderRunes, and
// stand next to no white space, but never into focus.
func atWords(text string, lo, hi int, focus [2]int) (int, int) {
	if lo > 0 {
		limit, _ := forward(text, lo, borderRunes)
		limit = max(lo, min(limit, focus[0]))
		if r, _ := utf8.DecodeLastRuneInString(text[:lo]); !unicode.IsSpace(r) {
			lo += max(0, strings.IndexFunc(text[lo:limit], unicode.IsSpace))
		}
		lo = focus[0] - len(strings.TrimLeftFunc(text[lo:focus[0]], unicode.IsSpace))
	}
	if hi < len(text) {
		limit, _ := back(text, hi, borderRunes)
		limit = min(hi, max(limit, focus[1]))
		if r, _ := utf8.DecodeRuneInString(text[hi:]); !unicode.IsSpace(r) {
			if i := strings.LastIndexFunc(text[limit:hi], unicode.IsSpace); i >= 0 {
				hi = limit + i
			}
		}
		hi = focus[1] + len(strings.TrimRightFunc(text[focus[1]:hi], unicode.IsSpace))
	}
	return lo, hi
}

// writeText writes s as HTML text, each byte that is not UTF-8 as U+FFFD.
func writeText(b *strings.Builder, s string) {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	b.WriteString(html.EscapeString(s))
}

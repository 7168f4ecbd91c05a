package sqlstore

import (
	"strings"

	"sidetone/internal/session"
)

// fts5Match asks SQLite's FTS5 in its own query language. Tokens hold letters, digits and marks only, so quoting them is
// enough.
func fts5Match(must, not []session.Phrase, arg func(any) string) string {
	var b strings.Builder
	list := func(ps []session.Phrase, op string) {
		for i, p := range ps {
			if i > 0 {
				b.WriteString(op)
			}
			b.WriteByte('"')
			b.WriteString(strings.Join(p.Tokens, " "))
			b.WriteByte('"')
			if p.Prefix {
				b.WriteByte('*')
			}
		}
	}
	if len(must) > 0 {
		b.WriteByte('(')
		list(must, " AND ")
		b.WriteByte(')')
		if len(not) > 0 {
			b.WriteString(" NOT (")
			list(not, " OR ")
			b.WriteByte(')')
		}
	} else {
		list(not, " OR ")
	}
	return "words MATCH " + arg(b.String())
}

// tsvectorWords is what PostgreSQL's index of words is made of (migration 0006): which words there are, but not where. A
// tsvector with positions would be twice as large, takes far longer to read and to write, and remembers only the first
// 255 places of a word; where words follow each other is looked up in the text itself.
const tsvectorWords = "session_words(words)"

// tsvectorMatch asks the index for sessions with all the words, and the text of those for the phrases.
func tsvectorMatch(must, not []session.Phrase, arg func(any) string) string {
	follow := func(p session.Phrase) string {
		text := " " + strings.Join(p.Tokens, " ")
		if !p.Prefix {
			text += " "
		}
		return "position(" + arg(text) + "::text IN ' ' || words || ' ') > 0"
	}
	if len(must) == 0 {
		var any []string
		for _, p := range not {
			cond := tsvectorWords + " @@ " + arg(tsquery(p)) + "::text::tsquery"
			if len(p.Tokens) > 1 {
				cond += " AND " + follow(p)
			}
			any = append(any, cond)
		}
		return "(" + strings.Join(any, " OR ") + ")"
	}
	var query, conds []string
	for _, p := range must {
		query = append(query, tsquery(p))
		if len(p.Tokens) > 1 {
			conds = append(conds, follow(p))
		}
	}
	for _, p := range not {
		if len(p.Tokens) > 1 {
			conds = append(conds, "NOT "+follow(p))
		} else {
			query = append(query, "!"+tsquery(p))
		}
	}
	return strings.Join(append([]string{tsvectorWords + " @@ " + arg(strings.Join(query, " & ")) + "::text::tsquery"}, conds...), " AND ")
}

// tsquery asks for all words of a phrase.
func tsquery(p session.Phrase) string {
	query := "'" + strings.Join(p.Tokens, "' & '") + "'"
	if p.Prefix {
		query += ":*"
	}
	return "(" + query + ")"
}

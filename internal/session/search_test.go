package session

import (
	"html"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestSearchText(t *testing.T) {
	got := SearchText([]Item{
		{Type: ItemHandoff, Name: "default_agent"}, {Type: ItemMessage, Role: "system", Text: "Be brief."},
		user("Where is it?", ItemMetrics{}), call("1", "lookup_order", `{"id":"44712"}`), output("1", "secret"), agent("", ItemMetrics{}), agent("On its way.", ItemMetrics{}),
	})
	if want := "Where is it?\nlookup_order\nOn its way."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTokenisation(t *testing.T) {
	for in, want := range map[string]string{
		"":                                        "",
		" \t\n-–!?\x00":                           "",
		"Hello, World! 42":                        "hello world 42",
		"lookup_order e-mail don't 84.50":         "lookup order e mail don t 84 50",
		"Crème BRÛLÉE Škoda İstanbul":             "creme brulee skoda istanbul",
		"Cre\u0300me":                             "creme", // decomposed, as some systems write it
		"Straße STRASSE œuvre Łódź Ørsted":        "strasse strasse oeuvre lodz orsted",
		"Ёлка ёлка":                               "елка елка",
		"ΟΔΟΣ οδός":                               "οδοσ οδοσ",
		"ﬁn Ｈｉ ①½ x²":                             "fin hi 11 2 x2",
		"שָׁלוֹם مُحَمَّد أحمد":                   "שלום محمد احمد",
		"हिन्दी में":                              "हिन्दी में",
		"返金をお願い":                                  "返 金 を お 願 い",
		"order返金ok":                               "order 返 金 ok",
		"コーヒー ｶﾞｷﾞ ガギ が":                          "コ ー ヒ ー ガ ギ ガ ギ が",
		"환불 \u1112\u116a\u11ab\u1107\u116e\u11af": "환 불 환 불", // both ways to write Hangul
		"ที่นี่":                                  "ที่ นี่",
		"re\u00adfund zero\u200bwidth a\u200db":   "refund zero width ab",
		"bad\xffbytes\xc3(":                       "bad bytes",
		"emoji😀between":                           "emoji between",
	} {
		got := tokens(in)
		for i := range got {
			got[i] = norm.NFC.String(got[i]) // kept marks and Hangul are tokens in decomposed form
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func tokens(text string) []string { return strings.Fields(Words(text)) }

func TestTokensAreBounded(t *testing.T) {
	long := strings.Repeat("a", 63) + "ä" + strings.Repeat("b", 100000)
	if got := tokens(long + " next"); len(got) != 2 || got[0] != strings.Repeat("a", 64) || got[1] != "next" {
		t.Errorf("a long word: %d tokens, the first %q", len(got), got[0])
	}
	cut := strings.Repeat("a", 63) + "д" + "z"
	if got := tokens(cut); len(got) != 1 || got[0] != strings.Repeat("a", 63) {
		t.Errorf("a rune over the border: %q", got)
	}
	for _, word := range []string{"a ", "金", "½"} {
		if got := len(tokens(strings.Repeat(word, MaxTokens+10))); got != MaxTokens {
			t.Errorf("%d tokens of %q", got, word)
		}
	}
}

func TestParseQuery(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"   ":                             "",
		"refund":                          "+refund",
		"Refund  NOW":                     "+refund +now",
		`"no refund" now`:                 "+no_refund +now",
		`-"no refund" -now later`:         "+later -no_refund -now",
		"-refund":                         "-refund",
		"- refund":                        "+refund",
		"--refund":                        "-refund",
		"-":                               "",
		"- - -":                           "",
		`""`:                              "",
		`"`:                               "",
		`-"`:                              "",
		`"not closed at all`:              "+not_closed_at_all",
		`a "b`:                            "+a +b",
		`a"b c"d`:                         "+a +b_c +d",
		`“curly quotes” „deutsche Art“`:   "+curly_quotes +deutsche_art",
		"?! ... -- (*)":                   "",
		"e-mail don't":                    "+e_mail +don_t",
		"re* refun*":                      "+re* +refun*",
		`"my refun*" "your refun"*`:       "+my_refun* +your_refun*",
		"a** b-* *c * d*e":                "+a* +b +c +d_e",
		"-re*":                            "-re*",
		"AND OR NOT":                      "+and +or +not",
		"word word -word":                 "+word -word",
		"返金 Café":                         "+返_金 +cafe",
		"\x00\xff'; DROP TABLE sessions;": "+drop +table +sessions",
		strings.Repeat("x ", 50):          "+x",
		strings.Repeat(`-"`, 9):           "",
	} {
		if got := queryString(ParseQuery(in)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		many.WriteString(strings.Repeat("y", 1+i%100) + " ")
	}
	if q := ParseQuery(many.String()); len(q.Must) != maxPhrases {
		t.Errorf("%d phrases", len(q.Must))
	}
	if q := ParseQuery(`"` + strings.Repeat("a ", 500) + `z"`); len(q.Must) != 1 || len(q.Must[0].Tokens) != maxPhraseTokens {
		t.Errorf("a phrase of %d tokens", len(q.Must[0].Tokens))
	}
	if !ParseQuery(" - ").Empty() || ParseQuery("-a").Empty() || ParseQuery("a").Empty() {
		t.Error("Empty")
	}
}

// queryString writes a query as "+two_words -no pre*", what must be there first or not as parsed.
func queryString(q Query) string {
	var parts []string
	add := func(sign string, phrases []Phrase) {
		for _, p := range phrases {
			s := sign + strings.Join(p.Tokens, "_")
			if p.Prefix {
				s += "*"
			}
			parts = append(parts, s)
		}
	}
	add("+", q.Must)
	add("-", q.Not)
	return strings.Join(parts, " ")
}

func TestMatches(t *testing.T) {
	text := "I want a refund, please.\nThe café's e-mail says: no refunds. 返金をお願いします"
	for q, want := range map[string]bool{
		"":                       true,
		"!?":                     true,
		"refund":                 true,
		"REFUND please":          true,
		"refund missing":         false,
		`"a refund"`:             true,
		`"refund a"`:             false,
		`"want refund"`:          false,
		`"please the"`:           true, // phrases cross the border of messages
		"refun":                  false,
		"refun*":                 true,
		`"no refun*"`:            true,
		`"n* refund"`:            false, // only the last word may be a prefix
		"-missing":               true,
		"-refund":                false,
		`refund -"refund a"`:     true,
		`refund -"a refund"`:     false,
		"refund -ref*":           false,
		"cafe email":             false,
		"cafe e-mail":            true,
		"返金":                     true,
		"金返":                     false,
		`"please. the CAFE'S e"`: true,
		"願い":                     true,
	} {
		if got := ParseQuery(q).Matches(Words(text)); got != want {
			t.Errorf("%s: %v", q, got)
		}
	}
	if ParseQuery("a").Matches("") || !ParseQuery("-a").Matches("") || !ParseQuery("").Matches("") {
		t.Error("a session without a transcript")
	}
}

func TestSnippet(t *testing.T) {
	lorem := strings.Repeat("lorem ipsum dolor sit amet ", 20)
	for _, c := range []struct{ text, query, want string }{
		{"", "a", ""},
		{"Short text.", "", "Short text."},
		{"Short text.", "missing", "Short text."},
		{"Short text.", "-short", "Short text."},
		{"I want a Refund, now.", "refund", "I want a <mark>Refund</mark>, now."},
		{"I want a Refund, now.", `"a refund"`, "I want <mark>a Refund</mark>, now."},
		{"I want a Refund, now.", "want refund", "I <mark>want</mark> a <mark>Refund</mark>, now."},
		{"Refunds, refunding, fund", "refund*", "<mark>Refunds</mark>, <mark>refunding</mark>, fund"},
		{"Don't panic", "don't", "<mark>Don&#39;t</mark> panic"},
		{"<b>&\"'refund'\"</b>", "refund", "&lt;b&gt;&amp;&#34;&#39;<mark>refund</mark>&#39;&#34;&lt;/b&gt;"},
		{"<mark>refund</mark>", "refund", "&lt;mark&gt;<mark>refund</mark>&lt;/mark&gt;"},
		{"CRÈME BRÛLÉE", "creme brulee", "<mark>CRÈME</mark> <mark>BRÛLÉE</mark>"},
		{"cre\u0300me\u0301!", "creme", "<mark>cre\u0300me\u0301</mark>!"},
		{"ご返金をお願い", "返金", "ご<mark>返金</mark>をお願い"},
		{"ご返金をお願い", "返 金", "ご<mark>返金</mark>をお願い"},
		{"½ cup", "2", "<mark>½</mark> cup"},
		{"a b c d", `"a b" "b c"`, "<mark>a b c</mark> d"},
		{"bad \xff refund", "refund", "bad \ufffd <mark>refund</mark>"},
		{"one\ntwo", "two", "one\n<mark>two</mark>"},
		{lorem + "the refund was sent " + lorem, "refund",
			"…dolor sit amet lorem ipsum dolor sit amet the <mark>refund</mark> was sent lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum…"},
		{"refund " + lorem, "refund",
			"<mark>refund</mark> lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor…"},
		{lorem + "refund", "refund",
			"…dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet <mark>refund</mark>"},
		// The passage with both words, though one of them comes before alone.
		{"refund " + lorem + "a refund for the grinder " + lorem, "grinder refund",
			"…dolor sit amet lorem ipsum dolor sit amet a <mark>refund</mark> for the <mark>grinder</mark> lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem…"},
	} {
		got := Snippet(c.text, ParseQuery(c.query))
		if got != c.want {
			t.Errorf("%.40q for %s:\n got %s\nwant %s", c.text, c.query, got, c.want)
		}
		if problem := checkSnippet(c.text, got); problem != "" {
			t.Errorf("%.40q for %s: %s", c.text, c.query, problem)
		}
	}
	// Without white space the cut is where the length ends, between runes.
	got := Snippet(strings.Repeat("返", 100)+"金"+strings.Repeat("返", 100), ParseQuery("金"))
	if n := utf8.RuneCountInString(strings.NewReplacer("<mark>", "", "</mark>", "", "…", "").Replace(got)); n != snippetRunes || !strings.Contains(got, "<mark>金</mark>") {
		t.Errorf("%d runes: %s", n, got)
	}
	// A match longer than the snippet.
	got = Snippet(strings.Repeat("word ", 60), ParseQuery(`"`+strings.Repeat("word ", 60)+`"`))
	if problem := checkSnippet(strings.Repeat("word ", 60), got); problem != "" || !strings.HasPrefix(got, "<mark>word word") {
		t.Errorf("%s: %s", problem, got)
	}
}

// checkSnippet names the first promise a snippet breaks.
func checkSnippet(text, snippet string) string {
	if !utf8.ValidString(snippet) {
		return "not UTF-8"
	}
	if strings.Count(snippet, "<mark>") != strings.Count(snippet, "</mark>") || strings.Contains(snippet, "<mark></mark>") {
		return "marks do not pair"
	}
	plain := strings.NewReplacer("<mark>", "", "</mark>", "").Replace(snippet)
	if strings.ContainsAny(plain, "<>\"'") {
		return "not escaped"
	}
	plain = html.UnescapeString(plain)
	source := string([]rune(text)) // each bad byte as U+FFFD
	if strings.Contains(source, plain) {
		return ""
	}
	quote := strings.TrimSuffix(strings.TrimPrefix(plain, "…"), "…")
	if !strings.Contains(source, quote) {
		return "not a part of the text: " + quote
	}
	if n := utf8.RuneCountInString(quote); n > snippetRunes {
		return "too long"
	}
	return ""
}

// A plain word that a text contains as a token is found in it, and the snippet shows it marked.
func TestFoundWordsAreMarked(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "B", "é", "ß", " ", " ", "\n", "-", "*", "\"", "返", "ー", "ि", "क", "½", "한", "\u0301", "7", "<", "\xff", "😀"}
	for range 100 {
		var b strings.Builder
		for range rng.IntN(300) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		text := b.String()
		words := Words(text)
		tokens := strings.Fields(words)
		if again := Words(words); again != words {
			t.Fatalf("%q: tokens %q become %q", text, words, again)
		}
		for _, tok := range tokens {
			q := ParseQuery(tok)
			if !q.Matches(words) {
				t.Fatalf("%q: its token %q is not found", text, tok)
			}
			s := Snippet(text, q)
			if problem := checkSnippet(text, s); problem != "" {
				t.Fatalf("%q for %q: %s in %s", text, tok, problem, s)
			}
			if !strings.Contains(s, "<mark>") {
				t.Fatalf("%q for %q: nothing marked in %s", text, tok, s)
			}
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("I want a refund, please.", `refund -"a b" pl*`)
	f.Add("CRÈME <b>½ 返金をお願い\xff", "creme 返金")
	f.Add(strings.Repeat("ab ", 300)+"\u0301ﷺ", `"ab ab" b* -`)
	f.Fuzz(func(t *testing.T, text, query string) {
		words := Words(text)
		tokens := strings.Fields(words)
		if len(tokens) > MaxTokens {
			t.Fatalf("%d tokens", len(tokens))
		}
		for _, tok := range tokens {
			if tok == "" || len(tok) > maxTokenBytes || !utf8.ValidString(tok) || strings.ContainsAny(tok, " '\"\\\x00:*") {
				t.Fatalf("token %q", tok)
			}
		}
		if again := Words(words); again != words {
			t.Fatalf("tokens %q become %q", words, again)
		}
		q := ParseQuery(query)
		for _, p := range append(slices.Clone(q.Must), q.Not...) {
			if len(p.Tokens) == 0 || len(p.Tokens) > maxPhraseTokens {
				t.Fatalf("phrase %v", p)
			}
		}
		found := q.Matches(words)
		s := Snippet(text, q)
		if problem := checkSnippet(text, s); problem != "" {
			t.Fatalf("%s: %s", problem, s)
		}
		if found && len(q.Must) > 0 && !strings.Contains(s, "<mark>") {
			t.Fatalf("matches, but nothing is marked in %q", s)
		}
	})
}

func BenchmarkWords(b *testing.B) {
	ascii := strings.Repeat("I would like to know where my Order is, please. ", 60)
	accents := strings.Repeat("Où est ma commande ? Je l'ai passée la semaine dernière. ", 50)
	for name, text := range map[string]string{"ascii": ascii, "accents": accents} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Words(text)
			}
		})
	}
}

func BenchmarkSnippet(b *testing.B) {
	text := strings.Repeat("I would like to know where my order is, please. ", 60) + "A refund, then."
	q := ParseQuery(`"a refund" order`)
	b.ReportAllocs()
	for b.Loop() {
		Snippet(text, q)
	}
}

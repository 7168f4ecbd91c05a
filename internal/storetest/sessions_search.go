package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sidetone/internal/session"
)

// vocabulary is what random transcripts and queries are made of: words that are the same once folded, that begin alike,
// of several scripts and directions, with and without spaces between words, and none at all.
var vocabulary = []string{"refund", "Refunds", "réfund", "order", "ordered", "e-mail", "email", "don't", "44712", "4", "über", "ueber", "straße",
	"strasse", "返金", "返", "金曜日", "ガス", "カス", "환불", "환", "שלום", "שָׁלוֹם", "مرحبا", "مَرْحَبًا", "привет", "ПРИВЕТ", "हिन्दी", "हिन्द", "สวัสดี", "👋", "…", "ﬁn", "fin",
	"İstanbul", "istanbul", "and", "or", "not", "near", "the", "NOT", "*", "'", "\\", "|", "&", "!", ":*", "<->"}

func randomText(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most) {
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		b.WriteString([]string{" ", " ", " ", ", ", "\n", "", "-", "\u200b"}[r.IntN(8)])
	}
	return b.String()
}

func randomQuery(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(4) {
		if r.IntN(4) == 0 {
			b.WriteByte('-')
		}
		w := strings.TrimSpace(randomText(r, 4))
		switch r.IntN(4) {
		case 0:
			w = `"` + w + `"`
		case 1:
			if rs := []rune(w); len(rs) > 1 {
				w = string(rs[:1+r.IntN(len(rs)-1)])
			}
			w += "*"
		}
		b.WriteString(w)
		b.WriteByte(' ')
	}
	return b.String()
}

func searchOracle(t *testing.T, s sessionStore) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 77))
		texts := map[string]string{}
		for i := range 80 {
			id := fmt.Sprintf("%d-%d", seed, i)
			texts[id] = randomText(r, 1+i/2)
			s.put(id, func(rec *session.Record) {
				rec.Session.AccountID = fmt.Sprint(seed)
				rec.Words = session.Words(texts[id])
			})
		}
		matched := 0
		for range 250 {
			text := randomQuery(r)
			q := session.ParseQuery(text)
			want := []string{}
			for id, said := range texts {
				if q.Matches(session.Words(said)) {
					want = append(want, id)
				}
			}
			got := s.ids(session.Filter{AccountIDs: []string{fmt.Sprint(seed)}, Search: q})
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %q finds %v, want %v", seed, text, got, want)
			}
			if len(want) > 0 && len(want) < len(texts) {
				matched++
			}
		}
		if matched < 30 {
			t.Errorf("seed %d: only %d queries tell sessions apart: the test has no teeth", seed, matched)
		}
	}
}

func searchIsCurrent(t *testing.T, s sessionStore) {
	other := sessionStore{t, s.again(), s.again}
	find := func(q string, want ...string) {
		t.Helper()
		for k, reader := range []sessionStore{s, other} {
			got := reader.ids(session.Filter{Search: session.ParseQuery(q)})
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("store %d: %q finds %v, want %v", k, q, got, want)
			}
		}
	}
	say := func(st sessionStore, id, text string, sameWords bool) {
		t.Helper()
		st.put(id, func(r *session.Record) { r.Words, r.SameWords = session.Words(text), sameWords })
	}
	say(s, "a", "I want a refund", false)
	find("refund", "a")
	say(other, "b", "a refund please", false)
	find("refund", "a", "b")
	say(s, "a", "where is my order", false) // posted again: the words are replaced
	find("refund", "b")
	find("order", "a")
	find("-refund", "a")
	say(s, "b", "", true) // the same words as before
	find("refund", "b")
	say(s, "b", "first version", false) // twice before anyone searches
	say(other, "b", "second version", false)
	find("first")
	find("version", "b")
	say(s, "b", "", false) // nothing was said after all
	find("version")
	find("-order", "b")
	if _, _, err := other.Delete(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	find("order")
	rows, _ := s.list(session.Filter{Search: session.ParseQuery("-order")}, session.Page{Limit: 5})
	if len(rows) != 1 || rows[0].Docs != nil {
		t.Errorf("%+v: nothing to quote when nothing was searched for", rows)
	}
	s.put("c", func(r *session.Record) { r.Words, r.Docs[session.DocReport] = "hello", []byte("doc") })
	rows, _ = s.list(session.Filter{Search: session.ParseQuery("hello")}, session.Page{Limit: 5})
	if len(rows) != 1 || string(rows[0].Docs[session.DocReport]) != "doc" {
		t.Errorf("a search comes without what the snippet is cut from: %+v", rows)
	}
}

// searchLongCalls indexes as much as a session may have: the longest words, each only once, and words said thousands of
// times. What an engine cannot index must not keep it from indexing anything else.
func searchLongCalls(t *testing.T, s sessionStore) {
	var wide, often strings.Builder
	for i := range session.MaxTokens {
		fmt.Fprintf(&wide, "%05d%s ", i, strings.Repeat("x", 70))
		often.WriteString([]string{"yes ", "no ", "well "}[i%3])
	}
	s.put("wide", func(r *session.Record) { r.Words = session.Words(wide.String()) })
	s.put("often", func(r *session.Record) { r.Words = session.Words(often.String()) })
	s.put("short", func(r *session.Record) { r.Words = session.Words("well then") })
	for q, want := range map[string][]string{"yes": {"often"}, "well -then": {"often"}, "then": {"short"}, `"yes no well"`: {"often"},
		"00000*": {"wide"}, "09999*": {"wide"}, "-yes -then": {"wide"}} {
		if got := s.ids(session.Filter{Search: session.ParseQuery(q)}); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", q, got, want)
		}
	}
}

// Package price estimates what calls and eval runs cost from public list prices: an embedded, dated table that a file
// can override. An unknown model makes a cost unknown; there is never a partial sum.
package price

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// The kinds of models.
const (
	kindLLM = "llm"
	kindTTS = "tts"
	kindSTT = "stt"
)

// Table knows the prices of models. It is immutable once loaded.
type Table struct {
	// AsOf is the date of the prices, YYYY-MM-DD.
	AsOf string

	aliases  map[string]string // what a provider may be called -> the provider
	gateways map[string]bool   // providers that sell other providers' models as PROVIDER/MODEL
	layers   []*layer          // an earlier layer overrides later ones
}

type key struct{ kind, provider, model string }

// rates are the prices of one entry.
type rates struct{ row }

// layer is the prices of one document.
type layer struct {
	exact    map[key]*rates
	prefixes []prefix
	alone    map[key]*rates // by model without provider; nil where providers differ
}

type prefix struct {
	key // model without its *
	*rates
}

func newLayer() *layer { return &layer{exact: map[key]*rates{}, alone: map[key]*rates{}} }

// add reports whether the key was free.
func (l *layer) add(k key, p *rates) bool {
	if start, ok := strings.CutSuffix(k.model, "*"); ok {
		k.model = start
		if slices.ContainsFunc(l.prefixes, func(x prefix) bool { return x.key == k }) {
			return false
		}
		l.prefixes = append(l.prefixes, prefix{k, p})
		return true
	}
	if _, taken := l.exact[k]; taken {
		return false
	}
	l.exact[k] = p
	return true
}

func (l *layer) finish() {
	slices.SortFunc(l.prefixes, func(a, b prefix) int { return cmp.Compare(len(b.model), len(a.model)) })
	for k, p := range l.exact {
		k.provider = ""
		if _, taken := l.alone[k]; taken {
			p = nil // two providers sell it, at different prices
		}
		l.alone[k] = p
	}
}

// find looks a model up; an empty provider is any.
func (l *layer) find(k key) (*rates, bool) {
	if k.provider == "" {
		p, ok := l.alone[k]
		return p, ok
	}
	if p, ok := l.exact[k]; ok {
		return p, true
	}
	for i := range l.prefixes {
		if x := &l.prefixes[i]; x.kind == k.kind && x.provider == k.provider && strings.HasPrefix(k.model, x.model) {
			return x.rates, true
		}
	}
	return nil, false
}

// versioned matches the end of a model's name that says which version of it was used: a date as the vendors write it
// (-2025-04-14, -20250514, @20250514, -0125), a revision of three digits, or -latest. A version costs what its model
// costs, unless it has an entry of its own.
var versioned = regexp.MustCompile(`[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3}|latest)$`)

// maxName bounds the names that are looked up: what is longer is no model.
const maxName = 200

// find gives the prices of a model, nil when they are unknown.
func (t *Table) find(kind, provider, model string) *rates {
	if len(provider) > maxName || len(model) > maxName {
		return nil
	}
	provider, model = fold(provider), strings.TrimPrefix(fold(model), "models/")
	id, known := t.provider(provider)
	if model == "" || (provider != "" && !known) {
		return nil
	}
	if vendor, rest, ok := strings.Cut(model, "/"); ok {
		// PROVIDER/MODEL, unless the provider named beside it has a model of that whole name (groq: openai/gpt-oss-120b).
		vendorID, vendorKnown := t.provider(vendor)
		if vendorKnown && (provider == "" || t.gateways[id] || id == vendorID) {
			if id != "" {
				if p := t.lookup(kind, id, model); p != nil {
					return p
				}
			}
			return t.lookup(kind, vendorID, rest)
		}
	}
	if p := t.lookup(kind, id, model); p != nil || !t.gateways[id] {
		return p
	}
	return t.lookup(kind, "", model)
}

// provider resolves what a provider is called: a known name, or a host below a known one.
func (t *Table) provider(name string) (id string, known bool) {
	host, _, _ := strings.Cut(name, ":")
	for {
		if id, ok := t.aliases[host]; ok {
			return id, true
		}
		_, parent, ok := strings.Cut(host, ".")
		if !ok || !strings.Contains(parent, ".") {
			return "", false
		}
		host = parent
	}
}

// lookup tries the name as it is and without the parts that do not change the price.
func (t *Table) lookup(kind, provider, model string) *rates {
	names := [4]string{model}
	n := 1
	try := func(name string) {
		if !slices.Contains(names[:n], name) {
			names[n], n = name, n+1
		}
	}
	try(undated(model))
	if kind != kindLLM { // LiveKit's descriptors end in the language or the voice: deepgram/nova-3:en
		if bare, _, ok := strings.Cut(model, ":"); ok {
			try(bare)
			try(undated(bare))
		}
	}
	for _, l := range t.layers {
		for _, name := range names[:n] {
			if p, ok := l.find(key{kind, provider, name}); ok {
				return p
			}
		}
	}
	return nil
}

func undated(model string) string {
	if at := versioned.FindStringIndex(model); at != nil {
		return model[:at[0]]
	}
	return model
}

// fold makes names comparable.
func fold(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

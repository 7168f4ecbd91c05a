package price

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"sidetone/internal/errs"
)

//go:embed prices.json
var builtin []byte

// maxPrice bounds every price, so that a price per token given where one per million is meant, or the other way round,
// has a chance to be noticed and no cost can overflow.
const maxPrice = 100_000

// document is a price table as written: prices.json and PRICES_FILE.
type document struct {
	AsOf      string              `json:"as_of"`
	Note      string              `json:"note"`
	Replace   bool                `json:"replace"` // in PRICES_FILE: forget the built-in prices
	Providers map[string][]string `json:"providers"`
	Gateways  []string            `json:"gateways"`
	Prices    []json.RawMessage   `json:"prices"`
}

// row is one entry of a document. Prices are USD; nil is not given.
type row struct {
	Kind     string   `json:"kind"`
	Provider string   `json:"provider"`
	Models   []string `json:"models"`

	Input            *float64 `json:"input_per_1m"`
	CachedInput      *float64 `json:"cached_input_per_1m"`
	CacheWrite       *float64 `json:"cache_write_per_1m"`
	Output           *float64 `json:"output_per_1m"`
	AudioInput       *float64 `json:"audio_input_per_1m"`
	CachedAudioInput *float64 `json:"cached_audio_input_per_1m"`
	AudioOutput      *float64 `json:"audio_output_per_1m"`
	Characters       *float64 `json:"characters_per_1m"`
	Minute           *float64 `json:"per_minute"`
}

// priceField is one price of a row by its name in the document.
type priceField struct {
	name  string
	value *float64
	kinds string // the kinds it has a meaning for
}

func (r *row) fields() []priceField {
	return []priceField{
		{"input_per_1m", r.Input, "llm tts stt"},
		{"cached_input_per_1m", r.CachedInput, "llm"},
		{"cache_write_per_1m", r.CacheWrite, "llm"},
		{"output_per_1m", r.Output, "llm tts stt"},
		{"audio_input_per_1m", r.AudioInput, "llm"},
		{"cached_audio_input_per_1m", r.CachedAudioInput, "llm"},
		{"audio_output_per_1m", r.AudioOutput, "llm"},
		{"characters_per_1m", r.Characters, "tts"},
		{"per_minute", r.Minute, "tts stt"},
	}
}

// Load makes the table of the built-in prices and, when override is not nil, of a document whose entries come before
// them. Errors are of kind Invalid or InvalidJSON and name the entry and the field.
func Load(override []byte) (*Table, error) {
	t := &Table{aliases: map[string]string{}, gateways: map[string]bool{}}
	base, prices, err := t.read(builtin)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "the built-in price table is broken")
	}
	t.AsOf, t.layers = base.AsOf, []*layer{prices}
	if override == nil {
		return t, nil
	}
	own, prices, err := t.read(override)
	if err != nil {
		return nil, err
	}
	if own.Replace {
		t.AsOf, t.layers = "", nil
	}
	t.AsOf = cmp.Or(own.AsOf, t.AsOf)
	t.layers = slices.Insert(t.layers, 0, prices)
	return t, nil
}

// read takes a document's providers into the table and gives its prices.
func (t *Table) read(text []byte) (*document, *layer, error) {
	var d document
	if field, err := decode(text, &d); err != nil {
		return nil, nil, badJSON(field, err)
	}
	if d.AsOf != "" {
		if _, err := time.Parse(time.DateOnly, d.AsOf); err != nil {
			return nil, nil, invalid("as_of", "%q is not a date like 2026-02-28", d.AsOf)
		}
	}
	if err := t.addProviders(&d); err != nil {
		return nil, nil, err
	}
	l := newLayer()
	for i, raw := range d.Prices {
		if err := t.addRow(l, i, raw); err != nil {
			return nil, nil, err
		}
	}
	l.finish()
	return &d, l, nil
}

// addProviders binds names to providers. A later document may bind a name anew: what was an alias can become a provider.
func (t *Table) addProviders(d *document) error {
	bound := map[string]string{}
	for name := range d.Providers {
		id := fold(name)
		if id == "" {
			return invalid("providers", "a provider has an empty name")
		}
		bound[id] = id
	}
	for name, aliases := range d.Providers {
		for i, alias := range aliases {
			field, a := fmt.Sprintf("providers.%s[%d]", name, i), fold(alias)
			if other, taken := bound[a]; taken && other != fold(name) {
				return invalid(field, "%q is a name of another provider already: %s", alias, other)
			} else if a == "" {
				return invalid(field, "must not be empty")
			}
			bound[a] = fold(name)
		}
	}
	maps.Copy(t.aliases, bound)
	for i, name := range d.Gateways {
		id, known := t.aliases[fold(name)]
		if !known {
			return invalid(fmt.Sprintf("gateways[%d]", i), "%q is not one of the providers", name)
		}
		t.gateways[id] = true
	}
	return nil
}

func (t *Table) addRow(l *layer, i int, raw []byte) error {
	at := fmt.Sprintf("prices[%d]", i)
	var r row
	if field, err := decode(raw, &r); err != nil {
		return badJSON(join(at, field), err)
	}
	if r.Kind != kindLLM && r.Kind != kindTTS && r.Kind != kindSTT {
		return invalid(at+".kind", "is %q; allowed are llm, tts and stt", r.Kind)
	}
	if fold(r.Provider) == "" {
		return invalid(at+".provider", "must name the provider")
	}
	if len(r.Models) == 0 {
		return invalid(at+".models", "must name at least one model")
	}
	at += " (" + r.Provider + " " + r.Models[0] + ")"
	for _, f := range r.fields() {
		switch {
		case f.value == nil:
		case !strings.Contains(f.kinds, r.Kind):
			return invalid(at+"."+f.name, "has no meaning for kind %s", r.Kind)
		case *f.value < 0 || *f.value > maxPrice:
			return invalid(at+"."+f.name, "is %v; allowed is 0 to %d US dollars", *f.value, maxPrice)
		}
	}
	tokens := r.Input != nil && r.Output != nil
	switch {
	case r.Input == nil && (r.Kind == kindLLM || r.Output != nil):
		return invalid(at+".input_per_1m", "is missing")
	case r.Output == nil && (r.Kind == kindLLM || r.Input != nil):
		return invalid(at+".output_per_1m", "is missing")
	case r.Kind == kindTTS && !tokens && r.Characters == nil && r.Minute == nil:
		return invalid(at, "needs characters_per_1m, per_minute, or input_per_1m with output_per_1m")
	case r.Kind == kindSTT && !tokens && r.Minute == nil:
		return invalid(at, "needs per_minute, or input_per_1m with output_per_1m")
	case (r.AudioInput == nil) != (r.AudioOutput == nil):
		return invalid(at, "audio_input_per_1m and audio_output_per_1m go together")
	case r.CachedAudioInput != nil && r.AudioInput == nil:
		return invalid(at+".cached_audio_input_per_1m", "needs audio_input_per_1m")
	}
	id, known := t.aliases[fold(r.Provider)]
	if !known {
		id = fold(r.Provider)
		t.aliases[id] = id
	}
	p := &rates{row: r}
	for j, model := range r.Models {
		field := fmt.Sprintf("%s.models[%d]", at, j)
		name := fold(model)
		if strings.Trim(name, "*") == "" || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			return invalid(field, "is %q; allowed is a model's name, with a * only at its end", model)
		}
		if !l.add(key{r.Kind, id, name}, p) {
			return invalid(field, "%q has a price already", model)
		}
	}
	return nil
}

// decode reads exactly one JSON value and refuses unknown keys; field is where the error is, if it can tell.
func decode(text []byte, into any) (field string, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err = dec.Decode(into)
	if err == nil {
		if _, err = dec.Token(); err == io.EOF {
			return "", nil
		}
		return "", errors.New("something follows the JSON document")
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return wrong.Field, fmt.Errorf("is of type %s; %s is wanted", wrong.Value, wanted(wrong.Type.Kind()))
	}
	return "", errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	}
	return "an object"
}

func badJSON(field string, err error) error {
	if field == "" {
		return errs.New(errs.InvalidJSON, "not a price table: %v", err)
	}
	return invalid(field, "%v", err)
}

func invalid(field, format string, args ...any) error {
	return errs.New(errs.Invalid, "%s: %s", field, fmt.Sprintf(format, args...))
}

func join(at, field string) string {
	if field == "" {
		return at
	}
	return at + "." + field
}

package alert

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"sidetone/internal/errs"
)

// Patch is the body of a create or of a PATCH: the JSON of the fields that are there. An absent field keeps its value, an
// explicit null clears it: to none, or to the default where the field has one.
type Patch map[string]json.RawMessage

// ParsePatch splits a JSON object into its fields. Unknown fields are refused by name, because a misspelt optional field
// would otherwise be lost in silence. Fields that we send ourselves are ignored, so that a rule that was read can be sent
// back whole.
func ParsePatch(raw []byte) (Patch, error) {
	if !json.Valid(raw) {
		return nil, errs.New(errs.InvalidJSON, "the body is not valid JSON")
	}
	var p Patch
	if err := json.Unmarshal(raw, &p); err != nil || p == nil {
		return nil, errs.New(errs.Invalid, "the body must be a JSON object with the fields of a rule")
	}
	return p, nil
}

// readOnly are the fields that replies carry and requests may repeat.
var readOnly = map[string]bool{
	"api_id": true, "id": true, "has_secret": true, "last_fired_at": true, "suppressed_until": true, "created_at": true, "updated_at": true,
	"suppressed": true, "last_value": true, "last_samples": true, "last_reason": true, "last_evaluated_at": true,
}

// NewRule makes a rule from the body of a create: defaults, then the given fields, then validation. The error lists every
// violated field.
func NewRule(p Patch, id string, now time.Time) (Rule, error) {
	r := defaults()
	var bad problems
	p.merge(&r, &bad)
	r.check(&bad)
	r.ID, r.CreatedAt, r.UpdatedAt = id, now, now
	return r, errs.InvalidFields(bad.fields)
}

// Apply merges the given fields into a stored rule and validates the result. The error lists every violated field. The
// stamp and so the suppression stay as they are.
func (p Patch) Apply(stored Rule, now time.Time) (Rule, error) {
	r := stored
	r.Headers = maps.Clone(stored.Headers)
	var bad problems
	p.merge(&r, &bad)
	r.check(&bad)
	r.UpdatedAt = now
	return r, errs.InvalidFields(bad.fields)
}

// defaults are the values of the optional fields (spec, Alert rule).
func defaults() Rule {
	return Rule{Enabled: true, MinSamples: 1, EvalSource: SourceAll, HTTPMethod: "POST"}
}

// merge sets the given fields of r and adds those whose JSON has the wrong type.
func (p Patch) merge(r *Rule, bad *problems) {
	std := defaults()
	for _, name := range sortedKeys(p) {
		raw := p[name]
		null := string(bytes.TrimSpace(raw)) == "null"
		text := func(to *string, rule string) {
			*to = ""
			if null {
				return
			}
			if json.Unmarshal(raw, to) != nil || *to == "" {
				bad.add(name, "%s", rule)
			}
		}
		choice := func(to *string, std string) {
			if *to = std; !null && json.Unmarshal(raw, to) != nil {
				*to = "" // not a string: the check names what is allowed
			}
		}
		number := func(to *int) {
			if n, ok := wholeNumber(raw); ok {
				*to = n
			} else {
				*to = math.MinInt // the check names what is allowed
			}
		}
		const orNull = "must be a string that is not empty, or null"
		switch name {
		case "name":
			choice(&r.Name, "")
		case "metric":
			var m string
			choice(&m, "")
			r.Metric = Metric(m)
		case "threshold_value":
			if r.Threshold = 0; !null && json.Unmarshal(raw, &r.Threshold) != nil {
				r.Threshold = 0
			}
		case "window_minutes":
			number(&r.WindowMinutes)
		case "min_samples":
			if r.MinSamples = std.MinSamples; !null {
				number(&r.MinSamples)
			}
		case "enabled":
			if r.Enabled = std.Enabled; !null && json.Unmarshal(raw, &r.Enabled) != nil {
				bad.add(name, "must be true or false")
			}
		case "agent_id":
			text(&r.AgentID, orNull)
		case "account_id":
			text(&r.AccountID, orNull)
		case "judge_name":
			text(&r.JudgeName, orNull)
		case "secret":
			text(&r.Secret, orNull)
		case "eval_source":
			choice(&r.EvalSource, std.EvalSource)
		case "webhook_url":
			choice(&r.WebhookURL, "")
		case "http_method":
			choice(&r.HTTPMethod, std.HTTPMethod)
		case "headers":
			r.Headers = mergeHeaders(raw, null, bad)
		default:
			if !readOnly[name] {
				bad.add(name, "is not a field of a rule")
			}
		}
	}
}

// mergeHeaders replaces the headers as a whole: there is no merging header by header.
func mergeHeaders(raw json.RawMessage, null bool, bad *problems) map[string]string {
	if null {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		bad.add("headers", "must be an object of header names and values, or null")
		return nil
	}
	headers := make(map[string]string, len(fields))
	for _, name := range sortedKeys(fields) {
		var value *string
		if json.Unmarshal(fields[name], &value) != nil || value == nil {
			bad.add("headers."+name, "the value must be a string")
			continue
		}
		headers[name] = *value
	}
	if len(headers) == 0 {
		return nil
	}
	return headers
}

// wholeNumber reads a JSON number without a fraction; 15, 15.0 and 1.5e1 are the same to a client.
func wholeNumber(raw json.RawMessage) (int, bool) {
	s := string(bytes.TrimSpace(raw))
	if s == "" || s[0] == '"' {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int(f), true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func contains(list []string, s string) bool { return slices.Contains(list, s) }

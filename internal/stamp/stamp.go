// Package stamp is the one way times leave and enter the program: RFC 3339 in UTC with milliseconds in JSON, and
// microseconds since the Unix epoch in the database.
package stamp

import (
	"encoding/json"
	"fmt"
	"time"
)

// Layout is the wire format of every time in our JSON: 2026-11-21T05:20:00.123Z.
const Layout = "2006-01-02T15:04:05.000Z07:00"

// Time is a time.Time that marshals as RFC 3339 UTC with exactly three decimals, and as null when zero.
type Time struct{ time.Time }

// Of wraps t.
func Of(t time.Time) Time { return Time{t} }

// Ptr wraps t, nil when t is zero.
func Ptr(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

func (t Time) String() string { return t.UTC().Format(Layout) }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	b := make([]byte, 0, len(Layout)+2)
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, Layout)
	return append(b, '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler; null gives the zero time.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		t.Time = time.Time{}
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	return t.UnmarshalText([]byte(s))
}

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Time) UnmarshalText(b []byte) error {
	p, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return fmt.Errorf("not an RFC 3339 time: %q", b)
	}
	t.Time = p.UTC()
	return nil
}

// Micros is t in microseconds since the epoch: how every time is stored.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// FromMicros is the inverse of Micros, in UTC.
func FromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

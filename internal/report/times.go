package report

import (
	"math"
	"strconv"
	"time"
)

// Clients write times as epoch seconds (Python), milliseconds (Node) and sometimes finer, so the unit is told by the
// magnitude: 1e11 s is the year 5138 and 1e11 ms is 1973, and the same holds a thousandfold for each finer unit.
const (
	firstMillis = 1e11
	firstMicros = 1e14
	firstNanos  = 1e17
	pastNanos   = math.MaxInt64
)

// epoch turns a number of seconds, milliseconds, microseconds or nanoseconds since 1970 into a time in UTC with
// microseconds. Zero, negative and impossibly large numbers give the zero time.
func epoch(v float64) time.Time {
	switch {
	case !(v > 0) || v >= pastNanos:
		return time.Time{}
	case v > firstNanos:
		v /= 1e3
	case v > firstMicros:
	case v > firstMillis:
		v *= 1e3
	default:
		v *= 1e6
	}
	us := int64(math.Round(v))
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// The forms of a time in text: RFC 3339, and what Python's isoformat writes for a naive time, which is taken as UTC.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00"}

// parseTime reads a time written as text: RFC 3339 or a number as in epoch. Anything else gives the zero time.
func parseTime(text string) time.Time {
	if len(text) > 64 {
		return time.Time{}
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return epoch(v)
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			if t.Unix() <= 0 {
				return time.Time{}
			}
			return t.UTC().Round(time.Microsecond)
		}
	}
	return time.Time{}
}

// time reads a time in any of these forms; any other value is skipped and gives the zero time.
func (s *scanner) time() time.Time {
	if s.peek() == '"' {
		return parseTime(s.str())
	}
	v, ok := s.num()
	if !ok {
		return time.Time{}
	}
	return epoch(v)
}

// appendSeconds writes t as epoch seconds with up to six decimals.
func appendSeconds(out []byte, t time.Time) []byte {
	return strconv.AppendFloat(out, float64(t.UnixMicro())/1e6, 'f', -1, 64)
}

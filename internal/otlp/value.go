package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"sidetone/internal/session"
)

// maxDepth is how deep attribute values are kept; what lies deeper is replaced by a note.
const maxDepth = 64

// writer turns attributes into JSON. Its scratch buffer is reused, so each document costs one allocation.
type writer struct{ scratch []byte }

// object writes attributes as one JSON object.
func (w *writer) object(kvs []*commonpb.KeyValue) json.RawMessage {
	w.scratch = appendObject(w.scratch[:0], kvs, 0)
	return append(make(json.RawMessage, 0, len(w.scratch)), w.scratch...)
}

// value writes one attribute value as JSON.
func (w *writer) value(v *commonpb.AnyValue) json.RawMessage {
	w.scratch = appendValue(w.scratch[:0], v, 0)
	return append(make(json.RawMessage, 0, len(w.scratch)), w.scratch...)
}

// appendObject writes pairs in the order they were sent. Of a repeated key the last one counts.
func appendObject(dst []byte, kvs []*commonpb.KeyValue, depth int) []byte {
	last := lastByKey(kvs)
	dst = append(dst, '{')
	first := true
	for i, kv := range kvs {
		if last != nil && last[kv.GetKey()] != i {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendString(dst, kv.GetKey())
		dst = append(dst, ':')
		dst = appendValue(dst, kv.GetValue(), depth+1)
	}
	return append(dst, '}')
}

// lastByKey is the last index of each key, nil when no key is repeated.
func lastByKey(kvs []*commonpb.KeyValue) map[string]int {
	const few = 32 // up to here comparing all pairs is faster than hashing
	if len(kvs) <= few {
		repeated := false
		for i := 1; i < len(kvs) && !repeated; i++ {
			for j := range i {
				if kvs[i].GetKey() == kvs[j].GetKey() {
					repeated = true
					break
				}
			}
		}
		if !repeated {
			return nil
		}
	}
	last := make(map[string]int, len(kvs))
	for i, kv := range kvs {
		last[kv.GetKey()] = i
	}
	return last
}

// appendValue writes a value as plain JSON: bytes as base64, whole numbers in full, what is not a number as a string.
func appendValue(dst []byte, v *commonpb.AnyValue, depth int) []byte {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return appendString(dst, v.StringValue)
	case *commonpb.AnyValue_BoolValue:
		return strconv.AppendBool(dst, v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return strconv.AppendInt(dst, v.IntValue, 10)
	case *commonpb.AnyValue_DoubleValue:
		return appendFloat(dst, v.DoubleValue)
	case *commonpb.AnyValue_BytesValue:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.BytesValue)
		return append(dst, '"')
	case *commonpb.AnyValue_ArrayValue:
		if depth >= maxDepth {
			return appendTooDeep(dst)
		}
		dst = append(dst, '[')
		for i, e := range v.ArrayValue.GetValues() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, e, depth+1)
		}
		return append(dst, ']')
	case *commonpb.AnyValue_KvlistValue:
		if depth >= maxDepth {
			return appendTooDeep(dst)
		}
		return appendObject(dst, v.KvlistValue.GetValues(), depth)
	}
	return append(dst, "null"...)
}

func appendTooDeep(dst []byte) []byte { return appendString(dst, "(nested too deep)") }

// appendFloat writes a JSON number; NaN and the infinities, which JSON lacks, become strings.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	return jsontext.AppendFloat(dst, f, 64)
}

// appendString writes a JSON string without NUL characters, which PostgreSQL's text and jsonb cannot hold.
func appendString(dst []byte, s string) []byte {
	plain := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			plain = false
			break
		}
	}
	if plain {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	dst, _ = jsontext.AppendQuote(dst, text(s)) // the decoders leave only valid UTF-8, and the rest is replaced
	return dst
}

// text is s without NUL characters.
func text(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// find is the last value of a key, nil when it is missing.
func find(kvs []*commonpb.KeyValue, key string) *commonpb.AnyValue {
	for i := len(kvs) - 1; i >= 0; i-- {
		if kvs[i].GetKey() == key {
			return kvs[i].GetValue()
		}
	}
	return nil
}

// number reads a numeric value, also one that was sent as text.
func number(v *commonpb.AnyValue) (float64, bool) {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_IntValue:
		return float64(v.IntValue), true
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue, !math.IsNaN(v.DoubleValue) && !math.IsInf(v.DoubleValue, 0)
	case *commonpb.AnyValue_StringValue:
		f, err := strconv.ParseFloat(v.StringValue, 64)
		return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return 0, false
}

// nanos reads a time in nanoseconds since 1970; 0, and what is past the year 2262, is unknown.
func nanos(n uint64) time.Time {
	if n == 0 || n > math.MaxInt64 {
		return time.Time{}
	}
	return time.Unix(0, int64(n)).UTC()
}

// hexID reads a trace or span id of size bytes as lower-case hex, "" when it is missing, all zero or malformed. OTLP's
// JSON writes ids in hex where protobuf's JSON would write base64; the decoder has then read the hex digits as base64,
// which encoding again undoes. Ids that really were base64 have the right size already.
func hexID(id []byte, size int) string {
	var zero [16]byte
	switch len(id) {
	case size:
	case size * 3 / 2: // size*2 hex digits read as base64
		digits := make([]byte, 0, size*2)
		digits = base64.StdEncoding.AppendEncode(digits, id)
		if n, err := hex.Decode(digits, digits); err != nil || n != size {
			return ""
		}
		id = digits[:size]
	default:
		return ""
	}
	if string(id) == string(zero[:size]) {
		return ""
	}
	return hex.EncodeToString(id)
}

const (
	traceIDSize = 16
	spanIDSize  = 8
)

// maxID is the longest room or job id that is taken as one, in bytes.
const maxID = 512

// level is what one level of the data (a record, its scope, its resource) says about where it belongs.
type level struct {
	room, job, roomName, agentName, service string
}

// levelOf reads a level. The bare key "room" names the room only on scopes and resources; on a record it may be
// anything the developer logged.
func levelOf(kvs []*commonpb.KeyValue, isRecord bool) level {
	var l level
	var roomSID, jobID string // newer spellings, which must not hide the older ones
	for _, kv := range kvs {
		key := kv.GetKey()
		if len(key) < 4 || len(key) > 16 { // none of the keys below
			continue
		}
		switch key {
		case "room_id":
			l.room = shortText(kv)
		case "job_id":
			l.job = shortText(kv)
		case "lk.room_sid":
			roomSID = shortText(kv)
		case "lk.job_id":
			jobID = shortText(kv)
		case "lk.pii.room_name", "lk.room_name":
			l.roomName = shortText(kv)
		case "room":
			if !isRecord {
				l.roomName = shortText(kv)
			}
		case "lk.agent_name":
			l.agentName = shortText(kv)
		case "service.name":
			l.service = shortText(kv)
		}
	}
	if l.room == "" {
		l.room = roomSID
	}
	if l.job == "" {
		l.job = jobID
	}
	return l
}

func shortText(kv *commonpb.KeyValue) string {
	s := kv.GetValue().GetStringValue()
	if len(s) > maxID {
		return ""
	}
	return strings.TrimSpace(text(s))
}

// under fills what l does not say from the level above it, unless that speaks of another room or job.
func (l level) under(above level) level {
	if (l.room != "" && above.room != "" && l.room != above.room) || (l.job != "" && above.job != "" && l.job != above.job) {
		if l.service == "" {
			l.service = above.service
		}
		return l
	}
	for _, f := range []struct{ mine, theirs *string }{
		{&l.room, &above.room}, {&l.job, &above.job}, {&l.roomName, &above.roomName},
		{&l.agentName, &above.agentName}, {&l.service, &above.service},
	} {
		if *f.mine == "" {
			*f.mine = *f.theirs
		}
	}
	return l
}

// origin makes the level the origin of a group, with the trace or the service in place of a missing session.
func (l level) origin(traceID string) Origin {
	o := Origin{Key: session.Key{Room: l.room, Job: l.job}, Service: l.service, RoomName: l.roomName, AgentName: l.agentName}
	if o.Key == (session.Key{}) {
		o.TraceID = traceID
	}
	return o
}

// groupKey says which records go together.
type groupKey struct {
	key              session.Key
	traceID, service string
}

// groups collects the groups of a batch in order of first appearance.
type groups[G any] struct {
	list []*G
	at   map[groupKey]*G
	last groupKey // records of one session usually follow each other
	cur  *G
}

func (g *groups[G]) get(k groupKey, fresh func() *G) *G {
	if g.cur != nil && g.last == k {
		return g.cur
	}
	if g.at == nil {
		g.at = map[groupKey]*G{}
	}
	cur := g.at[k]
	if cur == nil {
		cur = fresh()
		g.at[k] = cur
		g.list = append(g.list, cur)
	}
	g.last, g.cur = k, cur
	return cur
}

func (g *groups[G]) values() []G {
	out := make([]G, len(g.list))
	for i, p := range g.list {
		out[i] = *p
	}
	return out
}

// name takes what another record of the group says. Records of one session agree; if they do not, the choice must not
// depend on their order, and is the same one that session.LogSignals makes between batches.
func (o *Origin) name(from Origin) {
	o.RoomName = max(o.RoomName, from.RoomName)
	o.AgentName = max(o.AgentName, from.AgentName)
	o.Service = max(o.Service, from.Service)
}

package otlp

import (
	"bytes"
	"reflect"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"sidetone/internal/errs"
)

const (
	// maxDecoded bounds the memory of one decoded batch. Two bytes on the wire can stand for a record of 200 bytes in
	// memory, so a cap on the body alone would let 20 MB become 2 GB. 64 MB are some 400,000 attributes or records;
	// the SDKs send 512 records at a time, a Collector 8192.
	maxDecoded = 64 << 20
	// maxNesting bounds the recursion of the decoders. The protobuf module's own limit is 10,000.
	maxNesting = 8000
	// jsonObject is what one JSON object costs once decoded, a little more than the two most common ones.
	jsonObject = 128
)

var (
	errTooMany   = errs.New(errs.TooLarge, "the batch holds more records and attributes than are decoded at once; send smaller batches")
	errTooNested = errs.New(errs.Invalid, "the body nests deeper than %d levels", maxNesting)
)

// shape is what has to be known of a protobuf message to walk its wire form: which fields are messages, which are text,
// and how large the decoded struct is.
type shape struct {
	size   int          // bytes, without what it refers to
	fields []shapeField // by field number
}

type shapeField struct {
	child  *shape
	text   bool
	each   int // bytes per occurrence of a repeated field
	packed int // bytes per wire byte of a packed field
}

var (
	logsShape    = shapeOf(new(logspb.LogsData))
	tracesShape  = shapeOf(new(tracepb.TracesData))
	metricsShape = shapeOf(new(metricspb.MetricsData))
)

func shapeOf(m proto.Message) *shape {
	return buildShape(m.ProtoReflect().Descriptor(), map[protoreflect.FullName]*shape{})
}

func buildShape(md protoreflect.MessageDescriptor, known map[protoreflect.FullName]*shape) *shape {
	if s := known[md.FullName()]; s != nil {
		return s
	}
	s := &shape{}
	known[md.FullName()] = s
	mt, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
	if err != nil {
		panic(err) // the generated packages register all their types
	}
	const pointerAndOneof = 8 + 16
	s.size = int(reflect.TypeOf(mt.Zero().Interface()).Elem().Size()) + pointerAndOneof
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		for len(s.fields) <= int(fd.Number()) {
			s.fields = append(s.fields, shapeField{})
		}
		f := &s.fields[fd.Number()]
		f.text = fd.Kind() == protoreflect.StringKind
		switch {
		case fd.Kind() == protoreflect.MessageKind:
			f.child = buildShape(fd.Message(), known)
		case fd.IsPacked():
			f.packed = 8
		case fd.IsList():
			f.each = 24
		}
	}
	return s
}

// check walks the wire form of a message before it is decoded: it charges what decoding will cost to budget, bounds the
// nesting, and replaces invalid UTF-8 in text by '?', because the decoder would refuse the whole batch for one byte.
func (s *shape) check(b []byte, budget *int, depth int) error {
	if depth > maxNesting {
		return errTooNested
	}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if typ != protowire.BytesType || int(num) >= len(s.fields) {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return protowire.ParseError(n)
			}
			if int(num) < len(s.fields) {
				*budget -= s.fields[num].packed // a repeated number, written one by one
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		f := &s.fields[num]
		*budget -= f.each + f.packed*len(v)
		if f.child != nil {
			*budget -= f.child.size
			if *budget >= 0 {
				if err := f.child.check(v, budget, depth+1); err != nil {
					return err
				}
			}
		} else if f.text && !utf8.Valid(v) {
			repairUTF8(v)
		}
		if *budget < 0 {
			return errTooMany
		}
	}
	return nil
}

// repairUTF8 replaces each invalid byte in place.
func repairUTF8(b []byte) {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			b[i] = '?'
		}
		i += n
	}
}

func unmarshalProtobuf(body []byte, s *shape, into proto.Message) error {
	budget := maxDecoded
	err := s.check(body, &budget, 0)
	if err == nil {
		err = proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, into)
	}
	return bodyError(err, "protobuf")
}

func unmarshalJSON(body []byte, into proto.Message) error {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	err := checkJSON(body)
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, into)
	}
	return bodyError(err, "JSON")
}

// checkJSON does for JSON what shape.check does for protobuf. The text it repairs is the escape of half a surrogate
// pair, which JavaScript writes when a string was cut inside an emoji, and which the decoder refuses.
func checkJSON(b []byte) error {
	budget, depth := maxDecoded, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if b[i] == '{' {
				budget -= jsonObject
			}
			if depth++; depth > maxNesting {
				return errTooNested
			}
		case '}', ']':
			depth--
		case ',':
			budget -= 8 // an element of a list of numbers or strings
		case '"':
			i = checkString(b, i+1)
		}
		if budget < 0 {
			return errTooMany
		}
	}
	return nil
}

// checkString walks a JSON string from its first byte and returns the index of its closing quote.
func checkString(b []byte, i int) int {
	for ; i < len(b) && b[i] != '"'; i++ {
		if b[i] != '\\' {
			continue
		}
		i++ // to the escaped character
		if i+4 >= len(b) || b[i] != 'u' || !isHex(b[i+1], 'd') {
			continue
		}
		low := i + 6 // the character after the u of a following escape
		switch {
		case isHex(b[i+2], '8', '9', 'a', 'b') && low+4 < len(b) && b[low-1] == '\\' && b[low] == 'u' &&
			isHex(b[low+1], 'd') && isHex(b[low+2], 'c', 'd', 'e', 'f'):
			i = low + 4
		case isHex(b[i+2], '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'):
			copy(b[i+1:], "fffd")
			i += 4
		}
	}
	return i
}

// isHex reports whether c is one of the lower-case hex digits, in either case.
func isHex(c byte, digits ...byte) bool {
	return bytes.IndexByte(digits, c|0x20) >= 0
}

// bodyError makes a decoder's error ours.
func bodyError(err error, encoding string) error {
	if err == nil || errs.KindOf(err) != errs.Internal {
		return err
	}
	// The module varies the white space of its messages so that nobody depends on them.
	detail := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "proto:")), " ")
	return errs.Wrap(errs.Invalid, err, "the body is not OTLP %s: %s", encoding, clip(detail))
}

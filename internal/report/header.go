package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"sidetone/internal/errs"
)

// Names of the parts of an upload, as errors call them.
const (
	partHeader = "header"
	partChat   = "chat_history"
	partAudio  = "audio"
)

// maxID bounds every identifier in bytes: they are indexed, and PostgreSQL cannot index long values.
const maxID = 512

// Header is what the header part says, of either kind.
type Header struct {
	SessionID string // JSON only
	RoomID    string
	JobID     string
	RoomName  string

	Identity // room_tags included

	CallStart  time.Time // start_time of a JSON header
	AudioStart time.Time // start_time of either kind: t=0 of the recording
	EndedAt    time.Time // JSON only
	Simulated  bool
	Redacted   bool
}

// Identity says whose call it was. Several places of a report may say it; see Parse for the order.
type Identity struct {
	AccountID string
	AgentID   string
	AgentName string
	Transport string
}

// orElse fills what is still empty.
func (id *Identity) orElse(o Identity) {
	fill := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	fill(&id.AccountID, o.AccountID)
	fill(&id.AgentID, o.AgentID)
	fill(&id.AgentName, o.AgentName)
	fill(&id.Transport, o.Transport)
}

// set takes the field that key names, in either key style; it reports whether key names one.
func (id *Identity) set(key, value string) bool {
	value = strings.TrimSpace(value)
	switch key {
	case "account_id", "accountId":
		id.AccountID = value
	case "agent_id", "agentId":
		id.AgentID = value
	case "agent_name", "agentName":
		id.AgentName = value
	case "transport":
		id.Transport = value
	default:
		return false
	}
	return true
}

// ParseHeader reads a header part: protobuf when proto is set, else JSON. Errors are Invalid or InvalidJSON and name
// the part. It does not ask for an identity; Parse does.
func ParseHeader(data []byte, proto bool) (Header, error) {
	var h Header
	var tags Identity
	var err error
	if proto {
		if err = parseHeaderProto(data, &h, &tags); err != nil {
			return Header{}, invalidPart(errs.Invalid, partHeader, "not a valid livekit.MetricsRecordingHeader: %v", err)
		}
	} else if err = parseHeaderJSON(data, &h, &tags); err != nil {
		return Header{}, err
	}
	h.Identity.orElse(tags)
	return h, nil
}

// invalidPart makes an error about one part of the upload.
func invalidPart(kind errs.Kind, part, format string, args ...any) *errs.Error {
	e := errs.InvalidField(part, format, args...)
	e.Kind = kind
	return e
}

func parseHeaderJSON(data []byte, h *Header, tags *Identity) error {
	s := scanner{b: clean(data)}
	if len(bytes.TrimSpace(s.b)) == 0 {
		return invalidPart(errs.InvalidJSON, partHeader, "the part is empty, expected a JSON object")
	}
	var wrongType string
	id := func(name string) string {
		if c := s.peek(); c != '"' && c != 'n' && wrongType == "" {
			wrongType = name
		}
		return strings.TrimSpace(s.str())
	}
	isObject := s.enter('{')
	if isObject {
		for s.more('}') {
			switch key := string(s.key()); key {
			case "session_id", "sessionId":
				h.SessionID = id(key)
			case "room_id", "roomId":
				h.RoomID = id(key)
			case "job_id", "jobId":
				h.JobID = id(key)
			case "room_name", "roomName", "room":
				h.RoomName = clip(s.str(), maxID)
			case "start_time", "startTime":
				h.CallStart = s.time()
				h.AudioStart = h.CallStart
			case "ended_at", "endedAt":
				h.EndedAt = s.time()
			case "simulated":
				h.Simulated = s.boolean()
			case "redaction_enabled", "redactionEnabled":
				h.Redacted = s.boolean()
			case "room_tags", "roomTags":
				s.identity(tags)
			case "account_id", "accountId", "agent_id", "agentId", "agent_name", "agentName", "transport":
				h.Identity.set(key, s.text())
			default:
				s.skip()
			}
		}
	} else {
		s.skip()
	}
	switch s.end(); {
	case s.err != nil:
		return invalidPart(errs.InvalidJSON, partHeader, "not valid JSON: %v", s.err)
	case !isObject:
		return invalidPart(errs.Invalid, partHeader, "must be a JSON object")
	case wrongType != "":
		return errs.InvalidField(partHeader+"."+wrongType, "must be a string")
	}
	return nil
}

// identity reads an object of labels and takes those that say whose call it was.
func (s *scanner) identity(id *Identity) {
	if !s.enter('{') {
		s.skip()
		return
	}
	for s.more('}') {
		id.set(string(s.key()), s.text())
	}
}

// The fields of livekit.MetricsRecordingHeader that matter here, by number (livekit-wire.md 4.1). The others are
// skipped: 2 and 3 carry nothing, 7 is never sent.
const (
	fieldRoomID    = 1
	fieldStartTime = 4
	fieldRoomTags  = 5
	fieldRoomName  = 6
	fieldJobID     = 8
	fieldSimulated = 9
	fieldRedaction = 10
)

func parseHeaderProto(data []byte, h *Header, tags *Identity) error {
	return fields(data, func(num protowire.Number, val []byte, n uint64) (err error) {
		switch {
		case val == nil && num == fieldSimulated:
			h.Simulated = n != 0
		case val == nil && num == fieldRedaction:
			h.Redacted = n != 0
		case val == nil:
		case num == fieldRoomID:
			h.RoomID, err = protoText("room_id", val)
		case num == fieldRoomName:
			h.RoomName, err = protoText("room_name", val)
			h.RoomName = clip(h.RoomName, maxID)
		case num == fieldJobID:
			h.JobID, err = protoText("job_id", val)
		case num == fieldStartTime:
			h.AudioStart, err = protoTime(val)
		case num == fieldRoomTags:
			err = protoTag(val, tags)
		}
		return err
	})
}

// fields calls f for each field of a message that is a varint (val nil) or has bytes (val not nil). Fields of other
// wire types are checked and skipped, as are fields whose wire type f does not expect: that is what protobuf asks.
func fields(data []byte, f func(num protowire.Number, val []byte, n uint64) error) error {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return wireError(n)
		}
		data = data[n:]
		var err error
		switch typ {
		case protowire.VarintType:
			var v uint64
			if v, n = protowire.ConsumeVarint(data); n >= 0 {
				err = f(num, nil, v)
			}
		case protowire.BytesType:
			var v []byte
			if v, n = protowire.ConsumeBytes(data); n >= 0 {
				err = f(num, v[:len(v):len(v)], 0)
			}
		default:
			n = protowire.ConsumeFieldValue(num, typ, data)
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w", num, wireError(n))
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// wireError says what a negative length of protowire means; its own texts differ from build to build on purpose.
func wireError(n int) error {
	if protowire.ParseError(n) == io.ErrUnexpectedEOF {
		return errors.New("it ends early")
	}
	return errors.New("it is malformed")
}

func protoText(name string, val []byte) (string, error) {
	if !utf8.Valid(val) {
		return "", fmt.Errorf("%s is not UTF-8", name)
	}
	return strings.TrimSpace(strings.ReplaceAll(string(val), "\x00", "")), nil
}

// protoTime reads a google.protobuf.Timestamp. The epoch itself means "no audio" and gives the zero time, as does
// whatever lies outside the range that the message allows.
func protoTime(val []byte) (time.Time, error) {
	var sec, nanos int64
	err := fields(val, func(num protowire.Number, val []byte, n uint64) error {
		switch {
		case val == nil && num == 1:
			sec = int64(n)
		case val == nil && num == 2:
			nanos = int64(n)
		}
		return nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("start_time: %w", err)
	}
	const year10000 = 253402300800
	if sec <= 0 && !(sec == 0 && nanos > 0) || sec >= year10000 || nanos < 0 || nanos > math.MaxInt32 {
		return time.Time{}, nil
	}
	return time.Unix(sec, nanos).UTC().Round(time.Microsecond), nil
}

// protoTag reads one entry of the map room_tags.
func protoTag(val []byte, tags *Identity) error {
	var key, value string
	err := fields(val, func(num protowire.Number, val []byte, _ uint64) (err error) {
		switch {
		case val != nil && num == 1:
			key, err = protoText("a key of room_tags", val)
		case val != nil && num == 2:
			value, err = protoText("a value of room_tags", val)
		}
		return err
	})
	if err != nil {
		return err
	}
	tags.set(key, value)
	return nil
}

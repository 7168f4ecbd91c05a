package otlp

import (
	"encoding/json"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Kind is one of the three signals.
type Kind int

// The signals of OTLP.
const (
	KindLogs Kind = iota
	KindTraces
	KindMetrics
)

// rejectedKeys name the counter of a partial success in JSON. In protobuf it is field 1 in all three.
var rejectedKeys = [...]string{KindLogs: "rejectedLogRecords", KindTraces: "rejectedSpans", KindMetrics: "rejectedDataPoints"}

// Response is the body of a successful reply, an Export*ServiceResponse, and its media type. Without anything rejected
// it is empty; otherwise it carries a partial success with the number of records that were not kept and why, which
// exporters log and do not retry.
func Response(kind Kind, enc Encoding, rejected int, why string) (contentType string, body []byte) {
	if enc == JSON {
		if rejected <= 0 {
			return enc.ContentType(), []byte("{}")
		}
		body = append(body, `{"partialSuccess":{"`...)
		body = append(body, rejectedKeys[kind]...)
		body = append(body, `":"`...) // 64-bit numbers are strings in protobuf's JSON
		body = strconv.AppendInt(body, int64(rejected), 10)
		body = append(body, `","errorMessage":`...)
		body = appendString(body, why)
		return enc.ContentType(), append(body, "}}"...)
	}
	if rejected <= 0 {
		return enc.ContentType(), []byte{}
	}
	var partial []byte
	partial = protowire.AppendTag(partial, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, uint64(rejected))
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, why)
	body = protowire.AppendTag(body, 1, protowire.BytesType)
	return enc.ContentType(), protowire.AppendBytes(body, partial)
}

// Codes of google.rpc.Status that this program sends.
const (
	CodeInvalidArgument   int32 = 3
	CodePermissionDenied  int32 = 7
	CodeResourceExhausted int32 = 8
	CodeInternal          int32 = 13
	CodeUnavailable       int32 = 14
	CodeUnauthenticated   int32 = 16
)

// ErrorBody is a google.rpc.Status and its media type. A positive retry adds a RetryInfo, on which (and on nothing
// else) the LiveKit SDKs send a session report again after that time.
func ErrorBody(enc Encoding, code int32, msg string, retry time.Duration) (contentType string, body []byte) {
	if enc == JSON {
		return enc.ContentType(), jsonStatus(code, msg, retry)
	}
	st := &status.Status{Code: code, Message: msg}
	if retry > 0 {
		info, err := anypb.New(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
		if err == nil { // marshalling a duration cannot fail
			st.Details = append(st.Details, info)
		}
	}
	body, err := proto.Marshal(st)
	if err != nil { // only for text that is not UTF-8
		body, _ = proto.Marshal(&status.Status{Code: code})
	}
	return enc.ContentType(), body
}

// jsonStatus writes the proto-JSON form. The protobuf module's own output varies in white space on purpose.
func jsonStatus(code int32, msg string, retry time.Duration) []byte {
	type retryInfo struct {
		Type  string `json:"@type"`
		Delay string `json:"retryDelay"`
	}
	st := struct {
		Code    int32       `json:"code"`
		Message string      `json:"message"`
		Details []retryInfo `json:"details,omitempty"`
	}{Code: code, Message: msg}
	if retry > 0 {
		st.Details = []retryInfo{{"type.googleapis.com/google.rpc.RetryInfo", strconv.FormatFloat(retry.Seconds(), 'f', -1, 64) + "s"}}
	}
	body, _ := json.Marshal(st) // strings and numbers only
	return body
}

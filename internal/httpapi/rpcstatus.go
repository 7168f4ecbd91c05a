package httpapi

import (
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// retryDelay is how long a LiveKit SDK is told to wait before it sends a report again. It tries four times in all, so
// this must outlast a short restart of the database without keeping a job process alive for long.
const retryDelay = 5 * time.Second

// writeRetryStatus answers 503 with the binary google.rpc.Status that LiveKit SDKs retry on; on anything else they
// drop the report for ever (livekit-wire.md 4.6).
func writeRetryStatus(w http.ResponseWriter, message string) {
	st := &status.Status{Code: int32(code.Code_UNAVAILABLE), Message: message}
	if detail, err := anypb.New(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryDelay)}); err == nil {
		st.Details = []*anypb.Any{detail}
	}
	body, err := proto.Marshal(st)
	if err != nil {
		http.Error(w, message, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(http.StatusServiceUnavailable)
	w.Write(body)
}

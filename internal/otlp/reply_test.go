package otlp

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func TestResponse(t *testing.T) {
	for _, c := range []struct {
		kind     Kind
		enc      Encoding
		rejected int
		wantType string
		want     string
	}{
		{KindLogs, JSON, 0, "application/json", "{}"},
		{KindLogs, Protobuf, 0, "application/x-protobuf", ""},
		{KindLogs, JSON, 3, "application/json", `{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"no \"room\""}}`},
		{KindTraces, JSON, 1, "application/json", `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no \"room\""}}`},
		{KindMetrics, JSON, 1, "application/json", `{"partialSuccess":{"rejectedDataPoints":"1","errorMessage":"no \"room\""}}`},
		// Field 1 {field 1: 300, field 2: the message}, as in all three Export*ServiceResponse.
		{KindTraces, Protobuf, 300, "application/x-protobuf", "\x0a\x0e\x08\xac\x02\x12\x09no \"room\""},
	} {
		gotType, got := Response(c.kind, c.enc, c.rejected, `no "room"`)
		if gotType != c.wantType || string(got) != c.want {
			t.Errorf("%+v: %s %q", c, gotType, got)
		}
	}
}

func TestErrorBody(t *testing.T) {
	for _, retry := range []time.Duration{0, 1500 * time.Millisecond} {
		binType, bin := ErrorBody(Protobuf, CodeUnavailable, "try <later>", retry)
		textType, text := ErrorBody(JSON, CodeUnavailable, "try <later>", retry)
		if binType != "application/x-protobuf" || textType != "application/json" {
			t.Errorf("types %s %s", binType, textType)
		}
		var fromBin, fromText status.Status
		if err := proto.Unmarshal(bin, &fromBin); err != nil {
			t.Fatal(err)
		}
		if err := protojson.Unmarshal(text, &fromText); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if !proto.Equal(&fromBin, &fromText) || fromBin.Code != 14 || fromBin.Message != "try <later>" {
			t.Errorf("%v and %v", &fromBin, &fromText)
		}
		if retry == 0 {
			if len(fromBin.Details) != 0 {
				t.Errorf("details without a retry: %v", &fromBin)
			}
			continue
		}
		var info errdetails.RetryInfo
		if err := fromBin.Details[0].UnmarshalTo(&info); err != nil || info.RetryDelay.AsDuration() != retry {
			t.Errorf("%v %v", err, &info)
		}
	}
	if _, body := ErrorBody(Protobuf, CodeInternal, "\xff", 0); !bytes.Equal(body, []byte{8, 13}) {
		t.Errorf("a message that is not UTF-8: %q", body)
	}
	if _, body := ErrorBody(JSON, CodeInternal, "\xff", 0); !json.Valid(body) {
		t.Errorf("a message that is not UTF-8: %q", body)
	}
}

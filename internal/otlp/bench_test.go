package otlp

import (
	"bytes"
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
)

// appLogs is a full batch of the Python SDK: 512 application logs of one call.
func appLogs() *logspb.LogsData {
	var records []*logspb.LogRecord
	for i := range 512 {
		records = append(records, &logspb.LogRecord{
			TimeUnixNano: 1795238400000000000 + uint64(i), ObservedTimeUnixNano: 1795238400000000000, SeverityNumber: 9, SeverityText: "INFO",
			Body: str(fmt.Sprintf("tool lookup_order returned after %d ms for order 44712", i)), TraceId: bytes.Repeat([]byte{7}, 16), SpanId: bytes.Repeat([]byte{9}, 8),
			Attributes: []*commonpb.KeyValue{attr("room_id", "RM_abcdefgh"), attr("job_id", "AJ_abcdefgh"), attr("logger.name", "my.agent"), attr("lk.agent_name", "support"),
				attr("code.file.path", "/app/agent/tools.py"), attr("code.function.name", "lookup_order"), attr("code.line.number", "212")},
		})
	}
	return logsOf("my.agent", records...)
}

func BenchmarkDecodeLogs(b *testing.B) {
	data := appLogs()
	js, err := protojson.Marshal(data)
	if err != nil {
		b.Fatal(err)
	}
	bin := marshal(b, data)
	for _, c := range []struct {
		name    string
		request request
		records int
	}{
		{"protobuf", request{typeProtobuf, "", bin}, 512},
		{"protobuf gzip", request{typeProtobuf, "gzip", gzipped(b, bin)}, 512},
		{"json", request{typeJSON, "", js}, 512},
		{"python call", fixture(b, "livekit-python-logs/logs"), 23},
		{"node call", fixture(b, "livekit-node-1.9.0/01_logs"), 9},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decodeLogs(b, c.request)
			}
			b.ReportMetric(float64(c.records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkDecodeTraces(b *testing.B) {
	r := fixture(b, "livekit-node-1.9.0/04_traces")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := DecodeTraces(r.contentType, r.contentEncoding, bytes.NewReader(r.body), testLimit); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(22*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

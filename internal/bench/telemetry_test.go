package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"sidetone/internal/demo"
)

// perExport is how many records an SDK sends at a time: half of the batch processor's limit.
const perExport = 256

func attribute(key, text string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: text}}}
}

// id is n bytes that differ for each i.
func id(i, n int) []byte {
	out := make([]byte, n)
	x := uint64(i)*0x9e3779b97f4a7c15 + 0x1234567
	for k := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[k] = byte(x)
	}
	return out
}

// spanExport is the i-th export of spans: some turns of one call, with the attributes of LLM and TTS requests.
func spanExport(i int) proto.Message {
	room, start := fmt.Sprintf("RM_bench%06d", i/2), demo.BenchEpoch.Add(time.Duration(i)*time.Second)
	scope := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: "livekit-agents"}}
	names := []string{"user_turn", "eou_detection", "agent_turn", "llm_node", "llm_request", "llm_request_run", "tts_node", "tts_request"}
	for k := range perExport {
		n := i*perExport + k
		begin := start.Add(time.Duration(n%100000) * 137 * time.Microsecond)
		scope.Spans = append(scope.Spans, &tracepb.Span{TraceId: id(i/2, 16), SpanId: id(n, 8), ParentSpanId: id(n-k%8, 8), Name: names[k%len(names)],
			StartTimeUnixNano: uint64(begin.UnixNano()), EndTimeUnixNano: uint64(begin.Add(time.Duration(n%977) * time.Millisecond).UnixNano()),
			Attributes: []*commonpb.KeyValue{attribute("room_id", room), attribute("job_id", "AJ_"+room), attribute("lk.speech_id", fmt.Sprintf("speech_%x", id(n/8, 6))),
				attribute("gen_ai.request.model", "gpt-4.1-mini"), attribute("lk.pii.response.text", fmt.Sprintf("Your order %d is on its way and should arrive in %d days.", 10000+n%90000, n%9)),
				{Key: "lk.response.ttft", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: float64(n%1000)/1000 + 0.0001234}}}}})
	}
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attribute("service.name", "livekit-agents")}}, ScopeSpans: []*tracepb.ScopeSpans{scope}}}}
}

// logExport is the i-th export of application logs.
func logExport(i int) proto.Message {
	room, start := fmt.Sprintf("RM_bench%06d", i/2), demo.BenchEpoch.Add(time.Duration(i)*time.Second)
	scope := &logspb.ScopeLogs{Scope: &commonpb.InstrumentationScope{Name: "livekit.agents"}}
	for k := range perExport {
		n := i*perExport + k
		at := start.Add(time.Duration(n%100000) * 137 * time.Microsecond)
		scope.LogRecords = append(scope.LogRecords, &logspb.LogRecord{TimeUnixNano: uint64(at.UnixNano()), ObservedTimeUnixNano: uint64(at.UnixNano() + 1000), SeverityNumber: 9, SeverityText: "INFO",
			TraceId: id(i/2, 16), SpanId: id(n, 8), Body: attribute("", fmt.Sprintf("tool lookup_order done in %d ms for order %d", n%900, 10000+n%90000)).Value,
			Attributes: []*commonpb.KeyValue{attribute("room_id", room), attribute("job_id", "AJ_"+room), attribute("code.function.name", "lookup_order"), attribute("code.file.path", "/app/tools.py")}})
	}
	return &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{scope}}}}
}

// BenchmarkTelemetry posts exports of 256 spans or log records from 16 clients, and writes the same bytes raw.
func BenchmarkTelemetry(b *testing.B) {
	for _, signal := range []struct {
		name, path, unit string
		export           func(i int) proto.Message
	}{{"spans", "/v1/traces", "span", spanExport}, {"logs", "/v1/logs", "record", logExport}} {
		for _, engine := range engines {
			b.Run(signal.name+"/"+engine, func(b *testing.B) {
				bodies := exports(b, signal.export, b.N)
				w := newDatabase(b, engine)
				h := w.handler(b)
				empty := w.size(b)
				var next atomic.Int64
				var wg sync.WaitGroup
				b.ResetTimer()
				for range 16 {
					wg.Go(func() {
						for i := int(next.Add(1)) - 1; i < b.N; i = int(next.Add(1)) - 1 {
							r := httptest.NewRequest(http.MethodPost, signal.path, bytes.NewReader(bodies[i]))
							r.Header.Set("Content-Type", "application/x-protobuf")
							rec := httptest.NewRecorder()
							if h.ServeHTTP(rec, r); rec.Code != http.StatusOK {
								b.Errorf("%d %s", rec.Code, rec.Body)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				n := float64(b.N) * perExport
				b.ReportMetric(n/b.Elapsed().Seconds(), signal.unit+"s/s")
				b.ReportMetric(float64(w.size(b)-empty)/n, "stored-B/"+signal.unit)
				b.ReportMetric(float64(len(bodies[0]))/perExport, "sent-B/"+signal.unit)
			})
			b.Run(signal.name+"-raw/"+engine, func(b *testing.B) {
				bodies := exports(b, signal.export, b.N)
				rawInsert(b, newDatabase(b, engine), "BYTEA", bodies, "exports/s")
				b.ReportMetric(float64(b.N)*perExport/b.Elapsed().Seconds(), signal.unit+"s/s")
			})
		}
	}
}

// exports are n different exports, made beforehand: the generator shares the machine with the server.
func exports(b *testing.B, export func(int) proto.Message, n int) [][]byte {
	b.Helper()
	out := make([][]byte, n)
	for i := range out {
		body, err := proto.Marshal(export(i))
		if err != nil {
			b.Fatal(err)
		}
		out[i] = body
	}
	return out
}

package otlp

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"sidetone/internal/session"
)

func ptr[T any](v T) *T { return &v }

func TestMetricsOfEveryKind(t *testing.T) {
	const delta = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	room := []*commonpb.KeyValue{attr("room_id", "RM"), attr("job_id", "AJ"), attr("model_name", "m")}
	data := &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attr("service.name", "agents")}},
		ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: &commonpb.InstrumentationScope{Name: "livekit-agents"}, Metrics: []*metricspb.Metric{
			{Name: "lk.agents.turn.e2e_latency", Unit: "s", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{AggregationTemporality: delta,
				DataPoints: []*metricspb.HistogramDataPoint{{Attributes: room, StartTimeUnixNano: 1e9, TimeUnixNano: 2e9, Count: 3, Sum: ptr(3.5), Min: ptr(0.5),
					ExplicitBounds: []float64{0, 5}, BucketCounts: []uint64{0, 3, 0}}}}}},
			{Name: "tokens", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{AggregationTemporality: cumulative, IsMonotonic: true, DataPoints: []*metricspb.NumberDataPoint{
				{Attributes: room, TimeUnixNano: 2e9, Value: &metricspb.NumberDataPoint_AsInt{AsInt: 41}},
				{Attributes: room, TimeUnixNano: 3e9, Flags: noValue}}}}},
			{Name: "load", Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: []*metricspb.NumberDataPoint{
				{TimeUnixNano: 2e9, Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: 0.25}}}}}},
			{Name: "exp", Data: &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: &metricspb.ExponentialHistogram{AggregationTemporality: delta,
				DataPoints: []*metricspb.ExponentialHistogramDataPoint{{Attributes: room, TimeUnixNano: 2e9, Count: 2, Scale: -1, ZeroCount: 1,
					Positive: &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: -3, BucketCounts: []uint64{1}}}}}}},
			{Name: "summary", Data: &metricspb.Metric_Summary{Summary: &metricspb.Summary{DataPoints: []*metricspb.SummaryDataPoint{{Attributes: room, TimeUnixNano: 2e9, Count: 2, Sum: 4,
				QuantileValues: []*metricspb.SummaryDataPoint_ValueAtQuantile{{Quantile: 0.5, Value: 2}}}}}}},
			{Name: "no data"},
		}}}},
		{ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: []*metricspb.Metric{{Name: "homeless", Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{
			DataPoints: []*metricspb.NumberDataPoint{{TimeUnixNano: 1}}}}}}}}},
	}}
	m, _, err := DecodeMetrics(typeProtobuf, "", bytes.NewReader(marshal(t, data)), testLimit)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Groups) != 2 || m.Dropped != 1 {
		t.Fatalf("%d groups, %d dropped", len(m.Groups), m.Dropped)
	}
	call, service := m.Groups[0], m.Groups[1]
	if call.Key != (session.Key{Room: "RM", Job: "AJ"}) || len(call.Points) != 4 {
		t.Fatalf("%+v", call)
	}
	if service.Service != "agents" || service.Key != (session.Key{}) || len(service.Points) != 1 || string(service.Points[0].Value) != "0.25" || service.Points[0].Kind != "gauge" {
		t.Errorf("%+v", service)
	}
	keys := map[[16]byte]bool{}
	for i, want := range []struct{ name, kind, temporality, value string }{
		{"lk.agents.turn.e2e_latency", "histogram", "delta", `{"count":3,"sum":3.5,"min":0.5,"bounds":[0,5],"bucket_counts":[0,3,0]}`},
		{"tokens", "sum", "cumulative", "41"},
		{"exp", "exponential_histogram", "delta", `{"count":2,"scale":-1,"zero_count":1,"positive":{"offset":-3,"bucket_counts":[1]},"negative":{"offset":0,"bucket_counts":[]}}`},
		{"summary", "summary", "", `{"count":2,"sum":4,"quantiles":[{"quantile":0.5,"value":2}]}`},
	} {
		p := call.Points[i]
		keys[p.Key] = true
		if p.Name != want.name || p.Kind != want.kind || p.Temporality != want.temporality || string(p.Value) != want.value || p.Monotonic != (want.kind == "sum") ||
			p.Scope != "livekit-agents" || !p.Time.Equal(time.Unix(2, 0)) || !strings.Contains(string(p.Attributes), `"model_name":"m"`) {
			t.Errorf("point %d: %+v value %s", i, p, p.Value)
		}
	}
	if len(keys) != 4 {
		t.Errorf("%d distinct keys", len(keys))
	}
	if p := call.Points[0]; p.Unit != "s" || !p.Start.Equal(time.Unix(1, 0)) {
		t.Errorf("%+v", p)
	}
}

func TestMetricsOfTheResourceBelongToItsSession(t *testing.T) {
	const body = `{"resourceMetrics":[{"resource":{"attributes":[{"key":"room_id","value":{"stringValue":"RM"}},{"key":"lk.agent_name","value":{"stringValue":"A"}}]},
		"scopeMetrics":[{"metrics":[{"name":"n","sum":{"aggregationTemporality":1,"dataPoints":[{"asInt":"5","timeUnixNano":"7"},{"asDouble":1.5}]}}]}]}]}`
	m, enc, err := DecodeMetrics(typeJSON, "", strings.NewReader(body), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if g := m.Groups[0]; enc != JSON || g.Key.Room != "RM" || g.AgentName != "A" || len(g.Points) != 2 || string(g.Points[0].Value) != "5" || g.Points[0].Temporality != "delta" || string(g.Points[0].Attributes) != "{}" {
		t.Errorf("%+v", g)
	}
}

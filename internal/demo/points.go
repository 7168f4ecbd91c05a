package demo

import (
	"sort"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// latencyBounds are OpenTelemetry's default histogram bounds, which the SDKs keep although they were made for
// milliseconds and they measure seconds.
var latencyBounds = []float64{0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}

// metricsData are the measurements the Python SDK sends when a session ends: the usage as counters and the turns'
// latencies as histograms, all with delta temporality.
func (t *talk) metricsData() *metricspb.MetricsData {
	scope := &metricspb.ScopeMetrics{Scope: &commonpb.InstrumentationScope{Name: "livekit-agents"}}
	for _, u := range t.usage {
		kind, _ := u["type"].(string)
		for _, f := range [...]struct{ kind, key, name, unit string }{
			{"llm_usage", "input_tokens", "llm_input_tokens", "{token}"},
			{"llm_usage", "input_cached_tokens", "llm_input_cached_tokens", "{token}"},
			{"llm_usage", "output_tokens", "llm_output_tokens", "{token}"},
			{"tts_usage", "characters_count", "tts_characters", "{character}"},
			{"tts_usage", "audio_duration", "tts_audio_duration", "s"},
			{"stt_usage", "audio_duration", "stt_audio_duration", "s"},
		} {
			if v, ok := asFloat(u[f.key]); ok && kind == f.kind {
				scope.Metrics = append(scope.Metrics, t.counter("lk.agents.usage."+f.name, f.unit, v, u))
			}
		}
	}
	samples := map[string][]float64{}
	for _, it := range t.items {
		if m := it.Metrics; m != nil {
			for name, v := range map[string]float64{"e2e_latency": m.E2ELatency, "llm_ttft": m.LLMNodeTTFT, "tts_ttfb": m.TTSNodeTTFB,
				"transcription_delay": m.TranscriptionDelay, "end_of_turn_delay": m.EndOfTurnDelay} {
				if v != 0 {
					samples[name] = append(samples[name], v)
				}
			}
		}
	}
	for _, name := range sortedKeys(samples) {
		scope.Metrics = append(scope.Metrics, t.histogram("lk.agents.turn."+name, samples[name]))
	}
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: t.resource(), ScopeMetrics: []*metricspb.ScopeMetrics{scope}}}}
}

func (t *talk) counter(name, unit string, value float64, usage map[string]any) *metricspb.Metric {
	provider, _ := usage["provider"].(string)
	modelName, _ := usage["model"].(string)
	return &metricspb.Metric{Name: name, Unit: unit, Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{
		AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, IsMonotonic: true,
		DataPoints: []*metricspb.NumberDataPoint{{
			StartTimeUnixNano: uint64(t.start.UnixNano()), TimeUnixNano: uint64(t.end.UnixNano()),
			Attributes: []*commonpb.KeyValue{text("model_provider", provider), text("model_name", modelName)},
			Value:      &metricspb.NumberDataPoint_AsDouble{AsDouble: value},
		}}}}}
}

func (t *talk) histogram(name string, samples []float64) *metricspb.Metric {
	counts := make([]uint64, len(latencyBounds)+1)
	sum, low, high := 0.0, samples[0], samples[0]
	for _, s := range samples {
		counts[sort.SearchFloat64s(latencyBounds, s)]++
		sum, low, high = sum+s, min(low, s), max(high, s)
	}
	return &metricspb.Metric{Name: name, Unit: "s", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{
		AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA,
		DataPoints: []*metricspb.HistogramDataPoint{{
			StartTimeUnixNano: uint64(t.start.UnixNano()), TimeUnixNano: uint64(t.end.UnixNano()),
			Count: uint64(len(samples)), Sum: &sum, Min: &low, Max: &high, ExplicitBounds: latencyBounds, BucketCounts: counts,
		}}}}}
}

// asFloat reads a usage value: an int of the generator, or a float64 of decoded JSON.
func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

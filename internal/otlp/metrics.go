package otlp

import (
	"encoding/json"
	"strconv"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"sidetone/internal/session"
)

// convertMetrics groups the points of a batch by session, or by service outside of sessions.
func convertMetrics(data *metricspb.MetricsData) *Metrics {
	out := &Metrics{}
	var found groups[MetricGroup]
	var w writer
	for _, rm := range data.GetResourceMetrics() {
		resource := levelOf(rm.GetResource().GetAttributes(), false)
		for _, sm := range rm.GetScopeMetrics() {
			scope := levelOf(sm.GetScope().GetAttributes(), false).under(resource)
			for _, m := range sm.GetMetrics() {
				points(m, func(p session.MetricPoint, attrs []*commonpb.KeyValue, start, at uint64, value func([]byte) []byte) {
					o := levelOf(attrs, true).under(scope).origin("")
					k := groupKey{key: o.Key}
					if o.Key == (session.Key{}) {
						if k.service = o.Service; k.service == "" {
							out.Dropped++
							return
						}
					}
					p.Name, p.Unit, p.Scope = text(m.GetName()), text(m.GetUnit()), text(sm.GetScope().GetName())
					p.Start, p.Time = nanos(start), nanos(at)
					p.Attributes = w.object(attrs)
					w.scratch = value(w.scratch[:0])
					p.Value = append(make(json.RawMessage, 0, len(w.scratch)), w.scratch...)
					p.SetKey()
					g := found.get(k, func() *MetricGroup { return &MetricGroup{Origin: o} })
					g.name(o)
					g.Points = append(g.Points, p)
				})
			}
		}
	}
	out.Groups = found.values()
	return out
}

// noValue is the flag of a point that only says that a series ended.
const noValue = uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)

// points calls yield for every data point of a metric, with what its kind of metric says of all of them.
func points(m *metricspb.Metric, yield func(p session.MetricPoint, attrs []*commonpb.KeyValue, start, at uint64, value func([]byte) []byte)) {
	numbers := func(p session.MetricPoint, list []*metricspb.NumberDataPoint) {
		for _, d := range list {
			if d.GetFlags()&noValue == 0 {
				yield(p, d.GetAttributes(), d.GetStartTimeUnixNano(), d.GetTimeUnixNano(), func(dst []byte) []byte {
					if v, ok := d.GetValue().(*metricspb.NumberDataPoint_AsInt); ok {
						return strconv.AppendInt(dst, v.AsInt, 10)
					}
					return appendFloat(dst, d.GetAsDouble())
				})
			}
		}
	}
	switch data := m.GetData().(type) {
	case *metricspb.Metric_Gauge:
		numbers(session.MetricPoint{Kind: session.MetricGauge}, data.Gauge.GetDataPoints())
	case *metricspb.Metric_Sum:
		numbers(session.MetricPoint{Kind: session.MetricSum, Temporality: temporality(data.Sum.GetAggregationTemporality()),
			Monotonic: data.Sum.GetIsMonotonic()}, data.Sum.GetDataPoints())
	case *metricspb.Metric_Histogram:
		p := session.MetricPoint{Kind: session.MetricHistogram, Temporality: temporality(data.Histogram.GetAggregationTemporality())}
		for _, d := range data.Histogram.GetDataPoints() {
			if d.GetFlags()&noValue == 0 {
				yield(p, d.GetAttributes(), d.GetStartTimeUnixNano(), d.GetTimeUnixNano(), func(dst []byte) []byte {
					dst = appendTotals(dst, d.GetCount(), d.Sum, d.Min, d.Max)
					dst = appendList(append(dst, `,"bounds":`...), d.GetExplicitBounds(), appendFloat)
					dst = appendList(append(dst, `,"bucket_counts":`...), d.GetBucketCounts(), appendUint)
					return append(dst, '}')
				})
			}
		}
	case *metricspb.Metric_ExponentialHistogram:
		p := session.MetricPoint{Kind: session.MetricExpHistogram, Temporality: temporality(data.ExponentialHistogram.GetAggregationTemporality())}
		for _, d := range data.ExponentialHistogram.GetDataPoints() {
			if d.GetFlags()&noValue == 0 {
				yield(p, d.GetAttributes(), d.GetStartTimeUnixNano(), d.GetTimeUnixNano(), func(dst []byte) []byte {
					dst = appendTotals(dst, d.GetCount(), d.Sum, d.Min, d.Max)
					dst = strconv.AppendInt(append(dst, `,"scale":`...), int64(d.GetScale()), 10)
					dst = appendUint(append(dst, `,"zero_count":`...), d.GetZeroCount())
					dst = appendBuckets(append(dst, `,"positive":`...), d.GetPositive())
					dst = appendBuckets(append(dst, `,"negative":`...), d.GetNegative())
					return append(dst, '}')
				})
			}
		}
	case *metricspb.Metric_Summary:
		for _, d := range data.Summary.GetDataPoints() {
			if d.GetFlags()&noValue == 0 {
				yield(session.MetricPoint{Kind: session.MetricSummary}, d.GetAttributes(), d.GetStartTimeUnixNano(), d.GetTimeUnixNano(),
					func(dst []byte) []byte {
						sum := d.GetSum()
						dst = appendTotals(dst, d.GetCount(), &sum, nil, nil)
						dst = appendList(append(dst, `,"quantiles":`...), d.GetQuantileValues(), appendQuantile)
						return append(dst, '}')
					})
			}
		}
	}
}

func temporality(t metricspb.AggregationTemporality) string {
	switch t {
	case metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA:
		return "delta"
	case metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE:
		return "cumulative"
	}
	return ""
}

// appendTotals opens an object with what every distribution has; totals that were not measured are left out.
func appendTotals(dst []byte, count uint64, sum, least, most *float64) []byte {
	dst = appendUint(append(dst, `{"count":`...), count)
	for _, f := range []struct {
		key string
		v   *float64
	}{{`,"sum":`, sum}, {`,"min":`, least}, {`,"max":`, most}} {
		if f.v != nil {
			dst = appendFloat(append(dst, f.key...), *f.v)
		}
	}
	return dst
}

func appendList[T any](dst []byte, list []T, one func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(dst, v)
	}
	return append(dst, ']')
}

func appendUint(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

func appendBuckets(dst []byte, b *metricspb.ExponentialHistogramDataPoint_Buckets) []byte {
	dst = strconv.AppendInt(append(dst, `{"offset":`...), int64(b.GetOffset()), 10)
	dst = appendList(append(dst, `,"bucket_counts":`...), b.GetBucketCounts(), appendUint)
	return append(dst, '}')
}

func appendQuantile(dst []byte, q *metricspb.SummaryDataPoint_ValueAtQuantile) []byte {
	dst = appendFloat(append(dst, `{"quantile":`...), q.GetQuantile())
	dst = appendFloat(append(dst, `,"value":`...), q.GetValue())
	return append(dst, '}')
}

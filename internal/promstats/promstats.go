// Package promstats is what /metrics shows. It knows names and labels; who counts what is wired in package app.
package promstats

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Stats holds the program's collectors in a registry of its own.
type Stats struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	bytesIn  *prometheus.CounterVec
	bytesOut *prometheus.CounterVec
	batches  *prometheus.HistogramVec
	dropped  prometheus.Counter
}

// Pool is the state of one database connection pool.
type Pool struct {
	Name        string
	Open, InUse int
	Waits       int64 // times a query waited for a connection
	Waited      time.Duration
}

// New registers everything. version and engine label the build.
func New(version, goVersion, engine string, pools func() []Pool) *Stats {
	labels := []string{"route", "method", "status"}
	s := &Stats{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sidetone_http_requests_total",
			Help: "Requests answered, by route pattern; ingest counts are those of the /observability and /v1 routes."}, labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "sidetone_http_request_duration_seconds",
			Help: "Time from the first byte of a request to the end of its reply.", Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12)}, labels),
		bytesIn: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sidetone_http_request_bytes_total",
			Help: "Bytes of request bodies read."}, labels),
		bytesOut: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sidetone_http_response_bytes_total",
			Help: "Bytes of replies written."}, labels),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "sidetone_group_commit_size",
			Help: "Items written by one transaction of the group commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 8)}, []string{"kind"}),
	}
	s.dropped = prometheus.NewCounter(prometheus.CounterOpts{Name: "sidetone_telemetry_dropped_total",
		Help: "Spans, log records and metric points that named no session, trace or service."})
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sidetone_build_info", Help: "Always 1; the labels tell what runs.",
		ConstLabels: prometheus.Labels{"version": version, "go": goVersion, "engine": engine}})
	build.Set(1)
	s.registry.MustRegister(s.requests, s.duration, s.bytesIn, s.bytesOut, s.batches, s.dropped, build, poolCollector{pools},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Register adds collectors of another part of the program.
func (s *Stats) Register(cs ...prometheus.Collector) { s.registry.MustRegister(cs...) }

// Handler serves the page.
func (s *Stats) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
}

// Request counts one answered request.
func (s *Stats) Request(route, method string, status int, in, out int64, took time.Duration) {
	l := []string{route, method, strconv.Itoa(status)}
	s.requests.WithLabelValues(l...).Inc()
	s.duration.WithLabelValues(l...).Observe(took.Seconds())
	s.bytesIn.WithLabelValues(l...).Add(float64(in))
	s.bytesOut.WithLabelValues(l...).Add(float64(out))
}

// Batch notes the size of one transaction of the group commit.
func (s *Stats) Batch(kind string, size int) { s.batches.WithLabelValues(kind).Observe(float64(size)) }

// DroppedTelemetry counts records that could be kept nowhere.
func (s *Stats) DroppedTelemetry(n int) { s.dropped.Add(float64(n)) }

// poolCollector reads the connection pools when the page is asked for.
type poolCollector struct{ pools func() []Pool }

var (
	poolOpen  = prometheus.NewDesc("sidetone_db_connections_open", "Open database connections.", []string{"pool"}, nil)
	poolInUse = prometheus.NewDesc("sidetone_db_connections_in_use", "Database connections in use.", []string{"pool"}, nil)
	poolWaits = prometheus.NewDesc("sidetone_db_connection_waits_total", "Times a query waited for a connection.", []string{"pool"}, nil)
	poolWait  = prometheus.NewDesc("sidetone_db_connection_wait_seconds_total", "Time queries waited for a connection.", []string{"pool"}, nil)
)

func (c poolCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- poolOpen
	ch <- poolInUse
	ch <- poolWaits
	ch <- poolWait
}

func (c poolCollector) Collect(ch chan<- prometheus.Metric) {
	for _, p := range c.pools() {
		ch <- prometheus.MustNewConstMetric(poolOpen, prometheus.GaugeValue, float64(p.Open), p.Name)
		ch <- prometheus.MustNewConstMetric(poolInUse, prometheus.GaugeValue, float64(p.InUse), p.Name)
		ch <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(p.Waits), p.Name)
		ch <- prometheus.MustNewConstMetric(poolWait, prometheus.CounterValue, p.Waited.Seconds(), p.Name)
	}
}

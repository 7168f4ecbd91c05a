package promstats

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Alerts counts what the alerting of this process does.
type Alerts struct {
	ticks      *prometheus.CounterVec
	duration   prometheus.Histogram
	overruns   prometheus.Counter
	evaluated  prometheus.Counter
	firings    prometheus.Counter
	deliveries *prometheus.CounterVec
	attempts   prometheus.Histogram
}

// Queue is the state of deliveries at a moment.
type Queue struct {
	Pending, Retrying int
	OldestDue         time.Duration // how long the oldest due delivery has been due; 0 when none is
}

// Alerts registers the alerting's metrics. queue is asked when the page is; when it fails the queue is left out.
func (s *Stats) Alerts(queue func() (Queue, error)) *Alerts {
	a := &Alerts{
		ticks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sidetone_alert_ticks_total",
			Help: "Evaluations of all alert rules by this process, by result."}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sidetone_alert_tick_duration_seconds",
			Help: "Time of one evaluation of all alert rules.", Buckets: prometheus.ExponentialBuckets(0.002, 2.5, 11)}),
		overruns: prometheus.NewCounter(prometheus.CounterOpts{Name: "sidetone_alert_tick_overruns_total",
			Help: "Ticks that were skipped because the one before took longer than the interval."}),
		evaluated: prometheus.NewCounter(prometheus.CounterOpts{Name: "sidetone_alert_rules_evaluated_total",
			Help: "Rules measured and decided."}),
		firings: prometheus.NewCounter(prometheus.CounterOpts{Name: "sidetone_alert_firings_total", Help: "Firings created by this process."}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sidetone_webhook_attempts_total",
			Help: "Delivery attempts made by this process, by result: ok, refused (an answer outside 2xx) or error (no answer)."}, []string{"result"}),
		attempts: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sidetone_webhook_attempt_duration_seconds",
			Help: "Time of one delivery attempt.", Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)}),
	}
	s.registry.MustRegister(a.ticks, a.duration, a.overruns, a.evaluated, a.firings, a.deliveries, a.attempts, queueCollector{queue})
	return a
}

// Tick notes one evaluation of all rules.
func (a *Alerts) Tick(ok bool, took time.Duration, evaluated, fired int) {
	result := "ok"
	if !ok {
		result = "error"
	}
	a.ticks.WithLabelValues(result).Inc()
	a.duration.Observe(took.Seconds())
	a.evaluated.Add(float64(evaluated))
	a.firings.Add(float64(fired))
}

// Overrun notes skipped ticks.
func (a *Alerts) Overrun(missed int) { a.overruns.Add(float64(missed)) }

// Attempt notes one delivery attempt. status is 0 when no answer came.
func (a *Alerts) Attempt(ok bool, status int, took time.Duration) {
	result := "error"
	switch {
	case ok:
		result = "ok"
	case status != 0:
		result = "refused"
	}
	a.deliveries.WithLabelValues(result).Inc()
	a.attempts.Observe(took.Seconds())
}

type queueCollector struct{ queue func() (Queue, error) }

var (
	queuePending  = prometheus.NewDesc("sidetone_webhook_queue_pending", "Firings not yet delivered and not failed.", nil, nil)
	queueRetrying = prometheus.NewDesc("sidetone_webhook_queue_retrying", "Pending firings with at least one failed attempt.", nil, nil)
	queueOldest   = prometheus.NewDesc("sidetone_webhook_oldest_due_seconds", "How long the oldest due delivery has been due; 0 when none is.", nil, nil)
)

func (c queueCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- queuePending
	ch <- queueRetrying
	ch <- queueOldest
}

func (c queueCollector) Collect(ch chan<- prometheus.Metric) {
	q, err := c.queue()
	if err != nil {
		return // the database is away; the other metrics are still worth having
	}
	ch <- prometheus.MustNewConstMetric(queuePending, prometheus.GaugeValue, float64(q.Pending))
	ch <- prometheus.MustNewConstMetric(queueRetrying, prometheus.GaugeValue, float64(q.Retrying))
	ch <- prometheus.MustNewConstMetric(queueOldest, prometheus.GaugeValue, q.OldestDue.Seconds())
}

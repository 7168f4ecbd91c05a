package promstats

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Spool is what waits for the object store.
type Spool struct {
	Count int
	Bytes int64
	Age   time.Duration // of the oldest; 0 when nothing waits
}

// Recordings adds the metrics of recordings and returns the counter of what was done: "uploaded", "failed" or "deleted".
// spool is asked with every page; it answers false when it does not know. failing tells whether the object store is away.
func (s *Stats) Recordings(spool func() (Spool, bool), failing func() bool) func(done string) {
	done := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sidetone_recordings_moved_total",
		Help: "Recordings uploaded to or deleted from the object store, and attempts that failed, by this process."}, []string{"done"})
	for _, d := range []string{"uploaded", "failed", "deleted"} {
		done.WithLabelValues(d)
	}
	away := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sidetone_object_store_failing",
		Help: "1 while the object store refuses or does not answer this process."}, func() float64 {
		if failing() {
			return 1
		}
		return 0
	})
	s.registry.MustRegister(done, away, spoolCollector{spool})
	return func(d string) { done.WithLabelValues(d).Inc() }
}

// spoolCollector asks once for all that a page shows of the spool.
type spoolCollector struct{ spool func() (Spool, bool) }

var (
	spoolCount = prometheus.NewDesc("sidetone_recordings_spool", "Recordings that wait for the object store, in the folders of all processes.", nil, nil)
	spoolBytes = prometheus.NewDesc("sidetone_recordings_spool_bytes", "Bytes of the recordings that wait.", nil, nil)
	spoolAge   = prometheus.NewDesc("sidetone_recordings_spool_age_seconds", "How long the oldest recording has waited.", nil, nil)
)

func (c spoolCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- spoolCount
	ch <- spoolBytes
	ch <- spoolAge
}

func (c spoolCollector) Collect(ch chan<- prometheus.Metric) {
	s, ok := c.spool()
	if !ok {
		return // no number is better than a wrong one
	}
	ch <- prometheus.MustNewConstMetric(spoolCount, prometheus.GaugeValue, float64(s.Count))
	ch <- prometheus.MustNewConstMetric(spoolBytes, prometheus.GaugeValue, float64(s.Bytes))
	ch <- prometheus.MustNewConstMetric(spoolAge, prometheus.GaugeValue, s.Age.Seconds())
}

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// What is exported. The only labels are limiter, the name that was given, and reason: a label for each key of a keyed
// limiter would make as many series as there are users.
var (
	availableDesc = desc("sluice_available_units", "Whole units that could be taken now. Absent where several limiters share the name.")
	waitingDesc   = desc("sluice_waiting", "Calls in line now, and reservations whose turn has not come.")
	grantedDesc   = desc("sluice_granted_total", "Calls granted.")
	unitsDesc     = desc("sluice_units_total", "Units granted. What was given back after its turn is not taken off.")
	refusedDesc   = desc("sluice_refused_total", "Calls refused, by reason; not_now is a Try that would have had to wait.", "reason")
	canceledDesc  = desc("sluice_canceled_total", "Calls that left the line because their context ended, and reservations cancelled before their turn.")
	errorsDesc    = desc("sluice_errors_total", "Calls that were neither granted nor refused: the limiter could not be asked, or the call was a mistake.")
	waitDesc      = desc("sluice_wait_seconds", "How long granted calls have waited for their turn. Zero is a call that went at once.")

	gateStartedDesc  = desc("sluice_gate_started_total", "Tasks that went on to their handler.")
	gateDeferredDesc = desc("sluice_gate_deferred_total", "Tasks handed back to the queue to come again.")
	gateWaitingDesc  = desc("sluice_gate_waiting", "Tasks that wait in a worker slot now.")
	gateWaitedDesc   = desc("sluice_gate_wait_seconds_total", "Time that started tasks have spent waiting in a worker slot.")

	redisUpDesc      = desc("sluice_redis_up", "1 while the limit's Redis can be asked, 0 during an outage.")
	redisOutagesDesc = desc("sluice_redis_outages_total", "Outages of the limit's Redis that have begun.")

	descs = []*prometheus.Desc{
		availableDesc, waitingDesc, grantedDesc, unitsDesc, refusedDesc, canceledDesc, errorsDesc, waitDesc,
		gateStartedDesc, gateDeferredDesc, gateWaitingDesc, gateWaitedDesc, redisUpDesc, redisOutagesDesc,
	}
)

func desc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"limiter"}, more...), nil)
}

func counter(to chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func gauge(to chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func collectGate(to chan<- prometheus.Metric, name string, s GateStats) {
	counter(to, gateStartedDesc, float64(s.Started), name)
	counter(to, gateDeferredDesc, float64(s.Deferred), name)
	gauge(to, gateWaitingDesc, float64(s.Waiting), name)
	counter(to, gateWaitedDesc, s.Waited.Seconds(), name)
}

func collectRedis(to chan<- prometheus.Metric, name string, h RedisHealth) {
	up := 1.0
	if h.Down {
		up = 0
	}
	gauge(to, redisUpDesc, up, name)
	counter(to, redisOutagesDesc, float64(h.Outages), name)
}

// newWaits returns the histogram of the waits that were not zero. It must never reset itself, as a native histogram
// with a NativeHistogramMinResetDuration does: the number of granted calls is made of its count. It widens its zero
// bucket and halves its resolution instead.
func newWaits() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "sluice_wait_seconds",
		// The first bucket holds the calls that went at once, so that the share of those that waited can be told.
		Buckets:                        []float64{0, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	})
}

// A waitMetric is a histogram of waits to which those of zero are added when it is written. Observing each of them
// would cost several times what counting does.
type waitMetric struct {
	waits *dto.Histogram
	zeros uint64
	name  string
}

func (m waitMetric) Desc() *prometheus.Desc { return waitDesc }

func (m waitMetric) Write(out *dto.Metric) error {
	label := "limiter"
	out.Label = []*dto.LabelPair{{Name: &label, Value: &m.name}}
	out.Histogram = m.waits
	add(&m.waits.SampleCount, m.zeros)
	add(&m.waits.ZeroCount, m.zeros)
	for _, b := range m.waits.Bucket {
		add(&b.CumulativeCount, m.zeros)
	}
	return nil
}

func add(to **uint64, n uint64) {
	if *to != nil {
		n += **to
	}
	*to = &n
}

// seconds is d as Prometheus wants it.
func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }

package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/isnil"
)

// A Collector is a prometheus.Collector of the limiters, gates and Redis limits that were named to it.
//
// The zero Collector is ready, and New makes one. A nil Collector observes nothing: its Limiter returns what it is
// given. Any number of goroutines may use one, while it is collected too. What was named to it stays for as long as it
// lives: name what lives as long, and give the limiters of one kind (one for each user, say) one name.
//
// Register it once in one registry. Names that are not UTF-8 are made so.
type Collector struct {
	mu     sync.Mutex // guards everything below
	series map[string]*series
	gates  map[string]func() GateStats
	redis  map[string]func() RedisHealth
}

// GateStats has the fields of queue.Stats, so that one converts to the other.
type GateStats struct {
	Started  uint64        // calls of a handler
	Deferred uint64        // tasks handed back
	Waiting  int           // tasks that wait in a worker slot now
	Waited   time.Duration // summed over started tasks
}

// RedisHealth has the fields of cluster.Health, so that one converts to the other. Down and Outages are exported.
type RedisHealth struct {
	Down    bool
	Since   time.Time
	Cause   error
	Trips   uint64
	Outages uint64
	Failed  uint64
	Opened  uint64
	Local   uint64
}

// New returns a Collector that knows nothing yet.
func New() *Collector { return &Collector{} }

// Limiter returns l, observed under a name: what is used through it is counted, what is used past it is not, but for
// sluice_available_units, which is l's own.
//
// It keeps the contract that l keeps: it is a sluice.TryReserver, it has a Close if l has one, and two of equal name
// and l are ==, so that the queue's Gate takes them for one limit. SetRate and the like are called on l itself.
// Limiters may share a name: their counts are added, and sluice_available_units is left out once there are two.
//
// A nil l, or a nil pointer in it, is returned as it is.
func (c *Collector) Limiter(name string, l sluice.Limiter) sluice.Limiter {
	if c == nil || isnil.Value(l) {
		return l
	}
	observed := limiter{series: c.seriesOf(name), inner: l}
	observed.series.name(l)
	if _, ok := l.(interface{ Close() error }); ok {
		return closer{observed}
	}
	return observed
}

// Gate exports what stats returns, under a name: c.Gate("mail", func() metrics.GateStats { return
// metrics.GateStats(gate.Stats()) }). It is called once for each scrape. The same name again replaces it, and a nil
// stats takes it away.
func (c *Collector) Gate(name string, stats func() GateStats) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	put(&c.gates, name, stats, stats == nil)
}

// Redis exports what health returns, under a name: c.Redis("api", func() metrics.RedisHealth { return
// metrics.RedisHealth(limiter.Health()) }). It is called once for each scrape. The same name again replaces it, and a
// nil health takes it away.
func (c *Collector) Redis(name string, health func() RedisHealth) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	put(&c.redis, name, health, health == nil)
}

func put[V any](m *map[string]V, name string, v V, away bool) {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if away {
		delete(*m, name)
		return
	}
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[name] = v
}

func (c *Collector) seriesOf(name string) *series {
	name = strings.ToValidUTF8(name, "\uFFFD")
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.series[name]
	if s == nil {
		s = newSeries()
		put(&c.series, name, s, false)
	}
	return s
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descs {
		to <- d
	}
}

// Collect implements prometheus.Collector. No lock is held while it calls what it was given.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	if c == nil {
		return
	}
	c.mu.Lock()
	all, gates, redis := clone(c.series), clone(c.gates), clone(c.redis)
	c.mu.Unlock()
	for name, s := range all {
		s.collect(to, name)
	}
	for name, stats := range gates {
		collectGate(to, name, stats())
	}
	for name, health := range redis {
		collectRedis(to, name, health())
	}
}

func clone[V any](m map[string]V) map[string]V {
	copied := make(map[string]V, len(m))
	for name, v := range m {
		copied[name] = v
	}
	return copied
}

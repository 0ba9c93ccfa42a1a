package metrics_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
	"github.com/fadf4e53/sluice/metrics"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

// full is a Collector that shows every metric there is.
func full(t testing.TB) *metrics.Collector {
	c := metrics.New()
	require.NoError(t, c.Limiter("api", perSecond(t, 1, 1)).Wait(t.Context(), 1))
	c.Gate("mail", func() metrics.GateStats { return metrics.GateStats{} })
	c.Redis("api", func() metrics.RedisHealth { return metrics.RedisHealth{} })
	return c
}

func TestNamesAndUnitsAreByPrometheusConvention(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(full(t)))
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestTheOnlyLabelsAreLimiterAndReason(t *testing.T) {
	for _, f := range gather(t, full(t)) {
		for _, m := range f.Metric {
			var names []string
			for _, l := range m.Label {
				names = append(names, l.GetName())
			}
			if f.GetName() == "sluice_refused_total" {
				require.Equal(t, []string{"limiter", "reason"}, names)
			} else {
				require.Equal(t, []string{"limiter"}, names, f.GetName())
			}
		}
	}
}

func TestAGatesStatsAreExported(t *testing.T) {
	c := metrics.New()
	stats := queue.Stats{Started: 7, Deferred: 3, Waiting: 2, Waited: 1500 * ms}
	c.Gate("mail", func() metrics.GateStats { return metrics.GateStats(stats) })
	want := map[string]float64{
		"gate_started_total mail": 7, "gate_deferred_total mail": 3, "gate_waiting mail": 2, "gate_wait_seconds_total mail": 1.5,
	}
	require.Equal(t, want, scrape(t, c))
	stats.Started = 8
	want["gate_started_total mail"] = 8
	require.Equal(t, want, scrape(t, c), "asked anew at each scrape")
	c.Gate("mail", func() metrics.GateStats { return metrics.GateStats{Started: 1} })
	require.Equal(t, map[string]float64{"gate_started_total mail": 1}, scrape(t, c), "replaced")
	c.Gate("mail", nil)
	require.Empty(t, scrape(t, c))
}

func TestAnOutageOfRedisIsExported(t *testing.T) {
	c := metrics.New()
	health := cluster.Health{Down: true, Since: time.Now(), Cause: errors.New("connection refused"), Outages: 2}
	c.Redis("api", func() metrics.RedisHealth { return metrics.RedisHealth(health) })
	require.Equal(t, map[string]float64{"redis_outages_total api": 2}, scrape(t, c))
	health.Down = false
	require.Equal(t, map[string]float64{"redis_outages_total api": 2, "redis_up api": 1}, scrape(t, c))
	c.Redis("api", nil)
	require.Empty(t, scrape(t, c))
}

func TestNilStaysNil(t *testing.T) {
	c := metrics.New()
	require.Nil(t, c.Limiter("api", nil))
	require.Equal(t, sluice.Limiter((*waiter.Limiter)(nil)), c.Limiter("api", (*waiter.Limiter)(nil)))
	require.Empty(t, gather(t, c), "nothing is observed")

	var none *metrics.Collector
	l := perSecond(t, 1, 1)
	require.Equal(t, sluice.Limiter(l), none.Limiter("api", l))
	none.Gate("mail", func() metrics.GateStats { return metrics.GateStats{} })
	none.Redis("api", func() metrics.RedisHealth { return metrics.RedisHealth{} })
	require.Empty(t, gather(t, none))
}

func TestTheZeroCollectorIsReady(t *testing.T) {
	var c metrics.Collector
	require.NoError(t, c.Limiter("api", perSecond(t, 1, 1)).Wait(t.Context(), 1))
	c.Gate("mail", func() metrics.GateStats { return metrics.GateStats{Started: 1} })
	s := scrape(t, &c)
	require.Equal(t, 1.0, s["granted_total api"])
	require.Equal(t, 1.0, s["gate_started_total mail"])
}

// A registry refuses a whole scrape for one label that is not UTF-8.
func TestAnyNameCanBeScraped(t *testing.T) {
	c := metrics.New()
	for _, name := range []string{"", "caf\xe9", "a\nb"} {
		require.NoError(t, c.Limiter(name, perSecond(t, 1, 1)).Wait(t.Context(), 1))
		c.Gate(name, func() metrics.GateStats { return metrics.GateStats{Started: 1} })
	}
	s := scrape(t, c)
	require.Equal(t, 1.0, s["granted_total caf\uFFFD"])
	require.Equal(t, 1.0, s["gate_started_total caf\uFFFD"])
	require.Equal(t, 1.0, s["granted_total "])
}

func TestItKnowsNeitherAQueueNorRedisNorAKindOfLimiter(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for _, dep := range strings.Fields(string(out)) {
		if ours, ok := strings.CutPrefix(dep, "github.com/fadf4e53/sluice"); ok {
			require.Contains(t, []string{"", "/metrics", "/internal/exact", "/internal/isnil"}, ours)
		}
		require.NotContains(t, dep, "asynq")
		require.NotContains(t, dep, "redis")
	}
}

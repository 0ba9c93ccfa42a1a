package metrics_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/metrics"
	"github.com/fadf4e53/sluice/waiter"
)

const ms = time.Millisecond

func perSecond(t testing.TB, n int64, burst int) *waiter.Limiter {
	l, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(n), Burst: burst})
	require.NoError(t, err)
	return l
}

func gather(t testing.TB, c prometheus.Collector) []*dto.MetricFamily {
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(c))
	families, err := r.Gather()
	require.NoError(t, err)
	return families
}

// scrape returns what a scrape shows, as {"granted_total api": 3}: without the "sluice_", with the labels' values. Of a
// histogram it shows _count and _sum. What is 0 is left out.
func scrape(t testing.TB, c prometheus.Collector) map[string]float64 {
	shown := make(map[string]float64)
	for _, f := range gather(t, c) {
		for _, m := range f.Metric {
			name := strings.TrimPrefix(f.GetName(), "sluice_")
			labels := ""
			for _, l := range m.Label {
				labels += " " + l.GetValue()
			}
			switch {
			case m.Histogram != nil:
				shown[name+"_count"+labels] = float64(m.Histogram.GetSampleCount())
				shown[name+"_sum"+labels] = m.Histogram.GetSampleSum()
			case m.Counter != nil:
				shown[name+labels] = m.Counter.GetValue()
			default:
				shown[name+labels] = m.Gauge.GetValue()
			}
		}
	}
	maps.DeleteFunc(shown, func(_ string, v float64) bool { return v == 0 })
	return shown
}

func histogram(t testing.TB, c prometheus.Collector) *dto.Histogram {
	all := gather(t, c)
	i := slices.IndexFunc(all, func(f *dto.MetricFamily) bool { return f.GetName() == "sluice_wait_seconds" })
	require.GreaterOrEqual(t, i, 0)
	require.Len(t, all[i].Metric, 1)
	return all[i].Metric[0].Histogram
}

// fake is a Limiter of which a test writes what it needs.
type fake struct {
	sluice.Limiter
	wait func(ctx context.Context, n int) error
}

func (f *fake) Wait(ctx context.Context, n int) error { return f.wait(ctx, n) }

func newObserved(l sluice.Limiter) (*metrics.Collector, sluice.Limiter) {
	c := metrics.New()
	return c, c.Limiter("api", l)
}

func (f *fake) Stats() sluice.Stats { return sluice.Stats{} }

package metrics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/metrics"
	"github.com/fadf4e53/sluice/waiter"
)

// BenchmarkOverhead measures what observing adds to a call that goes at once: short rounds of the bare limiter and of
// the observed one in turns, so that whatever else the machine does falls on both.
func BenchmarkOverhead(b *testing.B) {
	const round = 500
	bare, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(1_000_000_000), Burst: 1_000_000_000})
	require.NoError(b, err)
	observed := metrics.New().Limiter("api", bare)
	ctx := b.Context()
	for name, call := range map[string]func(sluice.Limiter){
		"Wait": func(l sluice.Limiter) { _ = l.Wait(ctx, 1) },
		"Try":  func(l sluice.Limiter) { _, _ = l.Try(ctx, 1) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var without, with time.Duration
			for range b.N/round + 1 {
				without += timed(round, func() { call(bare) })
				with += timed(round, func() { call(observed) })
			}
			calls := float64((b.N/round + 1) * round)
			b.ReportMetric(float64(without)/calls, "bare-ns")
			b.ReportMetric(float64(with)/calls, "observed-ns")
			b.ReportMetric(float64(with-without)/calls, "added-ns")
		})
	}
}

func timed(n int, f func()) time.Duration {
	began := time.Now()
	for range n {
		f()
	}
	return time.Since(began)
}

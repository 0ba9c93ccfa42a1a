package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/metrics"
	"github.com/fadf4e53/sluice/sluicetest"
	"github.com/fadf4e53/sluice/waiter"
)

// What is observed keeps the contract that it keeps bare.
func TestContract(t *testing.T) {
	unpromisedByAll := map[string]string{
		"cancel/Units is net of what came back": "each limit takes back what its own law allows: Units is less all that was cancelled",
	}
	for name, kind := range map[string]sluicetest.Kind{
		"waiter":         {New: observed(newWaiter)},
		"leaky":          {New: observed(newPacer), Paced: true},
		"foreign":        {New: observed(newForeign)},
		"in a keyed map": {New: newView(observed(newWaiter))},
		"in All":         {New: joined(observed(newWaiter), observed(newLooseWaiter)), Unpromised: unpromisedByAll},
	} {
		t.Run(name, func(t *testing.T) { sluicetest.Run(t, kind) })
	}
}

type newLimiter = func(testing.TB, sluice.Rate, int) sluice.Limiter

func observed(make newLimiter) newLimiter {
	return func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
		return metrics.New().Limiter("test", make(t, rate, burst))
	}
}

func newWaiter(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
	l, err := waiter.New(waiter.Config{Rate: rate, Burst: burst})
	require.NoError(t, err)
	return l
}

func newLooseWaiter(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
	n, period := rate.Fraction()
	return newWaiter(t, sluice.Per(2*n, period), 2*burst)
}

func newPacer(t testing.TB, rate sluice.Rate, capacity int) sluice.Limiter {
	p, err := leaky.New(leaky.Config{Rate: rate, Capacity: capacity})
	require.NoError(t, err)
	return p
}

// newForeign is a Limiter of somebody who knows the interface and no more: no TryReserve, no Close.
func newForeign(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
	return struct{ sluice.Limiter }{newWaiter(t, rate, burst)}
}

func newView(make newLimiter) newLimiter {
	return func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
		m, err := keyed.New(keyed.Config[string]{
			New:     func(string) (sluice.Limiter, error) { return make(t, rate, burst), nil },
			MaxKeys: 1,
		})
		require.NoError(t, err)
		return m.For("k")
	}
}

func joined(limits ...newLimiter) newLimiter {
	return func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
		var all []sluice.Limiter
		for _, make := range limits {
			all = append(all, make(t, rate, burst))
		}
		return sluice.All(all...)
	}
}

// Package kinds makes limiters of every kind for tests: what sluicetest's Kind.New wants.
package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/waiter"
)

// A New makes a limiter at rest.
type New = func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter

// UnpromisedByAll is what a Kind that Joined makes has for Unpromised.
var UnpromisedByAll = map[string]string{
	"cancel/Units is net of what came back": "each limit takes back what its own law allows: Units is less all that was cancelled",
}

// Waiter makes a token bucket.
func Waiter(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
	t.Helper()
	l, err := waiter.New(waiter.Config{Rate: rate, Burst: burst})
	require.NoError(t, err)
	return l
}

// LooseWaiter makes one that lets twice as much through, so that in All another limit decides.
func LooseWaiter(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
	t.Helper()
	n, period := rate.Fraction()
	return Waiter(t, sluice.Per(2*n, period), 2*burst)
}

// Pacer makes a leaky bucket.
func Pacer(t testing.TB, rate sluice.Rate, capacity int) sluice.Limiter {
	t.Helper()
	p, err := leaky.New(leaky.Config{Rate: rate, Capacity: capacity})
	require.NoError(t, err)
	return p
}

// Foreign makes a Limiter of somebody who knows the interface and no more: it has no TryReserve and no Close.
func Foreign(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
	t.Helper()
	return struct{ sluice.Limiter }{Waiter(t, rate, burst)}
}

// Joined makes All of what each makes.
func Joined(limits ...New) New {
	return func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
		t.Helper()
		var all []sluice.Limiter
		for _, make := range limits {
			all = append(all, make(t, rate, burst))
		}
		return sluice.All(all...)
	}
}

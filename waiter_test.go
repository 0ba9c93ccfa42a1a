package sluice_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/sluicetest"
	"github.com/fadf4e53/sluice/waiter"
)

// Every kind of Limiter keeps one contract: each goes through the same cases, and `go test -v -run TestContract` lists
// the promises by name.
func TestContract(t *testing.T) {
	for name, kind := range map[string]sluicetest.Kind{
		"waiter":             {New: newWaiter},
		"leaky":              {New: newPacer, Paced: true},
		"strict leaky":       {New: newStrictPacer, Paced: true, Unpromised: unpromisedByStrict},
		"on the real clock":  {New: newWaiter, RealTime: true}, // as a limiter outside the process is judged
		"all of one":         {New: joined(newWaiter)},
		"all, tight last":    {New: joined(newLooseWaiter, newWaiter), Unpromised: unpromisedByAll},
		"all, tight first":   {New: joined(newWaiter, newLooseWaiter), Unpromised: unpromisedByAll},
		"all with a foreign": {New: joined(newForeign, newLooseWaiter), Unpromised: unpromisedByAll},
		"all with a pacer":   {New: joined(newLooseWaiter, newPacer), Paced: true, Unpromised: unpromisedByAll},
	} {
		t.Run(name, func(t *testing.T) { sluicetest.Run(t, kind) })
	}
}

var unpromisedByStrict = map[string]string{
	"line/every turn comes at the first ns that the rate allows": "starts are really 1/rate apart: the fraction of a ns is lost at each",
	"law/while somebody waits nothing idles, whoever leaves":     "starts are really 1/rate apart: the fraction of a ns is lost at each",
}

var unpromisedByAll = map[string]string{
	"cancel/Units is net of what came back": "each limit takes back what its own law allows: Units is less all that was cancelled",
}

type newLimiter = func(testing.TB, sluice.Rate, int) sluice.Limiter

func newWaiter(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
	l, err := waiter.New(waiter.Config{Rate: rate, Burst: burst})
	require.NoError(t, err)
	return l
}

// newLooseWaiter lets twice as much through, so that in All the other limit decides.
func newLooseWaiter(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
	n, period := rate.Fraction()
	return newWaiter(t, sluice.Per(2*n, period), 2*burst)
}

func newPacer(t testing.TB, rate sluice.Rate, capacity int) sluice.Limiter {
	p, err := leaky.New(leaky.Config{Rate: rate, Capacity: capacity})
	require.NoError(t, err)
	return p
}

func newStrictPacer(t testing.TB, rate sluice.Rate, capacity int) sluice.Limiter {
	p, err := leaky.New(leaky.Config{Rate: rate, Capacity: capacity, Strict: true})
	require.NoError(t, err)
	return p
}

// newForeign is a Limiter of somebody who knows the interface and no more: it has no TryReserve.
func newForeign(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
	return struct{ sluice.Limiter }{newWaiter(t, rate, burst)}
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

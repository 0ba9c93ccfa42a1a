package sluicetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/sluicetest"
	"github.com/fadf4e53/sluice/waiter"
)

// The whole test of a Limiter's contract; put your own where waiter.New stands.
func ExampleRun() {
	testContract := func(t *testing.T) {
		sluicetest.Run(t, sluicetest.Kind{New: func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
			l, err := waiter.New(waiter.Config{Rate: rate, Burst: burst})
			require.NoError(t, err)
			return l
		}})
	}
	_ = testContract // go test calls it, as TestContract
	// Output:
}

package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/kinds"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/metrics"
	"github.com/fadf4e53/sluice/sluicetest"
)

// What is observed keeps the contract that it keeps bare.
func TestContract(t *testing.T) {
	for name, kind := range map[string]sluicetest.Kind{
		"waiter":         {New: observed(kinds.Waiter)},
		"leaky":          {New: observed(kinds.Pacer), Paced: true},
		"foreign":        {New: observed(kinds.Foreign)},
		"in a keyed map": {New: newView(observed(kinds.Waiter))},
		"in All":         {New: kinds.Joined(observed(kinds.Waiter), observed(kinds.LooseWaiter)), Unpromised: kinds.UnpromisedByAll},
	} {
		t.Run(name, func(t *testing.T) { sluicetest.Run(t, kind) })
	}
}

func observed(make kinds.New) kinds.New {
	return func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
		return metrics.New().Limiter("test", make(t, rate, burst))
	}
}

func newView(make kinds.New) kinds.New {
	return func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
		m, err := keyed.New(keyed.Config[string]{
			New:     func(string) (sluice.Limiter, error) { return make(t, rate, burst), nil },
			MaxKeys: 1,
		})
		require.NoError(t, err)
		return m.For("k")
	}
}

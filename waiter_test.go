package sluice_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/kinds"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/sluicetest"
)

// Every kind of Limiter keeps one contract: each goes through the same cases, and `go test -v -run TestContract` lists
// the promises by name.
func TestContract(t *testing.T) {
	for name, kind := range map[string]sluicetest.Kind{
		"waiter":             {New: kinds.Waiter},
		"leaky":              {New: kinds.Pacer, Paced: true},
		"strict leaky":       {New: newStrictPacer, Paced: true, Unpromised: unpromisedByStrict},
		"on the real clock":  {New: kinds.Waiter, RealTime: true}, // as a limiter outside the process is judged
		"all of one":         {New: kinds.Joined(kinds.Waiter)},
		"all, tight last":    {New: kinds.Joined(kinds.LooseWaiter, kinds.Waiter), Unpromised: kinds.UnpromisedByAll},
		"all, tight first":   {New: kinds.Joined(kinds.Waiter, kinds.LooseWaiter), Unpromised: kinds.UnpromisedByAll},
		"all with a foreign": {New: kinds.Joined(kinds.Foreign, kinds.LooseWaiter), Unpromised: kinds.UnpromisedByAll},
		"all with a pacer":   {New: kinds.Joined(kinds.LooseWaiter, kinds.Pacer), Paced: true, Unpromised: kinds.UnpromisedByAll},
	} {
		t.Run(name, func(t *testing.T) { sluicetest.Run(t, kind) })
	}
}

var unpromisedByStrict = map[string]string{
	"line/every turn comes at the first ns that the rate allows": "starts are really 1/rate apart: the fraction of a ns is lost at each",
	"law/while somebody waits nothing idles, whoever leaves":     "starts are really 1/rate apart: the fraction of a ns is lost at each",
}

func newStrictPacer(t testing.TB, rate sluice.Rate, capacity int) sluice.Limiter {
	p, err := leaky.New(leaky.Config{Rate: rate, Capacity: capacity, Strict: true})
	require.NoError(t, err)
	return p
}

package keyed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/kinds"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/sluicetest"
)

// A view keeps the contract that its key's limiter keeps, whatever that is.
func TestContract(t *testing.T) {
	view := func(evict keyed.Eviction, limiter kinds.New) kinds.New {
		return func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
			return newMap(t, 1, evict, func(string) (sluice.Limiter, error) { return limiter(t, rate, burst), nil }).For("k")
		}
	}
	for name, kind := range map[string]sluicetest.Kind{
		"view of a waiter":         {New: view(keyed.IdleOnly, kinds.Waiter)},
		"view of a waiter, Oldest": {New: view(keyed.Oldest, kinds.Waiter)},
		"view of a pacer":          {New: view(keyed.IdleOnly, kinds.Pacer), Paced: true},
		"view of a foreign":        {New: view(keyed.IdleOnly, kinds.Foreign)},
	} {
		t.Run(name, func(t *testing.T) { sluicetest.Run(t, kind) })
	}
}

// foreign is a Limiter of somebody who knows the interface and no more: no TryReserve, no Close.
func foreign(l sluice.Limiter) sluice.Limiter { return struct{ sluice.Limiter }{l} }

func TestANewKeyOnAFullMapKeepsTheContractForNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.IdleOnly, perSecond(1))
		take(t, m, "k1")
		v := m.For("k2").(sluice.TryReserver)
		ctx := t.Context()
		require.NoError(t, v.Wait(ctx, 0))
		d, err := v.Try(ctx, 0)
		require.NoError(t, err)
		require.True(t, d.Allowed)
		require.Zero(t, d.Remaining)
		r, err := v.Reserve(ctx, 0)
		require.NoError(t, err)
		require.NoError(t, r.Wait(ctx))
		r, d, err = v.TryReserve(ctx, 0)
		require.NoError(t, err)
		require.True(t, d.Allowed)
		r.Cancel()
		require.Equal(t, keyed.Stats{Keys: 1}, m.Stats(), "it was given no room and is not refused either")
	})
}

func TestForNothingOldestDropsNoBusyKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.Oldest, perSecond(1))
		take(t, m, "k1")
		require.NoError(t, m.Wait(t.Context(), "k2", 0))
		require.Zero(t, m.For("k2").Stats(), "nor for a look")
		refusedFor(t, m, "k1", 1000*ms)
	})
}

func TestAFullMapSaysNoInTheWordsOfALimiter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.IdleOnly, perSecond(1))
		take(t, m, "k1")
		v := m.For("k2").(sluice.TryReserver)
		ctx := t.Context()
		err := v.Wait(ctx, 3)
		no := refusal(t, err, sluice.ErrFull)
		require.Equal(t, sluice.Refusal{Reason: sluice.ErrFull, N: 3, RetryAfter: 1000 * ms}, *no)
		require.ErrorContains(t, err, "keyed: no room for one more key: all 1 are busy")
		_, err = v.Reserve(ctx, 3)
		require.Equal(t, no, refusal(t, err, sluice.ErrFull))
		refusal(t, v.Pause(ctx, ms), sluice.ErrFull)
		d, err := v.Try(ctx, 3)
		require.NoError(t, err, "waiting helps")
		require.Equal(t, sluice.Decision{RetryAfter: 1000 * ms, ResetAfter: 1000 * ms}, d)
		r, again, err := v.TryReserve(ctx, 3)
		require.NoError(t, err)
		require.Nil(t, r)
		require.Equal(t, d, again)
		require.Equal(t, keyed.Stats{Keys: 1, Refused: 5}, m.Stats())
	})
}

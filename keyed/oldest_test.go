package keyed_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
)

// hourly makes limiters that stay busy.
func hourly(t testing.TB) maker {
	return func(string) (sluice.Limiter, error) { return newWaiter(t, sluice.Every(time.Hour), 2), nil }
}

// holds checks which keys a Map of hourly limiters has kept: the others would be as new.
func holds(t testing.TB, m *keyed.Map[string], kept ...string) {
	t.Helper()
	require.Equal(t, len(kept), m.Len())
	dropped := m.Stats().Dropped
	for _, key := range kept {
		require.EqualValues(t, 1, m.For(key).Stats().Granted, "%s has been dropped", key)
	}
	require.Equal(t, dropped, m.Stats().Dropped)
}

func TestOldestDropsTheLeastRecentlyUsedBusyKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 3, keyed.Oldest, hourly(t))
		take(t, m, "k1", "k2", "k3")
		m.For("k1").Stats() // is a use
		take(t, m, "k4")
		holds(t, m, "k3", "k1", "k4")
		take(t, m, "k5", "k6")
		holds(t, m, "k4", "k5", "k6")
		require.Equal(t, keyed.Stats{Keys: 3, Dropped: 3}, m.Stats())
	})
}

func TestOldestDropsNoKeyWithWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 3, keyed.Oldest, hourly(t))
		require.NoError(t, m.Wait(t.Context(), "k1", 2))
		waiter := wait(func() error { return m.Wait(t.Context(), "k1", 1) })
		require.NoError(t, m.Wait(t.Context(), "k2", 2))
		r, err := m.For("k2").Reserve(t.Context(), 2) // due in 2h, and at rest 2h later
		require.NoError(t, err)
		for _, key := range names(10) {
			take(t, m, key)
		}
		require.EqualValues(t, 9, m.Stats().Dropped, "the only key without waiters, each time")
		require.Equal(t, 1, m.For("k1").Stats().Waiting)
		require.Equal(t, 2*time.Hour, r.Delay())

		third := wait(func() error { return m.Wait(t.Context(), "9", 2) })
		no := refusal(t, m.Wait(t.Context(), "new", 1), sluice.ErrFull)
		require.Equal(t, 2*time.Hour, no.RetryAfter, "then k2 has no waiters, though it is busy")
		require.NoError(t, <-waiter)
		require.NoError(t, <-third)
	})
}

func TestOldestMayDropAKeyOnceItsWaiterHasGoneThrough(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const keys = 50
		m := newMap(t, keys, keyed.Oldest, hourly(t))
		ctx := t.Context()
		var waiters []<-chan error
		for i, key := range names(keys) {
			require.NoError(t, m.Wait(ctx, key, 2))
			n := 2
			if i == 17 {
				n = 1
			}
			waiters = append(waiters, wait(func() error { return m.Wait(ctx, key, n) }))
		}
		require.False(t, try(t, m, "new").Allowed)
		require.NoError(t, <-waiters[17])
		take(t, m, "new")
		require.EqualValues(t, 1, m.Stats().Dropped)
		for _, w := range slices.Delete(waiters, 17, 18) {
			require.NoError(t, <-w)
		}
	})
}

func TestOldestAsksAgainAboutAKeyThatWasUsedSince(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 50, keyed.Oldest, func(k string) (sluice.Limiter, error) {
			switch k {
			case "stranger":
				return nil, errors.New("unknown tenant")
			case "first": // to rest, so that nobody else needs to be asked about that
				return newWaiter(t, sluice.Every(time.Minute), 2), nil
			}
			return hourly(t)(k)
		})
		take(t, m, names(49)...)
		take(t, m, "first")
		require.Error(t, m.Wait(t.Context(), "stranger", 1), "0 was found without waiters, and kept")
		r, err := m.For("0").Reserve(t.Context(), 2)
		require.NoError(t, err)
		take(t, m, names(49)[1:]...)
		take(t, m, "first")
		take(t, m, "new")
		require.Equal(t, time.Hour, r.Delay())
		require.Equal(t, 1, m.For("0").Stats().Waiting)
	})
}

func TestOldestMayDropAKeyOnceItsReservationIsDueOrCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.Oldest, hourly(t))
		require.NoError(t, m.Wait(t.Context(), "k1", 2))
		r, err := m.For("k1").Reserve(t.Context(), 2)
		require.NoError(t, err)
		refusedFor(t, m, "k2", 2*time.Hour)
		time.Sleep(2*time.Hour - 1)
		refusedFor(t, m, "k2", 1)
		time.Sleep(1 * time.Nanosecond)
		take(t, m, "k2")
		require.Zero(t, r.Delay(), "its turn came, and stands")
		require.NoError(t, r.Wait(t.Context()))

		require.NoError(t, m.Wait(t.Context(), "k2", 1))
		r, err = m.For("k2").Reserve(t.Context(), 1)
		require.NoError(t, err)
		require.False(t, try(t, m, "k3").Allowed)
		r.Cancel()
		take(t, m, "k3")
	})
}

func TestAKeyThatCannotBeMadeCostsNobodyHisKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		unknown := errors.New("unknown tenant")
		ok := hourly(t)
		m := newMap(t, 2, keyed.Oldest, func(k string) (sluice.Limiter, error) {
			if k == "stranger" {
				return nil, unknown
			}
			return ok(k)
		})
		take(t, m, "k1", "k2")
		for range 10 {
			require.ErrorIs(t, m.Wait(t.Context(), "stranger", 1), unknown)
		}
		holds(t, m, "k1", "k2")
	})
}

package keyed_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
)

func TestNobodyShedsDebtByChurningKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 2, keyed.IdleOnly, perSecond(1))
		take(t, m, "k1", "k2")
		for range 100 {
			refusedFor(t, m, "k3", 1000*ms)
			refusedFor(t, m, "k1", 1000*ms)
		}
		require.Equal(t, 2, m.Len())
		time.Sleep(1000*ms - 1)
		refusedFor(t, m, "k3", 1)
		refusedFor(t, m, "k2", 1)
		time.Sleep(1 * time.Nanosecond)
		take(t, m, "k3", "k1") // one of the two is new
		require.Equal(t, 2, m.Len())
		time.Sleep(time.Second)
		take(t, m, "k2", "k3")
		require.Equal(t, 2, m.Len())
		require.EqualValues(t, 101, m.Stats().Refused)
	})
}

func TestAKeyAtRestGoesBeforeABusyOneThatIsOlder(t *testing.T) {
	for _, evict := range []keyed.Eviction{keyed.IdleOnly, keyed.Oldest} {
		bubble(t, func(t *testing.T) {
			m := newMap(t, 3, evict, perSecond(2))
			take(t, m, "k1", "k1", "k2", "k2", "k3") // k3 rests after 1s, the others after 2s
			time.Sleep(time.Second)
			take(t, m, "k1") // and k1 after 2s more
			take(t, m, "k4")
			require.Equal(t, keyed.Stats{Keys: 3, Dropped: 1}, m.Stats())
			refusedFor(t, m, "k1", time.Second)
			take(t, m, "k2")
			refusedFor(t, m, "k2", time.Second)
		})
	}
}

func TestAFullMapTellsWhenTheFirstKeyRests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 3, keyed.IdleOnly, perSecond(9))
		for key, n := range map[string]int{"k1": 3, "k2": 5, "k3": 7} {
			require.NoError(t, m.Wait(t.Context(), key, n))
		}
		refusedFor(t, m, "k4", 3*time.Second)
		time.Sleep(2 * time.Second)
		require.NoError(t, m.Wait(t.Context(), "k1", 5)) // now rests at 8s
		refusedFor(t, m, "k4", 3*time.Second)
		time.Sleep(3*time.Second - 1)
		refusedFor(t, m, "k4", 1)
		time.Sleep(1 * time.Nanosecond)
		take(t, m, "k4")
		require.Equal(t, 3, m.Len())
	})
}

// crowded is a full Map in which only k1 can come to rest within the hour: the one key more that each refusal asks is
// another one. There can also be one that is longer, and rests after 1.5s.
func crowded(t *testing.T, longer ...string) *keyed.Map[string] {
	m := newMap(t, 51, keyed.IdleOnly, func(key string) (sluice.Limiter, error) {
		rate := sluice.Every(time.Hour)
		switch {
		case key[0] == 'k':
			rate = sluice.PerSecond(1)
		case key == "longer":
			rate = sluice.Every(1500 * ms)
		}
		return newWaiter(t, rate, 1), nil
	})
	take(t, m, names(50-len(longer))...)
	take(t, m, longer...)
	return m
}

func TestAWaiterHoldsItsKeyAndWhoLeavesFreesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := crowded(t)
		take(t, m, "k1")
		ctx, cancel := context.WithCancel(t.Context())
		gone := wait(func() error { return m.Wait(ctx, "k1", 1) })
		refusedFor(t, m, "k2", 2*time.Second) // its turn, and rest
		time.Sleep(500 * ms)
		cancel()
		require.Equal(t, context.Canceled, <-gone)
		refusedFor(t, m, "k2", 500*ms)
		time.Sleep(500 * ms)
		take(t, m, "k2")
	})
}

func TestAReservationHoldsItsKeyUntilItIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := crowded(t)
		r, err := m.For("k1").Reserve(t.Context(), 1)
		require.NoError(t, err)
		refusedFor(t, m, "k2", time.Second)
		r.Cancel()
		take(t, m, "k2")
		r.Cancel()
		refusedFor(t, m, "k1", time.Second)
	})
}

func TestATryThatIsTakenBackFreesItsKey(t *testing.T) {
	for _, wrap := range []func(sluice.Limiter) sluice.Limiter{foreign, func(l sluice.Limiter) sluice.Limiter { return l }} {
		bubble(t, func(t *testing.T) {
			m := newMap(t, 1, keyed.IdleOnly, func(string) (sluice.Limiter, error) {
				return wrap(newWaiter(t, sluice.PerSecond(1), 1)), nil
			})
			r, d, err := m.For("k1").(sluice.TryReserver).TryReserve(t.Context(), 1)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			refusedFor(t, m, "k2", time.Second)
			r.Cancel()
			take(t, m, "k2")
		})
	}
}

func TestAReservationGivenUpByItsWaitFreesItsKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := crowded(t, "longer")
		take(t, m, "k1")
		place := func() sluice.Reservation {
			r, err := m.For("k1").Reserve(t.Context(), 1)
			require.NoError(t, err)
			for range 5 { // so that the one key more is not k1
				refusedFor(t, m, "k2", 1500*ms)
			}
			return r
		}
		r := place()
		ctx, cancel := context.WithTimeout(t.Context(), 999*ms)
		require.ErrorIs(t, r.Wait(ctx), sluice.ErrDeadline)
		refusedFor(t, m, "k2", 1000*ms)
		r = place()
		cancel()
		require.Equal(t, context.Canceled, r.Wait(ctx))
		refusedFor(t, m, "k2", 1000*ms)
	})
}

func TestAForgottenReservationHoldsNoKeyForEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.IdleOnly, perSecond(1))
		take(t, m, "k1")
		r, err := m.For("k1").Reserve(t.Context(), 1)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		take(t, m, "k2")
		require.Zero(t, r.Delay(), "its turn came, and stands though its key has gone")
		require.NoError(t, r.Wait(t.Context()))
		r.Cancel() // has nothing left to give back
		refusedFor(t, m, "k2", time.Second)
	})
}

func TestAPausedKeyIsNotAtRest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.IdleOnly, perSecond(1))
		require.NoError(t, m.For("k1").Pause(t.Context(), time.Minute))
		refusedFor(t, m, "k2", time.Minute)
	})
}

// No pause needs no key: none is dropped for it, and no full Map says no.
func TestNoPauseNeedsNoRoom(t *testing.T) {
	for _, evict := range []keyed.Eviction{keyed.IdleOnly, keyed.Oldest} {
		bubble(t, func(t *testing.T) {
			m := newMap(t, 1, evict, perSecond(1))
			take(t, m, "k1")
			require.NoError(t, m.For("k2").Pause(t.Context(), 0))
			err := m.For("k2").Pause(t.Context(), -1)
			require.ErrorIs(t, err, sluice.ErrInvalid)
			require.ErrorContains(t, err, "d is -1ns: must be at least 0")
			refusedFor(t, m, "k1", time.Second)
		})
	}
}

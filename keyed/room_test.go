package keyed_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/waiter"
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

func TestAWaiterHoldsItsKeyAndWhoLeavesFreesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.IdleOnly, perSecond(1))
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
		m := newMap(t, 1, keyed.IdleOnly, perSecond(1))
		r, err := m.For("k1").Reserve(t.Context(), 1)
		require.NoError(t, err)
		refusedFor(t, m, "k2", time.Second)
		r.Cancel()
		take(t, m, "k2")
		r.Cancel()
		refusedFor(t, m, "k2", time.Second)
	})
}

func TestAReservationGivenUpByItsWaitFreesItsKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.IdleOnly, perSecond(1))
		take(t, m, "k1")
		for i := range 2 {
			r, err := m.For("k1").Reserve(t.Context(), 1)
			require.NoError(t, err)
			refusedFor(t, m, "k2", 2*time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second-1)
			if i == 0 {
				require.ErrorIs(t, r.Wait(ctx), sluice.ErrDeadline)
			}
			cancel()
			if i == 1 {
				require.Equal(t, context.Canceled, r.Wait(ctx))
			}
			refusedFor(t, m, "k2", time.Second)
		}
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

func TestALimitRaisedFromOutsideIsNoticed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		made := map[string]*waiter.Limiter{}
		m := newMap(t, 50, keyed.IdleOnly, func(k string) (sluice.Limiter, error) {
			made[k] = newWaiter(t, sluice.Every(1000*time.Hour), 1)
			return made[k], nil
		})
		take(t, m, names(50)...)
		refusedFor(t, m, "new", 1000*time.Hour)
		require.NoError(t, made["17"].SetRate(sluice.PerSecond(1000)))
		time.Sleep(ms)
		for i := 0; !try(t, m, "new").Allowed; i++ {
			require.Less(t, i, 500)
		}
	})
}

// asked counts the questions.
type asked struct {
	sluice.Limiter
	n *atomic.Int64
}

func (a asked) Try(ctx context.Context, n int) (sluice.Decision, error) {
	if n == 0 {
		a.n.Add(1)
	}
	return a.Limiter.Try(ctx, n)
}

func TestAFullMapDoesNotAskEveryKeyAtEachRefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const keys = 10_000
		var questions atomic.Int64
		m := newMap(t, keys, keyed.IdleOnly, func(string) (sluice.Limiter, error) {
			return asked{newWaiter(t, sluice.PerSecond(1), 2), &questions}, nil
		})
		take(t, m, names(keys)...)
		require.Zero(t, questions.Load(), "while there is room nobody is asked")

		refusedFor(t, m, "new", time.Second)
		require.EqualValues(t, keys, questions.Swap(0), "each once, to know when")
		for range keys {
			refusedFor(t, m, "new", time.Second)
		}
		require.LessOrEqual(t, questions.Swap(0), int64(keys), "one a refusal")

		take(t, m, names(100)...)
		for range 100 {
			refusedFor(t, m, "new", time.Second)
		}
		require.LessOrEqual(t, questions.Swap(0), int64(2*100), "and one for each use")
	})
}

func TestALimiterThatCannotBeReachedIsNotAtRest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.IdleOnly, perSecond(1))
		out := newMap(t, 1, keyed.IdleOnly, func(string) (sluice.Limiter, error) { return m.For("closed"), nil })
		take(t, out, "k1")
		require.NoError(t, m.Close())
		time.Sleep(time.Minute)
		refusedFor(t, out, "k2", time.Second) // then it is asked again
	})
}

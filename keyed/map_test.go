package keyed_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/waiter"
)

func TestABadConfigNamesFieldValueAndRule(t *testing.T) {
	ok := keyed.Config[string]{New: perSecond(1), MaxKeys: 1}
	for want, change := range map[string]func(*keyed.Config[string]){
		"keyed: Config.New is nil: must make the limiter of a key: invalid": func(c *keyed.Config[string]) { c.New = nil },
		"keyed: Config.MaxKeys is 0: must be at least 1: invalid":           func(c *keyed.Config[string]) { c.MaxKeys = 0 },
		"keyed: Config.MaxKeys is -5: must be at least 1: invalid":          func(c *keyed.Config[string]) { c.MaxKeys = -5 },
		"keyed: Config.Evict is 7: must be IdleOnly or Oldest: invalid":     func(c *keyed.Config[string]) { c.Evict = 7 },
	} {
		c := ok
		change(&c)
		m, err := keyed.New(c)
		require.Nil(t, m)
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, sluice.ErrInvalid)
	}
}

// allInvalid checks that every call of l is a mistake.
func allInvalid(t *testing.T, l sluice.Limiter) {
	t.Helper()
	ctx := t.Context()
	require.ErrorIs(t, l.Wait(ctx, 1), sluice.ErrInvalid)
	_, err := l.Try(ctx, 1)
	require.ErrorIs(t, err, sluice.ErrInvalid)
	_, err = l.Reserve(ctx, 1)
	require.ErrorIs(t, err, sluice.ErrInvalid)
	_, _, err = l.(sluice.TryReserver).TryReserve(ctx, 1)
	require.ErrorIs(t, err, sluice.ErrInvalid)
	require.ErrorIs(t, l.Pause(ctx, ms), sluice.ErrInvalid)
	require.Zero(t, l.Stats())
}

func TestAMapThatNewDidNotMakeRefusesEverything(t *testing.T) {
	for _, m := range []*keyed.Map[string]{nil, {}} {
		allInvalid(t, m.For("k"))
		require.ErrorIs(t, m.Wait(t.Context(), "k", 1), sluice.ErrInvalid)
		_, err := m.Try(t.Context(), "k", 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorIs(t, m.Close(), sluice.ErrInvalid)
		require.Zero(t, m.Len())
		require.Zero(t, m.Stats())
	}
}

func TestAMistakeMakesNoKey(t *testing.T) {
	m := newMap(t, 1, keyed.IdleOnly, perSecond(1))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, m.Wait(t.Context(), "k", -1), sluice.ErrInvalid)
	require.ErrorIs(t, m.Wait(noContext, "k", 1), sluice.ErrInvalid)
	require.Equal(t, context.Canceled, m.Wait(done, "k", 1))
	require.Zero(t, m.Len())
}

func TestANaNKeyIsAMistakeAndLeavesNothing(t *testing.T) {
	type point struct{ x, y float64 }
	m, err := keyed.New(keyed.Config[point]{MaxKeys: 2, New: func(point) (sluice.Limiter, error) { return perSecond(1)("") }})
	require.NoError(t, err)
	nan := point{1, math.NaN()}
	allInvalid(t, m.For(nan))
	require.ErrorContains(t, m.Wait(t.Context(), nan, 1), "keyed: Wait: key {1 NaN}: must be equal to itself")
	require.Zero(t, m.Len())
	require.True(t, m.For(nan) == m.For(nan), "one mistake, not one more each time")
	require.NoError(t, m.Wait(t.Context(), point{1, 2}, 1))
	require.NoError(t, m.Close())
}

func TestAKeyThatCannotBeComparedIsAMistakeAndNoPanic(t *testing.T) {
	m, err := keyed.New(keyed.Config[any]{MaxKeys: 2, New: func(any) (sluice.Limiter, error) { return perSecond(1)("") }})
	require.NoError(t, err)
	for _, key := range []any{[]byte("k"), map[string]int{}, struct{ f func() }{}, [1]any{[]int{1}}} {
		allInvalid(t, m.For(key))
		require.True(t, m.For(key) == m.For(key))
	}
	for i, key := range []any{"k", 1, nil} {
		require.Equal(t, min(i, 2), m.Len())
		_, err := m.Try(t.Context(), key, 1)
		require.NoError(t, err)
	}
	require.NoError(t, m.Close())
}

func TestAViewIsTheIdentityOfItsKeyAndHoldsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		made := 0
		m := newMap(t, 1, keyed.IdleOnly, func(k string) (sluice.Limiter, error) { made++; return perSecond(1)(k) })
		other := newMap(t, 1, keyed.IdleOnly, perSecond(1))
		k1 := m.For("k1")
		require.True(t, k1 == m.For(string([]byte("k1"))))
		require.False(t, k1 == m.For("k2"))
		require.False(t, k1 == other.For("k1"))
		require.Zero(t, made)

		require.NoError(t, k1.Wait(t.Context(), 1))
		refusedFor(t, m, "k1", time.Second)
		time.Sleep(time.Second)
		take(t, m, "k2")
		time.Sleep(time.Second)
		require.NoError(t, k1.Wait(t.Context(), 1), "the view finds the key's new limiter")
		require.Equal(t, 3, made)
	})
}

func TestCloseWakesAllWhoWait(t *testing.T) {
	for name, wrap := range map[string]func(sluice.Limiter) sluice.Limiter{
		"that can be closed":    func(l sluice.Limiter) sluice.Limiter { return l },
		"that cannot be closed": foreign,
		"of several":            func(l sluice.Limiter) sluice.Limiter { return sluice.All(l, sluice.All()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMap(t, 2, keyed.IdleOnly, func(string) (sluice.Limiter, error) {
					return wrap(newWaiter(t, sluice.Every(time.Hour), 1)), nil
				})
				ctx := t.Context()
				var waiters []<-chan error
				var places []sluice.Reservation
				for _, key := range []string{"k1", "k2"} {
					granted, err := m.For(key).Reserve(ctx, 1)
					require.NoError(t, err)
					waiters = append(waiters, wait(func() error { return m.Wait(ctx, key, 1) }))
					r, err := m.For(key).Reserve(ctx, 1)
					require.NoError(t, err)
					waiters = append(waiters, wait(func() error { return r.Wait(ctx) }))
					places = append(places, granted, r)
				}
				before := time.Now()
				require.NoError(t, m.Close())
				for _, w := range waiters {
					require.Equal(t, sluice.Never, refusal(t, <-w, sluice.ErrClosed).RetryAfter)
				}
				require.Zero(t, time.Since(before))
				for i, r := range places {
					if i%2 == 0 {
						require.Zero(t, r.Delay(), "a turn that came before stands")
					} else {
						require.Equal(t, sluice.Never, r.Delay())
					}
					r.Cancel()
				}
				no := refusal(t, m.Wait(ctx, "k1", 1), sluice.ErrClosed)
				require.Equal(t, sluice.Refusal{Reason: sluice.ErrClosed, N: 1, RetryAfter: sluice.Never}, *no)
				d, err := m.Try(ctx, "k3", 1)
				refusal(t, err, sluice.ErrClosed)
				require.Equal(t, sluice.Decision{RetryAfter: sluice.Never}, d)
				require.Zero(t, m.Len())
				require.NoError(t, m.Close(), "again")
			})
		})
	}
}

func TestWhatTheMapDropsItClosesAndCloseTellsWhatWentWrong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var closed atomic.Int64
		stuck := errors.New("stuck")
		m, err := keyed.New(keyed.Config[int]{MaxKeys: 2, New: func(k int) (sluice.Limiter, error) {
			return closable{newWaiter(t, sluice.PerSecond(1), 1), &closed, stuck}, nil
		}})
		require.NoError(t, err)
		for k := range 4 {
			require.NoError(t, m.Wait(t.Context(), k, 1))
			time.Sleep(time.Second)
		}
		require.EqualValues(t, 2, closed.Load())
		err = m.Close()
		require.ErrorIs(t, err, stuck)
		require.EqualError(t, err, "keyed: Close: stuck\nstuck")
		require.EqualValues(t, 4, closed.Load())
		require.NoError(t, m.Close(), "again")
		require.EqualValues(t, 4, closed.Load())
	})
}

func TestALimiterSharedByKeysSurvivesTheDropOfOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		shared := newWaiter(t, sluice.PerSecond(1), 1)
		m := newMap(t, 1, keyed.IdleOnly, func(string) (sluice.Limiter, error) { return foreign(shared), nil })
		for _, key := range names(5) {
			take(t, m, key)
			time.Sleep(time.Second)
		}
		require.NoError(t, m.Close())
		require.NoError(t, shared.Wait(t.Context(), 1))
	})
}

// rude panics when it is asked.
type rude struct{ *waiter.Limiter }

func (rude) Try(context.Context, int) (sluice.Decision, error) { panic("boom") }

func TestALimiterThatPanicsLeavesTheMapInOrder(t *testing.T) {
	m := newMap(t, 2, keyed.IdleOnly, func(k string) (sluice.Limiter, error) {
		l := newWaiter(t, sluice.Every(time.Hour), 1)
		if k == "rude" {
			return rude{l}, nil
		}
		return l, nil
	})
	require.Panics(t, func() { _, _ = m.Try(t.Context(), "rude", 1) })
	take(t, m, "k")
	require.Panics(t, func() { _, _ = m.Try(t.Context(), "new", 1) }, "when it is asked whether it is at rest")
	require.Equal(t, 2, m.Len())
	require.NoError(t, m.Wait(t.Context(), "rude", 1))
}

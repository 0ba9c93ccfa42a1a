package keyed_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/waiter"
)

// hooked lets something happen between its answer to a question and the arrival of that answer.
type hooked struct {
	sluice.Limiter
	asked  func() // by whoever looks for a key at rest
	before func() // a unit is taken
}

func (h hooked) Try(ctx context.Context, n int) (sluice.Decision, error) {
	if n > 0 {
		h.before()
		return h.Limiter.Try(ctx, n)
	}
	d, err := h.Limiter.Try(ctx, 0)
	h.asked()
	return d, err
}

func TestACallThatEndsWhileItsKeyIsAskedKeepsItsDebt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		enter, taken := make(chan struct{}), make(chan error)
		once := sync.OnceFunc(func() { close(enter); <-taken })
		m := newMap(t, 1, keyed.IdleOnly, func(string) (sluice.Limiter, error) {
			return hooked{newWaiter(t, sluice.PerSecond(1), 1), once, func() { <-enter }}, nil
		})
		go func() {
			defer close(taken)
			take(t, m, "k1")
		}()
		synctest.Wait()
		refusedFor(t, m, "k2", time.Second)
		refusedFor(t, m, "k1", time.Second)
	})
}

func TestACallThatRunsHoldsItsKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		enter := make(chan struct{})
		m := newMap(t, 1, keyed.IdleOnly, func(string) (sluice.Limiter, error) {
			return hooked{newWaiter(t, sluice.PerSecond(1), 1), func() {}, func() { <-enter }}, nil
		})
		running := wait(func() error { take(t, m, "k1"); return nil })
		refusedFor(t, m, "k2", ms) // nobody can know when it is over
		close(enter)
		require.NoError(t, <-running)
		refusedFor(t, m, "k2", time.Second)
	})
}

func TestWhoLeavesWhileTheKeyIsAskedIsNotOverlooked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var r sluice.Reservation
		once := sync.OnceFunc(func() { r.Cancel() })
		others := hourly(t)
		m := newMap(t, 50, keyed.IdleOnly, func(key string) (sluice.Limiter, error) {
			l, err := others(key)
			if key == "0" {
				l = hooked{l, once, func() {}}
			}
			return l, err
		})
		var err error
		r, err = m.For("0").Reserve(t.Context(), 1)
		require.NoError(t, err)
		take(t, m, names(50)[1:]...)
		take(t, m, "new") // in the place of 0, which has come to rest while it said that it was busy
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

func TestACallDoesNotAskForLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const keys = 20
		slow := func() { time.Sleep(ms / 2) }
		m := newMap(t, keys, keyed.IdleOnly, func(key string) (sluice.Limiter, error) {
			rate := sluice.Every(time.Hour)
			if key == "17" {
				rate = sluice.PerSecond(1)
			}
			return hooked{newWaiter(t, rate, 1), slow, func() {}}, nil
		})
		take(t, m, names(keys)...)
		time.Sleep(time.Second) // 17 is at rest
		calls := 0
		for before := time.Now(); !try(t, m, "new").Allowed; before = time.Now() {
			require.LessOrEqual(t, time.Since(before), 1500*time.Microsecond, "a millisecond, and the answer that it waited for")
			calls++
		}
		require.Positive(t, calls)
		require.LessOrEqual(t, calls, keys/2, "each goes on from where the last one ended")
	})
}

func TestWhoseContextEndsIsNotHeldUpByTheKeysThatAreAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMap(t, 1, keyed.IdleOnly, func(string) (sluice.Limiter, error) { return sleeper{newWaiter(t, sluice.PerSecond(1), 1)}, nil })
		take(t, m, "k1")
		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		before := time.Now()
		require.Equal(t, context.DeadlineExceeded, m.Wait(ctx, "k2", 1))
		require.Equal(t, 10*ms, time.Since(before))
		require.Equal(t, keyed.Stats{Keys: 1}, m.Stats())
	})
}

// sleeper answers questions only when ctx ends.
type sleeper struct{ sluice.Limiter }

func (s sleeper) Try(ctx context.Context, n int) (sluice.Decision, error) {
	if n == 0 {
		<-ctx.Done()
		return sluice.Decision{}, ctx.Err()
	}
	return s.Limiter.Try(ctx, n)
}

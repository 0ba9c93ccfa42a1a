package keyed_test

import (
	"context"
	"errors"
	"runtime"
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

func TestAHundredCallersOfANewKeyGetOneLimiter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var made, allowed atomic.Int64
		m := newMap(t, 5, keyed.IdleOnly, func(k string) (sluice.Limiter, error) {
			made.Add(1)
			time.Sleep(time.Second)
			return perSecond(10)(k)
		})
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if try(t, m, "k").Allowed {
					allowed.Add(1)
				}
			})
		}
		callers.Wait()
		require.EqualValues(t, 1, made.Load())
		require.EqualValues(t, 10, allowed.Load())
	})
}

func TestTheErrorOfNewIsPassedOnAndNotRemembered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		down := errors.New("tenants: database down")
		err := down
		m := newMap(t, 1, keyed.IdleOnly, func(k string) (sluice.Limiter, error) {
			time.Sleep(time.Second)
			if err != nil {
				return nil, err
			}
			return perSecond(1)(k)
		})
		shared := wait(func() error { return m.Wait(t.Context(), "k", 1) })
		got := m.Wait(t.Context(), "k", 1)
		require.ErrorIs(t, got, down)
		require.EqualError(t, got, "keyed: Config.New of key k: tenants: database down")
		require.Equal(t, got, <-shared)
		_, got = m.Try(t.Context(), "k", 1)
		require.ErrorIs(t, got, down)
		require.Zero(t, m.Len())
		err = nil
		take(t, m, "k")
	})
}

func TestANewThatMakesNothingIsAMistakeAndTakesNoRoom(t *testing.T) {
	for name, f := range map[string]maker{
		"nil":         func(string) (sluice.Limiter, error) { return nil, nil },
		"nil pointer": func(string) (sluice.Limiter, error) { return (*waiter.Limiter)(nil), nil },
	} {
		m := newMap(t, 1, keyed.IdleOnly, f)
		for range 3 {
			err := m.Wait(t.Context(), "k", 1)
			require.ErrorIs(t, err, sluice.ErrInvalid, name)
			require.ErrorContains(t, err, "Config.New of key k is <nil>: must be", name)
		}
		require.Zero(t, m.Len())
	}
}

func TestANewThatDoesNotReturnTakesNoRoom(t *testing.T) {
	for name, leave := range map[string]func(){
		"panics": func() { panic("boom") },
		"exits":  runtime.Goexit,
	} {
		bubble(t, func(t *testing.T) {
			first := true
			m := newMap(t, 1, keyed.IdleOnly, func(k string) (sluice.Limiter, error) {
				if first {
					first = false
					time.Sleep(time.Second)
					leave()
				}
				return perSecond(1)(k)
			})
			var thrown any
			left := make(chan struct{})
			go func() {
				defer close(left)
				defer func() { thrown = recover() }()
				_ = m.Wait(context.Background(), "k", 1)
			}()
			synctest.Wait()
			require.ErrorIs(t, m.Wait(t.Context(), "k", 1), sluice.ErrInvalid, "who waited for it: %s", name)
			<-left
			if name == "panics" {
				require.Equal(t, "boom", thrown)
			}
			require.Zero(t, m.Len())
			take(t, m, "k")
		})
	}
}

func TestANewThatBlocksHoldsUpNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		m := newMap(t, 2, keyed.IdleOnly, func(k string) (sluice.Limiter, error) {
			if k == "slow" {
				<-release
			}
			return perSecond(1)(k)
		})
		slow := wait(func() error { return m.Wait(t.Context(), "slow", 1) })
		take(t, m, "k")
		require.Equal(t, 2, m.Len(), "it has its room")
		refusedFor(t, m, "third", ms) // nobody can know when it is over

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := time.Now()
		require.Equal(t, context.DeadlineExceeded, m.Wait(ctx, "slow", 1), "whoever waits for it may give up")
		require.Equal(t, time.Second, time.Since(before))
		close(release)
		require.NoError(t, <-slow)
	})
}

// closable is a limiter that tells when it is closed.
type closable struct {
	*waiter.Limiter
	closed *atomic.Int64
	err    error
}

func (c closable) Close() error {
	c.closed.Add(1)
	return errors.Join(c.err, c.Limiter.Close())
}

func TestCloseDuringNewLeavesNoLimiterOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var closed atomic.Int64
		release := make(chan struct{})
		m := newMap(t, 2, keyed.IdleOnly, func(k string) (sluice.Limiter, error) {
			<-release
			return closable{Limiter: newWaiter(t, sluice.PerSecond(1), 1), closed: &closed}, nil
		})
		maker := wait(func() error { return m.Wait(t.Context(), "k", 1) })
		other := wait(func() error { return m.Wait(t.Context(), "k", 1) })
		require.NoError(t, m.Close())
		refusal(t, <-other, sluice.ErrClosed)
		close(release)
		refusal(t, <-maker, sluice.ErrClosed)
		require.EqualValues(t, 1, closed.Load())
		require.Zero(t, m.Len())
	})
}

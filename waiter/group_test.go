package waiter_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

func TestAGroupStartsItsFunctionsAtTheRate(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 1})
		g, _ := waiter.NewGroup(t.Context(), l)
		starts := make(chan time.Duration, 5)
		for range 5 {
			g.Go(func() error {
				starts <- since()
				time.Sleep(time.Second) // work is not waited for
				return nil
			})
		}
		require.NoError(t, g.Wait())
		for i := range 5 {
			require.Equal(t, time.Duration(i)*100*ms, <-starts)
		}
	})
}

func TestAGroupTakesItsSlotBeforeItsUnit(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 5})
		g, _ := waiter.NewGroup(t.Context(), l)
		g.SetLimit(1)
		g.Go(func() error { time.Sleep(time.Second); return nil })
		synctest.Wait()
		second := make(chan struct{})
		go func() {
			g.Go(func() error { return nil })
			close(second)
		}()
		synctest.Wait()
		require.EqualValues(t, 1, l.Stats().Granted) // no unit lies with work that has no slot
		<-second
		require.NoError(t, g.Wait())
		require.EqualValues(t, 2, l.Stats().Granted)
	})
}

func TestAGroupThatFailedStartsNothingMore(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 1})
		g, ctx := waiter.NewGroup(t.Context(), l)
		boom := errors.New("boom")
		var started atomic.Int32
		for range 10 {
			g.Go(func() error { started.Add(1); return boom })
		}
		require.Equal(t, boom, g.Wait())
		require.EqualValues(t, 1, started.Load())
		require.Zero(t, since())
		require.Equal(t, boom, context.Cause(ctx))
		require.EqualValues(t, 1, l.Stats().Units)
	})
}

func TestAGroupSaysWhatIsMissing(t *testing.T) {
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 1})
	f := func() error { return nil }
	for name, run := range map[string]func() error{
		"ctx is nil": func() error {
			g, ctx := waiter.NewGroup(noContext, l)
			require.NotNil(t, ctx)
			g.Go(f)
			return g.Wait()
		},
		"Waiter is nil": func() error {
			g, _ := waiter.NewGroup(t.Context(), nil)
			g.Go(f)
			return g.Wait()
		},
		"function is nil": func() error {
			g, _ := waiter.NewGroup(t.Context(), l)
			g.Go(nil)
			return g.Wait()
		},
		"NewGroup did not make": func() error {
			g := new(waiter.Group)
			g.SetLimit(1)
			g.Go(f)
			return g.Wait()
		},
	} {
		err := run()
		require.ErrorIs(t, err, sluice.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
	require.Equal(t, 1, l.Stats().Available)
}

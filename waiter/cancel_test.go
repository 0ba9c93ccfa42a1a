package waiter_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

func reserve(t testing.TB, l sluice.Limiter, n int) sluice.Reservation {
	t.Helper()
	r, err := l.Reserve(context.Background(), n)
	require.NoError(t, err)
	return r
}

func TestACancelledReservationLeftItsDebtToThoseBehind(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 20, Now: c.now})
	reserve(t, l, 15)
	c.advance(100 * ms)
	ten, two := reserve(t, l, 10), reserve(t, l, 2)
	require.Equal(t, 400*ms, ten.Delay())
	require.Equal(t, 600*ms, two.Delay())
	ten.Cancel()
	require.Zero(t, two.Delay())
	require.Equal(t, 4, l.Stats().Available)
}

func TestACancelAfterANewRateInventedTokens(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 10, Now: c.now})
	take(t, l, 10)
	first := reserve(t, l, 5)
	require.Equal(t, 5*time.Second, first.Delay())
	require.NoError(t, l.SetRate(sluice.PerSecond(10)))
	second := reserve(t, l, 5)
	require.Equal(t, time.Second, second.Delay())
	first.Cancel()
	require.Equal(t, 500*ms, second.Delay()) // five wait with nothing there: five in debt, and not one invented
	require.Equal(t, 600*ms, try(t, l, 1).RetryAfter)
}

func TestAFloodOfRefusalsSankTheBucket(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 5, MaxWait: 1})
		var wg sync.WaitGroup
		for range 2000 {
			wg.Go(func() { _ = l.Wait(t.Context(), 1) })
		}
		wg.Wait()
		s := l.Stats()
		require.EqualValues(t, 5, s.Granted)
		require.EqualValues(t, 1995, s.Refused)
		require.Equal(t, time.Second, try(t, l, 1).RetryAfter)
	})
}

func TestAGrantThatTurnedOutVoidWasLost(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 1})
		void := reserve(t, l, 1)
		next := call(t.Context(), l, 1, since)
		time.Sleep(200 * ms)
		void.Cancel()
		require.Equal(t, went{200 * ms, nil}, <-next)
		require.Equal(t, time.Second, try(t, l, 1).RetryAfter) // the rate is kept
	})
}

func TestAnImmediateGrantCouldNotBeTakenBackLater(t *testing.T) {
	c := newClock()
	a := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 10, Now: c.now})
	b := newLimiter(t, waiter.Config{Rate: sluice.Every(1000 * time.Second), Burst: 1, Now: c.now})
	take(t, b, 1)
	for range 10 {
		ra, rb := reserve(t, a, 1), reserve(t, b, 1)
		require.Positive(t, rb.Delay())
		c.advance(time.Microsecond)
		ra.Cancel()
		rb.Cancel()
	}
	require.Equal(t, 10, a.Stats().Available)
	require.EqualValues(t, 10, a.Stats().Granted)
	require.Zero(t, b.Stats().Waiting)
}

func TestWhatWasGivenBackLateLetMoreThroughThanTheLaw(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 10, Now: c.now})
	r := reserve(t, l, 10)
	c.advance(300 * ms) // three have been made up for
	r.Cancel()
	require.Equal(t, 10, l.Stats().Available)
	r.Cancel()
	r = reserve(t, l, 2)
	c.advance(time.Second) // full in between: what spilled cannot come back
	take(t, l, 5)
	r.Cancel()
	require.Equal(t, 5, l.Stats().Available)
}

func TestADeadContextAteAToken(t *testing.T) {
	why := errors.New("the user went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for range 1000 {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 1})
		err := l.Wait(ctx, 1)
		require.Equal(t, context.Canceled, err) // as it is: no limiter's words
		require.Equal(t, why, context.Cause(ctx))
		require.True(t, try(t, l, 1).Allowed)
	}
}

func TestACancelledWaiterStillFilledTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 1, MaxWaiters: 1})
		take(t, l, 1)
		ctx, cancel := context.WithCancel(t.Context())
		a := call(ctx, l, 1, since)
		time.Sleep(10 * ms)
		cancel()
		require.Equal(t, went{10 * ms, context.Canceled}, <-a)
		time.Sleep(ms)
		require.Equal(t, went{time.Second, nil}, <-call(t.Context(), l, 1, since))
	})
}

func TestACancelledLargeHeadKeptBlockingASmallOne(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(1), 3)
		ctx, cancel := context.WithCancel(t.Context())
		a, b := call(ctx, l, 3, since), call(t.Context(), l, 1, since)
		time.Sleep(100 * ms)
		cancel()
		require.Equal(t, went{100 * ms, context.Canceled}, <-a)
		require.Equal(t, went{time.Second, nil}, <-b)
	})
}

func TestTheLineIdledForThoseWhoHadLeft(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(10), 1)
		ctx, cancel := context.WithCancel(t.Context())
		var leave, stay []<-chan went
		for range 50 {
			leave = append(leave, call(ctx, l, 1, since))
		}
		for range 50 {
			stay = append(stay, call(t.Context(), l, 1, since))
		}
		time.Sleep(ms)
		cancel()
		for _, c := range leave {
			require.Equal(t, went{ms, context.Canceled}, <-c)
		}
		five, stop := context.WithTimeout(t.Context(), 5100*ms-ms)
		defer stop()
		last := call(five, l, 1, since) // a newcomer whose deadline is his turn
		for i, c := range stay {
			require.Equal(t, went{time.Duration(i+1) * 100 * ms, nil}, <-c)
		}
		require.Equal(t, went{5100 * ms, nil}, <-last)
		require.EqualValues(t, 50, l.Stats().Canceled)
	})
}

func TestWaitsThatTimedOutKeptTheirPermits(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(10), 1)
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			c := call(ctx, l, 1, since)
			time.Sleep(ms)
			cancel()
			require.ErrorIs(t, (<-c).err, context.Canceled)
		}
		require.Equal(t, 95*ms, try(t, l, 1).RetryAfter)
	})
}

func TestNoContextMeantALeakedGoroutineAndABurntSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // ends only when no goroutine is left
		l := drained(t, sluice.Every(time.Hour), 1)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { _ = l.Wait(ctx, 1) })
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		require.Zero(t, l.Stats().Waiting)
		require.Equal(t, time.Hour, try(t, l, 1).RetryAfter)
	})
}

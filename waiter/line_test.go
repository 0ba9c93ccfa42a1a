package waiter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

func TestSmallOnesOvertookALargeHead(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(10), 5)
		var all []<-chan went
		for _, n := range []int{5, 1, 1, 1} {
			all = append(all, call(t.Context(), l, n, since))
			time.Sleep(ms)
		}
		time.Sleep(300 * ms)
		require.False(t, try(t, l, 1).Allowed, "Try overtook the line: three tokens have gathered, for the head")
		for i, at := range []time.Duration{500 * ms, 600 * ms, 700 * ms, 800 * ms} {
			require.Equal(t, went{at, nil}, <-all[i])
		}
	})
}

func TestSomeWaitersNeverWon(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(5), 1)
		var all []<-chan went
		for range 100 {
			all = append(all, call(t.Context(), l, 1, since))
		}
		for _, c := range all {
			w := <-c
			require.NoError(t, w.err)
			require.LessOrEqual(t, w.at, 20*time.Second)
		}
		require.Equal(t, 20*time.Second, since())
	})
}

func TestTheLineWasNotBounded(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 1, MaxWaiters: 2})
		take(t, l, 1)
		a, b := call(t.Context(), l, 1, since), call(t.Context(), l, 1, since)
		time.Sleep(300 * ms)
		err := l.Wait(t.Context(), 1)
		require.Equal(t, 700*ms, refused(t, err, sluice.ErrFull).RetryAfter) // until the head's turn
		_, err = l.Reserve(t.Context(), 1)
		refused(t, err, sluice.ErrFull)
		require.Equal(t, 2, l.Stats().Waiting)
		require.Equal(t, went{time.Second, nil}, <-a)
		require.Equal(t, went{2 * time.Second, nil}, <-b)
	})
}

func TestTheWholeTimeoutWasSleptBeforeTheNo(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.Every(10 * time.Second), Burst: 1, MaxWait: 3 * time.Second})
		take(t, l, 1)
		r := refused(t, l.Wait(t.Context(), 1), sluice.ErrMaxWait)
		require.Equal(t, 10*time.Second, r.RetryAfter) // so that the caller need not spin
		require.False(t, errors.Is(r, context.DeadlineExceeded))
		require.Zero(t, since())
		time.Sleep(7*time.Second - 1)
		refused(t, l.Wait(t.Context(), 1), sluice.ErrMaxWait)
		time.Sleep(1 * time.Nanosecond)
		require.Equal(t, went{10 * time.Second, nil}, <-call(t.Context(), l, 1, since))
	})
}

func TestTheDeadlineOfTheRefusalIsTellable(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(1), 1)
		ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
		defer cancel()
		err := l.Wait(ctx, 1)
		r := refused(t, err, sluice.ErrDeadline)
		require.Equal(t, &sluice.Refusal{
			Reason: sluice.ErrDeadline, N: 1, RetryAfter: time.Second, Rate: sluice.PerSecond(1), Burst: 1,
		}, r)
		require.EqualError(t, err, "sluice: 1 refused by 1/s, burst 1: not due before the context's deadline; retry after 1s; nothing was taken")
		require.NoError(t, ctx.Err(), "said at once")
	})
}

func TestAPartialTokenWasForgotten(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 4, Now: c.now})
	take(t, l, 4)
	c.advance(200 * ms)
	require.Equal(t, 800*ms, try(t, l, 1).RetryAfter)
	require.Equal(t, 2800*ms, try(t, l, 3).RetryAfter)
	l = newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 3, Now: c.now})
	take(t, l, 1)
	require.Equal(t, time.Second, try(t, l, 3).RetryAfter)
}

func TestRemainingNeverRecovered(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.Per(5, time.Minute), Burst: 5, Now: c.now})
	require.Equal(t, 1, try(t, l, 4).Remaining)
	require.Equal(t, 0, try(t, l, 1).Remaining)
	c.advance(12 * time.Second)
	require.Equal(t, 1, l.Stats().Available)
}

func TestTheToldRetryFailed(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.Every(2 * time.Second), Burst: 1, Now: c.now})
	take(t, l, 1)
	c.advance(300 * ms)
	d := try(t, l, 1)
	require.Equal(t, 1700*ms, d.RetryAfter)
	c.advance(d.RetryAfter)
	take(t, l, 1)
}

func TestASmoothLimiterWasAGrid(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 1, Now: c.now})
	take(t, l, 1)
	c.advance(199 * ms)
	take(t, l, 1)
	require.Equal(t, 100*ms, try(t, l, 1).RetryAfter)
}

func TestSixtyAMinuteIsNotAWindow(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.Per(60, time.Minute), Burst: 60, Now: c.now})
	passed := 0
	for range 60_000 { // each ms of the first minute
		if try(t, l, 1).Allowed {
			passed++
		}
		c.advance(ms)
	}
	require.Equal(t, 119, passed) // burst + what flows in 59.999 s; with burst 1 it would be 60
}

func TestStatsAddUp(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 5, MaxWaiters: 2})
		take(t, l, 5)
		require.False(t, try(t, l, 1).Allowed)
		ctx, cancel := context.WithCancel(t.Context())
		a, b := call(t.Context(), l, 2, since), call(ctx, l, 1, since)
		refused(t, l.Wait(t.Context(), 1), sluice.ErrFull)
		require.Equal(t, sluice.Stats{
			Rate: sluice.PerSecond(10), Burst: 5, Waiting: 2, Granted: 1, Refused: 2, Units: 5,
		}, l.Stats())
		cancel()
		<-b
		require.Equal(t, went{200 * ms, nil}, <-a)
		time.Sleep(100 * ms)
		r := reserve(t, l, 1)
		r.Cancel()
		require.Equal(t, sluice.Stats{
			Rate: sluice.PerSecond(10), Burst: 5, Available: 1, Granted: 3, Refused: 2, Canceled: 1, Units: 7, Waited: 200 * ms,
		}, l.Stats())
	})
}

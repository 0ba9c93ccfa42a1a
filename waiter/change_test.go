package waiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

func TestSleepersDidNotNoticeANewRate(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.Every(10*time.Second), 1)
		c := call(t.Context(), l, 1, since)
		time.Sleep(100 * ms)
		require.NoError(t, l.SetRate(sluice.Unlimited))
		require.Equal(t, went{100 * ms, nil}, <-c)
	})
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(100), 1)
		var all []<-chan went
		for range 100 {
			all = append(all, call(t.Context(), l, 1, since))
		}
		require.NoError(t, l.SetRate(sluice.PerSecond(1)))
		for i, c := range all {
			require.Equal(t, went{time.Duration(i+1) * time.Second, nil}, <-c)
		}
	})
}

func TestSettingTheSameRateLosesNothing(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(3), Burst: 1, Now: c.now})
	take(t, l, 1)
	for range 100 {
		c.advance(3_333_333)
		require.NoError(t, l.SetRate(sluice.PerSecond(3)))
	}
	require.Equal(t, 34*time.Nanosecond, try(t, l, 1).RetryAfter)
}

func TestRateAndBurstChangeTogether(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 10, Now: c.now})
	require.NoError(t, l.SetBurst(100))
	require.NoError(t, l.SetRate(sluice.PerSecond(100)))
	take(t, l, 10) // what was there is kept, and no more
	require.Equal(t, 900*ms, try(t, l, 90).RetryAfter)
}

func TestALoweredBurstKilledTheRefill(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 5, Now: c.now})
	require.NoError(t, l.SetBurst(2))
	take(t, l, 2)
	require.False(t, try(t, l, 1).Allowed)
	for range 10 {
		c.advance(100 * ms)
		take(t, l, 1)
	}
}

func TestARaisedRateWasCappedByTheOldOne(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.Per(5, time.Minute), Burst: 5, Now: c.now})
	take(t, l, 5)
	require.NoError(t, l.SetRate(sluice.Per(10, time.Minute)))
	require.NoError(t, l.SetBurst(10))
	c.advance(time.Minute)
	require.Equal(t, 10, l.Stats().Available)
}

func TestWhoIsInLineStaysThereWhenTheBurstFallsBelowHim(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(10), 5)
		c := call(t.Context(), l, 5, since)
		require.NoError(t, l.SetBurst(1))
		refused(t, l.Wait(t.Context(), 5), sluice.ErrTooLarge)
		require.Equal(t, went{500 * ms, nil}, <-c)
	})
}

func TestPauseHoldsTheLineAndLetsTokensGatherUpToTheBurst(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(10), 2)
		var all []<-chan went
		for range 4 {
			all = append(all, call(t.Context(), l, 1, since))
		}
		require.NoError(t, l.Pause(t.Context(), time.Second))
		require.NoError(t, l.Pause(t.Context(), 500*ms)) // a shorter one never shortens
		require.NoError(t, l.Pause(t.Context(), 0))
		require.Equal(t, 1300*ms, try(t, l, 1).RetryAfter)
		for i, at := range []time.Duration{1000 * ms, 1000 * ms, 1100 * ms, 1200 * ms} {
			require.Equal(t, went{at, nil}, <-all[i])
		}
	})
}

func TestAPauseOfAFullBucket(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 2, Now: c.now})
	require.NoError(t, l.Pause(t.Context(), time.Second))
	require.Equal(t, sluice.Decision{RetryAfter: time.Second, ResetAfter: time.Second}, try(t, l, 1))
	require.Zero(t, l.Stats().Available)
	c.advance(time.Second - 1)
	require.False(t, try(t, l, 1).Allowed)
	c.advance(1)
	require.True(t, try(t, l, 2).Allowed)
	require.ErrorIs(t, l.Pause(t.Context(), -1), sluice.ErrInvalid)
	require.ErrorIs(t, l.Pause(noContext, 1), sluice.ErrInvalid)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.Canceled, l.Pause(done, time.Hour))
	require.NoError(t, l.Pause(t.Context(), 1<<63-1)) // for ever
	require.Equal(t, sluice.Never, reserve(t, l, 1).Delay())
}

func TestCloseLeftCallersAsleep(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.Every(time.Hour), 1)
		r := reserve(t, l, 1)
		a, b := call(t.Context(), l, 1, since), call(t.Context(), l, 1, since)
		held := make(chan error, 1)
		go func() { held <- r.Wait(t.Context()) }()
		synctest.Wait()
		time.Sleep(time.Second)
		require.NoError(t, l.Close())
		for _, c := range []<-chan went{a, b} {
			w := <-c
			require.Equal(t, time.Second, w.at)
			refused(t, w.err, sluice.ErrClosed)
		}
		refused(t, <-held, sluice.ErrClosed)
		refused(t, r.Wait(t.Context()), sluice.ErrClosed)
		require.Equal(t, sluice.Never, r.Delay())
		r.Cancel()
		require.NoError(t, l.Close()) // again is a no-op
		refused(t, l.Wait(t.Context(), 0), sluice.ErrClosed)
		_, err := l.Try(t.Context(), 1)
		refused(t, err, sluice.ErrClosed)
		_, err = l.Reserve(t.Context(), 1)
		refused(t, err, sluice.ErrClosed)
		refused(t, l.SetRate(sluice.Unlimited), sluice.ErrClosed)
		refused(t, l.Pause(t.Context(), 1), sluice.ErrClosed)
		require.Zero(t, l.Stats().Waiting)
	})
}

package waiter_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

func TestAWriteLargerThanTheBurstFailed(t *testing.T) {
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 1})
	r := refused(t, l.Wait(t.Context(), 5), sluice.ErrTooLarge)
	require.Equal(t, 5, r.N)
	require.Equal(t, 1, r.Burst)
	for _, c := range []struct {
		rate     sluice.Rate
		burst, n int
		due      time.Duration
	}{
		{sluice.PerSecond(10), 1, 5, 400 * ms},
		{sluice.PerSecond(1 << 20), 64 << 10, 256 << 10, 187500 * time.Microsecond},
	} {
		bubble(t, func(t *testing.T, since func() time.Duration) {
			l := newLimiter(t, waiter.Config{Rate: c.rate, Burst: c.burst, AllowOversize: true})
			large := call(t.Context(), l, c.n, since)
			small := call(t.Context(), l, 1, since)
			require.Equal(t, went{c.due, nil}, <-large)
			require.Equal(t, went{c.due + c.rate.TimeFor(1), nil}, <-small)
		})
	}
}

func TestOneMoreThanTheBurstWasToldLaterForEver(t *testing.T) {
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(5), Burst: 5})
	_, err := l.Try(t.Context(), 6)
	require.Equal(t, sluice.Never, refused(t, err, sluice.ErrTooLarge).RetryAfter)
	take(t, l, 5)
	_, err = l.Try(t.Context(), 5000)
	refused(t, err, sluice.ErrTooLarge)
	_, err = l.Try(t.Context(), math.MaxInt)
	refused(t, err, sluice.ErrTooLarge)
}

func TestTryWaitAndEstimateDisagreed(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.Per(3, 2*time.Second), Burst: 3})
		ctx := t.Context()
		_, err := l.Try(ctx, 4)
		refused(t, err, sluice.ErrTooLarge)
		refused(t, l.Wait(ctx, 4), sluice.ErrTooLarge)
		_, err = l.Reserve(ctx, 4)
		refused(t, err, sluice.ErrTooLarge)
		take(t, l, 3)
		const due = 2 * time.Second
		require.Equal(t, due, try(t, l, 3).RetryAfter)
		require.Equal(t, due, reserve(t, l, 3).Delay())
		require.Equal(t, went{2 * due, nil}, <-call(ctx, l, 3, since))
	})
}

func TestAfterIdlingMoreThanTheBurstPassed(t *testing.T) {
	for _, c := range []struct {
		rate  sluice.Rate
		burst int
		idle  time.Duration
	}{
		{sluice.PerSecond(20), 100, 5 * time.Second},
		{sluice.PerSecond(5), 5, 2 * time.Second},
		{sluice.Per(700_000, time.Hour), 300, 12 * time.Hour},
		{sluice.PerSecond(1), 1, 290 * 365 * 24 * time.Hour},
	} {
		k := newClock()
		l := newLimiter(t, waiter.Config{Rate: c.rate, Burst: c.burst, Now: k.now})
		take(t, l, c.burst)
		k.advance(c.idle)
		for range c.burst {
			take(t, l, 1)
		}
		require.False(t, try(t, l, 1).Allowed)
	}
}

func TestThreeLimitsTogetherOverflowedAfterTwelveHours(t *testing.T) {
	c := newClock()
	limit := func(r sluice.Rate, burst int) sluice.Limiter {
		return newLimiter(t, waiter.Config{Rate: r, Burst: burst, Now: c.now})
	}
	all := sluice.All(limit(sluice.Per(700_000, time.Hour), 700_000), limit(sluice.Per(14_500, time.Minute), 14_500), limit(sluice.PerSecond(300), 300))
	c.advance(12 * time.Hour)
	passed := 0
	for range 400 {
		d, err := all.Try(t.Context(), 1)
		require.NoError(t, err)
		if d.Allowed {
			passed++
		}
	}
	require.Equal(t, 300, passed)
}

func TestATinyRateAllowedWithoutLimit(t *testing.T) {
	l := newLimiter(t, waiter.Config{Rate: sluice.Every(292 * 365 * 24 * time.Hour), Burst: 1})
	take(t, l, 1)
	d := try(t, l, 1)
	require.False(t, d.Allowed)
	require.Greater(t, d.RetryAfter, 291*365*24*time.Hour)
	// What lies beyond the end of time is Never, and can be waited for in vain.
	r := reserve(t, l, 1)
	require.Less(t, r.Delay(), sluice.Never)
	require.Equal(t, sluice.Never, reserve(t, l, 1).Delay())
}

func TestExtremeMaxWaitOverflowed(t *testing.T) {
	_, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(5), Burst: 1, MaxWait: math.MinInt64})
	require.ErrorIs(t, err, sluice.ErrInvalid)
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(5), Burst: 1, MaxWait: math.MaxInt64})
		take(t, l, 1)
		require.Equal(t, went{200 * ms, nil}, <-call(t.Context(), l, 1, since))
	})
}

func TestOddRatesLostPrecision(t *testing.T) {
	for _, rate := range []sluice.Rate{
		sluice.PerSecond(3), sluice.Per(700, time.Minute), sluice.Per(120_000, time.Minute), sluice.PerSecond(7),
		sluice.PerSecond(300_000_000), sluice.PerSecond(1_000_000_001), sluice.PerSecond(4_000_000_000),
		sluice.Per(10, 13*time.Second), sluice.Per(60, time.Hour), sluice.Every(10 * 365 * 24 * time.Hour),
	} {
		c := newClock()
		l := newLimiter(t, waiter.Config{Rate: rate, Burst: 1, Now: c.now})
		start := c.now()
		take(t, l, 1)
		// Deny, wait the told time, allow: always.
		for k := int64(1); k <= 25; k++ {
			if d := try(t, l, 1); !d.Allowed {
				c.advance(d.RetryAfter - 1)
				if d.RetryAfter > 1 {
					require.False(t, try(t, l, 1).Allowed, "%v: a nanosecond early", rate)
				}
				c.advance(1)
				require.True(t, try(t, l, 1).Allowed, "%v", rate)
			}
			require.GreaterOrEqual(t, c.now().Sub(start), rate.TimeFor(k), "%v: %d units", rate, k)
		}
		// Somebody always in line: the k-th unit is due at TimeFor(k), for ever.
		l = newLimiter(t, waiter.Config{Rate: rate, Burst: 1, Now: c.now})
		take(t, l, 1)
		start = c.now()
		for k := int64(1); k <= 25; k++ {
			r := reserve(t, l, 1)
			require.Equal(t, max(0, rate.TimeFor(k)-c.now().Sub(start)), r.Delay(), "%v: unit %d", rate, k)
		}
	}
}

func TestANegativeNCreditedTheBucket(t *testing.T) {
	l := drained(t, sluice.Every(time.Hour), 10)
	_, err := l.Try(t.Context(), -5)
	require.ErrorIs(t, err, sluice.ErrInvalid)
	require.ErrorContains(t, err, "n is -5")
	_, err = l.Reserve(t.Context(), math.MinInt)
	require.ErrorIs(t, err, sluice.ErrInvalid)
	require.Zero(t, l.Stats().Available)
}

func TestTheFirstCallAtTheZeroTimeFailed(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(0, math.MinInt64)} {
		c := &clock{t: at}
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 1, Now: c.now})
		take(t, l, 1)
		require.Equal(t, time.Second, try(t, l, 1).RetryAfter)
	}
}

func TestAHugeBurstWasNotCounted(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.Every(1000 * time.Hour), Burst: 1 << 60, Now: c.now})
	for range 1000 {
		take(t, l, 1)
	}
	require.Equal(t, 1<<60-1000, l.Stats().Available)
	take(t, l, 1<<60-1000)
	require.False(t, try(t, l, 1).Allowed)
	require.Equal(t, sluice.Never, try(t, l, 1<<60).RetryAfter)
}

func TestAnHourBackOnTheClockSleptAnHour(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		// The limiter's own clock is monotonic; a wall clock is not in it. With one that is given, the gap counts.
		l := drained(t, sluice.PerSecond(10), 1)
		require.Equal(t, went{100 * ms, nil}, <-call(t.Context(), l, 1, since))
	})
}

func TestAClockThatStandsStillMadeWaitSpin(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		c := newClock()
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 1, Now: c.now})
		take(t, l, 1)
		done := call(t.Context(), l, 1, since)
		time.Sleep(10 * time.Second) // real time: the limiter's has stood still
		select {
		case w := <-done:
			t.Fatal("went by a clock that stood still:", w)
		default:
		}
		c.advance(time.Second)
		require.NoError(t, (<-done).err)
	})
}

func TestADeadlineIsComparedByTheClockThatContextsRunOn(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		c := newClock() // years away
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 1, Now: c.now})
		take(t, l, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
		defer cancel()
		require.Equal(t, time.Second, refused(t, l.Wait(ctx, 1), sluice.ErrDeadline).RetryAfter)
	})
}

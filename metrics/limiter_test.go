package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/metrics"
	"github.com/fadf4e53/sluice/waiter"
)

func TestEachOutcomeIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(10), Burst: 2, MaxWait: 150 * ms, MaxWaiters: 1})
		require.NoError(t, err)
		c, o := newObserved(l)
		ctx := t.Context()
		var none context.Context
		require.NoError(t, o.Wait(ctx, 2)) // at once
		require.NoError(t, o.Wait(ctx, 1)) // 100 ms
		_, err = o.Try(ctx, 1)             // not_now
		require.NoError(t, err)
		soon, cancel := context.WithTimeout(ctx, 50*ms)
		defer cancel()
		require.ErrorIs(t, o.Wait(soon, 1), sluice.ErrDeadline)
		require.ErrorIs(t, o.Wait(ctx, 2), sluice.ErrMaxWait)
		_, err = o.Reserve(ctx, 3)
		require.ErrorIs(t, err, sluice.ErrTooLarge)
		_, err = o.Try(ctx, 3)
		require.ErrorIs(t, err, sluice.ErrTooLarge)

		leaving, leave := context.WithCancel(ctx)
		go func() {
			time.Sleep(60 * ms)
			leave()
		}()
		r, err := o.Reserve(ctx, 1)
		require.NoError(t, err)
		require.ErrorIs(t, o.Wait(leaving, 1), sluice.ErrFull)
		r.Cancel()
		require.ErrorIs(t, o.Wait(leaving, 1), context.Canceled) // in line
		require.ErrorIs(t, o.Wait(leaving, 1), context.Canceled) // never was in line: counts nothing
		require.ErrorIs(t, o.Wait(ctx, -1), sluice.ErrInvalid)
		require.ErrorIs(t, o.Wait(none, 1), sluice.ErrInvalid)
		require.NoError(t, o.Wait(ctx, 0))
		_, err = o.Try(ctx, 0)
		require.NoError(t, err)
		_, err = o.Reserve(ctx, 0)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.ErrorIs(t, o.Wait(ctx, 1), sluice.ErrClosed)

		require.Equal(t, map[string]float64{
			"granted_total api":           2,
			"units_total api":             3,
			"wait_seconds_count api":      2,
			"wait_seconds_sum api":        0.1,
			"refused_total api not_now":   1,
			"refused_total api deadline":  1,
			"refused_total api max_wait":  1,
			"refused_total api full":      1,
			"refused_total api too_large": 2,
			"refused_total api closed":    1,
			"canceled_total api":          2,
			"errors_total api":            2,
		}, scrape(t, c))
	})
}

func TestAvailableAndWaitingAreWhatTheyAreNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newObserved(perSecond(t, 1, 5))
		require.Equal(t, map[string]float64{"available_units api": 5}, scrape(t, c))
		require.NoError(t, o.Wait(t.Context(), 5))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { require.NoError(t, o.Wait(t.Context(), 1)) })
		}
		synctest.Wait()
		s := scrape(t, c)
		require.Zero(t, s["available_units api"])
		require.Equal(t, 3.0, s["waiting api"])
		time.Sleep(1500 * ms)
		require.Equal(t, 2.0, scrape(t, c)["waiting api"])
		all.Wait()
		require.Zero(t, scrape(t, c)["waiting api"])
	})
}

func TestWaitsFallIntoTheirBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newObserved(perSecond(t, 10, 3))
		for range 5 { // three at once, then two of 100 ms
			require.NoError(t, o.Wait(t.Context(), 1))
		}
		h := histogram(t, c)
		require.EqualValues(t, 5, h.GetSampleCount())
		require.InDelta(t, 0.2, h.GetSampleSum(), 1e-12)
		for _, b := range h.Bucket {
			want := uint64(3)
			if b.GetUpperBound() >= 0.1 {
				want = 5
			}
			require.Equal(t, want, b.GetCumulativeCount(), "le %v", b.GetUpperBound())
		}
		require.Zero(t, h.Bucket[0].GetUpperBound(), "calls that went at once have a bucket of their own")
		require.EqualValues(t, 3, h.GetZeroCount(), "and are the zeros of the native histogram")
		require.Equal(t, []int64{2}, h.PositiveDelta)
	})
}

func TestAPacersTryHasWaitedForItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := leaky.New(leaky.Config{Rate: sluice.PerSecond(4), Capacity: 3})
		require.NoError(t, err)
		c, o := newObserved(p)
		for range 3 {
			_, err := o.Try(t.Context(), 1)
			require.NoError(t, err)
		}
		_, err = o.Try(t.Context(), 1)
		require.NoError(t, err)
		s := scrape(t, c)
		require.Equal(t, 3.0, s["granted_total api"])
		require.Equal(t, 0.75, s["wait_seconds_sum api"])
		require.Equal(t, 1.0, s["refused_total api not_now"])
	})
}

// Who asks a pacer for what may start now, as httplimit does, takes back what may not: that was not granted.
func TestAPacersTryThatIsTakenBackIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := leaky.New(leaky.Config{Rate: sluice.PerSecond(4), Capacity: 3})
		require.NoError(t, err)
		c, o := newObserved(p)
		var all [3]sluice.Reservation
		for i := range all {
			all[i], _, err = o.(sluice.TryReserver).TryReserve(t.Context(), 1)
			require.NoError(t, err)
		}
		require.Equal(t, 2.0, scrape(t, c)["waiting api"])
		all[1].Cancel()
		time.Sleep(500 * ms)
		require.Equal(t, map[string]float64{
			"granted_total api": 2, "units_total api": 2, "canceled_total api": 1, "wait_seconds_count api": 2, "wait_seconds_sum api": 0.5,
			"available_units api": 2,
		}, scrape(t, c))
	})
}

func TestATryOfAForeignLimiterCanBeTakenBack(t *testing.T) {
	l := perSecond(t, 1, 1)
	c, o := newObserved(struct{ sluice.Limiter }{l})
	r, d, err := o.(sluice.TryReserver).TryReserve(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	require.Zero(t, l.Stats().Available)
	r.Cancel()
	require.Equal(t, 1, l.Stats().Available)
	require.Equal(t, 1.0, scrape(t, c)["granted_total api"])
}

func TestAnOutageIsAnErrorAndNotARefusal(t *testing.T) {
	outage := fmt.Errorf("redis cannot be asked: %w", context.DeadlineExceeded) // of the trip, not of the caller's ctx
	c, o := newObserved(&fake{wait: func(context.Context, int) error { return outage }})
	require.Equal(t, outage, o.Wait(t.Context(), 1))
	require.Equal(t, 1.0, scrape(t, c)["errors_total api"])
	require.Zero(t, scrape(t, c)["canceled_total api"])
}

// The client gives up while the limiter finds out that it cannot be asked: that is still an outage.
func TestAnOutageIsAnErrorAlsoWhenTheCallerHasLeft(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	c, o := newObserved(&fake{wait: func(ctx context.Context, _ int) error {
		leave()
		<-ctx.Done()
		return errors.New("redis cannot be asked")
	}})
	require.Error(t, o.Wait(ctx, 1))
	require.Equal(t, map[string]float64{"errors_total api": 1}, scrape(t, c))
}

func TestAReasonOfALimitersOwnIsOther(t *testing.T) {
	c, o := newObserved(&fake{wait: func(context.Context, int) error {
		return &sluice.Refusal{Reason: errors.New("on holiday"), N: 1}
	}})
	require.Error(t, o.Wait(t.Context(), 1))
	require.Equal(t, 1.0, scrape(t, c)["refused_total api other"])
}

// A limiter may go on listening to a context whose call has ended. That is not a call in line.
func TestWhoListensTooLateDoesNotWait(t *testing.T) {
	var kept context.Context
	c, o := newObserved(&fake{wait: func(ctx context.Context, _ int) error { kept = ctx; return nil }})
	require.NoError(t, o.Wait(t.Context(), 1))
	require.Equal(t, t.Context().Done(), kept.Done())
	s := scrape(t, c)
	require.Zero(t, s["waiting api"])
	require.Equal(t, 1.0, s["granted_total api"])
	require.Zero(t, s["wait_seconds_sum api"])
}

// The Gate, and others, know limiters by ==.
func TestTheSameLimiterUnderTheSameNameIsEqual(t *testing.T) {
	c := metrics.New()
	l := perSecond(t, 1, 1)
	require.True(t, c.Limiter("a", l) == c.Limiter("a", l))
	require.False(t, c.Limiter("a", l) == c.Limiter("b", l))
	require.False(t, c.Limiter("a", l) == c.Limiter("a", perSecond(t, 1, 1)))
	m, err := keyed.New(keyed.Config[string]{
		New:     func(string) (sluice.Limiter, error) { return perSecond(t, 1, 1), nil },
		MaxKeys: 3,
	})
	require.NoError(t, err)
	require.True(t, c.Limiter("user", m.For("k")) == c.Limiter("user", m.For("k")))
	require.False(t, c.Limiter("user", m.For("k")) == c.Limiter("user", m.For("l")))
}

type uncomparable struct {
	sluice.Limiter
	_ []int
}

func TestALimiterThatCannotBeComparedIsObserved(t *testing.T) {
	c := metrics.New()
	for range 2 {
		o := c.Limiter("api", uncomparable{Limiter: perSecond(t, 1, 1)})
		require.NoError(t, o.Wait(t.Context(), 1))
	}
	require.Equal(t, 2.0, scrape(t, c)["granted_total api"])
}

// A keyed.Map closes what it drops if it can be closed, and must not be told that what cannot be closed can.
func TestItCanBeClosedIfTheLimiterCan(t *testing.T) {
	c := metrics.New()
	l := perSecond(t, 1, 1)
	closable, ok := c.Limiter("a", l).(interface{ Close() error })
	require.True(t, ok)
	require.NoError(t, closable.Close())
	require.ErrorIs(t, l.Wait(t.Context(), 1), sluice.ErrClosed)
	_, ok = c.Limiter("b", struct{ sluice.Limiter }{l}).(interface{ Close() error })
	require.False(t, ok)
}

func TestPauseAndStatsAreTheLimitersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perSecond(t, 10, 2)
		_, o := newObserved(l)
		require.NoError(t, o.Pause(t.Context(), 300*ms))
		began := time.Now()
		require.NoError(t, o.Wait(t.Context(), 1))
		require.Equal(t, 300*ms, time.Since(began))
		require.NoError(t, l.SetRate(sluice.PerSecond(1)))
		require.Equal(t, l.Stats(), o.Stats())
		require.Equal(t, sluice.PerSecond(1), o.Stats().Rate)
	})
}

// A user's limiter for each request would be a series for each user, and a leak: they share one name.
func TestLimitersShareAName(t *testing.T) {
	m, err := keyed.New(keyed.Config[int]{
		New:     func(int) (sluice.Limiter, error) { return perSecond(t, 1, 2), nil },
		MaxKeys: 101,
	})
	require.NoError(t, err)
	c := metrics.New()
	for user := range 101 {
		require.NoError(t, c.Limiter("user", m.For(user)).Wait(t.Context(), 1))
	}
	s := scrape(t, c)
	require.Equal(t, 101.0, s["granted_total user"])
	require.Equal(t, 101.0, s["units_total user"])
	require.NotContains(t, s, "available_units user")
}

func TestEveryCallOfAStressIsCounted(t *testing.T) {
	l, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(20_000), Burst: 10, MaxWait: 20 * ms})
	require.NoError(t, err)
	c, o := newObserved(l)
	const callers, calls = 16, 100
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := range calls {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(j%7)*ms)
				switch (i + j) % 4 {
				case 0:
					_, _ = o.Try(ctx, 1)
				case 1:
					if r, err := o.Reserve(t.Context(), 1); err == nil {
						_ = r.Wait(ctx)
					}
				default:
					_ = o.Wait(ctx, 1)
				}
				cancel()
			}
		})
	}
	for range 20 {
		scrape(t, c)
	}
	all.Wait()
	s, bare := scrape(t, c), l.Stats()
	require.EqualValues(t, bare.Granted, s["granted_total api"])
	require.EqualValues(t, bare.Canceled, s["canceled_total api"])
	refused := 0.0
	for _, reason := range []string{"not_now", "deadline", "max_wait", "full", "too_large", "closed", "other"} {
		refused += s["refused_total api "+reason]
	}
	require.EqualValues(t, bare.Refused, refused)
	require.Equal(t, s["granted_total api"], s["wait_seconds_count api"])
	require.Zero(t, s["waiting api"])
}

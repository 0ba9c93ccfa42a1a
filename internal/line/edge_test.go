package line

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

type handClock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *handClock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *handClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func TestACancelAtTheTurnDoesNotHoldAStrictPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("leaky", Config{Rate: sluice.PerSecond(1), Burst: 10, Pacer: true, Strict: true})
		require.NoError(t, l.Wait(t.Context(), 1))
		r, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- r.Wait(context.Background()) }()
		synctest.Wait()
		l.oversleep(time.Second)
		r.Cancel() // settles: the turn has come; then gives it back
		<-done
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, l.Wait(ctx, 1), "an hour later")
	})
}

func TestACancelAtTheTurnEarnsNoCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("waiter", Config{Rate: sluice.PerSecond(1000), Burst: 1})
		require.NoError(t, l.Wait(t.Context(), 1))
		r, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- r.Wait(context.Background()) }()
		synctest.Wait()
		l.oversleep(ms + 1) // due at 1 ms, 1 ns late
		r.Cancel()
		time.Sleep(time.Hour) // idle
		n := 0
		for {
			d, err := l.Try(context.Background(), 1)
			require.NoError(t, err)
			if !d.Allowed || n > 5_000_000 {
				break
			}
			n++
		}
		require.Equal(t, 1, n, "units at once after an idle hour, burst 1")
	})
}

func TestWaitAndCancelInParallel(t *testing.T) {
	l := New("waiter", Config{Rate: sluice.Every(20 * time.Microsecond), Burst: 1})
	for range 2000 {
		r, err := l.Reserve(context.Background(), 1)
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Wait(context.Background()) })
		wg.Go(func() {
			for r.Delay() > 0 {
			}
			r.Cancel()
		})
		wg.Wait()
	}
}

func TestAClockBeforeNewFindsAFullBucket(t *testing.T) {
	c := &handClock{t: time.Unix(1000, 0)}
	l := New("waiter", Config{Rate: sluice.PerSecond(1), Burst: 10, Now: c.now})
	c.add(-1)
	d, err := l.Try(context.Background(), 1)
	require.NoError(t, err)
	require.True(t, d.Allowed, "%+v", d)
}

func TestAClockBeforeNewDoesNotSleepForEver(t *testing.T) {
	c := &handClock{t: time.Unix(1000, 0)}
	l := New("waiter", Config{Rate: sluice.PerSecond(1), Burst: 10, Now: c.now})
	c.add(-time.Millisecond)
	done := make(chan error, 1)
	go func() { done <- l.Wait(context.Background(), 1) }()
	time.Sleep(50 * ms)
	c.add(time.Second) // clock right again
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(3 * time.Second):
		l.mu.Lock()
		t.Errorf("still asleep: sleepers %d, armed %d, head %v", l.sleepers, l.armed, l.head != nil)
		l.mu.Unlock()
		l.Close()
	}
}

func TestTheEndOfTimeLetsNothingGo(t *testing.T) {
	c := &handClock{}
	l := New("waiter", Config{Rate: sluice.PerSecond(1), Burst: 1, Now: c.now})
	c.t = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	n := 0
	for range 1000 {
		r, err := l.Reserve(context.Background(), 1)
		require.NoError(t, err)
		if r.Delay() == 0 {
			n++
		}
	}
	require.Equal(t, 1, n, "granted at once, burst 1")
}

func TestAWaitThatIsLongerThanADurationIsNever(t *testing.T) {
	c := &handClock{t: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	l := New("waiter", Config{Rate: sluice.PerSecond(1), Burst: 1, Now: c.now, MaxWait: time.Second})
	_, _ = l.Try(context.Background(), 1)
	c.t = time.Time{}
	d, err := l.Try(context.Background(), 1)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.Equal(t, sluice.Never, d.RetryAfter)
	_, err = l.Reserve(context.Background(), 1)
	require.ErrorIs(t, err, sluice.ErrMaxWait)
}

func TestNeverIsNeverHoweverLongTheClockHasRun(t *testing.T) {
	c := &handClock{t: time.Unix(1000, 0)}
	l := New("waiter", Config{Rate: sluice.Every(290 * 365 * 24 * time.Hour), Burst: 3, Now: c.now})
	_, _ = l.Try(context.Background(), 3)
	c.add(time.Second)
	d, err := l.Try(context.Background(), 3)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	r, err := l.Reserve(context.Background(), 3)
	require.NoError(t, err)
	require.Equal(t, sluice.Never, r.Delay())
	require.Equal(t, sluice.Never, d.RetryAfter)
	require.Equal(t, sluice.Never, d.ResetAfter)
}

func TestPausedForEverIsNever(t *testing.T) {
	c := &handClock{t: time.Unix(1000, 0)}
	l := New("waiter", Config{Rate: sluice.PerSecond(1), Burst: 3, Now: c.now})
	c.add(time.Second)
	require.NoError(t, l.Pause(context.Background(), sluice.Never))
	d, err := l.Try(context.Background(), 3)
	require.NoError(t, err)
	require.Equal(t, sluice.Never, d.RetryAfter)
}

func TestUnitsOfAToldStartThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("leaky", Config{Rate: sluice.PerSecond(1), Burst: 10, Pacer: true})
		_, err := l.Try(t.Context(), 1)
		require.NoError(t, err)
		r, d, err := l.TryReserve(t.Context(), 5)
		require.NoError(t, err)
		require.Equal(t, time.Second, d.Delay)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(ms); cancel() }()
		require.ErrorIs(t, r.Wait(ctx), context.Canceled)
		require.EqualValues(t, 1, l.Stats().Units)
		r2, _, _ := l.TryReserve(t.Context(), 5)
		dl, c2 := context.WithTimeout(t.Context(), ms)
		defer c2()
		require.ErrorIs(t, r2.Wait(dl), sluice.ErrDeadline)
		require.EqualValues(t, 1, l.Stats().Units)
	})
}

func TestManyReservationsDoNotCostTheLastItsUnits(t *testing.T) {
	c := &handClock{t: time.Unix(1000, 0)}
	l := New("waiter", Config{Rate: sluice.Every(time.Hour), Burst: 1000, Now: c.now})
	for range 64 {
		_, err := l.Reserve(context.Background(), 1)
		require.NoError(t, err)
	}
	require.Equal(t, 936, l.Stats().Available)
	r, err := l.Reserve(context.Background(), 900)
	require.NoError(t, err)
	r.Cancel()
	require.Equal(t, 936, l.Stats().Available)
}

func TestRetryAfterOverAHoleIsTrue(t *testing.T) {
	ctx := context.Background()
	c := &handClock{t: time.Unix(1000, 0)}
	l := New("leaky", Config{Rate: sluice.PerSecond(1), Burst: 10, Pacer: true, Now: c.now})
	_, _ = l.Try(ctx, 1)
	r, err := l.Reserve(ctx, 4)
	require.NoError(t, err)
	d, err := l.Try(ctx, 4)
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, d.Delay)
	r.Cancel()
	d, err = l.Try(ctx, 10)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	c.add(d.RetryAfter)
	d2, err := l.Try(ctx, 10)
	require.NoError(t, err)
	require.True(t, d2.Allowed, "after %v: %+v", d.RetryAfter, d2)
}

func TestUnitsDoNotWrap(t *testing.T) {
	l := New("waiter", Config{Rate: sluice.Unlimited, Burst: math.MaxInt})
	for range 3 {
		require.NoError(t, l.Wait(context.Background(), math.MaxInt))
	}
	require.Equal(t, uint64(math.MaxUint64), l.Stats().Units)
}

func TestAStrictStartThatIsLateDoesNotComeTooCloseToAToldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("leaky", Config{Rate: sluice.PerSecond(1), Burst: 10, Pacer: true, Strict: true})
		require.NoError(t, l.Wait(t.Context(), 1))
		r, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		d, err := l.Try(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, d.Delay) // told: starts at 2 s
		r.Cancel()
		done := make(chan time.Duration, 1)
		go func() { _ = l.Wait(t.Context(), 1); done <- l.since() }()
		synctest.Wait()
		l.oversleep(900 * ms)
		at := <-done // timer fires at 1 s of ours, which is 1.9 s
		require.False(t, at > time.Second && at < 3*time.Second && at != time.Second, "started at %v, told slot at 2s", at)
	})
}

func TestTwoWhoSleepOnOneReservationGetTheirContextsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("waiter", Config{Rate: sluice.PerSecond(1), Burst: 1})
		require.NoError(t, l.Wait(t.Context(), 1))
		r, _ := l.Reserve(t.Context(), 1)
		ctx, cancel := context.WithCancel(t.Context())
		out := make(chan error, 2)
		for range 2 {
			go func() { out <- r.Wait(ctx) }()
		}
		synctest.Wait()
		cancel()
		require.Equal(t, context.Canceled, <-out)
		require.Equal(t, context.Canceled, <-out)
	})
}

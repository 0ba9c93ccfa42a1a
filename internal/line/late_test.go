package line

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

const ms = time.Millisecond

// oversleep makes every timer that is set now fire late by d, as far as the Line can see.
func (l *Line) oversleep(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base = l.base.Add(-d)
}

// since is what the Line's clock says.
func (l *Line) since() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.nowLocked())
}

func waitLate(t *testing.T, l *Line, late time.Duration) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- l.Wait(t.Context(), 1) }()
	synctest.Wait()
	l.oversleep(late)
	require.NoError(t, <-done)
	synctest.Wait()
}

// burst takes what can start at once, and returns how many, and when the next could.
func burst(t *testing.T, l *Line) (int, time.Duration) {
	t.Helper()
	for n := 0; ; n++ {
		d, err := l.Try(context.Background(), 1)
		require.NoError(t, err)
		if !d.Allowed || d.Delay > 0 {
			return n, d.RetryAfter + d.Delay
		}
	}
}

func TestWhoWasWokenLateMayCatchUpByThatMuch(t *testing.T) {
	for _, pacer := range []bool{false, true} {
		held := 1
		if pacer {
			held = 100 // a pacer's line is in its bucket
		}
		synctest.Test(t, func(t *testing.T) {
			l := New("test", Config{Rate: sluice.PerSecond(1000), Burst: held, Pacer: pacer})
			require.NoError(t, l.Wait(t.Context(), 1))
			waitLate(t, l, 10*ms+ms/2) // due at 1 ms, seen to run at 11.5 ms
			require.Equal(t, 11*ms+ms/2, l.since())
			n, next := burst(t, l)
			require.Equal(t, 10, n, "units that were due while our timer slept")
			require.Equal(t, ms/2, next)
		})
	}
}

func TestTheCreditEndsAfterAnEqualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("test", Config{Rate: sluice.PerSecond(1000), Burst: 1})
		require.NoError(t, l.Wait(t.Context(), 1))
		waitLate(t, l, 10*ms)
		time.Sleep(10*ms - 1)
		n, _ := burst(t, l)
		require.Equal(t, 10, n, "idle time has earned nothing")

		waitLate(t, l, 10*ms)
		time.Sleep(10 * ms)
		n, _ = burst(t, l)
		require.Equal(t, 1, n, "a full bucket, and no credit")
	})
}

func TestNobodyElsesLatenessIsCredited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("test", Config{Rate: sluice.PerSecond(1000), Burst: 1})
		require.NoError(t, l.Wait(t.Context(), 1))
		l.oversleep(10 * ms) // nobody sleeps: that is idle time
		n, _ := burst(t, l)
		require.Equal(t, 1, n)

		r, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		l.oversleep(10 * ms) // a reservation that nobody sleeps on is not woken late
		require.Zero(t, r.Delay())
		n, _ = burst(t, l)
		require.Equal(t, 1, n)
	})
}

func TestAPauseOrANewRateEndsTheCredit(t *testing.T) {
	for name, change := range map[string]func(*Line) error{
		"pause": func(l *Line) error { return l.Pause(context.Background(), 1) },
		"rate":  func(l *Line) error { return l.SetRate(sluice.PerSecond(1001)) },
		"burst": func(l *Line) error { return l.SetBurst(1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New("test", Config{Rate: sluice.PerSecond(1000), Burst: 1})
				require.NoError(t, l.Wait(t.Context(), 1))
				waitLate(t, l, 10*ms)
				require.NoError(t, change(l))
				time.Sleep(1 * time.Nanosecond)
				n, _ := burst(t, l)
				require.Equal(t, 1, n)
			})
		})
	}
}

func TestStrictStartsAreNeverCloserThanTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("test", Config{Rate: sluice.PerSecond(1000), Burst: 100, Pacer: true, Strict: true})
		var starts []time.Duration
		done := make(chan time.Duration)
		for range 20 {
			go func() {
				_ = l.Wait(t.Context(), 1)
				done <- l.since()
			}()
			synctest.Wait()
		}
		for i := range 20 {
			if i%3 == 1 {
				l.oversleep(7 * ms / 2)
			}
			starts = append(starts, <-done)
		}
		for i := 1; i < len(starts); i++ {
			require.GreaterOrEqual(t, starts[i]-starts[i-1], ms, "start %d", i)
		}
		require.Len(t, starts, 20)
	})
}

func TestNoTimerRunsWhenNobodySleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("test", Config{Rate: sluice.Every(time.Hour), Burst: 1})
		require.NoError(t, l.Wait(t.Context(), 1))
		_, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		require.EqualValues(t, unarmed, l.armed)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		go func() { _ = l.Wait(ctx, 1) }()
		synctest.Wait()
		require.NotEqualValues(t, unarmed, l.armed)
		cancel()
		synctest.Wait()
		require.EqualValues(t, unarmed, l.armed)
		go func() { _ = l.Wait(t.Context(), 1) }()
		synctest.Wait()
		require.NotEqualValues(t, unarmed, l.armed)
		require.NoError(t, l.Close())
		require.EqualValues(t, unarmed, l.armed)
	})
}

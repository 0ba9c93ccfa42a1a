package line

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

func TestAStrictToldStartThatWokeLateHoldsTheNextOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New("leaky", Config{Rate: sluice.PerSecond(1), Burst: 10, Pacer: true, Strict: true})
		require.NoError(t, l.Wait(t.Context(), 1))
		r, d, err := l.TryReserve(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, time.Second, d.Delay)
		starts := make(chan time.Duration, 2)
		go func() { _ = r.Wait(t.Context()); starts <- l.since() }()
		synctest.Wait()
		go func() { _ = l.Wait(t.Context(), 1); starts <- l.since() }()
		synctest.Wait()
		l.oversleep(900 * ms)
		first, second := <-starts, <-starts
		require.Equal(t, 1900*ms, first)
		require.Equal(t, 2900*ms, second)
	})
}

func TestATurnThatNeverComesIsNotTold(t *testing.T) {
	c := &handClock{t: time.Unix(0, 0)}
	l := New("leaky", Config{Rate: sluice.Every(1<<63 - 1), Burst: 10, Pacer: true, Now: c.now})
	require.NoError(t, l.Wait(t.Context(), 1))
	r, err := l.Reserve(t.Context(), 1) // 292 years from now
	require.NoError(t, err)
	was := r.Delay()
	d, err := l.Try(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.Equal(t, sluice.Never, d.RetryAfter)
	require.Equal(t, was, r.Delay(), "set back by a start that never comes")
}

func TestAnUnlimitedPacerInAPauseKeepsItsCapacity(t *testing.T) {
	c := &handClock{t: time.Unix(0, 0)}
	l := New("leaky", Config{Rate: sluice.Unlimited, Burst: 3, Pacer: true, Now: c.now})
	require.NoError(t, l.Pause(t.Context(), time.Second))
	_, err := l.Reserve(t.Context(), 2)
	require.NoError(t, err)
	require.InDelta(t, 2, l.Level(), 0)
	c.add(100 * ms)
	for range 2 {
		d, err := l.Try(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, sluice.Decision{RetryAfter: 900 * ms, ResetAfter: 900 * ms, Remaining: 1}, d)
	}
	d, err := l.Try(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, sluice.Decision{Allowed: true, Delay: 900 * ms, ResetAfter: 900 * ms}, d)
	_, err = l.Reserve(t.Context(), 1)
	require.ErrorIs(t, err, sluice.ErrFull)
	c.add(900 * ms)
	d, err = l.Try(t.Context(), 3)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	require.Zero(t, d.Delay)
}

func TestAClockThatStandsStillJustBeforeATurnIsNotSpunOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		start, stop := time.Now(), time.Second-1
		now := func() time.Time {
			looks.Add(1)
			return start.Add(min(time.Since(start), stop))
		}
		l := New("waiter", Config{Rate: sluice.PerSecond(1), Burst: 1, Now: now})
		require.NoError(t, l.Wait(t.Context(), 1))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = l.Wait(ctx, 1) }()
		time.Sleep(time.Second + 10*ms)
		require.LessOrEqual(t, looks.Load(), int64(20))
		cancel()
		synctest.Wait()
	})
}

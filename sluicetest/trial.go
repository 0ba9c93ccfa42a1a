package sluicetest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// hourly is a rate at which nothing changes while a case runs, whatever the clock.
var hourly = sluice.Every(time.Hour)

var background = context.Background()

// A trial is one check that is being run on one kind.
type trial struct {
	*testing.T
	kind   Kind
	began  time.Time
	bubble bool // time is virtual
}

// rested makes a limiter of which nothing has been taken.
func (t *trial) rested(rate sluice.Rate, burst int) sluice.Limiter {
	t.Helper()
	l := t.kind.New(t.T, rate, burst)
	require.NotNil(t, l, "Kind.New made nothing")
	return l
}

// exhausted makes a limiter of which all has been taken: nothing remains, and Try(1) is refused for 1/rate.
func (t *trial) exhausted(rate sluice.Rate, burst int) sluice.Limiter {
	t.Helper()
	l := t.rested(rate, burst)
	d, err := l.Try(background, burst)
	require.NoError(t, err)
	require.True(t, d.Allowed, "a limiter at rest must let its whole burst of %d go: %+v", burst, d)
	return l
}

// room is how much more than the burst a pacer's bucket holds in spent, so that a line can stand in it.
const room = 2000

// spent makes a limiter of which nothing can go now, and in whose line there is room: the next unit goes in 1/rate.
func (t *trial) spent(rate sluice.Rate, burst int) sluice.Limiter {
	t.Helper()
	if !t.kind.Paced {
		return t.exhausted(rate, burst)
	}
	l := t.rested(rate, burst+room)
	require.NoError(t, l.Wait(background, 1))
	return l
}

// due returns how long after spent n units go that have ahead units before them in the line.
func (t *trial) due(rate sluice.Rate, ahead, n int) time.Duration {
	if t.kind.Paced {
		return rate.TimeFor(int64(1 + ahead)) // its own n only delays those behind it
	}
	return rate.TimeFor(int64(ahead + n))
}

// since returns how long the check has been running.
func (t *trial) since() time.Duration { return time.Since(t.began) }

// until sleeps until the check has been running for d, and everything due by then has happened. Virtual time only.
func (t *trial) until(d time.Duration) {
	time.Sleep(d - t.since())
	synctest.Wait()
}

// lasts checks a duration that a limiter has told: to the nanosecond in virtual time. On the real clock it may have
// got shorter while the check ran; rates are chosen so that a minute decides nothing.
func (t *trial) lasts(want, got time.Duration, what string) {
	t.Helper()
	if t.bubble {
		require.Equal(t, want, got, what)
		return
	}
	require.LessOrEqual(t, got, want, what)
	require.Greater(t, got, want-time.Minute, what)
}

// atOnce checks that f does not block.
func (t *trial) atOnce(f func()) {
	t.Helper()
	if t.bubble {
		before := t.since()
		f()
		require.Equal(t, before, t.since(), "it must return at once; it returned at the second instant")
		return
	}
	alarm := time.AfterFunc(30*time.Second, func() { panic("sluicetest: " + t.Name() + ": still blocked after 30s") })
	defer alarm.Stop()
	f()
}

// takesNothing checks that f returns at once and leaves l as it was. Only refusals may be counted.
func (t *trial) takesNothing(l sluice.Limiter, f func()) {
	t.Helper()
	before := t.look(l)
	t.atOnce(f)
	require.Equal(t, before, t.look(l), "it must leave the limiter as it was")
}

// looks is what a call that takes nothing must not change.
type looks struct {
	Decision  sluice.Decision
	Available int
	Waiting   int
	Granted   uint64
	Units     uint64
}

func (t *trial) look(l sluice.Limiter) looks {
	t.Helper()
	d, err := l.Try(background, 0)
	require.NoError(t, err, "Try of 0")
	if !t.bubble {
		d.ResetAfter = 0 // it shrinks by itself
	}
	s := l.Stats()
	return looks{d, s.Available, s.Waiting, s.Granted, s.Units}
}

// refused checks that err says no to n units for this reason, and returns it.
func (t *trial) refused(err, reason error, n int) *sluice.Refusal {
	t.Helper()
	require.ErrorIs(t, err, reason)
	var r *sluice.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, n, r.N, "Refusal.N")
	return r
}

// reserve is Reserve, which must not fail or block.
func (t *trial) reserve(l sluice.Limiter, n int) sluice.Reservation {
	t.Helper()
	var r sluice.Reservation
	t.atOnce(func() {
		var err error
		r, err = l.Reserve(background, n)
		require.NoError(t, err)
		require.NotNil(t, r)
	})
	return r
}

// try is Try, which must not fail or block.
func (t *trial) try(l sluice.Limiter, n int) sluice.Decision {
	t.Helper()
	var d sluice.Decision
	t.atOnce(func() {
		var err error
		d, err = l.Try(background, n)
		require.NoError(t, err)
	})
	if d.Allowed {
		require.Zero(t, d.RetryAfter, "RetryAfter of an allowed Try")
	} else {
		require.Zero(t, d.Delay, "Delay of a refused Try")
		require.Positive(t, d.RetryAfter, "RetryAfter of a refused Try")
	}
	return d
}

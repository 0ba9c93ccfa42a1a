package sluicetest

import (
	"runtime"
	"sync"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var cancelChecks = []check{
	{name: "cancel/before the turn gives back everything", run: cancelBefore},
	{name: "cancel/at the turn gives back everything", run: cancelAtTurn},
	{name: "cancel/after the turn lets the next in line go at once", run: cancelForTheNext, clock: virtual},
	{name: "cancel/after the turn gives back what has not been made up since", run: cancelLater, clock: virtual},
	{name: "cancel/after the turn never gives more than the burst", run: cancelMuchLater, clock: virtual},
	{name: "cancel/after their turns two give no more than the law allows", run: cancelTwo, clock: virtual, only: bursts},
	{name: "cancel/Units is net of what came back", run: cancelNetUnits, clock: virtual, only: bursts},
	{name: "cancel/at the turn, before the sleeper runs, holds nobody up", run: cancelWhileWaking, clock: virtual},
	{name: "cancel/at the turn, before the sleeper runs, earns nothing", run: cancelEarnsNothing, clock: realTime},
	{name: "cancel/again is a no-op", run: cancelAgain},
	{name: "cancel/from many goroutines counts once", run: cancelTogether},
	{name: "cancel/wakes who sleeps on it, and Delay is Never", run: cancelWakes},
}

func cancelBefore(t *trial) {
	l := t.spent(hourly, 3)
	before := t.look(l)
	r := t.reserve(l, 3)
	behind := t.reserve(l, 1)
	require.Equal(t, 2, l.Stats().Waiting)
	r.Cancel()
	t.lasts(time.Hour, behind.Delay(), "the Delay of the one behind, who must have moved up")
	behind.Cancel()
	require.Equal(t, before, t.look(l))
}

func cancelAtTurn(t *trial) {
	for range 10 {
		l := t.rested(hourly, 5)
		units := l.Stats().Units
		r := t.reserve(l, 5)
		require.Zero(t, r.Delay())
		r.Cancel()
		d := t.try(l, 0)
		require.Equal(t, 5, d.Remaining)
		require.Equal(t, units, l.Stats().Units)
		require.True(t, t.try(l, 5).Allowed)
	}
}

func cancelForTheNext(t *trial) {
	l := t.rested(sluice.PerSecond(1), 1)
	if t.kind.Paced {
		l = t.rested(sluice.PerSecond(1), 2) // the pacer's line stands in the bucket
	}
	r := t.reserve(l, 1)
	next := t.join(l, 1)
	t.until(200 * ms)
	r.Cancel()
	t.goes(next, 200*ms)
}

func cancelLater(t *trial) {
	l := t.rested(sluice.PerSecond(10), 10)
	r := t.reserve(l, 10)
	t.until(350 * ms) // 3.5 have been made up
	r.Cancel()
	d := t.try(l, 0)
	require.Equal(t, 10, d.Remaining)
	require.Zero(t, d.ResetAfter)
	require.True(t, t.try(l, 10).Allowed)
	require.Equal(t, 100*ms, t.try(l, 1).RetryAfter)
}

func cancelMuchLater(t *trial) {
	l := t.rested(sluice.PerSecond(10), 10)
	r := t.reserve(l, 6)
	t.until(time.Hour) // all made up: nothing is left to give back
	require.True(t, t.try(l, 10).Allowed)
	t.atOnce(r.Cancel)
	require.Equal(t, 100*ms, t.try(l, 1).RetryAfter)
}

func cancelNetUnits(t *trial) {
	l := t.rested(sluice.PerSecond(10), 10)
	late, soon := t.reserve(l, 6), t.reserve(l, 4)
	t.until(200 * ms) // 2 have been made up
	soon.Cancel()
	require.EqualValues(t, 6, l.Stats().Units, "all 4 came back")
	t.until(time.Hour)
	late.Cancel()
	require.EqualValues(t, 6, l.Stats().Units, "nothing came back")
}

// cancelTwo cancels two that have had their turns. Together they must not bring back what, had neither been there,
// would have been spilled: the bucket would have been full when 5 went, so 5 remain.
func cancelTwo(t *trial) {
	l := t.rested(sluice.PerSecond(1), 10)
	first, second := t.reserve(l, 5), t.reserve(l, 5)
	t.until(5 * time.Second)
	require.True(t, t.try(l, 5).Allowed)
	second.Cancel()
	first.Cancel()
	require.Equal(t, 5, t.try(l, 0).Remaining, "5 have just gone, and 10 may in one instant")
}

// cancelWhileWaking cancels at the instant of the turn, before whoever sleeps on it has run.
func cancelWhileWaking(t *trial) {
	for range 20 {
		l, began := t.spent(sluice.PerSecond(10), 1), t.since()
		r := t.reserve(l, 1)
		c := t.sleepOn(r)
		time.Sleep(100 * ms)
		r.Delay() // sees that the turn has come
		r.Cancel()
		<-c.ended
		ctx := t.by(time.Second)
		require.NoError(t, l.Wait(ctx, 1), "the next to come")
		require.LessOrEqual(t, t.since()-began, 200*ms)
	}
}

// cancelEarnsNothing cancels a turn that is seen before the timer has told it. A limiter that makes up for its own late
// timer must not take the idle time after that for lateness.
func cancelEarnsNothing(t *trial) {
	const calls, most = 60, 20 // 1 of burst, and far more than any lateness
	for range 5 {
		l := t.spent(sluice.PerSecond(1000), 1)
		r := t.reserve(l, 1)
		c := t.sleepOn(r)
		for r.Delay() > 0 {
			runtime.Gosched()
		}
		r.Cancel()
		<-c.ended
		time.Sleep(100 * ms) // idle: 100 units flow, and all but the burst must be spilled
		now, began := 0, time.Now()
		for range calls {
			if d := t.try(l, 1); d.Allowed && d.Delay == 0 {
				now++
			}
		}
		if took := time.Since(began); took < 10*ms { // else this machine stood still, and it shows nothing
			require.Less(t, now, most, "of %d calls within %v", calls, took)
		}
	}
}

func cancelAgain(t *trial) {
	l := t.rested(hourly, 6)
	r := t.reserve(l, 2)
	r.Cancel()
	require.True(t, t.try(l, 4).Allowed)
	t.takesNothing(l, r.Cancel)

	l = t.spent(hourly, 3)
	r = t.reserve(l, 2)
	t.reserve(l, 1)
	r.Cancel()
	t.takesNothing(l, r.Cancel)
	require.EqualValues(t, 1, l.Stats().Canceled)
}

func cancelTogether(t *trial) {
	l := t.rested(hourly, 20)
	for i := range 19 {
		require.True(t, t.try(l, 1).Allowed)
		r := t.reserve(l, 1)
		var together sync.WaitGroup
		for range 10 {
			together.Go(r.Cancel)
		}
		together.Wait()
		require.Equal(t, 20-i-1, t.try(l, 0).Remaining)
		require.EqualValues(t, i+1, l.Stats().Units)
	}
}

func cancelWakes(t *trial) {
	l := t.spent(hourly, 1)
	r := t.reserve(l, 1)
	c := t.sleepOn(r)
	t.waits(c)
	r.Cancel()
	t.atOnce(func() { <-c.ended })
	require.Error(t, c.err, "Wait must not say that the turn has come")
	require.Equal(t, sluice.Never, r.Delay())
	t.atOnce(func() { require.Error(t, r.Wait(background)) })
}

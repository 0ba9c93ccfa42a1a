package sluicetest

import (
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var pauseChecks = []check{
	{name: "pause/nothing goes before it ends", run: pauseHolds, clock: virtual},
	{name: "pause/all ways to ask are told how long", run: pauseTold},
	{name: "pause/the line stays, in its order", run: pauseKeepsTheLine, clock: virtual},
	{name: "pause/a shorter one never shortens a longer one", run: pauseShorter},
	{name: "pause/a longer one prolongs it", run: pauseLonger},
	{name: "pause/0 does nothing", run: pauseZero},
	{name: "pause/below 0 is ErrInvalid and does nothing", run: pauseNegative},
	{name: "pause/what gathers goes on gathering, up to the burst", run: pauseGathers, clock: virtual},
	{name: "pause/a turn that had come stands", run: pauseAfterTheTurn},
	{name: "pause/one too long for the clock is for ever", run: pauseForEver},
}

func pauseHolds(t *trial) {
	l := t.rested(sluice.PerSecond(10), 5)
	require.NoError(t, l.Pause(background, 250*ms))
	t.until(250*ms - 1)
	require.Zero(t, l.Stats().Available)
	c := t.join(l, 1)
	t.waits(c)
	t.goes(c, 250*ms)
}

func pauseTold(t *trial) {
	l := t.rested(hourly, 5)
	require.NoError(t, l.Pause(background, 20*time.Hour))
	t.takesNothing(l, func() {
		no := t.refused(l.Wait(t.by(19*time.Hour), 1), sluice.ErrDeadline, 1)
		t.lasts(20*time.Hour, no.RetryAfter, "RetryAfter of Wait")
	})
	require.Zero(t, l.Stats().Available)
	t.lasts(20*time.Hour, t.try(l, 0).ResetAfter, "ResetAfter")
	t.paused(l, 20*time.Hour)
}

// paused checks that the first unit of l can go in d. It takes that unit.
func (t *trial) paused(l sluice.Limiter, d time.Duration) {
	t.Helper()
	r := t.reserve(l, 1)
	t.lasts(d, r.Delay(), "Delay of a Reservation")
	r.Cancel()
	if answer := t.try(l, 1); answer.Allowed {
		require.True(t, t.kind.Paced || d == 0, "Try must not take while paused")
		t.lasts(d, answer.Delay, "Delay of Try")
	} else {
		t.lasts(d, answer.RetryAfter, "RetryAfter of Try")
	}
}

func pauseKeepsTheLine(t *trial) {
	rate := sluice.PerSecond(10)
	l := t.spent(rate, 1)
	callers := t.line(l, repeat(1, 5)...)
	t.until(50 * ms)
	require.NoError(t, l.Pause(background, 950*ms))
	for i, c := range callers {
		t.goes(c, time.Second+time.Duration(i)*100*ms)
	}
}

func pauseShorter(t *trial) {
	l := t.rested(hourly, 5)
	require.NoError(t, l.Pause(background, 20*time.Hour))
	require.NoError(t, l.Pause(background, 10*time.Hour))
	t.paused(l, 20*time.Hour)
}

func pauseLonger(t *trial) {
	l := t.rested(hourly, 5)
	require.NoError(t, l.Pause(background, 10*time.Hour))
	require.NoError(t, l.Pause(background, 20*time.Hour))
	t.paused(l, 20*time.Hour)
}

func pauseZero(t *trial) {
	l := t.rested(hourly, 5)
	t.takesNothing(l, func() { require.NoError(t, l.Pause(background, 0)) })
	require.NoError(t, l.Pause(background, 10*time.Hour))
	require.NoError(t, l.Pause(background, 0))
	t.paused(l, 10*time.Hour)
}

func pauseNegative(t *trial) {
	l := t.rested(hourly, 5)
	t.takesNothing(l, func() {
		require.ErrorIs(t, l.Pause(background, -1), sluice.ErrInvalid)
		require.ErrorIs(t, l.Pause(background, -sluice.Never), sluice.ErrInvalid)
	})
}

func pauseGathers(t *trial) {
	l := t.exhausted(sluice.PerSecond(10), 5)
	require.NoError(t, l.Pause(background, time.Hour))
	t.until(time.Hour)
	for i := range 5 {
		d := t.try(l, 1)
		require.True(t, d.Allowed, "unit %d of the burst", i+1)
	}
	require.Equal(t, 100*ms, t.try(l, 1).RetryAfter)
}

func pauseAfterTheTurn(t *trial) {
	l := t.rested(hourly, 5)
	r := t.reserve(l, 5)
	require.NoError(t, l.Pause(background, time.Hour))
	require.Zero(t, r.Delay())
	t.atOnce(func() { require.NoError(t, r.Wait(background)) })
}

func pauseForEver(t *trial) {
	l := t.rested(hourly, 5)
	require.NoError(t, l.Pause(background, sluice.Never))
	t.refused(l.Wait(t.by(1000*time.Hour), 1), sluice.ErrDeadline, 1)
	c := t.join(l, 1)
	t.waits(c)
	t.leaves(c)
}

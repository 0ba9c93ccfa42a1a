package sluicetest

import (
	"context"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var reserveChecks = []check{
	{name: "reserve/it takes a place in the line of Wait, without blocking", run: reserveSameLine, clock: virtual},
	{name: "reserve/Delay shrinks when others give up", run: delayShrinks},
	{name: "reserve/Delay falls to 0 and stays there, watched or not", run: delayFalls, clock: virtual},
	{name: "reserve/Wait sleeps until the turn, and again returns at once", run: reservationWait, clock: virtual},
	{name: "reserve/Wait with too near a deadline refuses at once and gives the place up", run: reservationTooNear},
	{name: "reserve/Wait due exactly at the deadline is granted", run: reservationExact, clock: virtual},
	{name: "reserve/Wait whose ctx ends gives the place up", run: reservationLeaves},
	{name: "reserve/Wait of several whose ctx ends is ctx's error for each", run: reservationLeaveTogether},
	{name: "reserve/Wait with a done ctx gives the place up", run: reservationDone},
	{name: "reserve/Wait with a done ctx after the turn is nil", run: reservationDoneAfter},
}

func reserveSameLine(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	first := t.join(l, 1)
	second := t.reserve(l, 1)
	third := t.join(l, 1)
	require.Equal(t, 200*ms, second.Delay())
	t.goes(first, 100*ms)
	t.goes(third, 300*ms)
}

func delayShrinks(t *trial) {
	l := t.spent(hourly, 1)
	one, two := t.reserve(l, 1), t.reserve(l, 1)
	caller := t.join(l, 1)
	last := t.reserve(l, 1)
	t.lasts(4*time.Hour, last.Delay(), "Delay")
	two.Cancel()
	t.lasts(3*time.Hour, last.Delay(), "Delay after one ahead cancelled")
	t.leaves(caller)
	t.lasts(2*time.Hour, last.Delay(), "Delay after a caller ahead left")
	one.Cancel()
	t.lasts(1*time.Hour, last.Delay(), "Delay of the only one in line")
}

func delayFalls(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	watched, unwatched := t.reserve(l, 1), t.reserve(l, 1)
	for ; t.since() < 100*ms; time.Sleep(10 * ms) {
		require.Equal(t, 100*ms-t.since(), watched.Delay())
	}
	require.Zero(t, watched.Delay())
	t.until(time.Second)
	require.Zero(t, watched.Delay())
	require.Zero(t, unwatched.Delay())
	require.Zero(t, t.try(l, 0).ResetAfter, "at rest again: a turn needs nobody to look at it")
}

func reservationWait(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	r := t.reserve(l, 1)
	require.NoError(t, r.Wait(background))
	require.Equal(t, 100*ms, t.since())
	require.NoError(t, r.Wait(background))
	require.Equal(t, 100*ms, t.since())
	require.EqualValues(t, 2, l.Stats().Units, "one to spend and one for the Reservation")
}

func reservationTooNear(t *trial) {
	l := t.spent(hourly, 1)
	r, behind := t.reserve(l, 1), t.reserve(l, 1)
	t.atOnce(func() {
		no := t.refused(r.Wait(t.by(30*time.Minute)), sluice.ErrDeadline, 1)
		require.ErrorIs(t, no, context.DeadlineExceeded)
		t.lasts(time.Hour, no.RetryAfter, "RetryAfter")
	})
	t.lasts(time.Hour, behind.Delay(), "the Delay of the one behind, who must have moved up")
	require.Equal(t, 1, l.Stats().Waiting)
}

func reservationExact(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	require.NoError(t, t.reserve(l, 1).Wait(t.by(100*ms)))
	require.Equal(t, 100*ms, t.since())
}

func reservationLeaves(t *trial) {
	l := t.spent(hourly, 1)
	before := t.look(l)
	r := t.reserve(l, 1)
	c := t.sleepOn(r)
	behind := t.reserve(l, 1)
	t.leaves(c)
	t.lasts(time.Hour, behind.Delay(), "the Delay of the one behind, who must have moved up")
	behind.Cancel()
	require.Equal(t, before, t.look(l))
}

func reservationLeaveTogether(t *trial) {
	l := t.spent(hourly, 1)
	r := t.reserve(l, 1)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	ended := make(chan error, 3)
	for range cap(ended) {
		go func() { ended <- r.Wait(ctx) }()
	}
	time.Sleep(10 * ms) // until they sleep; one that comes later is told the same
	cancel()
	for range cap(ended) {
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	require.Equal(t, sluice.Never, r.Delay())
	t.eventually("nobody is in line", func() bool { return l.Stats().Waiting == 0 })
}

func reservationDone(t *trial) {
	l := t.spent(hourly, 1)
	before := t.look(l)
	ctx, cancel := context.WithCancel(background)
	cancel()
	r := t.reserve(l, 1)
	t.atOnce(func() { require.Equal(t, context.Canceled, r.Wait(ctx)) })
	require.Equal(t, before, t.look(l))
}

func reservationDoneAfter(t *trial) {
	l := t.rested(hourly, 2)
	r := t.reserve(l, 1)
	ctx, cancel := context.WithCancel(background)
	cancel()
	t.takesNothing(l, func() { require.NoError(t, r.Wait(ctx), "the turn had come before ctx ended") })
}

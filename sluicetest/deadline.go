package sluicetest

import (
	"context"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var deadlineChecks = []check{
	{name: "deadline/too near is refused at once, taking nothing", run: deadlineTooNear},
	{name: "deadline/RetryAfter is the wait it would have needed", run: deadlineRetryAfter, clock: virtual},
	{name: "deadline/a refusal is ErrDeadline and context.DeadlineExceeded", run: deadlineMatches},
	{name: "deadline/due exactly at it is granted", run: deadlineExact, clock: virtual},
	{name: "deadline/due 1ns after it is refused", run: deadlineOneShort, clock: virtual},
	{name: "deadline/those ahead in line count", run: deadlineBehindALine},
	{name: "deadline/what can go now goes, however near it is", run: deadlineNow},
}

// by returns a ctx whose deadline is d away.
func (t *trial) by(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(background, d)
	t.Cleanup(cancel)
	return ctx
}

func deadlineTooNear(t *trial) {
	l := t.spent(hourly, 1)
	ctx := t.by(30 * time.Minute)
	t.takesNothing(l, func() {
		no := t.refused(l.Wait(ctx, 1), sluice.ErrDeadline, 1)
		t.lasts(time.Hour, no.RetryAfter, "RetryAfter")
		require.NoError(t, ctx.Err(), "refused before ctx ended")
	})
}

func deadlineRetryAfter(t *trial) {
	for _, n := range []int{1, 2, 5} {
		rate := sluice.PerSecond(3)
		l := t.spent(rate, 5)
		needed := t.due(rate, 0, n)
		no := t.refused(l.Wait(t.by(needed-1), n), sluice.ErrDeadline, n)
		require.Equal(t, needed, no.RetryAfter)

		asked := t.since()
		require.NoError(t, l.Wait(t.by(no.RetryAfter), n), "with as much time as it asked for")
		require.Equal(t, needed, t.since()-asked)
	}
}

func deadlineMatches(t *trial) {
	err := t.spent(hourly, 1).Wait(t.by(time.Minute), 1)
	require.ErrorIs(t, err, sluice.ErrDeadline)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, sluice.ErrFull)
}

func deadlineExact(t *trial) {
	l := t.spent(sluice.PerSecond(1), 1)
	require.NoError(t, l.Wait(t.by(time.Second), 1))
	require.Equal(t, time.Second, t.since())
}

func deadlineOneShort(t *trial) {
	l := t.spent(sluice.PerSecond(1), 1)
	ctx := t.by(time.Second - 1)
	t.takesNothing(l, func() { t.refused(l.Wait(ctx, 1), sluice.ErrDeadline, 1) })
}

func deadlineBehindALine(t *trial) {
	l := t.spent(hourly, 1)
	t.line(l, 1, 1, 1)
	ctx := t.by(3*time.Hour + 30*time.Minute)
	t.takesNothing(l, func() {
		no := t.refused(l.Wait(ctx, 1), sluice.ErrDeadline, 1)
		t.lasts(4*time.Hour, no.RetryAfter, "RetryAfter")
	})
}

func deadlineNow(t *trial) {
	l := t.rested(hourly, 2)
	near := time.Minute
	if t.bubble {
		near = 1
	}
	t.atOnce(func() { require.NoError(t, l.Wait(t.by(near), 2)) })
}

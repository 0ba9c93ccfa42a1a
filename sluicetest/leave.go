package sluicetest

import (
	"context"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var leaveChecks = []check{
	{name: "leave/all behind move up at once", run: allMoveUp, clock: virtual},
	{name: "leave/it is ctx's own error and nothing was taken", run: leaverTakesNothing},
	{name: "leave/a big head makes way for a small one", run: bigHeadLeaves, clock: virtual},
	{name: "leave/what has gathered for a big head goes at once", run: gatheredForTheHead, clock: virtual, only: bursts},
	{name: "leave/from the middle and the tail", run: middleLeaves, clock: virtual},
	{name: "leave/a deadline that passes in line is ctx's own error", run: deadlinePasses, clock: virtual},
}

func allMoveUp(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	callers := t.line(l, repeat(1, 100)...)
	t.until(1 * ms)
	for _, c := range callers[:50] {
		t.leaves(c)
	}
	newcomer := t.joinBy(t.by(5099*ms), l, 1)
	for i, c := range callers[50:] {
		t.goes(c, time.Duration(i+1)*100*ms)
	}
	t.goes(newcomer, 5100*ms)
}

func leaverTakesNothing(t *trial) {
	l := t.spent(hourly, 3)
	before := t.look(l)
	c := t.join(l, 2)
	require.Equal(t, 1, l.Stats().Waiting)
	t.leaves(c)
	require.Equal(t, before, t.look(l), "whoever left must leave no trace")
	require.EqualValues(t, 1, l.Stats().Canceled)
	t.lasts(time.Hour, t.reserve(l, 1).Delay(), "the Delay of the next to come")
}

func bigHeadLeaves(t *trial) {
	l := t.spent(sluice.PerSecond(1), 3)
	callers := t.line(l, 3, 1)
	t.until(100 * ms)
	t.leaves(callers[0])
	t.goes(callers[1], 1*time.Second)
}

func gatheredForTheHead(t *trial) {
	l := t.spent(sluice.PerSecond(10), 3)
	callers := t.line(l, 3, 1, 1, 1)
	t.until(250 * ms)
	t.leaves(callers[0])
	t.goes(callers[1], 250*ms)
	t.goes(callers[2], 250*ms)
	t.goes(callers[3], 300*ms)
}

func middleLeaves(t *trial) {
	rate := sluice.PerSecond(10)
	l := t.spent(rate, 5)
	callers := t.line(l, 1, 4, 1, 2, 1)
	t.until(50 * ms)
	t.leaves(callers[1])
	t.leaves(callers[4])
	t.goes(callers[0], t.due(rate, 0, 1))
	t.goes(callers[2], t.due(rate, 1, 1))
	t.goes(callers[3], t.due(rate, 2, 2))
}

func deadlinePasses(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	c := t.joinBy(t.by(150*ms), l, 1)
	behind := t.join(l, 1)
	require.NoError(t, l.Pause(background, 300*ms)) // its turn would have come in time, and now cannot
	<-c.ended
	require.Equal(t, context.DeadlineExceeded, c.err)
	require.Equal(t, 150*ms, c.at)
	t.goes(behind, 300*ms)
}

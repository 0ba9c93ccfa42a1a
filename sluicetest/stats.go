package sluicetest

import (
	"math"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var statsChecks = []check{
	{name: "stats/Rate, Burst and Available of a limiter at rest", run: statsAtRest},
	{name: "stats/Granted and Units count what went, whichever way", run: statsGranted},
	{name: "stats/Refused counts each no, and nothing else", run: statsRefused},
	{name: "stats/Canceled counts who left the line, and nothing else", run: statsCanceled},
	{name: "stats/Waiting counts callers and Reservations in line", run: statsWaiting},
	{name: "stats/Waited is summed over granted calls", run: statsWaited, clock: virtual},
	{name: "stats/Available is 0 while somebody is in line", run: statsAvailable},
}

func statsAtRest(t *trial) {
	require.Equal(t, sluice.Stats{Rate: hourly, Burst: 7, Available: 7}, t.rested(hourly, 7).Stats())
}

func statsGranted(t *trial) {
	want := sluice.Stats{Rate: hourly, Burst: 10, Available: 7, Granted: 1, Units: 3}

	l := t.rested(hourly, 10)
	require.NoError(t, l.Wait(background, 3))
	t.counted(want, l)

	l = t.rested(hourly, 10)
	t.try(l, 3)
	t.counted(want, l)

	l = t.rested(hourly, 10)
	require.NoError(t, t.reserve(l, 3).Wait(background))
	t.counted(want, l)
}

// counted compares all but Waited, which on the real clock is the time that the call took.
func (t *trial) counted(want sluice.Stats, l sluice.Limiter) {
	t.Helper()
	got := l.Stats()
	got.Waited = 0
	require.Equal(t, want, got)
}

func statsRefused(t *trial) {
	l := t.spent(hourly, 5)
	before := l.Stats()
	require.Error(t, l.Wait(t.by(time.Minute), 1))
	require.Error(t, l.Wait(background, math.MaxInt))
	_, err := l.Try(background, math.MaxInt)
	require.Error(t, err)
	_, err = l.Reserve(background, math.MaxInt)
	require.Error(t, err)
	require.Error(t, t.reserve(l, 1).Wait(t.by(time.Minute)))
	after := l.Stats()
	require.Equal(t, before.Refused+5, after.Refused)

	full := t.exhausted(hourly, 5)
	t.try(full, 1)
	require.EqualValues(t, 1, full.Stats().Refused)

	after.Refused = before.Refused
	require.Equal(t, before, after, "a refusal counts nowhere else")
}

func statsCanceled(t *trial) {
	l := t.spent(hourly, 5)
	before := l.Stats()
	t.leaves(t.join(l, 2))
	t.leaves(t.sleepOn(t.reserve(l, 1)))
	t.reserve(l, 1).Cancel()
	after := l.Stats()
	require.Equal(t, before.Canceled+3, after.Canceled)
	after.Canceled = before.Canceled
	require.Equal(t, before, after, "who leaves counts nowhere else")
}

func statsWaiting(t *trial) {
	l := t.spent(hourly, 1)
	callers := t.line(l, 1, 1)
	r := t.reserve(l, 1)
	require.Equal(t, 3, l.Stats().Waiting)
	t.leaves(callers[0])
	require.Equal(t, 2, l.Stats().Waiting)
	r.Cancel()
	require.Equal(t, 1, l.Stats().Waiting)
	t.leaves(callers[1])
	require.Zero(t, l.Stats().Waiting)
}

func statsWaited(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	callers := t.line(l, repeat(1, 4)...)
	t.until(10 * ms)
	t.leaves(callers[0]) // its 10ms do not count
	t.goes(callers[3], 300*ms)
	require.Equal(t, (100+200+300)*ms, l.Stats().Waited)
}

func statsAvailable(t *trial) {
	l := t.rested(hourly, 5)
	require.NoError(t, l.Wait(background, 1))
	require.Equal(t, 4, l.Stats().Available)
	if t.kind.Paced {
		l = t.spent(hourly, 5)
	} else {
		t.reserve(l, 5) // needs one more than there is
	}
	t.join(l, 1)
	require.Zero(t, l.Stats().Available, "who comes now must queue")
}

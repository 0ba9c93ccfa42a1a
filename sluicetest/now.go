package sluicetest

import (
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var nowChecks = []check{
	{name: "now/the whole burst is granted without blocking", run: burstAtOnce},
	{name: "now/a burst can be taken one by one", run: burstOneByOne, only: bursts},
	{name: "now/idling saves up a burst and no more", run: idleSavesBurst, clock: virtual, only: bursts},
	{name: "now/idling saves nothing up", run: idleSavesNothing, clock: virtual, only: paces},
	{name: "now/all ways to take draw on the same units", run: sameUnits, only: bursts},
}

func burstAtOnce(t *trial) {
	t.atOnce(func() { require.NoError(t, t.rested(hourly, 7).Wait(background, 7)) })
	require.True(t, t.try(t.rested(hourly, 7), 7).Allowed)
	require.Zero(t, t.reserve(t.rested(hourly, 7), 7).Delay())
}

func burstOneByOne(t *trial) {
	l := t.rested(hourly, 7)
	for range 7 {
		t.atOnce(func() { require.NoError(t, l.Wait(background, 1)) })
	}
	require.False(t, t.try(l, 1).Allowed, "the burst is used up")
}

func idleSavesBurst(t *trial) {
	l := t.exhausted(sluice.PerSecond(5), 5)
	t.until(1000 * time.Hour)
	for range 5 {
		require.True(t, t.try(l, 1).Allowed)
	}
	require.False(t, t.try(l, 1).Allowed, "the surplus must have been thrown away")
}

func idleSavesNothing(t *trial) {
	rate := sluice.PerSecond(50)
	l := t.rested(rate, 100)
	for _, after := range []time.Duration{0, 1000 * time.Hour} {
		t.until(after)
		for i, c := range t.line(l, repeat(1, 5)...) {
			t.goes(c, after+time.Duration(i)*20*ms)
		}
	}
}

func sameUnits(t *trial) {
	l := t.rested(hourly, 6)
	require.NoError(t, l.Wait(background, 1))
	require.Zero(t, t.reserve(l, 2).Delay())
	d := t.try(l, 2)
	require.True(t, d.Allowed)
	require.Equal(t, 1, d.Remaining)
	require.Equal(t, 1, l.Stats().Available)
}

package sluicetest

import (
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var toldChecks = []check{
	{name: "told/RetryAfter is the least wait: 1ns before it refused, at it allowed", run: retryAfterTrue, clock: virtual},
	{name: "told/ResetAfter is when the limiter is at rest, and not 1ns before", run: resetAfterTrue, clock: virtual},
	{name: "told/Remaining can be taken, and not one more", run: remainingTrue},
	{name: "told/Remaining is 0 and ResetAfter counts the line", run: toldBehindALine},
}

// odd are rates whose interval is no whole number of nanoseconds, among others.
var odd = []sluice.Rate{
	sluice.PerSecond(3), sluice.PerSecond(7), sluice.PerSecond(60), sluice.PerSecond(1e9 + 1), sluice.PerSecond(4e9),
	sluice.Per(10, 13*time.Second), sluice.Per(700, time.Minute), sluice.Every(time.Hour), sluice.Every(13 * time.Hour),
}

func retryAfterTrue(t *trial) {
	for _, rate := range odd {
		for n := 1; n <= 5; n++ {
			l := t.exhausted(rate, 5)
			time.Sleep(rate.TimeFor(1) / 3) // somewhere between two units
			d := t.try(l, n)
			require.False(t, d.Allowed, "%d at %v", n, rate)

			time.Sleep(d.RetryAfter - 1)
			short := t.try(l, n)
			require.False(t, short.Allowed, "%d at %v, 1ns before RetryAfter %v", n, rate, d.RetryAfter)
			require.EqualValues(t, 1, short.RetryAfter)
			time.Sleep(1 * time.Nanosecond)
			require.True(t, t.try(l, n).Allowed, "%d at %v, at RetryAfter %v", n, rate, d.RetryAfter)
		}
	}
}

func resetAfterTrue(t *trial) {
	for _, rate := range odd {
		for n := 1; n <= 5; n++ {
			l := t.rested(rate, 5)
			require.Zero(t, t.try(l, 0).ResetAfter, "it is at rest")
			d := t.try(l, n)
			require.True(t, d.Allowed)
			require.Equal(t, rate.TimeFor(int64(n)), d.ResetAfter, "%d at %v", n, rate)
			if d.ResetAfter > 1 {
				time.Sleep(d.ResetAfter - 1)
				require.EqualValues(t, 1, t.try(l, 0).ResetAfter, "1ns before")
			}
			time.Sleep(1 * time.Nanosecond)
			at := t.try(l, 0)
			require.Zero(t, at.ResetAfter)
			require.Equal(t, 5, at.Remaining)
			whole := t.try(l, 5)
			require.True(t, whole.Allowed)
			require.Zero(t, whole.Delay)
		}
	}
}

func remainingTrue(t *trial) {
	for n := range 6 {
		one, other := t.rested(hourly, 5), t.rested(hourly, 5)
		d := t.try(one, n)
		require.Equal(t, 5-n, d.Remaining)
		t.try(other, n)
		if n > 0 {
			refused := t.try(other, 5-n+1)
			require.False(t, refused.Allowed, "one more than Remaining")
			require.Equal(t, 5-n, refused.Remaining, "Remaining of a refusal")
		}
		require.True(t, t.try(one, d.Remaining).Allowed, "what Remaining says")
	}
}

func toldBehindALine(t *trial) {
	l := t.spent(hourly, 1)
	t.line(l, 1, 1)
	d := t.try(l, 0)
	if !t.kind.Paced {
		require.Zero(t, d.Remaining, "who comes now must queue")
	}
	require.Zero(t, l.Stats().Available)
	t.lasts(3*time.Hour, d.ResetAfter, "ResetAfter")
}

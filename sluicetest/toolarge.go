package sluicetest

import (
	"context"
	"math"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var tooLargeChecks = []check{
	{name: "toolarge/more than the burst is ErrTooLarge at once and takes nothing", run: tooLarge},
	{name: "toolarge/told before the deadline, since no waiting helps", run: tooLargeFirst},
}

func tooLarge(t *trial) {
	for _, l := range []sluice.Limiter{t.rested(hourly, 5), t.exhausted(hourly, 5)} {
		for _, n := range []int{6, math.MaxInt} {
			t.takesNothing(l, func() {
				no := t.refused(l.Wait(background, n), sluice.ErrTooLarge, n)
				require.Equal(t, sluice.Never, no.RetryAfter)

				d, err := l.Try(background, n)
				require.Equal(t, sluice.Never, t.refused(err, sluice.ErrTooLarge, n).RetryAfter)
				require.False(t, d.Allowed)

				_, err = l.Reserve(background, n)
				require.Equal(t, sluice.Never, t.refused(err, sluice.ErrTooLarge, n).RetryAfter)
			})
		}
	}
	require.True(t, t.try(t.rested(hourly, 5), 5).Allowed, "the burst itself is not too large")
}

func tooLargeFirst(t *trial) {
	l := t.exhausted(hourly, 5)
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	t.takesNothing(l, func() {
		err := l.Wait(ctx, 6)
		t.refused(err, sluice.ErrTooLarge, 6)
		require.NotErrorIs(t, err, sluice.ErrDeadline)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

package sluicetest

import (
	"context"
	"math"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var nChecks = []check{
	{name: "n/0 costs nothing and returns at once", run: zeroIsFree},
	{name: "n/0 with a done ctx is ctx's error", run: zeroWithDoneCtx},
	{name: "n/below 0 is ErrInvalid and takes nothing", run: negativeIsInvalid},
}

func zeroIsFree(t *trial) {
	paused := t.rested(hourly, 3)
	require.NoError(t, paused.Pause(background, 10*hourly.TimeFor(1)))
	behindALine := t.spent(hourly, 3)
	t.join(behindALine, 1)

	for name, l := range map[string]sluice.Limiter{
		"rested":        t.rested(hourly, 3),
		"exhausted":     t.exhausted(hourly, 3),
		"paused":        paused,
		"behind a line": behindALine,
	} {
		t.takesNothing(l, func() {
			require.NoError(t, l.Wait(background, 0), name)
			require.True(t, t.try(l, 0).Allowed, name)
			r := t.reserve(l, 0)
			require.Zero(t, r.Delay(), name)
			require.NoError(t, r.Wait(background), name)
			r.Cancel()
		})
	}
}

func zeroWithDoneCtx(t *trial) {
	l := t.rested(hourly, 3)
	done, cancel := context.WithCancel(background)
	cancel()
	t.takesNothing(l, func() { t.allReturn(l, done, 0, context.Canceled) })
}

func negativeIsInvalid(t *trial) {
	for _, n := range []int{-1, math.MinInt} {
		for _, l := range []sluice.Limiter{t.rested(hourly, 3), t.exhausted(hourly, 3)} {
			t.takesNothing(l, func() {
				err := l.Wait(background, n)
				require.ErrorIs(t, err, sluice.ErrInvalid)
				var no *sluice.Refusal
				require.NotErrorAs(t, err, &no, "a mistake is not a Refusal")
				_, err = l.Try(background, n)
				require.ErrorIs(t, err, sluice.ErrInvalid)
				_, err = l.Reserve(background, n)
				require.ErrorIs(t, err, sluice.ErrInvalid)
			})
		}
	}
}

// allReturn checks that Wait, Try and Reserve return this very error.
func (t *trial) allReturn(l sluice.Limiter, ctx context.Context, n int, want error) {
	t.Helper()
	require.Equal(t, want, l.Wait(ctx, n), "Wait")
	d, err := l.Try(ctx, n)
	require.Equal(t, want, err, "Try")
	require.False(t, d.Allowed, "Try with an error must not be Allowed")
	_, err = l.Reserve(ctx, n)
	require.Equal(t, want, err, "Reserve")
}

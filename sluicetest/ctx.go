package sluicetest

import (
	"context"
	"errors"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var ctxChecks = []check{
	{name: "ctx/nil is ErrInvalid and takes nothing", run: nilCtx},
	{name: "ctx/done is ctx's own error and takes nothing", run: doneCtx},
	{name: "ctx/done is told before any other mistake", run: doneCtxFirst},
	{name: "ctx/of Reserve and Try governs the call only", run: ctxOfTheCall},
}

func nilCtx(t *trial) {
	var none context.Context
	l := t.rested(hourly, 3)
	t.takesNothing(l, func() {
		require.ErrorIs(t, l.Wait(none, 1), sluice.ErrInvalid)
		_, err := l.Try(none, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		_, err = l.Reserve(none, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorIs(t, l.Pause(none, time.Hour), sluice.ErrInvalid)
	})

	l = t.spent(hourly, 3)
	r := t.reserve(l, 1)
	require.ErrorIs(t, r.Wait(none), sluice.ErrInvalid)
	t.lasts(time.Hour, r.Delay(), "the Delay of a place that must have been kept")
	r.Cancel()
}

func doneCtx(t *trial) {
	canceled, cancel := context.WithCancelCause(background)
	reason := errors.New("the user went home")
	cancel(reason)
	expired, cancelExpired := context.WithDeadline(background, time.Now().Add(-time.Second))
	defer cancelExpired()

	for _, l := range []sluice.Limiter{t.rested(hourly, 3), t.exhausted(hourly, 3)} {
		t.takesNothing(l, func() {
			t.allReturn(l, canceled, 1, context.Canceled)
			t.allReturn(l, expired, 1, context.DeadlineExceeded)
			require.Equal(t, context.Canceled, l.Pause(canceled, time.Hour), "Pause")
		})
	}
	require.Equal(t, reason, context.Cause(canceled), "the cause stays in reach")
}

func doneCtxFirst(t *trial) {
	l := t.rested(hourly, 3)
	done, cancel := context.WithCancel(background)
	cancel()
	t.takesNothing(l, func() {
		t.allReturn(l, done, -1, context.Canceled)
		t.allReturn(l, done, 4, context.Canceled)
	})
}

func ctxOfTheCall(t *trial) {
	l := t.spent(hourly, 3)
	ctx, cancel := context.WithCancel(background)
	r, err := l.Reserve(ctx, 1)
	require.NoError(t, err)
	_, err = l.Try(ctx, 1)
	require.NoError(t, err)
	units := l.Stats().Units
	cancel()
	t.lasts(time.Hour, r.Delay(), "the Delay of a place that must have been kept")
	require.Equal(t, units, l.Stats().Units, "what was taken stays taken")
	r.Cancel()
}

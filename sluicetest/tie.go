package sluicetest

import (
	"context"
	"sync"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var tieChecks = []check{
	{name: "tie/grant and cancel in the same instant: nil exactly when the units were taken", run: tieWithCancel, clock: virtual},
	{name: "tie/a grant that came before ctx ended stands", run: grantStands, clock: virtual},
}

func tieWithCancel(t *trial) {
	for range 100 {
		l, began := t.spent(sluice.PerSecond(10), 1), time.Now()
		ctx, cancel := context.WithCancel(background)
		var tie sync.WaitGroup
		var err error
		tie.Go(func() { err = l.Wait(ctx, 1) })
		tie.Go(func() { time.Sleep(100 * ms); cancel() })
		tie.Wait()

		// Only one unit is there at 100ms: the next caller shows who has it.
		require.NoError(t, l.Wait(background, 1))
		next, s := time.Since(began), l.Stats()
		if err == nil {
			require.Equal(t, 200*ms, next, "Wait returned nil, so its unit must be taken")
			require.Zero(t, s.Canceled)
		} else {
			require.Equal(t, context.Canceled, err)
			require.Equal(t, 100*ms, next, "Wait returned ctx's error, so its unit must be there")
			require.EqualValues(t, 1, s.Canceled)
		}
	}
}

func grantStands(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	c := t.join(l, 1)
	t.until(100 * ms)
	c.cancel()
	t.goes(c, 100*ms)

	require.NoError(t, l.Wait(background, 1))
	require.Equal(t, 200*ms, t.since())
}

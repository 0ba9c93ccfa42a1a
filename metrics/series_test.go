package metrics

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

// Where nobody scrapes, reservations that nobody comes back to must not gather.
func TestReservationsDoNotGatherUnscraped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(1000), Burst: 1})
		require.NoError(t, err)
		c := New()
		o := c.Limiter("api", l)
		for range 10_000 {
			for range 2 { // the second has to wait
				_, err := o.Reserve(t.Context(), 1)
				require.NoError(t, err)
			}
			time.Sleep(2 * time.Millisecond)
		}
		require.Less(t, len(c.series["api"].pending), firstSweep)
	})
}

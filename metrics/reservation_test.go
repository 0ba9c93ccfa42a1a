package metrics_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

// Who plans work by a Reservation may never come back to it: its turn is seen by the scrape.
func TestAReservationIsGrantedWhenItsTurnComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newObserved(perSecond(t, 10, 1))
		for range 3 { // due at 0, 100 and 200 ms
			_, err := o.Reserve(t.Context(), 1)
			require.NoError(t, err)
		}
		require.Equal(t, map[string]float64{
			"granted_total api": 1, "units_total api": 1, "wait_seconds_count api": 1, "waiting api": 2,
		}, scrape(t, c))
		time.Sleep(100 * ms)
		require.Equal(t, map[string]float64{
			"granted_total api": 2, "units_total api": 2, "wait_seconds_count api": 2, "wait_seconds_sum api": 0.1, "waiting api": 1,
		}, scrape(t, c))
		time.Sleep(time.Hour) // the look that finds it come is late, and the turn was not
		s := scrape(t, c)
		require.Equal(t, 3.0, s["granted_total api"])
		require.InDelta(t, 0.3, s["wait_seconds_sum api"], 1e-12)
		require.NotContains(t, s, "waiting api")
	})
}

func TestAReservationThatIsSleptOnHasWaitedSoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newObserved(perSecond(t, 10, 1))
		require.NoError(t, o.Wait(t.Context(), 1))
		r, err := o.Reserve(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, 100*ms, r.Delay())
		require.NoError(t, o.Pause(t.Context(), 250*ms)) // puts off what was promised
		require.NoError(t, r.Wait(t.Context()))
		require.NoError(t, r.Wait(t.Context()), "again is no second grant")
		s := scrape(t, c)
		require.Equal(t, 2.0, s["granted_total api"])
		require.Equal(t, 0.25, s["wait_seconds_sum api"])
	})
}

func TestATurnThatCameBeforeSleepIsNotCountedAsIfItCameNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newObserved(perSecond(t, 10, 1))
		require.NoError(t, o.Wait(t.Context(), 1))
		r, err := o.Reserve(t.Context(), 1)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.NoError(t, r.Wait(t.Context()))
		require.Equal(t, 0.1, scrape(t, c)["wait_seconds_sum api"])
	})
}

func TestAReservationCancelledBeforeItsTurnIsCanceledAndAfterItGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newObserved(perSecond(t, 10, 1))
		reserve := func() sluice.Reservation {
			r, err := o.Reserve(t.Context(), 1)
			require.NoError(t, err)
			return r
		}
		reserve().Cancel() // its turn has come
		again := reserve() // so this one's has, too
		first, second := reserve(), reserve()
		first.Cancel()
		first.Cancel()
		require.ErrorIs(t, first.Wait(t.Context()), sluice.ErrInvalid)
		time.Sleep(100 * ms) // second has moved up
		second.Cancel()
		again.Cancel()
		s := scrape(t, c)
		require.Equal(t, 3.0, s["granted_total api"])
		require.Equal(t, 0.1, s["wait_seconds_sum api"], "second has waited less than it was told")
		require.Equal(t, 1.0, s["canceled_total api"])
		require.NotContains(t, s, "waiting api")
		require.NotContains(t, s, "errors_total api")
	})
}

func TestAReservationThatFailsIsCountedForItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perSecond(t, 1, 1)
		c, o := newObserved(l)
		var all [4]sluice.Reservation
		for i := range all {
			var err error
			all[i], err = o.Reserve(t.Context(), 1)
			require.NoError(t, err)
		}
		soon, cancel := context.WithTimeout(t.Context(), 500*ms)
		defer cancel()
		require.ErrorIs(t, all[1].Wait(soon), sluice.ErrDeadline)
		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(100*ms, leave)
		require.ErrorIs(t, all[2].Wait(leaving), context.Canceled)
		var none context.Context
		require.ErrorIs(t, all[3].Wait(none), sluice.ErrInvalid, "the place is kept")
		require.Equal(t, 1.0, scrape(t, c)["waiting api"])
		require.NoError(t, l.Close())
		require.NotContains(t, scrape(t, c), "waiting api")
		require.ErrorIs(t, all[3].Wait(t.Context()), sluice.ErrClosed)
		require.Equal(t, map[string]float64{
			"granted_total api": 1, "units_total api": 1, "wait_seconds_count api": 1, "refused_total api deadline": 1,
			"refused_total api closed": 1, "canceled_total api": 1,
		}, scrape(t, c))
	})
}

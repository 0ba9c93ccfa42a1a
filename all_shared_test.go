package sluice_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/kinds"
)

// starts notes when whom a limit let go.
type starts struct {
	t     *testing.T
	begun time.Time
	mu    sync.Mutex
	after []time.Duration
	all   sync.WaitGroup
}

// join has somebody wait for the limits, one after the other.
func (s *starts) join(limits ...sluice.Limiter) {
	s.all.Go(func() {
		for _, l := range limits {
			require.NoError(s.t, l.Wait(background, 1))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.after = append(s.after, time.Since(s.begun))
	})
	synctest.Wait()
}

// What waits for another limit after its turn keeps it: a window sees as many more as were kept when it began, and no more.
func TestAllCountsFromEachLimitsOwnTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kept = 3
		shared, slow := kinds.Waiter(t, sluice.PerSecond(1), 1), kinds.Waiter(t, sluice.Every(time.Minute), kept)
		require.NoError(t, slow.Wait(background, kept))
		both := sluice.All(shared, slow)
		s := starts{t: t, begun: time.Now()}
		for range kept {
			s.join(both)
		}
		for range 200 {
			s.join(shared)
		}
		s.all.Wait()
		require.Equal(t, 202*time.Second, s.after[len(s.after)-1], "the shared one by its own books: 203 turns, a second apart")
		most := 0
		for i := range s.after {
			for j := i; j < len(s.after) && s.after[j]-s.after[i] < 30*time.Second; j++ {
				most = max(most, j-i+1)
			}
		}
		require.Greater(t, most, 30, "no more than without: nothing to tell")
		require.LessOrEqual(t, most, 30+kept)
	})
}

// Twelve users at 10/s each under 100/s for all.
func TestTheLimitThatIsWaitedForLastHoldsExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		project := kinds.Waiter(t, sluice.PerSecond(100), 1)
		s := starts{t: t, begun: time.Now()}
		for range 12 {
			own := kinds.Waiter(t, sluice.PerSecond(10), 1)
			for range 100 {
				s.join(own, project)
			}
		}
		s.all.Wait()
		require.Len(t, s.after, 1200)
		for i, at := range s.after {
			require.Equal(t, time.Duration(i)*10*time.Millisecond, at, "start %d", i)
		}
	})
}

// panicky is a limiter of somebody else whose code is not right.
type panicky struct{ sluice.Limiter }

func (panicky) Reserve(context.Context, int) (sluice.Reservation, error) { panic("boom") }

// What recovers, as net/http does, would lose for good what the earlier limits had given.
func TestAllGivesBackWhenALimitPanics(t *testing.T) {
	l := kinds.Waiter(t, sluice.Every(time.Hour), 5)
	all := sluice.All(l, panicky{kinds.Waiter(t, sluice.PerSecond(1), 1)})
	for range 6 {
		require.Panics(t, func() { _ = all.Wait(background, 1) })
		require.Panics(t, func() { _, _ = all.Try(background, 1) })
		require.Panics(t, func() { _, _ = all.Reserve(background, 1) })
	}
	require.Equal(t, 5, l.Stats().Available)
	require.Zero(t, l.Stats().Units)
}

func TestAllCountsNothingForNothing(t *testing.T) {
	all := sluice.All(kinds.Waiter(t, sluice.PerSecond(1), 1), kinds.Waiter(t, sluice.PerSecond(2), 1))
	r, err := all.Reserve(background, 0)
	require.NoError(t, err)
	r.Cancel()
	s := all.Stats()
	require.Zero(t, s.Granted+s.Canceled+s.Refused)
}

// A member that cannot say its rate, as a full keyed.Map cannot, is not the slowest.
func TestAllStatsLeavesOutWhoHasNoRate(t *testing.T) {
	l := kinds.Waiter(t, sluice.PerSecond(3), 2)
	none := noRate{l}
	require.Equal(t, sluice.PerSecond(3), sluice.All(none, l).Stats().Rate)
	require.Equal(t, sluice.PerSecond(3), sluice.All(l, none).Stats().Rate)
}

type noRate struct{ sluice.Limiter }

func (noRate) Stats() sluice.Stats { return sluice.Stats{} }

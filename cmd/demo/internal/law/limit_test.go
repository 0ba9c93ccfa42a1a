package law

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

const ms = time.Millisecond

// every returns n starts, one for each step.
func every(step time.Duration, n int) []time.Duration {
	starts := make([]time.Duration, n)
	for i := range starts {
		starts[i] = time.Duration(i) * step
	}
	return starts
}

func TestAllowed(t *testing.T) {
	for _, s := range []struct {
		limit Limit
		want  int
	}{
		{Limit{sluice.PerSecond(50), 1}, 51},
		{Limit{sluice.PerSecond(50), 10}, 60},
		{Limit{sluice.Per(3, time.Minute), 2}, 2},
		{Limit{sluice.Per(7, 2*time.Second), 1}, 4},
		{Limit{sluice.Unlimited, 10}, math.MaxInt},
	} {
		require.Equal(t, s.want, s.limit.Allowed(0), "%v, burst %d", s.limit.Rate, s.limit.Burst)
	}
}

func TestPeakAgainstBruteForce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		starts := make([]time.Duration, rnd.IntN(60))
		for i := range starts {
			// Few distinct instants, so that starts coincide and Windows end exactly on one.
			starts[i] = time.Duration(rnd.IntN(30)) * 100 * ms
		}
		slices.Sort(starts)
		want := 0
		for _, from := range starts {
			n := 0
			for _, at := range starts {
				if from <= at && at <= from+Window {
					n++
				}
			}
			want = max(want, n)
		}
		require.Equal(t, want, Peak(starts), "%v", starts)
	}
}

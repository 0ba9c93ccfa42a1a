package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/waiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

func herd(n int, at time.Duration) []Arrival {
	return slices.Repeat([]Arrival{{At: at}}, n)
}

// The token bucket lets its burst go and the rest one interval after the other, to the nanosecond.
func TestBucket(t *testing.T) {
	var clock Clock
	l, err := Bucket(&clock, waiter.Config{Rate: sluice.PerSecond(10), Burst: 2, MaxWait: 300 * ms})
	require.NoError(t, err)
	out := Run(&clock, herd(7, 50*ms), l)
	require.Equal(t, []time.Duration{50 * ms, 50 * ms, 150 * ms, 250 * ms, 350 * ms}, out.Starts)
	require.Equal(t, []time.Duration{0, 0, 100 * ms, 200 * ms, 300 * ms}, out.Waits)
	require.Equal(t, 2, out.Refused, "the fourth in line would have waited 400 ms")
	require.Equal(t, 3, out.Line)
	require.Equal(t, 300*ms, out.Longest())
	require.Equal(t, 100*ms, out.Percentile(50))
	require.Equal(t, 300*ms, out.Percentile(99))
}

// Requirement: 50/s starts at 0, 20, 40 ms … whatever the arrivals.
func TestPacer(t *testing.T) {
	var clock Clock
	l, err := Pacer(&clock, leaky.Config{Rate: sluice.PerSecond(50), Capacity: 4})
	require.NoError(t, err)
	out := Run(&clock, herd(6, 0), l)
	require.Equal(t, []time.Duration{0, 20 * ms, 40 * ms, 60 * ms}, out.Starts)
	require.Equal(t, 2, out.Refused)
}

// Who hangs up makes room: all behind move up.
func TestLeavers(t *testing.T) {
	var clock Clock
	l, err := Bucket(&clock, waiter.Config{Rate: sluice.PerSecond(10), Burst: 1})
	require.NoError(t, err)
	arrivals := []Arrival{{}, {Patience: 100 * ms}, {Patience: 150 * ms}, {Patience: 150 * ms}, {}, {}}
	out := Run(&clock, arrivals, l)
	require.Equal(t, 2, out.Left, "the one whose patience ends as its turn comes has its turn")
	require.Equal(t, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms}, out.Starts)
}

func TestPeakAndRecent(t *testing.T) {
	out := Outcome{Starts: []time.Duration{0, 10 * ms, 20 * ms, 1000 * ms, 1010 * ms}}
	require.Equal(t, 3, out.Peak(time.Second), "a window does not contain its end")
	require.Equal(t, 4, out.Peak(time.Second+1))
	require.Equal(t, []int{1, 3, 3, 3, 3, 2}, out.Recent(time.Second, 250*ms, 1250*ms))
	require.Zero(t, (&Outcome{}).Peak(time.Second))
	require.Zero(t, (&Outcome{}).Longest())
	require.Zero(t, (&Outcome{}).Percentile(99))
}

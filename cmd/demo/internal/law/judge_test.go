package law

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestJudge(t *testing.T) {
	l := Limit{sluice.PerSecond(50), 1}
	exact := every(20*ms, 400)
	// crowd has n starts too many at 5.01 s, in windows that begin between 4.01 s and 5.01 s.
	crowd := func(n int) []time.Duration {
		starts := slices.Clone(exact)
		for range n {
			starts = append(starts, 5010*ms)
		}
		slices.Sort(starts)
		return starts
	}
	there := func(d time.Duration) []Stall { return []Stall{{5010*ms - d, 5010 * ms}} }

	for _, s := range []struct {
		name   string
		starts []time.Duration
		stalls []Stall
		want   Verdict
	}{
		{"nothing", nil, nil, Held},
		{"51 allowed: both ends of the second", exact, nil, Held},
		{"51 steps in a little more than a second", every(time.Second/51+1, 52), nil, Held},
		{"51 steps in a second: 52", every(time.Second/51, 52), nil, Broken},
		{"a burst of 52", make([]time.Duration, 52), nil, Broken},
		{"52", crowd(1), nil, Broken},
		{"52, and 19 ms do not explain it", crowd(1), there(20*ms - 1), Broken},
		{"52 explained by 20 ms", crowd(1), there(20 * ms), Delayed},
		{"52, and 150 ms long before", crowd(1), []Stall{{100 * ms, 250 * ms}}, Broken},
		{"52, and 150 ms long after", crowd(1), []Stall{{6500 * ms, 6650 * ms}}, Broken},
		{"52, and a stall that ended before each such window", crowd(1), []Stall{{3800 * ms, 3990 * ms}}, Broken},
		{"61 explained by 200 ms", crowd(10), there(200 * ms), Delayed},
		{"52 with more than 200 ms: nobody can say", crowd(1), there(200*ms + 1), Unclear},
		{"63, and 220 ms do not explain it", crowd(12), there(220 * ms), Broken},
		{"a long stall alone is no fault", exact, there(time.Second), Held},
	} {
		require.Equal(t, s.want, l.Judge(s.starts, s.stalls).Verdict, s.name)
	}

	f := l.Judge(crowd(1), there(20*ms))
	require.Equal(t, 52, f.Starts)
	require.Equal(t, 20*ms, f.Late)
}

// Under a virtual clock nothing is late, so there is no stall; a stall is made by hand.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPulse(time.Now())
		time.Sleep(time.Minute)
		require.Empty(t, p.Close())
	})
}

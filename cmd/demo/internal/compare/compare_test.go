package compare

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	xrate "golang.org/x/time/rate"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
	"github.com/fadf4e53/sluice/cmd/demo/internal/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var defaults = settings{limit: 100, burst: 10, wait: 2 * time.Second, arrivals: "all"}

func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = Command().Main(context.Background(), args, &out, &err)
	return status, out.String(), err.String()
}

const ms = time.Millisecond

// The same numbers on every machine, every time.
func TestExactNumbers(t *testing.T) {
	type row struct {
		started, refused, left, peak int
		longest, p99                 time.Duration
	}
	want := map[string][]row{
		"edges": {
			{600, 0, 0, 200, 0, 0},
			{300, 300, 0, 100, 0, 0},
			{600, 0, 0, 109, 1800499999, 1781499999}, // cut off where it is to be rounded up
			{600, 0, 0, 109, 1800500 * time.Microsecond, 1781500 * time.Microsecond},
			{600, 0, 0, 100, 1890500 * time.Microsecond, 1871500 * time.Microsecond},
		},
		"pulse": {
			{200, 1800, 0, 200, 0, 0},
			{100, 1900, 0, 100, 0, 0},
			{309, 1691, 0, 109, 1999999999, 1999999999},
			{309, 1691, 0, 109, 2000 * ms, 2000 * ms},
			{300, 1700, 0, 100, 2000 * ms, 2000 * ms},
		},
		"herd": {
			{200, 100, 0, 200, 0, 0},
			{100, 200, 0, 100, 0, 0},
			{148, 39, 113, 71, 2000 * ms, 1990 * ms},
			{187, 0, 113, 109, 1270 * ms, 1260 * ms},
			{180, 0, 120, 100, 1290 * ms, 1280 * ms},
		},
		"steady": {
			{400, 0, 0, 80, 0, 0}, {400, 0, 0, 80, 0, 0}, {400, 0, 0, 80, 0, 0}, {400, 0, 0, 80, 0, 0}, {400, 0, 0, 80, 0, 0},
		},
	}
	scenes, err := play(defaults)
	require.NoError(t, err)
	require.Len(t, scenes, len(want))
	for _, sc := range scenes {
		for i, r := range sc.results {
			got := row{len(r.Starts), r.Refused, r.Left, r.peak, r.Longest(), r.Percentile(99)}
			require.Equal(t, want[sc.name][i], got, "%s, %s", sc.name, r.short)
			require.Equal(t, len(sc.arrivals), got.started+got.refused+got.left, "%s, %s", sc.name, r.short)
		}
	}
}

// The fixed window lets twice its limit through around an edge, whatever the limit; sluice never more than its law.
func TestTwiceTheLimit(t *testing.T) {
	for _, limit := range []int{1, 2, 7, 100, 1000} {
		s := settings{limit: limit, burst: 3, wait: 2 * time.Second, arrivals: "edges"}
		scenes, err := play(s)
		require.NoError(t, err)
		for _, r := range scenes[0].results {
			switch {
			case r.short == "fixed window":
				require.Equal(t, 2*limit, r.peak)
				require.True(t, r.broke(s))
			case r.ours, r.short == "sliding window":
				require.LessOrEqual(t, r.peak, r.law(s), "%s at %d", r.short, limit)
			}
		}
	}
}

// The model of x/time/rate does what x/time/rate does: the same callers start at the same nanosecond.
func TestClampIsLikeTheRealOne(t *testing.T) {
	for _, p := range patterns {
		arrivals := p.make(defaults.limit)
		var a, b sim.Clock
		model, err := limiters[2].make(&a, defaults)
		require.NoError(t, err)
		mine := sim.Run(&a, arrivals, model)
		real := sim.Run(&b, arrivals, &xtime{clock: &b, limiter: xrate.NewLimiter(100, 10), most: defaults.wait})
		require.Equal(t, real, mine, p.name)
	}
}

type xtime struct {
	clock   *sim.Clock
	limiter *xrate.Limiter
	most    time.Duration
}

func (x *xtime) Ask() (sim.Place, bool) {
	now := x.clock.Now()
	r := x.limiter.ReserveN(now, 1)
	if r.DelayFrom(now) > x.most { // as its Wait does for a deadline, which takes nothing
		r.CancelAt(now)
		return nil, false
	}
	return &xplace{x, r}, true
}

type xplace struct {
	x *xtime
	r *xrate.Reservation
}

func (p *xplace) Delay() time.Duration { return p.r.DelayFrom(p.x.clock.Now()) }
func (p *xplace) Cancel()              { p.r.CancelAt(p.x.clock.Now()) }

func TestOutput(t *testing.T) {
	status, out, errs := call(t, "-arrivals", "edges")
	require.Equal(t, cli.OK, status)
	require.Empty(t, errs)
	require.Equal(t, `Bursts at the edge of a second (edges)
The whole limit in the 50 ms before a full second and once more in the 50 ms after it, every 2 s: 600 callers.

                  started  refused  hung up  fullest second  of the limit  longest wait  p99 wait
    fixed window      600        0        0             200         2.00×             0         0
  sliding window      300      300        0             100         1.00×             0         0
     x/time/rate      600        0        0             109         1.09×         1.80s     1.78s
   sluice/waiter      600        0        0             109         1.09×         1.80s     1.78s
    sluice/leaky      600        0        0             100         1.00×         1.89s     1.87s

                                          ▼ the limit: 100 in a second
    fixed window  ████████████████████████▓███████████████████████ 200  2.00 times its limit
  sliding window  ████████████████████████┊ 100
     x/time/rate  ████████████████████████▓█ 109  with its burst
   sluice/waiter  ████████████████████████▓█ 109  with its burst
    sluice/leaky  ████████████████████████┊ 100

The fixed window let 2.00 times its limit through.
sluice's limiters kept theirs in every second.
`, out)
}

// A limiter of ours that breaks its law is called wrong, and the exit status says so.
func TestVerdict(t *testing.T) {
	scenes, err := play(defaults)
	require.NoError(t, err)
	scenes[1].results[3].peak = 111
	var out bytes.Buffer
	require.Equal(t, cli.Broken, verdict(&out, scenes, defaults))
	require.Contains(t, out.String(), "WRONG: sluice/waiter let 1.01 times its law through.")
	require.NotContains(t, out.String(), "kept theirs")
}

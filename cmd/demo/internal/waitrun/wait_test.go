package waitrun

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	xrate "golang.org/x/time/rate"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
	"github.com/fadf4e53/sluice/cmd/demo/internal/law"
	"github.com/fadf4e53/sluice/waiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Starts fall on 7/s, off the edges of the rows, so that a row is the same in every run.
var small = settings{rate: sluice.PerSecond(7), burst: 2, n: 12, leave: 6, after: 400 * time.Millisecond}

// show runs it on a virtual clock: what it prints is exact.
func show(t *testing.T, s settings, l func() sluice.Limiter) (status int, out string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		status = run(t.Context(), s, l(), &b)
		out = b.String()
	})
	return status, out
}

func bucket(t *testing.T, s settings) func() sluice.Limiter {
	return func() sluice.Limiter {
		l, err := waiter.New(waiter.Config{Rate: s.rate, Burst: s.burst})
		require.NoError(t, err)
		return l
	}
}

func TestPlacesArePassedOn(t *testing.T) {
	status, out := show(t, small, bucket(t, small))
	require.Equal(t, cli.OK, status)
	require.Equal(t, `12 goroutines wait on one limiter (7/s, burst 2). After 400ms the next 6 in line give up.

   250ms  ███ 3 start                                 9 in line
   400ms  █ 1 start                                   8 in line
   400ms  6 give up
   500ms  █ 1 start                                   1 in line
   570ms  █ 1 start                                   0 in line

12 came, 6 started, 6 gave up.
At most 6 started within a second, allowed are 9. Turns that passed unused: 0.
The last one started after 570ms. Had the places of the 6 who left stayed empty, it would have been 1.43s.
`, out)
}

func TestNobodyLeaves(t *testing.T) {
	s := small
	s.leave = 0
	status, out := show(t, s, bucket(t, s))
	require.Equal(t, cli.OK, status)
	require.Contains(t, out, "12 came, 12 started, 0 gave up.\n")
	require.NotContains(t, out, "give up\n")
	require.NotContains(t, out, "Had the places")
}

func TestEverybodyLeavesAtOnce(t *testing.T) {
	s := small
	s.after, s.leave = 0, 1000
	status, out := show(t, s, bucket(t, s))
	require.Equal(t, cli.OK, status, out)
	require.Contains(t, out, "12 came, 2 started, 10 gave up.\n")
	require.NotContains(t, out, "Had the places")
}

func TestUnlimited(t *testing.T) {
	s := small
	s.rate = sluice.Unlimited
	status, out := show(t, s, bucket(t, s))
	require.Equal(t, cli.OK, status, out)
	require.Contains(t, out, "At most 12 started within a second, allowed are any number.")
}

// A limiter that fixes turns on arrival wastes those of who left, and is found out: x/time/rate.
func TestWastedTurns(t *testing.T) {
	s := small
	s.leave = 7
	status, out := show(t, s, func() sluice.Limiter { return &fixed{limiter: xrate.NewLimiter(7, 2)} })
	require.Equal(t, cli.Broken, status)
	require.Contains(t, out, "12 came, 5 started, 7 gave up.\n")
	// Seven, but its last turn is a nanosecond early: it cuts waits off where they are to be rounded up.
	require.Contains(t, out, "WRONG: 6 turns passed unused; the machine explains 1\n")
}

// fixed is x/time/rate with the books that the demo reads.
type fixed struct {
	sluice.Limiter // nil: only Wait and Stats are called
	limiter        *xrate.Limiter
	came, granted  atomic.Int64
}

func (f *fixed) Wait(ctx context.Context, n int) error {
	r := f.limiter.ReserveN(time.Now(), n)
	f.came.Add(1)
	select {
	case <-time.After(r.Delay()):
		f.granted.Add(1)
		return nil
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	}
}

func (f *fixed) Stats() sluice.Stats {
	return sluice.Stats{Waiting: int(f.came.Load()), Units: uint64(f.granted.Load())}
}

// A limiter that lets too many through is found out.
func TestBrokenLimit(t *testing.T) {
	s := small
	s.leave = 0
	status, out := show(t, s, func() sluice.Limiter { return &fixed{limiter: xrate.NewLimiter(xrate.Inf, 1)} })
	require.Equal(t, cli.Broken, status)
	require.Contains(t, out, "WRONG: the limit was broken: 12 starts within 1s, allowed are 9\n")
}

// An interrupt may come while they are still coming: those to whom it comes first are no limiter's callers any more.
func TestInterruptAtTheBeginning(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	require.Equal(t, cli.Interrupted, Command().Main(ctx, nil, &out, &errs), out.String())
	require.Contains(t, out.String(), "100 came, 0 started, 100 gave up.\n")
}

func TestProblems(t *testing.T) {
	fine := report{settings: settings{rate: sluice.PerSecond(10), burst: 1, n: 3}, units: 2,
		tally: tally{starts: []time.Duration{0, 100 * time.Millisecond}, left: 1}}
	for _, s := range []struct {
		change func(*report)
		status int
		says   string
	}{
		{func(*report) {}, cli.OK, "Turns that passed unused: 0."},
		{func(r *report) { r.left, r.missing = 0, 1 }, cli.Broken, "1 are missing"},
		{func(r *report) { r.left, r.failed = 0, 1 }, cli.Broken, "1 goroutines got an error that is not their own giving up"},
		{func(r *report) { r.units = 3 }, cli.Broken, "2 goroutines started, and the limiter counts 3 units"},
		{func(r *report) { r.starts[1] = 300 * time.Millisecond }, cli.Broken, "2 turns passed unused; the machine explains 1"},
		{func(r *report) {
			r.starts[1] = 300 * time.Millisecond
			r.stalls = []law.Stall{{From: 100 * time.Millisecond, To: 300 * time.Millisecond}}
		}, cli.OK, "Turns that passed unused: 2."},
		{func(r *report) {
			r.starts[1] = 500 * time.Millisecond
			r.stalls = []law.Stall{{From: 100 * time.Millisecond, To: 301 * time.Millisecond}}
		}, cli.Broken, "CANNOT SHOW whether all is right: 4 turns passed unused, and the machine stood still for 201ms."},
		{func(r *report) {
			r.rate = sluice.PerSecond(1) // 2 in a second
			r.starts, r.units, r.left = append(r.starts, 100*time.Millisecond), 3, 0
		}, cli.Broken, "the limit was broken: 3 starts within 1s, allowed are 2"},
		{func(r *report) {
			r.rate = sluice.PerSecond(5) // 6 in a second
			r.starts, r.units, r.n, r.left = make([]time.Duration, 7), 7, 7, 0
			r.stalls = []law.Stall{{From: -200 * time.Millisecond, To: 0}}
		}, cli.OK, "NOTE: there this machine held the process up for 200ms, which explains 1 more."},
		{func(r *report) { r.interrupted = true }, cli.Interrupted, "Interrupted: whoever still stood in line left"},
		{func(r *report) { r.dodgers = 1 }, cli.OK, "The turn of 1 came in the moment in which they were to give up, and stands."},
	} {
		r := fine
		r.starts = append([]time.Duration(nil), fine.starts...)
		s.change(&r)
		var out bytes.Buffer
		require.Equal(t, s.status, r.write(&out), s.says)
		require.Contains(t, out.String(), s.says)
	}
}

func TestCommand(t *testing.T) {
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	// On a real clock, and given up half-way: ctx ends as Ctrl-C would end it.
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, stop)
	require.Equal(t, cli.Interrupted, Command().Main(own, []string{"-rate", "1/min", "-n", "20", "-leave", "0"}, &out, &errs))
	require.Empty(t, errs.String())
	require.Contains(t, out.String(), "20 came, 5 started, 15 gave up.\n")

	out.Reset()
	require.Equal(t, cli.Usage, Command().Main(ctx, []string{"-after", "soon"}, &out, &errs))
	require.Contains(t, errs.String(), "must be a time with its unit")
	require.Equal(t, 1, strings.Count(errs.String(), "\n"))
}

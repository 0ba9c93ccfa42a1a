package tune

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
	"github.com/fadf4e53/sluice/cmd/demo/internal/sim"
	"github.com/fadf4e53/sluice/waiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func call(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = Command().Main(context.Background(), args, &out, &err)
	return status, out.String(), err.String()
}

// What is advised keeps every number that was given, in the simulation; WRONG would say that it does not. What is
// impossible is said to be, and each number that would do, does.
func TestEveryAdviceHolds(t *testing.T) {
	would := regexp.MustCompile(`(-(?:limit|slots|wait)) (\S+?)(?:,| or)`)
	for _, s := range []struct {
		args string
		fits bool
	}{
		{"", true},
		{"-limit 1/s -arrivals 1/2s -wait 1ms -handler 0s", true},
		{"-limit 1/s -slots 1 -handler 1s -arrivals 1/s -wait 1ms", true},
		{"-limit 1/s -slots 1 -handler 1001ms -arrivals 1/s -wait 1ms", false},
		{"-limit 1/s -arrivals 2@10s -wait 999ms", false}, // no room for a burst beside a rate
		{"-limit 2/s -arrivals 2@10s -wait 1ms", false},
		{"-limit 3/s -arrivals 2@10s -wait 1ms", true},
		{"-limit 60/min -arrivals 50@1m -for 5m -wait 1m", true},
		{"-limit 60/min -arrivals 50@1m -for 5m -wait 10s", false},
		{"-limit 60/min -arrivals 30@1m -for 5m -wait 10s", true},
		{"-limit 2000/h -arrivals 20@2m -for 1h -wait 1s -handler 300ms", true},
		{"-limit 100/s -slots 20 -handler 80ms -wait 1s -arrivals 40/s+150@5s", false},
		{"-limit 150/s -slots 20 -handler 80ms -wait 1s -arrivals 40/s+150@5s", true},
		{"-limit 100/s -slots 40 -handler 80ms -wait 200ms -arrivals 40/s+50@5s", false},
		{"-limit 100/s -slots 2 -handler 1s", false},
		{"-limit 100/s -slots 3 -handler 70ms -wait 400ms -arrivals 7/s+13@3s", true},
		{"-limit 97/3s -slots 7 -handler 333ms -wait 900ms -arrivals 11/s+17@7s", true},
		{"-limit 1000000000/s -arrivals 1000@1s -wait 1ms", true},
		{"-limit 1000000/s -arrivals 20000@1s -for 3s -wait 1ms -handler 0s", true},
		{"-limit 3/s -arrivals 2/s -handler 1h -wait 24h", true},
		{"-limit 1/24h -arrivals 1@24h -for 240h -wait 1ms", true},
		{"-limit 1/24h -arrivals 1@12h -for 240h -wait 1ms", false},
		{"-limit 1/8784h -arrivals 1/s -for 10s -wait 1ms", false}, // no wait that can be said would do
		{"-limit 100/s -arrivals 110/s -wait 10ms", false},
		{"-limit 100/s -arrivals 100/s -wait 1ms", true},
		{"-limit 33/s -arrivals 33/s+1@1s -wait 50ms -for 10s", false},
	} {
		status, out, errs := call(strings.Fields(s.args)...)
		require.Empty(t, errs, s.args)
		if s.fits {
			require.Equal(t, cli.OK, status, "%s\n%s", s.args, out)
			require.NotContains(t, out, "WRONG")
			require.Contains(t, out, " started, 0 refused.")
			continue
		}
		require.Equal(t, cli.Broken, status, "%s\n%s", s.args, out)
		_, says, found := strings.Cut(out, "What would do: ")
		require.True(t, found, out)
		remedies := would.FindAllStringSubmatch(says, -1)
		require.NotEmpty(t, remedies, out)
		for _, r := range remedies {
			status, out, _ := call(append(strings.Fields(s.args), r[1], r[2])...)
			require.Equal(t, cli.OK, status, "%s %s %s\n%s", s.args, r[1], r[2], out)
			require.NotContains(t, out, "WRONG")
		}
	}
}

// The advice is checked by the simulation and not only by its own arithmetic: wrong numbers are found out.
func TestWrongAdviceIsFoundOut(t *testing.T) {
	nd := need{limit: quota{10, time.Second}, slots: 3, handler: 100 * time.Millisecond, wait: time.Second,
		arrivals: make([]time.Duration, 6)}
	p, fits := nd.best()
	require.True(t, fits)
	for _, s := range []struct {
		change func(*advice)
		says   string
	}{
		{func(*advice) {}, ""},
		{func(a *advice) { a.burst = 6 }, "6 ran at once, there are 3 slots"},
		{func(a *advice) { a.rate = sluice.PerSecond(2); a.capacity = 100 }, "somebody waited 2.5s, tolerated are 1s"},
		{func(a *advice) { a.capacity = 2 }, "4 were refused"},
		{func(a *advice) { a.concurrency = 0 }, "1 ran at once, the advice was 0"},
		{func(a *advice) { a.rate, a.burst = sluice.PerSecond(100), 2 }, "6 ran at once, there are 3 slots"},
	} {
		a := nd.advise(p)
		s.change(&a)
		out, err := nd.simulate(a)
		require.NoError(t, err)
		wrongs := nd.wrongs(a, out)
		if s.says == "" {
			require.Empty(t, wrongs)
			continue
		}
		require.Contains(t, wrongs, s.says)
	}
}

// The search's arithmetic and the limiter agree to the nanosecond.
func TestLongestWait(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		arrivals := make([]time.Duration, 1+rnd.IntN(200))
		for i := range arrivals {
			arrivals[i] = time.Duration(rnd.Int64N(int64(3 * time.Second)))
		}
		slices.Sort(arrivals)
		rate := sluice.Per(1+rnd.Int64N(300), time.Duration(1+rnd.Int64N(int64(5*time.Second))))
		burst := 1 + rnd.IntN(20)

		var clock sim.Clock
		l, err := sim.Bucket(&clock, waiter.Config{Rate: rate, Burst: burst})
		require.NoError(t, err)
		callers := make([]sim.Arrival, len(arrivals))
		for i := range callers {
			callers[i].At = arrivals[i]
		}
		out := sim.Run(&clock, callers, l)
		require.Equal(t, out.Longest(), longestWait(arrivals, rate, burst, sluice.Never), "%v, burst %d", rate, burst)

		for _, d := range []time.Duration{time.Second, 70 * time.Millisecond, rate.TimeFor(3)} {
			require.LessOrEqual(t, int64(out.Peak(d)), plan{rate: rate, burst: burst}.within(d), "%v, burst %d, in %v", rate, burst, d)
		}
	}
}

// within is not only never too low, but reached: by a herd.
func TestWithinIsReached(t *testing.T) {
	for _, p := range []plan{
		{rate: sluice.PerSecond(100), burst: 1}, {rate: sluice.PerSecond(100), burst: 7},
		{rate: sluice.Per(3, 7*time.Millisecond), burst: 2}, {rate: sluice.Per(1, time.Minute), burst: 4},
	} {
		var clock sim.Clock
		l, err := sim.Bucket(&clock, waiter.Config{Rate: p.rate, Burst: p.burst})
		require.NoError(t, err)
		out := sim.Run(&clock, make([]sim.Arrival, 900), l)
		for _, d := range []time.Duration{time.Second, 70 * time.Millisecond, time.Nanosecond} {
			require.Equal(t, p.within(d), int64(out.Peak(d)), "%v, burst %d, in %v", p.rate, p.burst, d)
		}
	}
}

// What the table of bursts says is what a herd does.
func TestBurstOfAHundredTimesTheRate(t *testing.T) {
	_, out, _ := call("-limit", "10/s", "-arrivals", "5/s")
	require.Contains(t, out, "1,000  100 × rate        1,010 = 101.00 × what it takes: felled  1m40s\n")
	var clock sim.Clock
	l, err := sim.Bucket(&clock, waiter.Config{Rate: sluice.PerSecond(10), Burst: 1000})
	require.NoError(t, err)
	herd := sim.Run(&clock, make([]sim.Arrival, 1500), l)
	require.Equal(t, 1010, herd.Peak(time.Second+1), "both ends of the second")
}

func TestOutput(t *testing.T) {
	status, out, errs := call("-limit", "100/s", "-slots", "50", "-handler", "100ms", "-wait", "200ms", "-arrivals", "20/s+30@5s")
	require.Equal(t, cli.OK, status)
	require.Empty(t, errs)
	require.Equal(t, `The downstream takes 100/s, 50 calls at once, and a call takes 100ms.
780 callers arrive, 26 a second on average, 50 in the fullest second; none may wait longer than 200ms.

Set:

  Rate         86/s   the limit less the burst: a bucket that has rested lets both go in 1s
  Burst        14     the least that does: with 13 somebody would wait 207ms
  Capacity     18     more cannot start within 200ms: who comes to a longer line is refused at once, and told when to come again
  MaxWait      200ms  what you tolerate: who would wait longer is refused on arrival, not after having waited
  Concurrency  22     so many of 100ms run at once when the burst goes; with fewer slots the rate is not reached

  waiter.New(waiter.Config{Rate: sluice.PerSecond(86), Burst: 14, MaxWait: 200*time.Millisecond, MaxWaiters: 18})

Simulated with these numbers: 780 started, 0 refused. The longest wait was 198ms (p99 186ms); the fullest 1s saw 50 starts of 100. At most 22 ran at once of 50.

What a burst does to this backend, at its own rate of 100/s, when a herd comes after a rest:

  burst                     in the fullest 1s                        worked off in
  14      advised, at 86/s  100 = 1.00 × what it takes               -
  100     1 × rate          200 = 2.00 × what it takes: too much     1s
  1,000   10 × rate         1,100 = 11.00 × what it takes: too much  10s
  10,000  100 × rate        10,100 = 101.00 × what it takes: felled  1m40s

The average is the same in each line. What fells a backend is the second in which it comes.

Rules of thumb, with your numbers, and what each would let through in the fullest 1s (yours takes 100):

  service          rule                                     rate   burst  fullest
  API gateway      peak × 1.2, burst 2 × to 5 × rate        60/s   120    180 = 1.80 × what it takes: too much
  connection pool  its size, burst × 1.5                    50/s   75     125 = 1.25 × what it takes: too much
  queue consumer   what it can take, burst up to 10 × rate  100/s  1,000  1,100 = 11.00 × what it takes: too much
  login            3 × usual, burst = rate                  78/s   79     157 = 1.57 × what it takes: too much
`, out)
}

func TestImpossible(t *testing.T) {
	for _, s := range []struct{ args, says string }{
		{"-limit 100/s -slots 2 -handler 1s", "with -slots 2 (calls of 1s) somebody must wait 16m59.6s, and -wait tolerates 2s. What would do: -slots 75, or -wait"},
		{"-limit 100/s -arrivals 110/s -wait 10ms", "with -limit 100/s somebody must wait 3s, and -wait tolerates 10ms. What would do: -limit 110/s, or -wait 3s, or fewer arrivals."},
		{"-limit 1/s -slots 1 -handler 2s -arrivals 1/s -wait 1s", "with -slots 1 (calls of 2s) somebody must wait"},
		{"-limit 1/s -slots 1 -handler 2s -arrivals 2/s -wait 1s", "with -limit 1/s and -slots 1 (calls of 2s) somebody must wait"},
	} {
		status, out, _ := call(strings.Fields(s.args)...)
		require.Equal(t, cli.Broken, status)
		require.Contains(t, out, s.says)
	}
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "times")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("# when they came\n2026-01-31T12:00:01.5Z\n\n2026-01-31T12:00:01.25Z\n2026-01-31T13:00:02+01:00\n")
	got, err := readTimes(file)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{0, 250 * time.Millisecond, 750 * time.Millisecond}, got)
	write("10.5\n12s\n11\n")
	got, err = readTimes(file)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond}, got)
	status, out, _ := call("-file", file, "-limit", "1/s")
	require.Equal(t, cli.OK, status, out)
	require.Contains(t, out, "3 callers arrive, 2 a second on average, 2 in the fullest second;")

	write("1\nnoon\n")
	status, _, errs := call("-file", file)
	require.Equal(t, cli.Usage, status)
	require.Contains(t, errs, `times: line 2: "noon" must be a time, like`)
	write("\n# none\n")
	_, _, errs = call("-file", file)
	require.Contains(t, errs, "no arrival in it")
	write("NaN\n")
	_, _, errs = call("-file", file)
	require.Contains(t, errs, `line 1: "NaN" must be a time`)
	_, _, errs = call("-file", file+"x")
	require.Contains(t, errs, "no such file")
}

func TestBadFlags(t *testing.T) {
	for _, s := range []struct{ args, says string }{
		{"-limit unlimited", "must be a limit"},
		{"-limit 0/s", "must be at least 1"},
		{"-limit 2000000000/s", "must be at most 1000000000 units, in at most a year"},
		{"-limit 5/9000h", "in at most a year"},
		{"-arrivals many", `"many" must be a rate, like 80/s, or a herd, like 200@5s`},
		{"-arrivals 200@", `"200@" must be a herd`},
		{"-arrivals 200@0s", `"200@0s" must be a herd`},
		{"-arrivals 0@5s", `"0@5s" must be a herd`},
		{"-arrivals 100000/s", "more than 200000 arrivals: simulate less with -for"},
		{"-wait 0s", "from 1ms to 8784h0m0s"},
		{"-slots -1", "must be a whole number from 0"},
	} {
		status, out, errs := call(strings.Fields(s.args)...)
		require.Equal(t, cli.Usage, status, s.args)
		require.Empty(t, out, s.args)
		require.Contains(t, errs, s.says, s.args)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
}

func TestQuotaIsNotReduced(t *testing.T) {
	for text, want := range map[string]quota{
		"60/min": {60, time.Minute}, "1/s": {1, time.Second}, "10/2s": {10, 2 * time.Second}, "100/100ms": {100, 100 * time.Millisecond},
	} {
		var q quota
		require.NoError(t, q.Set(text))
		require.Equal(t, want, q, text)
		require.Equal(t, text, q.String())
	}
}

func TestCode(t *testing.T) {
	a := advice{plan: plan{rate: sluice.Per(11, 20*time.Second), burst: 20}, capacity: 1, maxWait: time.Second}
	require.Equal(t, "waiter.New(waiter.Config{Rate: sluice.Per(11, 20*time.Second), Burst: 20, MaxWait: time.Second, MaxWaiters: 1})", a.code())
	a.rate, a.maxWait = sluice.Every(1500*time.Nanosecond), time.Minute+500*time.Millisecond
	require.Contains(t, a.code(), "Rate: sluice.Per(1, 1500*time.Nanosecond)")
	require.Contains(t, a.code(), "MaxWait: 60500*time.Millisecond")
	a.rate, a.burst = sluice.Every(20*time.Millisecond), 1
	require.Equal(t, "leaky.New(leaky.Config{Rate: sluice.PerSecond(50), Capacity: 1})", a.code())
}

package cluster

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
	"github.com/fadf4e53/sluice/internal/redistest"
)

// clocked is the script with its time as two more arguments: seconds and µs. Its keys do not expire, since the server's
// clock is another.
func clocked(t testing.TB) script {
	const read = "redis.call('TIME')"
	require.Equal(t, 1, strings.Count(source, read), "the script must read the clock once")
	text := strings.Replace(source, read, "{ARGV[13], ARGV[14]}", 1)
	return newScript(strings.Replace(text, expiry, "", 1))
}

const expiry = ", 'PX', ttl"

// A bench is one key, and a clock that the test moves.
type bench struct {
	t      testing.TB
	terms  terms
	script script
	client *redis.Client
	key    string
	now    uint64 // µs
}

const begin = 1_790_000_000_123_456 // µs, in 2026

func newBench(t testing.TB, client *redis.Client, rate sluice.Rate, burst int, horizon time.Duration) *bench {
	terms, err := newTerms(rate, burst, horizon)
	require.NoError(t, err)
	return &bench{t, terms, clocked(t), client, "sluice:" + name(), begin}
}

func (b *bench) ask(a ask) answer {
	b.t.Helper()
	args := b.terms.args(a)
	args = append(args, []any{"0", "", "0", "0"}[len(args)-8:]...) // what is left out stands for
	args = append(args, strconv.FormatUint(b.now/1_000_000, 10), strconv.FormatUint(b.now%1_000_000, 10))
	reply, err := b.script.trip(b.client, b.key, args)
	require.NoError(b.t, err)
	got, err := b.terms.read(reply)
	require.NoError(b.t, err)
	return got
}

// take takes n units if there is no more than most to wait for them.
func (b *bench) take(n int, most time.Duration) answer {
	b.t.Helper()
	cost := b.terms.cost(n)
	bound := b.terms.full.Add(b.terms.span(most))
	require.False(b.t, bound.Less(cost), "can never be taken")
	return b.ask(ask{cost: cost, debt: bound.Sub(cost), pause: uint64(most / time.Microsecond)})
}

func (b *bench) look() answer { return b.ask(ask{pause: longestUS}) }

// us returns parts in µs, as an exact fraction.
func (b *bench) us(parts exact.U128) *big.Rat {
	v := new(big.Int).SetUint64(parts.Hi)
	v.Add(v.Lsh(v, 64), new(big.Int).SetUint64(parts.Lo))
	return new(big.Rat).SetFrac(v, new(big.Int).SetUint64(b.terms.micros))
}

// Rates whose interval is no whole number of µs, up to those at which a float's grid is wider than the interval, and a
// limit that let everything through.
func TestExactAgainstFractions(t *testing.T) {
	client := dial(t, redistest.Start(t))
	for _, rate := range []int64{3, 7, 999_983, 5_000_000, 40_000_000, 1_000_000_000, 4_000_000_000} {
		t.Run(fmt.Sprintf("%d per second", rate), func(t *testing.T) {
			t.Parallel()
			const calls = 10_000
			rng := rand.New(rand.NewPCG(uint64(rate), 1))
			burst := 1 + rng.IntN(20)
			b := newBench(t, client, sluice.PerSecond(rate), burst, time.Minute)
			unit := big.NewRat(1_000_000, rate) // µs
			full := new(big.Rat).Mul(unit, big.NewRat(int64(burst), 1))
			tat := big.NewRat(begin, 1)
			refused, ahead := 0, 0.0
			for i := range calls {
				// As much as flows, so that the debt wanders between rest and the longest wait.
				each, _ := unit.Float64()
				ahead += rng.Float64() * each * float64(burst+1)
				b.now += uint64(ahead)
				ahead -= math.Floor(ahead)
				n := 1 + rng.IntN(burst)
				most := time.Duration(2000 * rng.Float64() * (1 + each*float64(burst)))

				now := new(big.Rat).SetUint64(b.now)
				if tat.Cmp(now) < 0 {
					tat.Set(now)
				}
				debt := new(big.Rat).Sub(tat, now)
				after := new(big.Rat).Add(tat, new(big.Rat).Mul(unit, big.NewRat(int64(n), 1)))
				wait := new(big.Rat).Sub(after, now)
				wait.Sub(wait, full)
				taken := wait.Cmp(big.NewRat(int64(most), 1000)) <= 0
				if taken {
					tat = after
				} else {
					refused++
				}
				got := b.take(n, most)
				require.Zero(t, debt.Cmp(b.us(got.debt)), "call %d: debt %v, want %v µs", i, b.us(got.debt), debt)
				require.Equal(t, taken, got.taken, "call %d: %d units, wait %v µs, at most %v", i, n, wait, most)
			}
			require.Positive(t, refused)
			require.Less(t, refused, calls*3/4)
		})
	}
}

// A key that goes before its debt is paid forgives it: 1 per 1.9 s let 15 through in 15 s where 8 were right.
func TestKeyOutlivesTheDebt(t *testing.T) {
	client := dial(t, redistest.Start(t))
	for _, rate := range []sluice.Rate{
		sluice.Per(10, 19*time.Second), sluice.PerSecond(3), sluice.PerSecond(999_983), sluice.PerSecond(4e9),
		sluice.Every(time.Hour), sluice.Per(1, 10*365*24*time.Hour),
	} {
		b := newBench(t, client, rate, 5, longest)
		require.Contains(t, source, expiry)
		b.script = newScript(strings.Replace(b.script.text, "'SET', KEYS[1], value", "'SET', KEYS[1], value"+expiry, 1))
		rng := rand.New(rand.NewPCG(1, 2))
		for range 30 {
			b.now += rng.Uint64N(3_000_000)
			got := b.take(1+rng.IntN(5), longest-50*365*24*time.Hour)
			if rng.IntN(4) == 0 {
				b.ask(ask{hold: rng.Uint64N(5_000_000)})
			}
			debt := b.look()
			ttl := client.PTTL(background, b.key).Val()
			require.Greater(t, ttl, b.terms.wait(debt.debt), "%v: %v", rate, got)
			require.Greater(t, ttl, 900*time.Millisecond)
		}
	}
}

// Raising a rate on a key with 6 s of debt made the next call wait 5.7 s.
func TestAChangedRateOrBurstCountsWhatIsOwedInUnits(t *testing.T) {
	client := dial(t, redistest.Start(t))
	for _, c := range []struct {
		what      string
		rate      sluice.Rate
		burst     int
		take      int // units, of which those over the burst are a line
		newRate   sluice.Rate
		newBurst  int
		wantUnits int64 // owed
	}{
		{"raised 100 times", sluice.Per(10, 20*time.Second), 16, 3, sluice.Per(1000, 20*time.Second), 16, 3},
		{"raised, with an empty bucket", sluice.Every(time.Minute), 1, 1, sluice.PerSecond(100), 1, 1},
		{"lowered", sluice.PerSecond(1000), 10, 10, sluice.PerSecond(1), 10, 10},
		{"a smaller burst keeps nobody waiting for the old one", sluice.PerSecond(10), 20, 20, sluice.PerSecond(10), 2, 2},
		{"a line comes on top", sluice.PerSecond(10), 4, 7, sluice.PerSecond(100), 2, 2 + 3},
		{"a larger burst has to gather", sluice.PerSecond(10), 1, 1, sluice.PerSecond(10), 10, 10},
		{"a larger burst does not take the line in", sluice.PerSecond(10), 1, 5, sluice.PerSecond(10), 10, 10 + 4},
		{"what is left stays", sluice.PerSecond(10), 10, 3, sluice.PerSecond(10), 20, 20 - 7},
		{"limited after all", sluice.Unlimited, 5, 5, sluice.PerSecond(10), 5, 0},
		{"unlimited from now on", sluice.Every(time.Hour), 5, 5, sluice.Unlimited, 5, 0},
	} {
		b := newBench(t, client, c.rate, c.burst, time.Hour)
		for range c.take {
			require.True(t, b.take(1, time.Hour).taken)
		}
		b.terms, _ = newTerms(c.newRate, c.newBurst, time.Hour)
		owed, want := b.terms.wait(b.look().debt), c.newRate.TimeFor(c.wantUnits)
		require.GreaterOrEqual(t, owed, want, c.what)
		require.LessOrEqual(t, owed, want+2*time.Microsecond, "%s: rounded up once, to whole µs", c.what)

		// Back and forth, as while a new version is rolled out: nothing is forgotten, and nothing grows.
		other, _ := newTerms(c.rate, c.burst, time.Hour)
		for range 10 {
			b.terms, other = other, b.terms
			b.take(1, time.Hour)
			b.now += 1000
		}
		require.LessOrEqual(t, b.terms.wait(b.look().debt), max(c.rate.TimeFor(60), c.newRate.TimeFor(60)), c.what)
	}
}

// Whoever had the smaller burst cut the debt, and whoever had the larger got the difference: together there was no limit.
func TestTwoBurstsUnderOneNameMakeNoUnits(t *testing.T) {
	client := dial(t, redistest.Start(t))
	for _, rate := range []sluice.Rate{sluice.Every(time.Hour), sluice.Per(7, time.Hour)} {
		n := name()
		large := made(t, client, Config{Name: n, Rate: rate, Burst: 10, Horizon: 1000 * time.Hour})
		small := made(t, client, Config{Name: n, Rate: rate, Burst: 1, Horizon: 1000 * time.Hour})
		went := 0
		for range 20 {
			for tried(t, large, 1).Allowed {
				went++
			}
			r, err := small.Reserve(background, 1)
			require.NoError(t, err)
			require.Positive(t, r.Delay())
		}
		require.Equal(t, 10, went)
	}

	const rate, burst = 100, 50
	n := name()
	began, went := time.Now(), new(atomic.Int64)
	var all sync.WaitGroup
	for _, b := range []int{burst, 5} { // while a new version is rolled out
		l := made(t, client, Config{Name: n, Rate: sluice.PerSecond(rate), Burst: b})
		for range 5 {
			all.Go(func() {
				for time.Since(began) < time.Second {
					if l.Wait(background, 1) == nil {
						went.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	most := burst + int64(rate*time.Since(began).Seconds()*1.01) // Redis goes by the wall clock
	require.LessOrEqual(t, went.Load(), most)
	require.Greater(t, went.Load(), most/2)
}

// A server whose clock is set back by an hour must not refuse for an hour; one that is set forward forgives.
func TestAServersClockThatSteps(t *testing.T) {
	client := dial(t, redistest.Start(t))
	b := newBench(t, client, sluice.PerSecond(10), 5, 10*time.Second)
	for range 50 {
		b.take(1, 10*time.Second)
	}
	owed := b.look().debt
	b.now -= 3_600_000_000
	after := b.terms.wait(b.look().debt)
	require.LessOrEqual(t, after, 10*time.Second+500*ms, "no more than anybody may owe")
	require.GreaterOrEqual(t, after, b.terms.wait(owed), "and nothing is forgiven")
	require.True(t, b.take(1, 11*time.Second).taken)
	b.now += 2 * 3_600_000_000
	require.Zero(t, b.look().debt)

	// Another process with a longer Horizon has let callers owe more: that is no step of a clock.
	far := *b
	far.terms, _ = newTerms(sluice.PerSecond(10), 5, time.Hour)
	for range 3000 {
		far.take(1, time.Hour)
	}
	require.Equal(t, 300*time.Second, b.terms.wait(b.look().debt), "turns that are owned stay where they are")
}

func TestWhatIsGivenBack(t *testing.T) {
	client := dial(t, redistest.Start(t))
	b := newBench(t, client, sluice.PerSecond(3), 2, time.Hour)
	end := func() exact.U128 { return b.terms.parts(b.now, 0).Add(b.look().debt) }
	for range 9 { // thirds that add up to whole µs
		require.True(t, b.take(1, time.Hour).taken)
	}
	was := end()
	require.True(t, b.ask(ask{end: was, back: b.terms.cost(4)}).returned)
	require.Equal(t, was.Sub(b.terms.cost(4)), end())
	require.False(t, b.ask(ask{end: was, back: b.terms.cost(1)}).returned, "somebody has come, or gone")

	now := end()
	got := b.ask(ask{end: now, back: b.terms.cost(1), cost: b.terms.cost(2), debt: b.terms.parts(longestUS, 0), pause: longestUS})
	require.True(t, got.returned && got.taken, "both in one trip")
	require.Equal(t, now.Add(b.terms.cost(1)), end())

	b.now += 60_000_000
	require.Zero(t, b.look().debt)
	require.True(t, b.take(2, 0).taken)
	require.True(t, b.ask(ask{end: end(), back: b.terms.cost(2)}).returned)
	require.Zero(t, b.look().debt, "full again, and not more than that:")
	require.True(t, b.take(2, 0).taken)
	require.False(t, b.take(1, 0).taken)
}

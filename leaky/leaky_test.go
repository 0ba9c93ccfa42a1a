package leaky_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/leaky"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// clock is a hand-driven Config.Now.
type clock struct{ t time.Time }

func newClock() *clock                   { return &clock{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }

func newPacer(t testing.TB, c leaky.Config) *leaky.Pacer {
	t.Helper()
	p, err := leaky.New(c)
	require.NoError(t, err)
	return p
}

func try(t testing.TB, p sluice.Limiter, n int) sluice.Decision {
	t.Helper()
	d, err := p.Try(context.Background(), n)
	require.NoError(t, err)
	return d
}

func TestTheLevelFallsAtTheRateAndOverflowIsTold(t *testing.T) {
	c := newClock()
	p := newPacer(t, leaky.Config{Rate: sluice.PerSecond(20), Capacity: 5, Now: c.now})
	allowed, refused := 0, 0
	for range 8 { // four callers, eight calls each, 8 ms apart
		for range 4 {
			if try(t, p, 1).Allowed {
				allowed++
			} else {
				refused++
			}
		}
		c.advance(8 * ms)
	}
	require.Equal(t, 6, allowed)
	require.Equal(t, 26, refused)
	require.InDelta(t, 4.72, p.Level(), 1e-9)
}

func TestTheSixthUnitIsToldWhenItFits(t *testing.T) {
	c := newClock()
	p := newPacer(t, leaky.Config{Rate: sluice.PerSecond(20), Capacity: 5, Now: c.now})
	for i := range 5 {
		require.Equal(t, sluice.Decision{
			Allowed: true, Delay: time.Duration(i) * 50 * ms, ResetAfter: time.Duration(i+1) * 50 * ms, Remaining: 4 - i,
		}, try(t, p, 1))
	}
	require.Equal(t, sluice.Decision{RetryAfter: 50 * ms, ResetAfter: 250 * ms}, try(t, p, 1))
	_, err := p.Reserve(t.Context(), 2)
	var no *sluice.Refusal
	require.ErrorAs(t, err, &no)
	require.ErrorIs(t, err, sluice.ErrFull)
	require.Equal(t, 100*ms, no.RetryAfter) // overflow / rate
	c.advance(50 * ms)
	require.True(t, try(t, p, 1).Allowed)
}

func TestStartsAreEvenlySpacedWhateverTheArrivals(t *testing.T) {
	for name, gaps := range map[string][]time.Duration{
		"all at once": make([]time.Duration, 10),
		"one by one":  {0, 5 * ms, 5 * ms, 1, 0, 0, 10 * ms, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPacer(t, leaky.Config{Rate: sluice.PerSecond(50), Capacity: 100})
				start := time.Now()
				var mu sync.Mutex
				var starts []time.Duration
				var wg sync.WaitGroup
				for _, gap := range gaps {
					time.Sleep(gap)
					wg.Go(func() {
						require.NoError(t, p.Wait(t.Context(), 1))
						mu.Lock()
						defer mu.Unlock()
						starts = append(starts, time.Since(start))
					})
				}
				wg.Wait()
				for i, s := range starts {
					require.Equal(t, time.Duration(i)*20*ms, s)
				}
			})
		})
	}
}

func TestAfterIdlingElevenWentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, leaky.Config{Rate: sluice.PerSecond(1), Capacity: 100})
		time.Sleep(time.Hour)
		start := time.Now()
		for range 11 {
			require.NoError(t, p.Wait(t.Context(), 1))
		}
		require.Equal(t, 10*time.Second, time.Since(start))
	})
}

func TestWithoutSlackDidNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, leaky.Config{Rate: sluice.PerSecond(100), Capacity: 10, Strict: true})
		start := time.Now()
		for i := range 10 {
			require.NoError(t, p.Wait(t.Context(), 1))
			require.Equal(t, time.Duration(i)*10*ms, time.Since(start))
		}
	})
}

func TestALargePourHoldsUpTheNextByItsSize(t *testing.T) {
	c := newClock()
	p := newPacer(t, leaky.Config{Rate: sluice.PerSecond(10), Capacity: 10, Now: c.now})
	require.Zero(t, try(t, p, 7).Delay)
	require.Equal(t, 700*ms, try(t, p, 2).Delay)
	require.Equal(t, 900*ms, try(t, p, 1).Delay)
	require.InDelta(t, 10, p.Level(), 0)
}

func TestATimeThatWasToldStaysTrueWhenOthersLeave(t *testing.T) {
	c := newClock()
	p := newPacer(t, leaky.Config{Rate: sluice.PerSecond(10), Capacity: 10, Now: c.now})
	reserve := func(n int) sluice.Reservation {
		r, err := p.Reserve(t.Context(), n)
		require.NoError(t, err)
		return r
	}
	reserve(1) // starts now
	two := reserve(2)
	require.Equal(t, 300*ms, try(t, p, 1).Delay) // told
	large, small := reserve(3), reserve(1)
	require.Equal(t, 400*ms, large.Delay())
	require.Equal(t, 700*ms, small.Delay())
	two.Cancel()
	// The hole of two goes to the next who waits and fits; three do not.
	require.Equal(t, 400*ms, large.Delay())
	require.Equal(t, 700*ms, small.Delay())
	large.Cancel()
	require.Equal(t, 100*ms, small.Delay())
	require.Equal(t, 200*ms, try(t, p, 1).Delay) // and what is left of it to the next
	require.Equal(t, 400*ms, try(t, p, 1).Delay)
	require.InDelta(t, 5, p.Level(), 0)
	require.NoError(t, p.Pause(t.Context(), time.Second))
	require.Equal(t, time.Second, small.Delay())
	require.NoError(t, p.SetRate(sluice.PerSecond(100)))
	require.Equal(t, time.Second, small.Delay())
	c.advance(time.Second)
	require.Zero(t, small.Delay())
	require.InDelta(t, 1, p.Level(), 0)
}

func TestTheLevelCountsWhatWaits(t *testing.T) {
	c := newClock()
	p := newPacer(t, leaky.Config{Rate: sluice.PerSecond(10), Capacity: 5, Now: c.now})
	r, err := p.Reserve(t.Context(), 2)
	require.NoError(t, err)
	s, err := p.Reserve(t.Context(), 3)
	require.NoError(t, err)
	require.InDelta(t, 5, p.Level(), 0)
	require.Equal(t, 1, p.Stats().Waiting)
	s.Cancel()
	require.InDelta(t, 2, p.Level(), 0)
	c.advance(50 * ms)
	r.Cancel() // its turn came, and half a unit has run out
	require.InDelta(t, 0, p.Level(), 0)
	require.Equal(t, 5, p.Stats().Available)
}

func TestAClockThatRunsBackKeepsTheWater(t *testing.T) {
	c := newClock()
	p := newPacer(t, leaky.Config{Rate: sluice.PerSecond(1), Capacity: 2, Now: c.now})
	c.advance(100 * time.Second)
	require.True(t, try(t, p, 2).Allowed)
	c.advance(-10 * time.Second)
	require.Equal(t, 11*time.Second, try(t, p, 1).RetryAfter)
	require.InDelta(t, 2, p.Level(), 0)
	c.advance(11 * time.Second)
	require.Equal(t, time.Second, try(t, p, 1).Delay)
}

func TestUnlimitedHoldsNothing(t *testing.T) {
	p := newPacer(t, leaky.Config{Rate: sluice.Unlimited, Capacity: 2})
	for range 100 {
		require.Equal(t, sluice.Decision{Allowed: true, Remaining: 2}, try(t, p, 2))
		require.NoError(t, p.Wait(t.Context(), 1))
	}
	require.Zero(t, p.Level())
	_, err := p.Try(t.Context(), 3)
	require.ErrorIs(t, err, sluice.ErrTooLarge)
}

func TestBadValuesAreNamed(t *testing.T) {
	_, err := leaky.New(leaky.Config{Capacity: 1})
	require.ErrorIs(t, err, sluice.ErrInvalid)
	require.EqualError(t, err, "leaky: Config.Rate is 0/s: must be at least 1 unit per at least 1ns: invalid")
	_, err = leaky.New(leaky.Config{Rate: sluice.PerSecond(1)})
	require.EqualError(t, err, "leaky: Config.Capacity is 0: must be at least 1: invalid")
	for _, p := range []*leaky.Pacer{nil, {}} {
		require.ErrorIs(t, p.Wait(t.Context(), 1), sluice.ErrInvalid)
		require.ErrorIs(t, p.SetRate(sluice.Unlimited), sluice.ErrInvalid)
		require.ErrorIs(t, p.Close(), sluice.ErrInvalid)
		require.Zero(t, p.Level())
		require.Zero(t, p.Stats())
	}
}

func TestCloseWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, leaky.Config{Rate: sluice.Every(time.Hour), Capacity: 3})
		require.NoError(t, p.Wait(t.Context(), 1))
		r, d, err := p.TryReserve(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, time.Hour, d.Delay)
		errs := make(chan error, 2)
		go func() { errs <- p.Wait(t.Context(), 1) }()
		go func() { errs <- r.Wait(t.Context()) }()
		synctest.Wait()
		require.NoError(t, p.Close())
		require.ErrorIs(t, <-errs, sluice.ErrClosed)
		require.ErrorIs(t, <-errs, sluice.ErrClosed)
	})
}

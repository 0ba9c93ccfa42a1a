package waiter_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

// TestEveryUnitIsAccountedFor lets goroutines do everything at once on a bucket that hardly fills: what was taken and
// what is left must be what was there.
func TestEveryUnitIsAccountedFor(t *testing.T) {
	const all, workers, calls = 20_000, 16, 3_000
	l := newLimiter(t, waiter.Config{Rate: sluice.Every(1000 * time.Hour), Burst: all})
	var taken atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			ctx := context.Background()
			for range calls {
				n := 1 + r.IntN(3)
				switch r.IntN(5) {
				case 0:
					if d, err := l.Try(ctx, n); err == nil && d.Allowed {
						taken.Add(int64(n))
					}
				case 1:
					if r, err := l.Reserve(ctx, n); err == nil {
						r.Cancel()
						r.Cancel()
					}
				case 2:
					brief, cancel := context.WithCancel(ctx)
					go cancel()
					if l.Wait(brief, n) == nil {
						taken.Add(int64(n))
					}
					cancel()
				case 3:
					if r, d, err := l.TryReserve(ctx, n); err == nil && d.Allowed {
						if n == 1 {
							taken.Add(1)
						} else {
							r.Cancel()
						}
					}
				case 4:
					_ = l.Pause(ctx, time.Duration(r.IntN(1000)))
					_ = l.Stats()
				}
			}
		})
	}
	wg.Wait()
	s := l.Stats()
	require.Zero(t, s.Waiting)
	require.EqualValues(t, taken.Load(), s.Units)
	// What a Reservation gives back may lack what the bucket filled meanwhile: far less than a unit here.
	require.InDelta(t, all-taken.Load(), s.Available, 1)
}

// TestGrantAndCancelInTheSameInstant: exactly one wins, and the answer says which.
func TestGrantAndCancelInTheSameInstant(t *testing.T) {
	const calls = 100_000
	rate := sluice.PerSecond(50_000)
	l := newLimiter(t, waiter.Config{Rate: rate, Burst: 1})
	var granted, canceled int
	start := time.Now()
	for range calls {
		ctx, cancel := context.WithCancel(context.Background())
		if d := try(t, l, 1); d.Allowed {
			granted++
		} else {
			turn := time.Now().Add(d.RetryAfter - time.Duration(rand.IntN(2000))) // or a little before
			go func() {
				for time.Now().Before(turn) {
					runtime.Gosched()
				}
				cancel()
			}()
		}
		switch err := l.Wait(ctx, 1); err {
		case nil:
			granted++
		case context.Canceled:
			canceled++
		default:
			require.NoError(t, err)
		}
		cancel()
	}
	s := l.Stats()
	require.EqualValues(t, granted, s.Units)
	require.Zero(t, s.Waiting)
	require.LessOrEqual(t, int64(granted), 1+rate.UnitsIn(time.Since(start)))
	require.Positive(t, canceled)
	t.Logf("%d granted, %d canceled", granted, canceled)
}

// TestFiveThousandGoroutinesGetTheBurstAndTheRate counts what is let through on the real clock.
func TestFiveThousandGoroutinesGetTheBurstAndTheRate(t *testing.T) {
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 1})
	var admitted atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	start := time.Now()
	for range 5000 {
		wg.Go(func() {
			for !stop.Load() {
				if d, err := l.Try(context.Background(), 1); err == nil && d.Allowed {
					admitted.Add(1)
				}
				runtime.Gosched()
			}
		})
	}
	time.Sleep(time.Second)
	stop.Store(true)
	wg.Wait()
	require.LessOrEqual(t, admitted.Load(), 1+sluice.PerSecond(10).UnitsIn(time.Since(start)))
	require.GreaterOrEqual(t, admitted.Load(), int64(10))
}

// TestManyInLineAreAllServed drains a line on the real clock, and leaves nothing behind.
func TestManyInLineAreAllServed(t *testing.T) {
	const callers = 20_000
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(100_000), Burst: 1})
	start := time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if err := l.Wait(context.Background(), 1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.GreaterOrEqual(t, time.Since(start), sluice.PerSecond(100_000).TimeFor(callers-1))
	s := l.Stats()
	require.EqualValues(t, callers, s.Units)
	require.Zero(t, s.Waiting)
}

package keyed_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/waiter"
)

// A grant was decided between two looks at the clock.
type grant struct{ asked, told time.Time }

// One key with two limiters would be granted up to twice its law. 8 goroutines want 3 keys of which 2 have room, so that
// keys come and go all the time, and no window may hold more than burst + rate × window. They Try only: a sleeper may
// catch up on a late timer, which no clock of ours could tell from a fault.
func TestNoKeyExceedsItsLawWhileKeysComeAndGo(t *testing.T) {
	const rate, burst = 20_000, 2
	var mu sync.Mutex
	grants := map[string][]grant{}
	m := newMap(t, 2, keyed.IdleOnly, func(string) (sluice.Limiter, error) {
		return waiter.New(waiter.Config{Rate: sluice.PerSecond(rate), Burst: burst})
	})
	eightWant3Keys(time.Second, func(rng *rand.Rand, key string) {
		asked := time.Now()
		if d, err := m.Try(context.Background(), key, 1); err != nil || !d.Allowed {
			return
		}
		told := time.Now()
		mu.Lock()
		defer mu.Unlock()
		grants[key] = append(grants[key], grant{asked, told})
	})
	s := m.Stats()
	t.Logf("%+v; %d, %d, %d grants", s, len(grants["k1"]), len(grants["k2"]), len(grants["k3"]))
	require.Equal(t, 2, s.Keys)
	require.Greater(t, s.Dropped, uint64(50), "keys must have come and gone")
	for key, all := range grants {
		slices.SortFunc(all, func(a, b grant) int { return a.asked.Compare(b.asked) })
		for i := range all {
			// What was asked since and told by then was decided within.
			var told []time.Time
			for _, g := range all[i:min(i+100, len(all))] {
				told = append(told, g.told)
			}
			slices.SortFunc(told, time.Time.Compare)
			for n, by := range told {
				window := by.Sub(all[i].asked)
				if law := burst + sluice.PerSecond(rate).UnitsIn(window); int64(n+1) > law {
					t.Fatalf("%s: %d units within %v: at most %d", key, n+1, window, law)
				}
			}
		}
	}
}

func eightWant3Keys(d time.Duration, call func(*rand.Rand, string)) {
	var callers sync.WaitGroup
	end := time.Now().Add(d)
	for i := range 8 {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			for time.Now().Before(end) {
				call(rng, []string{"k1", "k2", "k3"}[rng.IntN(3)])
				if rng.IntN(50) == 0 {
					time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond) // lets keys come to rest
				}
			}
		})
	}
	callers.Wait()
}

// watched knows how many calls are in it.
type watched struct {
	sluice.Limiter
	calls atomic.Int64
}

func (w *watched) Wait(ctx context.Context, n int) error {
	w.calls.Add(1)
	defer w.calls.Add(-1)
	return w.Limiter.Wait(ctx, n)
}

func (w *watched) Try(ctx context.Context, n int) (sluice.Decision, error) {
	w.calls.Add(int64(n)) // 0: asked whether it is at rest
	defer w.calls.Add(int64(-n))
	runtime.Gosched()
	return w.Limiter.Try(ctx, n)
}

func (w *watched) Reserve(ctx context.Context, n int) (sluice.Reservation, error) {
	w.calls.Add(1)
	defer w.calls.Add(-1)
	return w.Limiter.Reserve(ctx, n)
}

// The same, seen from inside: whenever a key's limiter is made, its last one has no caller and owes nothing.
func TestNoLimiterIsMadeBesideOneThatIsInUseOrBusy(t *testing.T) {
	var mu sync.Mutex
	last := map[string]*watched{}
	m := newMap(t, 2, keyed.IdleOnly, func(key string) (sluice.Limiter, error) {
		mu.Lock()
		defer mu.Unlock()
		if old := last[key]; old != nil {
			if calls := old.calls.Load(); calls != 0 {
				t.Errorf("%s: %d calls in the limiter that was dropped", key, calls)
			}
			if d, err := old.Limiter.Try(context.Background(), 0); err != nil || d.ResetAfter != 0 {
				t.Errorf("%s: the limiter that was dropped is not at rest: %+v, %v", key, d, err)
			}
		}
		last[key] = &watched{Limiter: foreign(newWaiter(t, sluice.PerSecond(20_000), 2))}
		return last[key], nil
	})
	eightWant3Keys(time.Second, func(rng *rand.Rand, key string) { granted(rng, m.For(key)) })
	t.Logf("%+v", m.Stats())
	require.Greater(t, m.Stats().Dropped, uint64(50), "keys must have come and gone")
}

// granted asks in one of the ways there are.
func granted(rng *rand.Rand, l sluice.Limiter) bool {
	ctx := context.Background()
	switch rng.IntN(5) {
	case 0:
		ctx, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(200))*time.Microsecond)
		defer cancel()
		return l.Wait(ctx, 1) == nil
	case 1:
		r, err := l.Reserve(ctx, 1)
		if err != nil {
			return false
		}
		if rng.IntN(2) == 0 && r.Delay() > 0 {
			r.Cancel()
			return false
		}
		return r.Wait(ctx) == nil
	default:
		d, err := l.Try(ctx, 1)
		return err == nil && d.Allowed
	}
}

// Everything at once under -race: makers that fail, Oldest, views, reservations, Stats and, in the end, Close.
func TestNothingIsLeftWhenAMapIsClosedInFullRun(t *testing.T) {
	for _, evict := range []keyed.Eviction{keyed.IdleOnly, keyed.Oldest} {
		m := newMap(t, 4, evict, func(k string) (sluice.Limiter, error) {
			l, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(5000), Burst: 3})
			if rand.IntN(2) == 0 {
				return foreign(l), err
			}
			if rand.IntN(5) == 0 {
				return nil, nil
			}
			return l, err
		})
		keys := names(9)
		var callers sync.WaitGroup
		for i := range 8 {
			callers.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				for m.Wait(context.Background(), "0", 0) == nil || m.Len() > 0 {
					granted(rng, m.For(keys[rng.IntN(len(keys))]))
					if m.Len() > 4 {
						t.Error("more keys than MaxKeys:", m.Len())
					}
					m.For(keys[rng.IntN(len(keys))]).Stats()
				}
			})
		}
		time.Sleep(500 * ms)
		if evict == keyed.Oldest {
			require.Positive(t, m.Stats().Dropped)
		}
		require.NoError(t, m.Close())
		callers.Wait()
		require.Zero(t, m.Len())
	}
}

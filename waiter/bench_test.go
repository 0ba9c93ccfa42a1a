package waiter_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

// BenchmarkClock is what every limiter must pay at least: one look at the monotonic clock.
func BenchmarkClock(b *testing.B) {
	base := time.Now()
	var d time.Duration
	for b.Loop() {
		d += time.Since(base)
	}
	_ = d
}

// BenchmarkWaitFree is Wait with a token free: the target is 1.5 × BenchmarkClock, and no allocation.
func BenchmarkWaitFree(b *testing.B) {
	l, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(1e9), Burst: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Wait(ctx, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTryRefused(b *testing.B) {
	l, err := waiter.New(waiter.Config{Rate: sluice.Every(time.Hour), Burst: 1, StartEmpty: true})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if d, err := l.Try(ctx, 1); err != nil || d.Allowed {
			b.Fatal(d, err)
		}
	}
}

// BenchmarkLoop reports the share of the rate that one goroutine in a loop gets with burst 1. Target: 0.95.
func BenchmarkLoop30000(b *testing.B) {
	l, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(30_000), Burst: 1})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	start, n := time.Now(), 0
	for b.Loop() {
		if err := l.Wait(ctx, 1); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)/time.Since(start).Seconds()/30_000, "share")
}

// BenchmarkLine drains 100,000 callers at 50,000/s. Ideal: 2 s.
func BenchmarkLine100000(b *testing.B) {
	const callers, rate = 100_000, 50_000
	for b.Loop() {
		l, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(rate), Burst: 1, StartEmpty: true})
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				if err := l.Wait(context.Background(), 1); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		b.ReportMetric(time.Since(start).Seconds()/(callers/float64(rate)), "drain/ideal")
	}
}

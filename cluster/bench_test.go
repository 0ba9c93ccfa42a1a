package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
)

// BenchmarkDecisions compares granted calls with PINGs over the same client, in turns: one round of each is an operation.
// Read the ratio: both share the processors with Redis, and with whatever else runs.
//
//	go test -run - -bench Decisions -benchtime 21x
func BenchmarkDecisions(b *testing.B) {
	for _, goroutines := range []int{1, 50, 500} {
		for kind, deadline := range map[string]bool{"Wait": false, "Wait with deadlines": true} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", kind, goroutines), func(b *testing.B) {
				client := redis.NewClient(&redis.Options{Addr: redistest.Start(b), PoolSize: 20})
				b.Cleanup(func() { _ = client.Close() })
				l := made(b, client, Config{Rate: sluice.PerSecond(1e9), Burst: 1e6})
				ping := func(ctx context.Context) error { return client.Ping(ctx).Err() }
				wait := func(ctx context.Context) error { return l.Wait(ctx, 1) }
				if deadline {
					wait = func(ctx context.Context) error {
						ctx, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						return l.Wait(ctx, 1)
					}
				}
				perSecond(b, goroutines, ping)
				perSecond(b, goroutines, wait)
				trips, units := l.Health().Trips, l.Stats().Units
				var ratios, waits []float64
				for b.Loop() {
					p, w := perSecond(b, goroutines, ping), perSecond(b, goroutines, wait)
					ratios, waits = append(ratios, w/p), append(waits, w)
				}
				b.ReportMetric(median(ratios), "×PING")
				b.ReportMetric(median(waits), "calls/s")
				b.ReportMetric(float64(l.Health().Trips-trips)/float64(l.Stats().Units-units), "trips/call")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// perSecond returns how often goroutines call f in a second.
func perSecond(b *testing.B, goroutines int, f func(context.Context) error) float64 {
	b.Helper()
	var calls atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range goroutines {
		all.Go(func() {
			n := int64(0)
			for ; time.Since(began) < 150*ms; n++ {
				if err := f(background); err != nil {
					b.Errorf("%v", err)
					return
				}
			}
			calls.Add(n)
		})
	}
	all.Wait()
	require.Positive(b, calls.Load())
	return float64(calls.Load()) / time.Since(began).Seconds()
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
